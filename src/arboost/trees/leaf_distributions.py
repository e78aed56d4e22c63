"""Leaf distributions: the y of the training rows in each leaf, for quantile predictions.

Each leaf holds the ranks of its training rows' y among the distinct values, ascending:

    values   1.5  2.0  7.0  9.0                 distinct y, ascending
    node       0    1        2                  of a tree
    start      0    0        3        5         node i has entries start[i] to start[i + 1]
    rank            0 0 3    1 2                four bytes for each row and tree
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.losses.links import require

Integers = NDArray[np.int64]

SHARE_UNITS = 2**44  # of a leaf's weight; sums of integers do not depend on their order
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
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            array = np.asarray(getattr(self, name), dtype=dtype, order="C").view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_start) - 1

    def first(self, n_trees: int) -> Self:
        """Return the distributions of the first trees."""
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
