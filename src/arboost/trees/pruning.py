"""Minimal cost-complexity pruning: remove branches whose splits decrease impurity too little.

A tree T costs R(T) + alpha * (number of its leaves), where R is the impurity of its leaves, each
weighted by its share of the rows. For every alpha there is one smallest tree among those of lowest
cost, and these trees are nested: as alpha grows, the branch of the least mean decrease of impurity
per split goes next (Breiman, Friedman, Olshen and Stone 1984, chapter 3).

The only input is therefore the *decrease* of each split, float64 of shape (n_nodes,), ignored for
leaves: weight times impurity of the node, minus the same of its two children. Its sources:

================================ ====================================================
criterion                        decrease
================================ ====================================================
squared error, Gini              `mean_decreases`, from values and covers
any whose gain is a decrease     ``forest.gain``, possibly times a constant
================================ ====================================================

Nodes that become leaves keep their value: every split must hold its value as a leaf.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arboost.backend import core
from arboost.trees.forest import Floats, Forest, Integers, depths, splits


class PruningPath(NamedTuple):
    """Sequence of pruned trees, from the whole tree to the root alone.

    Attributes
    ----------
    ccp_alphas : float64 array of shape (n_steps + 1,)
        Smallest alpha at which each tree is optimal; 0 for the whole tree.
    impurities : float64 array of shape (n_steps + 1,)
        Impurity of the leaves of each tree, weighted by their shares of the rows.
    """

    ccp_alphas: Floats
    impurities: Floats


def mean_decreases(forest: Forest, scale: ArrayLike = 1.0) -> Floats:
    """Decreases of trees whose leaf values are means, shape (n_nodes,).

    With weights W and means v of two children, squared error falls by W1 W2 / (W1 + W2) (v1 - v2)^2
    for each output. The mean of a node is that of the leaves below it: only values and covers of
    leaves are read.

    Parameters
    ----------
    forest : Forest
    scale : float, or array of shape (width,)
        Factor of each output's decrease. With one target: 1 for squared error, and for Gini with
        the shares of all classes in the leaves; 1/2 for Gini of two classes with the difference of
        their shares. With several targets, whose impurities are averaged: each divided by their
        number.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1, reg_lambda=0.0,
    ...     learning_rate=1.0).fit([[0], [1], [2]], [0.0, 0.0, 3.0]).model_
    >>> mean_decreases(model.forest)  # variance 2 of three rows, 0 in both leaves
    array([6., 0., 0.])
    """
    split, child = splits(forest)
    weight, total = forest.cover.copy(), forest.value * forest.cover[:, None]
    for level in reversed(_levels(forest, split)):
        for array in (weight, total):
            array[split[level]] = array[child[level]] + array[child[level] + 1]
    mean = np.divide(total, weight[:, None], out=np.zeros_like(total), where=weight[:, None] > 0)
    difference = mean[child] - mean[child + 1]
    sums = weight[child] + weight[child + 1]
    products = weight[child] * weight[child + 1]
    decrease = np.zeros(forest.n_nodes)
    decrease[split] = np.divide(products, sums, out=np.zeros_like(sums), where=sums > 0)
    decrease[split] *= (np.broadcast_to(scale, (forest.width,)) * difference**2).sum(axis=1)
    return decrease


def pruning_path(forest: Forest, decrease: Floats, impurity: float, tree: int = 0) -> PruningPath:
    """Alphas at which one tree gets smaller, and its impurities.

    Parameters
    ----------
    forest : Forest
    decrease : float64 array of shape (n_nodes,)
        Decreases of all splits of the forest; see the head of this file.
    impurity : float
        Impurity of the root, in the unit of the decreases per weight: for example the variance.
    tree : int, default=0

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=1, reg_lambda=0.0, learning_rate=1.0)
    >>> forest = model.fit([[0], [1], [2], [3]], [0.0, 0.0, 4.0, 8.0]).model_.forest
    >>> pruning_path(forest, mean_decreases(forest), impurity=11.0)
    PruningPath(ccp_alphas=array([0., 2., 9.]), impurities=array([ 0.,  2., 11.]))
    """
    nodes = _node_range(forest, tree)
    _, alphas, decreases = core.prune_order(forest.left[nodes], _checked(forest, decrease)[nodes])
    total = forest.cover[nodes.start]
    return PruningPath(np.concatenate([[0.0], alphas / total]), impurity - decreases / total)


def pruned(forest: Forest, decrease: Floats, ccp_alpha: float) -> Forest:
    """Forest with each tree pruned by ccp_alpha.

    Parameters
    ----------
    forest : Forest
    decrease : float64 array of shape (n_nodes,)
        Decreases of all splits; see the head of this file.
    ccp_alpha : float
        Branches are removed while the weakest has a mean decrease of at most ccp_alpha per split;
        with 0 none is removed, not even one of decrease 0. The alphas of `pruning_path` give its
        trees.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=1, reg_lambda=0.0, learning_rate=1.0)
    >>> forest = model.fit([[0], [1], [2], [3]], [0.0, 0.0, 4.0, 8.0]).model_.forest
    >>> forest.n_nodes
    5
    >>> pruned(forest, mean_decreases(forest), ccp_alpha=2.0).n_nodes
    3
    """
    decrease = _checked(forest, decrease)
    if ccp_alpha == 0.0:
        return forest
    new_leaf = np.zeros(forest.n_nodes, np.bool_)
    for tree in range(forest.n_trees):
        nodes = _node_range(forest, tree)
        order, alphas, _ = core.prune_order(forest.left[nodes], decrease[nodes])
        above = np.flatnonzero(alphas / forest.cover[nodes.start] > ccp_alpha)
        new_leaf[nodes.start + order[: above[0] if len(above) else len(order)]] = True
    return without_branches(forest, new_leaf)


def without_branches(forest: Forest, new_leaf: NDArray[np.bool_]) -> Forest:
    """Forest with these nodes as leaves, without the nodes below them."""
    split, child = splits(forest)
    reached = np.zeros(forest.n_nodes, np.bool_)
    reached[forest.tree_start[:-1]] = True
    for level in _levels(forest, split):
        remaining = level[reached[split[level]] & ~new_leaf[split[level]]]
        reached[child[remaining]] = reached[child[remaining] + 1] = True
    new_index = np.cumsum(reached) - 1  # among the remaining nodes of the whole forest
    left = np.zeros(forest.n_nodes, np.int64)
    left[split] = new_index[child] - new_index[forest.root[split]]
    # Unused values of leaves are those of leaves of the core.
    cleared = {
        name: np.where(new_leaf, 0, getattr(forest, name))
        for name in ("feature", "threshold", "default_left", "gain")
    }
    return forest.with_nodes(
        reached,
        tree_start=np.concatenate([[0], np.cumsum(reached)])[forest.tree_start],
        output=forest.output,
        left=np.where(new_leaf, 0, left),
        level_set=np.where(new_leaf, -1, forest.level_set),
        **cleared,
    )


def _node_range(forest: Forest, tree: int) -> slice:
    return slice(int(forest.tree_start[tree]), int(forest.tree_start[tree + 1]))


def _levels(forest: Forest, split: Integers) -> list[Integers]:
    """Indices in `split` of the splits of each depth."""
    depth = depths(forest)[split]
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def _checked(forest: Forest, decrease: Floats) -> Floats:
    decrease = np.ascontiguousarray(decrease, np.float64)
    if decrease.shape != (forest.n_nodes,):
        raise ValueError(
            f"decrease has shape {decrease.shape}, but the forest has {forest.n_nodes} nodes. "
            "Pass one decrease for each node."
        )
    return decrease
