"""One trial: parameters -> score on held-out rows, with reports of its progress on the way.

    booster:  bins of all rows ─▶ rounds on the folds in step ─▶ report after each unit of progress
    others:   fold 0 ─▶ report ─▶ fold 1 ─▶ report ...

A report tells the best score so far; the answer says whether to stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

import arboost
from arboost.estimators import folds
from arboost.params.auto import AUTO
from arboost.selection.space import Space

ReportProgress = Callable[[float, int], bool]  # (best score so far, step) -> whether to stop

_PATIENCE = 50  # rounds without a better score, where the estimator stops by no other rule
_STOPPING = {"n_iter_no_change": None, "eval_metric": None, "tol": 0.0}  # of fits without it
_ADABOOST_UNIT = 0.1  # progress of a round of AdaBoost; that of a booster is its learning rate
_PARALLEL_CELLS = 4_000_000  # cells of a table, below which trials in parallel beat threads in one
_MOST_PARALLEL = 4
_DEFAULT_METRICS = {"classifier": "log_loss", "regressor": "rmse"}
_ADABOOST = (arboost.AdaBoostClassifier, arboost.AdaBoostRegressor)
_BOOSTERS = (
    arboost.GradientBoostingClassifier,
    arboost.GradientBoostingRanker,
    arboost.GradientBoostingRegressor,
    *_ADABOOST,
)


@dataclass(frozen=True)
class TrialResult:
    """Result of a trial: its score, and the number of rounds where early stopping chose it."""

    score: float
    rounds: int | None = None


class RoundTrials:
    """Trials of a booster: rounds on shared bins, stopped early on the held-out rows."""

    def __init__(self, estimator: Any, fits: folds.BoosterFolds) -> None:
        self._estimator, self._fits = estimator, fits
        self._most_rounds: int | None = None
        self.metric = fits.metric.name
        self.greater_is_better = fits.metric.greater_is_better
        self.n_parallel = _MOST_PARALLEL if fits.n_cells <= _PARALLEL_CELLS else 1

    def run(
        self, params: Mapping[str, Any], report: ReportProgress, n_threads: int, *, is_default: bool
    ) -> TrialResult:
        """Result of the booster with these parameters."""
        booster = folds.without_progress(self._booster(params, is_default=is_default), n_threads)
        curve, best = self._fits.run(booster, self._callback(booster, report))
        stops_early = booster.n_iter_no_change is not None or booster.n_estimators == AUTO
        last = best if stops_early else len(curve) - 1
        return TrialResult(float(curve[last]), last + 1)

    def take_rounds(self, space: Space) -> None:
        """Take `n_estimators` out of a declared space; its largest value limits the rounds."""
        distribution: Any = space.pop("n_estimators", None)
        self._most_rounds = None if distribution is None else int(distribution.high)

    def chosen(self, params: Mapping[str, Any], rounds: int | None) -> dict[str, Any]:
        """Parameters of the trial, with values in place of "auto", and its number of rounds."""
        declared, booster = self._estimator.get_params(deep=False), clone(self._estimator)
        tried = self._fits.resolved(self._booster(params, is_default=not params))
        booster.set_params(**{**params, "n_estimators": rounds, "tol": 0.0})
        alone = self._fits.resolved(booster)
        names = declared.keys() & alone.keys() - _STOPPING.keys() - {"missing", "random_state"}
        resolved = {
            name: tried[name] for name in declared if name in names and tried[name] != alone[name]
        }
        # The rounds are chosen, and a fit to all rows has none to watch.
        stopping = {name: value for name, value in _STOPPING.items() if declared[name] != value}
        return dict(params) | resolved | {"n_estimators": rounds} | stopping

    def _booster(self, params: Mapping[str, Any], *, is_default: bool) -> Any:
        booster = clone(self._estimator).set_params(**params)
        if is_default:
            return booster
        if self._most_rounds is not None:
            booster.set_params(n_estimators=self._most_rounds)
        if booster.n_iter_no_change is None and booster.n_estimators != AUTO:
            booster.set_params(n_iter_no_change=_PATIENCE)
        return booster

    def _callback(self, booster: Any, report: ReportProgress) -> Callable[[arboost.Round], bool]:
        """Callback of a booster: reports the best score after every unit of progress."""
        unit = _ADABOOST_UNIT
        if not isinstance(booster, _ADABOOST):  # with half the rate, it needs twice the rounds
            unit = float(self._fits.resolved(booster)["learning_rate"])
        sign = -1.0 if self.greater_is_better else 1.0
        best_loss, step = math.inf, 0

        def report_unit(done: arboost.Round) -> bool:
            nonlocal best_loss, step
            best_loss = min(best_loss, sign * next(iter(done.results.values()))[self.metric])
            previous, step = step, int((done.index + 1) * unit)
            return step != previous and report(sign * best_loss, step)

        return report_unit


class FoldTrials:
    """Trials of any other estimator: a fit for each fold, on shared bins where it takes them."""

    n_parallel = 1

    def __init__(self, estimator: Any, fits: folds.FoldFits, scorer: folds.Scorer) -> None:
        self._estimator, self._fits, self._scorer = estimator, fits, scorer
        self.metric, self.greater_is_better = scorer.name, scorer.greater_is_better

    def run(
        self, params: Mapping[str, Any], report: ReportProgress, n_threads: int, *, is_default: bool
    ) -> TrialResult:
        """Mean score over the folds of the estimator with these parameters."""
        scores: list[float] = []
        for fold in range(len(self._fits.splits)):
            estimator = folds.without_progress(
                clone(self._estimator).set_params(**params), n_threads
            )
            scores.append(self._fits.run(estimator, fold, self._scorer).score)
            is_last = fold + 1 == len(self._fits.splits)
            if not is_last and report(float(np.mean(scores)), fold + 1):
                break
        return TrialResult(float(np.mean(scores)))

    def take_rounds(self, space: Space) -> None:
        """Take `n_estimators` of boosters in pipelines out: "auto" finds it in every fit."""
        if hasattr(self._estimator, "_TABLE"):
            return
        for prefix, estimator in folds.arboost_estimators(self._estimator):
            if getattr(estimator, "n_estimators", None) == AUTO:
                space.pop(f"{prefix}n_estimators", None)

    def chosen(self, params: Mapping[str, Any], rounds: int | None) -> dict[str, Any]:
        """Parameters of the trial."""
        return dict(params)


Trials = RoundTrials | FoldTrials


def make_trials(
    estimator: Any,
    rows: folds.SelectionRows,
    splits: folds.Splits,
    metric: object,
    n_jobs: int | None,
) -> Trials:
    """Trials of an estimator: rounds for boosters on their own trees, else fits."""
    if isinstance(estimator, _BOOSTERS) and getattr(estimator, "estimator", None) is None:
        return RoundTrials(estimator, folds.BoosterFolds(estimator, rows, splits, metric, n_jobs))
    kind = rows.task.kind
    scorer = folds.Scorer.of(_DEFAULT_METRICS[kind] if metric is None else metric, kind)
    return FoldTrials(estimator, folds.FoldFits(rows, splits, n_jobs), scorer)
