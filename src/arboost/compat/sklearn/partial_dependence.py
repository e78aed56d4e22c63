"""The recursive partial dependence that scikit-learn's inspection asks of its tree ensembles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["summed_dependence"]


def summed_dependence(trees: Iterable[Any], grid: Any, features: Any) -> NDArray[np.float64]:
    """Return the sum over trees of their averages over all other features, shape (n_points,).

    Parameters
    ----------
    trees : iterable of sklearn.tree._tree.Tree
    grid : array of shape (n_points, n_given)
        Values of the features.
    features : array of int
    """
    points, chosen = np.asarray(grid, np.float32, order="C"), np.asarray(features, np.intp)
    total = np.zeros(len(points))
    for tree in trees:
        tree.compute_partial_dependence(points, chosen, total)
    return total
