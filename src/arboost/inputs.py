"""What ``fit`` is given -> the rows that count, checked -> the sets that training reads.

X, y, sample_weight ──────────▶ Rows ──▶ Part ──┬─(split)──▶ TrainingSet
X_val, y_val, sample_weight_val ▶ Rows ──▶ Part ─┴──────────▶ EvaluationSet
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.binning import Binned, Dataset
from arboost.ingest import Reading, Schema, Table, ingest
from arboost.losses import Target
from arboost.recipe import EvaluationSet, TrainingSet
from arboost.targets import target, weights

__all__ = [
    "VALIDATION",
    "Part",
    "Rows",
    "build_sets",
    "fold_sets",
    "training_rows",
    "validation_rows",
    "weighted_target",
]

VALIDATION = "validation"  # what results call the evaluation set

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
    reading: Reading | None = None,
) -> Rows:
    """Check what is to be learnt from.

    Parameters
    ----------
    X, y, sample_weight
        As `fit` takes them.
    schema : Schema, optional
        That of a model whose training goes on.
    reading : Reading, optional
        What the parameters say of the columns.
    """
    reading = Reading() if reading is None else reading
    if not isinstance(X, Dataset):
        if schema is not None:
            _check_schema(reading, schema)
        table = ingest(X, schema, reading=reading)
        if table.n_rows == 0:  # without a schema, ingest says so itself
            raise ValueError("X has no rows. Pass at least one row to train on.")
        return _table_rows(table, y, sample_weight)
    if schema is not None:
        raise ValueError(
            "X is a Dataset, which holds bins instead of values, but init_model must score the "
            "values. Pass the table that the Dataset was made from."
        )
    reading.check_follows(X.reading, "the Dataset")
    labels = X.y if y is None and X.y is not None else target(y, X.n_rows)
    weight = X.sample_weight
    if sample_weight is not None:
        weight = _summable(weights(sample_weight, X.n_rows))
    if weight is not None and not weight.all():
        raise ValueError(
            f"sample_weight is 0 in {np.count_nonzero(weight == 0)} rows, but the rows of a "
            "Dataset are binned already and cannot be left out. Pass these weights to Dataset."
        )
    return Rows(X, None, labels, weight)


def validation_rows(
    X_val: object, y_val: object, sample_weight_val: object, schema: Schema
) -> Rows | None:
    """Check what is to be validated on; None where nothing was given."""
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    names = [name for name, value in given.items() if value is not None]
    if not names:
        return None
    if X_val is None or y_val is None:
        missing = "X_val" if X_val is None else "y_val"
        raise ValueError(
            f"{' and '.join(names)} came without {missing}: validation needs both X_val and y_val. "
            f"Pass {missing} too, or none of them."
        )
    if isinstance(X_val, Dataset):
        raise TypeError(
            "X_val is a Dataset, which holds bins of its own instead of values. Pass the table it "
            "was made from."
        )
    table = ingest(X_val, schema, caller="X_val")
    if table.n_rows == 0:
        raise ValueError("X_val has no rows. Pass rows to validate on, or leave out X_val.")
    return _table_rows(table, y_val, sample_weight_val, suffix="_val")


def build_sets(
    train: Part, validation: Part | None, binned: Binned, n_threads: int
) -> tuple[TrainingSet, tuple[EvaluationSet, ...]]:
    """Return the sets of codes and targets; validation rows get codes by the training edges.

    Parameters
    ----------
    train, validation : Part
    binned : Binned
        The training rows of a table, or all rows of a Dataset.
    n_threads : int
    """
    rows = train.rows if isinstance(train.source, Dataset) else None
    training = TrainingSet(binned, train.target, rows, train.start)
    if validation is None:
        return training, ()
    source, rows = validation.source, validation.rows
    if isinstance(source, Dataset):
        codes = binned.codes
    else:
        codes = binned.encode(source, n_threads, rows)
        rows = None
    return training, (EvaluationSet(VALIDATION, codes, validation.target, rows, validation.start),)


def fold_sets(
    part: Part, binned: Binned, fold: tuple[Index, Index], n_threads: int
) -> tuple[TrainingSet, tuple[EvaluationSet, ...]]:
    """Return the sets of one fold: some of the rows of one table to train on, others to measure.

    Parameters
    ----------
    part : Part
        All rows, in the order of the codes.
    binned : Binned
    fold : pair of uint32 arrays
        Numbers of the rows to train on and of those to hold out, ascending.
    n_threads : int
    """
    train, held_out = (part.take(rows) for rows in fold)
    data = TrainingSet(binned, train.target, fold[0], train.start)
    if binned.is_ranked:
        rows: Index | None = fold[1]
        codes = binned.codes
    else:
        # Every new tree is walked by all of them: side by side, 64 at once. Each row is held out
        # once, so that the copies of all folds together are as large as the codes.
        rows, codes = None, binned.codes.take(fold[1], n_threads)
    return data, (EvaluationSet(VALIDATION, codes, held_out.target, rows, held_out.start),)


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


def _check_schema(reading: Reading, schema: Schema) -> None:
    """Raise ValueError where the parameters say other things of columns than a fitted model."""
    reading.check_follows(Reading(reading.categorical_features, schema.missing), "init_model")
    named = reading.categories(schema.names, schema.n_features)
    strange = [schema.label(i) for i in sorted(named) if schema.levels_of(i) is None]
    if strange:
        raise ValueError(
            f"categorical_features names {', '.join(strange)}, but init_model was fitted on "
            "numbers there. Leave them out, or train a new model."
        )


def _table_rows(table: Table, y: object, sample_weight: object, suffix: str = "") -> Rows:
    try:
        labels = target(y, table.n_rows)
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
