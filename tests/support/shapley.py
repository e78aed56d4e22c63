"""Shapley values by their definition: over all subsets of features, and slow."""

from itertools import combinations
from math import factorial, floor, isnan

import numpy as np


def goes_left(forest, node, x):
    number = forest.level_set[node]
    if number < 0:
        return bool(forest.default_left[node]) if isnan(x) else x <= forest.threshold[node]
    if isnan(x) or not 0 <= x < 255 or x != floor(x):
        return bool(forest.default_left[node])
    code = int(x)
    return bool(int(forest.level_sets[number][code // 64]) >> (code % 64) & 1)


def tree_value(forest, tree, row, known, other=None):
    """Return the value of a tree for a row with some features present.

    Absent features are averaged by cover, or taken from another row.
    """
    first = forest.tree_start[tree]

    def below(node):
        if forest.left[node] == 0:
            return forest.value[node]
        left, feature = first + forest.left[node], forest.feature[node]
        if feature in known or other is not None:
            x = row[feature] if feature in known else other[feature]
            return below(left if goes_left(forest, node, x) else left + 1)
        total = forest.cover[left] + forest.cover[left + 1]
        share = forest.cover[left] / total if total > 0 else 0.5
        return share * below(left) + (1 - share) * below(left + 1)

    return below(first)


def is_difference(model):
    """Whether raw scores are the probability of the second class minus that of the first."""
    return model.link == "share_of_two" or (model.classes is not None and model.targets == (1, 1))


def explained(model, raw):
    """Return the scores that SHAP values sum to."""
    return (1 + raw) / 2 if is_difference(model) else raw


def game(model, row, known, background=None):
    """Return the scores of a row with some features present."""
    scores = np.zeros(model.n_outputs)
    others = [None] if background is None else background
    for tree in range(model.n_trees):
        where = slice(None) if model.forest.width > 1 else model.forest.output[tree]
        for other in others:
            scores[where] += np.squeeze(tree_value(model.forest, tree, row, known, other)) / len(
                others
            )
    scores = scores / model.n_rounds if model.combine == "mean" else scores
    return explained(model, model.base_score + scores)


def subsets(features):
    for size in range(len(features) + 1):
        yield from map(frozenset, combinations(features, size))


def all_games(model, row, background=None):
    features = sorted(set(model.forest.feature[model.forest.is_split].tolist()))
    return features, {s: game(model, row, s, background) for s in subsets(features)}


def values(model, row, background=None):
    """Return Shapley values, shape (n_features, n_outputs)."""
    features, worth = all_games(model, row, background)
    phi = np.zeros((model.schema.n_features, model.n_outputs))
    n = len(features)
    for i in features:
        for s in subsets([f for f in features if f != i]):
            weight = factorial(len(s)) * factorial(n - len(s) - 1) / factorial(n)
            phi[i] += weight * (worth[s | {i}] - worth[s])
    return phi


def interactions(model, row):
    """Return Shapley interactions, shape (n_features, n_features, n_outputs)."""
    features, worth = all_games(model, row)
    n, n_features = len(features), model.schema.n_features
    phi = np.zeros((n_features, n_features, model.n_outputs))
    for i, j in combinations(features, 2):
        for s in subsets([f for f in features if f not in (i, j)]):
            weight = factorial(len(s)) * factorial(n - len(s) - 2) / (2 * factorial(n - 1))
            together = worth[s | {i, j}] - worth[s | {i}] - worth[s | {j}] + worth[s]
            phi[i, j] += weight * together
        phi[j, i] = phi[i, j]
    alone = values(model, row)
    for i in range(n_features):
        phi[i, i] = alone[i] - phi[i].sum(axis=0)
    return phi


def as_dict(model):
    """Return the model in the form that shap.TreeExplainer takes."""
    forest = model.forest
    scale = model.n_rounds if model.combine == "mean" else 1
    scale *= 2 if is_difference(model) else 1
    trees = []
    for tree in range(model.n_trees):
        nodes = slice(*forest.tree_start[tree : tree + 2])
        left = np.where(forest.left[nodes] > 0, forest.left[nodes], -1)
        right = np.where(left > 0, left + 1, -1)
        value = forest.value[nodes]
        if forest.width < model.n_outputs:
            value = value * np.eye(model.n_outputs)[forest.output[tree]]
        trees.append(
            {
                "children_left": left.astype(np.int32),
                "children_right": right.astype(np.int32),
                "children_default": np.where(forest.default_left[nodes], left, right),
                "features": np.where(left > 0, forest.feature[nodes], -2),
                "thresholds": forest.threshold[nodes],
                "values": value / scale,
                "node_sample_weight": forest.cover[nodes].copy(),
            }
        )
    return {
        "trees": trees,
        "base_offset": explained(model, model.base_score),
        "tree_output": "raw_value",
        "objective": "squared_error",
        "input_dtype": np.float64,
        "internal_dtype": np.float64,
    }
