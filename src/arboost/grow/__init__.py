"""Codes and gradients -> trees: the grower, row samples, bootstrap draws, pruning."""
