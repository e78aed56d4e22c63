"""StackingClassifier and StackingRegressor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from arboost.algorithms.estimator import classifier_score, regressor_score, store
from arboost.algorithms.members.answers import answers
from arboost.algorithms.stacking.base import Stacking, final_has
from arboost.params.kinds import Param
from arboost.params.stacking import STACKING_CLASSIFIER, STACKING_REGRESSOR

__all__ = ["StackingClassifier", "StackingRegressor"]


_TWO_CLASSES = 2


class StackingClassifier(ClassifierMixin, Stacking):
    """Classifiers whose probabilities a final classifier learns from.

    The final classifier learns from out-of-fold predictions: each member is fitted once per fold,
    on the other rows. The members of `estimators_`, which predict new rows, are fitted on all rows.

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
    verbose : bool or int, default=0
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted. For several targets (columns of 0 and 1) a list with the labels of each.
    estimators_ : list of estimators
        The members that are not dropped, fitted on all rows, with class indices as `y`.
    named_estimators_ : Bunch
        The fitted members by name, with "drop" for dropped ones.
    final_estimator_ : estimator
    stack_method_ : list of str
        Prediction method of each of `estimators_`.
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

    score = classifier_score

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: bool | int = 0,
    ) -> None:
        store(self, locals())

    @available_if(final_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Return the class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        For several targets: the probability of the larger label of each, shape (n_rows, n_targets).
        """
        features = self._final_features(X)
        # The final estimator lacks a class whose rows were never held out.
        given = answers(self.final_estimator_, "predict_proba", features, self._classes)
        if not isinstance(given, list):
            return given
        return np.column_stack([_share_of_larger(one) for one in given])

    @available_if(final_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: object) -> NDArray[np.float64]:
        """Return the decision function of the final estimator.

        The shape is (n_rows,) for two classes, else (n_rows, n_classes).
        """
        features = self._final_features(X)
        scores: NDArray[np.float64] = self.final_estimator_.decision_function(features)
        return scores


def _share_of_larger(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the last column; 0 where a target has a single label, which counts as the smaller."""
    return shares[:, -1] if shares.shape[1] >= _TWO_CLASSES else np.zeros(len(shares))


class StackingRegressor(RegressorMixin, Stacking):
    """Regressors whose predictions a final regressor learns from.

    The final regressor learns from out-of-fold predictions: each member is fitted once per fold,
    on the other rows. The members of `estimators_`, which predict new rows, are fitted on all rows.

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
    verbose : bool or int, default=0
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    estimators_ : list of estimators
        The members that are not dropped, fitted on all rows.
    named_estimators_ : Bunch
        The fitted members by name, with "drop" for dropped ones.
    final_estimator_ : estimator
    stack_method_ : list of str
        Prediction method of each of `estimators_`: predict.
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

    score = regressor_score

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: bool | int = 0,
    ) -> None:
        store(self, locals())
