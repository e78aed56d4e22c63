"""Translation of scikit-learn's gradient boosters onto the engine's booster."""
