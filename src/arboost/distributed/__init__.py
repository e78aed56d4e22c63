"""Fits on a cluster: one program that runs in every worker at the same time."""
