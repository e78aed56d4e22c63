"""A fitted model of any kind in the form that all sections of a report read."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import lazy_property, threads
from arboost.data.schema import Schema
from arboost.errors import InputTypeError
from arboost.losses.links import predictions, probabilities
from arboost.models.importances import split_importances
from arboost.models.model import Model
from arboost.models.prediction import raw_scores, staged_raw_scores
from arboost.report.table import ReportTable, Sample, plain_table, table_like

Floats = NDArray[np.float64]
Index = NDArray[np.intp]


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

    def take(self, rows: Any) -> Predictions:
        """Return the predictions of some of the rows."""
        parts = (self.codes, self.proba, self.values, self.quantiles)
        return Predictions(*(None if part is None else part[rows] for part in parts))


@dataclass(frozen=True, eq=False)
class ChangedRows:
    """Rows of a sample with other numbers in some columns.

    Attributes
    ----------
    places : int array of shape (n_rows,)
        Rows of the sample, with repetitions.
    changes : dict of int to float64 array of shape (n_rows,)
        New numbers by feature.
    """

    places: Index
    changes: Mapping[int, Floats]

    def pieces(self, most: int) -> list[ChangedRows]:
        """Return blocks of at most so many rows."""
        if len(self.places) <= most:
            return [self] if len(self.places) else []
        parts = [slice(begin, begin + most) for begin in range(0, len(self.places), most)]
        return [
            ChangedRows(
                self.places[part], {i: numbers[part] for i, numbers in self.changes.items()}
            )
            for part in parts
        ]


def merge_blocks(sample: Sample, blocks: Sequence[ChangedRows]) -> tuple[Index, dict[int, Floats]]:
    """Return the rows of several blocks as those of one."""
    if len(blocks) == 1:
        return blocks[0].places, dict(blocks[0].changes)
    places = np.concatenate([block.places for block in blocks])
    changes: dict[int, Floats] = {}
    begin = 0
    for block in blocks:
        end = begin + len(block.places)
        for feature, numbers in block.changes.items():
            if feature not in changes:
                changes[feature] = sample.columns[feature].numbers[places]
            changes[feature][begin:end] = numbers
        begin = end
    return places, changes


def split_predictions(predicted: Predictions, sizes: list[int]) -> list[Predictions]:
    """Return the predictions of consecutive rows, of so many rows each."""
    ends = np.cumsum(sizes).tolist()
    return [predicted.take(slice(end - n, end)) for n, end in zip(sizes, ends, strict=True)]


def concatenate_predictions(parts: list[Predictions]) -> Predictions:
    """Return the predictions of several parts, one after the other."""

    def join(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if not arrays or arrays[0] is None else np.concatenate(arrays)

    if len(parts) == 1:
        return parts[0]
    return Predictions(join("codes"), join("proba"), join("values"), join("quantiles"))


_TWO = 2
_MOST_CELLS = 8_000_000  # values of a table that is predicted at a time
_MEDIAN = 0.5
_UNKNOWN_WORK = 1000.0
_SMALL_TREE = 500.0  # nodes


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
    given, model : Predictor, EnsemblePredictor or fitted estimator
        The model as it was given, and with the number of threads of the report.
    kind : {"classifier", "regressor"}
    classes : array of shape (n_classes,), or None
    engine : Model or None
        The trees, where the model is trees of the engine.
    schema : Schema
    """

    def __init__(self, model: Any, target_index: int | None, n_jobs: int | None) -> None:
        self.given = model
        self.is_estimator = hasattr(model, "fit")
        if not self.is_estimator and getattr(model, "device", "cpu") != "cpu":
            model = model.to("cpu")  # stages and quantiles have no kernels; predictions are equal
        if self.is_estimator:
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(model)
            if n_jobs is not None and hasattr(model, "n_jobs"):
                model = copy.copy(model)
                model.n_jobs = n_jobs
        self.model = model
        inner = getattr(model, "model_", model) if self.is_estimator else model
        if isinstance(inner, Model):
            inner = inner.to("cpu")
        self._inner = inner
        self.engine: Model | None = inner if isinstance(inner, Model) else None
        classes = getattr(model, "classes_", getattr(model, "classes", None))
        self.kind = getattr(model, "kind", None) or (
            "classifier" if classes is not None else "regressor"
        )
        self._target, self.classes = _chosen_target(inner, classes, target_index)
        self.schema = _schema(model, inner)
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
        alphas = self.alphas
        if alphas is None:
            return self.target_index
        return int(np.argmin(np.abs(alphas - _MEDIAN)))

    @property
    def alphas(self) -> Floats | None:
        """Probabilities of the quantiles that the model predicts; None unless there are several."""
        params = getattr(self.engine, "params", {})
        if params.get("loss") != "quantile":
            return None
        alphas = np.sort(np.atleast_1d(np.asarray(params["alpha"], dtype=np.float64)))
        return alphas if len(alphas) > 1 else None

    @property
    def combine(self) -> str:
        """Combination of the trees; "" for models without trees."""
        return "" if self.engine is None else self.engine.combine

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

    def engine_importances(self) -> Floats:
        """Return the total gain of the splits on each feature."""
        assert self.engine is not None
        return split_importances(self.engine, "gain")

    def check_whole(self, sample: Sample, predicted: Predictions) -> None:
        """Find out whether predictions of some rows are those of the trees alone.

        Estimators with scikit-learn's interface may add a first estimator, or have class
        probabilities of another kind: then stages and SHAP values of the trees explain something
        else.
        """
        if self.engine is None or not self.is_estimator:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            raw = raw_scores(self.engine, self.table(sample), sample.offset, n_threads=1)
        if predicted.proba is None:
            values = np.asarray(predictions(self.engine, raw))
            own = values if values.ndim == 1 else values[:, self.value_column]
            expected = own if self.classes is None else self.codes_of(own)
            given = predicted.values if self.classes is None else predicted.codes
        else:
            found = probabilities(self.engine, raw)
            expected = found[self.target_index] if isinstance(found, list) else found
            given = predicted.proba
        self.is_whole = bool(np.allclose(np.asarray(given), expected, rtol=1e-9, atol=1e-12))

    def stages(self, sample: Sample) -> Iterator[Floats]:
        """Yield the raw scores of the trees after each round."""
        assert self.engine is not None
        X, n_threads = self.table(sample), threads(self._inner_jobs)
        return staged_raw_scores(self.engine, X, sample.offset, n_threads=n_threads)

    def raw(self, X: Any) -> Floats:
        """Return the raw scores of a model with rounds, before its link."""
        scores: Floats = self._inner.predict_raw(X, n_jobs=self._inner_jobs)
        return scores

    @property
    def _inner_jobs(self) -> int | None:
        jobs: int | None = getattr(self.model, "n_jobs", self._n_jobs)
        return jobs

    def call(self, method: str, X: Any, offset: Floats | None = None, **options: Any) -> Any:
        """Return the result of a public method; estimators have a number of threads themselves."""
        if offset is not None:
            options["offset"] = offset
        if not self.is_estimator:
            options["n_jobs"] = self._n_jobs
        return getattr(self.model, method)(X, **options)

    def predicted(self, X: Any, offset: Floats | None = None) -> Predictions:
        """Return the predictions of a table, whose rows may have an offset."""
        if self.classes is not None:
            return self._classified(X, offset)
        values = np.asarray(self.call("predict", X, offset), dtype=np.float64)
        if self.alphas is not None and values.ndim > 1:
            return Predictions(values=values[:, self.value_column], quantiles=values)
        if values.ndim > 1 or self._target is not None:
            n_targets = 1 if values.ndim == 1 else values.shape[1]
            values = values.reshape(len(values), -1)[:, _checked_index(self._target, n_targets)]
        return Predictions(values=values)

    def _predicted_again(self, X: Any, offset: Floats | None) -> Predictions:
        """Return the predictions of changed rows.

        Where the classes of all given rows were the likeliest ones, those of changed rows are taken
        to be, which saves a second pass.
        """
        if not self._is_likeliest:
            return self.predicted(X, offset)
        found = self.call("predict_proba", X, offset)
        proba = found if isinstance(found, np.ndarray) else found[self.target_index]
        return Predictions(codes=proba.argmax(axis=1), proba=proba)

    def _classified(self, X: Any, offset: Floats | None) -> Predictions:
        proba = None
        with contextlib.suppress(AttributeError, TypeError):  # hard votes, members without any
            found = self.call("predict_proba", X, offset)
            proba = found if isinstance(found, np.ndarray) else found[self.target_index]
        labels = np.asarray(self.call("predict", X, offset))
        if labels.ndim > 1:
            labels = labels[:, self.target_index]
        codes = self.codes_of(labels)
        if proba is not None and not self._is_likeliest:
            self._is_likeliest = bool((proba.argmax(axis=1) == codes).all())
        return Predictions(codes=codes, proba=proba)

    def codes_of(self, labels: NDArray[Any]) -> Index:
        """Return the index of each predicted label in the classes."""
        assert self.classes is not None
        order = np.argsort(self.classes, kind="stable")
        found = np.searchsorted(self.classes, labels, sorter=order)
        return order[np.minimum(found, len(order) - 1)].astype(np.intp)

    def predicted_blocks(self, sample: Sample, blocks: Sequence[ChangedRows]) -> list[Predictions]:
        """Return the predictions of blocks of changed rows, in as few calls as memory allows."""
        blocks = [ChangedRows(block.places, sample.with_parts(block.changes)) for block in blocks]
        step = max(_MOST_CELLS // max(len(sample.columns), 1), 1)
        parts = [piece for block in blocks for piece in block.pieces(step)]
        found: list[Predictions] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table itself was predicted with its warnings
            while parts:
                count, n_rows = 1, len(parts[0].places)
                while count < len(parts) and n_rows + len(parts[count].places) <= step:
                    n_rows += len(parts[count].places)
                    count += 1
                places, changes = merge_blocks(sample, parts[:count])
                offset = None if sample.offset is None else sample.offset[places]
                predicted = self._predicted_again(self.table(sample, places, changes), offset)
                found += split_predictions(predicted, [len(part.places) for part in parts[:count]])
                parts = parts[count:]
        sizes = [-(-len(block.places) // step) for block in blocks]
        ends = np.cumsum(sizes).tolist()
        return [
            concatenate_predictions(found[end - size : end])
            for size, end in zip(sizes, ends, strict=True)
        ]

    def predicted_sample(
        self, sample: Sample, places: Index, changes: Mapping[int, Floats]
    ) -> Predictions:
        """Return the predictions of rows of a sample, with other numbers in some columns."""
        return self.predicted_blocks(sample, [ChangedRows(places, changes)])[0]

    def table(
        self,
        sample: Sample,
        places: Index | None = None,
        changes: Mapping[int, Floats] | None = None,
    ) -> Any:
        """Return rows of a sample as a table that the model reads."""
        chosen = np.arange(len(sample)) if places is None else places
        names = self.schema.names
        matrix = sample.changed_matrix(chosen, changes or {})
        columns: list[NDArray[Any]] = []
        if matrix is None:
            columns = sample.changed(chosen, changes or {})
        elif names is not None:
            columns = list(matrix.T)
        if not self._reads_any:
            return table_like(sample.table.X, names, columns, matrix)
        return plain_table(names, columns) if names is not None or matrix is None else matrix

    def shap(self, sample: Sample) -> tuple[Floats, Floats] | None:
        """Return SHAP values (n_rows, n_features, n_outputs) and base values, where they exist."""
        if not self.is_whole:
            return None
        X = self.table(sample)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values = np.asarray(self.call("shap_values", X))
                options = {} if self.is_estimator else {"n_jobs": self._n_jobs}
                base = np.asarray(self.model.expected_value(**options))
            except (AttributeError, TypeError, ValueError):
                return None
        values = values[:, :, np.newaxis] if values.ndim == _TWO else values
        first, last = self._outputs_of_target(values.shape[2])
        return values[:, :, first:last], np.atleast_1d(base)[first:last]

    def _outputs_of_target(self, n_outputs: int) -> tuple[int, int]:
        targets = () if self.engine is None else self.engine.targets
        if not targets or self._target is None:
            return 0, n_outputs
        first = sum(targets[: self._target])
        return first, first + targets[self._target]

    def report_table(self, X: Any, rows: Index | None = None) -> ReportTable:
        """Return a table with the columns of the model; of some rows where they are given."""
        return ReportTable(X, self.schema, rows, type(self.model).__name__)


def _chosen_target(
    inner: Any, classes: Any, target_index: int | None
) -> tuple[int | None, NDArray[Any] | None]:
    """Return the index of the target, and its classes; raise ValueError where it is not given."""
    n_targets = len(getattr(inner, "targets", ()) or ())
    if isinstance(classes, list | tuple):
        n_targets = len(classes)
    if not n_targets:
        is_known = classes is not None or isinstance(inner, Model)
        if is_known and target_index is not None:
            _checked_index(target_index, 1)
        # Ensembles of other regressors show their number of targets only by predictions.
        return target_index, None if classes is None else np.asarray(classes)
    index = _checked_index(target_index, n_targets)
    own = classes[index] if isinstance(classes, list | tuple) else None
    return index, None if own is None else np.asarray(own)


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
    """Return the columns that a model was fitted on."""
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
