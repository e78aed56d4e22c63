"""Estimators as members: their tables, arguments, answers and jobs."""
