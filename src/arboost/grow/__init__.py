"""Bin codes and gradients -> trees: the grower, row sampling, bootstrap samples, pruning."""
