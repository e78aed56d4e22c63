"""Stacking of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from sklearn.base import RegressorMixin, clone

from arboost.algorithms.stacking import Stacking
from arboost.data.target import numbers_of, target
from arboost.estimator import store
from arboost.member_answers import n_rows_of
from arboost.member_jobs import Learning
from arboost.params.kinds import Param
from arboost.params.stacking import STACKING_REGRESSOR

__all__ = ["StackingRegressor"]


class StackingRegressor(RegressorMixin, Stacking):
    """Regressors whose predictions a final regressor learns from.

    The final regressor learns from what members say of rows that they have not seen: each member is
    fitted once for each fold, on the other rows. Those that predict are fitted on all rows.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and members of the first level, regressors. "drop" in place of an estimator leaves it
        out.
    final_estimator : estimator or None, default=None
        The regressor that learns from what the members say; None is scikit-learn's RidgeCV.
    cv : int, scikit-learn splitter, iterable of pairs, "prefit" or None, default=None
        How rows are held out, so that the final estimator sees what members say of rows that they
        have not seen: a number of folds, of equal shares of the classes for classifiers, and of
        whole groups where fit gets groups; a splitter; or pairs (rows to train on, rows to hold
        out). Rows that are never held out, as the first ones of TimeSeriesSplit, do not train the
        final estimator. None is 5. "prefit" takes the members as they are.
    n_jobs : int or None, default=None
        Number of members that are fitted at a time; -1 for as many as there are CPUs, None for one
        after the other, with the threads that each takes by itself (or as a joblib context says).
        The result does not depend on it.
    passthrough : bool, default=False
        Whether the final estimator sees the columns of X, too, after those of the members.
    verbose : int, default=0
        Above 0, fits of more than about a second draw a progress bar in terminals and notebooks.

    Attributes
    ----------
    estimators_ : list of estimators
        The members, fitted on all rows; without those that are dropped.
    named_estimators_ : Bunch
        The same by name, with "drop" for those that are dropped.
    final_estimator_ : estimator
    stack_method_ : list of str
        What each of `estimators_` is asked for: predict.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns of X have names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from arboost import GradientBoostingRegressor, StackingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [("trees", GradientBoostingRegressor(n_estimators=20)), ("line", Ridge())]
    >>> model = StackingRegressor(members).fit(X, y)
    >>> model.transform(X).shape, model.final_estimator_.coef_.shape
    ((442, 2), (2,))
    """

    _TABLE: ClassVar[Mapping[str, Param]] = STACKING_REGRESSOR
    _KIND: ClassVar[str] = "regressor"

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
    ) -> None:
        store(self, locals())

    def fit(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        *,
        groups: object = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the members and the final estimator.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            As the members take it; a frame stays one.
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            For all members and the final estimator, each of which must take weights.
        groups : array of shape (n_rows,), optional
            Group of each row, never divided by a number of folds; for splitters that read groups.
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
        self._fit(params, data, schema, sample_weight, groups, fit_params)
        return self

    def _final(self) -> Any:
        if self.final_estimator is not None:
            return clone(self.final_estimator)
        from sklearn.linear_model import RidgeCV

        return RidgeCV()
