"""AdaBoost and bagging with scikit-learn's signatures; stacking and voting have them already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.random import RandomState

from arboost.algorithms.adaboost import classifier, regressor
from arboost.algorithms.bagging import bagging
from arboost.compat.sklearn.arguments import arguments

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
]


class AdaBoostClassifier(classifier.AdaBoostClassifier):
    """AdaBoost for classification with the signature of scikit-learn's class."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        random_state: int | RandomState | None = None,
    ) -> None:
        super().__init__(**arguments(locals()), verbose=0)


class AdaBoostRegressor(regressor.AdaBoostRegressor):
    """AdaBoost for regression with the signature of scikit-learn's class."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        random_state: int | RandomState | None = None,
    ) -> None:
        super().__init__(**arguments(locals()), verbose=0)


class BaggingClassifier(bagging.BaggingClassifier):
    """Bagging for classification with the signature of scikit-learn's class."""

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool | Callable[..., float] = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(**arguments(locals()))


class BaggingRegressor(bagging.BaggingRegressor):
    """Bagging for regression with the signature of scikit-learn's class."""

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool | Callable[..., float] = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(**arguments(locals()))
