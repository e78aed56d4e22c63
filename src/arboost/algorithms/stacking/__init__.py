"""Stacking and voting: ensembles of named members."""
