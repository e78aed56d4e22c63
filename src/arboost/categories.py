"""Categories of many levels -> numbers: what the target was for rows of the same level.

Sets of levels are searched up to `MAX_LEVELS` levels. A column with more becomes numbers before it
is binned: in training a row of a rare level sees the mean target of rows that come before it in a
random order, and never its own; rows of a level with many rows all see the level's mean. The model
keeps one number for each level, which stands for it in prediction; unknown levels are missing.

Validation rows that are set aside from the training table, and the folds of cross-validation, use
the numbers of that one table. That is fair, because what misleads is a row's own target in its own
number, where it is absent (rare levels) or less than half a percent of it (all others); the targets
of other rows are what the level is known by, in training as in prediction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.ingest import MAX_LEVELS, Schema, Table
from arboost.levels import Levels
from arboost.targets import encode_labels, numbers_of

__all__ = ["coded", "encode", "label_target", "many_levels", "numbered"]

Floats = NDArray[np.float64]

_TWO_CLASSES = 2


def many_levels(schema: Schema) -> list[int]:
    """Return the features that have too many levels for sets of them, and no numbers yet."""
    return [feature for feature, n in enumerate(schema.n_levels) if n > MAX_LEVELS]


def numbered(schema: Schema) -> list[int]:
    """Return the features whose levels numbers stand for."""
    return [
        feature
        for feature, levels in enumerate(schema.levels)
        if levels is not None and levels.statistic is not None
    ]


def coded(schema: Schema) -> Schema:
    """Return the schema without the numbers of levels: tables read with it have codes instead."""
    if not numbered(schema):
        return schema
    plain = [None if one is None else replace(one, statistic=None) for one in schema.levels]
    return replace(schema, levels=tuple(plain))


def encode(
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
        That of a model whose training goes on, which was read as `coded`. Its numbers of levels
        stay.
    """
    features = many_levels(table.schema)
    if not features:
        return table
    if weight is not None and (weight == weight[0]).all():
        weight = None  # equal weights are none, to the last bit
    columns = table.columns.select(list(range(table.schema.n_features)))
    levels = list(table.schema.levels)
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
            values = np.append(statistic, np.nan)[codes]  # the code -1 is the last place
            values[rows] = of_rows
            of_rows = values
        column = core.Columns(table.n_rows)
        column.add(of_rows)
        columns.put(feature, column)
        levels[feature] = replace(of_feature, statistic=statistic)
    return Table(columns, replace(table.schema, levels=tuple(levels)))


def label_target(y: NDArray[Any] | None, schema: Schema) -> tuple[Floats, int | None]:
    """Return the target of a table that is binned before a task is known, and its classes.

    Numbers are a target of numbers, all other labels are classes.
    """
    if y is None:
        feature = many_levels(schema)[0]
        levels = schema.levels_of(feature)
        assert levels is not None
        raise ValueError(
            f"column {schema.label(feature)} has {len(levels)} levels. Above {MAX_LEVELS}, levels "
            "become numbers by means of the target, so the Dataset must know it. Pass y to Dataset."
        )
    if y.dtype.kind in "fiu":
        return numbers_of(y), None
    classes, codes = encode_labels(y)
    return codes, len(classes)


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
