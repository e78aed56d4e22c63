"""Random forests and extra trees: the fit from arguments to model, and the estimators."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from arboost.backend import core, threads
from arboost.data.dataset import Dataset
from arboost.data.table import Table
from arboost.data.target import numeric_target
from arboost.errors import ParameterError
from arboost.estimators import decision_tree, forest_growth
from arboost.estimators.estimator import (
    OUT_OF_BAG,
    ClassifierMethods,
    EngineEstimator,
    category_encoding,
    prediction_score,
    predictor_method,
    read_rows,
    regressor_score,
    store_arguments,
)
from arboost.estimators.forest_target import ForestTarget
from arboost.losses.base import Floats
from arboost.losses.links import predictions, probabilities
from arboost.models.metadata import without_history
from arboost.models.model import Model
from arboost.models.predictor import Predictor
from arboost.params import forest as forest_params
from arboost.params.suggestions import known_arguments
from arboost.training.fit import number_to_add
from arboost.training.inputs import EngineRows, SourceOptions, target_encode_rows, warn_one_class
from arboost.training.out_of_bag import OutOfBagSums, scores_of_all, warn_never_out_of_bag
from arboost.trees.forest import Forest
from arboost.trees.leaf_distributions import LeafDistributions, leaf_distributions
from arboost.trees.samples import DrawOrigin, RowDraws, undrawn_rows


class ForestEstimator(EngineEstimator):
    """Independent trees whose mean is the prediction, each grown on its draws or on all rows."""

    _TREE: ClassVar[type[EngineEstimator]]  # the estimator of one tree
    _SPLITTER: ClassVar[str] = "best"  # of those trees

    _MONOTONE = "monotonic_cst"
    _MULTI_OUTPUT = True

    warm_start: bool
    max_features: Any
    _origins: list[DrawOrigin]

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
            Rows of weight 0 are left out. With bootstrap=True, rows are drawn in proportion to
            their weights. Or the name of a column of X; the column is then not used as a feature.
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
        old = self.model_ if self.warm_start and hasattr(self, "model_") else None
        stream = SourceOptions(memory_limit, cache)
        rows = self._read((X, y, sample_weight), params, old, stream)
        target = ForestTarget.read(self._KIND, rows.y, params["criterion"], old)
        warn_one_class(X, target.tasks)
        schema = None if old is None else old.schema
        rows = target_encode_rows(rows, target.tasks, schema, category_encoding(params))
        use = forest_growth.tree_rows(params, target, rows.weight)
        n_trees, n_kept, origins = params["n_estimators"], 0, []
        out_of_bag = forest_growth.out_of_bag_sums(params, rows, target)
        n_threads = threads(params["n_jobs"])
        if old is not None:
            n_kept, origins = old.n_trees, self._kept_origins()
            number_to_add(n_trees, n_kept, "trees")
            _check_same_outputs(old, target.n_outputs, params["criterion"])
            if out_of_bag is not None:
                _check_same_rows(origins, rows)
                _add_out_of_bag(old.forest, origins, rows, out_of_bag, n_threads)
        n_rows = len(rows.y)
        draws = use.draws or RowDraws(n_rows=n_rows, n_draws=n_rows, seed=0, repeats=False)
        new_origins = [DrawOrigin(draws, number, rows.index) for number in range(n_kept, n_trees)]
        forest = Forest.empty(target.n_outputs) if old is None else old.forest
        if n_trees > n_kept:
            # Trees find the leaves of out-of-bag rows by bins as they grow; pruned trees have
            # other leaves, and find them by values afterwards.
            prunes = params["ccp_alpha"] > 0.0
            new, max_bins = forest_growth.fit_forest(
                params,
                rows,
                target,
                use,
                range(n_kept, n_trees),
                None if prunes else out_of_bag,
            )
            params = forest_growth.with_resolved_bins(params, max_bins)
            if prunes and out_of_bag is not None:
                _add_out_of_bag(new, new_origins, rows, out_of_bag, n_threads)
            forest = new if old is None else forest.joined(new)
        model = forest_growth.forest_model(
            forest, rows, target, self._recorded_params(params), out_of_bag
        )
        if params.get("quantiles", False):
            model = replace(model, distributions=_distributions(model, rows, n_threads))
        scores = {}  # a score that fails leaves the estimator unchanged
        if out_of_bag is not None:
            scores = self._out_of_bag(model, params["oob_score"], out_of_bag, rows)
        forest_growth.set_tree_attributes(self, model, params["max_features"])
        self._origins = [*origins, *new_origins]
        for name in ("oob_score_", OUT_OF_BAG[self._KIND]):
            self.__dict__.pop(name, None)
        self.__dict__.update(scores)
        return self

    def _read(
        self,
        arrays: tuple[object, object, object],
        params: dict[str, Any],
        old: Model | None,
        stream: SourceOptions,
    ) -> EngineRows:
        """The training rows, checked."""
        needs_values = "quantiles=True" if params.get("quantiles", False) else ""
        if params["oob_score"] and (old is not None or params["ccp_alpha"] > 0.0):
            needs_values = "oob_score with warm_start or ccp_alpha"
        X, y, sample_weight = self._resolve_input(arrays, params, stream, needs_values)
        schema = None if old is None or isinstance(X, Dataset) else old.schema
        rows = read_rows((X, y, sample_weight), params, schema, several=True)
        if params.get("quantiles", False):
            _check_quantiles(rows)
        return rows

    @property
    def estimator_(self) -> EngineEstimator:
        """Unfitted estimator of one tree, with the parameters of the forest."""
        names = self._TREE._get_param_names()
        params = {name: value for name, value in self.get_params().items() if name in names}
        if params.get("class_weight") == "balanced_subsample":
            params["class_weight"] = "balanced"
        tree: EngineEstimator = self._TREE(**params, splitter=self._SPLITTER)
        return tree

    @property
    def estimators_(self) -> list[Any]:
        """The trees, each as a fitted estimator of one tree."""
        trees: list[Any] = self[:]
        return trees

    def __len__(self) -> int:
        """The number of trees."""
        return self._fitted_model().n_trees

    def __getitem__(self, tree: int | slice) -> Any:
        """A tree as a fitted estimator; of a slice, a list of them."""
        chosen = range(len(self))[tree]
        return self._one_tree(chosen) if isinstance(chosen, int) else [*map(self._one_tree, chosen)]

    def __iter__(self) -> Iterator[Any]:
        """Go through the trees."""
        return iter(self.estimators_)

    @property
    def estimators_samples_(self) -> list[NDArray[np.intp]]:
        """The rows that each tree has drawn, ascending; drawn again when they are asked for."""
        self._fitted_model()
        return [origin.rows() for origin in self._kept_origins()]

    def _out_of_bag(
        self, model: Predictor, scoring: Any, sums: OutOfBagSums, rows: EngineRows
    ) -> dict[str, Any]:
        """The out-of-bag attributes of a fit."""
        means, has_mean = sums.means(), sums.has_some()
        warn_never_out_of_bag(int(np.count_nonzero(~has_mean)), len(has_mean), "tree")
        wide = scores_of_all(means, rows.index, rows.source.n_rows)
        score: Any = np.nan
        if has_mean.any():
            predicted = predictions(model, means[has_mean])
            y = rows.y[has_mean]
            if callable(scoring):
                score = scoring(y, predicted)
            else:
                weight = None if rows.weight is None else rows.weight[has_mean]
                score = prediction_score(self._KIND, y, predicted, weight)
        return {"oob_score_": score, OUT_OF_BAG[self._KIND]: _oob_values(model, wide)}

    def _one_tree(self, tree: int) -> EngineEstimator:
        """A tree as an estimator."""
        model = self._fitted_model()
        estimator: EngineEstimator = self.estimator_.set_params(
            random_state=model.params["random_state"]
        )
        attributes = {name: value for name, value in vars(self).items() if name.endswith("_")}
        for name in ("model_", "oob_score_", OUT_OF_BAG[self._KIND]):
            attributes.pop(name, None)
        estimator.__dict__.update(attributes)
        estimator.model_ = replace(
            model,
            forest=model.forest.single_tree(tree),
            distributions=None,
            provenance=without_history(model.provenance),
        )
        return estimator

    def _keep_loaded(self, model: Predictor) -> None:
        forest_growth.set_tree_attributes(self, model, self.max_features)

    def _kept_origins(self) -> list[DrawOrigin]:
        """The origins of the rows of each tree; raises ValueError for a loaded forest."""
        if not hasattr(self, "_origins"):
            raise ValueError(
                "the forest was loaded from a file, which does not keep the rows of each tree. Use "
                "warm_start=False, or keep the estimator itself, for example with joblib.dump."
            )
        return self._origins

    def _checked_params(self) -> dict[str, Any]:
        params = super()._checked_params() | {"splitter": self._SPLITTER}
        if params["bootstrap"]:
            return params
        if params["oob_score"]:
            raise ParameterError(
                f"oob_score={params['oob_score']!r} is not allowed with bootstrap=False: every "
                "tree sees all rows, and none is out of bag. Use bootstrap=True, or "
                "oob_score=False.",
                parameter="oob_score",
            )
        if params["max_samples"] is not None:
            raise ParameterError(
                f"max_samples={params['max_samples']!r} is not allowed with bootstrap=False, which "
                "draws nothing. Use bootstrap=True, or max_samples=None.",
                parameter="max_samples",
            )
        return params


def _oob_values(model: Model, means: Floats) -> Floats:
    """The out-of-bag means as users meet them: values, or class probabilities."""
    if model.kind == "regressor":
        return means[:, 0] if means.shape[1] == 1 else means
    by_target = probabilities(model, means)
    if not isinstance(by_target, list):
        return by_target
    # A class that only another target has is padded with probability 0.
    most = max(shares.shape[1] for shares in by_target)
    wide = [np.pad(shares, ((0, 0), (0, most - shares.shape[1]))) for shares in by_target]
    return np.stack(wide, axis=2)


def _check_quantiles(rows: EngineRows) -> None:
    if rows.y.ndim > 1:
        raise ParameterError(
            f"quantiles=True is not allowed with {rows.y.shape[1]} targets. Fit a model for "
            "each target, or use quantiles=False.",
            parameter="quantiles",
        )
    _table_with_values(rows, "quantiles=True")


def _check_same_outputs(old: Model, n_outputs: int, criterion: str) -> None:
    if n_outputs != old.n_outputs:
        raise ParameterError(
            f"criterion={criterion!r} is not allowed: warm_start=True keeps trees of "
            f"{old.params['criterion']!r}, and for several targets the two are not alike. Use "
            "the same, or warm_start=False to start anew.",
            parameter="criterion",
        )


def _check_same_rows(origins: Sequence[DrawOrigin], rows: EngineRows) -> None:
    """Raise ValueError for other rows than those that the kept trees were grown on."""
    for origin in origins:
        n_rows = origin.draws.n_rows
        if n_rows != len(rows.y) or not _are_equal(origin.kept, rows.index):
            raise ValueError(
                f"X has {len(rows.y)} rows of nonzero weight, but warm_start keeps trees that were "
                f"grown on {n_rows} others, so that the out-of-bag rows of these trees are not "
                "known. Pass the rows of the first fit, or use oob_score=False."
            )


def _are_equal(index: NDArray[Any] | None, other_index: NDArray[Any] | None) -> bool:
    if index is None or other_index is None:
        return index is other_index
    return np.array_equal(index, other_index)


def _add_out_of_bag(
    forest: Forest,
    origins: Sequence[DrawOrigin],
    rows: EngineRows,
    sums: OutOfBagSums,
    n_threads: int,
) -> None:
    """Add the trees' predictions of their out-of-bag rows, found by the values of the table."""
    table = _table_with_values(rows, "oob_score with warm_start or ccp_alpha")
    for tree, origin in enumerate(origins):
        out = undrawn_rows(origin.draws.drawn(origin.number).rows, origin.draws.n_rows)
        values = np.zeros((table.n_rows, forest.width))
        core.traverse(
            columns=table.columns,
            forest=forest,
            out=values,
            tree_begin=tree,
            tree_end=tree + 1,
            n_threads=n_threads,
        )
        table_rows = out if rows.index is None else rows.index[out]
        sums.add(origin.number, out, values[table_rows])


def _distributions(model: Predictor, rows: EngineRows, n_threads: int) -> LeafDistributions:
    """The training values of y by leaf, in which rows of weight 0 do not count."""
    table = _table_with_values(rows, "quantiles=True")
    y, weight = numeric_target(rows.y), rows.weight
    if rows.index is not None:
        weight = np.zeros(table.n_rows)
        weight[rows.index] = 1.0 if rows.weight is None else rows.weight
        y = np.zeros(table.n_rows)
        y[rows.index] = rows.y
    return leaf_distributions(model.forest, table, y, weight, n_threads=n_threads)


def _table_with_values(rows: EngineRows, what: str) -> Table:
    if isinstance(rows.source, Dataset):
        raise ValueError(
            f"{what} is not allowed with a Dataset, which holds bins instead of the values that "
            "trees look at. Pass the table it was made from."
        )
    return rows.source


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
    _TABLE = forest_params.RANDOM_FOREST_CLASSIFIER
    _TREE = decision_tree.DecisionTreeClassifier

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
        store_arguments(self, locals())


class RandomForestRegressor(RegressorMixin, ForestEstimator):
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
    _TABLE = forest_params.RANDOM_FOREST_REGRESSOR
    _TREE = decision_tree.DecisionTreeRegressor

    score = regressor_score

    predict_quantiles = predictor_method(Predictor.predict_quantiles)

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
        store_arguments(self, locals())


class ExtraTreesClassifier(ClassifierMethods, ForestEstimator):
    """Extremely randomised trees for classification (Geurts, Ernst and Wehenkel 2006).

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
    bootstrap : bool, default=False
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
    >>> from arboost import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ExtraTreesClassifier().fit(X, y).score(X, y)
    1.0
    """

    _KIND = "classifier"
    _TABLE = forest_params.EXTRA_TREES_CLASSIFIER
    _TREE = decision_tree.DecisionTreeClassifier
    _SPLITTER = "random"

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
        bootstrap: bool = False,
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
        store_arguments(self, locals())


class ExtraTreesRegressor(RegressorMixin, ForestEstimator):
    """Extremely randomised trees for regression (Geurts, Ernst and Wehenkel 2006).

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
    bootstrap : bool, default=False
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
    >>> from arboost import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ExtraTreesRegressor(min_samples_leaf=5).fit(X, y).score(X, y) > 0.5
    True
    """

    _KIND = "regressor"
    _TABLE = forest_params.EXTRA_TREES_REGRESSOR
    _TREE = decision_tree.DecisionTreeRegressor
    _SPLITTER = "random"

    score = regressor_score

    predict_quantiles = predictor_method(Predictor.predict_quantiles)

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
        bootstrap: bool = False,
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
        store_arguments(self, locals())
