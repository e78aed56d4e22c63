"""Drawings of `arboost.plots`: a module for each kind."""
