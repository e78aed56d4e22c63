"""Forests, AdaBoost and bagging with scikit-learn's signatures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Never, NoReturn, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from arboost.compat.sklearn.parameters import arguments, known_criterion, refuse_load, with_floats
from arboost.compat.sklearn.trees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    sum_partial_dependence,
)
from arboost.estimators import bagging, forests
from arboost.estimators.adaboost import adaboost
from arboost.losses.links import logistic, softmax
from arboost.models.predictor import ModelSource, Predictor
from arboost.params.forest import (
    EXTRA_TREES_CLASSIFIER,
    EXTRA_TREES_REGRESSOR,
    RANDOM_FOREST_CLASSIFIER,
    RANDOM_FOREST_REGRESSOR,
)
from arboost.params.suggestions import known_arguments, public_name, refuse_arguments

Floats = NDArray[np.float64]
Weights = Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None


class RandomForestClassifier(forests.RandomForestClassifier):
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


class RandomForestRegressor(forests.RandomForestRegressor):
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
        return sum_partial_dependence(trees, grid, target_features) / len(trees)


class ExtraTreesClassifier(forests.ExtraTreesClassifier):
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


class ExtraTreesRegressor(forests.ExtraTreesRegressor):
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
        return sum_partial_dependence(trees, grid, target_features) / len(trees)


_TWO_CLASSES = 2


class AdaBoostClassifier(adaboost.AdaBoostClassifier):
    """AdaBoost for classification with the signature of scikit-learn's class.

    Scores are scikit-learn's: divided by the sum of the learners' weights.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        random_state: int | RandomState | None = None,
    ) -> None:
        super().__init__(**arguments(locals()), verbose=0)

    @known_arguments
    def fit(  # type: ignore[override]
        self, X: object, y: object = None, sample_weight: object = None
    ) -> Self:
        """Train on a table and a target; rows of weight 0 are left out."""
        super().fit(X, y, sample_weight)
        if len(self.classes_) == _TWO_CLASSES:  # Freund's alpha is half of scikit-learn's
            self.estimator_weights_ = 2.0 * self.estimator_weights_
        return self

    @public_name
    def decision_function(
        self, X: object, *, rounds: int | None = None, **unknown: Never
    ) -> Floats:
        """Return the scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        if unknown:
            refuse_arguments(self.decision_function, unknown)
        return self._scaled(super().decision_function(X, rounds=rounds), rounds)

    def staged_decision_function(self, X: object) -> Iterator[Floats]:
        """Yield the result of `decision_function` after each round."""
        staged = super().staged_decision_function(X)
        return (self._scaled(raw, rounds) for rounds, raw in enumerate(staged, 1))

    @public_name
    def predict_proba(self, X: object, *, rounds: int | None = None, **unknown: Never) -> Floats:
        """Return the class probabilities, shape (n_rows, n_classes), of the scaled scores."""
        if unknown:
            refuse_arguments(self.predict_proba, unknown)
        return self._probabilities(self.decision_function(X, rounds=rounds))

    def staged_predict_proba(self, X: object) -> Iterator[Floats]:
        """Yield the result of `predict_proba` after each round."""
        return map(self._probabilities, self.staged_decision_function(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model of the scaled scores to a file that `arboost.load` reads."""
        self._engine_model("save").save(path)

    @classmethod
    def load(cls, path: ModelSource, *, mmap: bool = False) -> NoReturn:
        """Raise TypeError: files do not keep the learners' weights."""
        refuse_load(cls)

    def _engine_model(self, asked: str) -> Predictor:
        """Return the model of the scaled scores: its probabilities are those of the estimator."""
        model = super()._engine_model(asked)
        n_classes, total = len(self.classes_), self.estimator_weights_.sum()
        if n_classes == 1 or total == 0.0:
            return model
        has_two = n_classes == _TWO_CLASSES
        factor = (4.0 if has_two else n_classes / (n_classes - 1) ** 2) / total
        changed = {
            "forest": replace(model.forest, value=model.forest.value * factor),
            "base_score": model.base_score * factor,
            "link": "logistic" if has_two else model.link,
        }
        return Predictor(**model.fields() | changed)

    def _scaled(self, raw: Floats, rounds: int | None) -> Floats:
        """Return the scores of the first rounds, or of all, divided by the sum of their weights."""
        n_classes, total = len(self.classes_), self.estimator_weights_[:rounds].sum()
        if n_classes == 1 or total == 0.0:
            return raw
        # Of two classes, scikit-learn's score is the difference of two scores, each of twice the
        # weights of the engine. Votes for K classes are 1 - 1/K and -1/K in the engine, 1 and
        # -1/(K - 1) in scikit-learn.
        factor = 4.0 if n_classes == _TWO_CLASSES else n_classes / (n_classes - 1)
        scaled: Floats = raw / total * factor
        return scaled

    def _probabilities(self, scores: Floats) -> Floats:
        """Return the softmax of the scores over K - 1 (Zhu et al. 2009, equation 15)."""
        n_classes = len(self.classes_)
        if n_classes == _TWO_CLASSES:
            return logistic(scores[:, np.newaxis])
        return softmax(scores.reshape(-1, n_classes) / max(n_classes - 1, 1))


class AdaBoostRegressor(adaboost.AdaBoostRegressor):
    """AdaBoost for regression with the signature of scikit-learn's class.

    Learners see rows drawn by their weights, as scikit-learn's do.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        random_state: int | RandomState | None = None,
    ) -> None:
        super().__init__(**arguments(locals()), resample=True, verbose=0)

    @known_arguments
    def fit(  # type: ignore[override]
        self, X: object, y: object = None, sample_weight: object = None
    ) -> Self:
        """Train on a table and a target; rows of weight 0 are left out."""
        return super().fit(X, y, sample_weight)


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
