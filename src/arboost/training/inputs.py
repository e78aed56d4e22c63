"""What ``fit`` is given -> the rows that count, checked -> the sets that training reads.

X, y, sample_weight ──────────▶ Rows ──▶ Part ──┬─(split)──▶ TrainingSet
X_val, y_val, sample_weight_val ▶ Rows ──▶ Part ─┴──────────▶ EvaluationSet
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from arboost.data.dataset import Dataset
from arboost.data.schema import Schema
from arboost.data.table import ColumnOptions, Table, ingest
from arboost.data.target import target, weights
from arboost.data.target_encoding import (
    TargetEncodedTable,
    encoded_features,
    target_encode,
    without_target_encoding,
)
from arboost.losses import Target

__all__ = [
    "DatasetRows",
    "Part",
    "Rows",
    "has_validation",
    "number_levels",
    "table_rows",
    "training_rows",
    "validation_rows",
    "weighted_target",
]

_TWO_CLASSES = 2


Index = NDArray[np.uint32]


@dataclass(frozen=True)
class Rows:
    """The rows of a table that count, those with a weight above 0, as the user gave them.

    Attributes
    ----------
    source : Table or Dataset
    kept : uint32 array, or None for all
        Which rows of the source these are, ascending.
    y : array of shape (n_kept,)
    weight : float64 array of shape (n_kept,), or None
    """

    source: Table | Dataset
    kept: Index | None
    y: NDArray[Any]
    weight: NDArray[np.float64] | None

    @property
    def schema(self) -> Schema:
        """Columns of the source."""
        source = self.source
        return source.binned.schema if isinstance(source, Dataset) else source.schema


@dataclass(frozen=True, eq=False)
class DatasetRows:
    """Some rows of a Dataset, which `fit` takes for X: members of an ensemble share its bins.

    Attributes
    ----------
    dataset : Dataset
        With its y.
    rows : uint32 array
        Ascending, each row once.
    weight : float64 array of shape (n_rows,), or None
        Of these rows, above 0, beside those of the Dataset.
    """

    dataset: Dataset
    rows: Index
    weight: NDArray[np.float64] | None = None

    def read(self) -> Rows:
        """Return the rows with their target and weights."""
        data, rows = self.dataset, self.rows
        assert data.y is not None
        weight = self.weight
        if data.sample_weight is not None:
            own = data.sample_weight[rows]
            weight = own if weight is None else own * weight
        return Rows(data, rows, data.y[rows], _summable(weight))


@dataclass(frozen=True)
class Part:
    """Rows of a source with their target as losses read it.

    Attributes
    ----------
    source : Table or Dataset
    rows : uint32 array, or None for all
        Which rows of the source these are, ascending.
    target : Target
    start : float64 array of shape (n_rows, n_outputs), or None
        Scores of a model whose training goes on.
    """

    source: Table | Dataset
    rows: Index | None
    target: Target
    start: NDArray[np.float64] | None = None

    def numbers(self) -> Index:
        """Return which of the rows that count, of all of the source, these are."""
        assert self.rows is not None
        table = self.source
        if (
            isinstance(table, Dataset)
            or not isinstance(table, TargetEncodedTable)
            or table.rows is None
        ):
            return self.rows
        return np.searchsorted(table.rows, self.rows).astype(np.uint32)

    def take(self, chosen: Index) -> Part:
        """Return some of the rows."""
        weight, start = self.target.weight, self.start
        return Part(
            self.source,
            chosen if self.rows is None else self.rows[chosen],
            Target(self.target.y[chosen], None if weight is None else weight[chosen]),
            None if start is None else start[chosen],
        )


def training_rows(
    X: object,
    y: object,
    sample_weight: object,
    schema: Schema | None = None,
    options: ColumnOptions | None = None,
    *,
    several: bool = False,
) -> Rows:
    """Check what is to be learnt from.

    Parameters
    ----------
    X, y, sample_weight
        As `fit` takes them.
    schema : Schema, optional
        That of a model whose training goes on.
    options : ColumnOptions, optional
        What the parameters say of the columns.
    several : bool
        Whether y may have several columns.
    """
    options = ColumnOptions() if options is None else options
    if not isinstance(X, Dataset | DatasetRows):
        if schema is not None:
            _check_schema(options, schema)
        # Numbers stand for levels in what is predicted; rows to learn from get their own.
        table = ingest(
            X, None if schema is None else without_target_encoding(schema), options=options
        )
        if table.n_rows == 0:  # without a schema, ingest says so itself
            raise ValueError("X has no rows. Pass at least one row to train on.")
        return table_rows(table, y, sample_weight, several=several)
    if schema is not None:
        raise ValueError(
            "X is a Dataset, which holds bins instead of values, but init_model must score the "
            "values. Pass the table that the Dataset was made from."
        )
    if isinstance(X, DatasetRows):
        options.check_follows(X.dataset.column_options, "the Dataset")
        return X.read()
    options.check_follows(X.column_options, "the Dataset")
    labels = X.y if y is None and X.y is not None else target(y, X.n_rows, several=several)
    weight = X.sample_weight
    if sample_weight is not None:
        weight = _summable(weights(sample_weight, X.n_rows))
    if weight is not None and not weight.all():
        raise ValueError(
            f"sample_weight is 0 in {np.count_nonzero(weight == 0)} rows, but the rows of a "
            "Dataset are binned already and cannot be left out. Pass these weights to Dataset."
        )
    return Rows(X, None, labels, weight)


def number_levels(
    rows: Rows, y: NDArray[np.float64], n_classes: int | None, known: Schema | None
) -> Rows:
    """Return the rows with numbers instead of categories of many levels.

    Parameters
    ----------
    rows : Rows
    y : float64 array of shape (n_kept,)
        The target as losses read it.
    n_classes : int or None
        Of a classifier.
    known : Schema or None
        That of a model whose training goes on.
    """
    source = rows.source
    if isinstance(source, Dataset):
        _check_numbers(source, rows.y, n_classes)
        return rows
    table = target_encode(
        source, y, weight=rows.weight, rows=rows.kept, n_classes=n_classes, known=known
    )
    return replace(rows, source=table)


def validation_rows(
    X_val: object, y_val: object, sample_weight_val: object, schema: Schema
) -> Rows | None:
    """Check what is to be validated on; None where nothing was given."""
    if not has_validation(X_val, y_val, sample_weight_val):
        return None
    if isinstance(X_val, Dataset):
        raise TypeError(
            "X_val is a Dataset, which holds bins of its own instead of values. Pass the table it "
            "was made from."
        )
    table = ingest(X_val, schema, caller="X_val")
    if table.n_rows == 0:
        raise ValueError("X_val has no rows. Pass rows to validate on, or leave out X_val.")
    return table_rows(table, y_val, sample_weight_val, suffix="_val")


def has_validation(X_val: object, y_val: object, sample_weight_val: object) -> bool:
    """Whether something is to be validated on; raise ValueError where half of it is missing."""
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    names = [name for name, value in given.items() if value is not None]
    if names and (X_val is None or y_val is None):
        missing = "X_val" if X_val is None else "y_val"
        raise ValueError(
            f"{' and '.join(names)} came without {missing}: validation needs both X_val and y_val. "
            f"Pass {missing} too, or none of them."
        )
    return bool(names)


def weighted_target(
    y: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    factors: NDArray[np.float64] | None,
) -> Target:
    """Return the target of rows whose weights are multiplied by the factors of their classes."""
    if factors is not None:
        of_class = factors[y.astype(np.intp)]
        with np.errstate(over="ignore", under="ignore"):
            weight = of_class if weight is None else weight * of_class
        if not weight.all():
            raise ValueError(
                f"class weights down to {factors.min()} times sample_weight are 0 in floating "
                "point. Only ratios of weights matter much: scale them up."
            )
    return Target(y, _summable(weight, "class weights times sample_weight"))


def _check_schema(options: ColumnOptions, schema: Schema) -> None:
    """Raise ValueError where the parameters say other things of columns than a fitted model."""
    options.check_follows(ColumnOptions(options.categorical_features, schema.missing), "init_model")
    named = options.categories(schema.names, schema.n_features)
    strange = [schema.label(i) for i in sorted(named) if schema.levels_of(i) is None]
    if strange:
        raise ValueError(
            f"categorical_features names {', '.join(strange)}, but init_model was fitted on "
            "numbers there. Leave them out, or train a new model."
        )


def _check_numbers(data: Dataset, y: NDArray[Any], n_classes: int | None) -> None:
    """Raise ValueError where the levels of a Dataset became numbers by another target."""
    schema = data.binned.schema
    features = encoded_features(schema)
    if not features:
        return
    made = f"column {schema.label(features[0])} of the Dataset has numbers for its many levels"
    if y is not data.y and not np.array_equal(y, cast(Any, data.y)):
        raise ValueError(
            f"{made}, which come from the y that it was made with, but another y was passed to "
            "fit. Leave out y, or make a Dataset with this one."
        )
    if n_classes is not None and n_classes > _TWO_CLASSES and data.level_classes is None:
        raise ValueError(
            f"{made}, which take y for a number, but y has {n_classes} classes. Pass the table "
            "itself to fit, or make the Dataset with labels that are strings."
        )


def table_rows(
    table: Table, y: object, sample_weight: object, suffix: str = "", *, several: bool = False
) -> Rows:
    """Return the rows of a table that count, with y and weights checked.

    The arguments of `fit` are called X, y and sample_weight in messages, each with the suffix.
    """
    try:
        labels = target(y, table.n_rows, several=several)
        weight = _summable(weights(sample_weight, table.n_rows))
    except (TypeError, ValueError) as error:
        if not suffix:
            raise
        raise type(error)(f"X{suffix}, y{suffix}, sample_weight{suffix}: {error}") from error
    kept = None
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight).astype(np.uint32)
        labels, weight = labels[kept], weight[kept]
    return Rows(table, kept, labels, weight)


def _summable(
    weight: NDArray[np.float64] | None, name: str = "sample_weight"
) -> NDArray[np.float64] | None:
    if weight is not None:
        with np.errstate(over="ignore"):
            total = weight.sum()
        if not np.isfinite(total):
            raise ValueError(
                f"the sum of {name} is {total}: its largest value, {weight.max()}, is too large "
                "for so many rows. Only ratios of weights matter much: scale them down."
            )
    return weight
