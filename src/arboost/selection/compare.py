"""compare: every ensemble with its defaults on the same folds."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit

import arboost
from arboost.errors import InputTypeError, ParameterError, warn_caller, warnings_collected
from arboost.estimators.folds import (
    FoldFits,
    Scorer,
    SelectionRows,
    Splits,
    read_rows,
    refuse_rankers,
    without_progress,
)
from arboost.params import kinds
from arboost.params.boosting import PARAMS
from arboost.params.suggestions import known_arguments, value_suggestion
from arboost.progress import Bar
from arboost.selection.comparison import Comparison, ModelScores, rank_models
from arboost.text import shortened

_DEFAULT_METRICS = {"classifier": "auc", "regressor": "rmse"}
_LONGEST_REASON = 200  # characters of a failure
_TIME_ORDER = kinds.Flag(
    name="time_order",
    default=False,
    text="Whether rows are ordered by time.",
    advice="Use time_order=False for folds at random.",
)


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
    """Train every ensemble of the library on the same folds: a table of scores and times.

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
        None: inferred from y. Strings, truth values and whole numbers of few distinct values are
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
    >>> comparison = compare(X, y, models=["gradient_boosting", "decision_tree", "baseline"])
    >>> comparison.best
    'gradient_boosting'
    >>> comparison.models[-1].name
    'baseline'
    """
    seed = PARAMS["random_state"].check(random_state)
    n_jobs = PARAMS["n_jobs"].check(n_jobs)
    verbose = PARAMS["verbose"].check(verbose)
    rows = read_rows(X, y, sample_weight, groups, task)
    kind = rows.task.kind
    scorer = Scorer.of(_DEFAULT_METRICS[kind] if metric is None else metric, kind)
    if _TIME_ORDER.check(time_order):
        how, splits = "time", _time_folds(rows, folds, groups)
    else:
        how, splits = "random" if groups is None else "group", rows.splits(folds, seed)
    estimators = make_models(models, ModelSettings(kind, seed, n_jobs, how))
    fits = FoldFits(rows, splits, n_jobs)
    with _warnings_once():
        scores = _score_models(estimators, fits, scorer, visible=verbose > 0)
    if all(len(model.failures) == len(splits) for model in scores):
        name, reason = scores[0].name, scores[0].failures[0]
        raise ValueError(f"every model failed, {name} for this reason: {reason}")
    return Comparison(
        models=rank_models(scores, greater_is_better=scorer.greater_is_better),
        metric=scorer.name,
        greater_is_better=scorer.greater_is_better,
        task="classification" if kind == "classifier" else "regression",
        n_rows=len(rows.y),
        n_folds=len(splits),
        binning_seconds=fits.binning_seconds,
        estimators=MappingProxyType(estimators),
    )


def _score_models(
    estimators: Mapping[str, Any], fits: FoldFits, scorer: Scorer, *, visible: bool
) -> list[ModelScores]:
    """Scores of all models; the bar shows the running model and its last score."""
    n_folds, scores = len(fits.splits), []
    with Bar(len(estimators) * n_folds, "comparing", visible=visible) as bar:
        for number, (name, estimator) in enumerate(estimators.items()):
            bar.relabel(name)
            bar.show(number * n_folds)
            results, failures = np.full((n_folds, 3), np.nan), {}
            for fold in range(n_folds):
                try:
                    results[fold] = fits.run(clone(estimator), fold, scorer)
                except Exception as error:  # a model that fails is part of the result
                    text = " ".join(f"{type(error).__name__}: {error}".split())
                    failures[fold] = shortened(text, _LONGEST_REASON)
                score = {scorer.name: float(results[fold, 0])}
                bar.show(number * n_folds + fold + 1, {name: score})
            scores.append(
                ModelScores(
                    name=name,
                    scores=results[:, 0],
                    fit_seconds=results[:, 1],
                    predict_seconds=results[:, 2],
                    failures=MappingProxyType(failures),
                )
            )
    return scores


def _time_folds(rows: SelectionRows, folds: object, groups: object) -> Splits:
    """Folds whose held-out rows follow their training rows; raise for groups and other folds."""
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer):
        raise InputTypeError(
            f"folds={folds!r} ({type(folds).__name__}) is not allowed with time_order=True, which "
            "makes the folds itself. Use a number, or time_order=False."
        )
    if groups is not None:
        raise ValueError(
            "groups are given, but time_order=True divides rows by their order only. Leave out "
            "one of the two."
        )
    if not 1 < folds < len(rows.y):
        raise ValueError(
            f"folds={folds} is not allowed: with {len(rows.y)} rows in time order it must be from "
            f"2 to {len(rows.y) - 1}. Use folds={min(5, len(rows.y) - 1)}."
        )
    return rows.splits(TimeSeriesSplit(folds), 0)


# ---- models by name ----

_MEMBERS = ("random_forest", "extra_trees", "gradient_boosting")  # of stack and vote
_STACK_FOLDS = 5
_PAIR = 2

# Name -> class without "Classifier" and "Regressor", and parameters. Rounds are searched with
# preset="fast" where dropout, or the folds of a stack, multiply the work.
_SINGLE_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gradient_boosting": ("GradientBoosting", {}),
    "boosting_depthwise": ("GradientBoosting", {"grow_policy": "depthwise", "max_depth": 6}),
    "boosting_friedman": ("GradientBoosting", {"boosting": "gradient"}),
    "boosting_goss": ("GradientBoosting", {"sampling_method": "goss"}),
    "boosting_dart": ("GradientBoosting", {"rate_drop": 0.1, "preset": "fast"}),
    "adaboost": ("AdaBoost", {}),
    "random_forest": ("RandomForest", {}),
    "extra_trees": ("ExtraTrees", {}),
    "bagging": ("Bagging", {}),
    "decision_tree": ("DecisionTree", {}),
}
MODELS: tuple[str, ...] = (*_SINGLE_MODELS, "stacking", "voting", "baseline")


@dataclass(frozen=True)
class ModelSettings:
    """Settings that all models of a comparison share.

    Attributes
    ----------
    kind : {"classifier", "regressor"}
    seed : int
    n_jobs : int or None
    validation_split : {"random", "group", "time"}
        Held-out rows of fits that look for their number of rounds.
    """

    kind: str
    seed: int = 0
    n_jobs: int | None = None
    validation_split: str = "random"


def make_models(models: object, settings: ModelSettings) -> dict[str, Any]:
    """Unfitted models of a user's argument by name.

    Parameters
    ----------
    models : None, str, mapping of str to estimator, or sequence
        Names, estimators, and pairs of both; None for all models of the library.
    settings : ModelSettings
        For models by name; estimators keep their own parameters, except for threads.
    """
    if models is None:
        models = MODELS
    elif isinstance(models, str):
        models = [models]
    elif isinstance(models, Mapping):
        models = list(models.items())
    if not isinstance(models, Sequence):
        raise TypeError(
            f"models={models!r} ({type(models).__name__}) is not allowed: it must be a list of "
            f"names and estimators, or a dict of names and estimators. {_models_advice()}"
        )
    made: dict[str, Any] = {}
    for name, estimator in map(_name_pair, models):
        refuse_rankers(estimator, "compare")
        if name in made:
            raise ValueError(
                f"models holds {name!r} twice, but results go by name. Pass a dict of names and "
                "estimators."
            )
        if estimator is None:
            made[name] = make_model(name, settings)
        else:
            made[name] = without_progress(clone(estimator), settings.n_jobs)
    if not made:
        raise ValueError(f"models={models!r} holds no model. {_models_advice()}")
    return made


def make_model(name: str, settings: ModelSettings) -> Any:
    """Unfitted model of a name in `MODELS`."""
    is_classifier = settings.kind == "classifier"
    if name == "baseline":
        return DummyClassifier(strategy="prior") if is_classifier else DummyRegressor()
    if name in _SINGLE_MODELS:
        stem, params = _SINGLE_MODELS[name]
        params = {"random_state": settings.seed, "n_jobs": settings.n_jobs, "verbose": 0} | params
        if stem == "GradientBoosting":
            params["validation_split"] = settings.validation_split
        return _estimator_class(stem, settings)(**params)
    # Members of stacks and votes get no groups.
    split = "random" if settings.validation_split == "group" else settings.validation_split
    members = {
        member: make_model(member, replace(settings, validation_split=split)) for member in _MEMBERS
    }
    members["gradient_boosting"].set_params(preset="fast")
    options: dict[str, Any] = {"cv": _stack_folds(settings)} if name == "stacking" else {}
    if name == "voting" and is_classifier:
        options = {"voting": "soft"}
    return _estimator_class(name.capitalize(), settings)(list(members.items()), **options)


def _estimator_class(stem: str, settings: ModelSettings) -> Any:
    return getattr(arboost, stem + settings.kind.capitalize())


def _stack_folds(settings: ModelSettings) -> Any:
    """Folds at random: those of a number would take neighbours of a sorted table."""
    if settings.validation_split == "time":
        return TimeSeriesSplit(_STACK_FOLDS)
    if settings.validation_split == "group":
        return _STACK_FOLDS
    kind = StratifiedKFold if settings.kind == "classifier" else KFold
    return kind(_STACK_FOLDS, shuffle=True, random_state=settings.seed)


def _name_pair(entry: object) -> tuple[str, Any]:
    """Name and estimator; None in place of an estimator for a name of `MODELS`."""
    if isinstance(entry, str):
        if entry not in MODELS:
            hint = value_suggestion("models", entry, MODELS)
            hint = f" {hint[0].upper()}{hint[1:]}" if hint else ""
            raise ParameterError(
                f"models holds {entry!r}, which is not a model.{hint} Names are "
                f"{', '.join(MODELS)}.",
                "An estimator may stand in place of a name.",
                parameter="models",
            )
        return entry, None
    name, estimator = type(entry).__name__, entry
    if isinstance(entry, tuple | list) and len(entry) == _PAIR and isinstance(entry[0], str):
        name, estimator = entry
    if isinstance(estimator, type) or not callable(getattr(estimator, "fit", None)):
        raise TypeError(
            f"models holds {estimator!r} ({type(estimator).__name__}), which is not an estimator: "
            f"it has no method fit. {_models_advice()}"
        )
    return name, estimator


def _models_advice() -> str:
    return f"Names are {', '.join(MODELS)}; an estimator may stand in place of a name."


@contextmanager
def _warnings_once() -> Iterator[None]:
    """Collect the warnings of the block, and issue each once at its end.

    Messages that differ in numbers only, such as the rows of a fold, are one. Warnings of other
    libraries, and those on too few rounds of one of many models, are dropped.
    """
    with warnings.catch_warnings(), warnings_collected() as collected:
        warnings.simplefilter("ignore", UserWarning)
        yield
    issued = set()
    for message, category in collected:
        text = re.sub(r"\d+", "0", message)
        if text not in issued and not issubclass(category, ConvergenceWarning):
            issued.add(text)
            warn_caller(message, category)
