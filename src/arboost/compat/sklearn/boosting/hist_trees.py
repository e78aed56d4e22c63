"""scikit-learn's own predictors of the trees of a booster, for tools that read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.model.leaves import depths
from arboost.model.model import Model

__all__ = ["tree_predictors"]


def tree_predictors(model: Model) -> list[list[Any]]:
    """Return a ``TreePredictor`` of scikit-learn for each tree: a list of the trees of each round.

    They are copies: changes do not reach the model. Sets of levels are bits of their codes. The
    model does not hold numbers of rows, and `count` is 0.
    """
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    found = []
    n_levels = np.array(model.schema.n_levels)
    for tree in range(model.n_trees):
        forest = model.forest.only(tree)
        by_set = forest.level_set >= 0
        nodes = np.zeros(forest.n_nodes, PREDICTOR_RECORD_DTYPE)
        columns = {
            "value": forest.value[:, 0],
            "feature_idx": forest.feature,
            "num_threshold": forest.threshold,
            "missing_go_to_left": forest.default_left,
            "left": forest.left,
            "right": np.where(forest.is_split, forest.left + 1, 0),
            "gain": forest.gain,
            "depth": depths(forest),
            "is_leaf": ~forest.is_split,
            "is_categorical": by_set,
            "bitset_idx": np.where(by_set, forest.level_set, 0),
        }
        for name, column in columns.items():
            nodes[name] = column
        sets = _known_levels(forest.level_sets, n_levels[forest.feature[by_set]])
        found.append(TreePredictor(nodes, sets, sets.copy()))
    size = model.trees_per_round
    return [found[first : first + size] for first in range(0, len(found), size)]


def _known_levels(sets: NDArray[np.uint64], n_levels: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return sets of level codes as words of 32 bits, without the codes that no level has."""
    bits = np.unpackbits(sets.view(np.uint8), axis=1, bitorder="little")
    bits[np.arange(bits.shape[1]) >= n_levels[:, np.newaxis]] = 0
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
