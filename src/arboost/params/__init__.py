"""Parameters of estimators, each declared once, and suggestions for unknown names."""
