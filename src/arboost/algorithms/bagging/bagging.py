"""Bagging of classes: classifiers on bags of rows, and the mean of their probabilities or votes."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.bagging.base import Ask, Bagging
from arboost.algorithms.estimator import store
from arboost.algorithms.forests.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from arboost.algorithms.members.answers import (
    class_choice,
    class_shares,
    member_name,
    predicted_numbers,
)
from arboost.data.scipy_sparse import is_sparse
from arboost.data.target import codes_of, encode_labels, numbers_of, target
from arboost.losses.base import Floats
from arboost.params.bagging import BAGGING

__all__ = ["BaggingClassifier", "BaggingRegressor"]


_TWO_CLASSES = 2


def _can_decide(bagging: Bagging) -> bool:
    """Whether members have a decision function; an AttributeError says that they do not."""
    bagging._template().decision_function  # noqa: B018
    return True


class BaggingClassifier(ClassifierMixin, Bagging):
    """Classifiers on bags of rows and features, which vote.

    The vote is soft where members have ``predict_proba``: the mean of their probabilities. Else it
    is hard: the share of members that choose a class.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Member of each bag: any scikit-learn estimator, which is cloned; None: arboost's decision
        tree.
    n_estimators : int, default=10
        Number of members, each with a bag of its own.
    max_samples : int or float or None, default=None
        Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of the sum
        of sample_weight). None draws as many as the table has.
    max_features : int or float, default=1.0
        Features to draw for each bag: a number, or a share of them, but at least one.
    bootstrap : bool, default=True
        Whether rows are drawn with replacement, in proportion to sample_weight; without
        replacement, members get the weights of the drawn rows.
    bootstrap_features : bool, default=False
        Whether features are drawn with replacement.
    oob_score : bool, default=False
        Whether to compute out-of-bag predictions and their score.
    warm_start : bool, default=False
        Whether a further call of fit keeps the members and adds new ones up to n_estimators.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. Estimators of arboost are
        trained one after the other, with all threads; others in parallel. The result does not
        depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the bags, and of the members' random_state parameters; None: a new seed for each
        fit.
    verbose : int, default=1
        Above 0, fits of more than about a second draw a progress bar in terminals and notebooks.

    Attributes
    ----------
    estimator_ : estimator
        What the members are clones of.
    estimators_ : list of estimators
        The members. (Where a classifier refuses rows of a single class, and that is all that its
        bag has, its place is taken by scikit-learn's DummyClassifier.)
    estimators_samples_ : list of int arrays
        Rows of each member, ascending, as often as they were drawn.
    estimators_features_ : list of int arrays
        Its features, ascending.
    classes_ : array of shape (n_classes_,)
        Labels, in the order of the probabilities.
    n_classes_ : int
        Their number.
    oob_score_, oob_decision_function_ : float, float64 array of shape (n_rows, n_classes_)
        With ``oob_score=True``: accuracy and probabilities of the training rows by the members that
        have not drawn them; NaN for rows that all have drawn.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from arboost import BaggingClassifier, GradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> booster = GradientBoostingClassifier(n_estimators=10)
    >>> model = BaggingClassifier(booster, n_estimators=20, oob_score=True).fit(X, y)
    >>> round(model.oob_score_, 2)
    0.95
    """

    _TABLE = BAGGING
    _OUT_OF_BAG = "oob_decision_function_"

    classes_: NDArray[Any]

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: int = 1,
    ) -> None:
        store(self, locals())

    def predict(self, X: object, **params: Any) -> NDArray[Any]:
        """Return the labels with the largest share of the vote, shape (n_rows,).

        More arguments are passed on to the members, here and in all methods below.
        """
        shares = self._shares(X, "predict", params)
        labels: NDArray[Any] = self.classes_.take(shares.argmax(axis=1))
        return labels

    def predict_proba(self, X: object, **params: Any) -> Floats:
        """Return each class's share of the vote, shape (n_rows, n_classes)."""
        return self._shares(X, "predict_proba", params)

    def predict_log_proba(self, X: object, **params: Any) -> Floats:
        """Return the logarithms of the shares; -inf for a class without a vote."""
        shares = self._shares(X, "predict_log_proba", params)
        with np.errstate(divide="ignore"):
            logarithms: Floats = np.log(shares)
        return logarithms

    @available_if(_can_decide)  # type: ignore[untyped-decorator]
    def decision_function(self, X: object, **params: Any) -> Floats:
        """Return the mean of the members' decision functions, of their shape.

        A class that a member has not seen gets the smallest of what it says of the others.
        """
        check_is_fitted(self)
        given = self._routed("decision_function", params)
        return self._mean(X, partial(_decision, self.classes_, given))

    def _shares(self, X: object, caller: str, params: dict[str, Any]) -> Floats:
        check_is_fitted(self)
        return self._mean(X, self._asks(self._routed(caller, params)))

    @property
    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _default(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier()

    def _callees(self) -> dict[str, str]:
        callee = "predict_proba" if hasattr(self._template(), "predict_proba") else "predict"
        callers = ("predict", "predict_proba", "predict_log_proba")
        return dict.fromkeys(callers, callee) | {"decision_function": "decision_function"}

    def _target(
        self, y: object, n_rows: int, old: Self | None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        labels = target(y, n_rows)
        if old is None:
            classes, codes = encode_labels(labels)
        else:
            classes = old.classes_
            codes = codes_of(labels, classes, "y", "the fit that goes on")
        facts = {"classes_": classes, "n_classes_": len(classes)}
        return classes[codes.astype(np.intp)], facts

    def _asks(self, params: dict[str, Any]) -> Ask:
        return partial(_vote, self.classes_, params)

    def _score(self, target: NDArray[Any], means: Floats, weight: Floats | None) -> float:
        predicted = self.classes_.take(means.argmax(axis=1))
        return float(accuracy_score(target, predicted, sample_weight=weight))


def _vote(labels: NDArray[Any], params: dict[str, Any], member: Any, X: Any) -> Floats:
    """Return the probabilities of a member, or 1 for the class that it chooses."""
    if hasattr(member, "predict_proba"):
        return class_shares(member, X, labels, "one without, whose choices count", **params)
    return class_choice(member, X, labels, **params)


def _decision(labels: NDArray[Any], params: dict[str, Any], member: Any, X: Any) -> Floats:
    """Return the decision function of a member, over all classes."""
    known = np.asarray(getattr(member, "classes_", labels))
    if len(known) == 1 < len(labels):  # there was nothing to decide
        n_rows = X.shape[0]
        return np.zeros(n_rows if len(labels) == _TWO_CLASSES else (n_rows, len(labels)))
    values = np.asarray(member.decision_function(X, **params), np.float64)
    if len(known) == len(labels):
        return values
    if len(known) == _TWO_CLASSES:
        values = np.column_stack([-values, values])
    if values.shape != (len(values), len(known)):
        raise ValueError(
            f"a member ({member_name(member)}) has seen {len(known)} of the {len(labels)} classes, "
            f"and its decision function of shape {values.shape} has no column for each. Use "
            "predict_proba, or more rows for each member."
        )
    decision = np.repeat(values.min(axis=1, keepdims=True), len(labels), axis=1)
    decision[:, np.searchsorted(labels, known)] = values
    return decision


_TABLE_DIMENSIONS = 2
_FEWEST = 2  # rows that R^2 is defined for


class BaggingRegressor(RegressorMixin, Bagging):
    """Regressors on bags of rows and features, whose mean is the answer.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Member of each bag: any scikit-learn estimator, which is cloned; None: arboost's decision
        tree.
    n_estimators : int, default=10
        Number of members, each with a bag of its own.
    max_samples : int or float or None, default=None
        Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of the sum
        of sample_weight). None draws as many as the table has.
    max_features : int or float, default=1.0
        Features to draw for each bag: a number, or a share of them, but at least one.
    bootstrap : bool, default=True
        Whether rows are drawn with replacement, in proportion to sample_weight; without
        replacement, members get the weights of the drawn rows.
    bootstrap_features : bool, default=False
        Whether features are drawn with replacement.
    oob_score : bool, default=False
        Whether to compute out-of-bag predictions and their score.
    warm_start : bool, default=False
        Whether a further call of fit keeps the members and adds new ones up to n_estimators.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. Estimators of arboost are
        trained one after the other, with all threads; others in parallel. The result does not
        depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the bags, and of the members' random_state parameters; None: a new seed for each
        fit.
    verbose : int, default=1
        Above 0, fits of more than about a second draw a progress bar in terminals and notebooks.

    Attributes
    ----------
    estimator_ : estimator
        What the members are clones of.
    estimators_ : list of estimators
        The members. (Where a classifier refuses rows of a single class, and that is all that its
        bag has, its place is taken by scikit-learn's DummyClassifier.)
    estimators_samples_ : list of int arrays
        Rows of each member, ascending, as often as they were drawn.
    estimators_features_ : list of int arrays
        Its features, ascending.
    oob_score_, oob_prediction_ : float, float64 array of the shape of y
        With ``oob_score=True``: R^2 and predictions of the training rows by the members that have
        not drawn them; NaN for rows that all have drawn.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost import BaggingRegressor, GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> booster = GradientBoostingRegressor(n_estimators=20)
    >>> model = BaggingRegressor(booster, n_estimators=20, oob_score=True).fit(X, y)
    >>> round(model.oob_score_, 1)
    0.4
    """

    _TABLE = BAGGING
    _OUT_OF_BAG = "oob_prediction_"

    _n_targets: int

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: int = 1,
    ) -> None:
        store(self, locals())

    def predict(self, X: object, **params: Any) -> Floats:
        """Return the mean of the members' predictions, of the shape of y.

        More arguments are passed on to the members.
        """
        check_is_fitted(self)
        return self._shaped(self._mean(X, self._asks(self._routed("predict", params))))

    @property
    def _n_outputs(self) -> int:
        return self._n_targets

    def _default(self) -> DecisionTreeRegressor:
        return DecisionTreeRegressor()

    def _callees(self) -> dict[str, str]:
        return {"predict": "predict"}

    def _target(
        self, y: object, n_rows: int, old: Self | None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        given = np.asarray(None if is_sparse(y) else y)  # what is sparse is refused below
        if given.ndim == _TABLE_DIMENSIONS and given.shape[1] > 1:
            columns = [numbers_of(target(column, n_rows)) for column in given.T]
            values = np.column_stack(columns)
        else:
            values = numbers_of(target(y, n_rows))
        n_targets = 1 if values.ndim == 1 else values.shape[1]
        if old is not None and old._n_targets != n_targets:
            raise ValueError(
                f"y has {n_targets} target(s), but the members that are kept were trained on "
                f"{old._n_targets}. Pass as many, or use warm_start=False to start anew."
            )
        return values, {"_n_targets": n_targets}

    def _asks(self, params: dict[str, Any]) -> Ask:
        return partial(_numbers, self._n_targets, params)

    def _score(self, target: NDArray[Any], means: Floats, weight: Floats | None) -> float:
        if len(target) < _FEWEST:
            return float("nan")
        return float(r2_score(target, self._shaped(means), sample_weight=weight))

    def _shaped(self, means: Floats) -> Floats:
        return means[:, 0] if self._n_targets == 1 else means

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_members = get_tags(self._template()).target_tags
        tags.target_tags.multi_output = of_members.multi_output
        return tags


def _numbers(n_targets: int, params: dict[str, Any], member: Any, X: Any) -> Floats:
    return predicted_numbers(member, X, n_targets, **params)
