"""GradientBoostingClassifier and GradientBoostingRegressor with scikit-learn's signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Never

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from arboost.algorithms.estimator import BoostedClassifierMethods, store
from arboost.compat.sklearn.boosting.gradient_base import SklearnGradientBoosting
from arboost.compat.sklearn.boosting.params import GRADIENT_CLASSIFIER, GRADIENT_REGRESSOR
from arboost.model.predict import decision, probabilities
from arboost.names.arguments import public_name, refuse_arguments
from arboost.params.boosting import BOOSTED_CLASSIFIER, BOOSTED_REGRESSOR

__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]

Floats = NDArray[np.float64]


class GradientBoostingClassifier(BoostedClassifierMethods, SklearnGradientBoosting):
    """Gradient boosting for classification with the parameters of scikit-learn's class.

    Parameters and attributes have scikit-learn's names, defaults and meanings. Splits are at up to
    255 bin edges of a feature, missing values and categories are allowed, and `save`, `shap_values`
    and the other methods of arboost's estimators are there, too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from arboost.compat.sklearn import GradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=20, subsample=0.5, random_state=0)
    >>> model.fit(X, y).estimators_.shape, model.oob_scores_.shape
    ((20, 3), (20,))
    """

    _KIND = "classifier"
    _PARAMS = GRADIENT_CLASSIFIER
    _ENGINE = BOOSTED_CLASSIFIER

    def __init__(
        self,
        *,
        loss: str = "log_loss",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: int | RandomState | None = None,
        max_features: str | int | float | None = None,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
    ) -> None:
        store(self, locals())

    @public_name
    def predict_proba(self, X: object, *, rounds: int | None = None, **unknown: Never) -> Floats:
        """Return the class probabilities, shape (n_rows, n_classes); `rounds` as in `predict`."""
        if unknown:
            refuse_arguments(self.predict_proba, unknown)
        if not self._corrects_model():
            return super().predict_proba(X, rounds=rounds)
        return _of_one(probabilities(self.model_, self._raw_predict(X, rounds)))

    @public_name
    def decision_function(
        self, X: object, *, rounds: int | None = None, **unknown: Never
    ) -> Floats:
        """Return the raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        if unknown:
            refuse_arguments(self.decision_function, unknown)
        return decision(self._raw_predict(X, rounds))

    def staged_predict_proba(self, X: object) -> Iterator[Floats]:
        """Yield the result of `predict_proba` after each stage."""
        return (_of_one(probabilities(self.model_, raw)) for raw in self._staged_raw_predict(X))

    def staged_decision_function(self, X: object) -> Iterator[Floats]:
        """Yield the result of `decision_function` after each stage."""
        return map(decision, self._staged_raw_predict(X))


class GradientBoostingRegressor(RegressorMixin, SklearnGradientBoosting):
    """Gradient boosting for regression with the parameters of scikit-learn's class.

    Parameters and attributes have scikit-learn's names, defaults and meanings. Splits are at up to
    255 bin edges of a feature, missing values and categories are allowed, and `save`, `shap_values`
    and the other methods of arboost's estimators are there, too.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost.compat.sklearn import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(n_estimators=20).fit(X, y)
    >>> model.train_score_.shape, model.apply(X).shape
    ((20,), (442, 20))
    """

    _KIND = "regressor"
    _PARAMS = GRADIENT_REGRESSOR
    _ENGINE = BOOSTED_REGRESSOR

    def __init__(
        self,
        *,
        loss: str = "squared_error",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: int | RandomState | None = None,
        max_features: str | int | float | None = None,
        alpha: float = 0.9,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
    ) -> None:
        store(self, locals())


def _of_one(found: Floats | list[Floats]) -> Floats:
    assert not isinstance(found, list)  # boosters have one target
    return found
