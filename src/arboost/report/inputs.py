"""Arguments of a report -> models, rows and truth, checked before any work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import checked_threads
from arboost.data.feature_names import feature_indices, split_offset, split_target
from arboost.data.raw_table import is_missing
from arboost.data.target import encode_known_labels, numeric_target, target, weights
from arboost.errors import InputTypeError
from arboost.losses.intervals import Replicates, sample_rows
from arboost.losses.links import read_offset
from arboost.report.models import Predictions, ReportModel
from arboost.report.table import ReportTable

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

_CHECKED_ROWS = 100  # whose predictions are compared with those of the trees alone
_SEVERAL = 2  # dimensions of y for several targets


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows, for drift, baselines and out-of-bag curves.

    Attributes
    ----------
    table : ReportTable
    truth : array of shape (n_rows,), or None
        Values or class codes; -1 or NaN for rows without a known target.
    """

    table: ReportTable
    truth: NDArray[Any] | None


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportInput:
    """The checked arguments of a report.

    Attributes
    ----------
    models : list of ReportModel
        One, or two to compare.
    tables : list of ReportTable
        The rows of the report in the columns of each model.
    predicted : list of Predicted
    truth : array of shape (n_rows,)
        Values, or class codes.
    weight : float64 array of shape (n_rows,), or None
    rows : int array of shape (n_rows,)
        Row numbers in the given table.
    target : str or None
        Name of the target.
    training : TrainingRows or None
    segments : list of int
        Features of the first model that the user wants as segments.
    title : str
    notes : list of str
    """

    models: list[ReportModel]
    tables: list[ReportTable]
    predicted: list[Predictions]
    truth: NDArray[Any]
    weight: Floats | None
    rows: Index
    target: str | None
    training: TrainingRows | None
    segments: list[int]
    title: str
    notes: list[str] = field(default_factory=list)
    _drawn: dict[int, Replicates] = field(default_factory=dict)

    def replicates(self, most: int) -> Replicates:
        """Return bootstrap weights of at most so many of the rows; all scores share them."""
        if most not in self._drawn:
            self._drawn[most] = Replicates.of(self.n_rows, most)
        return self._drawn[most]

    @property
    def n_rows(self) -> int:
        """Number of rows of the report."""
        return len(self.rows)

    @property
    def task(self) -> str:
        """One of "binary", "multiclass" and "regression"."""
        return self.models[0].task

    @property
    def classes(self) -> NDArray[Any] | None:
        """Labels of the classes; None for regression."""
        return self.models[0].classes


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportOptions:
    """The optional arguments of `arboost.models.methods.report`."""

    sample_weight: Any = None
    offset: Any = None
    X_train: Any = None
    y_train: Any = None
    compare: Any = None
    segments: Sequence[str | int] | None = None
    title: str | None = None
    target_index: int | None = None
    n_jobs: int | None = None


def read_input(model: Any, X: Any, y: Any, options: ReportOptions) -> ReportInput:
    """Return the checked arguments of a report, with predictions of all rows.

    Raises
    ------
    ValueError, TypeError
        An argument that is not allowed, or that does not fit the others.
    arboost.SchemaError
        X has other columns than a model.
    """
    target_index, n_jobs = options.target_index, options.n_jobs
    checked_threads(n_jobs)
    given_y = y
    X, y, name = split_target(X, y)
    first = ReportModel(model, target_index, n_jobs)
    models = [first]
    if options.compare is not None:
        if not hasattr(options.compare, "predict"):
            raise InputTypeError(
                f"compare={options.compare!r} is not allowed: it must be a fitted model, such as "
                "an estimator or the result of arboost.load."
            )
        models.append(_compared(first, ReportModel(options.compare, target_index, n_jobs)))
    if name is None:
        name = first.schema.target
    segments, title = _segments(first, options.segments), _title(options.title, first)
    rest = split_offset(X, options.offset)[0]
    whole = first.report_table(rest)
    if whole.n_rows == 0:
        raise ValueError("X has no rows, so there is nothing to report on. Pass at least one row.")
    truth, rows, notes = _truth(first, y, whole.n_rows, target_index)
    weight = weights(options.sample_weight, whole.n_rows)
    if weight is not None:
        truth, rows, weight = _weighted(truth, rows, weight, notes)
    training = _training(first, options, given_y, notes)
    kept = None if len(rows) == whole.n_rows else rows
    offsets = [_offset(one, X, whole.n_rows, options.offset) for one in models]
    if options.offset is not None and all(one is None for one in offsets):
        raise ValueError("offset was passed, but the model was fitted without one. Leave it out.")
    tables = [
        whole if one is first and kept is None else one.report_table(rest, kept) for one in models
    ]
    for table, offset in zip(tables, offsets, strict=True):
        table.offset = offset if offset is None or kept is None else offset[kept]
    predicted = [_timed(one, rest, offset) for one, offset in zip(models, offsets, strict=True)]
    if kept is not None:
        predicted = [one.take(kept) for one in predicted]
    checked = sample_rows(len(rows), _CHECKED_ROWS)
    for one, own, found in zip(models, tables, predicted, strict=True):
        one.check_whole(own.sample(checked), found.take(checked))
    return ReportInput(
        models=models,
        tables=tables,
        predicted=predicted,
        truth=truth,
        weight=weight,
        rows=rows,
        target=name,
        training=training,
        segments=segments,
        title=title,
        notes=notes,
    )


def _offset(model: ReportModel, X: Any, n_rows: int, offset: Any) -> Floats | None:
    """Return the offset of the rows for a model that was fitted with one; None for others."""
    if model.engine is None or model.schema.offset is None:
        return None
    return read_offset(model.engine, X, n_rows, offset)


def _timed(model: ReportModel, X: Any, offset: Floats | None) -> Predictions:
    start = time.perf_counter()
    found = model.predicted(X, offset)
    model.timings["predict"] = time.perf_counter() - start
    return found


def _compared(first: ReportModel, second: ReportModel) -> ReportModel:
    """Return the second model; raise ValueError where it has another task."""
    if first.kind != second.kind:
        raise ValueError(
            f"compare is a {second.kind}, but the model is a {first.kind}. Compare two models of "
            "the same target."
        )
    same = first.classes is None or (
        second.classes is not None and np.array_equal(first.classes, second.classes)
    )
    if not same:
        raise ValueError(
            f"compare has the classes {second.classes}, but the model has {first.classes}. "
            "Compare two models of the same classes."
        )
    return second


def _truth(
    model: ReportModel, y: Any, n_rows: int, target_index: int | None
) -> tuple[NDArray[Any], Index, list[str]]:
    """Return the truth of the rows that have one, these rows, and notes."""
    if y is None:
        raise ValueError(
            "report needs the true values y to score predictions, but y is None. Pass one value "
            "for each row, or the name of the column of X that holds them."
        )
    array = _array(y)
    if array.ndim == _SEVERAL and array.shape[1] > 1 and target_index is not None:
        array = array[:, target_index]
    elif array.ndim == _SEVERAL and array.shape[1] == 1:
        array = array[:, 0]
    elif array.ndim == _SEVERAL:
        raise ValueError(
            f"y has {array.shape[1]} columns, but a report shows one target. Pass target_index, "
            f"the number of one, from 0 to {array.shape[1] - 1}."
        )
    missing = _missing(array) if array.ndim == 1 else np.zeros(len(array), np.bool_)
    notes = []
    rows = np.arange(len(array))
    if missing.any() and len(array) == n_rows:
        if missing.all():
            raise ValueError("y has no values: all of them are missing. Pass rows with known y.")
        rows = np.flatnonzero(~missing)
        array = array[rows]
        if array.dtype == object and not any(isinstance(one, str) for one in array):
            array = np.array(array.tolist())  # numbers, now that no None is among them
        count = int(missing.sum())
        notes.append(f"{count:,} rows without a known target are left out.")
        return _encoded(model, target(array, len(rows))), rows, notes
    return _encoded(model, target(y if array.ndim > 1 else array, n_rows)), rows, notes


def _encoded(model: ReportModel, y: NDArray[Any]) -> NDArray[Any]:
    if model.classes is None:
        return numeric_target(y)
    return encode_known_labels(y, model.classes, "y", "the model").astype(np.intp)


def _array(y: Any) -> NDArray[Any]:
    if isinstance(y, list | tuple) and any(isinstance(one, str) for one in y):
        return np.array(y, dtype=object)
    return np.asarray(y)


def _missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "f":
        found: NDArray[np.bool_] = np.isnan(array)
        return found
    if array.dtype.kind == "O":
        return np.array([is_missing(one) for one in array], dtype=np.bool_)
    return np.zeros(len(array), np.bool_)


def _weighted(
    truth: NDArray[Any], rows: Index, weight: Floats, notes: list[str]
) -> tuple[NDArray[Any], Index, Floats]:
    """Return truth, rows and weights of the rows of nonzero weight."""
    own = weight[rows]
    if not own.any():
        raise ValueError(
            "All rows with a known y have a sample_weight of zero. At least one weight must be "
            "above 0."
        )
    if own.all():
        return truth, rows, own
    kept = np.flatnonzero(own)
    notes.append(f"{len(own) - len(kept):,} rows of weight 0 are left out.")
    return truth[kept], rows[kept], own[kept]


def _training(
    model: ReportModel, options: ReportOptions, given_y: Any, notes: list[str]
) -> TrainingRows | None:
    X, y = options.X_train, options.y_train
    if X is None:
        if y is not None:
            raise ValueError("y_train was passed without X_train. Pass both, or neither.")
        return None
    name = y if isinstance(y, str) else given_y if y is None else None
    if isinstance(name, str):
        try:
            X, y, _ = split_target(X, name)
        except ValueError:
            if isinstance(y, str):
                raise
            y = None
        y = None if isinstance(y, str) else y
    table = model.report_table(X)
    if table.n_rows == 0:
        raise ValueError("X_train has no rows. Pass the training rows, or leave it out.")
    if y is None:
        return TrainingRows(table, None)
    try:
        truth, rows, _ = _truth(model, y, table.n_rows, options.target_index)
    except ValueError as error:
        raise ValueError(f"y_train: {error}") from error
    if len(rows) < table.n_rows:
        notes.append(f"{table.n_rows - len(rows):,} training rows have no known target.")
        table = model.report_table(X, rows)
    return TrainingRows(table, truth)


def _segments(model: ReportModel, segments: Sequence[str | int] | None) -> list[int]:
    if segments is None:
        return []
    given = [segments] if isinstance(segments, str | int) else list(segments)
    schema = model.schema
    return feature_indices(
        given, schema.names, schema.n_features, parameter="segments", owner="the model"
    )


def _title(title: str | None, model: ReportModel) -> str:
    if title is None:
        target = model.schema.target
        return f"Report: {target}" if target else "Model report"
    if not isinstance(title, str):
        raise InputTypeError(f"title={title!r} is not allowed: it must be a string.")
    return title
