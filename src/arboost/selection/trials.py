"""One trial: parameters -> score on held-out rows, with news of its progress on the way.

    booster:  bins of all rows ─▶ rounds on the folds in step ─▶ news after every unit of progress
    others:   fold 0 ─▶ news ─▶ fold 1 ─▶ news ...

News tell the best score so far; the answer says whether to stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from arboost.data.target import Task
from arboost.estimators.adaboost.adaboost import AdaBoost
from arboost.estimators.cross_validation import cv
from arboost.estimators.estimator import EngineEstimator, column_options
from arboost.estimators.gradient_boosting import GradientBoosting
from arboost.estimators.member_fits import make_dataset
from arboost.losses.metrics import Metric
from arboost.params.auto import AUTO
from arboost.selection.fold_fits import (
    FoldRows,
    Scorer,
    SelectionRows,
    binning_key,
    without_progress,
)
from arboost.selection.space import Space, arboost_estimators
from arboost.training.fit import find_metrics
from arboost.training.inputs import EngineRows, training_rows
from arboost.training.monitor import Round
from arboost.training.splits import Split

ReportProgress = Callable[[float, int], bool]  # (best score so far, step) -> whether to stop

_PATIENCE = 50  # rounds without a better score, where the estimator stops by no other rule
_STOPPING = {"n_iter_no_change": None, "eval_metric": None, "tol": 0.0}  # of fits without it
_ADABOOST_UNIT = 0.1  # progress of a round of AdaBoost; that of a booster is its learning rate
_PARALLEL_CELLS = (
    4_000_000  # cells of a table, below which trials in parallel beat threads in a trial
)
_MOST_PARALLEL = 4
_DEFAULT_METRICS = {"classifier": "log_loss", "regressor": "rmse"}


@dataclass(frozen=True)
class TrialResult:
    """Result of a trial: its score, and the number of rounds where early stopping chose it."""

    score: float
    rounds: int | None = None


class Trials(Protocol):
    """Trials of one estimator on one table.

    Attributes
    ----------
    metric : str
    greater_is_better : bool
    n_parallel : int
        Largest number of trials at a time that is of use.
    """

    metric: str
    greater_is_better: bool
    n_parallel: int

    def run(
        self, params: Mapping[str, Any], news: ReportProgress, n_threads: int, *, is_default: bool
    ) -> TrialResult:
        """Return the result of the estimator with these parameters."""
        ...

    def take_rounds(self, space: Space) -> None:
        """Take `n_estimators` out of a declared space where early stopping finds it."""
        ...

    def chosen(self, params: Mapping[str, Any], rounds: int | None) -> dict[str, Any]:
        """Return the parameters of a fit to all rows, given those of a trial and its rounds."""
        ...


def make_trials(
    estimator: Any, rows: SelectionRows, splits: Sequence[Split], metric: object, n_jobs: int | None
) -> Trials:
    """Return the trials of an estimator: rounds for boosters on their own trees, else fits."""
    if isinstance(estimator, GradientBoosting | AdaBoost) and (
        getattr(estimator, "estimator", None) is None
    ):
        return RoundTrials(estimator, rows, splits, metric, n_jobs)
    return FoldTrials(estimator, rows, splits, metric, n_jobs)


class RoundTrials:
    """Trials of a booster: rounds on shared bins, stopped early on the held-out rows."""

    def __init__(
        self,
        estimator: GradientBoosting | AdaBoost,
        rows: SelectionRows,
        splits: Sequence[Split],
        metric: object,
        n_jobs: int | None,
    ) -> None:
        self._estimator = estimator
        self._folds = list(splits)
        self._given_metric = metric
        self._given_rows, self._n_jobs = rows, n_jobs
        self._tables: dict[Hashable, tuple[Any, Any, Any]] = {}
        self._lock = Lock()
        self._most_rounds: int | None = None
        options = column_options(estimator._checked_params())
        self._rows: EngineRows = training_rows(*self._table(estimator), None, options)
        self._task = Task.of(estimator._KIND, self._rows.y)
        found = self._find_metric(metric)
        self.metric, self.greater_is_better = found.name, found.greater_is_better
        cells = len(self._rows.y) * self._rows.schema.n_features
        self.n_parallel = _MOST_PARALLEL if cells <= _PARALLEL_CELLS else 1

    def run(
        self, params: Mapping[str, Any], news: ReportProgress, n_threads: int, *, is_default: bool
    ) -> TrialResult:
        """Return the result of the booster with these parameters."""
        booster = self._booster(params, is_default=is_default)
        without_progress(booster, n_threads)
        X, y, weight = self._table(booster)
        watch = _ProgressCallback(
            news, self.metric, self._unit(booster), greater=self.greater_is_better
        )
        result = cv(
            booster,
            X,
            y,
            folds=self._folds,
            sample_weight=weight,
            offset=self._given_rows.offset,
            metrics=self._given_metric,
            callbacks=[watch],
        )
        curve = result.mean[self.metric]
        stops_early = booster.n_iter_no_change is not None or booster.n_estimators == AUTO
        last = result.best_index if stops_early else len(curve) - 1
        return TrialResult(float(curve[last]), last + 1)

    def take_rounds(self, space: Space) -> None:
        """Take `n_estimators` out of a declared space; its largest value limits the rounds."""
        found: Any = space.pop("n_estimators", None)
        self._most_rounds = None if found is None else int(found.high)

    def chosen(self, params: Mapping[str, Any], rounds: int | None) -> dict[str, Any]:
        """Return the parameters with values in place of "auto", and the rounds that were found."""
        own, booster = self._estimator.get_params(deep=False), clone(self._estimator)
        tried = self._resolved(self._booster(params, is_default=not params))
        alone = self._resolved(booster.set_params(**{**params, "n_estimators": rounds, "tol": 0.0}))
        names = own.keys() & alone.keys() - _STOPPING.keys() - {"missing", "random_state"}
        found = {name: tried[name] for name in own if name in names and tried[name] != alone[name]}
        # The rounds are chosen, and a fit to all rows has none to watch.
        stopping = {name: value for name, value in _STOPPING.items() if own[name] != value}
        return dict(params) | found | {"n_estimators": rounds} | stopping

    def _booster(self, params: Mapping[str, Any], *, is_default: bool) -> Any:
        booster = clone(self._estimator).set_params(**params)
        if is_default:
            return booster
        if self._most_rounds is not None:
            booster.set_params(n_estimators=self._most_rounds)
        if booster.n_iter_no_change is None and booster.n_estimators != AUTO:
            booster.set_params(n_iter_no_change=_PATIENCE)
        return booster

    def _table(self, booster: Any) -> tuple[Any, Any, Any]:
        """Return X, y and weights for the bins of a booster; equal ones are binned once."""
        key = binning_key(booster)
        with self._lock:
            if key not in self._tables:
                self._tables[key] = _shared_table(booster, self._given_rows, self._n_jobs)
            return self._tables[key]

    def _unit(self, booster: Any) -> float:
        """Return the progress of a round: with half the rate, a booster needs twice the rounds."""
        if isinstance(booster, AdaBoost):
            return _ADABOOST_UNIT
        return float(self._resolved(booster)["learning_rate"])

    def _resolved(self, booster: Any) -> dict[str, Any]:
        """Return the values of the parameters on this table, without "auto"."""
        params = booster._checked_params()
        found: dict[str, Any] = booster._resolve(
            params, self._rows, self._task, has_validation=True
        )
        return found

    def _find_metric(self, metric: object) -> Metric:
        resolved = self._resolved(self._estimator)
        named = resolved["eval_metric"] if metric is None else metric
        loss, _ = self._estimator._plan(resolved, self._task, self._rows.schema)
        return find_metrics(named, loss, 1)[0]


class _ProgressCallback:
    """Callback of a booster: tells the best score after every unit of progress."""

    def __init__(self, news: ReportProgress, metric: str, unit: float, *, greater: bool) -> None:
        self._news, self._metric, self._unit = news, metric, unit
        self._sign = -1.0 if greater else 1.0
        self._best = math.inf
        self._step = 0

    def __call__(self, done: Round) -> bool:
        value = next(iter(done.results.values()))[self._metric]
        self._best = min(self._best, self._sign * value)
        step = int((done.index + 1) * self._unit)
        if step == self._step:
            return False
        self._step = step
        return self._news(self._sign * self._best, step)


class FoldTrials:
    """Trials of any other estimator: a fit for each fold, on shared bins where it takes them."""

    n_parallel = 1

    def __init__(
        self,
        estimator: Any,
        rows: SelectionRows,
        splits: Sequence[Split],
        metric: object,
        n_jobs: int | None,
    ) -> None:
        self._estimator = estimator
        self._folds = FoldRows(rows, splits, n_jobs)
        self._scorer = Scorer.of(metric, rows.task.kind, _DEFAULT_METRICS[rows.task.kind])
        self.metric, self.greater_is_better = self._scorer.name, self._scorer.greater_is_better

    def run(
        self, params: Mapping[str, Any], news: ReportProgress, n_threads: int, *, is_default: bool
    ) -> TrialResult:
        """Return the mean score over the folds of the estimator with these parameters."""
        scores: list[float] = []
        for fold in range(len(self._folds.splits)):
            estimator = without_progress(clone(self._estimator).set_params(**params), n_threads)
            scores.append(self._folds.run(estimator, fold, self._scorer).score)
            is_last = fold + 1 == len(self._folds.splits)
            if not is_last and news(float(np.mean(scores)), fold + 1):
                break
        return TrialResult(float(np.mean(scores)))

    def take_rounds(self, space: Space) -> None:
        """Take `n_estimators` of boosters in pipelines out: "auto" finds it in every fit."""
        if hasattr(self._estimator, "_TABLE"):
            return
        for prefix, owner in arboost_estimators(self._estimator):
            if getattr(owner, "n_estimators", None) == AUTO:
                space.pop(f"{prefix}n_estimators", None)

    def chosen(self, params: Mapping[str, Any], rounds: int | None) -> dict[str, Any]:
        """Return the parameters of the trial."""
        return dict(params)


def _shared_table(
    estimator: EngineEstimator, rows: SelectionRows, n_jobs: int | None
) -> tuple[Any, Any, Any]:
    """Return X, y and weights of all trials: a Dataset, or the table where bins cannot be shared.

    The target encoding of a Dataset takes whole numbers for amounts, so with labels of numbers and
    more than two classes every trial encodes and bins the table.
    """
    try:
        data = make_dataset(estimator, rows.table.X, rows.y, rows.weight, n_jobs)
    except ValueError:  # reported by the first trial
        return rows.table.X, rows.y, rows.weight
    n_classes = rows.task.n_classes
    if data.encoded_table is not None and n_classes is not None and data.level_classes is None:
        return rows.table.X, rows.y, rows.weight
    return data, None, None
