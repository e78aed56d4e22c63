"""Stacking of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target

from arboost.algorithms.estimator import store
from arboost.algorithms.members.answers import Classes, answers, n_rows_of
from arboost.algorithms.members.jobs import Learning
from arboost.algorithms.stacking.base import Stacking, final_has
from arboost.data.target import encode_labels, numbers_of, target
from arboost.params.kinds import Param
from arboost.params.stacking import STACKING_CLASSIFIER, STACKING_REGRESSOR

__all__ = ["StackingClassifier", "StackingRegressor"]


_SEVERAL = 2  # dimensions of y, and columns of it


class StackingClassifier(ClassifierMixin, Stacking):
    """Classifiers whose probabilities a final classifier learns from.

    The final classifier learns from what members say of rows that they have not seen: each member
    is fitted once for each fold, on the other rows. Those that predict are fitted on all rows.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and members of the first level: classifiers, or regressors of the class index. "drop"
        in place of an estimator leaves it out.
    final_estimator : estimator or None, default=None
        The classifier that is trained on the members' predictions; None: scikit-learn's
        LogisticRegression.
    cv : int, scikit-learn splitter, iterable of pairs, "prefit" or None, default=None
        Folds, so that the final estimator is trained on predictions for held-out rows: a number of
        folds, stratified by class for classifiers, and of whole groups where fit gets groups; a
        splitter; or pairs (rows to train on, rows to hold out). Rows that are never held out, as
        the first ones of TimeSeriesSplit, do not train the final estimator. None: 5 folds.
        "prefit": the members are already fitted.
    stack_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        Method of the members for their predictions; auto: the first of predict_proba,
        decision_function and predict that a member has.
    n_jobs : int or None, default=None
        Number of members that are fitted in parallel; -1 for as many as there are CPUs, None for
        one after the other, each with its own threads (or as set by a joblib context). The result
        does not depend on it.
    passthrough : bool, default=False
        Whether the final estimator also gets the columns of X, after those of the members.
    verbose : int, default=0
        Above 0, fits of more than about a second draw a progress bar in terminals and notebooks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted. Of several targets (columns of 0 and 1) a list with those of each.
    estimators_ : list of estimators
        The members, fitted on all rows, on the numbers of the classes as `y`; without those that
        are dropped.
    named_estimators_ : Bunch
        The same by name, with "drop" for those that are dropped.
    final_estimator_ : estimator
    stack_method_ : list of str
        What each of `estimators_` is asked for.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns of X have names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from arboost import GradientBoostingClassifier, StackingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [
    ...     ("trees", GradientBoostingClassifier(n_estimators=20)),
    ...     ("line", LogisticRegression(max_iter=1000)),
    ... ]
    >>> model = StackingClassifier(members).fit(X, y)
    >>> model.transform(X).shape
    (150, 6)
    """

    _TABLE: ClassVar[Mapping[str, Param]] = STACKING_CLASSIFIER
    _KIND: ClassVar[str] = "classifier"
    _MEMBERS_OF_ANY_KIND: ClassVar[bool] = True

    classes_: NDArray[Any] | list[NDArray[Any]]

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
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
        y : array of shape (n_rows,), or (n_rows, n_targets) of 0 and 1
            Labels. Members and final estimator get their numbers in sorted order.
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
        codes, classes = _labels(y, n_rows_of(table))
        data = Learning(table, codes, classes)
        self._fit(params, data, schema, sample_weight, groups, fit_params)
        assert classes is not None
        self.classes_ = classes
        return self

    @available_if(final_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Return the probabilities of the classes in the order of ``classes_``.

        Of several targets: the probability of the larger label of each, shape (n_rows, n_targets).
        """
        first = self._first_level(X)
        # The rows that it was fitted on may lack a class: those never held out have it.
        given = answers(self.final_estimator_, "predict_proba", first, self._classes)
        if not isinstance(given, list):
            return given
        return np.column_stack([_share_of_larger(one) for one in given])

    @available_if(final_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: object) -> NDArray[np.float64]:
        """Return the scores of the final estimator: (n_rows,) for two classes, else by class."""
        first = self._first_level(X)
        scores: NDArray[np.float64] = self.final_estimator_.decision_function(first)
        return scores

    def _final(self) -> Any:
        if self.final_estimator is not None:
            return clone(self.final_estimator)
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression()

    def _labels(self, predicted: Any) -> NDArray[Any]:
        codes = np.asarray(predicted).astype(np.intp)
        classes = self._classes
        if isinstance(classes, list):
            return np.column_stack([of[codes[:, i]] for i, of in enumerate(classes)])
        assert classes is not None
        return classes[codes]


def _labels(y: object, n_rows: int) -> tuple[NDArray[np.intp], Classes]:
    """Return the numbers of classes, and the classes; lists of them for several targets."""
    several = np.asarray(y) if y is not None else np.empty(0)
    is_table = several.ndim == _SEVERAL and several.shape[1] >= _SEVERAL
    if not is_table or type_of_target(several) != "multilabel-indicator":
        classes, codes = encode_labels(target(y, n_rows))
        return codes.astype(np.intp), classes
    found = [encode_labels(target(column, n_rows)) for column in several.T]
    numbers = np.column_stack([codes for _, codes in found]).astype(np.intp)
    return numbers, [classes for classes, _ in found]


def _share_of_larger(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the last column; where there is only one label, it is the smaller one."""
    return shares[:, -1] if shares.shape[1] >= _SEVERAL else np.zeros(len(shares))


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
        The regressor that is trained on the members' predictions; None: scikit-learn's RidgeCV.
    cv : int, scikit-learn splitter, iterable of pairs, "prefit" or None, default=None
        Folds, so that the final estimator is trained on predictions for held-out rows: a number of
        folds, stratified by class for classifiers, and of whole groups where fit gets groups; a
        splitter; or pairs (rows to train on, rows to hold out). Rows that are never held out, as
        the first ones of TimeSeriesSplit, do not train the final estimator. None: 5 folds.
        "prefit": the members are already fitted.
    n_jobs : int or None, default=None
        Number of members that are fitted in parallel; -1 for as many as there are CPUs, None for
        one after the other, each with its own threads (or as set by a joblib context). The result
        does not depend on it.
    passthrough : bool, default=False
        Whether the final estimator also gets the columns of X, after those of the members.
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
