"""Models whose trees are averaged."""

from __future__ import annotations

import numpy as np

from arboost.data.schema import Schema
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest


def mean_of(model, **changes):
    fields = {"combine": "mean", "link": "identity", "kind": "regressor", "classes": None}
    return Predictor(**(model.fields() | fields | changes))


def leaf_votes(values):
    """Return a forest of single-leaf trees with the given values."""
    values = np.array(values, float)
    n_trees = len(values)
    lone = {name: np.zeros(n_trees) for name in ("threshold", "left", "default_left", "gain")}
    return Forest(
        tree_start=np.arange(n_trees + 1),
        feature=np.full(n_trees, -1),
        value=values,
        cover=np.ones(n_trees),
        output=np.zeros(n_trees),
        **lone,
    )


def votes_model(values, **changes):
    fields = {
        "forest": leaf_votes(values),
        "schema": Schema(names=None, n_features=1),
        "base_score": np.zeros(np.shape(values)[1]),
        "link": "shares",
        "trees_per_round": 1,
        "params": {},
        "kind": "classifier",
        "combine": "mean",
    }
    model = Predictor(**(fields | changes))
    model.validate()
    return model
