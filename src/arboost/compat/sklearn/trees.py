"""Decision trees with scikit-learn's signatures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import tree

import arboost
from arboost.compat.sklearn.parameters import constructor


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


def sum_partial_dependence(trees: Iterable[Any], grid: Any, features: Any) -> NDArray[np.float64]:
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
    for each in trees:
        each.compute_partial_dependence(points, chosen, total)
    return total
