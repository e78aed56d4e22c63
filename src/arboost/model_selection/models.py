"""The ensembles of the library by name, each with its defaults, for one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit

from arboost.algorithms.adaboost.classifier import AdaBoostClassifier
from arboost.algorithms.adaboost.regressor import AdaBoostRegressor
from arboost.algorithms.bagging.bagging import BaggingClassifier, BaggingRegressor
from arboost.algorithms.forests.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from arboost.algorithms.forests.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
from arboost.algorithms.forests.random_forest import RandomForestClassifier, RandomForestRegressor
from arboost.algorithms.gradient_boosting.classifier import GradientBoostingClassifier
from arboost.algorithms.gradient_boosting.regressor import GradientBoostingRegressor
from arboost.algorithms.stacking.stacking import StackingClassifier, StackingRegressor
from arboost.algorithms.stacking.voting import VotingClassifier, VotingRegressor
from arboost.model_selection.fold_fits import silenced
from arboost.names.answers import value_answer

__all__ = ["MODELS", "ModelSettings", "default_model", "find_models"]

BASELINE = "baseline"

_PAIRS: dict[str, tuple[type[Any], type[Any]]] = {
    "boosting": (GradientBoostingClassifier, GradientBoostingRegressor),
    "adaboost": (AdaBoostClassifier, AdaBoostRegressor),
    "random_forest": (RandomForestClassifier, RandomForestRegressor),
    "extra_trees": (ExtraTreesClassifier, ExtraTreesRegressor),
    "bagging": (BaggingClassifier, BaggingRegressor),
    "decision_tree": (DecisionTreeClassifier, DecisionTreeRegressor),
}
# The modes of gradient boosting; rounds are searched with preset="fast" where dropout, or the folds
# of a stack, multiply the work.
_MODES: dict[str, dict[str, Any]] = {
    "gradient_boosting": {},
    "boosting_depthwise": {"grow_policy": "depthwise", "max_depth": 6},
    "boosting_friedman": {"boosting": "gradient"},
    "boosting_goss": {"sampling_method": "goss"},
    "boosting_dart": {"rate_drop": 0.1, "preset": "fast"},
}
_MEMBERS = ("random_forest", "extra_trees", "gradient_boosting")  # of stack and vote
_STACK_FOLDS = 5
_ALONE = ("adaboost", "random_forest", "extra_trees", "bagging", "decision_tree")

MODELS: tuple[str, ...] = (*_MODES, *_ALONE, "stacking", "voting", BASELINE)


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


def default_model(name: str, settings: ModelSettings) -> Any:
    """Return an unfitted model of a name in `MODELS`."""
    place = 0 if settings.kind == "classifier" else 1
    common = {"random_state": settings.seed, "n_jobs": settings.n_jobs, "verbose": 0}
    if name in _MODES:
        mode = _MODES[name] | {"validation_split": settings.validation_split}
        return _PAIRS["boosting"][place](**mode, **common)
    if name in _PAIRS:
        return _PAIRS[name][place](**common)
    if name == BASELINE:
        is_classifier = settings.kind == "classifier"
        return DummyClassifier(strategy="prior") if is_classifier else DummyRegressor()
    alone = replace(settings, validation_split="random")  # members get no groups
    of_members = alone if settings.validation_split == "group" else settings
    members = [(one, default_model(one, of_members)) for one in _MEMBERS]
    dict(members)["gradient_boosting"].set_params(preset="fast")
    if name == "stacking":
        return (StackingClassifier, StackingRegressor)[place](members, cv=_stack_folds(settings))
    if settings.kind == "classifier":
        return VotingClassifier(members, voting="soft")
    return VotingRegressor(members)


def _stack_folds(settings: ModelSettings) -> Any:
    """Return folds at random: those of a number would take neighbours of a sorted table."""
    if settings.validation_split == "time":
        return TimeSeriesSplit(_STACK_FOLDS)
    if settings.validation_split == "group":
        return _STACK_FOLDS
    kind = StratifiedKFold if settings.kind == "classifier" else KFold
    return kind(_STACK_FOLDS, shuffle=True, random_state=settings.seed)


def find_models(models: object, settings: ModelSettings) -> dict[str, Any]:
    """Return the models of a user's argument by name.

    Parameters
    ----------
    models : None, str, mapping of str to estimator, or sequence
        Names, estimators, and pairs of both; None for all models of the library.
    settings : ModelSettings
        For models by name; estimators keep their own parameters, except for threads.
    """
    if models is None:
        return {name: default_model(name, settings) for name in MODELS}
    found: dict[str, Any] = {}
    for name, given in _named(models):
        if name in found:
            raise ValueError(
                f"models holds {name!r} twice, but results go by name. Pass a dict of names and "
                "estimators."
            )
        if given is None:
            found[name] = default_model(name, settings)
        else:
            found[name] = silenced(clone(given), settings.n_jobs)
    if not found:
        raise ValueError(f"models={models!r} holds no model. {_advice()}")
    return found


def _named(models: object) -> list[tuple[str, Any]]:
    """Return names and estimators; None in place of an estimator for a name of `MODELS`."""
    if isinstance(models, str):
        models = [models]
    if isinstance(models, Mapping):
        models = list(models.items())
    if not isinstance(models, Sequence):
        raise TypeError(
            f"models={models!r} ({type(models).__name__}) is not allowed: it must be a list of "
            f"names and estimators, or a dict of names and estimators. {_advice()}"
        )
    return [_named_one(one) for one in models]


def _named_one(one: object) -> tuple[str, Any]:
    if isinstance(one, str):
        if one not in MODELS:
            hint = value_answer("models", one, MODELS)
            hint = f" {hint[0].upper()}{hint[1:]}" if hint else ""
            raise ValueError(f"models holds {one!r}, which is no model.{hint} {_advice()}")
        return one, None
    name, estimator = type(one).__name__, one
    if isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[0], str):  # noqa: PLR2004
        name, estimator = one
    if isinstance(estimator, type) or not callable(getattr(estimator, "fit", None)):
        raise TypeError(
            f"models holds {estimator!r} ({type(estimator).__name__}), which is no estimator: it "
            f"has no method fit. {_advice()}"
        )
    return name, estimator


def _advice() -> str:
    return f"Names are {', '.join(MODELS)}; an estimator may stand in place of a name."
