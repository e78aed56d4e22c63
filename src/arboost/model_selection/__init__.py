"""Comparison of the ensembles on one table, and search for the best parameters of one of them."""
