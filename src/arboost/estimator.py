"""The shared scikit-learn surface: check -> ingest -> bin -> train -> `Predictor`, and its answers.

An algorithm is a subclass that lists its parameters and turns them into a `Recipe`.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from arboost.backend import threads
from arboost.binning import Binned, Dataset, bin_table
from arboost.ensemble import Fitted, Recipe, train
from arboost.explain import importances
from arboost.ingest import Schema, ingest, target, weights
from arboost.losses import Target
from arboost.model import Forest
from arboost.params import PARAMS, check
from arboost.predict import answer, probabilities
from arboost.progress import Bar
from arboost.serve import Predictor
from arboost.verify import MonotoneProof

__all__ = ["Task", "TreeClassifier", "TreeEnsemble", "TreeRegressor"]

# They cannot change the model, so the model does not hold them.
_NOT_IN_MODEL = ("n_jobs", "verbose")

# Labels in a range up to this wide are counted instead of sorted.
_COUNTED_LABELS = 1 << 16


@dataclass(frozen=True)
class Task:
    """What is to be learnt: the target as the losses read it, and what the scores will mean."""

    kind: str
    link: str
    y: NDArray[np.float64]
    n_outputs: int
    classes: NDArray[Any] | None = None

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to learn: one class."""
        return self.classes is not None and len(self.classes) == 1


@dataclass(frozen=True)
class TrainingRows:
    """The rows that count, and how to bin them."""

    schema: Schema
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    bin: Callable[[int, int], Binned]


class TreeEnsemble(BaseEstimator):
    """What regressors and classifiers share."""

    model_: Predictor

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, or list
            of lists. NaN and None are missing values. A Dataset brings its own y and weights.
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 count as absent.

        Returns
        -------
        self
        """
        params = self._params()
        rows = _training_rows(X, y, sample_weight)
        task = self._task(rows.y)
        fitted = self._train(params, rows, task)
        self._keep(fitted, rows.schema, task, params)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `arboost.load` reads.

        A failure leaves the file that was there before.
        """
        self._fitted_model().save(path)

    def verify_monotone(self, features: object = None) -> tuple[MonotoneProof, ...]:
        """Prove that the fitted model is monotone, or find rows for which it is not.

        Parameters
        ----------
        features : dict, sequence or None
            What to prove, in the form of ``monotone_constraints``; None takes those of the fit.

        Returns
        -------
        tuple of arboost.MonotoneProof
            One for each constrained feature and output.
        """
        return self._fitted_model().verify_monotone(features, n_jobs=self.n_jobs)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the total gain of all splits; all 0 where nothing was split."""
        gain = importances(self._fitted_model(), "gain")
        total = gain.sum()
        return gain / total if total > 0 else gain

    def _params(self) -> dict[str, Any]:
        # Faster than get_params, which looks at signatures: it matters when a fit takes a moment.
        return check({name: value for name, value in vars(self).items() if name in PARAMS})

    def _train(self, params: dict[str, Any], rows: TrainingRows, task: Task) -> Fitted:
        if task.is_constant:
            return Fitted(Forest.empty(), np.zeros(1))
        recipe = self._recipe(params, task)
        n_threads = threads(params["n_jobs"])
        binned = rows.bin(params["max_bins"], n_threads)
        verbose = params["verbose"] > 0
        with Bar(recipe.n_estimators, "fitting", visible=verbose) as bar:
            return train(
                recipe,
                binned,
                Target(task.y, rows.weight),
                n_threads=n_threads,
                seed=params["random_state"],
                on_round=(lambda done: bar.show(done.index + 1)) if verbose else None,
            )

    def _keep(self, fitted: Fitted, schema: Schema, task: Task, params: dict[str, Any]) -> None:
        """Set the fitted attributes; nothing before this has changed the estimator."""
        outputs_per_tree = task.n_outputs if fitted.forest.width > 1 else 1
        self.model_ = Predictor(
            forest=fitted.forest,
            schema=schema,
            base_score=fitted.base_score,
            link=task.link,
            classes=task.classes,
            trees_per_round=task.n_outputs // outputs_per_tree,
            params={name: value for name, value in params.items() if name not in _NOT_IN_MODEL},
            kind=task.kind,
        )
        self.n_iter_ = self.model_.n_rounds
        self.n_features_in_ = schema.n_features
        if schema.names is not None:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if task.classes is not None:
            self.classes_ = self.model_.classes

    def _task(self, y: NDArray[Any]) -> Task:
        raise NotImplementedError

    def _recipe(self, params: dict[str, Any], task: Task) -> Recipe:
        raise NotImplementedError

    def _fitted_model(self) -> Predictor:
        check_is_fitted(self)
        return self.model_

    def _staged_raw(self, X: object) -> Iterator[NDArray[np.float64]]:
        return self._fitted_model().staged_raw(X, n_jobs=self.n_jobs)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class TreeRegressor(RegressorMixin, TreeEnsemble):
    """Answers of a regressor."""

    def predict(self, X: object) -> NDArray[np.float64]:
        """Return the predicted values, float64 of shape (n_rows,)."""
        return self._fitted_model().predict(X, n_jobs=self.n_jobs)

    def staged_predict(self, X: object) -> Iterator[NDArray[np.float64]]:
        """Yield what `predict` would return after each round."""
        for raw in self._staged_raw(X):
            yield answer(self.model_, raw)

    def _task(self, y: NDArray[Any]) -> Task:
        return Task("regressor", "identity", _numbers(y), 1)


class TreeClassifier(ClassifierMixin, TreeEnsemble):
    """Answers of a classifier."""

    def predict(self, X: object) -> NDArray[Any]:
        """Return the most likely labels, shape (n_rows,)."""
        return self._fitted_model().predict(X, n_jobs=self.n_jobs)

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Return the probabilities of the classes in the order of ``classes_``."""
        return self._fitted_model().predict_proba(X, n_jobs=self.n_jobs)

    def decision_function(self, X: object) -> NDArray[np.float64]:
        """Return the raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        return _decision(self._fitted_model().predict_raw(X, n_jobs=self.n_jobs))

    def staged_predict(self, X: object) -> Iterator[NDArray[Any]]:
        """Yield what `predict` would return after each round."""
        for raw in self._staged_raw(X):
            yield answer(self.model_, raw)

    def staged_predict_proba(self, X: object) -> Iterator[NDArray[np.float64]]:
        """Yield what `predict_proba` would return after each round."""
        for raw in self._staged_raw(X):
            yield probabilities(self.model_, raw)

    def staged_decision_function(self, X: object) -> Iterator[NDArray[np.float64]]:
        """Yield what `decision_function` would return after each round."""
        for raw in self._staged_raw(X):
            yield _decision(raw)

    def _task(self, y: NDArray[Any]) -> Task:
        classes, codes = _encode_labels(y)
        n_classes = len(classes)
        if n_classes == 2:  # noqa: PLR2004
            return Task("classifier", "logistic", codes, 1, classes)
        # With one class this is a softmax over one score: a probability of exactly 1.
        return Task("classifier", "softmax", codes, n_classes, classes)


def _training_rows(X: object, y: object, sample_weight: object) -> TrainingRows:
    """Check everything that is passed to fit; the binning itself comes later."""
    if isinstance(X, Dataset):
        return _dataset_rows(X, y, sample_weight)
    table = ingest(X)
    labels = target(y, table.n_rows)
    weight = _summable(weights(sample_weight, table.n_rows))
    kept = None
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight).astype(np.uint32)
        labels, weight = labels[kept], weight[kept]

    def bin_rows(max_bins: int, n_threads: int) -> Binned:
        return bin_table(table, max_bins=max_bins, rows=kept, weights=weight, n_threads=n_threads)

    return TrainingRows(table.schema, labels, weight, bin_rows)


def _dataset_rows(data: Dataset, y: object, sample_weight: object) -> TrainingRows:
    labels = data.y if y is None and data.y is not None else target(y, data.n_rows)
    weight = data.sample_weight
    if sample_weight is not None:
        weight = _summable(weights(sample_weight, data.n_rows))
    if weight is not None and not weight.all():
        raise ValueError(
            f"sample_weight is 0 in {np.count_nonzero(weight == 0)} rows, but the rows of a "
            "Dataset are binned already and cannot be left out. Pass these weights to Dataset."
        )

    def binned(max_bins: int, n_threads: int) -> Binned:
        if max_bins != data.max_bins:
            raise ValueError(
                f"max_bins={max_bins} is not allowed: the Dataset was binned with "
                f"max_bins={data.max_bins}. Make the two equal."
            )
        return data.binned

    return TrainingRows(data.binned.schema, labels, weight, binned)


def _decision(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    return raw[:, 0] if raw.shape[1] == 1 else raw


def _summable(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if weight is not None:
        with np.errstate(over="ignore"):
            total = weight.sum()
        if not np.isfinite(total):
            raise ValueError(
                f"the sum of sample_weight is {total}: its largest value, {weight.max()}, is too "
                "large for so many rows. Only ratios of weights matter much: scale them down."
            )
    return weight


def _numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the target of a regressor as contiguous float64."""
    if y.dtype.kind == "O":
        strange = [value for value in y if not isinstance(value, numbers.Real)]
    else:
        strange = y[:1].tolist() if y.dtype.kind not in "biuf" else []
    if strange:
        raise TypeError(
            f"y holds {strange[0]!r} ({type(strange[0]).__name__}), but a regressor needs numbers. "
            "Convert y to float, or use a classifier for labels."
        )
    try:
        values = np.ascontiguousarray(y, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"y does not fit float64: {error}. Bring y to a smaller scale.") from None
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(high - low):
        raise ValueError(
            f"y goes from {low} to {high}, and the difference does not fit float64. Bring y to a "
            "smaller scale."
        )
    return values


def _encode_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the classes, sorted, and the index of each label among them."""
    _check_labels(y)
    if y.dtype.kind == "f" and y.dtype.itemsize > np.dtype(np.float64).itemsize:
        y = y.astype(np.float64)  # long doubles differ from machine to machine
    y = y.astype(y.dtype.newbyteorder("="), copy=False)
    if y.dtype.kind not in "OU":
        # The difference of two labels of few bits may not fit into as many.
        wide = y.astype({"f": np.float64, "i": np.int64}.get(y.dtype.kind, np.uint64), copy=False)
        low, high = wide.min(), wide.max()
        if float(high) - float(low) < _COUNTED_LABELS:
            return _count_labels(y, (wide - low).astype(np.intp))
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.float64)


def _count_labels(
    y: NDArray[Any], place: NDArray[np.intp]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Do the same from the places of the labels in a short range, without sorting."""
    present = np.flatnonzero(np.bincount(place))
    size = present[-1] + 1
    label = np.empty(size, y.dtype)
    label[place] = y
    index = np.empty(size)
    index[present] = np.arange(len(present))
    return label[present], index[place]


def _check_labels(y: NDArray[Any]) -> None:
    advice = "A classifier takes whole numbers, truth values or strings. "
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        example = y[y != np.floor(y)][0]
        raise ValueError(
            f"Unknown label type: continuous. y holds {example}. {advice}"
            "Use a regressor, or turn y into classes."
        )
    if y.dtype.kind == "O" and not all(isinstance(label, str) for label in y):
        example = next(label for label in y if not isinstance(label, str))
        raise ValueError(
            f"Unknown label type: unknown. y is of objects, one of them {example!r} "
            f"({type(example).__name__}). {advice}"
            "Convert y to one of them."
        )
    if y.dtype.kind not in "biufOU":
        raise ValueError(f"Unknown label type: {y.dtype}. {advice}Convert y to one of them.")
