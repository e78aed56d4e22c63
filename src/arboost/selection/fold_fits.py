"""Any y -> classification or regression, for callers that leave the choice to the target."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline

from arboost.backend import lazy_property
from arboost.data.dataset import Dataset
from arboost.data.feature_names import offset_names, offset_values, split_offset
from arboost.data.opening import is_source
from arboost.data.target import Task, target, weights
from arboost.estimators.bagging import Bagging
from arboost.estimators.estimator import EngineEstimator
from arboost.estimators.member_fits import fit_on_rows, is_engine, shared_dataset, weight_name
from arboost.estimators.member_predictions import (
    member_one_hot,
    member_probabilities,
    member_values,
)
from arboost.estimators.member_tables import MemberTable, take_rows, training_table
from arboost.estimators.stacking import Stacking
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric, is_sklearn, of_predictions
from arboost.params.records import sought_bins
from arboost.params.suggestions import metric_name
from arboost.selection.space import arboost_estimators
from arboost.training.sets import groups_of
from arboost.training.splits import Split
from arboost.training.splits import folds as make_folds

KINDS = {"classification": "classifier", "regression": "regressor"}

_MOST_CLASSES = 20  # distinct whole numbers; more of them are amounts
_LEAST_SHARE = 5  # rows of a class, on average; fewer are amounts of a short table
_TWO_CLASSES = 2


def estimator_kind(y: NDArray[Any], task: object = None) -> str:
    """Return the kind of the estimators for a target: "classifier" or "regressor".

    Labels of strings and truth values are classes. Whole numbers are classes where there are two of
    them, or up to 20 with five rows each on average; all other numbers are amounts.

    Parameters
    ----------
    y : array of shape (n_rows,)
    task : {"classification", "regression"} or None
        The user's choice; None for the choice by y.

    Examples
    --------
    >>> kind_of(np.array([0, 1, 1, 0])), kind_of(np.array([1.5, 2.0])), kind_of(np.arange(100))
    ('classifier', 'regressor', 'regressor')
    """
    if task is not None:
        if not isinstance(task, str):
            raise TypeError(_task_message(task))
        if task not in KINDS:
            raise ValueError(_task_message(task))
        return KINDS[task]
    if y.dtype.kind not in "iuf":
        is_numeric = y.dtype.kind == "O" and not any(isinstance(one, str | bool) for one in y[:100])
        return "regressor" if is_numeric else "classifier"
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        return "regressor"
    n_values = len(np.unique(y))
    few = n_values <= _TWO_CLASSES or len(y) >= _LEAST_SHARE * n_values
    return "classifier" if n_values <= _MOST_CLASSES and few else "regressor"


def _task_message(task: object) -> str:
    return (
        f"task={task!r} ({type(task).__name__}) is not allowed: task must be "
        f"{' or '.join(map(repr, KINDS))}, or None. Use task=None to take it from y."
    )


@dataclass(frozen=True)
class Scorer:
    """A metric of predictions: class probabilities (n_rows, n_classes), or values (n_rows,).

    Attributes
    ----------
    name : str
    function : callable (y, predictions, weight) -> float
        y holds values, or the index of the class.
    greater_is_better : bool
    """

    name: str
    function: Callable[[Floats, Floats, Floats | None], float]
    greater_is_better: bool

    @classmethod
    def of(cls, metric: object, kind: str, usual: str) -> Self:
        """Return the scorer of a user's metric; None for the usual one.

        Parameters
        ----------
        metric : str, callable, Metric or None
            A name that ``eval_metric`` takes, a function of scikit-learn, a function of (y,
            predictions, weight) of which lower is better, or a `Metric` of predictions.
        kind : {"classifier", "regressor"}
        usual : str
        """
        if metric is None:
            metric = usual
        if isinstance(metric, Metric):
            return cls(metric.name, metric.function, metric.greater_is_better)
        if callable(metric) and not is_sklearn(metric):
            name = getattr(metric, "__name__", type(metric).__name__)
            return cls(name, metric, greater_is_better=False)
        function, greater = of_predictions(metric, of_classes=kind == "classifier")
        own = getattr(metric, "__name__", "") if not isinstance(metric, str) else metric
        return cls(metric_name(own) or own, function, greater)

    def value(self, y: Floats, predicted: Floats, weight: Floats | None) -> float:
        """Return the metric; raise ValueError where it is not a number."""
        found = float(self.function(y, predicted, weight))
        if math.isnan(found):
            raise ValueError(
                f"the metric {self.name!r} is not a number (NaN) on these rows. Use another "
                "metric, or folds with every class among the held-out rows."
            )
        return found

    def is_better(self, one: float, other: float) -> bool:
        """Whether one score is better than another."""
        return one > other if self.greater_is_better else one < other


def predict(estimator: Any, X: Any, classes: NDArray[Any] | None) -> tuple[Floats, float]:
    """Return the predictions of a fitted estimator as scorers read them, and the seconds taken.

    An estimator without probabilities gives its predicted class the probability 1.
    """
    started = time.perf_counter()
    if classes is None:
        predicted = member_values(estimator, X)[:, 0]
    elif callable(getattr(estimator, "predict_proba", None)):
        predicted = member_probabilities(
            estimator, X, classes, "an estimator without predict_proba"
        )
    else:
        predicted = member_one_hot(estimator, X, classes)
    seconds = time.perf_counter() - started
    return np.ascontiguousarray(predicted), seconds


_BINNING = (
    "tree_method",
    "bundling",
    "max_conflict_rate",
    "categorical_features",
    "category_encoding",
    "date_format",
    "calendar_parts",
    "missing",
)


@dataclass(frozen=True, eq=False)
class SelectionRows:
    """Rows of nonzero weight of a user's table, with their target.

    Attributes
    ----------
    table : MemberTable
        X in the type of the user.
    y : array of shape (n_rows,)
        Labels or values as the user gave them.
    task : Task
    weight : float64 array of shape (n_rows,), or None
        Weights above 0.
    groups : array of shape (n_rows,), or None
    offset : float64 array of shape (n_rows, 1) or (n_rows, n_outputs), or None
    kept : uint32 array, or None
        Positions of the rows among those given; None where all are kept.
    n_given : int
        Number of rows given.
    """

    table: MemberTable
    y: NDArray[Any]
    task: Task
    weight: Floats | None
    groups: NDArray[Any] | None
    offset: Floats | None
    kept: NDArray[np.uint32] | None
    n_given: int

    def splits(self, folds: object, seed: int) -> list[Split]:
        """Return folds as positions among these rows; lists count the rows that were given."""
        is_listed = hasattr(folds, "__iter__") and not hasattr(folds, "split")
        if is_listed and self.kept is not None:
            listed = make_folds(np.empty(self.n_given), folds, groups=self.groups)
            place = np.full(self.n_given, -1)
            place[self.kept] = np.arange(len(self.kept))
            folds = [[place[side][place[side] >= 0] for side in pair] for pair in listed]
        return make_folds(
            self.task.y, folds, seed=seed, stratify=self.can_stratify, groups=self.groups
        )

    def arguments(
        self, estimator: Any, some: NDArray[np.uint32] | None = None, *, shares_bins: bool = False
    ) -> dict[str, Any]:
        """Return the arguments of ``fit`` in addition to X and y, for some of the rows or all."""
        rows = slice(None) if some is None else some
        name, arguments = weight_name(estimator), {}
        if self.weight is not None and not shares_bins:  # a Dataset has its own weights
            if name is None:
                raise TypeError(
                    f"sample_weight is given, but the fit of {type(estimator).__name__} has no "
                    "such argument. Leave out sample_weight, or this estimator."
                )
            arguments[name] = self.weight[rows]
        prefix, last = "", estimator
        if isinstance(estimator, Pipeline):
            prefix, last = f"{estimator.steps[-1][0]}__", estimator.steps[-1][1]
        if self.groups is not None and _needs_groups(last):
            arguments[f"{prefix}groups"] = self.groups if shares_bins else self.groups[rows]
        return arguments

    @property
    def can_stratify(self) -> bool:
        """Whether folds keep the shares of the classes; a class of one row is in one fold only."""
        if self.task.classes is None or self.groups is not None:
            return False
        return bool(self.task.class_counts().min() > 1)


def read_rows(
    X: object,
    y: object,
    sample_weight: object,
    groups: object,
    task: object = None,
    offset: object = None,
) -> SelectionRows:
    """Return the rows of a table in memory, checked.

    Parameters
    ----------
    X, y, sample_weight, groups, offset
        As `fit` takes them.
    task : {"classification", "regression"}, "classifier", "regressor" or None
        None for the choice by y.
    """
    if is_source(X):
        raise TypeError(
            f"X is a {type(X).__name__}, a source that is read in batches, but models are compared "
            "on rows in memory. Read it first, for example with pandas.read_parquet."
        )
    X, start = split_offset(X, offset)
    table, y = training_table(X, y, sample_weight=sample_weight, groups=groups, offset=start)
    labels = target(y, table.n_rows)
    weight = weights(sample_weight, table.n_rows)
    names, of_rows = offset_names(offset), None
    if names is not None:
        of_rows = offset_values(start, table.n_rows, names)
    kept = None
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight).astype(np.uint32)
        n_given, table = table.n_rows, table.take(kept)
        labels, weight = labels[kept], weight[kept]
        of_rows = None if of_rows is None else of_rows[kept]
    else:
        n_given = table.n_rows
    if groups is not None:
        groups = groups_of(groups, n_given, kept)
    kind = str(task) if task in ("classifier", "regressor") else estimator_kind(labels, task)
    found = Task.of(kind, labels)
    if found.is_constant:
        raise ValueError(
            f"y has one class, {labels.tolist()[0]!r}: there is nothing to choose between. Pass "
            "rows of several classes."
        )
    return SelectionRows(table, labels, found, weight, groups, of_rows, kept, n_given)


class FoldResult(NamedTuple):
    """Score of one fit on the held-out rows of its fold, and the seconds of its steps."""

    score: float
    fit_seconds: float
    predict_seconds: float


@dataclass(eq=False)
class FoldRows:
    """Folds of a table, with the parts that fits share.

    Attributes
    ----------
    rows : SelectionRows
    splits : sequence of Split
    n_jobs : int or None
        Threads of the binning.
    binning_seconds : float
        Time of all binning so far.
    """

    rows: SelectionRows
    splits: Sequence[Split]
    n_jobs: int | None = None
    binning_seconds: float = 0.0
    _datasets: dict[Hashable, Dataset | None] = field(default_factory=dict)

    @lazy_property
    def held_out(self) -> list[Any]:
        """Tables of the held-out rows of each fold."""
        return [take_rows(self.rows.table.X, held_out) for _, held_out in self.splits]

    def run(self, estimator: Any, fold: int, scorer: Scorer) -> FoldResult:
        """Fit an estimator in place to the training rows of a fold; score its held-out rows."""
        rows, (train, held_out) = self.rows, self.splits[fold]
        dataset = self.dataset(estimator)
        arguments = rows.arguments(estimator, train, shares_bins=dataset is not None)
        X = None
        if dataset is None:
            X = self._values(estimator, train)
        started = time.perf_counter()
        if dataset is not None:
            fit_on_rows(estimator, dataset, train, **arguments)
        else:
            estimator.fit(X, rows.y[train], **arguments)
        fit_seconds = time.perf_counter() - started
        X = self.held_out[fold]
        if isinstance(estimator, DummyClassifier | DummyRegressor):
            X = np.zeros((len(held_out), 1))
        predicted, predict_seconds = predict(estimator, X, rows.task.classes)
        weight = None if rows.weight is None else rows.weight[held_out]
        y = rows.task.y[held_out]
        if rows.task.classes is not None:
            y = y.astype(np.intp)
        return FoldResult(scorer.value(y, predicted, weight), fit_seconds, predict_seconds)

    def dataset(self, estimator: Any) -> Dataset | None:
        """Return the binned table for fits of an estimator; None where it needs the values."""
        if not is_engine(estimator):
            return None
        key = binning_key(estimator)
        if key not in self._datasets:
            started, rows = time.perf_counter(), self.rows
            self._datasets[key] = shared_dataset(
                estimator, rows.table.X, rows.y, rows.weight, self.n_jobs
            )
            if self._datasets[key] is not None:
                self.binning_seconds += time.perf_counter() - started
        has_learner = getattr(estimator, "estimator", None) is not None
        needs_values = has_learner or getattr(estimator, "quantiles", False)
        return None if needs_values else self._datasets[key]

    def _values(self, estimator: Any, train: NDArray[np.uint32]) -> Any:
        if isinstance(estimator, DummyClassifier | DummyRegressor):
            return np.zeros((len(train), 1))  # it looks at y only
        return take_rows(self.rows.table.X, train)


def binning_key(estimator: Any) -> Hashable:
    """Return the parameters that the bins of an estimator depend on."""
    values = vars(estimator)
    return repr(sought_bins(values)), *(repr(values.get(name)) for name in _BINNING)


def without_progress(estimator: Any, n_threads: int | None) -> Any:
    """Return the estimator itself, it and its members without progress bars and on few threads.

    None leaves the threads as they are; no result depends on them.
    """
    for _, owner in arboost_estimators(estimator):
        values = vars(owner)
        if "verbose" in owner._TABLE:
            values["verbose"] = 0
        # The n_jobs of stacks and votes counts members at a time.
        if n_threads is not None and isinstance(owner, EngineEstimator | Bagging):
            values["n_jobs"] = n_threads
    return estimator


def _needs_groups(estimator: Any) -> bool:
    """Whether a fit divides its rows by groups."""
    is_split = getattr(estimator, "validation_split", None) == "group"
    return is_split or (isinstance(estimator, Stacking) and not _has_listed_folds(estimator))


def _has_listed_folds(stack: Stacking) -> bool:
    cv = vars(stack)["cv"]
    return not (cv is None or isinstance(cv, int) or hasattr(cv, "split"))
