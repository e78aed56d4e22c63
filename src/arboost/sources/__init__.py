"""Files, datasets, queries and iterables -> restartable batches of rows."""
