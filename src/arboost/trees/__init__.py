"""Bin codes and gradients -> trees: growth, row samples, pruning, and the arrays of grown trees."""
