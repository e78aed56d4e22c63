"""Models of all kinds whose trees are in a scrambled order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from arboost.trees.forest import ALL_DTYPES
from support.mean_models import mean_of, votes_model
from support.model_files import small_model
from support.random_models import make_model, random_forest


def scrambled(rng, forest):
    """Return the same trees with nodes in another order, as after leafwise growth."""
    arrays = {name: [] for name in ALL_DTYPES if name not in ("tree_start", "output", "level_sets")}
    for tree in range(forest.n_trees):
        start = forest.tree_start[tree]
        places, left, open_nodes = [0], [0], [0]  # new node -> old one
        while open_nodes:
            node = open_nodes.pop(int(rng.integers(len(open_nodes))))
            child = forest.left[start + places[node]]
            if child:
                left[node] = len(places)
                open_nodes += [len(places), len(places) + 1]
                places += [child, child + 1]
                left += [0, 0]
        for name, parts in arrays.items():
            old = getattr(forest, name)[start + np.array(places)]
            parts.append(np.array(left) if name == "left" else old)
    joined = {name: np.concatenate(parts) for name, parts in arrays.items()}
    joined["level_set"] = np.where(
        joined["level_set"] >= 0, np.cumsum(joined["level_set"] >= 0) - 1, -1
    )
    return replace(forest, **joined)


def random_mean(seed, categories=(), change=None):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 2, 3, 1, 1, n_splits=5, categories=categories)
    forest = scrambled(rng, forest) if change == "order" else forest
    return mean_of(make_model(forest, 3, 1, categories=categories))


MODELS = {
    "small": mean_of(small_model(names=None)),
    "sets": random_mean(3, categories=[1]),
    "order": random_mean(9, change="order"),
    "targets": votes_model(
        [[0.5, 1 / 3, 1 / 3, 1 / 3]], classes=(np.arange(2), np.arange(3)), targets=(1, 3)
    ),
}
