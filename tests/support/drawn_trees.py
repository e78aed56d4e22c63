"""Small models to draw, with names that could break a picture."""

from __future__ import annotations

import numpy as np

from arboost import Predictor
from arboost.data.schema import Schema
from arboost.plots.trees import tree_text
from arboost.trees.forest import Forest


def model_of(forest, schema, *, classes=None, targets=(), link=None):
    """Return a model of averaged trees with class probabilities or values."""
    n_outputs = forest.width
    if link is None:
        link = "identity" if classes is None else "shares" if n_outputs > 1 else "share_of_two"
    model = Predictor(
        forest=forest,
        schema=schema,
        base_score=np.zeros(n_outputs),
        link=link,
        classes=classes,
        trees_per_round=1,
        params={},
        kind="regressor" if classes is None else "classifier",
        combine="mean",
        targets=targets,
    )
    model.validate()
    return model


def stump(value, *, threshold=2.5, default_left=False, level_sets=(), cover=(8, 6, 2)):
    by_set = len(level_sets) > 0
    return Forest(
        tree_start=[0, 3],
        feature=[0, 0, 0],
        threshold=[threshold, 0, 0],
        left=[1, 0, 0],
        default_left=[default_left, False, False],
        value=value,
        gain=[1.0, 0, 0],
        cover=cover,
        output=[0],
        level_set=[0 if by_set else -1, -1, -1],
        level_sets=np.array(level_sets, np.uint64).reshape(-1, 4),
    )


def names_schema(*names, levels=(), units=()):
    return Schema(tuple(names), len(names), levels, units=units)


def lines(model, **options):
    return tree_text(model, **options).splitlines()


HOSTILE = [
    "<script>alert(1)</script>",
    "a & b",
    "\"quoted\" 'names'",
    "line\nbreak\ttab",
    "null\x00 and bell\x07",
    "\ud800 lone surrogate",
    "\u202eright to left",
    "価格が高い商品の名前はとても長いことがあります",
    "Ünïcödé ß ≤",
    "",
    "W" * 200,
    "]]> -->",
    "$x_0$",
]


def full_tree(rng, depth, n_features, width=1):
    n = 2 ** (depth + 1) - 1
    left = np.where(np.arange(n) < 2**depth - 1, 2 * np.arange(n) + 1, 0)
    cover = rng.integers(1, 10_000, n).astype(float)
    value = rng.dirichlet(np.ones(width), n) if width > 1 else rng.normal(size=(n, 1)) * 1e3
    return Forest(
        tree_start=[0, n],
        feature=np.where(left, np.arange(n) % n_features, 0),
        threshold=np.where(left, rng.normal(size=n) * 10.0 ** rng.integers(-6, 7, n), 0.0),
        left=left,
        default_left=rng.integers(0, 2, n).astype(bool) & (left > 0),
        value=value,
        gain=np.zeros(n),
        cover=cover,
        output=[0],
    )
