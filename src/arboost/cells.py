"""A forest in cells: what its leaves are once only the order against thresholds counts.

With the thresholds t0 < t1 < ... that a model compares a feature with, cell c holds the values in
(t_(c-1), t_c], and all values of a cell go the same way in every tree.

    thresholds        t0       t1       t2            a leaf is a box: for each feature a range of
    cells         0    |   1    |   2    |   3        cells, and whether missing values reach it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.model import Forest, Model

__all__ = ["Boxes", "Cells", "Leaves"]


@dataclass(frozen=True)
class Boxes:
    """Boxes of cells: inclusive ranges ``low`` to ``high`` and reach of missing values, (n, f)."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    missing: NDArray[np.bool_]

    def __getitem__(self, key: Any) -> Boxes:
        return Boxes(self.low[key], self.high[key], self.missing[key])

    def meet(self, other: Boxes) -> Boxes:
        """Return the intersections, pair by pair."""
        return Boxes(
            np.maximum(self.low, other.low),
            np.minimum(self.high, other.high),
            self.missing & other.missing,
        )

    def tiled(self, count: int) -> Boxes:
        """Return so many copies of one box."""
        return Boxes(*(np.tile(array, (count, 1)) for array in self._arrays()))

    def with_columns(self, columns: NDArray[np.intp], boxes: Boxes) -> Boxes:
        """Return the boxes with some columns replaced by those of as many others."""
        arrays = [array.copy() for array in self._arrays()]
        for array, source in zip(arrays, boxes._arrays(), strict=True):
            array[:, columns] = source
        return Boxes(*arrays)

    @classmethod
    def stacked(cls, several: list[Boxes]) -> Boxes:
        """Return the boxes of all."""
        return cls(*map(np.concatenate, zip(*(boxes._arrays() for boxes in several), strict=True)))

    def occupied(self) -> NDArray[np.bool_]:
        """Return which boxes hold a point."""
        reached = (self.low <= self.high) | self.missing
        filled: NDArray[np.bool_] = np.logical_and.reduce(reached, axis=-1)
        return filled

    def _arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self.low, self.high, self.missing


@dataclass(frozen=True)
class Leaves:
    """The leaves of one tree: features that it splits on, boxes over these, nodes in the forest."""

    features: NDArray[np.int64]
    boxes: Boxes
    nodes: NDArray[np.int64]


class Cells:
    """The model in cells: thresholds by feature, the place of each split's own, leaves by tree."""

    def __init__(self, model: Model) -> None:
        self.forest: Forest = model.forest
        self._leaves: dict[int, Leaves] = {}
        split = self.forest.is_split
        n_features = model.schema.n_features
        self.thresholds: list[NDArray[np.float64]] = []
        self.rank = np.zeros(self.forest.n_nodes, np.int64)
        for feature in range(n_features):
            nodes = np.flatnonzero(split & (self.forest.feature == feature))
            values = self.forest.threshold[nodes]
            # Every present value is left of an infinite threshold, so that one divides no cells.
            known = np.unique(values[values < np.inf])
            self.thresholds.append(known)
            self.rank[nodes] = np.searchsorted(known, values)
        self.last = np.array([len(known) for known in self.thresholds])

    def leaves(self, tree: int) -> Leaves:
        """Return the leaves of a tree."""
        if tree not in self._leaves:
            self._leaves[tree] = self._find_leaves(tree)
        return self._leaves[tree]

    def _find_leaves(self, tree: int) -> Leaves:
        forest = self.forest
        begin, end = int(forest.tree_start[tree]), int(forest.tree_start[tree + 1])
        left = forest.left[begin:end]
        splits = np.flatnonzero(left)
        features, column = np.unique(forest.feature[begin + splits], return_inverse=True)
        low = np.zeros((end - begin, len(features)), np.int64)
        high = np.tile(self.last[features], (end - begin, 1))
        missing = np.ones(low.shape, np.bool_)
        for node, f in zip(splits.tolist(), column.tolist(), strict=True):
            child, rank = int(left[node]), int(self.rank[begin + node])
            goes_left = bool(forest.default_left[begin + node])
            for array in (low, high, missing):
                array[child : child + 2] = array[node]
            high[child, f] = min(high[node, f], rank)
            low[child + 1, f] = max(low[node, f], rank + 1)
            missing[child, f] &= goes_left
            missing[child + 1, f] &= not goes_left
        boxes = Boxes(low, high, missing)
        kept = np.flatnonzero((left == 0) & boxes.occupied())
        return Leaves(features.astype(np.int64), boxes[kept], begin + kept)

    def value_in(self, feature: int, cell: int) -> float:
        """Return a value in a cell."""
        known = self.thresholds[feature]
        if cell < len(known):
            return float(known[cell])
        if not len(known):
            return 0.0
        above = float(known[-1]) + 1.0
        return above if above > known[-1] else float(np.nextafter(known[-1], np.inf))
