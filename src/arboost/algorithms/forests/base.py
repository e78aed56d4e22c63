"""What trees and forests share: parameters -> recipe -> trees that are averaged, and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from arboost.algorithms.estimator import TreeEnsemble
from arboost.algorithms.forests.cart import CRITERIA, feature_count, tree_params
from arboost.algorithms.forests.grow_forest import ForestRecipe, grow_trees
from arboost.algorithms.forests.targets import Targets, Weigh, class_weights
from arboost.backend import threads
from arboost.data.dataset import Dataset
from arboost.data.schema import Schema
from arboost.data.table import Table
from arboost.data.target import Task, codes_of, encode_labels, numbers_of
from arboost.data.target_encoding import features_to_encode
from arboost.explain.importances import tree_importances
from arboost.grow.bootstrap import RowDraws, Unseen
from arboost.grow.pruning import mean_decreases, pruned
from arboost.losses import Target
from arboost.model.forest import Forest
from arboost.model.leaves import decision_path
from arboost.model.model import Model, provenance_of
from arboost.model.predict import read_table
from arboost.predictor import Predictor
from arboost.training.inputs import Part, Rows, number_levels, training_rows
from arboost.training.progress import Bar
from arboost.training.sets import TrainingSet, bin_part, build_sets

__all__ = [
    "Averaged",
    "AveragedClassifier",
    "AveragedRegressor",
    "Seen",
    "with_numbers",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How trees see the training rows: all of them with weights, or draws."""

    weight: Floats | None = None
    draws: RowDraws | None = None
    weigh: Weigh | None = None

    def total(self, n_rows: int) -> float:
        """Return what the rows of a tree weigh together."""
        if self.draws is not None:
            return float(self.draws.n_draws)
        return float(n_rows) if self.weight is None else float(self.weight.sum())


class Averaged(TreeEnsemble):
    """Trees that know nothing of each other, whose mean is the answer."""

    _has_rounds = False

    # There are no rounds to validate, to watch or to go on from.
    def fit(  # type: ignore[override]
        self, X: object, y: object = None, sample_weight: object = None
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
            scipy.sparse, or list of lists. Columns are numbers, booleans, decimals, dates and
            times, or categories. NaN and None are missing values. A Dataset brings its own y and
            weights.
        y : array of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 count as absent. Forests that draw rows do so in proportion to it.

        Returns
        -------
        self
        """
        params = self._params()
        old = self._old_model()
        schema = None if old is None or isinstance(X, Dataset) else old.schema
        rows = training_rows(
            X, y, sample_weight, schema, self._column_options(params), several=True
        )
        return self._fit_rows(params, rows)

    @property
    def feature_importances_(self) -> Floats:
        """Mean over the trees of the share of each feature in the gain of their splits.

        All 0 where nothing was split.
        """
        shares = tree_importances(self._fitted_model())
        shares = shares[shares.any(axis=1)]
        if not len(shares):
            return np.zeros(self.n_features_in_)
        mean: Floats = shares.mean(axis=0)
        mean /= mean.sum()
        return mean

    def apply(self, X: object) -> NDArray[np.int32]:
        """Return the number of the leaf that each row reaches in each tree.

        Nodes of a tree are numbered from 0, its root, on. The shape is (n_rows, n_trees).
        """
        return self._fitted_model().apply(X, n_jobs=self.n_jobs)

    def decision_path(self, X: object) -> Any:
        """Return which nodes each row passes, and where the nodes of each tree begin.

        Returns
        -------
        indicator : scipy.sparse.csr_matrix of shape (n_rows, n_nodes)
            1 where a row passes a node, of the nodes of all trees.
        n_nodes_ptr : int64 array of shape (n_trees + 1,)
            The nodes of tree t are the columns ``n_nodes_ptr[t]`` to ``n_nodes_ptr[t + 1]``.
        """
        table = self._table(X)
        return decision_path(self._fitted_model(), table, n_threads=threads(self.n_jobs))

    def _table(self, X: object) -> Table:
        return read_table(self._fitted_model(), X)

    def _old_model(self) -> Predictor | None:
        """Return the model whose trees are kept, or None."""
        return None

    def _fit_rows(self, params: dict[str, Any], rows: Rows) -> Self:
        """Train on rows that are checked already."""
        raise NotImplementedError

    def _grow(
        self,
        params: dict[str, Any],
        rows: Rows,
        targets: Targets,
        seen: Seen,
        *,
        n_trees: int,
        first_tree: int = 0,
        unseen: Unseen | None = None,
    ) -> Forest:
        """Return trees."""
        n_threads, n_rows = threads(params["n_jobs"]), len(rows.y)
        recipe = ForestRecipe(
            goal=targets.goal(),
            tree=tree_params(
                params,
                rows.schema,
                targets,
                n_rows=n_rows,
                total=seen.total(n_rows),
                random_cuts=self._cuts_at_random(params),
            ),
            n_trees=n_trees,
            seed=params["random_state"],
            first_tree=first_tree,
            weight=seen.weight,
            draws=seen.draws,
            weigh=seen.weigh,
        )
        data = _training_set(params, rows, seen, n_threads)
        with Bar(n_trees, "fitting", visible=params["verbose"] > 0) as bar:
            forest = grow_trees(recipe, data, unseen, n_threads=n_threads, bar=bar)
        alpha = params["ccp_alpha"]
        return pruned(forest, self._decreases(forest, targets), alpha) if alpha > 0.0 else forest

    def _decreases(self, forest: Forest, targets: Targets) -> Floats:
        """Return how much each split takes off the impurity, times the weight of its node."""
        if targets.criterion == "quadratic":
            return mean_decreases(forest, 1.0 / targets.gain_factor)
        return forest.gain / targets.gain_factor

    def _keep_forest(
        self, params: dict[str, Any], rows: Rows, targets: Targets, forest: Forest
    ) -> None:
        """Set the fitted attributes; nothing before this has changed the estimator."""
        self.model_ = Predictor(
            forest=forest,
            schema=rows.schema,
            base_score=np.zeros(forest.width),
            trees_per_round=1,
            params=self._record(params),
            kind=targets.kind,
            combine="mean",
            provenance=provenance_of(len(rows.y)),
            **targets.answer,
        )
        self.n_outputs_ = len(targets.tasks)
        self.max_features_ = feature_count(params["max_features"], rows.schema.n_features)
        self._keep_schema(rows.schema)

    def _cuts_at_random(self, params: dict[str, Any]) -> bool:
        """Whether each feature of a node is cut at one random value."""
        return bool(params["splitter"] == "random")

    def _row_weights(
        self, params: dict[str, Any], targets: Targets, weight: Floats | None
    ) -> Floats | None:
        """Return the weights of the rows with those of their classes."""
        return weight

    def _check_together(self, params: dict[str, Any]) -> None:
        pass

    def _targets(self, params: dict[str, Any], y: NDArray[Any], old: Model | None) -> Targets:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class AveragedRegressor(RegressorMixin, Averaged):
    """Answers of a regressor."""

    def predict(self, X: object) -> Floats:
        """Return the predicted values, float64 of shape (n_rows,) or (n_rows, n_targets)."""
        return self._fitted_model().predict(X, n_jobs=self.n_jobs)

    def _targets(self, params: dict[str, Any], y: NDArray[Any], old: Model | None) -> Targets:
        criterion = CRITERIA[params["criterion"]]
        tasks = [Task("regressor", numbers_of(column)) for column in _each(y)]
        if old is not None:
            _check_targets(len(tasks), max(1, len(old.targets)))
        if criterion == "poisson":
            for task in tasks:
                _check_counts(task.y)
        return Targets.of(tasks, criterion)


class AveragedClassifier(ClassifierMixin, Averaged):
    """Answers of a classifier."""

    def predict(self, X: object) -> NDArray[Any]:
        """Return the most likely labels, shape (n_rows,) or (n_rows, n_targets)."""
        return self._fitted_model().predict(X, n_jobs=self.n_jobs)

    def predict_proba(self, X: object) -> Floats | list[Floats]:
        """Return the probabilities of the classes in the order of ``classes_``.

        Their shape is (n_rows, n_classes); for several targets there is a list of them.
        """
        return self._fitted_model().predict_proba(X, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: object) -> Floats | list[Floats]:
        """Return the logarithms of `predict_proba`; those of 0 are -inf."""
        found = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(one) for one in found] if isinstance(found, list) else np.log(found)

    def _targets(self, params: dict[str, Any], y: NDArray[Any], old: Model | None) -> Targets:
        criterion = CRITERIA[params["criterion"]]
        columns = _each(y)
        if old is None:
            found = [encode_labels(column) for column in columns]
            tasks = [Task("classifier", codes, labels) for labels, codes in found]
            return Targets.of(tasks, criterion)
        known = old.classes if isinstance(old.classes, tuple) else (old.classes,)
        _check_targets(len(columns), len(known))
        origin = "the first fit of warm_start"
        tasks = [
            Task("classifier", codes_of(column, labels, "y", origin), labels)
            for column, labels in zip(columns, known, strict=True)
        ]
        return Targets.of(tasks, criterion)

    def _row_weights(
        self, params: dict[str, Any], targets: Targets, weight: Floats | None
    ) -> Floats | None:
        given = params["class_weight"]
        by_sample = given == "balanced_subsample"  # of trees that see all rows
        return class_weights("balanced" if by_sample else given, targets.tasks, weight)

    def _keep_forest(
        self, params: dict[str, Any], rows: Rows, targets: Targets, forest: Forest
    ) -> None:
        super()._keep_forest(params, rows, targets, forest)
        classes = self.model_.classes
        several = isinstance(classes, tuple)
        self.classes_ = list(classes) if several else classes
        self.n_classes_ = [len(one) for one in classes] if several else len(classes)


def _check_targets(given: int, kept: int) -> None:
    if given != kept:
        raise ValueError(
            f"y has {given} targets, but the trees that are kept have {kept}. Pass those of the "
            "first fit, or use warm_start=False."
        )


def _check_counts(y: Floats) -> None:
    """Raise ValueError for what has no deviance."""
    if y.min() < 0.0:
        raise ValueError(
            f"y goes down to {y.min()}, "
            'but criterion="poisson" is for counts. Use values from 0 on, or another criterion.'
        )
    if not y.any():
        raise ValueError(
            'y is 0 in every row, but criterion="poisson" needs a value above 0. Use another '
            "criterion."
        )


def _each(y: NDArray[Any]) -> list[NDArray[Any]]:
    return [y] if y.ndim == 1 else [np.ascontiguousarray(column) for column in y.T]


def with_numbers(rows: Rows, targets: Targets, known: Schema | None) -> Rows:
    """Return the rows with numbers for categories of many levels."""
    first = targets.tasks[0]
    if len(targets.tasks) > 1 and known is None:
        crowded = features_to_encode(rows.schema)
        if crowded:
            raise ValueError(
                f"The column {rows.schema.label(crowded[0])} of X has too many levels to split by "
                f"sets of them, and becomes a number by its mean of y, but y has "
                f"{len(targets.tasks)} targets. Fit one model for each target, or turn the column "
                "into numbers."
            )
    return number_levels(rows, first.y, first.n_classes, known)


def _training_set(params: dict[str, Any], rows: Rows, seen: Seen, n_threads: int) -> TrainingSet:
    weight = seen.weight if seen.draws is None else seen.draws.weight
    part = Part(rows.source, rows.kept, Target(rows.y, weight))
    binned = bin_part(part, params | {"max_conflict_rate": 0.0}, n_threads)
    data, _ = build_sets(part, None, binned, n_threads)
    return data
