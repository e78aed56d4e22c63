"""Cross-validation over folds that share one binned table.

    table ──bins──▶ codes ─┬─▶ fold 0: trees on its training rows, scores of its held-out rows
                           ├─▶ fold 1 ...
                           └─▶ fold k

The folds train in step, so that their mean curve decides when to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from arboost.backend import core, threads
from arboost.data.bins import Binned
from arboost.data.level_columns import check_pairing
from arboost.data.target import Task
from arboost.estimators.adaboost.adaboost import AdaBoost
from arboost.estimators.estimator import (
    EngineEstimator,
    category_encoding,
    read_rows,
)
from arboost.estimators.gradient_boosting import GradientBoosting
from arboost.losses.base import Loss
from arboost.losses.links import check_offset
from arboost.losses.metrics import Metric
from arboost.models.metadata import history_of, run_history
from arboost.models.model import provenance_of
from arboost.params.records import BinParams, StoppingParams, check
from arboost.params.suggestions import known_arguments
from arboost.training.fit import LoopOptions, find_metrics, train_with_monitor
from arboost.training.inputs import (
    NO_OFFSET,
    VALIDATION,
    EngineRows,
    group_values,
    target_encode_rows,
    weighted_rows,
)
from arboost.training.loop import FitResult, Fitted, Rounds, mean_of_fits
from arboost.training.monitor import Monitor, Results, Round, checked_callbacks
from arboost.training.sets import bin_rows, fold_sets, groups_of, recorded_bins
from arboost.training.splits import Split
from arboost.training.splits import folds as make_folds

Curves = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class CrossValidation:
    """Result of `cv`.

    Attributes
    ----------
    scores : mapping of str to float64 array of shape (n_folds, n_rounds)
        Metrics on the held-out rows of each fold, after each round.
    mean, std : mapping of str to float64 array of shape (n_rounds,)
        Mean and standard deviation over the folds.
    best_index : int
        Round, from 0, in which the mean of the first metric is best.
    best_score : float
        Mean of the first metric in that round.
    stop_reason : str
        Reason of the end: "n_estimators", "n_iter_no_change", "max_time" or "callback NAME".
    folds : tuple of pairs of uint32 arrays
        Training rows and held-out rows of each fold.
    models : tuple of estimators, or None
        Fitted estimators of the folds, with `return_models`. With early stopping they end with the
        best round.
    """

    scores: Curves
    mean: Curves
    std: Curves
    best_index: int
    best_score: float
    stop_reason: str
    folds: tuple[Split, ...]
    models: tuple[EngineEstimator, ...] | None

    def __repr__(self) -> str:
        (n_folds, n_rounds), name = next(iter(self.scores.values())).shape, next(iter(self.scores))
        spread = self.std[name][self.best_index]
        return (
            f"CrossValidation({n_folds} folds, {n_rounds} rounds, best {name} "
            f"{self.best_score:.6g} +- {spread:.2g} in round {self.best_index})"
        )


@known_arguments
def cv(
    estimator: EngineEstimator,
    X: object,
    y: object = None,
    *,
    folds: object = 5,
    sample_weight: object = None,
    offset: object = None,
    groups: object = None,
    metrics: object = None,
    callbacks: Iterable[Callable[[Round], object]] = (),
    return_models: bool = False,
) -> CrossValidation:
    """Cross-validate: train on all folds but one and measure on that one, for each fold.

    The table is binned once, from all rows, and the folds share the bins. (The bins of a fold have
    seen its held-out rows, though not their targets; a model fitted to the training rows alone may
    have slightly other bins.) The folds train in step: with ``n_iter_no_change`` they stop
    together, when the mean over the folds no longer improves.

    Parameters
    ----------
    estimator : GradientBoosting or AdaBoost estimator, the latter on trees of the engine
        Its parameters are used, and it is not fitted. ``validation_fraction`` and
        ``validation_split`` have no effect, and ``max_time`` is for all folds together.
    X : table of shape (n_rows, n_features), or arboost.Dataset
    y : array of shape (n_rows,), or the name of a column of X
    folds : int, scikit-learn splitter, or iterable of pairs, default=5
        A number of folds, drawn by ``random_state``: stratified for classifiers, of whole groups
        where there are groups. Or a splitter, or pairs (training rows, held-out rows).
    sample_weight : array of shape (n_rows,), optional
        Weights in training and in the metrics; rows of weight 0 are left out. Or the name of a
        column of X, which is then no feature.
    offset : array of shape (n_rows,) or (n_rows, n_outputs), str or list of str, optional
        Start of the raw scores in training and in the metrics, for gradient boosting; or names of
        columns of X, which are then no features.
    groups : array of shape (n_rows,), optional
        Group of each row; a group is never divided. Or the name of a column of X, which is then no
        feature.
    metrics : name, callable, Metric or list, optional
        Metrics; by default the estimator's ``eval_metric``. The first one chooses the best round.
    callbacks : iterable of callables
        Each gets an `arboost.Round` with the means after every round; True stops the training, None
        and False continue it.
    return_models : bool, default=False
        Whether to keep the fitted estimators of the folds.

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor, cv
    >>> X = np.arange(200.0).reshape(-1, 1)
    >>> result = cv(GradientBoostingRegressor(n_estimators=20), X, X[:, 0] % 7, folds=4)
    >>> result.mean["squared_error"].shape, result.scores["squared_error"].shape
    ((20,), (4, 20))
    """
    if not isinstance(estimator, GradientBoosting | AdaBoost) or not _grows_trees(estimator):
        raise TypeError(
            f"estimator={estimator!r} ({type(estimator).__name__}) is not allowed: cv goes round "
            "by round on bins that folds share, so it needs a booster of arboost on its own trees. "
            "For others there are arboost.compare and sklearn.model_selection.cross_validate."
        )
    started = time.monotonic()
    given = estimator._checked_params()
    _check_metrics(metrics, given, estimator)  # before the table is read
    check_pairing(X, None, groups=groups)
    plan = _plan(
        estimator, given, _read_rows(estimator, (X, y, sample_weight), offset, groups, given)
    )
    n_threads, stopping = threads(plan.params["n_jobs"]), StoppingParams.of(plan.params)
    named = stopping.eval_metric if metrics is None else metrics
    found = find_metrics(named, plan.loss, n_threads)
    splits = _make_splits(plan, folds, group_values(X, groups))
    binned = bin_rows(_with_class_weights(plan, plan.task, plan.rows.weight), plan.bins, n_threads)
    workspace = core.Workspace()
    trainings = [_fold_training(plan, binned, split, n_threads, workspace) for split in splits]
    watch = LoopOptions(
        plan.params["n_estimators"],
        stopping,
        checked_callbacks(callbacks),
        started,
        label="cross-validating",
    )
    fitted, monitor, rounds = train_with_monitor(trainings, watch, found)
    scores = _curves(rounds, found)
    models = None
    if return_models:
        models = tuple(
            _fold_estimator(
                plan, part, monitor, found[0], scores, fold, n_rows=len(splits[fold][0])
            )
            for fold, part in enumerate(fitted)
        )
    assert monitor.best_index is not None
    assert monitor.best_score is not None
    assert monitor.stop_reason is not None
    index = plan.rows.index
    return CrossValidation(
        scores=MappingProxyType(scores),
        mean=MappingProxyType({name: mean_of_fits(curve) for name, curve in scores.items()}),
        std=MappingProxyType({name: curve.std(axis=0) for name, curve in scores.items()}),
        best_index=monitor.best_index,
        best_score=monitor.best_score,
        stop_reason=monitor.stop_reason,
        folds=tuple(splits if index is None else _input_rows(splits, index)),
        models=models,
    )


def _grows_trees(estimator: GradientBoosting | AdaBoost) -> bool:
    """Whether the learners are trees of the engine."""
    return getattr(estimator, "estimator", None) is None


@dataclass(frozen=True)
class _Plan:
    """Rows, parameters and start of training that the folds share."""

    estimator: GradientBoosting | AdaBoost
    params: dict[str, Any]
    rows: EngineRows
    task: Task
    loss: Loss
    start: Callable[..., Rounds]

    @property
    def bins(self) -> BinParams:
        """Parameters of the bins."""
        return BinParams.of(self.params)


def _check_metrics(
    metrics: object, params: dict[str, Any], estimator: GradientBoosting | AdaBoost
) -> None:
    """Raise for a misspelt name."""
    if metrics is not None:
        own_loss = {"loss": params["loss"]} if "loss" in params else {}
        check({"eval_metric": metrics, **own_loss}, estimator._TABLE)


def _read_rows(
    estimator: GradientBoosting | AdaBoost,
    rows: tuple[object, object, object],
    offset: object,
    groups: object,
    params: dict[str, Any],
) -> EngineRows:
    if not isinstance(estimator, GradientBoosting):
        if offset is not None:
            raise TypeError(
                f"offset is not allowed with {type(estimator).__name__}: only gradient boosting "
                "starts from an offset. Leave it out."
            )
        offset = NO_OFFSET
    return read_rows(rows, params, offset=offset, groups=groups)


def _plan(estimator: GradientBoosting | AdaBoost, given: dict[str, Any], rows: EngineRows) -> _Plan:
    task = Task.of(estimator._KIND, rows.y)
    if task.is_constant:
        raise ValueError(
            f"y has one class, {rows.y[0]!r}: there is nothing to validate. Pass rows of several "
            "classes."
        )
    encoding = category_encoding(given, estimator._USUAL_ENCODING)
    rows = target_encode_rows(rows, [task], None, encoding)
    params = estimator._resolve(given, rows, task, has_validation=True)
    loss, start = estimator._plan(params, task, rows.schema)
    check_offset(rows.offset, loss.n_outputs, loss.link)
    return _Plan(estimator, params, rows, task, loss, start)


def _make_splits(plan: _Plan, folds: object, groups: object) -> list[Split]:
    """Return the folds as positions among the rows of nonzero weight."""
    rows, task = plan.rows, plan.task
    is_listed = isinstance(folds, Iterable) and not hasattr(folds, "split")
    if is_listed and rows.index is not None:
        listed = make_folds(np.empty(rows.source.n_rows), folds, groups=groups)
        place = np.full(rows.source.n_rows, -1)
        place[rows.index] = np.arange(len(rows.index))
        counted = [[place[side][place[side] >= 0] for side in pair] for pair in listed]
        return make_folds(task.y, counted)
    if groups is not None:
        groups = groups_of(groups, rows.source.n_rows, rows.index)
    is_classifier = task.classes is not None
    seed = plan.params["random_state"]
    return make_folds(task.y, folds, seed=seed, stratify=is_classifier, groups=groups)


def _input_rows(splits: Sequence[Split], index: NDArray[np.uint32]) -> list[Split]:
    """Return folds as positions among the rows given to `cv`."""
    return [(index[train], index[held_out]) for train, held_out in splits]


def _with_class_weights(plan: _Plan, task: Task, weight: NDArray[np.float64] | None) -> EngineRows:
    """Return all rows with the class weights of some of them."""
    factors = plan.estimator._class_factors(plan.params, task, weight)
    return weighted_rows(plan.rows, plan.task.y, factors)


def _fold_training(
    plan: _Plan, binned: Binned, split: Split, n_threads: int, workspace: core.Workspace
) -> Rounds:
    """Return the training of one fold, on its rows of the codes that all folds share."""
    train, _ = split
    y, weight = plan.task.y[train], plan.rows.weight
    plan.loss.check_target(y)
    # Balanced class weights are those of the training rows of the fold, as in fit.
    weight = None if weight is None else weight[train]
    rows = replace(_with_class_weights(plan, replace(plan.task, y=y), weight), index=None)
    data, evaluations = fold_sets(rows, binned, split, n_threads)
    return plan.start(
        data,
        evaluations,
        n_threads=n_threads,
        seed=plan.params["random_state"],
        workspace=workspace,
    )


def _curves(
    rounds: list[list[Results]], metrics: Sequence[Metric]
) -> dict[str, NDArray[np.float64]]:
    """Return the results of each metric, shape (n_folds, n_rounds)."""
    return {
        metric.name: np.array(
            [[of[VALIDATION][metric.name] for of in results] for results in rounds]
        ).T.copy()
        for metric in metrics
    }


def _fold_estimator(
    plan: _Plan,
    fitted: Fitted,
    monitor: Monitor,
    metric: Metric,
    scores: dict[str, NDArray[np.float64]],
    fold: int,
    n_rows: int,
) -> GradientBoosting | AdaBoost:
    """Return an estimator as if it had been fitted to the training rows of one fold."""
    model: GradientBoosting | AdaBoost = clone(plan.estimator)
    assert monitor.best_index is not None
    curves: dict[str, list[float]] = {name: of[fold].tolist() for name, of in scores.items()}
    watched = curves[metric.name]
    best_score = watched[monitor.best_index]
    # Folds stop together; where nothing stops them, each has a best round of its own.
    own_best = max(watched) if metric.greater_is_better else min(watched)
    best_index = monitor.best_index if monitor.cuts_to_best else watched.index(own_best)
    history = {VALIDATION: curves}
    result = FitResult(
        fitted=fitted,
        best_index=monitor.best_index,
        best_score=best_score,
        history=history,
        stop_reason=monitor.stop_reason,
        provenance=provenance_of(
            n_rows,
            monitor.chosen_by,
            best_score,
            history_of([run_history(history, best_index)]),
        ),
    )
    bins = {"max_bins": recorded_bins(plan.rows, plan.bins)}
    recorded = model._recorded_params(plan.params | bins)
    model._keep(result, plan.rows.schema, plan.task, recorded)
    return model
