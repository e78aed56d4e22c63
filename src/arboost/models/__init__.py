"""Fitted models: predictions, explanations and files."""
