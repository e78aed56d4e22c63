"""Explanations of a model: importances, SHAP values, partial dependence, monotone proofs."""
