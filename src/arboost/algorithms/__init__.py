"""The estimators: one folder per kind of ensemble, all on one engine of trees."""
