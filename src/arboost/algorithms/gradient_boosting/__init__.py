"""Gradient boosting: recipe, rounds, DART, and the two estimators."""
