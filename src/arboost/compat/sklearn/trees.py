"""Decision trees with scikit-learn's signatures, and the statistics of their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from arboost.backend import core, threads
from arboost.compat.sklearn.parameters import arguments, known_criterion, with_floats
from arboost.data.table import Table
from arboost.estimators import decision_tree
from arboost.estimators.decision_tree import DecisionTree, GrownTree, NodeRows, sklearn_tree
from arboost.models.model import Model
from arboost.models.prediction import depths, forest_leaves, parents
from arboost.models.predictor import Predictor
from arboost.params.forest import TREE_CLASSIFIER, TREE_REGRESSOR
from arboost.trees.forest import Forest

Floats = NDArray[np.float64]
Nodes = NDArray[np.intp]


def node_statistics(grown: GrownTree, criterion: str) -> NodeRows | None:
    """Return the statistics of each node; None for a Dataset, which has no values to walk by.

    Impurities of classification are 0: they follow from the shares of the classes.
    """
    rows, forest = grown.rows, grown.forest
    if not isinstance(rows.source, Table):
        return None
    leaf = forest_leaves(forest, rows.source, n_threads=threads(None))[:, 0].astype(np.intp)
    leaf = leaf if rows.index is None else leaf[rows.index]
    counts = _sums_of_nodes(forest, np.bincount(leaf, minlength=forest.n_nodes)[:, np.newaxis])
    n_rows = counts[:, 0].astype(np.int64)
    if grown.target.kind == "classifier":
        return NodeRows(n_rows, np.zeros(forest.n_nodes))
    weight = np.ones(len(leaf)) if grown.weight is None else grown.weight
    targets = np.asarray(rows.y, np.float64).reshape(len(leaf), -1).T
    measure = _median_deviations if criterion == "absolute_error" else _mean_impurities
    each = [measure(forest, leaf, y, weight, criterion) for y in targets]
    return NodeRows(n_rows, np.mean(each, axis=0))


def _mean_impurities(
    forest: Forest, leaf: Nodes, y: Floats, weight: Floats, criterion: str
) -> Floats:
    """Return the variance, or half the Poisson deviance, of the rows in each node."""
    middle = np.average(y, weights=weight)
    if criterion == "poisson":
        terms = _y_log_y(y)
    else:  # squares of small numbers lose no digits
        y = y - middle
        terms = y**2
    sums = [np.bincount(leaf, weight * one, minlength=forest.n_nodes) for one in (y, terms)]
    total = np.bincount(leaf, weight, minlength=forest.n_nodes)
    total, sum_y, sum_terms = _sums_of_nodes(forest, np.stack([total, *sums], axis=1)).T
    mean = sum_y / total
    known = _y_log_y(mean) if criterion == "poisson" else mean**2
    found: Floats = np.maximum(sum_terms / total - known, 0.0)
    return found


def _y_log_y(y: Floats) -> Floats:
    return y * core.log(np.where(y > 0, y, 1.0))


def _median_deviations(forest: Forest, leaf: Nodes, y: Floats, weight: Floats, _: str) -> Floats:
    """Return the mean absolute deviation from the median of the rows in each node."""
    parent, depth = parents(forest), depths(forest)
    found = np.zeros(forest.n_nodes)
    node = leaf
    for level in range(int(depth.max()), -1, -1):
        order = np.lexsort((y, node))
        order = order[depth[node[order]] == level]
        ends = np.flatnonzero(np.diff(node[order])) + 1
        for part in np.split(order, ends):
            if len(part):
                reached = np.cumsum(weight[part])
                median = y[part[np.searchsorted(reached, reached[-1] / 2)]]
                found[node[part[0]]] = np.average(np.abs(y[part] - median), weights=weight[part])
        node = np.where(depth[node] == level, parent[node], node)
    return found


def _sums_of_nodes(forest: Forest, sums: NDArray[np.generic]) -> Floats:
    """Return sums over the rows of all nodes from those of the leaves."""
    total = sums.astype(np.float64)
    parent, depth = parents(forest), depths(forest)
    for level in range(int(depth.max()), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.add.at(total, parent[nodes], total[nodes])
    return total


def sum_partial_dependence(trees: Iterable[Any], grid: Any, features: Any) -> NDArray[np.float64]:
    """Return the sum over trees of their averages over all other features, shape (n_points,).

    Parameters
    ----------
    trees : iterable of sklearn.tree._tree.Tree
    grid : array of shape (n_points, n_given)
        Values of the features.
    features : array of int
    """
    points, chosen = np.asarray(grid, np.float32, order="C"), np.asarray(features, np.intp)
    total = np.zeros(len(points))
    for tree in trees:
        tree.compute_partial_dependence(points, chosen, total)
    return total


Weights = Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None


class _TreeWithStatistics(DecisionTree):
    """A tree that knows the numbers of rows and the impurities of its nodes."""

    _rows: NodeRows | None = None

    @property
    def tree_(self) -> Any:
        """The tree as scikit-learn's own structure, a copy."""
        return sklearn_tree(self._fitted_model(), self.criterion, self._rows)

    def _keep_tree(self, model: Predictor, grown: GrownTree, params: dict[str, Any]) -> None:
        super()._keep_tree(model, grown, params)
        self._rows = node_statistics(grown, params["criterion"])


class DecisionTreeClassifier(_TreeWithStatistics, decision_tree.DecisionTreeClassifier):
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


class DecisionTreeRegressor(_TreeWithStatistics, decision_tree.DecisionTreeRegressor):
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
        return sum_partial_dependence([self.tree_], grid, target_features)

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
