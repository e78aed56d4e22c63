"""Target encoding: levels of large categories -> groups or means, before the table is binned.

Categories of up to `MAX_SET_LEVELS` levels are split by sets of levels. A category with more levels
is encoded by its targets, in one of two ways:

- "groups": at most 255 groups of levels, in the order of their mean targets. Each frequent level is
  a group; all others share groups of about equal means. Splits are sets of groups.
- "mean": one number per level, the mean target.

In training, the group or number of a row of a rare level comes from the mean target of the level's
rows that precede it in a random order; all rows of a frequent level have the level's. The model
keeps one group or number per level for prediction; unknown levels are missing.

Held-out rows, in early stopping or cross-validation, get the encoding of new rows: level means of
the training rows alone. Their own targets are part of the encoding of the training rows. This does
not leak: harm comes from a row's own target in its own encoding, where it is absent (rare levels)
or one of many (all others). So all folds train on one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.level_columns import level_column
from arboost.data.levels import (
    MAX_SET_LEVELS,
    NO_GROUP,
    Codes,
    Floats,
    Index,
    Levels,
    encoded_values,
)
from arboost.data.raw_table import number_column
from arboost.data.schema import Schema
from arboost.data.table import Table
from arboost.data.target import encode_labels, numeric_target, varying_weights

Targets = Sequence[tuple[Floats, int | None]]

ENCODINGS = ("groups", "mean")

_TWO_CLASSES = 2
# Groups of levels, chosen by held-out scores: docs/developers/target_encoding.md.
_MOST_ALONE = 223  # frequent levels, each a group
_LEAST_ALONE = 20.0  # rows of mean weight of a level with an entry of its own
_MOST_SHARED = 32  # groups of all other levels
_SMOOTHING = 3.0  # weight of the overall mean in the mean of a level, in rows of mean weight


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
    codes: Codes
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
    rows: Index | None = None

    def held_out(self, trained: Index) -> Table:
        """Table for held-out rows, encoded from the given training rows only.

        ``trained`` are indices among all training rows.
        """
        columns = self.values.select(list(range(self.schema.n_features)))
        for source, levels, training in self._trained(trained):
            if levels.groups is None:
                _, statistic = core.level_statistics(*training)
                column = number_column(encoded_values(statistic, source.codes))
            else:
                _, means = core.ordered_means(*training, _SMOOTHING)
                column = _group_column(levels.groups_by(means)[source.codes])
            columns.put(source.feature, column)
        return Table(columns, self.schema)

    def group_order(self, trained: Index) -> dict[int, NDArray[np.uint8]]:
        """Groups of each grouped category by their means over the given training rows.

        Held-out targets are part of the order of the groups in the table. ``trained`` are indices
        among all training rows.
        """
        orders = {}
        for source, levels, training in self._trained(trained):
            if levels.groups is None or levels.group_means is None:
                continue
            _, level_means = core.ordered_means(*training, _SMOOTHING)
            is_alone = levels.in_training & ~levels.is_shared(levels.groups)
            means = levels.group_means.copy()
            means[levels.groups[is_alone]] = level_means[is_alone]
            orders[source.feature] = np.argsort(means, kind="stable").astype(np.uint8)
        return orders

    def _trained(
        self, trained: Index
    ) -> Iterator[tuple[EncodedFeature, Levels, tuple[Codes, int, Floats, Floats | None]]]:
        """Yield each feature with its levels and the codes, targets and weights of some rows."""
        rows = self.table_rows(trained)
        weight = None if self.weight is None else self.weight[trained]
        for source in self.sources:
            levels = self.schema.levels_of(source.feature)
            assert levels is not None
            yield source, levels, (source.codes[rows], len(levels), source.target[trained], weight)

    def table_rows(self, indices: Index) -> Index:
        """Indices in the table of training rows, given by their own indices."""
        return indices if self.rows is None else self.rows[indices]


def features_to_encode(schema: Schema) -> list[int]:
    """Features with more than `MAX_SET_LEVELS` levels that are not encoded yet."""
    return [
        feature
        for feature, levels in enumerate(schema.levels)
        if levels is not None and levels.n_set_codes > MAX_SET_LEVELS and levels.groups is None
    ]


def encoded_features(schema: Schema) -> list[int]:
    """Target-encoded features."""
    return [
        feature
        for feature, levels in enumerate(schema.levels)
        if levels is not None and levels.is_encoded
    ]


def without_target_encoding(schema: Schema) -> Schema:
    """Schema without target encoding: `ingest` then returns level codes."""
    if not encoded_features(schema):
        return schema
    plain = (
        None
        if levels is None
        else Levels(levels.kind, levels.values, levels.offsets, ranks=levels.ranks)
        for levels in schema.levels
    )
    return replace(schema, levels=tuple(plain))


def target_encode(
    table: Table,
    targets: Targets,
    *,
    encoding: str,
    weight: Floats | None = None,
    rows: Index | None = None,
    known: Schema | None = None,
) -> Table:
    """Table with all categories of many levels encoded by their targets.

    Parameters
    ----------
    table : Table
    targets : sequence of pairs
        For each target, its values, float64 of shape (n_training,), and None; or the class indices
        and the number of classes. With three classes or more, each class gets a score. Several
        targets become one, the mean of the standardised targets.
    encoding : {"groups", "mean"}
    weight : float64 array of shape (n_training,), or None
        Weights above 0.
    rows : uint32 array, or None for all
        Indices of the training rows in the table. All others are encoded like new rows.
    known : Schema or None
        Schema of a model to continue from, whose encodings are kept; the table was read by
        `without_target_encoding` of it.
    """
    features = features_to_encode(table.schema)
    if not features:
        return table
    weight = varying_weights(weight)
    columns = table.values.select(list(range(table.schema.n_features)))
    levels = list(table.schema.levels)
    training = slice(None) if rows is None else rows
    sources = []
    for feature in features:
        feature_levels = levels[feature]
        known_levels = None if known is None else known.levels_of(feature)
        if known_levels is not None and known_levels.is_encoded:
            feature_levels = known_levels
        assert feature_levels is not None
        codes = np.nan_to_num(table.values.read(feature), nan=-1.0).astype(np.int32)
        target = _joint_target(codes[training], feature_levels, targets, weight)
        uses_groups = feature_levels.groups is not None or (
            encoding == "groups" and feature_levels.statistic is None
        )
        encode = _encode_groups if uses_groups else _encode_means
        column, levels[feature] = encode(feature_levels, codes, training, target, weight)
        columns.put(feature, column)
        sources.append(EncodedFeature(feature, codes, target))
    schema = replace(table.schema, levels=tuple(levels))
    return TargetEncodedTable(columns, schema, tuple(sources), weight, rows)


def label_target(y: NDArray[Any] | None, schema: Schema) -> tuple[Floats, int | None]:
    """Target of a `Dataset`, for which no estimator is known, and its number of classes.

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
        return numeric_target(y), None
    classes, codes = encode_labels(y)
    return codes, len(classes)


def _encode_means(
    levels: Levels,
    codes: Codes,
    training: Index | slice,
    target: Floats,
    weight: Floats | None,
) -> tuple[core.Columns, Levels]:
    """Column of target means, and the levels with theirs, if they had none."""
    row_means, statistic = core.level_statistics(codes[training], len(levels), target, weight)
    if levels.statistic is not None:
        statistic = levels.statistic
    means = encoded_values(statistic, codes)
    means[training] = row_means
    return number_column(means), replace(levels, statistic=statistic)


def _encode_groups(
    levels: Levels,
    codes: Codes,
    training: Index | slice,
    target: Floats,
    weight: Floats | None,
) -> tuple[core.Columns, Levels]:
    """Column of groups, and the levels with theirs, if they had none."""
    row_means, level_means = core.ordered_means(
        codes[training], len(levels), target, weight, _SMOOTHING
    )
    if levels.groups is None:
        levels = _grouped(levels, codes[training], row_means, level_means, weight)
    groups = levels.groups_by(level_means)[codes]
    training_groups = groups[training]
    is_shared = levels.is_shared(training_groups)
    training_groups[is_shared] = levels.nearest_shared(row_means[is_shared])
    groups[training] = training_groups
    return _group_column(groups), levels


def _grouped(
    levels: Levels, codes: Codes, row_means: Floats, level_means: Floats, weight: Floats | None
) -> Levels:
    """Levels with their groups, by the training rows and means of `ordered_means`."""
    present = codes >= 0
    share = None if weight is None else weight[present] / weight[present].mean()
    size = np.bincount(codes[present], share, len(levels))
    largest = np.argsort(-size, kind="stable")[:_MOST_ALONE]
    alone = largest[size[largest] >= _LEAST_ALONE]
    is_rare = size > 0
    is_rare[alone] = False
    steps = _quantiles(row_means[present][is_rare[codes[present]]])
    means = np.concatenate([level_means[alone], steps])
    order = np.argsort(means, kind="stable")
    place = np.empty(len(means), np.uint8)
    place[order] = np.arange(len(means))
    groups = np.full(len(levels), NO_GROUP, np.uint8)
    groups[alone] = place[: len(alone)]
    grouped = replace(
        levels,
        groups=groups,
        group_means=means[order],
        shared_groups=place[len(alone) :],
    )
    groups = groups.copy()
    groups[is_rare] = grouped.nearest_shared(level_means[is_rare])
    return replace(grouped, groups=groups)


def _quantiles(values: Floats) -> Floats:
    """At most `_MOST_SHARED` distinct quantiles, ascending."""
    if not len(values):
        return values
    places = (2 * np.arange(_MOST_SHARED) + 1) * len(values) // (2 * _MOST_SHARED)
    return np.unique(np.partition(values, np.unique(places))[places])


def _group_column(groups: NDArray[np.uint8]) -> core.Columns:
    codes = groups.astype(np.int16)
    codes[groups == NO_GROUP] = -1
    return level_column(codes)


def _joint_target(codes: Codes, levels: Levels, targets: Targets, weight: Floats | None) -> Floats:
    """Contribution of each row to the mean of its level.

    Of several targets it is the mean of the standardised ones, each with the sign that agrees with
    the known means of the levels, or with the targets before it.
    """
    columns = [_target(codes, levels, *target, weight) for target in targets]
    if len(columns) == 1:
        return columns[0]
    known = None if levels.means is None else encoded_values(levels.means, codes)
    total = np.zeros(len(codes))
    for column in columns:
        part = column - np.average(column, weights=weight)
        deviation = np.sqrt(np.average(part**2, weights=weight))
        part = part / (deviation if deviation > 0 else 1.0)
        product = part * (total if known is None else np.nan_to_num(known))
        total += part if np.average(product, weights=weight) >= 0 else -part
    return total / len(columns)


def _target(
    codes: Codes, levels: Levels, y: Floats, n_classes: int | None, weight: Floats | None
) -> Floats:
    """A target: y, or the score of each row's class."""
    if n_classes is None or n_classes <= _TWO_CLASSES:
        return y
    if levels.means is None:
        scores = core.class_scores(codes, len(levels), y, weight, n_classes)
    else:
        scores = _continued_scores(codes, levels.means, y, weight, n_classes)
    return np.ascontiguousarray(scores[y.astype(np.intp)])


def _continued_scores(
    codes: Codes,
    statistic: Floats,
    y: Floats,
    weight: Floats | None,
    n_classes: int,
) -> Floats:
    """Class scores that agree with the level means of a model to continue from.

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
