"""Regressors whose predictions are averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.voting import Voting
from arboost.data.target import numbers_of, target
from arboost.estimator import store
from arboost.member_answers import n_rows_of, predicted_numbers
from arboost.member_jobs import Learning
from arboost.params.kinds import Param
from arboost.params.stacking import VOTING_REGRESSOR

__all__ = ["VotingRegressor"]


class VotingRegressor(RegressorMixin, Voting):
    """The weighted mean of what several regressors predict.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and regressors. "drop" in place of an estimator leaves it out.
    weights : sequence of float or None, default=None
        What each member counts, also for those that are dropped; None counts all the same.
    n_jobs : int or None, default=None
        Number of members that are fitted at a time; -1 for as many as there are CPUs, None for one
        after the other, with the threads that each takes by itself (or as a joblib context says).
        The result does not depend on it.
    verbose : bool, default=False
        Above 0, fits of more than about a second draw a progress bar in terminals and notebooks.

    Attributes
    ----------
    estimators_ : list of regressors
        The members, fitted; without those that are dropped.
    named_estimators_ : Bunch
        The same by name, with "drop" for those that are dropped.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns of X have names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from arboost import GradientBoostingRegressor, VotingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [("trees", GradientBoostingRegressor(n_estimators=20)), ("line", Ridge())]
    >>> model = VotingRegressor(members).fit(X, y)
    >>> abs(model.predict(X) - model.transform(X).mean(axis=1)).max() < 1e-9
    np.True_
    """

    _TABLE: ClassVar[Mapping[str, Param]] = VOTING_REGRESSOR

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        weights: Sequence[float] | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        store(self, locals())

    def fit(self, X: object, y: object, sample_weight: object = None, **fit_params: Any) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            As the members take it; a frame stays one.
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            For all members, each of which must take weights.
        **fit_params
            Only with scikit-learn's metadata routing: for the members that ask for them.

        Returns
        -------
        self
        """
        self._check_routed(fit_params)
        params = self._params()
        table, schema = self._table(X)
        data = Learning(table, numbers_of(target(y, n_rows_of(table))))
        self._fit(params, data, schema, sample_weight, fit_params)
        return self

    def predict(self, X: object) -> NDArray[np.float64]:
        """Return the mean of the members' predictions, by their weights."""
        check_is_fitted(self)
        return self._mean(self._predictions(X))

    def transform(self, X: object) -> NDArray[np.float64]:
        """Return what each member predicts, shape (n_rows, n_members)."""
        check_is_fitted(self)
        return np.column_stack(self._predictions(X))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            They are only checked.
        """
        check_is_fitted(self)
        self._input_names(input_features)
        members = self._fitted_names()
        return self._names_out(members, [None] * len(members))

    def _predictions(self, X: object) -> Sequence[NDArray[np.float64]]:
        table = self._same_table(X)
        return [predicted_numbers(member, table)[:, 0] for member in self.estimators_]
