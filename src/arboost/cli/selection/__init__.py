"""Runs of the commands that compare models and tune their parameters."""
