"""Search of the smallest change of a row that flips its prediction: one feature, or else two.

Changes end at values of the data: first of a coarse grid of each feature, then of a finer one
between the row's own value and the nearest that flips. The size of a change is counted in units of
the feature's spread, and 1 for another level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from arboost.report.models import ReportModel
from arboost.report.predicted import Block, Predicted
from arboost.report.table import Column, Sample

__all__ = ["GRID", "Axis", "Change", "FlipRule", "FlipSearch", "axis_of"]

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

GRID = 16  # values of a coarse grid
_MOST_LEVELS = 12
_FINE = 256  # values of the data that a change may end at
_REFINED = 16  # of them, tried between a row and its nearest flip
_PAIRED = 5  # features of a row, in pairs


@dataclass(frozen=True, eq=False)
class Axis:
    """The values that a feature may change to.

    Attributes
    ----------
    feature : int
    coarse, fine : float64 arrays
        Numbers, or codes of levels; ascending.
    spread : float
        Size of a change of 1; 0 for categories, whose changes are all of size 1.
    """

    feature: int
    coarse: Floats
    fine: Floats
    spread: float

    def distance(self, start: Floats, end: Floats) -> Floats:
        """Return the size of changes; those from or to a missing value count 1."""
        is_same = (start == end) | (np.isnan(start) & np.isnan(end))
        if not self.spread:
            return np.where(is_same, 0.0, 1.0)
        size = np.abs(end - start) / self.spread
        return np.where(is_same, 0.0, np.where(np.isnan(size), 1.0, size))

    def between(self, start: Floats, end: Floats, *, is_last: bool) -> Floats:
        """Return values between starts and ends, shape (n_rows, n_values).

        They are spread between both, or at last all those next to the end. A category, and a
        missing start, have none but the end.
        """
        if not self.spread:
            return np.repeat(end[:, np.newaxis], _REFINED, axis=1)
        low = np.searchsorted(self.fine, np.fmin(start, end), side="right")[:, np.newaxis]
        high = np.searchsorted(self.fine, np.fmax(start, end), side="left")[:, np.newaxis]
        if is_last:
            steps = np.arange(_REFINED)
            index = np.where((end > start)[:, np.newaxis], high - 1 - steps, low + steps)
            index = index.clip(low, high)
        else:
            share = (np.arange(_REFINED) + 0.5) / _REFINED
            index = (low + share * (high - low)).astype(np.intp)
        values: Floats = self.fine[index.clip(0, len(self.fine) - 1)]
        return values


@dataclass(frozen=True, eq=False)
class FlipRule:
    """When predictions of changed rows count as flipped, and how near they are to it."""

    text: str
    is_flipped: Callable[[Predicted, Index], Mask]
    progress: Callable[[Predicted, Index], Floats]
    differs: Callable[[Index], Mask]  # of rows of the sample, from which other rows


def axis_of(column: Column, feature: int) -> Axis | None:
    """Return the values that a feature may change to; None for a constant."""
    present = np.sort(column.numbers[np.isfinite(column.numbers)])
    if not len(present) or present[0] == present[-1]:
        return None
    if column.kind in ("category", "bool"):
        codes, totals = np.unique(present, return_counts=True)
        largest = np.sort(codes[np.argsort(-totals, kind="stable")[:_MOST_LEVELS]])
        return Axis(feature, largest, largest, 0.0)
    spread = float(np.subtract(*np.quantile(present, (0.9, 0.1)))) / 2.56
    if not spread > 0:
        spread = float(present.std())
    return Axis(feature, _values_at(present, GRID), _values_at(present, _FINE), spread)


def _values_at(ordered: Floats, most: int) -> Floats:
    """Return values of the data, evenly spread among its distinct values and among its rows."""
    distinct = ordered[np.flatnonzero(np.diff(ordered, prepend=-np.inf))]
    if len(distinct) <= most:
        return distinct
    by_row = ordered[np.linspace(0, len(ordered) - 1, most - most // 4).astype(np.intp)]
    by_value = distinct[np.linspace(0, len(distinct) - 1, most // 4).astype(np.intp)]
    return np.unique(np.concatenate([by_row, by_value]))


@dataclass(frozen=True)
class Change:
    """Features of a row that change, and their new numbers."""

    features: tuple[int, ...]
    ends: tuple[float, ...]
    distance: float


class FlipSearch:
    """Search of the smallest flips of all rows of a sample, a few predictions in all."""

    def __init__(
        self, model: ReportModel, sample: Sample, axes: list[Axis], rule: FlipRule
    ) -> None:
        self.model, self.sample, self.rule = model, sample, rule
        self._axes = {axis.feature: axis for axis in axes}
        n_rows, n_axes = len(sample), len(axes)
        # The most effective value of each feature for each row, for pairs.
        self._best = np.full((n_rows, n_axes), -np.inf)
        self._end = np.full((n_rows, n_axes), np.nan)

    def singles(self) -> list[Change | None]:
        """Return the smallest change of one feature that flips each row; None where none does."""
        n_rows = len(self.sample)
        nearest = np.full(n_rows, np.inf)
        feature_of = np.full(n_rows, -1)
        end_of = np.full(n_rows, np.nan)
        every = np.arange(n_rows)
        blocks = [
            Block(np.repeat(every, len(axis.coarse)), {axis.feature: np.tile(axis.coarse, n_rows)})
            for axis in self._axes.values()
        ]
        answers = self.model.predicted_blocks(self.sample, blocks)
        for k, (feature, axis) in enumerate(self._axes.items()):
            start = self.sample.columns[feature].numbers
            places, new = blocks[k].places, answers[k]
            flipped = self.rule.is_flipped(new, places)
            size = axis.distance(start[places], blocks[k].changes[feature])
            size = np.where(flipped, size, np.inf)
            progress = np.where(blocks[k].changes[feature] == start[places], -np.inf, 0.0)
            self._keep_best(k, axis, progress + self.rule.progress(new, places))
            grid = size.reshape(n_rows, -1)
            first = grid.argmin(axis=1)
            is_nearer = grid[every, first] < nearest
            nearest[is_nearer] = grid[every, first][is_nearer]
            feature_of[is_nearer] = feature
            end_of[is_nearer] = axis.coarse[first[is_nearer]]
        self._refine(feature_of, end_of, nearest, is_last=False)
        self._refine(feature_of, end_of, nearest, is_last=True)
        return [
            Change((int(feature_of[i]),), (float(end_of[i]),), float(nearest[i]))
            if feature_of[i] >= 0
            else None
            for i in range(n_rows)
        ]

    def _keep_best(self, k: int, axis: Axis, progress: Floats) -> None:
        grid = progress.reshape(len(self.sample), -1)
        first = grid.argmax(axis=1)
        self._best[:, k] = grid[np.arange(len(grid)), first]
        self._end[:, k] = axis.coarse[first]

    def _refine(self, feature_of: Index, end_of: Floats, nearest: Floats, *, is_last: bool) -> None:
        """Replace each change by a smaller one of the same feature, if there is one.

        First, values are spread between the row's own and the end of the change; at last, they are
        all those next to the end.
        """
        tried = []
        for feature, axis in self._axes.items():
            rows = np.flatnonzero(feature_of == feature)
            start = self.sample.columns[feature].numbers[rows]
            rows, start = rows[~np.isnan(start)], start[~np.isnan(start)]
            if not axis.spread or not len(rows):
                continue
            ends = axis.between(start, end_of[rows], is_last=is_last).ravel()
            size = axis.distance(np.repeat(start, _REFINED), ends)
            tried.append((rows, ends, size, Block(np.repeat(rows, _REFINED), {feature: ends})))
        answers = self.model.predicted_blocks(self.sample, [block for *_, block in tried])
        for (rows, ends, size, block), new in zip(tried, answers, strict=True):
            flips = self.rule.is_flipped(new, block.places)
            grid = np.where(flips, size, np.inf).reshape(len(rows), -1)
            first = grid.argmin(axis=1)
            best = grid[np.arange(len(rows)), first]
            smaller = best < nearest[rows]
            nearest[rows[smaller]] = best[smaller]
            end_of[rows[smaller]] = ends.reshape(len(rows), -1)[smaller, first[smaller]]

    def pairs(self, rows: Index) -> list[Change | None]:
        """Return the smallest change of two features that flips each of the rows, or None.

        New values are the most effective ones of each feature alone, or those of the nearest row
        with another prediction.
        """
        features = np.array(list(self._axes), np.intp)
        n_paired = min(_PAIRED, len(features))
        if n_paired < 2 or not len(rows):  # noqa: PLR2004
            return [None] * len(rows)
        other, differs = self._contrasts(rows)
        sources = [
            (self._end[rows], np.argsort(-self._best[rows], axis=1, kind="stable")),
            (other, np.argsort(~differs, axis=1, kind="stable")),
        ]
        tried = []
        for values, order in sources:
            for i, j in combinations(range(n_paired), 2):
                both = order[:, [i, j]]
                ends = np.take_along_axis(values, both, axis=1)
                tried.append((features[both], ends, *self._both(rows, features[both], ends)))
        answers = self.model.predicted_blocks(self.sample, [block for *_, block in tried])
        found: list[Change | None] = [None] * len(rows)
        for (pair, ends, size, _), new in zip(tried, answers, strict=True):
            for k in np.flatnonzero(self.rule.is_flipped(new, rows)).tolist():
                best = found[k]
                if best is None or size[k] < best.distance:
                    found[k] = self._change(int(rows[k]), pair[k].tolist(), ends[k].tolist())
        for member in (0, 1):
            for is_last in (False, True):
                found = self._shrunk(rows, found, member, is_last=is_last)
        return found

    def _shrunk(
        self, rows: Index, found: list[Change | None], member: int, *, is_last: bool
    ) -> list[Change | None]:
        """Return changes of which one feature moves less, where the row flips all the same."""
        tried: list[tuple[int, list[Change]]] = []
        for k, change in enumerate(found):
            if change is None or len(change.features) <= member:
                continue
            feature, end = change.features[member], change.ends[member]
            start = float(self.sample.columns[feature].numbers[rows[k]])
            values = self._axes[feature].between(
                np.array([start]), np.array([end]), is_last=is_last
            )
            smaller = []
            for value in np.unique(values[0]).tolist():
                ends = list(change.ends)
                ends[member] = value
                smaller.append(self._change(int(rows[k]), list(change.features), ends))
            smaller = [one for one in smaller if one.distance < change.distance]
            if smaller:
                tried.append((k, smaller))
        blocks = [self._block(int(rows[k]), smaller) for k, smaller in tried]
        answers = self.model.predicted_blocks(self.sample, blocks)
        shrunk = list(found)
        for (k, smaller), block, new in zip(tried, blocks, answers, strict=True):
            flips = np.flatnonzero(self.rule.is_flipped(new, block.places)).tolist()
            if flips:
                shrunk[k] = min((smaller[i] for i in flips), key=lambda one: one.distance)
        return shrunk

    def _block(self, row: int, changes: list[Change]) -> Block:
        """Return a row with each of several changes."""
        places = np.full(len(changes), row)
        numbers: dict[int, Floats] = {}
        for i, change in enumerate(changes):
            for feature, end in zip(change.features, change.ends, strict=True):
                if feature not in numbers:
                    numbers[feature] = self.sample.columns[feature].numbers[places]
                numbers[feature][i] = end
        return Block(places, numbers)

    def _change(self, row: int, features: list[int], ends: list[float]) -> Change:
        """Return the change of a row, without features that keep their value."""
        kept, total = [], 0.0
        for feature, end in zip(features, ends, strict=True):
            start = self.sample.columns[feature].numbers[row]
            if not np.isnan(end) and end != start:
                kept.append((feature, end))
                total += float(self._axes[feature].distance(np.array(start), np.array(end)))
        return Change(tuple(one for one, _ in kept), tuple(end for _, end in kept), total)

    def _contrasts(self, rows: Index) -> tuple[Floats, Mask]:
        """Return the values of the nearest row with another prediction, and where they differ."""
        columns = [self.sample.columns[feature].numbers for feature in self._axes]
        total = np.zeros((len(rows), len(self.sample)))
        for axis, numbers in zip(self._axes.values(), columns, strict=True):
            total += axis.distance(numbers[rows][:, np.newaxis], numbers)
        total[~self.rule.differs(rows)] = np.inf
        nearest = total.argmin(axis=1)
        has_none = np.isinf(total.min(axis=1))
        own = np.stack([numbers[rows] for numbers in columns], axis=1)
        values = np.stack([numbers[nearest] for numbers in columns], axis=1)
        keeps = np.isnan(values) | has_none[:, np.newaxis]  # no change to a missing value
        values = np.where(keeps, own, values)
        return values, (values != own) & ~keeps

    def _both(self, rows: Index, features: Index, ends: Floats) -> tuple[Floats, Block]:
        """Return the sizes of changes of two features of each row, and the changed rows."""
        changes: dict[int, Floats] = {}
        size = np.zeros(len(rows))
        for feature in np.unique(features).tolist():
            values = self.sample.columns[feature].numbers[rows]
            own = features == feature
            hit = own.any(axis=1)
            end = ends[own]
            size[hit] += self._axes[feature].distance(values[hit], end)
            values[hit] = end
            changes[feature] = values
        return size, Block(rows, changes)
