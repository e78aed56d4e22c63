"""Estimators as members of an ensemble: their tables, arguments, predictions and fits."""
