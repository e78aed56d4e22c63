"""Interface for model selection: rows of one table, their folds, and fits and scores on folds.

    X ──bins──▶ Dataset ─┬─▶ estimator A, fold 0: its training rows ─▶ held-out rows ─▶ score
                         ├─▶ estimator A, fold 1 ...
                         └─▶ estimator B, fold 0 ...

Bins see the held-out rows, but not their targets. Where a category has to be encoded by the target,
every fit reads its own training rows instead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from arboost.backend import lazy_property
from arboost.data.dataset import Dataset
from arboost.data.feature_names import offset_names, offset_values, split_offset
from arboost.data.source import is_source
from arboost.data.table import ColumnOptions
from arboost.data.target import Task, target, weights
from arboost.errors import InputTypeError
from arboost.estimators import member_fits
from arboost.estimators.adaboost.adaboost import AdaBoost
from arboost.estimators.bagging import Bagging
from arboost.estimators.cross_validation import counted_folds, cv, query_groups
from arboost.estimators.ensembles import NamedMembers
from arboost.estimators.estimator import EngineEstimator
from arboost.estimators.gradient_boosting import GradientBoosting
from arboost.estimators.ranker import GradientBoostingRanker
from arboost.estimators.stacking import Stacking
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric, find_metrics, is_sklearn, prediction_metric
from arboost.losses.ranking import refuse_ranker
from arboost.params.suggestions import metric_name
from arboost.training import inputs, monitor, sets
from arboost.training.splits import Index, Split, split

Splits = Sequence[Split]  # training rows and held-out rows of each fold


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
    index : uint32 array, or None
        Positions of the rows in the user's table; None for all.
    n_all : int
        Number of rows of the user's table.
    """

    table: member_fits.MemberTable
    y: NDArray[Any]
    task: Task
    weight: Floats | None
    groups: NDArray[Any] | None
    offset: Floats | None
    index: Index | None
    n_all: int

    def splits(self, cv: object, seed: int) -> list[Split]:
        """Folds as positions among these rows; folds in a list count the rows of the user."""
        options = {"seed": seed, "stratify": self._can_stratify, "groups": self.groups}
        return counted_folds(self.task.y, cv, self.index, self.n_all, **options)

    def hold_out(self, fraction: float, seed: int) -> Split:
        """One split into training rows and a share of held-out rows."""
        return split(
            self.task.y,
            how="random" if self.groups is None else "group",
            fraction=fraction,
            seed=seed,
            stratify=self._can_stratify,
            groups=self.groups,
        )

    def arguments(
        self, estimator: Any, index: Index | None = None, *, shares_bins: bool = False
    ) -> dict[str, Any]:
        """Arguments of ``fit`` in addition to X and y, for some of the rows or all."""
        rows = slice(None) if index is None else index
        arguments = {}
        if self.weight is not None and not shares_bins:  # a Dataset has its own weights
            name = member_fits.check_weights(type(estimator).__name__, estimator)
            arguments[name] = self.weight[rows]
        prefix, last = "", estimator
        if isinstance(estimator, Pipeline):
            prefix, last = f"{estimator.steps[-1][0]}__", estimator.steps[-1][1]
        if self.groups is not None and _needs_groups(last):
            arguments[f"{prefix}groups"] = self.groups if shares_bins else self.groups[rows]
        return arguments

    @property
    def _can_stratify(self) -> bool:
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
    """Rows of a table in memory, checked.

    Parameters
    ----------
    X, y, sample_weight, groups, offset
        As `fit` takes them.
    task : {"classification", "regression"}, "classifier", "regressor", "ranker" or None
        None for the choice by y.
    """
    if is_source(X):
        raise InputTypeError(
            f"X is a {type(X).__name__}, a source that is read in batches, but models are compared "
            "on rows in memory. Read it first, for example with pandas.read_parquet."
        )
    X, offset_columns = split_offset(X, offset)
    table, y = member_fits.training_table(
        X, y, sample_weight=sample_weight, groups=groups, offset=offset_columns
    )
    n_all, index, start = table.n_rows, None, None
    labels, weight = target(y, n_all), weights(sample_weight, n_all)
    names = offset_names(offset)
    if names is not None:
        start = offset_values(offset_columns, n_all, names)
    if weight is not None and not weight.all():
        index = np.flatnonzero(weight).astype(np.uint32)
        table, labels, weight = table.take(index), labels[index], weight[index]
        start = None if start is None else start[index]
    if groups is not None:
        groups = sets.groups_of(groups, n_all, index)
    kind = str(task) if task in _ESTIMATOR_KINDS else estimator_kind(labels, task)
    read_task = Task.of(kind, labels)
    if read_task.is_constant:
        raise ValueError(
            f"y has one class, {labels.tolist()[0]!r}: there is nothing to choose between. Pass "
            "rows of several classes."
        )
    return SelectionRows(table, labels, read_task, weight, groups, start, index, n_all)


def selection_task(
    estimator: Any, X: Any, groups: object, qid: object
) -> tuple[str | None, Any, object]:
    """Kind of an estimator, X without the column of queries, and groups or queries.

    The kind is None where the estimator does not tell it. Raise TypeError for a ranker inside
    another estimator, which passes no queries on.
    """
    groups = query_groups(estimator, groups, qid)
    if isinstance(estimator, GradientBoostingRanker):
        return "ranker", *split_offset(X, groups, "qid")
    refuse_rankers(estimator, "tune of a pipeline or an ensemble")
    return None, X, groups


def refuse_rankers(estimator: Any, caller: str) -> None:
    """Raise TypeError where an estimator is a ranker, or has one inside."""
    for _, part in arboost_estimators(estimator):
        refuse_ranker(part, caller)


class FoldResult(NamedTuple):
    """Score of one fit on the held-out rows of its fold, and the seconds of its steps."""

    score: float
    fit_seconds: float
    predict_seconds: float


@dataclass(eq=False)
class FoldFits:
    """Fits of any estimators on the same folds of a table, on bins that they share.

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
    splits: Splits
    n_jobs: int | None = None
    binning_seconds: float = 0.0
    _datasets: dict[Hashable, Dataset | None] = field(default_factory=dict)

    @lazy_property
    def held_out(self) -> list[Any]:
        """Tables of the held-out rows of each fold."""
        return [member_fits.take_rows(self.rows.table.X, held_out) for _, held_out in self.splits]

    def run(self, estimator: Any, fold: int, scorer: Scorer) -> FoldResult:
        """Fit an estimator in place to the training rows of a fold; score its held-out rows."""
        rows, (train, held_out) = self.rows, self.splits[fold]
        dataset = self._dataset(estimator)
        arguments = rows.arguments(estimator, train, shares_bins=dataset is not None)
        X = None if dataset is not None else member_fits.take_rows(rows.table.X, train)
        started = time.perf_counter()
        if dataset is not None:
            member_fits.fit_on_rows(estimator, dataset, train, **arguments)
        else:
            estimator.fit(X, rows.y[train], **arguments)
        fitted = time.perf_counter()
        predicted = _scored_predictions(estimator, self.held_out[fold], rows.task.classes)
        predict_seconds = time.perf_counter() - fitted
        weight = None if rows.weight is None else rows.weight[held_out]
        y = rows.task.y[held_out]
        if rows.task.classes is not None:
            y = y.astype(np.intp)
        return FoldResult(scorer.value(y, predicted, weight), fitted - started, predict_seconds)

    def _dataset(self, estimator: Any) -> Dataset | None:
        """The binned table for fits of an estimator; None where it needs the values."""
        key = member_fits.binning_key(estimator)
        if key is None:
            return None
        if key not in self._datasets:
            started, rows = time.perf_counter(), self.rows
            self._datasets[key] = member_fits.shared_dataset(
                estimator, rows.table.X, rows.y, rows.weight, self.n_jobs
            )
            if self._datasets[key] is not None:
                self.binning_seconds += time.perf_counter() - started
        return self._datasets[key]


class BoosterFolds:
    """Rounds of boosters in step on the same folds of a table, on bins that they share.

    Attributes
    ----------
    metric : Metric
        The user's, else that of the early stopping of the estimator.
    n_cells : int
        Number of cells of the table.
    """

    def __init__(
        self,
        estimator: GradientBoosting | AdaBoost,
        rows: SelectionRows,
        splits: Splits,
        metric: object,
        n_jobs: int | None,
    ) -> None:
        self._selection, self._splits, self._n_jobs = rows, list(splits), n_jobs
        self._tables: dict[Hashable, tuple[Any, Any, Any]] = {}
        self._lock = Lock()
        options = ColumnOptions.of(estimator._checked_params())
        self._rows: inputs.EngineRows = inputs.training_rows(*self._table(estimator), None, options)
        self._task = Task.of(estimator._KIND, self._rows.y)
        self.n_cells = len(self._rows.y) * self._rows.schema.n_features
        params = self.resolved(estimator)
        loss, _ = estimator._plan(params, self._task, self._rows.schema)
        self._metric = metric
        self.metric = find_metrics(params["eval_metric"] if metric is None else metric, loss, 1)[0]

    def run(self, booster: Any, callback: Callable[[monitor.Round], bool]) -> tuple[Floats, int]:
        """Mean score over the folds after each round, and the index of the best round."""
        X, y, weight = self._table(booster)
        result = cv(
            booster,
            X,
            y,
            folds=self._splits,
            sample_weight=weight,
            offset=self._selection.offset,
            qid=self._selection.groups if self._task.kind == "ranker" else None,
            metrics=self._metric,
            callbacks=[callback],
        )
        return result.mean[self.metric.name], result.best_index

    def resolved(self, booster: Any) -> dict[str, Any]:
        """Values of the parameters on this table, without "auto"."""
        params: dict[str, Any] = booster._resolve(
            booster._checked_params(), self._rows, self._task, has_validation=True
        )
        return params

    def _table(self, booster: Any) -> tuple[Any, Any, Any]:
        """X, y and weights for the bins of a booster; equal ones are binned once.

        X is a Dataset, or the table where bins cannot be shared: the target encoding of a Dataset
        takes whole numbers for amounts, so with labels of numbers and more than two classes every
        trial encodes and bins the table.
        """
        key, rows = member_fits.binning_key(booster), self._selection
        values = rows.table.X, rows.y, rows.weight
        with self._lock:
            if key not in self._tables:
                try:
                    data = member_fits.make_dataset(booster, *values, self._n_jobs)
                except ValueError:  # reported by the first trial
                    return values
                n_classes = rows.task.n_classes
                are_numbers = n_classes is not None and data.level_classes is None
                is_shared = data.encoded_table is None or not are_numbers
                self._tables[key] = (data, None, None) if is_shared else values
            return self._tables[key]


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
    def of(cls, metric: object, kind: str) -> Self:
        """Scorer of a user's metric.

        Parameters
        ----------
        metric : str, callable or Metric
            A name that ``eval_metric`` takes, a function of scikit-learn, a function of (y,
            predictions, weight) of which lower is better, or a `Metric` of predictions.
        kind : {"classifier", "regressor"}
        """
        if isinstance(metric, Metric):
            return cls(metric.name, metric.function, metric.greater_is_better)
        if callable(metric) and not is_sklearn(metric):
            name = getattr(metric, "__name__", type(metric).__name__)
            return cls(name, metric, greater_is_better=False)
        function, greater = prediction_metric(metric, of_classes=kind == "classifier")
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", "")
        return cls(metric_name(name) or name, function, greater)

    def value(self, y: Floats, predicted: Floats, weight: Floats | None) -> float:
        """Value of the metric; raise ValueError where it is not a number."""
        value = float(self.function(y, predicted, weight))
        if math.isnan(value):
            raise ValueError(
                f"the metric {self.name!r} is not a number (NaN) on these rows. Use another "
                "metric, or folds with every class among the held-out rows."
            )
        return value


def _scored_predictions(estimator: Any, X: Any, classes: NDArray[Any] | None) -> Floats:
    """Predictions of a fitted estimator as scorers read them.

    An estimator without probabilities gives its predicted class the probability 1.
    """
    if classes is None:
        predicted = member_fits.member_values(estimator, X)[:, 0]
    elif callable(getattr(estimator, "predict_proba", None)):
        predicted = member_fits.member_probabilities(
            estimator, X, classes, "an estimator without predict_proba"
        )
    else:
        predicted = member_fits.member_one_hot(estimator, X, classes)
    return np.ascontiguousarray(predicted)


TASK_KINDS = {"classification": "classifier", "regression": "regressor"}
_ESTIMATOR_KINDS = (*TASK_KINDS.values(), "ranker")

_MOST_CLASSES = 20  # distinct whole numbers; more of them are amounts
_LEAST_SHARE = 5  # rows of a class, on average; fewer are amounts of a short table
_TWO_CLASSES = 2


def estimator_kind(y: NDArray[Any], task: object = None) -> str:
    """Kind of the estimators for a target: "classifier" or "regressor".

    Labels of strings and truth values are classes. Whole numbers are classes where there are two of
    them, or up to 20 with five rows each on average; all other numbers are amounts.

    Parameters
    ----------
    y : array of shape (n_rows,)
    task : {"classification", "regression"} or None
        The user's choice; None for the choice by y.

    Examples
    --------
    >>> [estimator_kind(np.array(y)) for y in ([0, 1, 1, 0], [1.5, 2.0], range(100))]
    ['classifier', 'regressor', 'regressor']
    """
    if task is not None:
        if not isinstance(task, str) or task not in TASK_KINDS:
            error = ValueError if isinstance(task, str) else InputTypeError
            raise error(
                f"task={task!r} ({type(task).__name__}) is not allowed: task must be "
                f"{' or '.join(map(repr, TASK_KINDS))}, or None. Use task=None to take it from y."
            )
        return TASK_KINDS[task]
    if y.dtype.kind not in "iuf":
        is_numeric = y.dtype.kind == "O" and not any(
            isinstance(label, str | bool) for label in y[:100]
        )
        return "regressor" if is_numeric else "classifier"
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        return "regressor"
    n_values = len(np.unique(y))
    few = n_values <= _TWO_CLASSES or len(y) >= _LEAST_SHARE * n_values
    return "classifier" if n_values <= _MOST_CLASSES and few else "regressor"


def infer_task(y: object) -> str:
    """Task that `compare` takes from a target: "classification" or "regression".

    Labels of strings and truth values are classes. Whole numbers are classes where there are two of
    them, or up to 20 with five rows each on average; all other numbers are amounts.

    Parameters
    ----------
    y : array of shape (n_rows,)

    Examples
    --------
    >>> import arboost
    >>> arboost.infer_task([0, 1, 1, 0]), arboost.infer_task([1.5, 2.0, 0.5])
    ('classification', 'regression')
    """
    kind = estimator_kind(np.asarray(y))
    return next(task for task, name in TASK_KINDS.items() if name == kind)


def arboost_estimators(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Yield the estimators of arboost in an estimator, with the prefixes of their parameters.

    They are the estimator itself and its members, and the steps of a pipeline or other estimators
    inside one of scikit-learn.
    """
    if hasattr(estimator, "_TABLE"):
        yield "", estimator
    for name, member in _inner_estimators(estimator):
        for prefix, owner in arboost_estimators(member):
            yield f"{name}__{prefix}", owner


def _inner_estimators(estimator: Any) -> list[tuple[str, Any]]:
    """Estimators among the parameters, by name."""
    if not hasattr(estimator, "_TABLE") and not isinstance(estimator, NamedMembers):
        params = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
        pairs = [pair for pair in params.items() if "__" not in pair[0]]
    else:
        pairs = list(estimator._pairs()) if isinstance(estimator, NamedMembers) else []
        names = ("estimator", "final_estimator")
        pairs += [(name, vars(estimator).get(name)) for name in names]
    return [
        (name, value)
        for name, value in pairs
        if hasattr(value, "fit") and not isinstance(value, type)
    ]


def without_progress(estimator: Any, n_threads: int | None) -> Any:
    """The estimator itself: it and its members without progress bars and on few threads.

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


def set_threads(estimator: Any, n_threads: int | None) -> Any:
    """The estimator itself, on this number of threads; in one of another library, its parts."""
    is_of_arboost = hasattr(estimator, "_TABLE")
    for _, owner in [("", estimator)] if is_of_arboost else arboost_estimators(estimator):
        if isinstance(owner, EngineEstimator) and n_threads is not None:
            owner.n_jobs = n_threads
    return estimator


def _needs_groups(estimator: Any) -> bool:
    """Whether a fit divides its rows by groups."""
    if isinstance(estimator, Stacking):  # whose cv may list its folds
        cv = estimator.cv
        return cv is None or isinstance(cv, int) or hasattr(cv, "split")
    return getattr(estimator, "validation_split", None) == "group"
