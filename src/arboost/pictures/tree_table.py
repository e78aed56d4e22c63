"""The nodes of all trees as columns, ready for a data frame of pandas or Polars."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.model.leaves import depths
from arboost.model.model import Model

__all__ = ["tree_table"]


def tree_table(model: Model) -> dict[str, NDArray[Any]]:
    """Return the columns of `arboost.Predictor.tree_table`.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingRegressor(n_estimators=1).fit([[0], [1]], [0, 1]).model_
    >>> table = tree_table(model)
    >>> table["feature"].tolist(), table["threshold"].tolist(), table["left"].tolist()
    (['x0', None, None], [0.5, nan, nan], [1, -1, -1])
    """
    forest = model.forest
    split, start = forest.is_split, forest.tree_start
    size = np.diff(start)
    names = np.empty(model.schema.n_features + 1, object)
    names[:-1] = model.schema.shown_names  # the last one is None, for leaves
    sides = np.array(["left", "right", None], object)
    missing_side = sides[np.where(split, np.where(forest.default_left, 0, 1), 2)]
    table: dict[str, NDArray[Any]] = {
        "tree": np.repeat(np.arange(forest.n_trees), size),
        "node": np.arange(forest.n_nodes) - np.repeat(start[:-1], size),
        "depth": depths(forest),
        "feature": names[np.where(split, forest.feature, -1)],
        "threshold": np.where(split & (forest.level_set < 0), forest.threshold, np.nan),
        "levels": _levels(model),
        "missing": missing_side,
        "left": np.where(split, forest.left, -1).astype(np.int64),
        "right": np.where(split, forest.left + 1, -1).astype(np.int64),
        "gain": np.where(split, forest.gain, np.nan),
        "cover": forest.cover.copy(),
    }
    if forest.width == 1:
        table["output"] = np.repeat(forest.output, size).astype(np.int64)
        table["value"] = forest.value[:, 0].copy()
    else:
        columns = forest.value.T.copy()
        table |= {f"value_{output}": column for output, column in enumerate(columns)}
    return table


def _levels(model: Model) -> NDArray[Any]:
    """Return the list of left levels for splits of categories, None for other nodes."""
    forest, schema = model.forest, model.schema
    found = np.full(forest.n_nodes, None, object)
    labels: dict[int, list[str | float]] = {}
    ranked = [one is not None and one.ranks is not None for one in schema.levels]
    by_rank = forest.is_split & np.isin(forest.feature, np.flatnonzero(ranked))
    for node in np.flatnonzero((forest.level_set >= 0) | by_rank).tolist():
        feature = int(forest.feature[node])
        levels = schema.levels_of(feature)
        assert levels is not None
        if feature not in labels:
            labels[feature] = [levels.label(code) for code in range(len(levels))]
        if levels.ranks is not None:
            codes = levels.by_rank[levels.ranks[levels.by_rank] <= forest.threshold[node]]
        else:
            is_left = levels.in_set(forest.level_sets[forest.level_set[node]])
            codes = np.flatnonzero(is_left)
        found[node] = [labels[feature][code] for code in codes]
    return found
