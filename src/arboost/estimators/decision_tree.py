"""Decision trees: the fit of one CART tree, the two estimators, and their views of the tree."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Bunch

from arboost.backend import core, threads
from arboost.data.table import Table
from arboost.estimators import forest_growth
from arboost.estimators.estimator import (
    ClassifierMethods,
    EngineEstimator,
    category_encoding,
    read_rows,
    regressor_score,
    store_arguments,
)
from arboost.estimators.forest_target import ForestTarget, median_deviation
from arboost.losses.base import Floats
from arboost.models.model import Model
from arboost.models.predictor import Predictor
from arboost.models.tree_nodes import node_values
from arboost.params.forest import TREE_CLASSIFIER, TREE_REGRESSOR
from arboost.params.suggestions import known_arguments
from arboost.training.inputs import EngineRows, SourceOptions, target_encode_rows, warn_one_class
from arboost.trees.forest import Forest, depths, forest_leaves, parents
from arboost.trees.pruning import pruning_path

if TYPE_CHECKING:
    from arboost.plots.trees import TreePicture


_NO_CHILD, _NO_FEATURE = -1, -2  # of leaves


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
    _MULTI_OUTPUT = True
    _KEEPS_STATISTICS: ClassVar[bool] = False  # of the training rows in each node, for `tree_`

    criterion: str
    max_features: Any
    _statistics: NodeStatistics | None = None

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
            scipy.sparse, lists or dicts. Columns are numbers, booleans, decimals, dates and times,
            or categories. NaN and None are missing values. With device="cuda" also an array in
            device memory. A Dataset brings its own y and weights.
            Or a source that is read in batches and need not fit in memory: paths of files or
            folders, patterns such as "data/*.parquet", an iterable of batches that can be read
            again; y and sample_weight are then names of columns, or arrays.
        y : array of shape (n_rows,) or (n_rows, n_targets)
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X;
            the column is then not used as a feature.
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 are left out. Or the name of a column of X; the column is then not used
            as a feature.
        memory_limit : int or str, default="auto"
            Memory for a fit on files or other batches: "2GB", "500MB", or a number of bytes.
            "auto": a share of the memory that the process may use. The model does not depend on it.
        cache : path, optional
            Folder that keeps the bins of files: the next fit on the same files with the same
            columns and bins starts at once. Files that have changed are read again.

        Returns
        -------
        self
        """
        params = self._checked_params()
        arrays = self._resolve_input(
            (X, y, sample_weight), params, SourceOptions(memory_limit, cache)
        )
        grown = self._grow(params, *arrays)
        recorded = self._recorded_params(forest_growth.with_resolved_bins(params, grown.max_bins))
        model = forest_growth.forest_model(grown.forest, grown.rows, grown.target, recorded)
        forest_growth.set_tree_attributes(self, model, params["max_features"])
        if self._KEEPS_STATISTICS:
            self._statistics = node_statistics(grown, params["criterion"])
        return self

    @property
    def tree_(self) -> Any:
        """The tree as scikit-learn's own structure, a copy, for tools that read it.

        Its impurities of regression are NaN: a model does not hold them.
        """
        return sklearn_tree(self._fitted_model(), self.criterion, self._statistics)

    def _grow(
        self, params: dict[str, Any], X: object, y: object, sample_weight: object
    ) -> GrownTree:
        rows = read_rows((X, y, sample_weight), params, several=True)
        target = ForestTarget.read(self._KIND, rows.y, params["criterion"])
        warn_one_class(X, target.tasks)
        rows = target_encode_rows(rows, target.tasks, None, category_encoding(params))
        use = forest_growth.tree_rows(params, target, rows.weight)
        forest, max_bins = forest_growth.fit_forest(params, rows, target, use, range(1))
        return GrownTree(forest, rows, target, use.weight, max_bins)

    def _keep_loaded(self, model: Predictor) -> None:
        forest_growth.set_tree_attributes(self, model, self.max_features)

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
        return self._fitted_model().tree_text(
            max_depth=max_depth, precision=precision, show_missing=show_missing
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
        return self._fitted_model().tree_svg(
            max_depth=max_depth, precision=precision, show_missing=show_missing
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
        decreases = forest_growth.impurity_decreases(grown.forest, grown.target)
        path = pruning_path(grown.forest, decreases, grown.target.impurity(grown.weight))
        return Bunch(ccp_alphas=path.ccp_alphas, impurities=path.impurities)


class DecisionTreeClassifier(ClassifierMethods, DecisionTree):
    """Decision tree for classification: CART of Breiman, Friedman, Olshen and Stone (1984).

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "error", "gain_ratio"}, default="gini"
        Impurity to minimise: Gini impurity; entropy, also called log_loss; the share of rows
        outside the most frequent class, of equal ones the Gini impurity; or entropy with C4.5's
        choice of the feature, by its gain over the entropy of the split itself.
    splitter : {"best", "random"}, default="best"
        Threshold of a feature in a node: the best value, or a random one between the smallest and
        the largest value of the node's rows.
    max_depth : int or None, default=None
        Largest number of splits between the root of a tree and a leaf; None sets no limit.
    min_samples_split : int or float, default=2
        Smallest number of training rows, or share of them, in a node that is split.
    min_samples_leaf : int or float, default=1
        Smallest number of training rows, or share of them, in each child of a split; a row that is
        drawn twice is one row.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight in each child of a split.
    max_features : "sqrt", "log2", int, float or None, default=None
        Number of features drawn for each node as candidates for its split: the square root or the
        logarithm of their number, a number, a share of them, or None for all.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None: a new seed for each fit.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves of a tree, which then grows best-first, by the decrease of
        impurity; None sets no limit.
    min_impurity_decrease : float, default=0.0
        Smallest decrease of impurity of a split, weighted by the node's share of the total weight.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Factors on the row weights by label, 1 for labels that are not named; for several targets a
        list, whose factors are multiplied. "balanced" gives all classes the same total weight.
    ccp_alpha : float, default=0.0
        Minimal cost-complexity pruning: decrease of impurity per additional leaf below which
        branches are pruned, the weakest first.
    monotonic_cst : dict, sequence of {-1, 0, 1}, or None, default=None
        scikit-learn's name of monotone_constraints.
    monotone_constraints : dict, sequence of {-1, 0, 1}, or None, default=None
        Features in which predictions, or the probability of the second of two classes, may only
        rise (1) or only fall (-1), 0 for no constraint: a sequence with an entry for each feature,
        or a dict by name or index.
    tree_method : {"hist", "exact"}, default="hist"
        Candidates for splits: the bin edges of a histogram, or all distinct values.
    max_bins : int or str, default="auto"
        Largest number of bins of a feature with tree_method="hist", not counting missing values;
        above 255 a bin code takes two bytes. "auto": 255; or a bin for each value where trees that
        may have more than 256 leaves need them for pure leaves, on up to 32,768 rows; a Dataset has
        its own.
    bundling : bool, default=True
        Whether features share stored columns with tree_method="hist": exclusive feature bundling
        (EFB), and several columns of few values in one byte. The model does not depend on it.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Additional categories, whatever their type: names, indices or a mask of columns.
        "from_dtype": only columns of strings, and of the categorical types of pandas, Polars and
        Arrow, which are always categories.
    category_encoding : {"auto", "groups", "mean"}, default="auto"
        Encoding of categories of more than 100 levels by their targets: sets of at most 255 groups,
        of which each frequent level is one and rare levels of similar means share the others; or
        one number, the mean target of a level. "auto": groups in gradient boosting, the mean in all
        other algorithms; a Dataset has its own.
    date_format : str, dict, or None, default="auto"
        Format of dates in strings, for all columns or by column: "iso" (year first), "dayfirst",
        "monthfirst", or a format of strptime such as "%d.%m.%y". "auto": year first, and day or
        month first where the values of a column leave no doubt. None: dates in strings are
        categories.
    calendar_parts : "auto", list of str, or None, default="auto"
        Calendar parts of dates that are features next to them: "hour", "weekday", "month" and
        "dayofyear". "auto": those that repeat, the hour in dates of more than a day, the weekday of
        more than a week, the others of more than a year. None: no parts.
    missing : float, default=float("nan")
        Number that means missing in all numeric columns, such as -999, or 0 in sparse tables; NaN,
        None and NA are always missing.
    device : str, default="cpu"
        Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other CUDA devices
        than the first. The model does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    classes_ : array of shape (n_classes,), or a list of them
        Labels, sorted; for several targets one array each.
    n_classes_ : int, or a list of them
    model_ : arboost.Predictor
        The fitted model.
    n_outputs_, max_features_ : int
        Number of targets, and number of features that a node draws.
    feature_importances_ : float64 array of shape (n_features,)
        Share of each feature in the gain of the splits.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from arboost import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> DecisionTreeClassifier(max_depth=2).fit(X, y).score(X, y)
    0.96
    """

    _KIND = "classifier"
    _TABLE = TREE_CLASSIFIER

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
        random_state: int | RandomState | None = 0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None,
        monotone_constraints: Mapping[Any, int] | Sequence[int] | None = None,
        tree_method: str = "hist",
        max_bins: int | str = "auto",
        bundling: bool = True,
        categorical_features: str | Sequence[Any] = "from_dtype",
        category_encoding: str = "auto",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
        missing: float = float("nan"),
        device: str = "cpu",
        n_jobs: int | None = None,
        verbose: bool | int = 1,
    ) -> None:
        store_arguments(self, locals())


class DecisionTreeRegressor(RegressorMixin, DecisionTree):
    """Decision tree for regression: CART of Breiman, Friedman, Olshen and Stone (1984).

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        Impurity to minimise: squared error; absolute error around medians, which are then the leaf
        values; or the Poisson deviance, for counts.
    splitter : {"best", "random"}, default="best"
        Threshold of a feature in a node: the best value, or a random one between the smallest and
        the largest value of the node's rows.
    max_depth : int or None, default=None
        Largest number of splits between the root of a tree and a leaf; None sets no limit.
    min_samples_split : int or float, default=2
        Smallest number of training rows, or share of them, in a node that is split.
    min_samples_leaf : int or float, default=1
        Smallest number of training rows, or share of them, in each child of a split; a row that is
        drawn twice is one row.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight in each child of a split.
    max_features : "sqrt", "log2", int, float or None, default=None
        Number of features drawn for each node as candidates for its split: the square root or the
        logarithm of their number, a number, a share of them, or None for all.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None: a new seed for each fit.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves of a tree, which then grows best-first, by the decrease of
        impurity; None sets no limit.
    min_impurity_decrease : float, default=0.0
        Smallest decrease of impurity of a split, weighted by the node's share of the total weight.
    ccp_alpha : float, default=0.0
        Minimal cost-complexity pruning: decrease of impurity per additional leaf below which
        branches are pruned, the weakest first.
    monotonic_cst : dict, sequence of {-1, 0, 1}, or None, default=None
        scikit-learn's name of monotone_constraints.
    monotone_constraints : dict, sequence of {-1, 0, 1}, or None, default=None
        Features in which predictions, or the probability of the second of two classes, may only
        rise (1) or only fall (-1), 0 for no constraint: a sequence with an entry for each feature,
        or a dict by name or index.
    tree_method : {"hist", "exact"}, default="hist"
        Candidates for splits: the bin edges of a histogram, or all distinct values.
    max_bins : int or str, default="auto"
        Largest number of bins of a feature with tree_method="hist", not counting missing values;
        above 255 a bin code takes two bytes. "auto": 255; or a bin for each value where trees that
        may have more than 256 leaves need them for pure leaves, on up to 32,768 rows; a Dataset has
        its own.
    bundling : bool, default=True
        Whether features share stored columns with tree_method="hist": exclusive feature bundling
        (EFB), and several columns of few values in one byte. The model does not depend on it.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Additional categories, whatever their type: names, indices or a mask of columns.
        "from_dtype": only columns of strings, and of the categorical types of pandas, Polars and
        Arrow, which are always categories.
    category_encoding : {"auto", "groups", "mean"}, default="auto"
        Encoding of categories of more than 100 levels by their targets: sets of at most 255 groups,
        of which each frequent level is one and rare levels of similar means share the others; or
        one number, the mean target of a level. "auto": groups in gradient boosting, the mean in all
        other algorithms; a Dataset has its own.
    date_format : str, dict, or None, default="auto"
        Format of dates in strings, for all columns or by column: "iso" (year first), "dayfirst",
        "monthfirst", or a format of strptime such as "%d.%m.%y". "auto": year first, and day or
        month first where the values of a column leave no doubt. None: dates in strings are
        categories.
    calendar_parts : "auto", list of str, or None, default="auto"
        Calendar parts of dates that are features next to them: "hour", "weekday", "month" and
        "dayofyear". "auto": those that repeat, the hour in dates of more than a day, the weekday of
        more than a week, the others of more than a year. None: no parts.
    missing : float, default=float("nan")
        Number that means missing in all numeric columns, such as -999, or 0 in sparse tables; NaN,
        None and NA are always missing.
    device : str, default="cpu"
        Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other CUDA devices
        than the first. The model does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    model_ : arboost.Predictor
        The fitted model.
    n_outputs_, max_features_ : int
        Number of targets, and number of features that a node draws.
    feature_importances_ : float64 array of shape (n_features,)
        Share of each feature in the gain of the splits.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(DecisionTreeRegressor(max_depth=3).fit(X, y).score(X, y), 2)
    0.5
    """

    _KIND = "regressor"
    _TABLE = TREE_REGRESSOR

    score = regressor_score

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
        random_state: int | RandomState | None = 0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None,
        monotone_constraints: Mapping[Any, int] | Sequence[int] | None = None,
        tree_method: str = "hist",
        max_bins: int | str = "auto",
        bundling: bool = True,
        categorical_features: str | Sequence[Any] = "from_dtype",
        category_encoding: str = "auto",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
        missing: float = float("nan"),
        device: str = "cpu",
        n_jobs: int | None = None,
        verbose: bool | int = 1,
    ) -> None:
        store_arguments(self, locals())


# ---- the structure of scikit-learn ----


class NodeStatistics(NamedTuple):
    """Statistics of the training rows of each node that a model does not hold.

    Attributes
    ----------
    n_rows : int64 array of shape (n_nodes,)
    impurity : float64 array of shape (n_nodes,)
    """

    n_rows: NDArray[np.int64]
    impurity: Floats


def sklearn_tree(model: Model, criterion: str, rows: NodeStatistics | None = None) -> Any:
    """A ``sklearn.tree._tree.Tree`` of a model of one tree.

    It is a copy: changes do not reach the model. Nodes keep their numbers. The impurities of
    classes are those of their shares.

    Parameters
    ----------
    model : Model
    criterion : str
        Parameter of the estimator.
    rows : NodeStatistics, optional
        Without it, numbers of rows are rounded sums of weights, and impurities of regression are
        NaN.
    """
    from sklearn.tree._tree import NODE_DTYPE, Tree

    forest = model.forest
    if forest.has_sets:
        node = int(np.argmax(forest.level_set >= 0))
        label = model.schema.label(int(forest.feature[node]))
        raise ValueError(
            f"tree_ is not available: node {node} splits the category {label} by sets of levels, "
            "which scikit-learn's trees do not have. Use text() or picture(), or pass the column "
            "as numbers."
        )
    values = [columns.numbers for columns in node_values(model, model.forest)]
    if model.kind == "regressor":  # each column of a value is a target
        values = [column[:, np.newaxis] for columns in values for column in columns.T]
    n_classes = np.array([columns.shape[1] for columns in values], np.intp)
    wide = [
        np.pad(columns, ((0, 0), (0, n_classes.max() - columns.shape[1]))) for columns in values
    ]
    is_split = forest.is_split
    if rows is None:
        rows = NodeStatistics(
            np.rint(forest.cover).astype(np.int64), np.full(forest.n_nodes, np.nan)
        )
    if model.kind == "classifier":
        rows = rows._replace(impurity=_impurities(values, criterion))
    nodes = np.zeros(forest.n_nodes, NODE_DTYPE)
    nodes["left_child"] = np.where(is_split, forest.left, _NO_CHILD)
    nodes["right_child"] = np.where(is_split, forest.left + 1, _NO_CHILD)
    nodes["feature"] = np.where(is_split, forest.feature, _NO_FEATURE)
    nodes["threshold"] = np.where(is_split, forest.threshold, float(_NO_FEATURE))
    nodes["impurity"] = rows.impurity
    nodes["n_node_samples"] = rows.n_rows
    nodes["weighted_n_node_samples"] = forest.cover
    nodes["missing_go_to_left"] = forest.default_left
    tree = Tree(model.schema.n_features, n_classes, len(values))
    tree.__setstate__(
        {
            "max_depth": int(depths(forest).max()),
            "node_count": forest.n_nodes,
            "nodes": nodes,
            "values": np.ascontiguousarray(np.stack(wide, axis=1)),
        }
    )
    return tree


def _impurities(shares: list[Floats], criterion: str) -> Floats:
    """The mean impurity over the targets."""
    if criterion == "gini":
        each = [1.0 - (share**2).sum(axis=1) for share in shares]
    elif criterion == "error":
        each = [1.0 - share.max(axis=1) for share in shares]
    else:
        each = [
            -(share * core.log(np.where(share > 0, share, 1.0))).sum(1) / core.log(2.0)
            for share in shares
        ]
    mean: Floats = np.mean(each, axis=0)
    return mean


def node_statistics(grown: GrownTree, criterion: str) -> NodeStatistics | None:
    """The statistics of each node; None for a Dataset, which has no values to walk by.

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
        return NodeStatistics(n_rows, np.zeros(forest.n_nodes))
    weight = np.ones(len(leaf)) if grown.weight is None else grown.weight
    targets = np.asarray(rows.y, np.float64).reshape(len(leaf), -1).T
    measure = _median_deviations if criterion == "absolute_error" else _mean_impurities
    each = [measure(forest, leaf, y, weight, criterion) for y in targets]
    return NodeStatistics(n_rows, np.mean(each, axis=0))


def _mean_impurities(
    forest: Forest, leaf: NDArray[np.intp], y: Floats, weight: Floats, criterion: str
) -> Floats:
    """The variance, or half the Poisson deviance, of the rows in each node."""
    middle = np.average(y, weights=weight)
    if criterion == "poisson":
        terms = _y_log_y(y)
    else:  # squares of small numbers lose no digits
        y = y - middle
        terms = y**2
    sums = [np.bincount(leaf, weight * column, minlength=forest.n_nodes) for column in (y, terms)]
    total = np.bincount(leaf, weight, minlength=forest.n_nodes)
    total, sum_y, sum_terms = _sums_of_nodes(forest, np.stack([total, *sums], axis=1)).T
    mean = sum_y / total
    known = _y_log_y(mean) if criterion == "poisson" else mean**2
    impurity: Floats = np.maximum(sum_terms / total - known, 0.0)
    return impurity


def _y_log_y(y: Floats) -> Floats:
    return y * core.log(np.where(y > 0, y, 1.0))


def _median_deviations(
    forest: Forest, leaf: NDArray[np.intp], y: Floats, weight: Floats, _: str
) -> Floats:
    """The mean absolute deviation from the median of the rows in each node."""
    parent, depth = parents(forest), depths(forest)
    deviation = np.zeros(forest.n_nodes)
    node = leaf
    for level in range(int(depth.max()), -1, -1):
        order = np.lexsort((y, node))
        order = order[depth[node[order]] == level]
        ends = np.flatnonzero(np.diff(node[order])) + 1
        for part in np.split(order, ends):
            if len(part):
                deviation[node[part[0]]] = median_deviation(y[part], weight[part])
        node = np.where(depth[node] == level, parent[node], node)
    return deviation


def _sums_of_nodes(forest: Forest, sums: NDArray[np.generic]) -> Floats:
    """Sums over the rows of all nodes, from those of the leaves."""
    total = sums.astype(np.float64)
    parent, depth = parents(forest), depths(forest)
    for level in range(int(depth.max()), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.add.at(total, parent[nodes], total[nodes])
    return total
