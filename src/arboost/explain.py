"""Why a model answers as it does. For now: how much each feature is used."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from arboost.model import Model

__all__ = ["IMPORTANCE_KINDS", "importances", "tree_importances"]

IMPORTANCE_KINDS = ("gain", "cover", "split")


def importances(model: Model, kind: str = "gain") -> NDArray[np.float64]:
    """Return a total for each feature over all splits on it, shape (n_features,).

    Parameters
    ----------
    model : Model
    kind : {"gain", "cover", "split"}, default="gain"
        Total gain of the splits, total of the hessians that reach them, or their number.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.explain import importances
    >>> model = GradientBoostingRegressor(n_estimators=3).fit([[0, 5], [1, 5]], [0, 1]).model_
    >>> importances(model, "split")
    array([3., 0.])
    """
    if kind not in IMPORTANCE_KINDS:
        raise ValueError(f"kind={kind!r} is not allowed: use one of {', '.join(IMPORTANCE_KINDS)}.")
    forest = model.forest
    split = forest.is_split
    weights = None if kind == "split" else getattr(forest, kind)[split]
    total = np.bincount(forest.feature[split], weights, minlength=model.schema.n_features)
    return total.astype(np.float64)


def tree_importances(model: Model) -> NDArray[np.float64]:
    """Return the share of each feature in the gains of each tree, shape (n_trees, n_features).

    All 0 for trees that split nothing.
    """
    forest, n_features = model.forest, model.schema.n_features
    split = forest.is_split
    tree = np.repeat(np.arange(model.n_trees), np.diff(forest.tree_start))
    place = tree[split] * n_features + forest.feature[split]
    total_gain = np.bincount(place, forest.gain[split], minlength=model.n_trees * n_features)
    gain = total_gain.astype(np.float64).reshape(model.n_trees, n_features)
    total = gain.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = np.divide(gain, total, out=np.zeros_like(gain), where=total > 0)
    return shares
