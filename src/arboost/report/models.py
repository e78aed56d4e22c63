"""A fitted model of any kind in the form that all sections of a report read."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost import Predictor
from arboost.backend import lazy_property
from arboost.data.schema import Schema
from arboost.data.target import encode_known_labels
from arboost.errors import InputTypeError
from arboost.plots.drawing import check_fitted
from arboost.report.table import Floats, Index, ReportTable, Sample, plain_table, table_like

_TWO = 2
_MOST_CELLS = 8_000_000  # values of a table that is predicted at a time
_MEDIAN = 0.5
_UNKNOWN_WORK = 1000.0
_SMALL_TREE = 500.0  # nodes


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of some rows.

    Attributes
    ----------
    codes : int array of shape (n_rows,), or None for regression
        Index of the predicted class.
    proba : float64 array of shape (n_rows, n_classes), or None
        Class probabilities; None for regression and for hard votes.
    values : float64 array of shape (n_rows,), or None for classification
        Predicted values; of several quantiles the one nearest to the median.
    quantiles : float64 array of shape (n_rows, n_quantiles), or None
        All predicted quantiles, ascending.
    """

    codes: Index | None = None
    proba: Floats | None = None
    values: Floats | None = None
    quantiles: Floats | None = None

    @classmethod
    def concatenated(cls, parts: Sequence[Predictions]) -> Predictions:
        """Predictions of several parts, one after the other."""
        columns = ([getattr(part, field.name) for part in parts] for field in fields(cls))
        return cls(*(None if arrays[0] is None else np.concatenate(arrays) for arrays in columns))

    def take(self, rows: Any) -> Predictions:
        """Predictions of some of the rows."""
        arrays = (getattr(self, field.name) for field in fields(self))
        return Predictions(*(None if array is None else array[rows] for array in arrays))


@dataclass(frozen=True, eq=False)
class ChangedRows:
    """Rows of a sample with other numbers in some columns.

    Attributes
    ----------
    positions : int array of shape (n_rows,)
        Positions in the sample, with repetitions.
    changes : dict of int to float64 array of shape (n_rows,)
        New numbers by feature.
    """

    positions: Index
    changes: Mapping[int, Floats]


class ReportModel:
    """A model as the sections of a report read it.

    Parameters
    ----------
    model : Predictor, EnsemblePredictor or fitted estimator
    target_index : int or None
        Target to report on, of a model of several.
    n_jobs : int or None
        Number of threads; None for that of an estimator, or for all.

    Attributes
    ----------
    argument, model : Predictor, EnsemblePredictor or fitted estimator
        The argument, and the model with the number of threads of the report.
    kind : {"classifier", "regressor"}
    classes : array of shape (n_classes,), or None
    engine : Predictor or None
        The trees, where the model is trees of the engine.
    schema : Schema
    """

    def __init__(self, model: Any, target_index: int | None, n_jobs: int | None) -> None:
        self.argument = model
        self.is_estimator = hasattr(model, "fit")
        check_fitted(model)
        if not self.is_estimator and getattr(model, "device", "cpu") != "cpu":
            model = model.to("cpu")  # stages and quantiles have no kernels; predictions are equal
        if self.is_estimator and n_jobs is not None and hasattr(model, "n_jobs"):
            model = copy.copy(model)
            model.n_jobs = n_jobs
        self.model = model
        inner = getattr(model, "model_", model) if self.is_estimator else model
        self.engine: Predictor | None = inner.to("cpu") if isinstance(inner, Predictor) else None
        self._inner: Any = self.engine or inner
        classes = getattr(model, "classes_", getattr(model, "classes", None))
        self.kind = getattr(model, "kind", None) or (
            "classifier" if classes is not None else "regressor"
        )
        self._target, self.classes = _chosen_target(self._inner, classes, target_index)
        self.schema = _schema(model, self._inner)
        self._n_jobs = n_jobs
        # Loaded models and trees of the engine read a table of any type.
        self._reads_any = self.engine is not None or not self.is_estimator
        self.is_whole = True  # until `check_whole` finds that trees are a part of the model
        self._is_likeliest = False  # until the first predictions show it
        self.timings: dict[str, float] = {}

    @property
    def history(self) -> Mapping[str, Any]:
        """History of the fit, as `arboost.models.metadata` describes it; empty if unknown."""
        provenance: Mapping[str, Any] = getattr(self._inner, "provenance", {})
        history: Mapping[str, Any] = provenance.get("history", {})
        return history

    @property
    def n_rounds(self) -> int:
        """Number of rounds; 0 for a model that has none."""
        return int(getattr(self._inner, "n_rounds", 0))

    @property
    def params(self) -> Mapping[str, Any]:
        """Parameters of the fit of trees; empty for other models."""
        return {} if self.engine is None else self.engine.params

    @property
    def task(self) -> str:
        """One of "binary", "multiclass" and "regression"."""
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) == _TWO else "multiclass"

    @property
    def target_index(self) -> int:
        """Index of the target among those of the model; 0 for a single one."""
        return self._target or 0

    @property
    def value_column(self) -> int:
        """Column of the predicted values that the report is about."""
        if self.alphas is None:
            return self.target_index
        return int(np.argmin(np.abs(self.alphas - _MEDIAN)))

    @lazy_property
    def alphas(self) -> Floats | None:
        """Probabilities of the quantiles that the model predicts; None unless there are several."""
        if self.params.get("loss") != "quantile":
            return None
        alphas = np.sort(np.atleast_1d(np.asarray(self.params["alpha"], dtype=np.float64)))
        return alphas if len(alphas) > 1 else None

    @lazy_property
    def file_hash(self) -> str | None:
        """SHA-256 of the model file; None where the model has none."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.arb")
            try:
                self.model.save(path)
            except (AttributeError, TypeError, ValueError):  # members that no file holds
                return None
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()

    @property
    def row_work(self) -> float:
        """Cost of the prediction of a row, in walks through small trees.

        Walks through trees that fit no cache cost more, in proportion to their nodes. Of models
        without trees the cost is not known: it is taken to be that of a thousand trees.
        """
        if self.engine is None:
            return _UNKNOWN_WORK
        return max(self.engine.n_trees + self.engine.forest.n_nodes / _SMALL_TREE, 1.0)

    def report_table(self, X: Any, rows: Index | None = None) -> ReportTable:
        """Table with the columns of the model, of all rows or of some."""
        return ReportTable(X, self.schema, rows, type(self.model).__name__)

    def table(
        self,
        sample: Sample,
        positions: Index | None = None,
        changes: Mapping[int, Floats] | None = None,
    ) -> Any:
        """Rows of a sample as a table that the model reads, with other numbers in some columns."""
        chosen = np.arange(len(sample)) if positions is None else positions
        changes = {} if changes is None else changes
        columns = [
            column.values(changes[i] if i in changes else column.numbers[chosen])
            for i, column in enumerate(sample.columns)
        ]
        names = self.schema.names
        if self._reads_any:
            return plain_table(names, columns)
        return table_like(sample.table.X, names, columns)

    def call(self, method: str, X: Any, offset: Floats | None = None, **options: Any) -> Any:
        """Result of a public method; estimators have a number of threads themselves."""
        if offset is not None:
            options["offset"] = offset
        if not self.is_estimator:
            options["n_jobs"] = self._n_jobs
        return getattr(self.model, method)(X, **options)

    def predicted(self, X: Any, offset: Floats | None = None) -> Predictions:
        """Predictions of a table, whose rows may have an offset."""
        if self.classes is None:
            return self._values(self.call("predict", X, offset))
        proba = None
        with contextlib.suppress(AttributeError, TypeError):  # hard votes, members without any
            proba = self._of_target(self.call("predict_proba", X, offset))
        codes = self._codes(self.call("predict", X, offset))
        if proba is not None and not self._is_likeliest:
            self._is_likeliest = bool((proba.argmax(axis=1) == codes).all())
        return Predictions(codes=codes, proba=proba)

    def _predicted_again(self, X: Any, offset: Floats | None) -> Predictions:
        """Predictions of changed rows.

        Where the classes of all rows of the report were the likeliest ones, those of changed rows
        are taken to be, which saves a second pass.
        """
        if not self._is_likeliest:
            return self.predicted(X, offset)
        proba = self._of_target(self.call("predict_proba", X, offset))
        return Predictions(codes=proba.argmax(axis=1), proba=proba)

    def _of_target(self, probabilities: Any) -> Floats:
        chosen: Floats = (
            probabilities[self.target_index] if isinstance(probabilities, list) else probabilities
        )
        return chosen

    def _values(self, predictions: Any) -> Predictions:
        values = np.asarray(predictions, dtype=np.float64)
        if self.alphas is not None and values.ndim > 1:
            return Predictions(values=values[:, self.value_column], quantiles=values)
        if values.ndim > 1 or self._target is not None:
            n_targets = 1 if values.ndim == 1 else values.shape[1]
            values = values.reshape(len(values), -1)[:, _checked_index(self._target, n_targets)]
        return Predictions(values=values)

    def _codes(self, predictions: Any) -> Index:
        """Index of each predicted label in the classes."""
        assert self.classes is not None
        labels = np.asarray(predictions)
        if labels.ndim > 1:
            labels = labels[:, self.target_index]
        return encode_known_labels(labels, self.classes, "prediction", "the model").astype(np.intp)

    def predicted_blocks(self, sample: Sample, blocks: Sequence[ChangedRows]) -> list[Predictions]:
        """Predictions of blocks of changed rows, in as few calls as memory allows."""
        sizes = [len(block.positions) for block in blocks]
        if not sum(sizes):
            return [Predictions()] * len(blocks)
        changes = [sample.with_parts(block.changes) for block in blocks]
        positions = np.concatenate([block.positions for block in blocks])
        ends = np.cumsum(sizes).tolist()
        starts = [end - size for size, end in zip(sizes, ends, strict=True)]
        step = max(_MOST_CELLS // max(len(sample.columns), 1), 1)
        parts = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table itself was predicted with its warnings
            for begin in range(0, len(positions), step):
                rows = positions[begin : begin + step]
                new: dict[int, Floats] = {}
                for k, start in enumerate(starts):
                    low, high = max(start, begin), min(ends[k], begin + step)
                    if low >= high:
                        continue
                    for feature, numbers in changes[k].items():
                        if feature not in new:
                            new[feature] = sample.columns[feature].numbers[rows]
                        new[feature][low - begin : high - begin] = numbers[
                            low - start : high - start
                        ]
                offset = None if sample.offset is None else sample.offset[rows]
                parts.append(self._predicted_again(self.table(sample, rows, new), offset))
        predicted = Predictions.concatenated(parts)
        return [predicted.take(slice(*bounds)) for bounds in zip(starts, ends, strict=True)]

    def check_whole(self, sample: Sample, predicted: Predictions) -> None:
        """Find out whether predictions of some rows are those of the trees alone.

        Estimators with scikit-learn's interface may add a first estimator, or have class
        probabilities of another kind: then stages and SHAP values of the trees explain something
        else.
        """
        if self.engine is None or not self.is_estimator:
            return
        trees = ReportModel(self.engine, self._target, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = trees.predicted(self.table(sample), sample.offset)
        names = ("proba", "codes", "values")
        name = next(name for name in names if getattr(predicted, name) is not None)
        parts = (getattr(predicted, name), getattr(expected, name))
        self.is_whole = bool(np.allclose(*parts, rtol=1e-9, atol=1e-12))

    def stages(self, sample: Sample) -> Iterator[Floats]:
        """Yield the probabilities or values of the trees after each round."""
        assert self.engine is not None
        X, offset, n_jobs = self.table(sample), sample.offset, self._inner_jobs
        if self.classes is not None:
            for proba in self.engine.staged_predict_proba(X, offset=offset, n_jobs=n_jobs):
                yield self._of_target(proba)
            return
        for predictions in self.engine.staged_predict(X, offset=offset, n_jobs=n_jobs):
            values = np.asarray(predictions, np.float64)
            yield values if values.ndim == 1 else values[:, self.value_column]

    def raw(self, X: Any) -> Floats:
        """Raw scores of a model with rounds, before its link."""
        scores: Floats = self._inner.predict_raw(X, n_jobs=self._inner_jobs)
        return scores

    @property
    def _inner_jobs(self) -> int | None:
        jobs: int | None = getattr(self.model, "n_jobs", self._n_jobs)
        return jobs

    def shap(self, sample: Sample) -> tuple[Floats, Floats] | None:
        """SHAP values (n_rows, n_features, n_outputs) and base values, where they exist."""
        if not self.is_whole:
            return None
        options = {} if self.is_estimator else {"n_jobs": self._n_jobs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values = np.asarray(self.call("shap_values", self.table(sample)))
                base = np.asarray(self.model.expected_value(**options))
            except (AttributeError, TypeError, ValueError):
                return None
        values = values.reshape(*values.shape[:2], -1)
        outputs = slice(None)
        targets = () if self.engine is None else self.engine.targets
        if targets and self._target is not None:
            first = sum(targets[: self._target])
            outputs = slice(first, first + targets[self._target])
        return values[:, :, outputs], np.atleast_1d(base)[outputs]


def _chosen_target(
    inner: Any, classes: Any, target_index: int | None
) -> tuple[int | None, NDArray[Any] | None]:
    """Index of the target, and its classes; raise ValueError where an index is missing."""
    n_targets = len(getattr(inner, "targets", ()) or ())
    if isinstance(classes, list | tuple):
        n_targets = len(classes)
    if not n_targets:
        is_known = classes is not None or isinstance(inner, Predictor)
        if is_known and target_index is not None:
            _checked_index(target_index, 1)
        # Ensembles of other regressors show their number of targets only by predictions.
        return target_index, None if classes is None else np.asarray(classes)
    index = _checked_index(target_index, n_targets)
    labels = classes[index] if isinstance(classes, list | tuple) else None
    return index, None if labels is None else np.asarray(labels)


def _checked_index(target_index: int | None, n_targets: int) -> int:
    if n_targets == 1:
        raise ValueError(
            f"target_index={target_index!r} is not allowed: the model has one target. Leave it out."
        )
    is_index = isinstance(target_index, int) and not isinstance(target_index, bool)
    if not is_index or not 0 <= int(target_index or 0) < n_targets:
        raise ValueError(
            f"target_index={target_index!r} is not allowed: the model has {n_targets} targets, and "
            f"a report shows one of them. Use a number from 0 to {n_targets - 1}."
        )
    return int(target_index or 0)


def _schema(model: Any, inner: Any) -> Schema:
    """The columns that a model was fitted on."""
    known = getattr(inner, "schema", None)
    if isinstance(known, Schema):
        return known
    names = getattr(model, "feature_names_in_", None)
    n_features = getattr(model, "n_features_in_", None)
    if n_features is None:
        raise InputTypeError(
            f"report needs a model of a table, but {type(model).__name__} was fitted on something "
            "else, such as a list of texts. Pass a model that was fitted on a table."
        )
    return Schema(None if names is None else tuple(map(str, names)), int(n_features))
