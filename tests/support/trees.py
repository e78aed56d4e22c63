"""View of one tree of a fitted model: node arrays, and the leaf of each row."""

from __future__ import annotations

import numpy as np


class Tree:
    """One tree of a fitted model, node by node."""

    def __init__(self, model, tree=0):
        forest = model.model_.forest
        span = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
        self.feature, self.threshold = forest.feature[span], forest.threshold[span]
        self.left, self.gain, self.cover = forest.left[span], forest.gain[span], forest.cover[span]
        self.value = forest.value[span, 0]
        self.is_leaf = self.left == 0
        self.depth = np.zeros(len(self.left), int)
        for i in np.flatnonzero(~self.is_leaf):  # parents come before their children
            self.depth[self.left[i]] = self.depth[self.left[i] + 1] = self.depth[i] + 1

    @property
    def n_leaves(self):
        return int(self.is_leaf.sum())

    def leaf_of(self, X):
        node = np.zeros(len(X), int)
        while not self.is_leaf[node].all():
            right = X[np.arange(len(X)), self.feature[node]] > self.threshold[node]
            node = np.where(self.is_leaf[node], node, self.left[node] + right)
        return node

    def paths(self):
        """Return the sets of features on the paths from the root to the leaves."""
        above = [frozenset()] * len(self.left)
        for i in np.flatnonzero(~self.is_leaf):
            for child in (self.left[i], self.left[i] + 1):
                above[child] = above[i] | {int(self.feature[i])}
        return [above[i] for i in np.flatnonzero(self.is_leaf)]

    @property
    def used(self):
        """Return the features of all splits."""
        return {int(feature) for feature in self.feature[~self.is_leaf]}


def trees_of(model):
    """Return all trees of a fitted estimator."""
    return [Tree(model, i) for i in range(model.model_.n_trees)]


def leaves_of(X, y, tree):
    """Return pairs of a leaf's index and the targets of its rows."""
    leaf = tree.leaf_of(X)
    return [(i, y[leaf == i]) for i in np.unique(leaf)]
