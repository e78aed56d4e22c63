"""The parameters of stacking and voting; their names, order and defaults are scikit-learn's."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from arboost.params.kinds import Choice, Flag, Integer, Param, by_name, is_number, to_float
from arboost.params.shared import RUN

__all__ = [
    "STACKING_CLASSIFIER",
    "STACKING_REGRESSOR",
    "VOTING_CLASSIFIER",
    "VOTING_REGRESSOR",
]

_PAIR = 2  # name and estimator


@dataclass(frozen=True, kw_only=True)
class Members(Param):
    """Pairs of name and estimator (or "drop"), without a default."""

    default: Any = inspect.Parameter.empty
    type_name: ClassVar[str] = "list of (str, estimator)"
    annotation: ClassVar[str] = "list[tuple[str, Any]]"
    allowed: ClassVar[str] = "a list of pairs (name, estimator), at least one"

    def check(self, value: object) -> list[tuple[str, Any]]:
        """Return the pairs; the ensemble checks the estimators."""
        is_list = isinstance(value, list | tuple) and len(value) > 0
        if not is_list or not all(map(_is_named, value)):  # type: ignore[call-overload]
            raise ValueError(self.message(value))
        return [tuple(pair) for pair in value]  # type: ignore[attr-defined]


def _is_named(pair: object) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == _PAIR and isinstance(pair[0], str)


@dataclass(frozen=True, kw_only=True)
class FinalEstimator(Param):
    """Estimator that is trained on the members' predictions; None for the default."""

    type_name: ClassVar[str] = "estimator or None"
    annotation: ClassVar[str] = "Any"
    allowed: ClassVar[str] = "an estimator with the method fit, or None"

    def check(self, value: object) -> Any:
        """Return the estimator unchanged."""
        is_estimator = callable(getattr(value, "fit", None)) and not isinstance(value, type)
        if value is not None and not is_estimator:
            raise TypeError(self.message(value))
        return value


@dataclass(frozen=True, kw_only=True)
class Folds(Param):
    """Folds of held-out rows, or "prefit" for members that are already fitted."""

    type_name: ClassVar[str] = 'int, scikit-learn splitter, iterable of pairs, "prefit" or None'
    annotation: ClassVar[str] = "Any"
    allowed: ClassVar[str] = (
        "a number of at least 2, a scikit-learn splitter, a list of pairs (rows to train on, rows "
        'to hold out), "prefit", or None'
    )

    def check(self, value: object) -> Any:
        """Return the value, a number as an int."""
        if value is None or (isinstance(value, str) and value == "prefit"):
            return value
        if is_number(value, numbers.Integral):
            if int(value) < _PAIR:  # type: ignore[call-overload]
                raise ValueError(self.message(value))
            return int(value)  # type: ignore[call-overload]
        if isinstance(value, str):
            raise ValueError(self.message(value))
        if not callable(getattr(value, "split", None)) and not isinstance(value, Iterable):
            raise TypeError(self.message(value))
        return value


@dataclass(frozen=True, kw_only=True)
class VoteWeights(Param):
    """One weight per member; `check` returns them as float64, or None."""

    type_name: ClassVar[str] = "sequence of float or None"
    annotation: ClassVar[str] = "Sequence[float] | None"
    allowed: ClassVar[str] = (
        "a sequence of finite numbers of at least 0, one for each of the estimators, or None"
    )

    def check(self, value: object) -> Any:
        """Return the weights; the ensemble checks their number."""
        if value is None:
            return None
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise TypeError(self.message(value))
        several = list(value)
        if not all(is_number(one, numbers.Real) for one in several):
            raise TypeError(self.message(value))
        weights = [to_float(one) for one in several]
        if not all(math.isfinite(one) and one >= 0.0 for one in weights):
            raise ValueError(self.message(value))
        return np.array(weights)


def _members(text: str) -> Members:
    return Members(
        name="estimators",
        text=text,
        advice='Use for example [("trees", GradientBoostingRegressor()), ("line", Ridge())].',
    )


def _final(kind: str, default: str) -> FinalEstimator:
    return FinalEstimator(
        name="final_estimator",
        default=None,
        text=f"The {kind} that is trained on the members' predictions; None: scikit-learn's "
        f"{default}.",
        advice=f"Use final_estimator=None for {default}.",
    )


_COMMON = by_name(
    Integer(
        name="n_jobs",
        default=None,
        low=1,
        high=1024,
        also=(-1,),
        optional=True,
        text="Number of members that are fitted in parallel; -1 for as many as there are CPUs, "
        "None for one after the other, each with its own threads (or as set by a joblib context). "
        "The result does not depend on it.",
        advice="Use n_jobs=-1 for all CPUs.",
    ),
)

_STACKING = _COMMON | by_name(
    Folds(
        name="cv",
        default=None,
        text="Folds, so that the final estimator is trained on predictions for held-out rows: a "
        "number of folds, stratified by class for classifiers, and of whole groups where fit gets "
        "groups; a splitter; or pairs (rows to train on, rows to hold out). Rows that are never "
        "held out, as the first ones of TimeSeriesSplit, do not train the final estimator. None: "
        '5 folds. "prefit": the members are already fitted.',
        advice="Use cv=5.",
    ),
    Flag(
        name="passthrough",
        default=False,
        text="Whether the final estimator also gets the columns of X, after those of the members.",
    ),
    replace(RUN["verbose"], default=0),
)

STACKING_CLASSIFIER: dict[str, Param] = _STACKING | by_name(
    _members(
        "Names and members of the first level: classifiers, or regressors of the class index. "
        '"drop" in place of an estimator leaves it out.'
    ),
    _final("classifier", "LogisticRegression"),
    Choice(
        name="stack_method",
        default="auto",
        options=("auto", "predict_proba", "decision_function", "predict"),
        text="Method of the members for their predictions; auto: the first of predict_proba, "
        "decision_function and predict that a member has.",
    ),
)

STACKING_REGRESSOR: dict[str, Param] = _STACKING | by_name(
    _members(
        'Names and members of the first level, regressors. "drop" in place of an estimator leaves '
        "it out."
    ),
    _final("regressor", "RidgeCV"),
)

_WEIGHTS = VoteWeights(
    name="weights",
    default=None,
    text="Weight of each member, including dropped ones; None: equal weights.",
    advice="Use weights=None for equal weights.",
)

VOTING_CLASSIFIER: dict[str, Param] = _COMMON | by_name(
    _members('Names and classifiers. "drop" in place of an estimator leaves it out.'),
    Choice(
        name="voting",
        default="hard",
        options=("hard", "soft"),
        text="hard: a majority vote of the members, ties for the smaller label. soft: the class of "
        "the largest mean probability.",
    ),
    _WEIGHTS,
    Flag(
        name="flatten_transform",
        default=True,
        text="With soft voting: whether transform returns the probabilities of all members in "
        "shape (n_rows, n_members * n_classes), or else (n_members, n_rows, n_classes).",
    ),
    replace(RUN["verbose"], default=False),
)

VOTING_REGRESSOR: dict[str, Param] = _COMMON | by_name(
    _members('Names and regressors. "drop" in place of an estimator leaves it out.'),
    _WEIGHTS,
    replace(RUN["verbose"], default=False),
)
