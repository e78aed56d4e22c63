"""Stacking and voting: several named members."""
