"""Arguments of a report -> models, rows and truth, checked before any work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import checked_threads, lazy_property
from arboost.data.feature_names import feature_indices, names_of, split_offset, split_target
from arboost.data.raw_table import is_missing
from arboost.data.target import encode_known_labels, numeric_target, target, weights
from arboost.errors import InputTypeError
from arboost.losses.intervals import Replicates, sample_rows
from arboost.losses.links import read_offset
from arboost.losses.metrics import log_losses
from arboost.report.models import Predictions, ReportModel
from arboost.report.table import Floats, Index, ReportTable

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
    truth : array of shape (n_rows,)
        Values, or class codes.
    weight : float64 array of shape (n_rows,), or None
    rows : int array of shape (n_rows,)
        Row numbers in X.
    target : str or None
        Name of the target.
    training : TrainingRows or None
    segments : list of int
        Features of the first model that the user wants as segments.
    title : str
    notes : list of str
    model_rows : list of ModelRows
        The model; to compare, also the second one.
    """

    truth: NDArray[Any]
    weight: Floats | None
    rows: Index
    target: str | None
    training: TrainingRows | None
    segments: list[int]
    title: str
    notes: list[str]
    model_rows: list[ModelRows] = field(default_factory=list)
    _replicates: dict[int, Replicates] = field(default_factory=dict)

    def replicates(self, most: int) -> Replicates:
        """Bootstrap weights of at most `most` of the rows; all scores share them."""
        if most not in self._replicates:
            self._replicates[most] = Replicates.of(self.n_rows, most)
        return self._replicates[most]

    @property
    def n_rows(self) -> int:
        """Number of rows of the report."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class ModelRows:
    """A model, the rows of a report in its columns, and its predictions of them."""

    inputs: ReportInput
    model: ReportModel
    table: ReportTable
    predicted: Predictions

    @property
    def n_rows(self) -> int:
        """Number of rows of the report."""
        return self.inputs.n_rows

    @property
    def truth(self) -> NDArray[Any]:
        """Values, or class codes."""
        return self.inputs.truth

    @property
    def weight(self) -> Floats | None:
        """Weights of the rows; None where all are equal."""
        return self.inputs.weight

    @lazy_property
    def classes(self) -> list[str]:
        """Labels of the classes as text; empty for regression."""
        labels = self.model.classes
        return [] if labels is None else [str(label) for label in labels.tolist()]

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for regression."""
        return len(self.classes)

    def weights(self, rows: Any = slice(None)) -> Floats:
        """Weights of some of the rows, 1 where all are equal."""
        every = np.ones(self.n_rows) if self.weight is None else self.weight
        weights: Floats = every[rows]
        return weights

    def class_totals(self, codes: Index | None = None) -> NDArray[Any]:
        """Weight of the rows of each class, by the truth or by other codes."""
        codes = self.truth if codes is None else codes
        return np.bincount(codes, self.weight, minlength=self.n_classes)


def row_losses(
    model: ReportModel, truth: NDArray[Any], predicted: Predictions
) -> tuple[Floats, str]:
    """Loss of each row, lower is better, and its name."""
    if predicted.proba is not None:
        return log_losses(truth, predicted.proba), "log loss"
    if predicted.codes is not None:
        return (predicted.codes != truth).astype(np.float64), "share of wrong classes"
    assert predicted.values is not None
    if predicted.quantiles is not None and model.alphas is not None:
        return pinball_losses(truth, predicted.quantiles, model.alphas), "pinball loss"
    return np.abs(predicted.values - truth), "mean absolute error"


def class_probability(codes: Index, proba: Floats) -> Floats:
    """Probability of a class in each row."""
    chosen: Floats = np.take_along_axis(proba, codes[:, np.newaxis], axis=1)[:, 0]
    return chosen


def pinball_losses(truth: Floats, quantiles: Floats, alphas: Floats) -> Floats:
    """Mean pinball loss of the quantiles of each row."""
    error = truth[:, np.newaxis] - quantiles
    losses: Floats = np.maximum(alphas * error, (alphas - 1.0) * error).mean(axis=1)
    return losses


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
    """Checked arguments of a report, with predictions of all rows.

    Raises
    ------
    ValueError, TypeError
        An argument that is not allowed, or that does not fit the others.
    arboost.SchemaError
        X has other columns than a model.
    """
    checked_threads(options.n_jobs)
    table, truth_values, name = split_target(X, y)
    models = _models(model, options)
    first = models[0]
    segments, title = _segments(first, options.segments), _title(options.title, first)
    features = split_offset(table, options.offset)[0]
    whole = first.report_table(features)
    n_rows = whole.n_rows
    if n_rows == 0:
        raise ValueError("X has no rows, so there is nothing to report on. Pass at least one row.")
    truth, rows, notes = _truth(first, truth_values, n_rows, options.target_index)
    weight = weights(options.sample_weight, n_rows)
    if weight is not None:
        truth, rows, weight = _weighted(truth, rows, weight, notes)
    training = _training(first, options, y, notes)
    offsets = [_offset(reported, table, n_rows, options.offset) for reported in models]
    if options.offset is not None and all(offset is None for offset in offsets):
        raise ValueError("offset was passed, but the model was fitted without one. Leave it out.")
    inputs = ReportInput(
        truth=truth,
        weight=weight,
        rows=rows,
        target=first.schema.target if name is None else name,
        training=training,
        segments=segments,
        title=title,
        notes=notes,
    )
    checked = sample_rows(len(rows), _CHECKED_ROWS)
    for reported, offset in zip(models, offsets, strict=True):
        if len(rows) < n_rows:
            report_table = reported.report_table(features, rows)
        else:
            report_table = whole if reported is first else reported.report_table(features)
        report_table.offset = None if offset is None else offset[rows]
        start = time.perf_counter()
        predicted = reported.predicted(features, offset)
        reported.timings["predict"] = time.perf_counter() - start
        if len(rows) < n_rows:
            predicted = predicted.take(rows)
        reported.check_whole(report_table.sample(checked), predicted.take(checked))
        inputs.model_rows.append(ModelRows(inputs, reported, report_table, predicted))
    return inputs


def _offset(model: ReportModel, X: Any, n_rows: int, offset: Any) -> Floats | None:
    """Offset of the rows for a model that was fitted with one; None for others."""
    if model.engine is None or model.schema.offset is None:
        return None
    return read_offset(model.engine, X, n_rows, offset)


def _models(model: Any, options: ReportOptions) -> list[ReportModel]:
    """The model, and the one to compare it with, of the same task."""
    first = ReportModel(model, options.target_index, options.n_jobs)
    if options.compare is None:
        return [first]
    if not hasattr(options.compare, "predict"):
        raise InputTypeError(
            f"compare={options.compare!r} is not allowed: it must be a fitted model, such as "
            "an estimator or the result of arboost.load."
        )
    second = ReportModel(options.compare, options.target_index, options.n_jobs)
    if first.kind != second.kind:
        raise ValueError(
            f"compare is a {second.kind}, but the model is a {first.kind}. Compare two models of "
            "the same target."
        )
    if first.classes is not None and not np.array_equal(first.classes, np.asarray(second.classes)):
        raise ValueError(
            f"compare has the classes {second.classes}, but the model has {first.classes}. "
            "Compare two models of the same classes."
        )
    return [first, second]


def _truth(
    model: ReportModel, y: Any, n_rows: int, target_index: int | None
) -> tuple[NDArray[Any], Index, list[str]]:
    """Truth of the rows that have one, these rows, and notes."""
    if y is None:
        raise ValueError(
            "report needs the true values y to score predictions, but y is None. Pass one value "
            "for each row, or the name of the column of X that holds them."
        )
    array = _array(y)
    if array.ndim == _SEVERAL and array.shape[1] == 1:
        array = array[:, 0]
    elif array.ndim == _SEVERAL and target_index is not None:
        array = array[:, target_index]
    elif array.ndim == _SEVERAL:
        raise ValueError(
            f"y has {array.shape[1]} columns, but a report shows one target. Pass target_index, "
            f"its number, from 0 to {array.shape[1] - 1}."
        )
    missing = _missing(array) if array.ndim == 1 else np.zeros(n_rows, np.bool_)
    if not missing.any() or len(array) != n_rows:
        truth = target(array if array.ndim == 1 else y, n_rows)
        return _encoded(model, truth), np.arange(n_rows), []
    if missing.all():
        raise ValueError("y has no values: all of them are missing. Pass rows with known y.")
    rows = np.flatnonzero(~missing)
    array = array[rows]
    if array.dtype == object and not any(isinstance(value, str) for value in array):
        array = np.array(array.tolist())  # numbers, now that no None is among them
    notes = [f"{int(missing.sum()):,} rows without a known target are left out."]
    return _encoded(model, target(array, len(rows))), rows, notes


def _encoded(model: ReportModel, y: NDArray[Any]) -> NDArray[Any]:
    if model.classes is None:
        return numeric_target(y)
    return encode_known_labels(y, model.classes, "y", "the model").astype(np.intp)


def _array(y: Any) -> NDArray[Any]:
    if isinstance(y, list | tuple) and any(isinstance(value, str) for value in y):
        return np.array(y, dtype=object)
    return np.asarray(y)


def _missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "O":
        return np.array([is_missing(value) for value in array], dtype=np.bool_)
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), np.bool_)


def _weighted(
    truth: NDArray[Any], rows: Index, weight: Floats, notes: list[str]
) -> tuple[NDArray[Any], Index, Floats]:
    """Truth, rows and weights of the rows of nonzero weight."""
    weight = weight[rows]
    weighted = np.flatnonzero(weight)
    if not len(weighted):
        raise ValueError(
            "All rows with a known y have a sample_weight of zero. At least one weight must be "
            "above 0."
        )
    if len(weighted) < len(rows):
        notes.append(f"{len(rows) - len(weighted):,} rows of weight 0 are left out.")
    return truth[weighted], rows[weighted], weight[weighted]


def _training(
    model: ReportModel, options: ReportOptions, test_y: Any, notes: list[str]
) -> TrainingRows | None:
    X, y = options.X_train, options.y_train
    if X is None:
        if y is not None:
            raise ValueError("y_train was passed without X_train. Pass both, or neither.")
        return None
    if y is None and isinstance(test_y, str) and test_y in (names_of(X) or ()):
        y = test_y
    X, y, _ = split_target(X, y)
    table = model.report_table(X)
    if table.n_rows == 0:
        raise ValueError("X_train has no rows. Pass the training rows, or leave it out.")
    if y is None:
        return TrainingRows(table, None)
    try:
        truth, rows, _ = _truth(model, y, table.n_rows, options.target_index)
    except (ValueError, InputTypeError) as error:
        kind = InputTypeError if isinstance(error, InputTypeError) else ValueError
        raise kind(f"y_train: {error}") from error
    if len(rows) < table.n_rows:
        notes.append(f"{table.n_rows - len(rows):,} training rows have no known target.")
        table = model.report_table(X, rows)
    return TrainingRows(table, truth)


def _segments(model: ReportModel, segments: Sequence[str | int] | None) -> list[int]:
    if segments is None:
        return []
    features = [segments] if isinstance(segments, str | int) else list(segments)
    schema = model.schema
    return feature_indices(
        features, schema.names, schema.n_features, parameter="segments", owner="the model"
    )


def _title(title: str | None, model: ReportModel) -> str:
    if title is None:
        target = model.schema.target
        return f"Report: {target}" if target else "Model report"
    if not isinstance(title, str):
        raise InputTypeError(f"title={title!r} is not allowed: it must be a string.")
    return title
