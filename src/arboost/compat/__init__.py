"""Estimators under the names, signatures and defaults of other libraries."""
