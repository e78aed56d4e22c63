"""Columns of batches, and of the batches of several workers -> one schema."""
