"""What a decision tree has beside the methods of all trees and forests."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Bunch

from arboost.algorithms.forests.base import Averaged, Floats, Seen, with_numbers
from arboost.algorithms.forests.targets import Targets
from arboost.grow.pruning import pruning_path
from arboost.model.forest import Forest
from arboost.model.leaves import depths
from arboost.pictures.tree_pictures import TreePicture, tree_svg, tree_text
from arboost.training.inputs import Rows, training_rows

__all__ = ["SingleTree"]


class _Grown(NamedTuple):
    """A tree, and what it was grown from."""

    forest: Forest
    rows: Rows
    targets: Targets
    weight: Floats | None


class SingleTree(Averaged):
    """One tree, which can be looked at."""

    def _fit_rows(self, params: dict[str, Any], rows: Rows) -> Self:
        grown = self._grown(params, rows)
        self._keep_forest(params, grown.rows, grown.targets, grown.forest)
        return self

    def _grown(self, params: dict[str, Any], rows: Rows) -> _Grown:
        """Return a tree, without a change of this estimator."""
        targets = self._targets(params, rows.y, None)
        rows = with_numbers(rows, targets, None)
        weight = self._row_weights(params, targets, rows.weight)
        forest = self._grow(params, rows, targets, Seen(weight=weight), n_trees=1)
        return _Grown(forest, rows, targets, weight)

    def get_depth(self) -> int:
        """Return the number of splits between the root and the leaf that is farthest from it."""
        return int(depths(self._fitted_model().forest).max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return int(np.count_nonzero(~self._fitted_model().forest.is_split))

    def apply(self, X: object) -> NDArray[np.int32]:
        """Return the number of the leaf that each row reaches, shape (n_rows,).

        Nodes are numbered from 0, the root, on.
        """
        return super().apply(X)[:, 0]

    def decision_path(self, X: object) -> Any:
        """Return which nodes each row passes: a scipy.sparse.csr_matrix (n_rows, n_nodes)."""
        indicator, _ = super().decision_path(X)
        return indicator

    def text(
        self, *, max_depth: int | None = 10, precision: int = 4, show_missing: bool = True
    ) -> str:
        """Return the tree as indented text: a line for each node.

        Parameters
        ----------
        max_depth : int or None, default=10
            How many splits deep to go; None for all.
        precision : int, default=4
            Significant digits of thresholds and values.
        show_missing : bool, default=True
            Whether to say where missing values go.

        Examples
        --------
        >>> from arboost import DecisionTreeRegressor
        >>> tree = DecisionTreeRegressor().fit([[15], [18], [30]], [1.0, 1.0, 7.0])
        >>> print(tree.text(show_missing=False))
        tree 0: 2 leaves, depth 1
        node              cover  value
          0  all rows         3      3
          1* ├─ x0 <= 24      2      1
          2* └─ x0 > 24       1      7
        """
        return tree_text(
            self._fitted_model(),
            max_depth=max_depth,
            precision=precision,
            show_missing=show_missing,
        )

    def picture(
        self, *, max_depth: int | None = 4, precision: int = 4, show_missing: bool = True
    ) -> TreePicture:
        """Return the tree as SVG: a string, which notebooks show as a picture.

        Parameters
        ----------
        max_depth : int or None, default=4
            How many splits deep to go; None for all.
        precision : int, default=4
            Significant digits of thresholds and values.
        show_missing : bool, default=True
            Whether to say where missing values go.
        """
        return tree_svg(
            self._fitted_model(),
            max_depth=max_depth,
            precision=precision,
            show_missing=show_missing,
        )

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
        rows = training_rows(X, y, sample_weight, None, self._column_options(params), several=True)
        forest, _, targets, weight = whole._grown(params, rows)
        decreases = whole._decreases(forest, targets)
        found = pruning_path(forest, decreases, targets.impurity(weight))
        return Bunch(ccp_alphas=found.ccp_alphas, impurities=found.impurities)
