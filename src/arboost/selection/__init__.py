"""Model selection: compare all ensembles on the same folds, tune one of them."""
