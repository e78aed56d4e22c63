"""Every parameter of every estimator, once: kind, default, range, text."""
