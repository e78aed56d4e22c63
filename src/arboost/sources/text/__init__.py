"""Text files of a source: CSV, TSV and JSON lines."""
