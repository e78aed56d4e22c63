"""Random problems for the reweighting of rows."""

from __future__ import annotations

import numpy as np


def problem(n, n_classes, seed=0, spread=2.0):
    """Return classes, weights with zeros, and scores with ties."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n).astype(float)
    weight = rng.exponential(size=n) * (rng.random(n) < 0.9) + (np.arange(n) == 0)
    scores = rng.normal(size=(n, 1 if n_classes == 2 else n_classes)) * spread
    scores[rng.random(n) < 0.2] = 0.0
    return y, weight, scores
