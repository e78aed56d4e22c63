"""Target encoding: levels of large categories -> numbers, before the table is binned.

Categories of up to `MAX_SET_LEVELS` levels are split by sets of levels. A category with more levels
is target-encoded: in training, a row of a rare level gets the mean target of the level's rows that
precede it in a random order, without its own; all rows of a frequent level get the level's mean.
The model keeps one number per level for prediction; unknown levels are missing.

Held-out rows, in early stopping or cross-validation, get the encoding of new rows: level means of
the training rows alone. Their own targets are part of the numbers of the training rows. This does
not leak: harm comes from a row's own target in its own number, where it is absent (rare levels) or
below half a percent (all others). So all folds train on one table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.levels import MAX_SET_LEVELS, Levels, encoded_values
from arboost.data.schema import Schema
from arboost.data.table import Table
from arboost.data.target import encode_labels, numbers_of

__all__ = [
    "MAX_SET_LEVELS",
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
    """Level codes and targets of one target-encoded category.

    Attributes
    ----------
    feature : int
    codes : int32 array of shape (n_rows,)
        Level codes of all rows of the table, -1 for missing.
    target : float64 array of shape (n_training,)
        Contribution of each training row to the mean of its level.
    """

    feature: int
    codes: NDArray[np.int32]
    target: Floats


@dataclass(frozen=True)
class TargetEncodedTable(Table):
    """A table with target-encoded categories, and the data to encode it again.

    Attributes
    ----------
    sources : tuple of EncodedFeature
        One for each target-encoded category.
    weight : float64 array of shape (n_training,), or None
    rows : uint32 array, or None for all
        Indices of the training rows in the table, ascending.
    """

    sources: tuple[EncodedFeature, ...] = ()
    weight: Floats | None = None
    rows: NDArray[np.uint32] | None = None

    def held_out(self, trained: NDArray[np.uint32]) -> Table:
        """Return the table for held-out rows, encoded from the given training rows only.

        ``trained`` are indices among all training rows.
        """
        columns = self.columns.select(list(range(self.schema.n_features)))
        weight = None if self.weight is None else self.weight[trained]
        rows = self.table_rows(trained)
        for source in self.sources:
            levels = self.schema.levels_of(source.feature)
            assert levels is not None
            _, statistic = core.level_statistics(
                source.codes[rows], len(levels), source.target[trained], weight
            )
            columns.put(source.feature, _column(encoded_values(statistic, source.codes)))
        return Table(columns, self.schema)

    def table_rows(self, indices: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the indices in the table of training rows, given by their own indices."""
        return indices if self.rows is None else self.rows[indices]


def features_to_encode(schema: Schema) -> list[int]:
    """Return the features with more than `MAX_SET_LEVELS` levels that are not encoded yet."""
    return [feature for feature, n in enumerate(schema.n_levels) if n > MAX_SET_LEVELS]


def encoded_features(schema: Schema) -> list[int]:
    """Return the target-encoded features."""
    return [
        feature
        for feature, levels in enumerate(schema.levels)
        if levels is not None and levels.statistic is not None
    ]


def without_target_encoding(schema: Schema) -> Schema:
    """Return the schema without target encoding: `ingest` then returns level codes."""
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
    """Return the table with target encoding of all categories of many levels.

    Parameters
    ----------
    table : Table
    y : float64 array of shape (n_training,)
        Numbers, or class indices.
    weight : float64 array of shape (n_training,), or None
        Weights above 0.
    rows : uint32 array, or None for all
        Indices of the training rows in the table. All others get the means of their levels.
    n_classes : int or None
        Number of classes, None for regression; with three or more, each class gets a score.
    known : Schema or None
        Schema of a model to continue from, whose level means are kept; the table was read by
        `without_target_encoding` of it.
    """
    features = features_to_encode(table.schema)
    if not features:
        return table
    if weight is not None and (weight == weight[0]).all():
        weight = None  # so that equal weights and no weights give the same bits
    columns = table.columns.select(list(range(table.schema.n_features)))
    levels = list(table.schema.levels)
    sources = []
    for feature in features:
        feature_levels = levels[feature]
        assert feature_levels is not None
        old = None if known is None else known.levels_of(feature)
        codes = _codes(table.columns.read(feature))
        training = codes if rows is None else codes[rows]
        target = _target(training, feature_levels, y, weight, n_classes, old)
        encoded, statistic = core.level_statistics(training, len(feature_levels), target, weight)
        if old is not None and old.statistic is not None:
            statistic = old.statistic
        if rows is not None:
            all_rows = encoded_values(statistic, codes)
            all_rows[rows] = encoded
            encoded = all_rows
        columns.put(feature, _column(encoded))
        levels[feature] = replace(feature_levels, statistic=statistic)
        sources.append(EncodedFeature(feature, codes, target))
    schema = replace(table.schema, levels=tuple(levels))
    return TargetEncodedTable(columns, schema, tuple(sources), weight, rows)


def label_target(y: NDArray[Any] | None, schema: Schema) -> tuple[Floats, int | None]:
    """Return the target of a `Dataset`, for which no estimator is known, and its number of classes.

    Numbers are taken for regression, all other labels for classification.
    """
    if y is None:
        feature = features_to_encode(schema)[0]
        levels = schema.levels_of(feature)
        assert levels is not None
        raise ValueError(
            f"column {schema.label(feature)} has {len(levels)} levels. Categories of more than "
            f"{MAX_SET_LEVELS} levels are target-encoded, which needs y. Pass y to Dataset."
        )
    if y.dtype.kind in "fiu":
        return numbers_of(y), None
    classes, codes = encode_labels(y)
    return codes, len(classes)


def _column(values: Floats) -> core.Columns:
    column = core.Columns(len(values))
    column.add(values)
    return column


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
    """Return the contribution of each row to its level's mean: y, or the score of its class."""
    if n_classes is None or n_classes <= _TWO_CLASSES:
        return y
    if old is None or old.statistic is None:
        scores = core.class_scores(codes, len(levels), y, weight, n_classes)
    else:
        scores = _continued_scores(codes, old.statistic, y, weight, n_classes)
    return np.ascontiguousarray(scores[y.astype(np.intp)])


def _continued_scores(
    codes: NDArray[np.int32],
    statistic: Floats,
    y: Floats,
    weight: Floats | None,
    n_classes: int,
) -> Floats:
    """Return class scores that agree with the level means of a model to continue from.

    One step of reciprocal averaging: the score of a class is the mean of its rows' level means,
    scaled to mean 0 and variance 1 like the scores of the model's own training.
    """
    seen = codes >= 0
    means = statistic[codes[seen]]
    share = np.ones(len(means)) if weight is None else weight[seen]
    classes = y[seen].astype(np.intp)
    present = ~np.isnan(means)
    means, share, classes = means[present], share[present], classes[present]
    total = np.bincount(classes, share, n_classes)
    if not total.any():
        return np.zeros(n_classes)
    scores: Floats = np.bincount(classes, share * means, n_classes) / np.where(total, total, 1)
    scores -= np.average(scores, weights=total)
    deviation = np.sqrt(np.average(scores**2, weights=total))
    return np.where(total > 0, scores, 0.0) / (deviation if deviation > 0 else 1.0)
