"""Parameters of `params.py` that say how categories are split."""

from __future__ import annotations

from arboost.param_kinds import Integer, Param, Real

__all__ = ["LEVELS"]

_LISTED: tuple[Param, ...] = (
    Integer(
        name="max_cat_to_onehot",
        default=4,
        low=1,
        high=256,
        text="Up to so many levels of a category in a node, each is tried against all others; more "
        "are sorted by their mean gradients and split into two sets.",
    ),
    Integer(
        name="max_cat_threshold",
        default=64,
        low=1,
        high=256,
        text="Largest number of levels in the smaller of the two sets that a sorted category is "
        "split into.",
    ),
    Real(
        name="min_cat_weight",
        default=10.0,
        low=0.0,
        text="Hessian that a level of a sorted category must have in a node to be placed by "
        "itself; all rarer ones stay together.",
        advice="Use min_cat_weight=0 to place every level.",
    ),
    Real(
        name="cat_smooth",
        default=30.0,
        low=0.0,
        text="Hessian that is added to that of each level before levels are sorted, so that rare "
        "ones do not come first or last by chance.",
    ),
    Real(
        name="cat_l2",
        default=30.0,
        low=0.0,
        text="L2 penalty beside reg_lambda in the gain of splits of sorted categories.",
    ),
)

LEVELS: dict[str, Param] = {param.name: param for param in _LISTED}
