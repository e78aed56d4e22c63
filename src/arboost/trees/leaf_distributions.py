"""Leaf distributions: the y of the training rows in each leaf, for quantile predictions.

The training rows of a leaf are a sample of y given x. For a row, each tree gives the training rows
in its leaf equal shares of 1 (or shares in proportion to their weights), and the mean over the
trees estimates the whole distribution of y (quantile regression forests, Meinshausen 2006).

Each leaf holds the ranks of its training rows' y among the distinct values, ascending:

    values   1.5  2.0  7.0  9.0                 distinct y, ascending
    node       0    1        2                  of a tree
    start      0    0        3        5         node i has entries start[i] to start[i + 1]
    rank            0 0 3    1 2                four bytes for each row and tree
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.table import Table
from arboost.errors import ParameterError
from arboost.losses.links import require
from arboost.trees.forest import Floats, Forest, Integers, forest_leaves, frozen_array

SHARE_UNITS = 2**44  # of a leaf's weight; sums of integers do not depend on their order
_WEIGHT_BITS = 62  # bits of the sum of all weights, as integers
DTYPES: Mapping[str, np.dtype[Any]] = {
    "tree_start": np.dtype(np.int64),
    "start": np.dtype(np.int64),
    "rank": np.dtype(np.int32),
    "upto": np.dtype(np.int64),
    "values": np.dtype(np.float64),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class LeafDistributions:
    """The y of the training rows in each leaf; see the head of this file.

    Attributes
    ----------
    tree_start : int64 array of shape (n_trees + 1,)
        First node of each tree, as in the forest.
    start : int64 array of shape (n_nodes + 1,)
    rank : int32 array of shape (n_entries,)
    upto : int64 array of shape (n_entries,), or empty
        Cumulative share of the leaf's weight, each entry included, in units of 2^-44; empty for
        equal weights.
    values : float64 array of shape (n_values,)
    """

    tree_start: Integers
    start: Integers
    rank: NDArray[np.int32]
    upto: Integers
    values: Floats

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            object.__setattr__(self, name, frozen_array(getattr(self, name), dtype))

    def first(self, n_trees: int) -> Self:
        """Distributions of the first trees."""
        n_nodes = int(self.tree_start[n_trees])
        n_entries = int(self.start[n_nodes])
        return replace(
            self,
            tree_start=self.tree_start[: n_trees + 1],
            start=self.start[: n_nodes + 1],
            rank=self.rank[:n_entries],
            upto=self.upto[:n_entries],
        )

    def validate(self, tree_start: Integers, is_split: NDArray[np.bool_]) -> None:
        """Raise ValueError unless the distributions fit the trees; needed for data from a file."""
        require(all(getattr(self, name).ndim == 1 for name in DTYPES), "distributions in tables")
        require(np.array_equal(self.tree_start, tree_start), "distributions of other trees")
        require(len(self.start) == len(is_split) + 1, "distributions of other nodes")
        counts = np.diff(self.start)
        require(self.start[0] == 0 and np.all(counts >= 0), "leaves that begin after their end")
        require(self.start[-1] == len(self.rank), "leaves of other rows")
        require(not counts[is_split].any(), "rows in a split")
        require(len(self.upto) in (0, len(self.rank)), "shares of other rows")
        if len(self.rank):
            inside = self.rank.min() >= 0 and self.rank.max() < len(self.values)
            require(inside, "a row with an unknown value")
        require(np.all(np.isfinite(self.values)), "a value that is not finite")
        require(np.all(self.values[1:] > self.values[:-1]), "values that are not ascending")
        self._validate_order()

    def _validate_order(self) -> None:
        inner = np.ones(max(len(self.rank) - 1, 0), np.bool_)  # adjacent entries of one leaf
        ends = self.start[1:-1]
        inner[ends[(ends > 0) & (ends < len(self.rank))] - 1] = False
        require(np.all(np.diff(self.rank)[inner] >= 0), "rows of a leaf that are not ascending")
        if len(self.upto):
            require(self.upto.min() >= 0, "a negative share")
            require(np.all(np.diff(self.upto)[inner] >= 0), "shares that are not ascending")
            last = self.start[1:][np.diff(self.start) > 0] - 1
            require(np.all(self.upto[last] == SHARE_UNITS), "shares that are not the whole of 1")


def leaf_distributions(
    forest: Forest, table: Table, y: Floats, weight: Floats | None = None, *, n_threads: int
) -> LeafDistributions:
    """The y of all training rows by leaf, whether or not a tree was grown on the row.

    Parameters
    ----------
    forest : Forest
    table : Table
        The training rows.
    y : float64 array of shape (n_rows,)
        Finite.
    weight : float64 array of shape (n_rows,), optional
        Finite and not negative; None for equal weights. Rows of weight 0 are left out.
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> in_leaves = leaf_distributions(model.forest, ingest(X, model.schema), y, n_threads=1)
    >>> in_leaves.values, in_leaves.start, in_leaves.rank
    (array([3., 5., 9.]), array([0, 0, 2, 3]), array([0, 1, 2], dtype=int32))
    """
    _check_rows(table, y, "y")
    units = None
    if weight is not None:
        _check_rows(table, weight, "weight")
        units = _as_units(weight)
    values, inverse = np.unique(y, return_inverse=True)
    ascending = np.argsort(inverse, kind="stable")
    if units is not None:
        ascending = ascending[units[ascending] > 0]
        units = units[ascending]
    rank = inverse[ascending].astype(np.int32)
    n_trees, size = forest.n_trees, len(ascending)
    n_nodes = np.diff(forest.tree_start)
    ranks = np.empty(n_trees * size, np.int32)
    upto = np.empty(0 if units is None else n_trees * size, np.int64)
    counts = []
    # Tree by tree: the leaves of all rows in all trees would take twice the memory of the result.
    for tree in range(n_trees):
        leaf = forest_leaves(forest.single_tree(tree), table, n_threads=n_threads)[ascending, 0]
        by_leaf = _stable_order(leaf)
        count = np.bincount(leaf, minlength=int(n_nodes[tree]))
        entries = slice(tree * size, (tree + 1) * size)
        ranks[entries] = rank[by_leaf]
        if units is not None:
            upto[entries] = _shares(units[by_leaf], count)
        counts.append(count)
    start = np.concatenate([[0], *counts]).cumsum()
    return LeafDistributions(
        tree_start=forest.tree_start, start=start, rank=ranks, upto=upto, values=values
    )


def forest_quantiles(
    forest: Forest,
    table: Table,
    distributions: LeafDistributions,
    quantiles: float | Sequence[float],
    *,
    n_threads: int,
) -> Floats:
    """Quantiles of y for the rows of a table.

    The quantile q is the smallest y at which the shares of the training rows, averaged over the
    trees, reach q: always the y of a training row. Trees whose leaf holds no training row are left
    out; a row for which all trees are left out gets NaN.

    Parameters
    ----------
    forest : Forest
    table : Table
    distributions : LeafDistributions
        Distributions of the leaves of the forest.
    quantiles : float or sequence of float
        Between 0 and 1.
    n_threads : int

    Returns
    -------
    float64 array of shape (n_rows, n_quantiles), or (n_rows,) for one float

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> table = ingest(X, model.schema)
    >>> in_leaves = leaf_distributions(model.forest, table, y, n_threads=1)
    >>> forest_quantiles(model.forest, table, in_leaves, 0.5, n_threads=1)
    array([3., 3., 9.])
    """
    checked = _checked_quantiles(quantiles)
    result = np.empty((table.n_rows, len(checked)))
    core.traverse_quantiles(
        columns=table.columns,
        forest=forest,
        distributions=distributions,
        quantiles=checked,
        out=result,
        n_threads=n_threads,
    )
    return result if np.ndim(quantiles) else result[:, 0]


def _stable_order(codes: Integers) -> NDArray[np.intp]:
    """Indices that sort the codes, stably.

    NumPy has a radix sort for 16 bits, several times faster than one by comparisons.
    """
    low = codes.astype(np.uint16)
    order = np.argsort(low, kind="stable")
    high = codes >> 16
    while high.any():
        order = order[np.argsort(high[order].astype(np.uint16), kind="stable")]
        high = high >> 16
    return order


def _as_units(weight: Floats) -> Integers:
    """Weights times a power of 2, as integers whose sum still fits an int64.

    Integers and short binary fractions stay exact.
    """
    if not (np.isfinite(weight).all() and (weight >= 0).all() and (weight > 0).any()):
        raise ValueError(
            "weight has values that are negative or not finite, or all are 0. Pass weights of at "
            "least 0, one of them above 0."
        )
    _, exponent = np.frexp(weight.max())
    bits = _WEIGHT_BITS - int(exponent) - len(weight).bit_length()
    return np.rint(np.ldexp(weight, bits)).astype(np.int64)


def _shares(units: Integers, count: Integers) -> Integers:
    """Cumulative shares of each leaf's weight, for rows sorted by leaf."""
    total = np.concatenate([[0], np.cumsum(units)])
    end = np.cumsum(count)
    before, after = (np.repeat(total[ends], count) for ends in (end - count, end))
    shares: Floats = np.rint((total[1:] - before) / (after - before) * SHARE_UNITS)
    return shares.astype(np.int64)


def _checked_quantiles(quantiles: float | Sequence[float]) -> Floats:
    try:
        checked = np.atleast_1d(np.asarray(quantiles, np.float64))
    except (TypeError, ValueError):
        checked = np.array([np.nan])
    if checked.ndim != 1 or not ((checked >= 0) & (checked <= 1)).all():
        raise ParameterError(
            f"quantiles={quantiles!r} is not allowed: quantiles are numbers from 0 to 1. Pass one "
            "of them, or a list.",
            parameter="quantiles",
        )
    return checked


def _check_rows(table: Table, values: Floats, name: str) -> None:
    if values.shape != (table.n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}, but the table has {table.n_rows} rows. Pass one "
            "number for each row."
        )
