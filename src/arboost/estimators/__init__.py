"""Arguments of ``fit`` -> fitted estimator: a file, or a folder, for each ensemble."""
