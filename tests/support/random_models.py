"""Models of random trees, their tables, and a reference prediction in plain Python."""

from __future__ import annotations

import numpy as np

from arboost.models.model import Model
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.level_sets import schema_of

THRESHOLDS = np.array([-np.inf, -1.0, -0.5, 0.0, 0.25, 1.0, np.inf])


def random_forest(rng, n_trees, n_features, n_outputs, width, n_splits=20, categories=()):
    """Return trees of random shape: some deep on one side, some a single leaf."""
    trees = []
    for _ in range(n_trees):
        left, leaves = [0], [0]
        for _ in range(int(rng.integers(0, n_splits + 1))):
            node = leaves.pop(int(rng.integers(len(leaves) // 2, len(leaves))))
            left[node] = len(left)
            leaves += [len(left), len(left) + 1]
            left += [0, 0]
        trees.append(left)
    left = np.concatenate(trees)
    n_nodes = len(left)
    feature = np.where(left, rng.integers(0, n_features, n_nodes), -1)
    by_set = np.isin(feature, categories)
    return Forest(
        tree_start=np.cumsum([0, *map(len, trees)]),
        feature=feature,
        level_set=np.where(by_set, np.cumsum(by_set) - 1, -1),
        level_sets=rng.integers(0, 2**64, (by_set.sum(), 4), np.uint64),
        threshold=rng.choice(THRESHOLDS, n_nodes),
        left=left,
        default_left=rng.integers(0, 2, n_nodes).astype(bool),
        value=rng.normal(size=(n_nodes, width)),
        gain=np.zeros(n_nodes),
        cover=np.ones(n_nodes),
        output=np.arange(n_trees) % n_outputs if width == 1 else np.zeros(n_trees),
    )


def make_model(forest, n_features, n_outputs, trees_per_round=1, categories=()):
    classes = None if n_outputs == 1 else np.arange(n_outputs)
    model = Predictor(
        forest=forest,
        schema=schema_of([255 if f in categories else 0 for f in range(n_features)]),
        base_score=np.linspace(-1, 1, n_outputs),
        link="identity" if n_outputs == 1 else "softmax",
        classes=classes,
        trees_per_round=trees_per_round,
        params={},
        kind="regressor" if n_outputs == 1 else "classifier",
    )
    model.validate()
    return model


def walk(model: Model, X, n_trees=None):
    """Return the raw scores by traversal of one tree with one row at a time."""
    forest = model.forest
    scores = np.tile(model.base_score, (len(X), 1))
    for row, x in enumerate(X):
        for tree in range(forest.n_trees if n_trees is None else n_trees):
            start = forest.tree_start[tree]
            node = start
            while forest.left[node]:
                value = x[forest.feature[node]]
                goes_left = forest.default_left[node]
                number = forest.level_set[node]
                if number >= 0:
                    if value in range(255):
                        word = int(forest.level_sets[number, int(value) // 64])
                        goes_left = word >> (int(value) % 64) & 1
                elif not np.isnan(value):
                    goes_left = value <= forest.threshold[node]
                node = start + forest.left[node] + (not goes_left)
            if forest.width == 1:
                scores[row, forest.output[tree]] += forest.value[node, 0]
            else:
                scores[row] += forest.value[node]
    return scores


def random_table(rng, n_rows, n_features, missing=0.1):
    X = rng.normal(size=(n_rows, n_features))
    X[rng.random(X.shape) < 0.2] = 0.0
    X[rng.random(X.shape) < 0.1] = 0.25
    X[rng.random(X.shape) < 0.05] = np.inf
    X[rng.random(X.shape) < 0.05] = -np.inf
    X[rng.random(X.shape) < missing] = np.nan
    return X


ODD_CODES = [-1.0, -0.0, 0.5, 254.0, 255.0, 256.0, 1e10, 1e300, -1e300, np.inf, -np.inf, np.nan]
