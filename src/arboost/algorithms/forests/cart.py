"""Parameters of trees and forests -> growth parameters of the engine, as CART has them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from arboost.algorithms.forests.targets import ForestTarget
from arboost.data.feature_names import monotone_directions
from arboost.data.schema import Schema
from arboost.grow.grower import TreeParams
from arboost.params.records import ParamRecord

__all__ = ["CART_LEVELS", "CRITERIA", "CartParams", "feature_count", "tree_params"]

# As CART has it: of two classes, and of numbers, the best of all sets of levels is one of those
# between neighbours in the order of their means (Breiman et al. 1984, theorem 4.5).
CART_LEVELS: dict[str, Any] = {
    "max_cat_to_onehot": 2,
    "max_cat_threshold": 256,
    "min_cat_weight": 0.0,
    "cat_smooth": 0.0,
    "cat_l2": 0.0,
}

# Criteria of users -> criteria of the engine.
CRITERIA = {
    "gini": "quadratic",
    "entropy": "entropy",
    "log_loss": "entropy",
    "error": "error",
    "gain_ratio": "gain_ratio",
    "squared_error": "quadratic",
    "absolute_error": "absolute_error",
    "poisson": "poisson",
}


@dataclass(frozen=True, kw_only=True)
class CartParams(ParamRecord):
    """Parameters of one CART tree, as users give them."""

    criterion: str
    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_split: float
    min_samples_leaf: float
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    max_features: Any
    monotonic_cst: list[Any] | None
    tree_method: str
    device: str


def tree_params(
    params: CartParams,
    schema: Schema,
    target: ForestTarget,
    *,
    total_weight: float,
    random_cuts: bool,
) -> TreeParams:
    """Return the growth parameters of the engine.

    Parameters
    ----------
    params : CartParams
    schema : Schema
    target : ForestTarget
    total_weight : float
        Sum of the row weights of a tree.
    random_cuts : bool
        Whether each feature of a node is cut at one random value.
    """
    n_rows = len(target.tasks[0].y)
    monotone = monotone_directions(params.monotonic_cst, schema)
    if monotone:
        _check_monotone(params.criterion, target)
    if target.criterion == "absolute_error" and any(schema.categorical):
        raise ValueError(
            f"The column {schema.label(schema.categorical.index(True))} of X is a category, "
            'which criterion="absolute_error" cannot split: medians give levels no order. Use '
            "another criterion, or turn the column into numbers; of more than 100 levels "
            'category_encoding="mean" makes numbers.'
        )
    n_used = feature_count(params.max_features, schema.n_features)
    least = _row_count(params.min_samples_leaf, n_rows)
    return TreeParams(
        max_depth=params.max_depth,
        max_leaves=params.max_leaf_nodes,
        grow_policy="depthwise" if params.max_leaf_nodes is None else "leafwise",
        min_child_weight=params.min_weight_fraction_leaf * total_weight,
        min_samples_leaf=least,
        min_samples_split=max(_row_count(params.min_samples_split, n_rows), 2 * least),
        gamma=0.0,
        min_gain_share=params.min_impurity_decrease * target.gain_factor,
        allow_zero_gain=True,
        criterion=target.criterion,
        target_ends=target.ends,
        random_cuts=random_cuts,
        reg_lambda=0.0,
        reg_alpha=0.0,
        max_delta_step=0.0,
        colsample_bynode=n_used / schema.n_features,
        monotone=tuple(monotone),
        tree_method=params.tree_method,
        device=params.device,
        **CART_LEVELS,
    )


def _check_monotone(criterion: str, target: ForestTarget) -> None:
    if target.criterion != "quadratic":
        raise ValueError(
            f"Monotone constraints are not allowed with criterion={criterion!r}. Use "
            f'criterion="{"gini" if target.kind == "classifier" else "squared_error"}", or no '
            "constraints."
        )
    if target.n_outputs > 1:
        raise ValueError(
            "Monotone constraints are not allowed with more than two classes or several targets "
            "(multiclass and multi-output): they are for predictions of one number. Leave them out."
        )


def feature_count(max_features: Any, n_features: int) -> int:
    """Return the number of features that a node draws.

    Examples
    --------
    >>> [feature_count(given, 20) for given in ("sqrt", "log2", None, 50, 0.25)]
    [4, 4, 20, 20, 5]
    """
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, math.isqrt(n_features))
    if max_features == "log2":
        return n_features.bit_length() - 1 or 1
    if isinstance(max_features, int):
        return min(max_features, n_features)
    return max(1, int(max_features * n_features))


def _row_count(given: float, n_rows: int) -> int:
    return given if isinstance(given, int) else math.ceil(given * n_rows)
