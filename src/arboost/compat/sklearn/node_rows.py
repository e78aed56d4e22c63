"""Statistics of the training rows in the nodes of one tree: their number and impurity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.forests.single_tree import GrownTree
from arboost.algorithms.forests.sklearn_tree import NodeRows
from arboost.backend import core, threads
from arboost.data.table import Table
from arboost.model.forest import Forest
from arboost.model.leaves import depths, forest_leaves, parents

__all__ = ["node_rows"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.intp]


def node_rows(grown: GrownTree, criterion: str) -> NodeRows | None:
    """Return the statistics of each node; None for a Dataset, which has no values to walk by.

    Impurities of classification are 0: they follow from the shares of the classes.
    """
    rows, forest = grown.rows, grown.forest
    if not isinstance(rows.source, Table):
        return None
    leaf = forest_leaves(forest, rows.source, n_threads=threads(None))[:, 0].astype(np.intp)
    leaf = leaf if rows.index is None else leaf[rows.index]
    counts = _summed(forest, np.bincount(leaf, minlength=forest.n_nodes)[:, np.newaxis])
    n_rows = counts[:, 0].astype(np.int64)
    if grown.target.kind == "classifier":
        return NodeRows(n_rows, np.zeros(forest.n_nodes))
    weight = np.ones(len(leaf)) if grown.weight is None else grown.weight
    targets = np.asarray(rows.y, np.float64).reshape(len(leaf), -1).T
    measure = _deviations if criterion == "absolute_error" else _errors
    each = [measure(forest, leaf, y, weight, criterion) for y in targets]
    return NodeRows(n_rows, np.mean(each, axis=0))


def _errors(forest: Forest, leaf: Nodes, y: Floats, weight: Floats, criterion: str) -> Floats:
    """Return the variance, or half the Poisson deviance, of the rows in each node."""
    middle = np.average(y, weights=weight)
    if criterion == "poisson":
        terms = _y_log_y(y)
    else:  # squares of small numbers lose no digits
        y = y - middle
        terms = y**2
    sums = [np.bincount(leaf, weight * one, minlength=forest.n_nodes) for one in (y, terms)]
    total = np.bincount(leaf, weight, minlength=forest.n_nodes)
    total, sum_y, sum_terms = _summed(forest, np.stack([total, *sums], axis=1)).T
    mean = sum_y / total
    known = _y_log_y(mean) if criterion == "poisson" else mean**2
    found: Floats = np.maximum(sum_terms / total - known, 0.0)
    return found


def _y_log_y(y: Floats) -> Floats:
    return y * core.log(np.where(y > 0, y, 1.0))


def _deviations(forest: Forest, leaf: Nodes, y: Floats, weight: Floats, _: str) -> Floats:
    """Return the mean absolute deviation from the median of the rows in each node."""
    parent, depth = parents(forest), depths(forest)
    found = np.zeros(forest.n_nodes)
    node = leaf
    for level in range(int(depth.max()), -1, -1):
        order = np.lexsort((y, node))
        order = order[depth[node[order]] == level]
        ends = np.flatnonzero(np.diff(node[order])) + 1
        for part in np.split(order, ends):
            if len(part):
                reached = np.cumsum(weight[part])
                median = y[part[np.searchsorted(reached, reached[-1] / 2)]]
                found[node[part[0]]] = np.average(np.abs(y[part] - median), weights=weight[part])
        node = np.where(depth[node] == level, parent[node], node)
    return found


def _summed(forest: Forest, sums: NDArray[np.generic]) -> Floats:
    """Return sums over the rows of all nodes from those of the leaves."""
    total = sums.astype(np.float64)
    parent, depth = parents(forest), depths(forest)
    for level in range(int(depth.max()), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.add.at(total, parent[nodes], total[nodes])
    return total
