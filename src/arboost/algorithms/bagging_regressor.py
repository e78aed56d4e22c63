"""Bagging of numbers: regressors on bags of rows, and the mean of their predictions."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.bagging_ensemble import Ask, Bagging
from arboost.algorithms.decision_tree_regressor import DecisionTreeRegressor
from arboost.data.scipy_sparse import is_sparse
from arboost.data.target import numbers_of, target
from arboost.estimator import store
from arboost.losses.base import Floats
from arboost.member_answers import predicted_numbers
from arboost.params.bagging import BAGGING

__all__ = ["BaggingRegressor"]

_TABLE_DIMENSIONS = 2
_FEWEST = 2  # rows that R^2 is defined for


class BaggingRegressor(RegressorMixin, Bagging):
    """Regressors on bags of rows and features, whose mean is the answer.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is trained on each bag: any estimator of scikit-learn's kind, which is cloned; None is
        arboost's decision tree.
    n_estimators : int, default=10
        Number of members, each of them an estimator with a bag of its own.
    max_samples : int or float or None, default=None
        Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of the sum
        of sample_weight). None draws as many as there are.
    max_features : int or float, default=1.0
        Features to draw for each bag: a number, or a share of them, but at least one.
    bootstrap : bool, default=True
        Whether rows are drawn with replacement, and then in proportion to sample_weight; without,
        members get the weights of the rows that are drawn.
    bootstrap_features : bool, default=False
        Whether a feature may come several times in a bag, and others not at all.
    oob_score : bool, default=False
        Whether each training row is predicted by the members that have not drawn it, and the
        ensemble is scored by that.
    warm_start : bool, default=False
        Whether a second call of fit keeps the members of the first and adds those that n_estimators
        asks for beyond them.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. Estimators of arboost are
        trained one by one, with all threads; others side by side. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the bags, and of every parameter random_state of the members; None takes a new one
        for each fit.
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
