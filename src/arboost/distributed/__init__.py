"""Fits on clusters: programs that all workers run, their transport, and the data that they read."""
