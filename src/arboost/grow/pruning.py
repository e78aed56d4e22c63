"""Minimal cost-complexity pruning: which splits of a grown tree are worth a leaf more.

A tree T costs R(T) + alpha * (number of its leaves), where R is the impurity of its leaves, each
weighted by its share of the rows. For every alpha there is one smallest tree among those of lowest
cost, and they are nested: with growing alpha, again and again the branch goes whose splits, on
average, take off the least impurity (Breiman, Friedman, Olshen and Stone 1984, chapter 3).

All that counts is therefore the *decrease* of each split, float64 of shape (n_nodes,), anything for
leaves: weight of the node times its impurity, less the same of its two children. How to get it:

================================ ====================================================
criterion                        decrease
================================ ====================================================
squared error, Gini              `mean_decreases`, from values and covers
any whose gain is a decrease     ``forest.gain``, times a constant that may be needed
================================ ====================================================

Nodes that become leaves keep their value: inner nodes must hold what they would say as leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arboost.backend import core
from arboost.model.forest import ALL_DTYPES, Forest
from arboost.model.leaves import depths

__all__ = ["PruningPath", "mean_decreases", "pruned", "pruning_path"]

Floats = NDArray[np.float64]


class PruningPath(NamedTuple):
    """The trees from the whole one to the root alone.

    Attributes
    ----------
    ccp_alphas : float64 array of shape (n_steps + 1,)
        From which alpha on each tree is the best; 0 for the whole one.
    impurities : float64 array of shape (n_steps + 1,)
        Impurity of the leaves of each tree, weighted by their shares of the rows.
    """

    ccp_alphas: Floats
    impurities: Floats


def mean_decreases(forest: Forest, scale: ArrayLike = 1.0) -> Floats:
    """Return the decreases of trees whose leaves hold means, shape (n_nodes,).

    With weights W and means v of two children, squared error falls by W1 W2 / (W1 + W2) (v1 - v2)^2
    for each output. Means are those of the leaves below a node: only values and covers of leaves
    are read.

    Parameters
    ----------
    forest : Forest
    scale : float, or array of shape (width,)
        By which the decrease of each output counts. With one target: 1 for squared error, and for
        Gini with the shares of all classes in the leaves; 1/2 for Gini of two classes with the
        difference of their shares. With several targets, whose impurities are averaged, each
        divided by their number.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1, reg_lambda=0.0,
    ...     learning_rate=1.0).fit([[0], [1], [2]], [0.0, 0.0, 3.0]).model_
    >>> mean_decreases(model.forest)  # variance 2 of three rows, and nothing is left of it
    array([6., 0., 0.])
    """
    split, child = _splits(forest)
    weight, total = forest.cover.copy(), forest.value * forest.cover[:, None]
    for level in reversed(_levels(forest, split)):
        for array in (weight, total):
            array[split[level]] = array[child[level]] + array[child[level] + 1]
    mean = np.divide(total, weight[:, None], out=np.zeros_like(total), where=weight[:, None] > 0)
    apart = mean[child] - mean[child + 1]
    both = weight[child] + weight[child + 1]
    shared = weight[child] * weight[child + 1]
    decrease = np.zeros(forest.n_nodes)
    decrease[split] = np.divide(shared, both, out=np.zeros_like(both), where=both > 0)
    decrease[split] *= (np.broadcast_to(scale, (forest.width,)) * apart**2).sum(axis=1)
    return decrease


def pruning_path(forest: Forest, decrease: Floats, impurity: float, tree: int = 0) -> PruningPath:
    """Return at which alphas one of the trees gets smaller, and how impure it is then.

    Parameters
    ----------
    forest : Forest
    decrease : float64 array of shape (n_nodes,)
        Of all splits of the forest; see the head of this file.
    impurity : float
        Of the root, in the unit of the decreases per weight: the variance, say.
    tree : int, default=0

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=1, reg_lambda=0.0, learning_rate=1.0)
    >>> forest = model.fit([[0], [1], [2], [3]], [0.0, 0.0, 4.0, 8.0]).model_.forest
    >>> pruning_path(forest, mean_decreases(forest), impurity=11.0)
    PruningPath(ccp_alphas=array([0., 2., 9.]), impurities=array([ 0.,  2., 11.]))
    """
    of_tree = _span(forest, tree)
    _, alphas, kept = core.prune_order(forest.left[of_tree], _checked(forest, decrease)[of_tree])
    total = forest.cover[of_tree.start]
    return PruningPath(np.concatenate([[0.0], alphas / total]), impurity - kept / total)


def pruned(forest: Forest, decrease: Floats, ccp_alpha: float) -> Forest:
    """Return the forest with each tree as small as ccp_alpha says.

    Parameters
    ----------
    forest : Forest
    decrease : float64 array of shape (n_nodes,)
        Of all splits; see the head of this file.
    ccp_alpha : float
        Branches go while the weakest is worth at most this for each of its splits; with 0 none
        goes, not even one that is worth nothing. The alphas of `pruning_path` lead to its trees.

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
        of_tree = _span(forest, tree)
        nodes, alphas, _ = core.prune_order(forest.left[of_tree], decrease[of_tree])
        above = np.flatnonzero(alphas / forest.cover[of_tree.start] > ccp_alpha)
        new_leaf[of_tree.start + nodes[: above[0] if len(above) else len(nodes)]] = True
    return _without_branches(forest, new_leaf)


def _without_branches(forest: Forest, new_leaf: NDArray[np.bool_]) -> Forest:
    """Return the forest where these nodes are leaves, and what was below them is gone."""
    split, child = _splits(forest)
    reached = np.zeros(forest.n_nodes, np.bool_)
    reached[forest.tree_start[:-1]] = True
    for level in _levels(forest, split):
        goes_on = level[reached[split[level]] & ~new_leaf[split[level]]]
        reached[child[goes_on]] = reached[child[goes_on] + 1] = True
    kept = np.flatnonzero(reached)
    place = np.cumsum(reached) - 1  # of the nodes that are kept, over the whole forest
    start = np.concatenate([[0], np.cumsum(reached)])[forest.tree_start]
    root = np.repeat(start[:-1], np.diff(forest.tree_start))
    left = np.zeros(forest.n_nodes, np.int64)
    left[split] = place[child] - root[split]
    arrays = {name: getattr(forest, name) for name in ALL_DTYPES}
    arrays["left"] = np.where(new_leaf, 0, left)
    arrays["level_set"] = np.where(new_leaf, -1, forest.level_set)
    for name in ("feature", "threshold", "default_left", "gain"):  # as leaves of the core have them
        arrays[name] = np.where(new_leaf, 0, arrays[name])
    for name in set(ALL_DTYPES) - {"tree_start", "output", "level_sets"}:
        arrays[name] = arrays[name][kept]
    by_set = arrays["level_set"] >= 0
    arrays["level_sets"] = forest.level_sets[arrays["level_set"][by_set]]
    arrays["level_set"] = np.where(by_set, np.cumsum(by_set) - 1, -1)
    arrays["tree_start"] = start
    return Forest(**arrays)


def _span(forest: Forest, tree: int) -> slice:
    return slice(int(forest.tree_start[tree]), int(forest.tree_start[tree + 1]))


def _splits(forest: Forest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes with splits, and their left children, counted over the whole forest."""
    split = np.flatnonzero(forest.is_split)
    root = np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))
    return split, root[split] + forest.left[split]


def _levels(forest: Forest, split: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the places in `split` of the splits of each depth."""
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
