"""Smallest change of a row that flips its prediction: one feature, or else two.

Changes end at values of the data: first of a coarse grid of each feature, then of a finer one
between the row's value and the nearest that flips. The size of a change is counted in units of the
feature's spread, and 1 for another level.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from arboost.report.effects import Effects
from arboost.report.inputs import ModelRows, class_probability
from arboost.report.models import ChangedRows, Predictions, ReportModel
from arboost.report.table import MORE_DIGITS, Column, Floats, Index, Mask, Sample, rounded

_MOST_FEATURES, _FEWEST_FEATURES = 30, 5
_WORK = 2e8  # predicted rows x their cost, at most
_MOST_CELLS = 1e8
_GRID = 16  # values of a coarse grid
_MOST_LEVELS = 12
_FINE = 256  # values of the data that a change may end at
_REFINED = 16  # of them, tried between a row and its nearest flip
_PAIRED = 5  # features of a row, in pairs


def flips_section(
    rows: ModelRows, sample: Sample, effects: Effects
) -> tuple[list[dict[str, Any] | None] | None, str | None]:
    """Smallest flip of each sampled row, and the sentence on its rule."""
    rule = FlipRule.of(rows, rows.predicted.take(sample.rows))
    axes = _axes(rows, effects, len(sample))
    if rule is None or not axes:
        return None, None
    search = FlipSearch(rows.model, sample, axes, rule)
    changes = search.singles()
    unflipped = np.array([i for i, change in enumerate(changes) if change is None], np.intp)
    for row, change in zip(unflipped.tolist(), search.pairs(unflipped), strict=True):
        changes[row] = change
    flipped = {row: change for row, change in enumerate(changes) if change is not None}
    if not flipped:
        return None, None
    blocks = [search.changed_rows(row, change) for row, change in flipped.items()]
    predicted = rows.model.predicted_blocks(sample, blocks)
    section: list[dict[str, Any] | None] = [None] * len(changes)
    for (row, change), new in zip(flipped.items(), predicted, strict=True):
        columns = [sample.columns[feature] for feature in change.features]
        section[row] = {
            "changes": [
                {
                    "feature": column.name,
                    "from": _json_value(column, float(column.numbers[row])),
                    "to": _json_value(column, end),
                }
                for column, end in zip(columns, change.ends, strict=True)
            ],
            **_prediction(rows, new),
            "distance": rounded(change.distance),
        }
    return section, rule.text


def _json_value(column: Column, number: float) -> Any:
    is_text = column.kind != "number" and not np.isnan(number)
    return column.text(number) if is_text else rounded(number, MORE_DIGITS)


def _prediction(rows: ModelRows, new: Predictions) -> dict[str, Any]:
    """Label and value of the prediction of one row."""
    if new.values is not None:
        number = rounded(new.values[0], MORE_DIGITS)
        return {"label": number, "value": number}
    assert new.codes is not None
    proba = new.proba
    value = None if proba is None else rounded(class_probability(new.codes, proba)[0])
    return {"label": rows.classes[new.codes[0]], "value": value}


@dataclass(frozen=True, eq=False)
class FlipRule:
    """When predictions of changed rows count as flipped, and how near they are to it.

    Attributes
    ----------
    start : Predictions
        Those of the sampled rows.
    spread : float
        Standard deviation of the residuals; 0 for classifiers.
    """

    start: Any
    spread: float = 0.0

    @classmethod
    def of(cls, rows: ModelRows, start: Predictions) -> FlipRule | None:
        """Rule of the rows of a report; None for a regressor without errors."""
        if rows.predicted.values is None:
            return cls(start)
        residual = rows.truth - rows.predicted.values
        weight = rows.weights()
        middle = np.average(residual, weights=weight)
        spread = float(np.sqrt(np.average(np.square(residual - middle), weights=weight)))
        return cls(start, spread) if spread > 0 else None

    @property
    def text(self) -> str:
        """Sentence on the rule."""
        if not self.spread:
            return "A flip is a change of the predicted class."
        return (
            "A flip is a change of the prediction by one standard deviation of the residuals "
            f"({rounded(self.spread)})."
        )

    def is_flipped(self, new: Any, positions: Index) -> Mask:
        """Mask of the predictions that are flips of the sampled rows at these positions."""
        if self.spread:
            return self.progress(new, positions) >= self.spread
        flipped: Mask = new.codes != self.start.codes[positions]
        return flipped

    def progress(self, new: Any, positions: Index) -> Floats:
        """How far predictions are on the way to a flip."""
        if self.spread:
            moved: Floats = np.abs(new.values - self.start.values[positions])
            return moved
        if new.proba is None:
            return self.is_flipped(new, positions).astype(np.float64)
        return 1.0 - class_probability(self.start.codes[positions], new.proba)


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
        """Sizes of changes; those from or to a missing value count 1."""
        is_same = (start == end) | (np.isnan(start) & np.isnan(end))
        if not self.spread:
            return np.where(is_same, 0.0, 1.0)
        size = np.abs(end - start) / self.spread
        return np.where(is_same, 0.0, np.where(np.isnan(size), 1.0, size))

    def between(self, start: float, end: float, *, is_last: bool) -> Floats:
        """Values between the start and the end of a change; none for a category.

        They are spread between both, or at last all those next to the end, and where few are there
        also the one at the start: a change of two features may need one of them only.
        """
        if not self.spread or np.isnan(start):
            return np.empty(0)
        low = int(np.searchsorted(self.fine, min(start, end), side="right"))
        high = int(np.searchsorted(self.fine, max(start, end), side="left"))
        if not is_last:
            inside = self.fine[low:high]
            index = (np.arange(_REFINED) + 0.5) / _REFINED * len(inside)
            return np.unique(inside[index.astype(np.intp)]) if len(inside) else inside
        if end > start:
            return self.fine[max(low - 1, 0) : high][-_REFINED:]
        return self.fine[low : high + 1][:_REFINED]


def _axes(rows: ModelRows, effects: Effects, n_rows: int) -> list[Axis]:
    """The features to change, as many as the work allows."""
    by_work = _WORK / (n_rows * _GRID * rows.model.row_work)
    by_cells = _MOST_CELLS / (n_rows * _GRID * rows.model.schema.n_features)
    most = int(np.clip(min(by_work, by_cells), _FEWEST_FEATURES, _MOST_FEATURES))
    features = effects.order
    sizes = effects.shap if effects.shap is not None else effects.gain
    if sizes is not None:  # a feature without a split flips nothing
        features = features[sizes[features] > 0]
    features = features[features < rows.model.schema.n_columns]  # derived ones follow their column
    axes = (_axis(rows.table.column(feature), feature) for feature in features[:most].tolist())
    return [axis for axis in axes if axis is not None]


def _axis(column: Column, feature: int) -> Axis | None:
    """Values that a feature may change to; None for a constant."""
    present = np.sort(column.numbers[np.isfinite(column.numbers)])
    if not len(present) or present[0] == present[-1]:
        return None
    if column.has_levels:
        codes, totals = np.unique(present, return_counts=True)
        largest = np.sort(codes[np.argsort(-totals, kind="stable")[:_MOST_LEVELS]])
        return Axis(feature, largest, largest, 0.0)
    spread = float(np.subtract(*np.quantile(present, (0.9, 0.1)))) / 2.56
    if not spread > 0:
        spread = float(present.std())
    return Axis(feature, _values_at(present, _GRID), _values_at(present, _FINE), spread)


def _values_at(ordered: Floats, most: int) -> Floats:
    """Values of the data, evenly spread among its distinct values and among its rows."""
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
        self._progress = np.full((n_rows, n_axes), -np.inf)
        self._effective = np.full((n_rows, n_axes), np.nan)

    def singles(self) -> list[Change | None]:
        """Smallest change of one feature that flips each row; None where none does."""
        every = np.arange(len(self.sample))
        blocks = [
            ChangedRows(every.repeat(len(axis.coarse)), {feature: np.tile(axis.coarse, len(every))})
            for feature, axis in self._axes.items()
        ]
        sizes = np.empty(self._progress.shape)
        ends = np.empty(sizes.shape)
        predicted = self.model.predicted_blocks(self.sample, blocks)
        for k, (axis, block, new) in enumerate(
            zip(self._axes.values(), blocks, predicted, strict=True)
        ):
            start = self.sample.columns[axis.feature].numbers[:, np.newaxis]
            flips = self.rule.is_flipped(new, block.positions).reshape(len(every), -1)
            size = np.where(flips, axis.distance(start, axis.coarse), np.inf)
            nearest = size.argmin(axis=1)
            sizes[:, k], ends[:, k] = size[every, nearest], axis.coarse[nearest]
            progress = self.rule.progress(new, block.positions).reshape(len(every), -1)
            progress = np.where(axis.coarse == start, -np.inf, progress)
            best = progress.argmax(axis=1)
            self._progress[:, k] = progress[every, best]
            self._effective[:, k] = axis.coarse[best]
        features = list(self._axes)
        changes = [
            Change((features[k],), (float(ends[row, k]),), float(sizes[row, k]))
            if np.isfinite(sizes[row, k])
            else None
            for row, k in enumerate(sizes.argmin(axis=1).tolist())
        ]
        for is_last in (False, True):
            changes = self._shrunk(every, changes, 0, is_last=is_last)
        return changes

    def pairs(self, rows: Index) -> list[Change | None]:
        """Smallest change of two features that flips each of the rows, or None.

        New values are the most effective ones of each feature alone, or those of the nearest row
        with another prediction.
        """
        features = np.array(list(self._axes), np.intp)
        n_paired = min(_PAIRED, len(features))
        if n_paired < 2 or not len(rows):  # noqa: PLR2004
            return [None] * len(rows)
        contrast, differs = self._contrasts(rows)
        sources = [
            (self._effective[rows], np.argsort(-self._progress[rows], axis=1, kind="stable")),
            (contrast, np.argsort(~differs, axis=1, kind="stable")),
        ]
        tried = []
        for values, order in sources:
            for i, j in combinations(range(n_paired), 2):
                pair = order[:, [i, j]]
                ends = np.take_along_axis(values, pair, axis=1)
                tried.append(
                    (features[pair], ends, *self._changed_pairs(rows, features[pair], ends))
                )
        predicted = self.model.predicted_blocks(self.sample, [block for *_, block in tried])
        changes: list[Change | None] = [None] * len(rows)
        for (pair, ends, size, _), new in zip(tried, predicted, strict=True):
            for k in np.flatnonzero(self.rule.is_flipped(new, rows)).tolist():
                best = changes[k]
                if best is None or size[k] < best.distance:
                    changes[k] = self._change(int(rows[k]), pair[k].tolist(), ends[k].tolist())
        for member in (0, 1):
            for is_last in (False, True):
                changes = self._shrunk(rows, changes, member, is_last=is_last)
        return changes

    def _shrunk(
        self, rows: Index, changes: list[Change | None], member: int, *, is_last: bool
    ) -> list[Change | None]:
        """Changes of which one feature moves less, where the row flips all the same."""
        tried: list[tuple[int, Change, Floats, ChangedRows]] = []
        for k, change in enumerate(changes):
            if change is None or len(change.features) <= member:
                continue
            feature, end = change.features[member], change.ends[member]
            start = float(self.sample.columns[feature].numbers[rows[k]])
            values = self._axes[feature].between(start, end, is_last=is_last)
            values = values[np.abs(values - start) < abs(end - start)]
            if len(values):
                block = self.changed_rows(int(rows[k]), change, len(values))
                numbers = {**block.changes, feature: values}
                tried.append((k, change, values, ChangedRows(block.positions, numbers)))
        predicted = self.model.predicted_blocks(self.sample, [block for *_, block in tried])
        shrunk = list(changes)
        for (k, change, values, block), new in zip(tried, predicted, strict=True):
            flipping = values[self.rule.is_flipped(new, block.positions)]
            if len(flipping):
                feature = change.features[member]
                start = self.sample.columns[feature].numbers[rows[k]]
                ends = list(change.ends)
                ends[member] = float(flipping[np.abs(flipping - start).argmin()])
                shrunk[k] = self._change(int(rows[k]), list(change.features), ends)
        return shrunk

    def changed_rows(self, row: int, change: Change, n_rows: int = 1) -> ChangedRows:
        """A row with a change, a number of times."""
        pairs = zip(change.features, change.ends, strict=True)
        numbers = {feature: np.full(n_rows, end) for feature, end in pairs}
        return ChangedRows(np.full(n_rows, row), numbers)

    def _change(self, row: int, features: list[int], ends: list[float]) -> Change:
        """Change of a row, without features that keep their value."""
        moved, total = [], 0.0
        for feature, end in zip(features, ends, strict=True):
            start = self.sample.columns[feature].numbers[row]
            if not np.isnan(end) and end != start:
                moved.append((feature, end))
                total += float(self._axes[feature].distance(np.array(start), np.array(end)))
        return Change(tuple(feature for feature, _ in moved), tuple(end for _, end in moved), total)

    def _contrasts(self, rows: Index) -> tuple[Floats, Mask]:
        """Values of the nearest row with another prediction, and where they differ."""
        columns = [self.sample.columns[feature].numbers for feature in self._axes]
        total = np.zeros((len(rows), len(self.sample)))
        for axis, numbers in zip(self._axes.values(), columns, strict=True):
            total += axis.distance(numbers[rows][:, np.newaxis], numbers)
        differs = self.rule.is_flipped(self.rule.start, rows[:, np.newaxis])
        total[~differs] = np.inf
        nearest = total.argmin(axis=1)
        has_none = np.isinf(total.min(axis=1))
        start = np.stack([numbers[rows] for numbers in columns], axis=1)
        values = np.stack([numbers[nearest] for numbers in columns], axis=1)
        unchanged = np.isnan(values) | has_none[:, np.newaxis]  # no change to a missing value
        values = np.where(unchanged, start, values)
        return values, (values != start) & ~unchanged

    def _changed_pairs(
        self, rows: Index, features: Index, ends: Floats
    ) -> tuple[Floats, ChangedRows]:
        """Sizes of changes of two features of each row, and the changed rows."""
        changes: dict[int, Floats] = {}
        size = np.zeros(len(rows))
        for feature in np.unique(features).tolist():
            values = self.sample.columns[feature].numbers[rows]
            of_feature = features == feature
            hit = of_feature.any(axis=1)
            end = ends[of_feature]
            size[hit] += self._axes[feature].distance(values[hit], end)
            values[hit] = end
            changes[feature] = values
        return size, ChangedRows(rows, changes)
