"""Decision trees with scikit-learn's signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from arboost.algorithms.forests import decision_tree
from arboost.algorithms.forests.single_tree import DecisionTree, GrownTree
from arboost.algorithms.forests.sklearn_tree import NodeRows, sklearn_tree
from arboost.compat.sklearn.arguments import arguments, known_criterion
from arboost.compat.sklearn.monotonic import with_floats
from arboost.compat.sklearn.node_rows import node_rows
from arboost.compat.sklearn.partial_dependence import summed_dependence
from arboost.model.model import Model
from arboost.params.forest import TREE_CLASSIFIER, TREE_REGRESSOR
from arboost.predictor import Predictor

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
]

Floats = NDArray[np.float64]
Weights = Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None


class _Tree(DecisionTree):
    """A tree that knows the numbers of rows and the impurities of its nodes."""

    _rows: NodeRows | None = None

    @property
    def tree_(self) -> Any:
        """The tree as scikit-learn's own structure, a copy."""
        return sklearn_tree(self._fitted_model(), self.criterion, self._rows)

    def _keep_tree(self, model: Predictor, grown: GrownTree, params: dict[str, Any]) -> None:
        super()._keep_tree(model, grown, params)
        self._rows = node_rows(grown, params["criterion"])


class DecisionTreeClassifier(_Tree, decision_tree.DecisionTreeClassifier):
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

    _TABLE = with_floats(TREE_CLASSIFIER)

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = None,
        random_state: int | RandomState | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Weights = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        super().__init__(**arguments(locals()), verbose=0)


class DecisionTreeRegressor(_Tree, decision_tree.DecisionTreeRegressor):
    """Decision tree for regression with the signature of scikit-learn's class."""

    _TABLE = with_floats(TREE_REGRESSOR)

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = None,
        random_state: int | RandomState | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        criterion = known_criterion(criterion)
        super().__init__(**arguments(locals()), verbose=0)

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> Floats:
        """Return the averages that scikit-learn's inspection asks for."""
        return summed_dependence([self.tree_], grid, target_features)

    @classmethod
    def of_stage(cls, model: Model, tree: int, params: Mapping[str, Any]) -> Self:
        """Return one tree of a booster, whose steps are the learning rate times its values.

        Parameters
        ----------
        model : Model
        tree : int
        params : mapping
            Parameters of the booster.
        """
        names = set(cls._get_param_names()) & set(params)
        one = cls(**{name: params[name] for name in names})
        forest = model.forest.only(tree)
        forest = replace(
            forest,
            value=forest.value / params["learning_rate"],
            output=np.zeros(1, np.int32),
        )
        changed = {
            "forest": forest,
            "base_score": np.zeros(1),
            "link": "identity",
            "classes": None,
            "kind": "regressor",
            "trees_per_round": 1,
        }
        one._keep_model(Predictor(**model.fields() | changed), model.schema)
        one.n_outputs_ = 1
        return one


class ExtraTreeClassifier(DecisionTreeClassifier):
    """Randomized decision tree for classification with the signature of scikit-learn's class."""

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = "sqrt",
        random_state: int | RandomState | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Weights = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        super().__init__(**arguments(locals()))


class ExtraTreeRegressor(DecisionTreeRegressor):
    """Randomized decision tree for regression with the signature of scikit-learn's class."""

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: str | int | float | None = 1.0,
        random_state: int | RandomState | None = None,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Sequence[int] | None = None,
    ) -> None:
        super().__init__(**arguments(locals()))
