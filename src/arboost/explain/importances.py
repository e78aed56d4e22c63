"""Feature importances: by the gain, cover or number of splits, by permutation, by SHAP values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.schema import Schema
from arboost.data.target import weights
from arboost.explain.permutation import Shuffles, loss_increases
from arboost.explain.shap import shap_values
from arboost.model.model import Model

__all__ = ["IMPORTANCE_KINDS", "by_column", "importances", "split_importances", "tree_importances"]

Floats = NDArray[np.float64]

SPLIT_KINDS = ("gain", "cover", "split")
IMPORTANCE_KINDS = (*SPLIT_KINDS, "permutation", "shap")


def importances(
    model: Model,
    kind: str = "gain",
    X: object = None,
    y: object = None,
    shuffles: Shuffles | None = None,
    *,
    sample_weight: object = None,
    offset: object = None,
    n_threads: int = 1,
) -> Floats:
    """Return the importances of `arboost.Predictor.importances`, shape (n_features,).

    Parameters
    ----------
    model : Model
    kind : {"gain", "cover", "split", "permutation", "shap"}, default="gain"
    X, y, shuffles, sample_weight, offset, n_threads
        Arguments of `arboost.explain.permutation.loss_increases`; the importances are its mean
        over the repeats.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.explain.importances import importances
    >>> model = GradientBoostingRegressor(n_estimators=3).fit([[0, 5], [1, 5]], [0, 1]).model_
    >>> importances(model, "split")
    array([3., 0.])
    """
    if kind not in IMPORTANCE_KINDS:
        raise ValueError(f"kind={kind!r} is not allowed: use one of {', '.join(IMPORTANCE_KINDS)}.")
    needed: dict[str, Any] = {"permutation": {"X": X, "y": y}, "shap": {"X": X}}.get(kind, {})
    absent = [name for name, value in needed.items() if value is None]
    if absent:
        raise ValueError(
            f"kind={kind!r} was asked for without {' and '.join(absent)}: it looks at the "
            f"predictions for rows. Pass {' and '.join(needed)}."
        )
    unused = {"y": y} if kind == "shap" else {"X": X, "y": y, "sample_weight": sample_weight}
    unused["offset"] = offset
    given = [name for name, value in unused.items() if value is not None]
    if shuffles is not None:
        given += shuffles.changed()
    if kind != "permutation" and given:
        raise ValueError(
            f"kind={kind!r} does not look at {' and '.join(given)}, but it was passed. Leave it "
            'out, or use kind="permutation".'
        )
    if kind in SPLIT_KINDS:
        return split_importances(model, kind)
    if kind == "shap":
        return _mean_shap(model, X, sample_weight, n_threads)
    losses = loss_increases(
        model, X, y, shuffles, sample_weight=sample_weight, offset=offset, n_threads=n_threads
    )
    mean: Floats = losses.mean(axis=0)
    return mean


def _mean_shap(model: Model, X: object, sample_weight: object, n_threads: int) -> Floats:
    """Return the mean of |SHAP value| over the rows, summed over the outputs."""
    values = np.abs(shap_values(model, X, None, n_threads=n_threads))
    if not len(values):
        raise ValueError("X has no rows, but the importance is a mean over rows. Pass some.")
    by_feature = values.reshape(*values.shape[:2], -1).sum(axis=2)
    mean: Floats = np.average(by_feature, axis=0, weights=weights(sample_weight, len(values)))
    return mean


def split_importances(model: Model, kind: str) -> Floats:
    """Return the total of a split statistic for each feature, shape (n_features,).

    Parameters
    ----------
    model : Model
    kind : {"gain", "cover", "split"}
        Total gain of the splits on a feature, total of their covers, or their number.
    """
    forest = model.forest
    split = forest.is_split
    weight = None if kind == "split" else getattr(forest, kind)[split]
    total = np.bincount(forest.feature[split], weight, minlength=model.schema.n_features)
    return total.astype(np.float64)


def by_column(importances: Floats, schema: Schema) -> Floats:
    """Return importances with those of derived features added to their columns; last axis."""
    found = importances[..., : schema.n_columns].copy()
    for place, (column, _) in enumerate(schema.parts, schema.n_columns):
        found[..., column] += importances[..., place]
    return found


def tree_importances(model: Model) -> NDArray[np.float64]:
    """Return the share of each feature in the gains of each tree, shape (n_trees, n_features).

    The shares are 0 for trees without a split.
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
