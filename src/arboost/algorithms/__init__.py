"""The ensembles: each a list of parameters and a recipe over the one engine."""
