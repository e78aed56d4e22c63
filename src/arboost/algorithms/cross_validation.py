"""Cross-validation over folds that share one binned table.

    table ──bins──▶ codes ─┬─▶ fold 0: grower on the rows to train on, scores of the held-out rows
                           ├─▶ fold 1 ...
                           └─▶ fold k

The folds go round by round together, so that their mean curve says when to stop.
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

from arboost.algorithms.estimator import TreeEnsemble
from arboost.backend import core, threads
from arboost.data.bins import Binned
from arboost.data.target import Task
from arboost.losses.metrics import Metric
from arboost.model.model import provenance_of
from arboost.training import splits
from arboost.training.fit import Outcome, find_metrics, make_monitor
from arboost.training.held_out import groups_of
from arboost.training.inputs import Part, Rows, number_levels, training_rows, weighted_target
from arboost.training.loop import mean_of_fits, train_together
from arboost.training.monitor import Monitor, Results, Round
from arboost.training.progress import Bar
from arboost.training.rounds import Fitted, Recipe, Rounds
from arboost.training.sets import VALIDATION, bin_part, fold_sets
from arboost.training.splits import Split

__all__ = ["CrossValidation", "cv"]

Curves = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class CrossValidation:
    """What `cv` found.

    Attributes
    ----------
    scores : mapping of str to float64 array of shape (n_folds, n_rounds)
        Each metric on the held-out rows of each fold, after each round.
    mean, std : mapping of str to float64 array of shape (n_rounds,)
        Mean and standard deviation over the folds.
    best_index : int
        Round, from 0, in which the mean of the first metric is best.
    best_score : float
        That mean.
    stop_reason : str
        What ended it: "n_estimators", "n_iter_no_change", "max_time" or "callback NAME".
    folds : tuple of pairs of uint32 arrays
        Rows that were trained on, and rows that were held out.
    models : tuple of estimators, or None
        Those of the folds, where `return_models` asked for them. With early stopping they end with
        the best round.
    """

    scores: Curves
    mean: Curves
    std: Curves
    best_index: int
    best_score: float
    stop_reason: str
    folds: tuple[Split, ...]
    models: tuple[TreeEnsemble, ...] | None

    def __repr__(self) -> str:
        (n_folds, n_rounds), name = next(iter(self.scores.values())).shape, next(iter(self.scores))
        spread = self.std[name][self.best_index]
        return (
            f"CrossValidation({n_folds} folds, {n_rounds} rounds, best {name} "
            f"{self.best_score:.6g} +- {spread:.2g} in round {self.best_index})"
        )


def cv(
    estimator: TreeEnsemble,
    X: object,
    y: object = None,
    *,
    folds: object = 5,
    sample_weight: object = None,
    groups: object = None,
    metrics: object = None,
    callbacks: Iterable[Callable[[Round], object]] = (),
    return_models: bool = False,
) -> CrossValidation:
    """Train on all folds but one, and measure on that one, for each fold in turn.

    The table is binned once, from all rows, and the folds train on the same bins. (So a fold's bins
    have seen its held-out rows, though not their targets. A model that is fitted to the training
    rows alone may have slightly other bins.) All folds make a round, then all the next: with
    ``n_iter_no_change`` they stop together, when the mean over the folds gets no better.

    Parameters
    ----------
    estimator : GradientBoosting or AdaBoost estimator, the latter on trees of the engine
        Whose parameters to use; it stays as it is. ``validation_fraction`` and
        ``validation_split`` have no meaning here, and ``max_time`` is that of all folds together.
    X : table of shape (n_rows, n_features), or arboost.Dataset
    y : array of shape (n_rows,)
    folds : int, scikit-learn splitter, or iterable of pairs, default=5
        A number of folds, which ``random_state`` draws: with the same share of each class in
        every fold for classifiers, of whole groups where there are groups. Or a splitter, or pairs
        (rows to train on, rows to hold out).
    sample_weight : array of shape (n_rows,), optional
        Weights in training and in the metrics; rows of weight 0 count as absent.
    groups : array of shape (n_rows,), optional
        Groups of rows that stay on one side.
    metrics : name, callable, Metric or list, optional
        What to measure; by default the estimator's ``eval_metric``. The first decides what is best.
    callbacks : iterable of callables
        Each gets an `arboost.Round` with the means after every round, and answers None or False to
        go on, True to stop.
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
    if not getattr(estimator, "_has_rounds", False):
        raise TypeError(
            f"estimator={estimator!r} ({type(estimator).__name__}) is not allowed: cv goes round "
            "by round on bins that folds share, so it needs a booster of arboost on its own trees. "
            "For others there is sklearn.model_selection.cross_validate."
        )
    started = time.monotonic()
    params = estimator._params()
    rows = training_rows(X, y, sample_weight, options=estimator._column_options(params))
    plan = _plan(estimator, params, rows, metrics)
    splits = _split(plan, folds, groups)
    params, total = plan.params, plan.recipe.n_estimators
    with Bar(total, "cross-validating", visible=params["verbose"] > 0) as bar:
        monitor = make_monitor(bar, params, plan.metrics, callbacks, started)
        binned = _bins(plan)
        workspace = core.Workspace()
        trainings = [_training(plan, binned, split, workspace) for split in splits]
        fitted, rounds = train_together(trainings, monitor, plan.metrics)
    scores = _curves(rounds, plan.metrics)
    models = None
    if return_models:
        models = tuple(
            _model(
                plan,
                part,
                monitor,
                {name: curve[fold].tolist() for name, curve in scores.items()},
                n_rows=len(splits[fold][0]),
            )
            for fold, part in enumerate(fitted)
        )
    assert monitor.best_index is not None
    assert monitor.best_score is not None
    assert monitor.stop_reason is not None
    return CrossValidation(
        scores=MappingProxyType(scores),
        mean=MappingProxyType({name: mean_of_fits(curve) for name, curve in scores.items()}),
        std=MappingProxyType({name: curve.std(axis=0) for name, curve in scores.items()}),
        best_index=monitor.best_index,
        best_score=monitor.best_score,
        stop_reason=monitor.stop_reason,
        folds=tuple(splits if plan.rows.kept is None else _as_given(splits, plan.rows.kept)),
        models=models,
    )


@dataclass(frozen=True)
class _Plan:
    """What the folds share."""

    estimator: TreeEnsemble
    params: dict[str, Any]
    rows: Rows
    task: Task
    recipe: Recipe
    metrics: tuple[Metric, ...]
    n_threads: int


def _plan(estimator: TreeEnsemble, params: dict[str, Any], rows: Rows, metrics: object) -> _Plan:
    params = estimator._resolve(params, len(rows.y), has_validation=True)
    n_threads = threads(params["n_jobs"])
    task = estimator._task(rows.y, None)
    if task.is_constant:
        raise ValueError(
            f"y has one class, {rows.y[0]!r}: there is nothing to validate. Pass rows of several "
            "classes."
        )
    rows = number_levels(rows, task.y, task.n_classes, None)
    recipe = estimator._recipe(params, estimator._loss(params, task), rows.schema)
    given = params["eval_metric"] if metrics is None else metrics
    found = find_metrics(given, recipe.loss, n_threads)
    return _Plan(estimator, params, rows, task, recipe, found, n_threads)


def _split(plan: _Plan, folds: object, groups: object) -> list[Split]:
    """Return the folds in numbers of the rows that count."""
    rows, task = plan.rows, plan.task
    is_listed = isinstance(folds, Iterable) and not hasattr(folds, "split")
    if is_listed and rows.kept is not None:
        listed = splits.folds(np.empty(rows.source.n_rows), folds, groups=groups)
        place = np.full(rows.source.n_rows, -1)
        place[rows.kept] = np.arange(len(rows.kept))
        counted = [[place[side][place[side] >= 0] for side in pair] for pair in listed]
        return splits.folds(task.y, counted)
    if groups is not None:
        groups = groups_of(groups, rows.source.n_rows, rows.kept)
    is_classifier = task.classes is not None
    seed = plan.params["random_state"]
    return splits.folds(task.y, folds, seed=seed, stratify=is_classifier, groups=groups)


def _as_given(splits: Sequence[Split], kept: NDArray[np.uint32]) -> list[Split]:
    """Return folds in numbers of the rows that were given."""
    return [(kept[train], kept[held_out]) for train, held_out in splits]


def _bins(plan: _Plan) -> Binned:
    """Return the bins of all rows, by their weights in a fit to all of them."""
    task, weight = plan.task, plan.rows.weight
    target = weighted_target(task.y, weight, plan.estimator._factors(plan.params, task, weight))
    return bin_part(Part(plan.rows.source, plan.rows.kept, target), plan.params, plan.n_threads)


def _training(plan: _Plan, binned: Binned, split: Split, workspace: core.Workspace) -> Rounds:
    """Return the fit of one fold, on its rows of the codes that all folds share."""
    train, _ = split
    y, weight = plan.task.y, plan.rows.weight

    def weight_of(rows: NDArray[np.uint32]) -> NDArray[np.float64] | None:
        return None if weight is None else weight[rows]

    loss = plan.recipe.loss
    loss.check_target(y[train])
    # Balanced weights of classes are those of the rows that are trained on, as in fit.
    factors = plan.estimator._factors(plan.params, replace(plan.task, y=y[train]), weight_of(train))
    whole = Part(plan.rows.source, None, weighted_target(y, weight, factors))
    data, evaluations = fold_sets(whole, binned, split, plan.n_threads)
    start = plan.estimator._rounds(None)
    return start(
        plan.recipe,
        data,
        evaluations,
        n_threads=plan.n_threads,
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


def _model(
    plan: _Plan, fitted: Fitted, monitor: Monitor, curves: dict[str, list[float]], n_rows: int
) -> TreeEnsemble:
    """Return an estimator as if it had been fitted to the rows of one fold."""
    model: TreeEnsemble = clone(plan.estimator)
    assert monitor.best_index is not None
    best_score = curves[plan.metrics[0].name][monitor.best_index]
    outcome = Outcome(
        forest=fitted.forest,
        base_score=fitted.base_score,
        link=plan.recipe.loss.link,
        trees_per_round=plan.recipe.trees_per_round,
        best_index=monitor.best_index,
        best_score=best_score,
        history={VALIDATION: curves},
        stop_reason=monitor.stop_reason,
        tree_weights=fitted.tree_weights,
        facts=fitted.facts,
        out_of_bag=fitted.out_of_bag,
        provenance=provenance_of(n_rows, monitor.chosen_by, best_score),
    )
    model._keep(outcome, plan.rows.schema, plan.task, model._record(plan.params))
    return model
