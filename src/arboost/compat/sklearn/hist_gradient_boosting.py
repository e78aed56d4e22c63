"""HistGradientBoostingClassifier and -Regressor with scikit-learn's signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight

from arboost.algorithms.estimator import BoostedClassifierMethods, store
from arboost.compat.sklearn.boosting.hist_base import SklearnHistBoosting
from arboost.compat.sklearn.boosting.params import HIST_CLASSIFIER, HIST_REGRESSOR
from arboost.compat.sklearn.boosting.rows import FitRows
from arboost.params.boosting import BOOSTED_CLASSIFIER, BOOSTED_REGRESSOR

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]


class HistGradientBoostingClassifier(BoostedClassifierMethods, SklearnHistBoosting):
    """Histogram-based gradient boosting for classification with scikit-learn's parameters.

    Parameters and attributes have scikit-learn's names, defaults and meanings. Columns of strings
    are categories, too, and `save`, `shap_values` and the other methods of arboost's estimators are
    there.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from arboost.compat.sklearn import HistGradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> HistGradientBoostingClassifier(max_iter=20).fit(X, y).score(X, y) > 0.95
    True
    """

    _KIND = "classifier"
    _PARAMS = HIST_CLASSIFIER
    _ENGINE = BOOSTED_CLASSIFIER

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: str | Sequence[Any] | None = "from_dtype",
        monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None,
        interaction_cst: str | Sequence[Any] | None = None,
        warm_start: bool = False,
        early_stopping: str | bool = "auto",
        scoring: str | Callable[..., float] | None = "loss",
        validation_fraction: float | int | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: int | RandomState | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        store(self, locals())

    def _weights(self, params: dict[str, Any], rows: FitRows) -> NDArray[np.float64] | None:
        if params["class_weight"] is None:
            return rows.sample_weight
        factors: NDArray[np.float64] = compute_sample_weight(params["class_weight"], rows.y)
        return factors if rows.sample_weight is None else factors * rows.sample_weight


class HistGradientBoostingRegressor(RegressorMixin, SklearnHistBoosting):
    """Histogram-based gradient boosting for regression with scikit-learn's parameters.

    Parameters and attributes have scikit-learn's names, defaults and meanings. Columns of strings
    are categories, too, and `save`, `shap_values` and the other methods of arboost's estimators are
    there.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost.compat.sklearn import HistGradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> HistGradientBoostingRegressor(max_iter=20).fit(X, y).n_iter_
    20
    """

    _KIND = "regressor"
    _PARAMS = HIST_REGRESSOR
    _ENGINE = BOOSTED_REGRESSOR

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        quantile: float | None = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: str | Sequence[Any] | None = "from_dtype",
        monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None,
        interaction_cst: str | Sequence[Any] | None = None,
        warm_start: bool = False,
        early_stopping: str | bool = "auto",
        scoring: str | Callable[..., float] | None = "loss",
        validation_fraction: float | int | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: int | RandomState | None = None,
    ) -> None:
        store(self, locals())
