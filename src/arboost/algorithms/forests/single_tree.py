"""DecisionTree: the fit of one CART tree, and its methods that show the tree."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from arboost.algorithms.estimator import EngineEstimator, column_options
from arboost.algorithms.forests.fit_forest import (
    ForestSpec,
    encode_levels,
    fit_forest,
    forest_model,
    impurity_decreases,
    keep_trees,
    read_target,
    row_use,
    with_found_bins,
)
from arboost.algorithms.forests.sklearn_tree import sklearn_tree
from arboost.algorithms.forests.targets import ForestTarget
from arboost.grow.pruning import pruning_path
from arboost.model.forest import Forest
from arboost.model.leaves import depths
from arboost.names.arguments import known_arguments
from arboost.pictures.tree_pictures import TreePicture, tree_svg, tree_text
from arboost.predictor import Predictor
from arboost.training.inputs import EngineRows, Floats, training_rows, warn_one_class
from arboost.training.streams import StreamOptions

__all__ = ["DecisionTree", "GrownTree"]


class GrownTree(NamedTuple):
    """A tree, with the rows, target and weights that it was grown from."""

    forest: Forest
    rows: EngineRows
    target: ForestTarget
    weight: Floats | None
    max_bins: int


class DecisionTree(EngineEstimator):
    """One tree, which can be looked at."""

    _MONOTONE = "monotonic_cst"

    criterion: str
    max_features: Any

    @known_arguments
    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        memory_limit: int | str = "auto",
        cache: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
            scipy.sparse, lists or dicts. Columns are numbers, booleans, decimals, dates and
            times, or categories. NaN and None are missing values. With device="cuda" also an array
            in device memory. A Dataset brings its own y and weights.
            Or a source that is read in batches and need not fit in memory: paths of files or
            folders, patterns such as "data/*.parquet", an iterable of batches that starts again;
            y and sample_weight are then names of columns, or arrays.
        y : array of shape (n_rows,) or (n_rows, n_targets)
            Or the name of a column of X, which is then no feature.
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 are left out. Or the name of a column of X, which is then no feature.
        memory_limit : int or str, default="auto"
            Memory for a fit on files or other batches: "2GB", "500MB", or a number of bytes.
            "auto": a share of the memory that the process may use. The model is the same.
        cache : path, optional
            Folder that keeps the bins of files: the next fit on the same files with the same
            columns and bins starts at once. Files that have changed are read again.

        Returns
        -------
        self
        """
        params = self._checked_params()
        given = self._opened((X, y, sample_weight), params, StreamOptions(memory_limit, cache))
        grown = self._grow(params, *given)
        recorded = self._recorded_params(with_found_bins(params, grown.max_bins))
        model = forest_model(grown.forest, grown.rows, grown.target, recorded)
        self._keep_tree(model, grown, params)
        return self

    @property
    def tree_(self) -> Any:
        """The tree as scikit-learn's own structure, a copy, for tools that read it.

        Its impurities of regression are NaN: a model does not hold them.
        """
        return sklearn_tree(self._fitted_model(), self.criterion)

    def _keep_tree(self, model: Predictor, grown: GrownTree, params: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        keep_trees(self, model, params["max_features"])

    def _grow(
        self, params: dict[str, Any], X: object, y: object, sample_weight: object
    ) -> GrownTree:
        options, device = column_options(params), params["device"]
        rows = training_rows(X, y, sample_weight, None, options, several=True, device=device)
        target = read_target(self._KIND, rows.y, params["criterion"])
        warn_one_class(X, target.tasks)
        rows = encode_levels(rows, target, None, params)
        use = row_use(params, target, rows.weight)
        spec = ForestSpec.of(params, random_cuts=params["splitter"] == "random", n_trees=1)
        forest, max_bins = fit_forest(spec, rows, target, use)
        return GrownTree(forest, rows, target, use.weight, max_bins)

    def _keep_loaded(self, model: Predictor) -> None:
        keep_trees(self, model, self.max_features)

    def get_depth(self) -> int:
        """Return the number of splits between the root and the leaf that is farthest from it."""
        return int(depths(self._fitted_model().forest).max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return int(np.count_nonzero(~self._fitted_model().forest.is_split))

    def apply(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Return the number of the leaf that each row reaches, shape (n_rows,).

        Nodes are numbered from 0, the root, on.
        """
        return super().apply(X, n_jobs=self.n_jobs if n_jobs is None else n_jobs)[:, 0]

    def decision_path(self, X: object) -> Any:
        """Return the nodes that each row passes: a scipy.sparse.csr_matrix (n_rows, n_nodes)."""
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
        params = self._checked_params() | {"ccp_alpha": 0.0}
        grown = self._grow(params, X, y, sample_weight)
        decreases = impurity_decreases(grown.forest, grown.target)
        found = pruning_path(grown.forest, decreases, grown.target.impurity(grown.weight))
        return Bunch(ccp_alphas=found.ccp_alphas, impurities=found.impurities)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
