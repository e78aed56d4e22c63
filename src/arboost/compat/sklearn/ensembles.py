"""Trees, forests, bagging and AdaBoost with scikit-learn's signatures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Never, Self

import numpy as np
from sklearn import ensemble, tree

import arboost
from arboost.compat.sklearn.parameters import Floats, NotLoadable, constructor
from arboost.estimators.translation import link_probabilities
from arboost.params.suggestions import known_arguments, public_name, refuse_arguments

_TWO_CLASSES = 2


class DecisionTreeClassifier(arboost.DecisionTreeClassifier):
    """Decision tree for classification with the signature of scikit-learn's class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import export_text
    >>> from arboost.compat.sklearn import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> print(export_text(DecisionTreeClassifier(max_depth=1).fit(X, y)))
    |--- feature_2 <= 2.45
    |   |--- class: 0
    |--- feature_2 >  2.45
    |   |--- class: 1
    <BLANKLINE>
    """

    _KEEPS_STATISTICS = True

    __init__ = constructor(tree.DecisionTreeClassifier, arboost.DecisionTreeClassifier, verbose=0)


class DecisionTreeRegressor(arboost.DecisionTreeRegressor):
    """Decision tree for regression with the signature of scikit-learn's class."""

    _KEEPS_STATISTICS = True

    __init__ = constructor(tree.DecisionTreeRegressor, arboost.DecisionTreeRegressor, verbose=0)

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> Any:
        """Averages that scikit-learn's inspection asks for."""
        return sum_partial_dependence([self.tree_], grid, target_features)

    @classmethod
    def of_stage(cls, model: arboost.Predictor, params: Mapping[str, Any]) -> Self:
        """Estimator of one tree of a booster, whose steps are the learning rate times its values.

        Parameters
        ----------
        model : arboost.Predictor
            The steps of the tree.
        params : mapping
            Parameters of the booster.
        """
        names = set(cls._get_param_names()) & set(params)
        estimator: Self = cls(**{name: params[name] for name in names})
        forest = replace(model.forest, value=model.forest.value / params["learning_rate"])
        model = arboost.Predictor(**model.fields() | {"forest": forest})
        estimator._keep_model(model, model.schema)
        estimator.n_outputs_ = 1
        return estimator


class ExtraTreeClassifier(DecisionTreeClassifier):
    """Randomized decision tree for classification with the signature of scikit-learn's class."""

    __init__ = constructor(tree.ExtraTreeClassifier, arboost.DecisionTreeClassifier, verbose=0)


class ExtraTreeRegressor(DecisionTreeRegressor):
    """Randomized decision tree for regression with the signature of scikit-learn's class."""

    __init__ = constructor(tree.ExtraTreeRegressor, arboost.DecisionTreeRegressor, verbose=0)


def sum_partial_dependence(trees: Iterable[Any], grid: Any, features: Any) -> Floats:
    """Sum over trees of their averages over all other features, shape (n_points,).

    Parameters
    ----------
    trees : iterable of sklearn.tree._tree.Tree
    grid : array of shape (n_points, n_given)
        Values of the features.
    features : array of int
    """
    points, chosen = np.asarray(grid, np.float32, order="C"), np.asarray(features, np.intp)
    total = np.zeros(len(points))
    for one_tree in trees:
        one_tree.compute_partial_dependence(points, chosen, total)
    return total


class _RecursiveDependence:
    """Partial dependence of a forest of regression trees, for scikit-learn's inspection."""

    estimators_: list[Any]

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> Floats:
        trees = [tree.tree_ for tree in self.estimators_]
        return sum_partial_dependence(trees, grid, target_features) / len(trees)


class RandomForestClassifier(arboost.RandomForestClassifier):
    """Random forest for classification with the signature of scikit-learn's class."""

    _TREE = DecisionTreeClassifier

    __init__ = constructor(ensemble.RandomForestClassifier, arboost.RandomForestClassifier)


class RandomForestRegressor(_RecursiveDependence, arboost.RandomForestRegressor):
    """Random forest for regression with the signature of scikit-learn's class."""

    _TREE = DecisionTreeRegressor

    __init__ = constructor(ensemble.RandomForestRegressor, arboost.RandomForestRegressor)


class ExtraTreesClassifier(arboost.ExtraTreesClassifier):
    """Extremely randomized trees for classification with the signature of scikit-learn's class."""

    _TREE = ExtraTreeClassifier

    __init__ = constructor(ensemble.ExtraTreesClassifier, arboost.ExtraTreesClassifier)


class ExtraTreesRegressor(_RecursiveDependence, arboost.ExtraTreesRegressor):
    """Extremely randomized trees for regression with the signature of scikit-learn's class."""

    _TREE = ExtraTreeRegressor

    __init__ = constructor(ensemble.ExtraTreesRegressor, arboost.ExtraTreesRegressor)


class BaggingClassifier(arboost.BaggingClassifier):
    """Bagging for classification with the signature of scikit-learn's class."""

    __init__ = constructor(ensemble.BaggingClassifier, arboost.BaggingClassifier)


class BaggingRegressor(arboost.BaggingRegressor):
    """Bagging for regression with the signature of scikit-learn's class."""

    __init__ = constructor(ensemble.BaggingRegressor, arboost.BaggingRegressor)


class AdaBoostClassifier(NotLoadable, arboost.AdaBoostClassifier):
    """AdaBoost for classification with the signature of scikit-learn's class.

    Scores are scikit-learn's: divided by the sum of the learners' weights.
    """

    __init__ = constructor(
        ensemble.AdaBoostClassifier, arboost.AdaBoostClassifier, algorithm="discrete", verbose=0
    )

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
        """Scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        if unknown:
            refuse_arguments(self.decision_function, unknown)
        return self._scaled(super().decision_function(X, rounds=rounds), rounds)

    def staged_decision_function(self, X: object) -> Iterator[Floats]:
        """Yield the result of `decision_function` after each round."""
        staged = super().staged_decision_function(X)
        return (self._scaled(raw, rounds) for rounds, raw in enumerate(staged, 1))

    @public_name
    def predict_proba(self, X: object, *, rounds: int | None = None, **unknown: Never) -> Floats:
        """Class probabilities, shape (n_rows, n_classes), of the scaled scores."""
        if unknown:
            refuse_arguments(self.predict_proba, unknown)
        return self._probabilities(self.decision_function(X, rounds=rounds))

    def staged_predict_proba(self, X: object) -> Iterator[Floats]:
        """Yield the result of `predict_proba` after each round."""
        return map(self._probabilities, self.staged_decision_function(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model of the scaled scores to a file that `arboost.load` reads."""
        self._engine_model("save").save(path)

    def _engine_model(self, asked: str) -> arboost.Predictor:
        """Model of the scaled scores: its probabilities are those of the estimator."""
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
        return arboost.Predictor(**model.fields() | changed)

    def _scaled(self, raw: Floats, rounds: int | None) -> Floats:
        """Scores of the first rounds, or of all, divided by the sum of their weights."""
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
        """Softmax of the scores over K - 1 (Zhu et al. 2009, equation 15)."""
        n_classes = len(self.classes_)
        if n_classes == _TWO_CLASSES:
            return link_probabilities("logistic", scores[:, np.newaxis])
        return link_probabilities("softmax", scores.reshape(-1, n_classes) / max(n_classes - 1, 1))


class AdaBoostRegressor(arboost.AdaBoostRegressor):
    """AdaBoost for regression with the signature of scikit-learn's class.

    Learners see rows drawn by their weights, as scikit-learn's do.
    """

    __init__ = constructor(
        ensemble.AdaBoostRegressor, arboost.AdaBoostRegressor, resample=True, verbose=0
    )

    @known_arguments
    def fit(  # type: ignore[override]
        self, X: object, y: object = None, sample_weight: object = None
    ) -> Self:
        """Train on a table and a target; rows of weight 0 are left out."""
        return super().fit(X, y, sample_weight)
