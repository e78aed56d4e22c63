"""Forests with scikit-learn's signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from arboost.algorithms.forests import extra_trees, random_forest
from arboost.compat.sklearn.arguments import arguments, known_criterion
from arboost.compat.sklearn.monotonic import with_floats
from arboost.compat.sklearn.partial_dependence import summed_dependence
from arboost.compat.sklearn.trees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from arboost.params.forest import (
    EXTRA_TREES_CLASSIFIER,
    EXTRA_TREES_REGRESSOR,
    RANDOM_FOREST_CLASSIFIER,
    RANDOM_FOREST_REGRESSOR,
)

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]

Floats = NDArray[np.float64]
Weights = Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None


class RandomForestClassifier(random_forest.RandomForestClassifier):
    """Random forest for classification with the signature of scikit-learn's class."""

    _TREE = DecisionTreeClassifier  # type: ignore[assignment]
    _TABLE = with_floats(RANDOM_FOREST_CLASSIFIER)

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Weights = None,
        ccp_alpha: float = 0.0,
        max_samples: int | float | None = None,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        super().__init__(**arguments(locals()))


class RandomForestRegressor(random_forest.RandomForestRegressor):
    """Random forest for regression with the signature of scikit-learn's class."""

    _TREE = DecisionTreeRegressor  # type: ignore[assignment]
    _TABLE = with_floats(RANDOM_FOREST_REGRESSOR)

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool | Callable[..., float] = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: int | float | None = None,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        criterion = known_criterion(criterion)
        super().__init__(**arguments(locals()))

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> Floats:
        """Return the averages that scikit-learn's inspection asks for."""
        trees = [one.tree_ for one in self.estimators_]
        return summed_dependence(trees, grid, target_features) / len(trees)


class ExtraTreesClassifier(extra_trees.ExtraTreesClassifier):
    """Extremely randomized trees for classification with the signature of scikit-learn's class."""

    _TREE = ExtraTreeClassifier  # type: ignore[assignment]
    _TABLE = with_floats(EXTRA_TREES_CLASSIFIER)

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: bool | Callable[..., float] = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Weights = None,
        ccp_alpha: float = 0.0,
        max_samples: int | float | None = None,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        super().__init__(**arguments(locals()))


class ExtraTreesRegressor(extra_trees.ExtraTreesRegressor):
    """Extremely randomized trees for regression with the signature of scikit-learn's class."""

    _TREE = ExtraTreeRegressor  # type: ignore[assignment]
    _TABLE = with_floats(EXTRA_TREES_REGRESSOR)

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: bool | Callable[..., float] = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: int | float | None = None,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        criterion = known_criterion(criterion)
        super().__init__(**arguments(locals()))

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> Floats:
        """Return the averages that scikit-learn's inspection asks for."""
        trees = [one.tree_ for one in self.estimators_]
        return summed_dependence(trees, grid, target_features) / len(trees)
