"""History of a fit in model files: its record, and its checks."""
