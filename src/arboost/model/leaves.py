"""Model + table -> leaf indices and decision paths of the rows.

Nodes are numbered within each tree, the root as 0, as in `arboost.pictures.tree_pictures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.cuda.devices import device_number
from arboost.data.table import Table
from arboost.model.forest import Forest
from arboost.model.model import Model
from arboost.model.on_device import cuda_forest

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["decision_path", "depths", "forest_leaves", "leaf_ids", "parents"]

Integers = NDArray[np.int64]


def leaf_ids(model: Model, table: Table, *, n_threads: int) -> NDArray[np.int32]:
    """Return the leaf of each row in each tree, int32 of shape (n_rows, n_trees).

    Parameters
    ----------
    model : Model
    table : Table
        With the columns of the model's schema.
    n_threads : int

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X = [[0], [1], [2]]
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit(X, [0, 0, 1]).model_
    >>> leaf_ids(model, ingest(X, model.schema), n_threads=1).tolist()
    [[1, 1], [1, 1], [2, 2]]
    """
    if model.device != "cpu":
        leaves = np.empty((table.n_rows, model.n_trees), np.int32)
        cuda_forest(model, device_number(model.device)).leaves(table.columns, leaves, n_threads)
        return leaves
    return _leaves(model.packed, model.n_trees, table, n_threads)


def forest_leaves(forest: Forest, table: Table, *, n_threads: int) -> NDArray[np.int32]:
    """Return the leaf of each row in each tree, as `leaf_ids` does, for trees without a model."""
    n_outputs = max(forest.width, int(forest.output.max(initial=0)) + 1)
    packed = core.PackedForest(forest, table.columns.n_columns, n_outputs)
    return _leaves(packed, forest.n_trees, table, n_threads)


def _leaves(
    packed: core.PackedForest, n_trees: int, table: Table, n_threads: int
) -> NDArray[np.int32]:
    leaves = np.empty((table.n_rows, n_trees), np.int32)
    packed.leaves(table.columns, leaves, n_threads)
    return leaves


def decision_path(model: Model, table: Table, *, n_threads: int) -> tuple[csr_matrix, Integers]:
    """Return the nodes on each row's paths from the roots to its leaves.

    Parameters
    ----------
    model : Model
    table : Table
        With the columns of the model's schema.
    n_threads : int

    Returns
    -------
    indicator : scipy.sparse.csr_matrix of int64, shape (n_rows, n_nodes)
        1 where the row passes the node. Nodes of all trees, tree by tree.
    tree_start : int64 array of shape (n_trees + 1,)
        Columns ``tree_start[t]`` to ``tree_start[t + 1]`` are the nodes of tree t.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X = [[0], [1], [2]]
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit(X, [0, 0, 1]).model_
    >>> indicator, tree_start = decision_path(model, ingest(X, model.schema), n_threads=1)
    >>> indicator.toarray()
    array([[1, 1, 0, 1, 1, 0],
           [1, 1, 0, 1, 1, 0],
           [1, 0, 1, 1, 0, 1]])
    >>> tree_start
    array([0, 3, 6])
    """
    from scipy.sparse import csr_matrix

    forest = model.forest
    first, nodes = _paths(forest)
    leaf = (leaf_ids(model, table, n_threads=n_threads) + forest.tree_start[:-1]).ravel()
    size = first[leaf + 1] - first[leaf]
    end = np.concatenate([[0], np.cumsum(size)])
    # Index in `nodes` of entry i, which is entry i - end[k] of path k.
    place = np.arange(end[-1]) + np.repeat(first[leaf] - end[:-1], size)
    by_row = end[:: model.n_trees] if model.n_trees else np.zeros(table.n_rows + 1, np.int64)
    shape = (table.n_rows, forest.n_nodes)
    ones = np.ones(len(place), np.int64)
    return csr_matrix((ones, nodes[place], by_row), shape=shape), forest.tree_start.copy()


def parents(forest: Forest) -> Integers:
    """Return the parent of each node, both counted over the whole forest; -1 for roots.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit([[0], [1]], [0, 1])
    >>> parents(model.model_.forest)
    array([-1,  0,  0, -1,  3,  3])
    """
    split = np.flatnonzero(forest.is_split)
    root = np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))
    child = root[split] + forest.left[split]
    above = np.full(forest.n_nodes, -1)
    above[child] = above[child + 1] = split
    return above


def depths(forest: Forest) -> Integers:
    """Return the number of splits above each node of the forest.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit([[0], [1]], [0, 1])
    >>> depths(model.model_.forest)
    array([0, 1, 1])
    """
    root = np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))
    depth = np.zeros(forest.n_nodes, np.int64)
    node, level = forest.tree_start[:-1], 0
    while len(node):
        depth[node] = level
        split = node[forest.is_split[node]]
        left = root[split] + forest.left[split]
        node, level = np.concatenate([left, left + 1]), level + 1
    return depth


def _paths(forest: Forest) -> tuple[Integers, Integers]:
    """Return the paths from root to leaf: the start of each node's path, and all paths' nodes.

    The path of a split is empty.
    """
    above, depth = parents(forest), depths(forest)
    size = np.where(forest.is_split, 0, depth + 1)
    first = np.concatenate([[0], np.cumsum(size)])
    nodes = np.empty(first[-1], np.int64)
    node = np.flatnonzero(~forest.is_split)
    place = first[node + 1] - 1
    while len(node):
        nodes[place] = node
        inside = above[node] >= 0
        node, place = above[node[inside]], place[inside] - 1
    return first, nodes
