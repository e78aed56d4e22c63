"""What a decision tree has beside the methods of all trees and forests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Bunch

from arboost.algorithms.averages import Averaged, Seen, with_numbers
from arboost.inputs import training_rows
from arboost.paths import depths
from arboost.pruning import pruning_path

__all__ = ["SingleTree"]


class SingleTree(Averaged):
    """One tree, which can be looked at."""

    def get_depth(self) -> int:
        """Return the number of splits between the root and the leaf that is farthest from it."""
        return int(depths(self._fitted_model().forest).max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return int(np.count_nonzero(~self._fitted_model().forest.is_split))

    def apply(self, X: object) -> NDArray[np.int64]:
        """Return the number of the leaf that each row reaches, shape (n_rows,).

        Nodes are numbered from 0, the root, on.
        """
        return super().apply(X)[:, 0]

    def decision_path(self, X: object) -> Any:
        """Return which nodes each row passes: a scipy.sparse.csr_matrix (n_rows, n_nodes)."""
        indicator, _ = super().decision_path(X)
        return indicator

    def cost_complexity_pruning_path(
        self, X: object, y: object = None, sample_weight: object = None
    ) -> Bunch:
        """Return at which values of `ccp_alpha` a tree on these rows gets smaller.

        Parameters
        ----------
        X, y, sample_weight
            As `fit` takes them. The estimator itself stays as it is.

        Returns
        -------
        Bunch
            ``ccp_alphas``, ascending, and ``impurities``, those of the leaves of the tree that each
            of them leaves.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from arboost import DecisionTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> path = DecisionTreeClassifier(max_depth=2).cost_complexity_pruning_path(X, y)
        >>> path.ccp_alphas.round(3).tolist()
        [0.0, 0.26, 0.333]
        """
        whole = clone(self).set_params(ccp_alpha=0.0)
        params = whole._params()
        rows = training_rows(X, y, sample_weight, None, self._reading(params), several=True)
        targets = whole._targets(rows.y, None)
        rows = with_numbers(rows, targets, None)
        weight = whole._row_weights(params, targets, rows.weight)
        forest = whole._grow(params, rows, targets, Seen(weight=weight), n_trees=1)
        decreases = whole._decreases(forest, targets)
        found = pruning_path(forest, decreases, targets.impurity(weight))
        return Bunch(ccp_alphas=found.ccp_alphas, impurities=found.impurities)
