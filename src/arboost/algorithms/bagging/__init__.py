"""Bagging: members on bags of rows and features."""
