"""Rows and parameters -> bins -> trees, grown and pruned; and the attributes of a fit.

Decision trees, random forests and extra trees share these steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.estimator import EngineEstimator, category_encoding
from arboost.algorithms.forests.cart import CRITERIA, CartParams, feature_count, tree_params
from arboost.algorithms.forests.grow_forest import ForestRecipe, grow_trees
from arboost.algorithms.forests.targets import (
    ForestTarget,
    Reweigh,
    balanced_by_sample,
    class_weights,
    split_weights,
)
from arboost.backend import threads
from arboost.data.schema import Schema
from arboost.grow.bootstrap import RowDraws, draw_size
from arboost.grow.pruning import mean_decreases, pruned
from arboost.model.forest import Forest
from arboost.model.history.record import history_of, out_of_bag_history, out_of_bag_trees
from arboost.model.model import Model, provenance_of
from arboost.params.auto import AUTO
from arboost.params.records import BinParams
from arboost.predictor import Predictor
from arboost.progress import Bar
from arboost.training.inputs import EngineRows, Rows, target_encode_rows
from arboost.training.out_of_bag import OutOfBagCurve, OutOfBagSums, OutOfBagTruth
from arboost.training.sets import bin_rows, build_sets

__all__ = [
    "ForestSpec",
    "RowUse",
    "encode_levels",
    "fit_forest",
    "forest_model",
    "impurity_decreases",
    "keep_trees",
    "out_of_bag_sums",
    "read_target",
    "row_use",
    "with_found_bins",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RowUse:
    """Rows of each tree: all rows with weights, or draws.

    Attributes
    ----------
    weight : float64 array of shape (n_rows,), or None
        Row weights of trees that see all rows.
    draws : RowDraws or None
        Draws with replacement, in proportion to the row weights.
    reweigh : callable or None
        Weights of the drawn rows of a tree, as `ForestRecipe` has it.
    """

    weight: Floats | None = None
    draws: RowDraws | None = None
    reweigh: Reweigh | None = None

    def total_weight(self, n_rows: int) -> float:
        """Return the sum of the row weights of a tree."""
        if self.draws is not None:
            return float(self.draws.n_draws)
        return float(n_rows) if self.weight is None else float(self.weight.sum())


@dataclass(frozen=True, kw_only=True)
class ForestSpec:
    """Parameters of the trees of one fit.

    Attributes
    ----------
    tree : CartParams
    bins : BinParams
    random_cuts : bool
        Whether each feature of a node is cut at one random value.
    n_trees : int
    first_tree : int
        Number of the first tree: random choices depend on the number of a tree.
    seed : int
    ccp_alpha : float
        Strength of cost-complexity pruning.
    n_threads : int
    shows_bar : bool
    """

    tree: CartParams
    bins: BinParams
    random_cuts: bool
    n_trees: int
    first_tree: int = 0
    seed: int
    ccp_alpha: float
    n_threads: int
    shows_bar: bool

    @classmethod
    def of(
        cls, params: Mapping[str, Any], *, random_cuts: bool, n_trees: int, first_tree: int = 0
    ) -> ForestSpec:
        """Return the specification in checked parameters of a tree or forest."""
        return cls(
            tree=CartParams.of(params),
            bins=BinParams.of(params),
            random_cuts=random_cuts,
            n_trees=n_trees,
            first_tree=first_tree,
            seed=params["random_state"],
            ccp_alpha=params["ccp_alpha"],
            n_threads=threads(params["n_jobs"]),
            shows_bar=params["verbose"] > 0,
        )


def fit_forest(
    spec: ForestSpec,
    rows: EngineRows,
    target: ForestTarget,
    use: RowUse,
    out_of_bag: OutOfBagSums | None = None,
) -> tuple[Forest, int]:
    """Return the trees of a fit, and the largest number of bins of a feature.

    Parameters
    ----------
    spec : ForestSpec
    rows : Rows
        With encoded levels, as `encode_levels` returns them.
    target : ForestTarget
        Target of these rows.
    use : RowUse
    out_of_bag : OutOfBagSums, optional
        Sums that the unpruned trees add their out-of-bag predictions to.
    """
    tree = tree_params(
        spec.tree,
        rows.schema,
        target,
        total_weight=use.total_weight(len(rows.y)),
        random_cuts=spec.random_cuts,
    )
    has_limit = tree.min_child_weight > 0.0 or tree.min_gain_share > 0.0 or any(tree.monotone)
    recipe = ForestRecipe(
        target=target,
        tree=tree,
        n_trees=spec.n_trees,
        seed=spec.seed,
        first_tree=spec.first_tree,
        weight=use.weight,
        split_weight=use.weight if has_limit or use.weight is None else split_weights(use.weight),
        draws=use.draws,
        reweigh=use.reweigh,
    )
    weight = use.weight if use.draws is None else use.draws.weight
    weight = None if weight is None else split_weights(weight)
    weighted = Rows(rows.source, rows.index, rows.y, weight)
    binned = bin_rows(weighted, spec.bins, spec.n_threads)
    data, _ = build_sets(weighted, (), binned, spec.n_threads)
    with Bar(spec.n_trees, "fitting", visible=spec.shows_bar) as bar:
        bar.show(0)  # trees done before the first look at them are no trees of an earlier fit
        forest = grow_trees(recipe, data, out_of_bag, n_threads=spec.n_threads, bar=bar)
    if spec.ccp_alpha == 0.0:
        return forest, binned.max_bins
    decreases = impurity_decreases(forest, target)
    return pruned(forest, decreases, spec.ccp_alpha), binned.max_bins


def with_found_bins(params: dict[str, Any], max_bins: int) -> dict[str, Any]:
    """Return the parameters of a fit with the number of bins in place of "auto"."""
    return params | {"max_bins": max_bins} if params["max_bins"] == AUTO else params


def impurity_decreases(forest: Forest, target: ForestTarget) -> Floats:
    """Return the decrease of impurity by each split, times the weight of its node."""
    if target.criterion == "quadratic":
        return mean_decreases(forest, 1.0 / target.gain_factor)
    return forest.gain / target.gain_factor


def read_target(
    kind: str, y: NDArray[Any], criterion: str, old: Model | None = None
) -> ForestTarget:
    """Return the training target of a y; `old` is the model whose trees a warm start keeps."""
    return ForestTarget.read(kind, y, CRITERIA[criterion], old)


def encode_levels(
    rows: EngineRows, target: ForestTarget, known: Schema | None, params: Mapping[str, Any]
) -> EngineRows:
    """Return the rows with target encodings of the categories of many levels."""
    return target_encode_rows(rows, target.tasks, known, category_encoding(params, "mean"))


def row_use(params: Mapping[str, Any], target: ForestTarget, weight: Floats | None) -> RowUse:
    """Return the rows of each tree, by the class weights and the bootstrap of the parameters."""
    draws_rows = params.get("bootstrap", False)
    given = params.get("class_weight")
    by_sample = draws_rows and given == "balanced_subsample"
    if target.kind == "classifier" and not by_sample:
        # Of trees that see all rows, each sample is the whole table.
        given = "balanced" if given == "balanced_subsample" else given
        weight = class_weights(given, target.tasks, weight)
    if not draws_rows:
        return RowUse(weight=weight)
    n_rows = len(target.tasks[0].y)
    draws = RowDraws(
        n_rows=n_rows,
        n_draws=draw_size(params["max_samples"], n_rows),
        seed=params["random_state"],
        weight=weight,
    )
    return RowUse(draws=draws, reweigh=balanced_by_sample(target.tasks) if by_sample else None)


def out_of_bag_sums(
    params: Mapping[str, Any], rows: EngineRows, target: ForestTarget
) -> OutOfBagSums | None:
    """Return the sums of out-of-bag predictions, with their curve; None without oob_score."""
    if not params["oob_score"]:
        return None
    truths = [
        OutOfBagTruth(task.y, width, task.n_classes)
        for task, width in zip(target.tasks, target.widths, strict=True)
    ]
    curve = OutOfBagCurve(truths, rows.weight, out_of_bag_trees(params["n_estimators"]))
    return OutOfBagSums(len(rows.y), target.n_outputs, curve)


def forest_model(
    forest: Forest,
    rows: EngineRows,
    target: ForestTarget,
    recorded: dict[str, Any],
    out_of_bag: OutOfBagSums | None = None,
) -> Predictor:
    """Return the model of the trees, whose file keeps parameters and out-of-bag curve."""
    history = {}
    if out_of_bag is not None and out_of_bag.curve is not None:
        trees, errors = out_of_bag.curve.points()
        if trees:
            curve = out_of_bag_history(trees, out_of_bag.curve.metric, errors)
            history = history_of(out_of_bag=curve)
    return Predictor(
        forest=forest,
        schema=rows.schema,
        base_score=np.zeros(forest.width),
        trees_per_round=1,
        params=recorded,
        kind=target.kind,
        combine="mean",
        provenance=provenance_of(len(rows.y), history=history),
        **target.model_fields,
    )


def keep_trees(estimator: EngineEstimator, model: Predictor, max_features: Any) -> None:
    """Set the attributes of a fitted tree or forest."""
    estimator._keep_model(model, model.schema)
    estimator.n_outputs_ = max(1, len(model.targets))
    estimator.max_features_ = feature_count(max_features, model.schema.n_features)
