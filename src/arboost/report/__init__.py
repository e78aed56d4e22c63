"""Report of a fitted model on a table of rows: one self-contained page, and its pieces."""
