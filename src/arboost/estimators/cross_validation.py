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
from arboost.data.target import Task, check_pairing
from arboost.errors import InputTypeError, ParameterTypeError
from arboost.estimators.adaboost.adaboost import AdaBoost
from arboost.estimators.estimator import EngineEstimator, category_encoding, read_rows
from arboost.estimators.gradient_boosting import GradientBoosting
from arboost.estimators.ranker import GradientBoostingRanker, ranked_rows
from arboost.losses.base import Loss
from arboost.losses.links import check_offset
from arboost.losses.metrics import Metric, find_metrics
from arboost.models.metadata import history_of, provenance_of, run_history
from arboost.params.records import BinParams, StoppingParams, check
from arboost.params.suggestions import known_arguments
from arboost.training import fit, inputs, loop, sets
from arboost.training.monitor import Monitor, Round, checked_callbacks
from arboost.training.splits import Index, Split
from arboost.training.splits import folds as make_folds

Booster = GradientBoosting | AdaBoost
Curves = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class CrossValidation:
    """Result of `cv`.

    Attributes
    ----------
    scores : mapping of str to float64 array of shape (n_folds, n_rounds)
        Metrics on the held-out rows of each fold, after each round.
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
    best_index: int
    best_score: float
    stop_reason: str
    folds: tuple[Split, ...]
    models: tuple[EngineEstimator, ...] | None

    @property
    def mean(self) -> Curves:
        """Mean of each metric over the folds, after each round."""
        return MappingProxyType(
            {name: loop.mean_of_fits(curve) for name, curve in self.scores.items()}
        )

    @property
    def std(self) -> Curves:
        """Standard deviation of each metric over the folds, after each round."""
        return MappingProxyType({name: curve.std(axis=0) for name, curve in self.scores.items()})

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
    qid: object = None,
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
        column of X; the column is then not used as a feature.
    offset : array of shape (n_rows,) or (n_rows, n_outputs), str or list of str, optional
        Start of the raw scores in training and in the metrics, for gradient boosting; or names of
        columns of X, which are then not used as features.
    groups : array of shape (n_rows,), optional
        Group of each row; a group is never divided. Or the name of a column of X; the column is
        then not used as a feature.
    qid : array of shape (n_rows,), optional
        Query of each row, for rankers: folds are of whole queries. Or the name of a column of X.
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
    started = time.monotonic()
    groups = query_groups(estimator, groups, qid)
    plan = _read_plan(estimator, (X, y, sample_weight), offset, groups, metrics)
    n_threads, stopping = threads(plan.params["n_jobs"]), StoppingParams.of(plan.params)
    named_metrics = stopping.eval_metric if metrics is None else metrics
    eval_metrics = find_metrics(named_metrics, plan.loss, n_threads)
    index, n_rows = plan.rows.index, plan.rows.source.n_rows
    is_listed = isinstance(folds, Iterable) and not hasattr(folds, "split")
    splits = counted_folds(
        plan.task.y,
        folds,
        index,
        n_rows,
        seed=plan.params["random_state"],
        stratify=plan.task.classes is not None,
        groups=_groups_of_folds(plan, X, groups, is_listed=is_listed),
    )
    if plan.rows.query is not None and is_listed:
        _check_whole_queries(plan.rows.query, splits)
    weighted = plan.weighted(plan.task, plan.rows.weight)
    binned = sets.bin_rows(weighted, BinParams.of(plan.params), n_threads)
    workspace = core.Workspace()
    trainings = [plan.training(binned, split, n_threads, workspace) for split in splits]
    options = fit.LoopOptions(
        plan.params["n_estimators"],
        stopping,
        checked_callbacks(callbacks),
        started,
        label="cross-validating",
    )
    fitted, monitor, results = fit.train_with_monitor(trainings, options, eval_metrics)
    scores = {
        metric.name: np.array(
            [[folds[inputs.VALIDATION][metric.name] for folds in round_] for round_ in results]
        ).T.copy()
        for metric in eval_metrics
    }
    models = None
    if return_models:
        models = tuple(
            plan.model(learners, monitor, eval_metrics[0], scores, fold, n_rows=len(train))
            for fold, (learners, (train, _)) in enumerate(zip(fitted, splits, strict=True))
        )
    assert monitor.best_index is not None
    assert monitor.best_score is not None
    assert monitor.stop_reason is not None
    if index is not None:  # positions among the rows of X
        splits = [(index[train], index[held_out]) for train, held_out in splits]
    return CrossValidation(
        scores=MappingProxyType(scores),
        best_index=monitor.best_index,
        best_score=monitor.best_score,
        stop_reason=monitor.stop_reason,
        folds=tuple(splits),
        models=models,
    )


def query_groups(estimator: object, groups: object, qid: object) -> object:
    """Groups of the rows that folds do not divide: the queries of a ranker."""
    if not isinstance(estimator, GradientBoostingRanker):
        if qid is not None:
            raise InputTypeError(
                f"qid is for rankers, but the estimator is a {type(estimator).__name__}. Use "
                "GradientBoostingRanker, or pass groups=."
            )
        return groups
    if groups is not None:
        raise ValueError(
            "groups are not allowed with a ranker, whose folds are of whole queries. Pass qid "
            "alone, or folds as a list of pairs of rows."
        )
    if qid is None:
        raise ValueError(
            "qid is None, but a ranker needs the query of each row. Pass qid=, an array or the "
            "name of a column."
        )
    return qid


def _groups_of_folds(
    plan: _Plan, X: object, groups: object, *, is_listed: bool
) -> NDArray[Any] | None:
    """Groups that folds do not divide; a list of folds has whole queries by itself."""
    if plan.rows.query is not None:
        return None if is_listed else plan.rows.query
    groups = inputs.group_values(X, groups)
    if groups is None:
        return None
    return sets.groups_of(groups, plan.rows.source.n_rows, plan.rows.index)


def _check_whole_queries(query: NDArray[np.int64], splits: Sequence[Split]) -> None:
    for number, (train, held_out) in enumerate(splits):
        divided = np.isin(query[held_out], query[train])
        if divided.any():
            row = int(held_out[divided.argmax()])
            raise ValueError(
                f"folds[{number}] divides a query: row {row} is held out, but other rows of its "
                "query are trained on. Put all rows of a query on one side."
            )


def counted_folds(
    y: NDArray[Any], folds: object, index: Index | None, n_all: int, **options: Any
) -> list[Split]:
    """The folds as positions among the rows of nonzero weight.

    Folds in a list count all rows of the user.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Target of the rows of nonzero weight.
    folds : int, splitter, or iterable of pairs
    index : uint32 array of shape (n_rows,), or None
        Positions of these rows in the user's table; None for all.
    n_all : int
        Number of rows of the user's table.
    **options
        seed, stratify and groups of `arboost.training.splits.folds`.
    """
    is_listed = isinstance(folds, Iterable) and not hasattr(folds, "split")
    if is_listed and index is not None:
        position = np.full(n_all, -1)
        position[index] = np.arange(len(index))
        listed = make_folds(np.empty(n_all), folds, **options)
        folds = [[position[side][position[side] >= 0] for side in pair] for pair in listed]
    return make_folds(y, folds, **options)


def _read_plan(
    estimator: object,
    arrays: tuple[object, object, object],
    offset: object,
    groups: object,
    metrics: object,
) -> _Plan:
    """Check the arguments of `cv` and read the rows."""
    takes_other_learners = getattr(estimator, "estimator", None) is not None
    if not isinstance(estimator, GradientBoosting | AdaBoost) or takes_other_learners:
        raise ParameterTypeError(
            f"estimator={estimator!r} ({type(estimator).__name__}) is not allowed: cv goes round "
            "by round on bins that folds share, so it needs a booster of arboost on its own trees. "
            "For others there are arboost.compare and sklearn.model_selection.cross_validate.",
            parameter="estimator",
        )
    params = estimator._checked_params()
    if metrics is not None:  # a misspelt name is refused before the table is read
        named_loss = {"loss": params["loss"]} if "loss" in params else {}
        check({"eval_metric": metrics, **named_loss}, estimator._TABLE)
    check_pairing(arrays[0], None, groups=groups)
    if isinstance(estimator, AdaBoost):
        if offset is not None:
            raise InputTypeError(
                f"offset is not allowed with {type(estimator).__name__}: only gradient boosting "
                "starts from an offset. Leave it out."
            )
        offset = inputs.NO_OFFSET
    groups_name = getattr(estimator, "_GROUPS", "groups")
    rows = read_rows(arrays, params, offset=offset, groups=groups, groups_name=groups_name)
    task = Task.of(estimator._KIND, rows.y)
    if isinstance(estimator, GradientBoostingRanker):
        rows = ranked_rows(rows, task, arrays[0], groups, params["gain"])
    if task.is_constant:
        raise ValueError(
            f"y has one class, {rows.y[0]!r}: there is nothing to validate. Pass rows of several "
            "classes."
        )
    encoding = category_encoding(params, estimator._DEFAULT_ENCODING)
    rows = inputs.target_encode_rows(rows, [task], None, encoding)
    params = estimator._resolve(params, rows, task, has_validation=True)
    loss, start = estimator._plan(params, task, rows.schema)
    check_offset(rows.offset, loss.n_outputs, loss.link)
    return _Plan(estimator, params, rows, task, loss, start)


@dataclass(frozen=True)
class _Plan:
    """Rows, parameters and start of training that the folds share."""

    estimator: Booster
    params: dict[str, Any]
    rows: inputs.EngineRows
    task: Task
    loss: Loss
    start: Callable[..., loop.Rounds]

    def weighted(self, task: Task, weight: NDArray[np.float64] | None) -> inputs.EngineRows:
        """Return all rows with the class weights of some of them."""
        factors = self.estimator._class_factors(self.params, task, weight)
        return inputs.weighted_rows(self.rows, self.task.y, factors)

    def training(
        self, binned: Binned, split: Split, n_threads: int, workspace: core.Workspace
    ) -> loop.Rounds:
        """The training of one fold, on its rows of the codes that all folds share."""
        y, weight = self.task.y[split[0]], self.rows.weight
        self.loss.check_target(y)
        # Balanced class weights are those of the training rows of the fold, as in fit.
        weight = None if weight is None else weight[split[0]]
        rows = replace(self.weighted(replace(self.task, y=y), weight), index=None)
        data, evaluations = sets.fold_sets(rows, binned, split, n_threads)
        seed = self.params["random_state"]
        return self.start(data, evaluations, n_threads=n_threads, seed=seed, workspace=workspace)

    def model(
        self,
        fitted: loop.Fitted,
        monitor: Monitor,
        metric: Metric,
        scores: Curves,
        fold: int,
        n_rows: int,
    ) -> Booster:
        """An estimator as if it had been fitted to the training rows of one fold."""
        assert monitor.best_index is not None
        curves: dict[str, list[float]] = {
            name: curve[fold].tolist() for name, curve in scores.items()
        }
        curve = curves[metric.name]
        best_score = curve[monitor.best_index]
        # Folds stop together; without early stopping, the best round differs from fold to fold.
        fold_best = curve.index(max(curve) if metric.greater_is_better else min(curve))
        best_index = monitor.best_index if monitor.cuts_to_best else fold_best
        history = {inputs.VALIDATION: curves}
        runs = history_of([run_history(history, best_index)])
        result = loop.FitResult(
            fitted=fitted,
            best_index=monitor.best_index,
            best_score=best_score,
            history=history,
            stop_reason=monitor.stop_reason,
            provenance=provenance_of(n_rows, monitor.chosen_by, best_score, runs),
        )
        model: Booster = clone(self.estimator)
        bins = {"max_bins": sets.recorded_bins(self.rows, BinParams.of(self.params))}
        recorded = model._recorded_params(self.params | bins)
        model._keep(result, self.rows.schema, self.task, recorded)
        return model
