"""RandomForestClassifier and RandomForestRegressor: their parameters and fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.random import RandomState
from sklearn.base import RegressorMixin

from arboost.algorithms.estimator import ClassifierMethods, regressor_score, store
from arboost.algorithms.forests.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from arboost.algorithms.forests.forest import ForestEstimator
from arboost.algorithms.forests.quantile_methods import QuantileMethods
from arboost.params.forest import RANDOM_FOREST_CLASSIFIER, RANDOM_FOREST_REGRESSOR

__all__ = ["RandomForestClassifier", "RandomForestRegressor"]


class RandomForestClassifier(ClassifierMethods, ForestEstimator):
    """Random forest for classification (Breiman 2001).

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "log_loss", "error", "gain_ratio"}, default="gini"
        Impurity to minimise: Gini impurity; entropy, also called log_loss; the share of rows
        outside the most frequent class, of equal ones the Gini impurity; or entropy with C4.5's
        choice of the feature, by its gain over the entropy of the split itself.
    max_depth : int or None, default=None
        Largest number of splits between the root of a tree and a leaf; None sets no limit.
    min_samples_split : int or float, default=2
        Smallest number of training rows, or share of them, in a node that is split.
    min_samples_leaf : int or float, default=1
        Smallest number of training rows, or share of them, in each child of a split; a row that is
        drawn twice is one row.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight in each child of a split.
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        Number of features drawn for each node as candidates for its split: the square root or the
        logarithm of their number, a number, a share of them, or None for all.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves of a tree, which then grows best-first, by the decrease of
        impurity; None sets no limit.
    min_impurity_decrease : float, default=0.0
        Smallest decrease of impurity of a split, weighted by the node's share of the total weight.
    bootstrap : bool, default=True
        Whether each tree is grown on rows drawn with replacement, in proportion to their weights,
        instead of all rows.
    oob_score : bool or callable, default=False
        Whether to compute the out-of-bag score, or a function of (y, prediction) to compute it
        with; needs bootstrap=True.
    device : str, default="cpu"
        Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other CUDA devices
        than the first. The model does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None: a new seed for each fit.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.
    warm_start : bool, default=False
        Whether a further call of fit keeps the trees and adds new ones up to n_estimators.
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Factors on the row weights by label, 1 for labels that are not named; for several targets a
        list, whose factors are multiplied. "balanced" gives all classes the same total weight,
        "balanced_subsample" among the rows drawn for each tree.
    ccp_alpha : float, default=0.0
        Minimal cost-complexity pruning: decrease of impurity per additional leaf below which
        branches are pruned, the weakest first.
    max_samples : int or float or None, default=None
        With bootstrap=True: number of draws for each tree, or that number as a share of the rows;
        None draws as often as there are rows.
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

    Attributes
    ----------
    classes_ : array of shape (n_classes,), or a list of them
        Labels, sorted; for several targets one array each.
    n_classes_ : int, or a list of them
    model_ : arboost.Predictor
        The fitted model.
    estimators_ : list
        The trees, each as a fitted DecisionTreeClassifier.
    n_outputs_, max_features_ : int
        Number of targets, and number of features that a node draws.
    feature_importances_ : float64 array of shape (n_features,)
        Mean over the trees of the share of each feature in the gain of their splits.
    oob_score_, oob_decision_function_ : float, float64 array
        With `oob_score`: out-of-bag accuracy and class probabilities of the training rows; NaN for
        rows that every tree has drawn, or of weight 0. Several targets have a third axis.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from arboost import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> round(RandomForestClassifier(oob_score=True).fit(X, y).oob_score_, 1)
    0.9
    """

    _KIND = "classifier"
    _TABLE = RANDOM_FOREST_CLASSIFIER
    _TREE = DecisionTreeClassifier

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
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
        warm_start: bool = False,
        class_weight: Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None = None,
        ccp_alpha: float = 0.0,
        max_samples: int | float | None = None,
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
    ) -> None:
        store(self, locals())


class RandomForestRegressor(RegressorMixin, QuantileMethods, ForestEstimator):
    """Random forest for regression (Breiman 2001).

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        Impurity to minimise: squared error; absolute error around medians, which are then the leaf
        values; or the Poisson deviance, for counts.
    max_depth : int or None, default=None
        Largest number of splits between the root of a tree and a leaf; None sets no limit.
    min_samples_split : int or float, default=2
        Smallest number of training rows, or share of them, in a node that is split.
    min_samples_leaf : int or float, default=1
        Smallest number of training rows, or share of them, in each child of a split; a row that is
        drawn twice is one row.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight in each child of a split.
    max_features : "sqrt", "log2", int, float or None, default=1.0
        Number of features drawn for each node as candidates for its split: the square root or the
        logarithm of their number, a number, a share of them, or None for all.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves of a tree, which then grows best-first, by the decrease of
        impurity; None sets no limit.
    min_impurity_decrease : float, default=0.0
        Smallest decrease of impurity of a split, weighted by the node's share of the total weight.
    bootstrap : bool, default=True
        Whether each tree is grown on rows drawn with replacement, in proportion to their weights,
        instead of all rows.
    oob_score : bool or callable, default=False
        Whether to compute the out-of-bag score, or a function of (y, prediction) to compute it
        with; needs bootstrap=True.
    device : str, default="cpu"
        Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other CUDA devices
        than the first. The model does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None: a new seed for each fit.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.
    warm_start : bool, default=False
        Whether a further call of fit keeps the trees and adds new ones up to n_estimators.
    ccp_alpha : float, default=0.0
        Minimal cost-complexity pruning: decrease of impurity per additional leaf below which
        branches are pruned, the weakest first.
    max_samples : int or float or None, default=None
        With bootstrap=True: number of draws for each tree, or that number as a share of the rows;
        None draws as often as there are rows.
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
    quantiles : bool, default=False
        Whether leaves keep their values of y, for `predict_quantiles`: four bytes for each row and
        tree.

    Attributes
    ----------
    model_ : arboost.Predictor
        The fitted model.
    estimators_ : list
        The trees, each as a fitted DecisionTreeRegressor.
    n_outputs_, max_features_ : int
        Number of targets, and number of features that a node draws.
    feature_importances_ : float64 array of shape (n_features,)
        Mean over the trees of the share of each feature in the gain of their splits.
    oob_score_, oob_prediction_ : float, float64 array
        With `oob_score`: out-of-bag R^2 and predictions of the training rows; NaN for rows that
        every tree has drawn, or of weight 0. Several targets have a column each.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(RandomForestRegressor(oob_score=True).fit(X, y).oob_score_, 1)
    0.4
    """

    _KIND = "regressor"
    _TABLE = RANDOM_FOREST_REGRESSOR
    _TREE = DecisionTreeRegressor

    score = regressor_score

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
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: int | float | None = None,
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
        quantiles: bool = False,
    ) -> None:
        store(self, locals())
