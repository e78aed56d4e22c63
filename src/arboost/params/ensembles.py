"""The parameters of bagging, stacking and voting.

Names, order and defaults of those of stacking and voting are scikit-learn's.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from arboost.params import kinds
from arboost.params.boosting import PARAMS, RUN
from arboost.params.kinds import by_name

BAGGING_REGRESSOR: dict[str, kinds.Param] = by_name(
    kinds.Learner(
        name="estimator",
        default=None,
        text="Member of each bag: any scikit-learn estimator, which is cloned; None: arboost's "
        "decision tree.",
        advice="Use estimator=None for decision trees.",
    ),
    kinds.Integer(
        name="n_estimators",
        default=10,
        low=1,
        text="Number of members, each with a bag of its own.",
    ),
    kinds.CountOrShare(
        name="max_samples",
        default=None,
        optional=True,
        text="Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of "
        "the sum of sample_weight). None draws as many as the table has.",
        advice="Use max_samples=None for as many as the table has, or 0.5 for half of them.",
        search=kinds.Search(0.3, 1.0),
    ),
    kinds.CountOrShare(
        name="max_features",
        default=1.0,
        text="Number of features to draw for each bag, or a share of them; at least one is drawn.",
        advice="Use max_features=1.0 for all of them.",
        search=kinds.Search(0.3, 1.0),
    ),
    kinds.Flag(
        name="bootstrap",
        default=True,
        text="Whether rows are drawn with replacement, in proportion to sample_weight; without "
        "replacement, members get the weights of the drawn rows.",
    ),
    kinds.Flag(
        name="bootstrap_features",
        default=False,
        text="Whether features are drawn with replacement.",
    ),
    kinds.Flag(
        name="oob_score",
        default=False,
        text="Whether to compute out-of-bag predictions and their score.",
    ),
    kinds.Flag(
        name="warm_start",
        default=False,
        text="Whether a further call of fit keeps the members and adds new ones up to "
        "n_estimators.",
    ),
    replace(
        PARAMS["n_jobs"],
        text="Number of threads; None and -1 take all that this process may use. Estimators of "
        "arboost are trained one after the other, with all threads; others in parallel. The "
        "result does not depend on it.",
    ),
    replace(
        PARAMS["random_state"],
        text="Seed of the bags, and of the members' random_state parameters; None: a new seed "
        "for each fit.",
    ),
    PARAMS["verbose"],
)

BAGGING_CLASSIFIER: dict[str, kinds.Param] = BAGGING_REGRESSOR | by_name(
    kinds.Choice(
        name="voting",
        default="soft",
        options=("soft", "hard"),
        text="soft: the mean of the members' class probabilities, or of the classes of members "
        "without any. hard: a majority vote of the members' classes, ties for the smaller label; "
        "predict_proba has the shares of the votes.",
    ),
)

_PAIR = 2  # name and estimator


@dataclass(frozen=True, kw_only=True)
class Members(kinds.SeveralValues):
    """Pairs of name and estimator (or "drop"), without a default."""

    default: Any = inspect.Parameter.empty
    type_name: ClassVar[str] = "list of (str, estimator)"
    annotation: ClassVar[str] = "list[tuple[str, Any]]"
    allowed: ClassVar[str] = "a list of pairs (name, estimator), at least one"
    takes_estimators: ClassVar[bool] = True

    def check(self, value: object) -> list[tuple[str, Any]]:
        """The pairs; the ensemble checks the estimators."""
        is_list = isinstance(value, list | tuple) and len(value) > 0
        if not is_list or not all(map(_is_named, value)):  # type: ignore[call-overload]
            raise self.value_error(value)
        return [tuple(pair) for pair in value]  # type: ignore[attr-defined]


def _is_named(pair: object) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == _PAIR and isinstance(pair[0], str)


@dataclass(frozen=True, kw_only=True)
class FinalEstimator(kinds.Learner):
    """Estimator that is trained on the members' predictions; None for the default."""

    allowed: ClassVar[str] = "an estimator with the method fit, or None"
    methods: ClassVar[tuple[str, ...]] = ("fit",)


@dataclass(frozen=True, kw_only=True)
class Folds(kinds.Param):
    """Folds of held-out rows, or "prefit" for members that are already fitted."""

    type_name: ClassVar[str] = 'int, scikit-learn splitter, iterable of pairs, "prefit" or None'
    annotation: ClassVar[str] = "Any"
    allowed: ClassVar[str] = (
        "a number of at least 2, a scikit-learn splitter, a list of pairs (rows to train on, rows "
        'to hold out), "prefit", or None'
    )

    def check(self, value: object) -> Any:
        """The value, a number as an int."""
        if value is None or (isinstance(value, str) and value == "prefit"):
            return value
        if kinds.is_number(value, numbers.Integral):
            if int(value) < _PAIR:  # type: ignore[call-overload]
                raise self.value_error(value)
            return int(value)  # type: ignore[call-overload]
        if isinstance(value, str):
            raise self.value_error(value)
        if not callable(getattr(value, "split", None)) and not isinstance(value, Iterable):
            raise self.type_error(value)
        return value


@dataclass(frozen=True, kw_only=True)
class VoteWeights(kinds.Param):
    """One weight per member; `check` returns them as float64, or None."""

    type_name: ClassVar[str] = "sequence of float or None"
    annotation: ClassVar[str] = "Sequence[float] | None"
    allowed: ClassVar[str] = (
        "a sequence of finite numbers of at least 0, one for each of the estimators, or None"
    )

    def check(self, value: object) -> Any:
        """The weights; the ensemble checks their number."""
        if value is None:
            return None
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise self.type_error(value)
        weights = self.floats(value, value)
        if not all(math.isfinite(weight) and weight >= 0.0 for weight in weights):
            raise self.value_error(value)
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
    replace(
        RUN["n_jobs"],
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
    kinds.Flag(
        name="passthrough",
        default=False,
        text="Whether the final estimator also gets the columns of X, after those of the members.",
    ),
    replace(RUN["verbose"], default=0),
)

STACKING_CLASSIFIER: dict[str, kinds.Param] = _STACKING | by_name(
    _members(
        "Names and members of the first level: classifiers, or regressors of the class index. "
        '"drop" in place of an estimator leaves it out.'
    ),
    _final("classifier", "LogisticRegression"),
    kinds.Choice(
        name="stack_method",
        default="auto",
        options=("auto", "predict_proba", "decision_function", "predict"),
        text="Method of the members for their predictions; auto: the first of predict_proba, "
        "decision_function and predict that a member has.",
    ),
)

STACKING_REGRESSOR: dict[str, kinds.Param] = _STACKING | by_name(
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

VOTING_CLASSIFIER: dict[str, kinds.Param] = _COMMON | by_name(
    _members('Names and classifiers. "drop" in place of an estimator leaves it out.'),
    kinds.Choice(
        name="voting",
        default="hard",
        options=("hard", "soft"),
        text="hard: a majority vote of the members, ties for the smaller label. soft: the class of "
        "the largest mean probability.",
    ),
    _WEIGHTS,
    kinds.Flag(
        name="flatten_transform",
        default=True,
        text="With soft voting: whether transform returns the probabilities of all members in "
        "shape (n_rows, n_members * n_classes), or else (n_members, n_rows, n_classes).",
    ),
    replace(RUN["verbose"], default=False),
)

VOTING_REGRESSOR: dict[str, kinds.Param] = _COMMON | by_name(
    _members('Names and regressors. "drop" in place of an estimator leaves it out.'),
    _WEIGHTS,
    replace(RUN["verbose"], default=False),
)
