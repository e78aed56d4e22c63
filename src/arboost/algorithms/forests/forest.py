"""ForestEstimator: the fit of random forests and extra trees, from top to bottom."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from arboost.algorithms.estimator import EngineEstimator, column_options
from arboost.algorithms.forests.fit_forest import (
    Floats,
    ForestSpec,
    encode_levels,
    fit_forest,
    forest_model,
    keep_trees,
    out_of_bag_sums,
    read_target,
    row_use,
    with_found_bins,
)
from arboost.backend import core, threads
from arboost.data.dataset import Dataset
from arboost.data.table import Table
from arboost.data.target import numbers_of
from arboost.grow.bootstrap import Origin, RowDraws, others
from arboost.model.forest import Forest
from arboost.model.history.record import without_history
from arboost.model.model import Model
from arboost.model.predict import predictions, probabilities
from arboost.model.quantiles import (
    LeafDistributions,
    leaf_distributions,
)
from arboost.names.arguments import known_arguments
from arboost.predictor import Predictor
from arboost.training.inputs import EngineRows, training_rows, warn_one_class
from arboost.training.out_of_bag import OutOfBagSums, scores_of_all, warn_never_out_of_bag
from arboost.training.streams import StreamOptions
from arboost.training.warm_start import n_to_add

__all__ = ["ForestEstimator"]

_FEWEST = 2  # rows that R^2 is defined for
_OUT_OF_BAG = {"classifier": "oob_decision_function_", "regressor": "oob_prediction_"}


class ForestEstimator(EngineEstimator):
    """Independent trees whose mean is the prediction, each on draws of its own or on all rows."""

    _TREE: ClassVar[type[EngineEstimator]]  # the estimator of one tree
    _SPLITTER: ClassVar[str] = "best"  # of those trees

    _MONOTONE = "monotonic_cst"

    warm_start: bool
    max_features: Any
    _origins: list[Origin]

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
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X,
            which is then no feature.
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 are left out. With bootstrap=True, rows are drawn in proportion to
            their weights. Or the name of a column of X, which is then no feature.
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
        old = self.model_ if self.warm_start and hasattr(self, "model_") else None
        stream = StreamOptions(memory_limit, cache)
        rows = self._read((X, y, sample_weight), params, old, stream)
        target = read_target(self._KIND, rows.y, params["criterion"], old)
        warn_one_class(X, target.tasks)
        rows = encode_levels(rows, target, None if old is None else old.schema, params)
        use = row_use(params, target, rows.weight)
        n_trees, n_kept, origins = params["n_estimators"], 0, []
        out_of_bag = out_of_bag_sums(params, rows, target)
        n_threads = threads(params["n_jobs"])
        if old is not None:
            n_kept, origins = old.n_trees, self._kept_origins()
            n_to_add(n_trees, n_kept, "trees")
            _check_same_outputs(old, target.n_outputs, params["criterion"])
            if out_of_bag is not None:
                _check_same_rows(origins, rows)
                _add_out_of_bag(old.forest, origins, rows, out_of_bag, n_threads)
        draws = _all_rows(len(rows.y)) if use.draws is None else use.draws
        new_origins = [Origin(draws, number, rows.index) for number in range(n_kept, n_trees)]
        forest = Forest.empty(target.n_outputs) if old is None else old.forest
        if n_trees > n_kept:
            spec = ForestSpec.of(
                params,
                random_cuts=self._SPLITTER == "random",
                n_trees=n_trees - n_kept,
                first_tree=n_kept,
            )
            # Trees find the leaves of out-of-bag rows by bins as they grow; pruned trees have
            # other leaves, and find them by values afterwards.
            prunes = spec.ccp_alpha > 0.0
            new, max_bins = fit_forest(spec, rows, target, use, None if prunes else out_of_bag)
            params = with_found_bins(params, max_bins)
            if prunes and out_of_bag is not None:
                _add_out_of_bag(new, new_origins, rows, out_of_bag, n_threads)
            forest = new if old is None else forest.joined(new)
        model = forest_model(forest, rows, target, self._recorded_params(params), out_of_bag)
        if params.get("quantiles", False):
            model = replace(model, distributions=_distributions(model, rows, n_threads))
        # A score that fails leaves the estimator unchanged.
        scoring, scores = params["oob_score"], {}
        if out_of_bag is not None:
            scores = self._out_of_bag(model, scoring, out_of_bag, rows)
        keep_trees(self, model, params["max_features"])
        self._origins = [*origins, *new_origins]
        for name in ("oob_score_", _OUT_OF_BAG[self._KIND]):
            self.__dict__.pop(name, None)
        self.__dict__.update(scores)
        return self

    def _read(
        self,
        given: tuple[object, object, object],
        params: dict[str, Any],
        old: Model | None,
        stream: StreamOptions,
    ) -> EngineRows:
        """Return the training rows, checked."""
        needs_values = "quantiles=True" if params.get("quantiles", False) else ""
        if params["oob_score"] and (old is not None or params["ccp_alpha"] > 0.0):
            needs_values = "oob_score with warm_start or ccp_alpha"
        X, y, sample_weight = self._opened(given, params, stream, needs_values)
        known = None if old is None or isinstance(X, Dataset) else old.schema
        options, device = column_options(params), params["device"]
        rows = training_rows(X, y, sample_weight, known, options, several=True, device=device)
        if params.get("quantiles", False):
            _check_quantiles(rows)
        return rows

    @property
    def estimator_(self) -> EngineEstimator:
        """Unfitted estimator of one tree, with the parameters of the forest."""
        names = self._TREE._get_param_names()
        given = {name: value for name, value in self.get_params().items() if name in names}
        if given.get("class_weight") == "balanced_subsample":
            given["class_weight"] = "balanced"
        tree: EngineEstimator = self._TREE(**given, splitter=self._SPLITTER)
        return tree

    @property
    def estimators_(self) -> list[Any]:
        """The trees, each as a fitted estimator of one tree."""
        return [self._one_tree(tree) for tree in range(self._fitted_model().n_trees)]

    def __len__(self) -> int:
        """Return the number of trees."""
        n_trees: int = self._fitted_model().n_trees
        return n_trees

    def __getitem__(self, tree: int | slice) -> Any:
        """Return a tree as a fitted estimator; of a slice, a list of them."""
        if isinstance(tree, slice):
            return [self._one_tree(one) for one in range(len(self))[tree]]
        return self._one_tree(range(len(self))[tree])

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
        """Return the out-of-bag attributes of a fit."""
        means, known = sums.means(), sums.has_some()
        warn_never_out_of_bag(int(np.count_nonzero(~known)), len(known), "tree")
        wide = scores_of_all(means, rows.index, rows.source.n_rows)
        score: Any = np.nan
        if known.any():
            predicted = predictions(model, means[known])
            y = rows.y[known]
            if callable(scoring):
                score = scoring(y, predicted)
            else:
                weight = None if rows.weight is None else rows.weight[known]
                score = _score(self._KIND, y, predicted, weight)
        return {"oob_score_": score, _OUT_OF_BAG[self._KIND]: _oob_values(model, wide)}

    def _one_tree(self, tree: int) -> EngineEstimator:
        """Return a tree as an estimator."""
        model = self._fitted_model()
        one: EngineEstimator = self.estimator_.set_params(random_state=model.params["random_state"])
        known = {name: value for name, value in vars(self).items() if name.endswith("_")}
        for name in ("model_", "oob_score_", _OUT_OF_BAG[self._KIND]):
            known.pop(name, None)
        one.__dict__.update(known)
        one.model_ = Predictor(
            **model.fields()
            | {
                "forest": model.forest.only(tree),
                "distributions": None,
                "provenance": without_history(model.provenance),
            }
        )
        return one

    def _keep_loaded(self, model: Predictor) -> None:
        keep_trees(self, model, self.max_features)

    def _kept_origins(self) -> list[Origin]:
        """Return the origins of the rows of each tree; raise ValueError for a loaded forest."""
        if not hasattr(self, "_origins"):
            raise ValueError(
                "the forest was loaded from a file, which does not keep the rows of each tree. Use "
                "warm_start=False, or keep the estimator itself, for example with joblib.dump."
            )
        return self._origins

    def _checked_params(self) -> dict[str, Any]:
        params = super()._checked_params()
        if params["bootstrap"]:
            return params
        if params["oob_score"]:
            raise ValueError(
                f"oob_score={params['oob_score']!r} is not allowed with bootstrap=False: every "
                "tree sees all rows, and none is out of bag. Use bootstrap=True, or "
                "oob_score=False."
            )
        if params["max_samples"] is not None:
            raise ValueError(
                f"max_samples={params['max_samples']!r} is not allowed with bootstrap=False, which "
                "draws nothing. Use bootstrap=True, or max_samples=None."
            )
        return params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _oob_values(model: Model, means: Floats) -> Floats:
    """Return the out-of-bag means as users meet them: values, or class probabilities."""
    if model.kind == "regressor":
        return means[:, 0] if means.shape[1] == 1 else means
    found = probabilities(model, means)
    if not isinstance(found, list):
        return found
    # A class that only another target has is padded with probability 0.
    most = max(one.shape[1] for one in found)
    wide = [np.pad(one, ((0, 0), (0, most - one.shape[1]))) for one in found]
    return np.stack(wide, axis=2)


def _score(kind: str, y: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
    """Return the accuracy of all targets, or R^2."""
    if kind == "classifier":
        right = (y == predicted).reshape(len(y), -1).all(axis=1)
        return float(np.average(right, weights=weight))
    if len(y) < _FEWEST:
        return float("nan")
    return float(r2_score(y, predicted, sample_weight=weight))


def _check_quantiles(rows: EngineRows) -> None:
    if rows.y.ndim > 1:
        raise ValueError(
            f"quantiles=True is not allowed with {rows.y.shape[1]} targets. Fit a model for "
            "each target, or use quantiles=False."
        )
    _values_of(rows, "quantiles=True")


def _check_same_outputs(old: Model, n_outputs: int, criterion: str) -> None:
    if n_outputs != old.n_outputs:
        raise ValueError(
            f"criterion={criterion!r} is not allowed: warm_start=True keeps trees of "
            f"{old.params['criterion']!r}, and for several targets the two are not alike. Use "
            "the same, or warm_start=False to start anew."
        )


def _all_rows(n_rows: int) -> RowDraws:
    return RowDraws(n_rows=n_rows, n_draws=n_rows, seed=0, repeats=False)


def _check_same_rows(origins: Sequence[Origin], rows: EngineRows) -> None:
    """Raise ValueError for other rows than those that the kept trees were grown on."""
    for origin in origins:
        n_rows = origin.draws.n_rows
        if n_rows != len(rows.y) or not _are_equal(origin.kept, rows.index):
            raise ValueError(
                f"X has {len(rows.y)} rows of nonzero weight, but warm_start keeps trees that were "
                f"grown on {n_rows} others, so that the out-of-bag rows of these trees are not "
                "known. Pass the rows of the first fit, or use oob_score=False."
            )


def _are_equal(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _add_out_of_bag(
    forest: Forest, origins: Sequence[Origin], rows: EngineRows, sums: OutOfBagSums, n_threads: int
) -> None:
    """Add the trees' predictions of their out-of-bag rows, found by the values of the table."""
    table = _values_of(rows, "oob_score with warm_start or ccp_alpha")
    for tree, origin in enumerate(origins):
        out = others(origin.draws.drawn(origin.number).rows, origin.draws.n_rows)
        values = np.zeros((table.n_rows, forest.width))
        core.traverse(
            columns=table.columns,
            forest=forest,
            out=values,
            tree_begin=tree,
            tree_end=tree + 1,
            n_threads=n_threads,
        )
        of_table = out if rows.index is None else rows.index[out]
        sums.add(origin.number, out, values[of_table])


def _distributions(model: Predictor, rows: EngineRows, n_threads: int) -> LeafDistributions:
    """Return the training values of y by leaf; rows of weight 0 have no weight there."""
    table = _values_of(rows, "quantiles=True")
    y, weight = numbers_of(rows.y), rows.weight
    if rows.index is not None:
        weight = np.zeros(table.n_rows)
        weight[rows.index] = 1.0 if rows.weight is None else rows.weight
        y = np.zeros(table.n_rows)
        y[rows.index] = rows.y
    return leaf_distributions(model, table, y, weight, n_threads=n_threads)


def _values_of(rows: EngineRows, what: str) -> Table:
    if isinstance(rows.source, Dataset):
        raise ValueError(
            f"{what} is not allowed with a Dataset, which holds bins instead of the values that "
            "trees look at. Pass the table it was made from."
        )
    return rows.source
