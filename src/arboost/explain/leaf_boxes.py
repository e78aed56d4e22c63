"""The leaves of a forest as boxes of cells, the intervals between thresholds.

With the thresholds t0 < t1 < ... of all splits on a feature, cell c holds the values in
(t_(c-1), t_c], and all values of a cell go the same way in every tree.

    thresholds        t0       t1       t2            a leaf is a box: for each feature a range of
    cells         0    |   1    |   2    |   3        cells, and whether missing values reach it

The levels of a category have no order: a box holds a set of levels, as the bits of a forest's level
set, and a category has a single cell. For numeric features every bit of the set is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.model.forest import Forest
from arboost.model.model import Model

__all__ = ["Boxes", "Cells", "Leaves"]

_ALL = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Boxes:
    """Boxes of cells: inclusive ranges ``low`` to ``high``, and ``missing``, of shape (n, f).

    ``missing`` is True where missing values reach the box; ``levels`` are the bits of the levels
    that reach it, of shape (n, f, words).
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    missing: NDArray[np.bool_]
    levels: NDArray[np.uint64]

    def __getitem__(self, key: Any) -> Boxes:
        return Boxes(self.low[key], self.high[key], self.missing[key], self.levels[key])

    def meet(self, other: Boxes) -> Boxes:
        """Return the intersections, pair by pair."""
        return Boxes(
            np.maximum(self.low, other.low),
            np.minimum(self.high, other.high),
            self.missing & other.missing,
            self.levels & other.levels,
        )

    def tiled(self, count: int) -> Boxes:
        """Return `count` copies of one box."""
        return Boxes(*(np.repeat(array[np.newaxis], count, axis=0) for array in self._arrays()))

    def with_columns(self, columns: NDArray[np.intp], boxes: Boxes) -> Boxes:
        """Return the boxes with the given columns replaced by those of other boxes."""
        arrays = [array.copy() for array in self._arrays()]
        for array, source in zip(arrays, boxes._arrays(), strict=True):
            array[:, columns] = source
        return Boxes(*arrays)

    @classmethod
    def concatenated(cls, parts: list[Boxes]) -> Boxes:
        """Return the boxes of all parts."""
        return cls(*map(np.concatenate, zip(*(boxes._arrays() for boxes in parts), strict=True)))

    def occupied(self) -> NDArray[np.bool_]:
        """Return True for each box that holds a point."""
        filled: NDArray[np.bool_] = np.logical_and.reduce(self.present() | self.missing, axis=-1)
        return filled

    def present(self) -> NDArray[np.bool_]:
        """Return True where a box holds a value of the feature that is not missing."""
        return (self.low <= self.high) & np.not_equal(self.levels, 0).any(axis=-1)

    def _arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self.low, self.high, self.missing, self.levels


@dataclass(frozen=True)
class Leaves:
    """The leaves of one tree: the features of its splits, boxes over these, nodes in the forest."""

    features: NDArray[np.int64]
    boxes: Boxes
    nodes: NDArray[np.int64]


class Cells:
    """A model in cells: thresholds of each feature, threshold ranks of splits, leaves by tree."""

    def __init__(self, model: Model) -> None:
        self.forest: Forest = model.forest
        self._leaves: dict[int, Leaves] = {}
        self.words = self.forest.level_sets.shape[1] if self.forest.has_sets else 1
        split = self.forest.is_split
        by_set = self.forest.level_set >= 0
        n_features = model.schema.n_features
        self._n_levels = model.schema.n_levels
        self.is_category = np.array(model.schema.categorical, np.bool_)
        self.thresholds: list[NDArray[np.float64]] = []
        self.rank = np.zeros(self.forest.n_nodes, np.int64)
        for feature in range(n_features):
            nodes = np.flatnonzero(split & ~by_set & (self.forest.feature == feature))
            values = self.forest.threshold[nodes]
            # All present values are left of an infinite threshold: it divides no cells.
            finite = np.unique(values[values < np.inf])
            self.thresholds.append(finite)
            self.rank[nodes] = np.searchsorted(finite, values)
        self.last = np.array([len(thresholds) for thresholds in self.thresholds])

    def whole(self, features: NDArray[np.int64]) -> Boxes:
        """Return the box of all values and levels of the given features."""
        levels = np.full((len(features), self.words), _ALL)
        for place in np.flatnonzero(self.is_category[features]).tolist():
            levels[place] = self._all_levels(int(features[place]))
        return Boxes(
            np.zeros(len(features), np.int64),
            self.last[features],
            np.ones(len(features), np.bool_),
            levels,
        )

    def _all_levels(self, feature: int) -> NDArray[np.uint64]:
        """Return the bits of all levels of a category; an unknown level counts as missing."""
        is_level = np.arange(64 * self.words) < self._n_levels[feature]
        return np.packbits(is_level, bitorder="little").view("<u8").astype(np.uint64)

    def leaves(self, tree: int) -> Leaves:
        """Return the leaves of a tree that a row can reach."""
        if tree not in self._leaves:
            self._leaves[tree] = self._find_leaves(tree)
        return self._leaves[tree]

    def _find_leaves(self, tree: int) -> Leaves:
        forest = self.forest
        begin, end = int(forest.tree_start[tree]), int(forest.tree_start[tree + 1])
        left = forest.left[begin:end]
        splits = np.flatnonzero(left)
        used, column = np.unique(forest.feature[begin + splits], return_inverse=True)
        features = used.astype(np.int64)
        boxes = self.whole(features).tiled(end - begin)
        low, high, missing, levels = boxes.low, boxes.high, boxes.missing, boxes.levels
        for node, f in zip(splits.tolist(), column.tolist(), strict=True):
            child, rank = int(left[node]), int(self.rank[begin + node])
            goes_left = bool(forest.default_left[begin + node])
            for array in (low, high, missing, levels):
                array[child : child + 2] = array[node]
            number = int(forest.level_set[begin + node])
            if number >= 0:
                levels[child, f] &= forest.level_sets[number]
                levels[child + 1, f] &= ~forest.level_sets[number]
            else:
                high[child, f] = min(high[node, f], rank)
                low[child + 1, f] = max(low[node, f], rank + 1)
            missing[child, f] &= goes_left
            missing[child + 1, f] &= not goes_left
        kept = np.flatnonzero((left == 0) & boxes.occupied())
        return Leaves(features, boxes[kept], begin + kept)

    def point_in(self, features: NDArray[np.int64], box: Boxes) -> list[float]:
        """Return the lowest values in a box: numbers, level codes, NaN for missing values only."""
        values = []
        for feature, low, levels, is_present in zip(
            features.tolist(), box.low.tolist(), box.levels, box.present(), strict=True
        ):
            if not is_present:
                values.append(np.nan)
            elif self.is_category[feature]:
                bits = np.unpackbits(levels.astype("<u8").view(np.uint8), bitorder="little")
                values.append(float(np.argmax(bits)))
            else:
                values.append(self.value_in(feature, low))
        return values

    def value_in(self, feature: int, cell: int) -> float:
        """Return a value in a cell of a numeric feature."""
        thresholds = self.thresholds[feature]
        if cell < len(thresholds):
            return float(thresholds[cell])
        if not len(thresholds):
            return 0.0
        largest = float(thresholds[-1])
        above = largest + 1.0
        return above if above > largest else float(np.nextafter(largest, np.inf))
