"""Categories of many levels -> numbers: what the target was for rows of the same level.

Sets of levels are searched up to `MAX_SET_LEVELS` levels. A column with more becomes numbers
before it is binned: in training a row of a rare level sees the mean target of rows that come before
it in a random order, and never its own; rows of a level with many rows all see the level's mean.
The model keeps one number for each level, which stands for it in prediction; unknown levels are
missing.

Rows that are held out, by early stopping or in the folds of cross-validation, see what new rows
would see: numbers of levels by the rows that are trained on alone. Their own targets are among
those that the numbers of training rows come from. That gives nothing away: what misleads is a
row's own target in its own number, and there it is absent (rare levels) or less than half a
percent (all others). So all folds train on one table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.levels import Levels
from arboost.data.schema import Schema
from arboost.data.table import MAX_SET_LEVELS, Table
from arboost.data.target import encode_labels, numbers_of

__all__ = [
    "TargetEncodedTable",
    "encoded_features",
    "features_to_encode",
    "label_target",
    "target_encode",
    "without_target_encoding",
]

Floats = NDArray[np.float64]

_TWO_CLASSES = 2


@dataclass(frozen=True)
class EncodedFeature:
    """What the numbers of one category came from.

    Attributes
    ----------
    feature : int
    codes : int32 array of shape (n_rows,)
        Levels of all rows of the table, -1 for missing.
    target : float64 array of shape (n_training,)
        What each training row adds to its level.
    """

    feature: int
    codes: NDArray[np.int32]
    target: Floats


@dataclass(frozen=True)
class TargetEncodedTable(Table):
    """A table in which numbers stand for categories of many levels.

    Attributes
    ----------
    sources : tuple of EncodedFeature
        One for each such category.
    weight : float64 array of shape (n_training,), or None
    rows : uint32 array, or None for all
        The training rows among those of the table, ascending.
    """

    sources: tuple[EncodedFeature, ...] = ()
    weight: Floats | None = None
    rows: NDArray[np.uint32] | None = None

    def held_out(self, trained: NDArray[np.uint32]) -> Table:
        """Return the table as rows see it that only some of the training rows are known to.

        ``trained`` are the numbers of these among all training rows.
        """
        columns = self.columns.select(list(range(self.schema.n_features)))
        weight = None if self.weight is None else self.weight[trained]
        known = trained if self.rows is None else self.rows[trained]
        for source in self.sources:
            levels = self.schema.levels_of(source.feature)
            assert levels is not None
            _, statistic = core.level_statistics(
                source.codes[known], len(levels), source.target[trained], weight
            )
            columns.put(source.feature, _column(_of_codes(statistic, source.codes)))
        return Table(columns, self.schema)

    def table_rows(self, numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return which rows of the table the training rows of the given numbers are."""
        return numbers if self.rows is None else self.rows[numbers]


def features_to_encode(schema: Schema) -> list[int]:
    """Return the features that have too many levels for sets of them, and no numbers yet."""
    return [feature for feature, n in enumerate(schema.n_levels) if n > MAX_SET_LEVELS]


def encoded_features(schema: Schema) -> list[int]:
    """Return the features whose levels numbers stand for."""
    return [
        feature
        for feature, levels in enumerate(schema.levels)
        if levels is not None and levels.statistic is not None
    ]


def without_target_encoding(schema: Schema) -> Schema:
    """Return the schema without the numbers of levels: tables read with it have codes instead."""
    if not encoded_features(schema):
        return schema
    plain = [None if one is None else replace(one, statistic=None) for one in schema.levels]
    return replace(schema, levels=tuple(plain))


def target_encode(
    table: Table,
    y: Floats,
    *,
    weight: Floats | None = None,
    rows: NDArray[np.uint32] | None = None,
    n_classes: int | None = None,
    known: Schema | None = None,
) -> Table:
    """Return the table with numbers instead of categories of many levels.

    Parameters
    ----------
    table : Table
    y : float64 array of shape (n_training,)
        Numbers, or classes 0 .. n_classes - 1.
    weight : float64 array of shape (n_training,), or None
        Weights above 0.
    rows : uint32 array, or None for all
        The training rows among those of the table. All others get the numbers of their levels.
    n_classes : int or None
        Of a classifier; one number stands for each class of three or more.
    known : Schema or None
        That of a model whose training goes on, which was read as `without_target_encoding`.
        Its numbers of levels stay.
    """
    features = features_to_encode(table.schema)
    if not features:
        return table
    if weight is not None and (weight == weight[0]).all():
        weight = None  # equal weights are none, to the last bit
    columns = table.columns.select(list(range(table.schema.n_features)))
    levels = list(table.schema.levels)
    sources = []
    for feature in features:
        of_feature = levels[feature]
        assert of_feature is not None
        old = None if known is None else known.levels_of(feature)
        codes = _codes(table.columns.read(feature))
        training = codes if rows is None else codes[rows]
        target = _target(training, of_feature, y, weight, n_classes, old)
        of_rows, statistic = core.level_statistics(training, len(of_feature), target, weight)
        if old is not None and old.statistic is not None:
            statistic = old.statistic
        if rows is not None:
            values = _of_codes(statistic, codes)
            values[rows] = of_rows
            of_rows = values
        columns.put(feature, _column(of_rows))
        levels[feature] = replace(of_feature, statistic=statistic)
        sources.append(EncodedFeature(feature, codes, target))
    schema = replace(table.schema, levels=tuple(levels))
    return TargetEncodedTable(columns, schema, tuple(sources), weight, rows)


def label_target(y: NDArray[Any] | None, schema: Schema) -> tuple[Floats, int | None]:
    """Return the target of a table that is binned before a task is known, and its classes.

    Numbers are a target of numbers, all other labels are classes.
    """
    if y is None:
        feature = features_to_encode(schema)[0]
        levels = schema.levels_of(feature)
        assert levels is not None
        raise ValueError(
            f"column {schema.label(feature)} has {len(levels)} levels. Above {MAX_SET_LEVELS}, "
            "levels become numbers by means of the target, so the Dataset must know it. Pass y to "
            "Dataset."
        )
    if y.dtype.kind in "fiu":
        return numbers_of(y), None
    classes, codes = encode_labels(y)
    return codes, len(classes)


def _column(values: Floats) -> core.Columns:
    column = core.Columns(len(values))
    column.add(values)
    return column


def _of_codes(statistic: Floats, codes: NDArray[np.int32]) -> Floats:
    """Return the number of each code."""
    return np.append(statistic, np.nan)[codes]  # the code -1 is the last place


def _codes(values: Floats) -> NDArray[np.int32]:
    """Return a column of level codes as integers, -1 for missing."""
    return np.where(np.isnan(values), -1.0, values).astype(np.int32)


def _target(
    codes: NDArray[np.int32],
    levels: Levels,
    y: Floats,
    weight: Floats | None,
    n_classes: int | None,
    old: Levels | None,
) -> Floats:
    """Return the number that each row adds to its level: y itself, or a score of its class."""
    if n_classes is None or n_classes <= _TWO_CLASSES:
        return y
    if old is None or old.statistic is None:
        scores = core.class_scores(codes, len(levels), y, weight, n_classes)
    else:
        scores = _scores_along(codes, old.statistic, y, weight, n_classes)
    return np.ascontiguousarray(scores[y.astype(np.intp)])


def _scores_along(
    codes: NDArray[np.int32],
    statistic: Floats,
    y: Floats,
    weight: Floats | None,
    n_classes: int,
) -> Floats:
    """Return scores of classes by which levels have about the numbers that they have already.

    That is one step of reciprocal averaging: the score of a class is the mean of the levels that
    its rows have. Mean 0 and variance 1, as the scores were that the numbers came from.
    """
    seen = codes >= 0
    of_rows = statistic[codes[seen]]
    share = np.ones(len(of_rows)) if weight is None else weight[seen]
    classes = y[seen].astype(np.intp)
    present = ~np.isnan(of_rows)
    of_rows, share, classes = of_rows[present], share[present], classes[present]
    total = np.bincount(classes, share, n_classes)
    if not total.any():
        return np.zeros(n_classes)
    scores: Floats = np.bincount(classes, share * of_rows, n_classes) / np.where(total, total, 1)
    scores -= np.average(scores, weights=total)
    deviation = np.sqrt(np.average(scores**2, weights=total))
    return np.where(total > 0, scores, 0.0) / (deviation if deviation > 0 else 1.0)
