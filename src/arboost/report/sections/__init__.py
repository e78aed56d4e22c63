"""Sections of a report: each turns models, rows and predictions into its part of the payload."""
