"""DecisionTreeClassifier and DecisionTreeRegressor: their parameters and fitted attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.random import RandomState
from sklearn.base import RegressorMixin

from arboost.algorithms.estimator import ClassifierMethods, regressor_score, store
from arboost.algorithms.forests.single_tree import DecisionTree
from arboost.params.forest import TREE_CLASSIFIER, TREE_REGRESSOR

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor"]


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
        store(self, locals())


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
        store(self, locals())
