"""The shared scikit-learn surface: check -> ingest -> bin -> train -> `Predictor`, and its answers.

An algorithm is a subclass that lists its parameters and turns them into a `Recipe`.
"""

from __future__ import annotations

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
from arboost.params import Value, check
from arboost.predict import answer, probabilities
from arboost.progress import Bar
from arboost.serve import Predictor

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
        params = check(self.get_params(deep=False))
        n_threads = threads(params["n_jobs"])
        rows = _training_rows(X, y, sample_weight)
        task = self._task(rows.y)
        if task.is_constant:
            fitted = Fitted(Forest.empty(), np.zeros(1))
        else:
            recipe = self._recipe(params, task)
            binned = rows.bin(params["max_bins"], n_threads)
            with Bar(recipe.n_estimators, "fitting", visible=params["verbose"] > 0) as bar:
                fitted = train(
                    recipe,
                    binned,
                    Target(task.y, rows.weight),
                    n_threads=n_threads,
                    seed=params["random_state"],
                    on_round=lambda done: bar.show(done.index + 1),
                )
        self._keep(fitted, rows.schema, task, params)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `arboost.load` reads.

        A failure leaves the file that was there before.
        """
        check_is_fitted(self)
        self.model_.save(path)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the total gain of all splits; all 0 where nothing was split."""
        check_is_fitted(self)
        gain = importances(self.model_, "gain")
        total = gain.sum()
        return gain / total if total > 0 else gain

    def _keep(
        self, fitted: Fitted, schema: Schema, task: Task, params: dict[str, Value]
    ) -> None:
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
            self.classes_ = task.classes

    def _task(self, y: NDArray[Any]) -> Task:
        raise NotImplementedError

    def _recipe(self, params: dict[str, Any], task: Task) -> Recipe:
        raise NotImplementedError

    def _raw(self, X: object) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self.model_.predict_raw(X, n_jobs=self.n_jobs)

    def _staged_raw(self, X: object) -> Iterator[NDArray[np.float64]]:
        check_is_fitted(self)
        return self.model_.staged_raw(X, n_jobs=self.n_jobs)

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
        return answer(self.model_, self._raw(X))

    def staged_predict(self, X: object) -> Iterator[NDArray[np.float64]]:
        """Yield what `predict` would return after each round."""
        for raw in self._staged_raw(X):
            yield answer(self.model_, raw)

    def _task(self, y: NDArray[Any]) -> Task:
        return Task("regressor", "identity", y.astype(np.float64, copy=False), 1)


class TreeClassifier(ClassifierMixin, TreeEnsemble):
    """Answers of a classifier."""

    def predict(self, X: object) -> NDArray[Any]:
        """Return the most likely labels, shape (n_rows,)."""
        return answer(self.model_, self._raw(X))

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Return the probabilities of the classes in the order of ``classes_``."""
        return probabilities(self.model_, self._raw(X))

    def decision_function(self, X: object) -> NDArray[np.float64]:
        """Return the raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        return _decision(self._raw(X))

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
        # One class: a softmax over one score, which is a probability of exactly 1.
        link = "logistic" if len(classes) == 2 else "softmax"
        n_outputs = 1 if len(classes) == 2 else len(classes)
        return Task("classifier", link, codes, n_outputs, classes)


def _training_rows(X: object, y: object, sample_weight: object) -> TrainingRows:
    """Check everything that is passed to fit; the binning itself comes later."""
    if isinstance(X, Dataset):
        return _dataset_rows(X, y, sample_weight)
    table = ingest(X)
    labels = target(y, table.n_rows)
    weight = weights(sample_weight, table.n_rows)
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
        weight = weights(sample_weight, data.n_rows)
    if weight is not None and not weight.all():
        raise ValueError(
            f"sample_weight is 0 in {np.count_nonzero(weight == 0)} rows, but the rows of a Dataset "
            "are binned already and cannot be left out. Pass these weights to Dataset instead."
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


def _encode_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the classes, sorted, and the index of each label among them."""
    _check_labels(y)
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
            f"Unknown label type: unknown. y holds {example!r} ({type(example).__name__}). {advice}"
            "Convert y to one of them."
        )
    if y.dtype.kind not in "biufOU":
        raise ValueError(
            f"Unknown label type: {y.dtype}. {advice}Convert y to one of them."
        )
