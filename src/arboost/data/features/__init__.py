"""Columns of a table <-> the numbers that trees split: levels."""
