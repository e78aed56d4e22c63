"""BaggingClassifier and BaggingRegressor."""

from __future__ import annotations

from functools import partial
from typing import Any

from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.bagging.base import Bagging
from arboost.algorithms.bagging.outputs import class_decision
from arboost.algorithms.estimator import classifier_score, regressor_score, store
from arboost.backend import core
from arboost.losses.base import Floats
from arboost.params.bagging import BAGGING_CLASSIFIER, BAGGING_REGRESSOR

__all__ = ["BaggingClassifier", "BaggingRegressor"]


def _has_decision_function(bagging: Bagging) -> bool:
    """Whether members have a decision function; raises AttributeError otherwise."""
    bagging._template().decision_function  # noqa: B018
    return True


class BaggingClassifier(ClassifierMixin, Bagging):
    """Classifiers that are trained on bags of rows and features, and vote.

    The vote is soft if the members have ``predict_proba``: the mean of their probabilities. Else it
    is hard: the share of the members that predict a class.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Member of each bag: any scikit-learn estimator, which is cloned; None: arboost's decision
        tree.
    n_estimators : int, default=10
        Number of members, each with a bag of its own.
    voting : {"soft", "hard"}, default="soft"
        soft: the mean of the members' class probabilities, or of the classes of members without
        any. hard: a majority vote of the members' classes, ties for the smaller label;
        predict_proba has the shares of the votes.
    max_samples : int or float or None, default=None
        Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of the sum
        of sample_weight). None draws as many as the table has.
    max_features : int or float, default=1.0
        Number of features to draw for each bag, or a share of them; at least one is drawn.
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
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    estimator_ : estimator
        The estimator that the members are clones of.
    estimators_ : list of estimators
        The members. (A classifier that refuses a bag of a single class is replaced by
        scikit-learn's DummyClassifier.)
    estimators_samples_ : list of int arrays
        Rows of each member, ascending, with repetitions.
    estimators_features_ : list of int arrays
        Features of each member, ascending, with repetitions.
    classes_ : array of shape (n_classes_,)
        Labels, in the order of the probabilities.
    n_classes_ : int
        Number of classes.
    oob_score_, oob_decision_function_ : float, float64 array of shape (n_rows, n_classes_)
        With ``oob_score=True``: accuracy and probabilities of the out-of-bag predictions; NaN for
        rows that every member has drawn.
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

    _TABLE = BAGGING_CLASSIFIER
    _KIND = "classifier"

    score = classifier_score

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        voting: str = "soft",
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
    ) -> None:
        store(self, locals())

    def predict(self, X: object, **params: Any) -> NDArray[Any]:
        """Return the labels with the largest share of the vote, shape (n_rows,).

        More arguments are passed on to the members, as in all prediction methods.
        """
        shares = self._mean_outputs(X, "predict", params)
        labels: NDArray[Any] = self.classes_.take(shares.argmax(axis=1))
        return labels

    def predict_proba(self, X: object, **params: Any) -> Floats:
        """Return each class's share of the vote, shape (n_rows, n_classes)."""
        return self._mean_outputs(X, "predict_proba", params)

    def predict_log_proba(self, X: object, **params: Any) -> Floats:
        """Return the logarithms of `predict_proba`; -inf for a class without a vote."""
        return core.log(self._mean_outputs(X, "predict_log_proba", params))

    @available_if(_has_decision_function)  # type: ignore[untyped-decorator]
    def decision_function(self, X: object, **params: Any) -> Floats:
        """Return the mean of the members' decision functions, in their shape.

        A class that a member was not fitted on gets the smallest of the member's other values.
        """
        check_is_fitted(self)
        arguments = self._routed("decision_function", params)
        return self._mean(X, partial(class_decision, arguments=arguments, classes=self.classes_))


class BaggingRegressor(RegressorMixin, Bagging):
    """Regressors that are trained on bags of rows and features; their predictions are averaged.

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
        Number of features to draw for each bag, or a share of them; at least one is drawn.
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
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    estimator_ : estimator
        The estimator that the members are clones of.
    estimators_ : list of estimators
        The members. (A classifier that refuses a bag of a single class is replaced by
        scikit-learn's DummyClassifier.)
    estimators_samples_ : list of int arrays
        Rows of each member, ascending, with repetitions.
    estimators_features_ : list of int arrays
        Features of each member, ascending, with repetitions.
    oob_score_, oob_prediction_ : float, float64 array of the shape of y
        With ``oob_score=True``: R^2 and values of the out-of-bag predictions; NaN for rows that
        every member has drawn.
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

    _TABLE = BAGGING_REGRESSOR
    _KIND = "regressor"

    score = regressor_score

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
        verbose: bool | int = 1,
    ) -> None:
        store(self, locals())

    def predict(self, X: object, **params: Any) -> Floats:
        """Return the mean of the members' predictions, in the shape of y.

        More arguments are passed on to the members.
        """
        means = self._mean_outputs(X, "predict", params)
        return self._outputs.shaped(means)
