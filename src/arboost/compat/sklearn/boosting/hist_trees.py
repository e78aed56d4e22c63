"""scikit-learn's own predictors of the trees of a booster, for tools that read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from arboost.model.leaves import depths
from arboost.model.model import Model

__all__ = ["tree_predictors"]


def tree_predictors(model: Model) -> list[list[Any]]:
    """Return a ``TreePredictor`` of scikit-learn for each tree: a list of the trees of each round.

    They are copies: changes do not reach the model. Sets of levels are bits of their codes.
    """
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    found = []
    for tree in range(model.n_trees):
        forest = model.forest.only(tree)
        by_set = forest.level_set >= 0
        nodes = np.zeros(forest.n_nodes, PREDICTOR_RECORD_DTYPE)
        columns = {
            "value": forest.value[:, 0],
            "count": np.rint(forest.cover),
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
        sets = np.ascontiguousarray(forest.level_sets).view(np.uint32)
        found.append(TreePredictor(nodes, sets, sets.copy()))
    size = model.trees_per_round
    return [found[first : first + size] for first in range(0, len(found), size)]
