"""compare: every ensemble with its defaults on the same folds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import clone

from arboost.model_selection.comparison import Comparison, ModelScores, ranked
from arboost.model_selection.fold_fits import FoldRows, SelectionRows, read_rows
from arboost.model_selection.models import ModelSettings, find_models
from arboost.model_selection.quiet import warnings_once
from arboost.model_selection.scoring import Scorer
from arboost.model_selection.task import KINDS
from arboost.names.arguments import known_arguments
from arboost.params.boosting import PARAMS
from arboost.progress import Bar
from arboost.training.splits import Split

__all__ = ["compare"]

_USUAL = {"classifier": "auc", "regressor": "rmse"}
_LONGEST_REASON = 200  # characters of a failure


@known_arguments
def compare(
    X: object,
    y: object = None,
    *,
    models: object = None,
    folds: object = 5,
    metric: object = None,
    sample_weight: object = None,
    groups: object = None,
    time_order: bool = False,
    task: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> Comparison:
    """Train every ensemble of the library on the same folds, and return their scores and times.

    Each model has its default parameters; rounds of boosting are found by the models themselves,
    on rows held out of their training rows. Bins are shared by models and folds; categories that
    are encoded by the target are encoded from the training rows of each fold.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        Any table in memory that ``fit`` takes.
    y : array of shape (n_rows,), or the name of a column of X
    models : list or dict, optional
        Names of models (see below), estimators of any library, or pairs (name, estimator); or a
        dict of names and estimators. None: all models of the library.
    folds : int, scikit-learn splitter, or iterable of pairs, default=5
        A number of folds, drawn by ``random_state``: stratified for classification, of whole groups
        where there are groups. Or a splitter, or pairs (training rows, held-out rows).
    metric : name, callable or arboost.Metric, optional
        A name that ``eval_metric`` takes, a function of scikit-learn, or a function of (y,
        predictions, weight), lower is better, which gets class probabilities of shape (n_rows,
        n_classes) or predicted values. None: auc for classification, rmse for regression.
    sample_weight : array of shape (n_rows,), optional
        Weights in training and in the metric; rows of weight 0 are left out.
    groups : array of shape (n_rows,), optional
        Group of each row; a group is never divided.
    time_order : bool, default=False
        Whether rows are ordered by time: each fold is trained on the rows before its held-out rows.
        ``folds`` is then a number.
    task : {"classification", "regression"}, optional
        None: found from y. Strings, truth values and whole numbers of few distinct values are
        classes.
    random_state : int, default=0
        Seed of the folds and of the models by name.
    n_jobs : int, optional
        Number of threads of each fit; None and -1 take all that this process may use. Scores do not
        depend on it.
    verbose : int, default=1
        Whether a comparison of more than about a second draws a progress bar.

    Returns
    -------
    Comparison

    Notes
    -----
    The models are ``gradient_boosting`` (the default booster), ``boosting_depthwise`` (trees of
    depth 6 by level), ``boosting_friedman`` (``boosting="gradient"``), ``boosting_goss``,
    ``boosting_dart`` (a tenth of the trees dropped), ``adaboost``, ``random_forest``,
    ``extra_trees``, ``bagging``, ``decision_tree``, ``stacking`` and ``voting`` (of both forests
    and a booster), and ``baseline``, which ignores X. A model that fails is listed with its reason;
    the others go on.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import compare
    >>> X = np.random.default_rng(0).random((300, 4))
    >>> y = X[:, 0] + X[:, 1] ** 2
    >>> found = compare(X, y, models=["gradient_boosting", "decision_tree", "baseline"])
    >>> found.best
    'gradient_boosting'
    >>> [one.name for one in found.models][-1]
    'baseline'
    """
    seed = PARAMS["random_state"].check(random_state)
    n_jobs = PARAMS["n_jobs"].check(n_jobs)
    verbose = PARAMS["verbose"].check(verbose)
    rows = read_rows(X, y, sample_weight, groups, task)
    kind = rows.task.kind
    scorer = Scorer.of(metric, kind, _USUAL[kind])
    how = "time" if _checked_order(time_order, folds, groups) else "random"
    settings = ModelSettings(kind, seed, n_jobs, "group" if groups is not None else how)
    estimators = find_models(models, settings)
    splits = _time_folds(rows, folds) if how == "time" else rows.splits(folds, seed)
    shared = FoldRows(rows, splits, n_jobs)
    with warnings_once():
        found = _run_all(estimators, shared, scorer, visible=verbose > 0)
    if all(len(one.failures) == len(splits) for one in found):
        name, reason = found[0].name, found[0].failures[0]
        raise ValueError(f"every model failed, {name} for this reason: {reason}")
    return Comparison(
        models=ranked(found, greater_is_better=scorer.greater_is_better),
        metric=scorer.name,
        greater_is_better=scorer.greater_is_better,
        task=next(name for name, one in KINDS.items() if one == kind),
        n_rows=len(rows.y),
        n_folds=len(splits),
        binning_seconds=shared.binning_seconds,
        estimators=MappingProxyType(estimators),
    )


def _run_all(
    estimators: Mapping[str, Any], shared: FoldRows, scorer: Scorer, *, visible: bool
) -> list[ModelScores]:
    """Return the scores of all models; the bar shows the running one and the last score."""
    found, n_folds = [], len(shared.splits)
    with Bar(len(estimators) * n_folds, "comparing", visible=visible) as bar:
        for number, (name, estimator) in enumerate(estimators.items()):
            steps = _Steps(bar, name, number * n_folds, scorer.name)
            found.append(_run_one(name, estimator, shared, scorer, steps))
    return found


class _Steps:
    """Progress of one model: steps of the bar from a first one on."""

    def __init__(self, bar: Bar, name: str, first: int, metric: str) -> None:
        self._bar, self._name, self._first, self._metric = bar, name, first, metric
        bar.relabel(name)
        bar.show(first)

    def done(self, fold: int, score: float) -> None:
        """Show that a fold is done."""
        self._bar.show(self._first + fold + 1, {self._name: {self._metric: score}})


def _run_one(
    name: str, estimator: Any, shared: FoldRows, scorer: Scorer, steps: _Steps
) -> ModelScores:
    n_folds = len(shared.splits)
    results, failures = np.full((n_folds, 3), np.nan), {}
    for fold in range(n_folds):
        try:
            results[fold] = shared.run(clone(estimator), fold, scorer)
        except Exception as error:  # a model that fails is part of the result
            failures[fold] = _reason(error)
        steps.done(fold, float(results[fold, 0]))
    return ModelScores(
        name=name,
        scores=results[:, 0],
        fit_seconds=results[:, 1],
        predict_seconds=results[:, 2],
        failures=MappingProxyType(failures),
    )


def _reason(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


def _checked_order(time_order: object, folds: object, groups: object) -> bool:
    """Return whether rows are ordered by time; raise where folds or groups contradict it."""
    if not isinstance(time_order, bool | np.bool_):
        raise TypeError(
            f"time_order={time_order!r} ({type(time_order).__name__}) is not allowed: time_order "
            "must be True or False. Use time_order=False for folds at random."
        )
    if not time_order:
        return False
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer):
        raise TypeError(
            f"folds={folds!r} ({type(folds).__name__}) is not allowed with time_order=True, which "
            "makes the folds itself. Use a number, or time_order=False."
        )
    if groups is not None:
        raise ValueError(
            "groups are given, but time_order=True divides rows by their order only. Leave out "
            "one of the two."
        )
    return True


def _time_folds(rows: SelectionRows, folds: object) -> list[Split]:
    """Return folds whose held-out rows follow their training rows."""
    from sklearn.model_selection import TimeSeriesSplit

    if isinstance(folds, int | np.integer) and not 1 < folds < len(rows.y):
        raise ValueError(
            f"folds={folds} is not allowed: with {len(rows.y)} rows in time order it must be from "
            f"2 to {len(rows.y) - 1}. Use folds={min(5, len(rows.y) - 1)}."
        )
    return rows.splits(TimeSeriesSplit(folds), 0)
