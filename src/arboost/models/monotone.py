"""Monotonicity of a fitted model in a feature: a proof, or two rows as a counter-example.

Only the order of values and thresholds matters, so values are replaced by cells, and leaves by
boxes of cells. With the thresholds t0 < t1 < ... of all splits on a feature, cell c holds the
values in (t_(c-1), t_c], and all values of a cell go the same way in every tree.

    thresholds        t0       t1       t2            a leaf is a box: for each feature a range of
    cells         0    |   1    |   2    |   3        cells, and whether missing values reach it

The levels of a category have no order: a box holds a set of levels, as the bits of a forest's level
set, and a category has a single cell. For numeric features every bit of the set is 1.

1. Each tree alone. Two leaves whose boxes meet in all other features, one below the other in this
   feature, must hold values in order. If every tree is monotone so is the model, to the last bit:
   rounding keeps the order of sums and means. The median of monotone trees is monotone, too.
2. Otherwise each step from cell k to cell k + 1. Only trees with a split at t_k change there; each
   divides the space of the other features into boxes of constant change. Branch and bound searches
   for the point with the lowest sum of changes, in integers, so that rounding has no effect.
   For a median, only rows at which single trees fall are tried: either they show a fall of the
   median, or the question stays open.

A fall is a change of the raw score against the direction to prove. Missing values of the other
features count as one more value; the feature itself is compared over its present values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.feature_names import feature_label, monotone_directions
from arboost.data.schema import Schema
from arboost.data.table import ingest
from arboost.models.model import Model
from arboost.models.prediction import table_scores
from arboost.params.boosting import PARAMS
from arboost.trees.forest import Floats, Forest, Integers, codes_in_sets

_ALL = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Boxes:
    """Boxes of cells: inclusive ranges ``low`` to ``high``, and ``missing``, of shape (n, f).

    ``missing`` is True where missing values reach the box; ``levels`` are the bits of the levels
    that reach it, of shape (n, f, words).
    """

    low: Integers
    high: Integers
    missing: NDArray[np.bool_]
    levels: NDArray[np.uint64]

    def __getitem__(self, key: Any) -> Boxes:
        return Boxes(self.low[key], self.high[key], self.missing[key], self.levels[key])

    def meet(self, other: Boxes) -> Boxes:
        """Intersections, pair by pair."""
        return Boxes(
            np.maximum(self.low, other.low),
            np.minimum(self.high, other.high),
            self.missing & other.missing,
            self.levels & other.levels,
        )

    def tiled(self, count: int) -> Boxes:
        """Copies of one box."""
        return Boxes(*(np.repeat(array[np.newaxis], count, axis=0) for array in self.arrays()))

    def with_columns(self, columns: NDArray[np.intp], boxes: Boxes) -> Boxes:
        """Boxes with the given columns replaced by those of other boxes."""
        arrays = [array.copy() for array in self.arrays()]
        for array, source in zip(arrays, boxes.arrays(), strict=True):
            array[:, columns] = source
        return Boxes(*arrays)

    def occupied(self) -> NDArray[np.bool_]:
        """Whether each box holds a point."""
        filled: NDArray[np.bool_] = np.logical_and.reduce(self.present() | self.missing, axis=-1)
        return filled

    def present(self) -> NDArray[np.bool_]:
        """Whether each box holds a value of each feature that is not missing."""
        return (self.low <= self.high) & np.not_equal(self.levels, 0).any(axis=-1)

    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Fields in their order."""
        return self.low, self.high, self.missing, self.levels


@dataclass(frozen=True)
class Leaves:
    """The leaves of one tree: the features of its splits, boxes over these, nodes in the forest."""

    features: Integers
    boxes: Boxes
    nodes: Integers


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
        self.thresholds: list[Floats] = []
        self.rank = np.zeros(self.forest.n_nodes, np.int64)
        for feature in range(n_features):
            nodes = np.flatnonzero(split & ~by_set & (self.forest.feature == feature))
            values = self.forest.threshold[nodes]
            # All present values are left of an infinite threshold: it divides no cells.
            finite = np.unique(values[values < np.inf])
            self.thresholds.append(finite)
            self.rank[nodes] = np.searchsorted(finite, values)
        self.last = np.array([len(thresholds) for thresholds in self.thresholds])

    def whole(self, features: Integers) -> Boxes:
        """Box of all values and levels of the given features."""
        levels = np.full((len(features), self.words), _ALL)
        for column in np.flatnonzero(self.is_category[features]).tolist():
            # The bits of all levels; an unknown level counts as missing.
            is_level = np.arange(64 * self.words) < self._n_levels[features[column]]
            levels[column] = np.packbits(is_level, bitorder="little").view("<u8")
        return Boxes(
            np.zeros(len(features), np.int64),
            self.last[features],
            np.ones(len(features), np.bool_),
            levels,
        )

    def leaves(self, tree: int) -> Leaves:
        """Leaves of a tree that a row can reach."""
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
        reachable = np.flatnonzero((left == 0) & boxes.occupied())
        return Leaves(features, boxes[reachable], begin + reachable)

    def point_in(self, features: Integers, box: Boxes) -> list[float]:
        """Lowest values in a box: numbers, level codes, NaN for missing values only."""
        values = []
        for feature, low, levels, is_present in zip(
            features.tolist(), box.low.tolist(), box.levels, box.present(), strict=True
        ):
            if not is_present:
                values.append(np.nan)
            elif self.is_category[feature]:
                values.append(float(np.argmax(codes_in_sets(levels))))
            else:
                values.append(self.value_in(feature, low))
        return values

    def value_in(self, feature: int, cell: int) -> float:
        """Value in a cell of a numeric feature."""
        thresholds = self.thresholds[feature]
        if cell < len(thresholds):
            return float(thresholds[cell])
        if not len(thresholds):
            return 0.0
        largest = float(thresholds[-1])
        above = largest + 1.0
        return above if above > largest else float(np.nextafter(largest, np.inf))


_MOST_TRIES = 1000  # pairs of rows, for a median


@dataclass(frozen=True, eq=False)
class CounterExample:
    """Two rows that differ in one feature only, with raw scores in the wrong order.

    Attributes
    ----------
    rows : float64 array of shape (2, n_features)
        The row with the smaller value of the feature comes first; NaN is a missing value, and
        category levels are codes, of groups where there are many levels.
    scores : float64 array of shape (2,)
        Raw scores of the two rows, as of ``predict_raw``.
    """

    rows: Floats
    scores: Floats


@dataclass(frozen=True, eq=False)
class MonotoneProof:
    """Proof or disproof that one output of a model is monotone in one feature.

    Attributes
    ----------
    feature : str or int
        Name of the feature, or its index where the table had no names.
    direction : {-1, 1}
        1 for a raw score that never falls as the feature grows, -1 for one that never rises.
    output : int
        Column of the raw scores.
    holds : bool
        True is a proof: no row breaks the order. (Two effects of rounding are not counted: where
        single trees are not monotone and only their sum is, changes below the rounding error of
        the sum; in a median, the side of one half to which a sum of weights is rounded.)
    counter_example : CounterExample or None
        Two rows that show the opposite where ``holds`` is False.
    """

    feature: str | int
    direction: int
    output: int
    holds: bool
    counter_example: CounterExample | None = None


def verify_monotone(
    model: Model, features: object = None, *, n_threads: int = 1
) -> tuple[MonotoneProof, ...]:
    """Proof that the raw scores are monotone, or a counter-example.

    Parameters
    ----------
    model : Model
    features : dict, sequence or None
        Directions to prove, in the form of ``monotone_constraints``; None takes those of the fit.
    n_threads : int
        Number of threads; the result does not depend on it.

    Returns
    -------
    tuple of MonotoneProof
        One for each constrained feature and output.

    Raises
    ------
    ValueError
        No direction was given, or the model is undecided: it is a median, some of its trees are
        not monotone, and no rows were found at which the median falls.
    """
    directions = _directions(model, features)
    cells = Cells(model)
    return tuple(
        _Search(model, cells, feature, direction, output, n_threads).proof()
        for feature, direction in enumerate(directions)
        if direction
        for output in range(model.n_outputs)
    )


def _directions(model: Model, features: object) -> list[int]:
    name = "features"
    constraints = replace(PARAMS["monotone_constraints"], name=name).check(features)
    if constraints is None:
        name = "monotone_constraints"
        constraints = model.params.get("monotonic_cst" if model.combine == "mean" else name)
    directions = monotone_directions(constraints, model.schema, name)
    if not directions:
        raise ValueError(
            "verify_monotone has nothing to prove: the model was fitted without monotone "
            "constraints, and features names none. Pass for example "
            f"features={{{feature_label(0, model.schema)!r}: 1}}."
        )
    return directions


class _Search:
    """Search for a proof or a counter-example of one feature and output."""

    def __init__(
        self, model: Model, cells: Cells, feature: int, direction: int, output: int, n_threads: int
    ) -> None:
        self._model = model
        self._cells = cells
        self._feature = feature
        self._direction = direction
        self._output = output
        self._n_threads = n_threads
        forest = model.forest
        scalar = forest.width == 1
        self._values = direction * forest.value[:, 0 if scalar else output]
        uses = np.zeros(forest.n_trees, np.bool_)
        nodes = np.flatnonzero(forest.is_split & (forest.feature == feature))
        self._tree_of = np.searchsorted(forest.tree_start, nodes, side="right") - 1
        self._rank_of = cells.rank[nodes]
        uses[self._tree_of] = True
        if model.combine == "median":
            uses &= model.tree_weights > 0
        self._trees = np.flatnonzero(uses & (forest.output == output) if scalar else uses)

    def proof(self) -> MonotoneProof:
        """Proof, or the counter-example."""
        suspects = [tree for tree in self._trees.tolist() if next(self._falls(tree), None)]
        label = feature_label(self._feature, self._model.schema)
        example = None
        if suspects and self._model.combine == "median":
            example = self._try_falls(suspects)
            if example is None:
                raise ValueError(
                    f"verify_monotone cannot decide about the feature {label!r}: the model is the "
                    f"median of {self._model.n_trees} trees, and {len(suspects)} of them are not "
                    f"monotone (number {suspects[0]} is the first), but no rows were found that "
                    "show it of the median. Fit with monotone_constraints to have a proof."
                )
        elif suspects:
            example = self._find_fall(suspects)
        return MonotoneProof(label, self._direction, self._output, example is None, example)

    def _split_leaves(self, tree: int) -> tuple[Leaves, Integers, Integers]:
        """Leaves that present values reach, over the other features, and their cells."""
        leaves = self._cells.leaves(tree)
        column = int(np.searchsorted(leaves.features, self._feature))
        low, high = leaves.boxes.low[:, column], leaves.boxes.high[:, column]
        present = np.flatnonzero(low <= high)
        other_columns = np.flatnonzero(leaves.features != self._feature)
        boxes = leaves.boxes[np.ix_(present, other_columns)]
        without = Leaves(leaves.features[other_columns], boxes, leaves.nodes[present])
        return without, low[present], high[present]

    def _falls(self, tree: int) -> Iterator[_Fall]:
        """Yield the falls of the tree alone."""
        leaves, low, high = self._split_leaves(tree)
        value = self._values[leaves.nodes]
        for before in range(len(value)):
            after = np.flatnonzero((high[before] < low) & (value[before] > value))
            if len(after):
                boxes = leaves.boxes[before].meet(leaves.boxes[after])
                for i in np.flatnonzero(boxes.occupied()).tolist():
                    ends = int(high[before]), int(low[after[i]])
                    yield _Fall(leaves.features, boxes[i], ends)

    def _try_falls(self, suspects: list[int]) -> CounterExample | None:
        """Two rows at which the median falls, among the falls of single trees.

        Other features are as close to the middle of their cells as a fall allows: there most trees
        have moderate values, and a single tree can decide the median.
        """
        cells = self._cells
        features = np.arange(len(cells.last))
        middle = cells.last // 2
        row = np.array(cells.point_in(features, replace(cells.whole(features), low=middle)))
        n_tries = 1 + _MOST_TRIES // len(suspects)
        pairs = []
        for fall in (fall for tree in suspects for fall in islice(self._falls(tree), n_tries)):
            box = fall.box
            nearest = np.clip(middle[fall.features], box.low, box.high)
            box = replace(box, low=np.where(box.low <= box.high, nearest, box.low))
            row_in_box = row.copy()
            row_in_box[fall.features] = cells.point_in(fall.features, box)
            pairs.append(self._on_both_sides(row_in_box, fall.ends))
        rows = np.concatenate(pairs)
        scores = self._scores(rows)
        change = self._direction * (scores[1::2] - scores[::2])
        lowest = int(np.argmin(change))
        pair = slice(2 * lowest, 2 * lowest + 2)
        return CounterExample(rows[pair], scores[pair]) if change[lowest] < 0 else None

    def _find_fall(self, suspects: list[int]) -> CounterExample | None:
        """Two rows at which the sum falls; the steps with the lowest bounds are tried first."""
        in_trees = np.isin(self._tree_of, self._trees)
        last = int(self._cells.last[self._feature])
        inside = np.isin(self._tree_of, suspects) & (self._rank_of < last)
        exact = _integers(self._values)
        steps = []
        for cell in np.unique(self._rank_of[inside]).tolist():
            trees = np.unique(self._tree_of[in_trees & (self._rank_of == cell)])
            step = self._step(cell, trees.tolist(), exact)
            bound = step.bound(np.arange(len(step.group)))
            if bound < 0:
                steps.append((bound, cell, step))
        for _, cell, step in sorted(steps, key=lambda entry: entry[:2]):
            for box in step.falls():
                example = self._example(cell, step, box)
                if example is not None:
                    return example
        return None

    def _step(self, cell: int, trees: list[int], exact: list[int]) -> _Step:
        """Changes of the trees from a cell to the next, by boxes of other features."""
        parts = []
        for tree in trees:
            leaves, low, high = self._split_leaves(tree)
            in_cell = np.flatnonzero((low <= cell) & (cell <= high))
            in_next = np.flatnonzero((low <= cell + 1) & (cell + 1 <= high))
            pairs = np.meshgrid(in_cell, in_next, indexing="ij")
            before, after = (leaf.ravel() for leaf in pairs)
            boxes = leaves.boxes[before].meet(leaves.boxes[after])
            occupied = np.flatnonzero(boxes.occupied())
            old, new = (leaves.nodes[index[occupied]].tolist() for index in (before, after))
            changes = [exact[b] - exact[a] for a, b in zip(old, new, strict=True)]
            parts.append((leaves.features, boxes[occupied], changes))
        return _Step(parts, self._cells)

    def _example(self, cell: int, step: _Step, box: Boxes) -> CounterExample | None:
        """Two rows in the box on both sides of the step, if their scores show the fall."""
        cells = self._cells
        features = np.arange(len(cells.last))
        row = np.array(cells.point_in(features, cells.whole(features)))
        row[step.features] = cells.point_in(step.features, box)
        rows = self._on_both_sides(row, (cell, cell + 1))
        scores = self._scores(rows)
        falls = self._direction * scores[0] > self._direction * scores[1]
        return CounterExample(rows, scores) if falls else None

    def _on_both_sides(self, row: Floats, ends: tuple[int, int]) -> Floats:
        """Two copies of a row, with values of the feature in the two cells."""
        rows = np.array([row, row])
        rows[:, self._feature] = [self._cells.value_in(self._feature, cell) for cell in ends]
        return rows

    def _scores(self, rows: Floats) -> Floats:
        table = ingest(rows, Schema(names=None, n_features=rows.shape[1]))
        return table_scores(self._model, table, n_threads=self._n_threads)[:, self._output]


@dataclass(frozen=True)
class _Fall:
    """Two leaves of a tree in the wrong order: their common box, and their nearest cells."""

    features: Integers  # the other features of the tree
    box: Boxes
    ends: tuple[int, int]


class _Step:
    """The changes of trees between two neighbouring cells of a feature.

    Each tree is a group of boxes that partition the space of the other features; its change is
    constant in each box. Boxes are sorted by group, then by change, so that the first box of a
    group has its lowest change.
    """

    def __init__(
        self,
        parts: list[tuple[Integers, Boxes, list[int]]],
        cells: Cells,
    ) -> None:
        self.features = np.unique(np.concatenate([features for features, _, _ in parts]))
        self.space = cells.whole(self.features)
        group: list[Integers] = []
        filled: list[Boxes] = []
        self.change: list[int] = []
        for index, (features, boxes, changes) in enumerate(parts):
            order = sorted(range(len(changes)), key=changes.__getitem__)
            self.change += [changes[i] for i in order]
            group.append(np.full(len(order), index))
            column = np.searchsorted(self.features, features)
            filled.append(self.space.tiled(len(order)).with_columns(column, boxes[order]))
        self.group = np.concatenate(group)
        arrays = zip(*(boxes.arrays() for boxes in filled), strict=True)
        self.boxes = Boxes(*map(np.concatenate, arrays))

    def bound(self, alive: Integers) -> int:
        """Sum over the groups of the lowest change among the remaining boxes."""
        return sum(self.change[i] for i in alive[self._firsts(alive)].tolist())

    def falls(self) -> Iterator[Boxes]:
        """Yield boxes in which the sum of the changes is negative, each time a lower sum."""
        lowest = 0
        stack = [(np.arange(len(self.group)), self.space)]
        while stack:
            alive, box = stack.pop()
            alive = alive[self.boxes[alive].meet(box).occupied()]
            bound = self.bound(alive)
            if bound >= lowest:
                continue
            best = self._common(alive[self._firsts(alive)], box)
            if best is not None:
                lowest = bound
                yield best
                continue
            for choice in reversed(self._branch(alive)):
                other_groups = alive[self.group[alive] != self.group[choice]]
                remaining = np.sort(np.append(other_groups, choice))
                stack.append((remaining, box.meet(self.boxes[choice])))

    def _firsts(self, alive: Integers) -> Integers:
        group = self.group[alive]
        return np.flatnonzero(np.diff(group, prepend=-1))

    def _common(self, chosen: Integers, box: Boxes) -> Boxes | None:
        """Intersection of the chosen boxes, or None where it is empty."""
        boxes = self.boxes[chosen]
        common = Boxes(
            np.maximum(boxes.low.max(axis=0), box.low),
            np.minimum(boxes.high.min(axis=0), box.high),
            boxes.missing.all(axis=0) & box.missing,
            np.bitwise_and.reduce(boxes.levels, axis=0) & box.levels,
        )
        return common if common.occupied() else None

    def _branch(self, alive: Integers) -> list[int]:
        """Boxes of the group with the widest range of changes."""
        first = self._firsts(alive).tolist()
        groups = [
            [int(i) for i in alive[start:stop]]
            for start, stop in zip(first, [*first[1:], len(alive)], strict=True)
        ]
        return max(
            groups, key=lambda group: (self.change[group[-1]] - self.change[group[0]], len(group))
        )


def _integers(values: Floats) -> list[int]:
    """Values times one power of 2 that makes all of them integers."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    scale = max((denominator for _, denominator in ratios), default=1)
    return [numerator * (scale // denominator) for numerator, denominator in ratios]
