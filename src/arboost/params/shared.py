"""Parameters that several algorithms share: validation, threads, seed, columns, categories."""

from __future__ import annotations

import math

from arboost.params.compound_kinds import (
    CategoricalFeatures,
    InteractionConstraints,
    Metrics,
    Missing,
    MonotoneConstraints,
)
from arboost.params.kinds import Choice, Fraction, Integer, Param, Real, Seed, by_name

__all__ = ["COLUMNS", "LEVELS", "RUN", "VALIDATION"]


VALIDATION = by_name(
    Metrics(
        name="eval_metric",
        default=None,
        text="What is measured on the validation data after each round, the first of several for "
        "early stopping; None is the loss itself.",
        advice="Use eval_metric=None for the loss.",
    ),
    Integer(
        name="n_iter_no_change",
        default=None,
        low=1,
        optional=True,
        text="Early stopping: rounds without a better validation score after which training stops "
        "and the best round is kept; None trains all rounds.",
        advice="Use n_iter_no_change=None for no early stopping.",
    ),
    Real(
        name="tol",
        default=0.0,
        low=0.0,
        text="Early stopping: how much better a score must be to count as better.",
    ),
    Fraction(
        name="validation_fraction",
        default=0.1,
        low_open=True,
        high_open=True,
        text="Early stopping without X_val: share of the training rows that is set aside.",
    ),
    Choice(
        name="validation_split",
        default="random",
        options=("random", "group", "time"),
        text="Early stopping without X_val: which rows are set aside: random ones (for a "
        "classifier of every class its share), whole groups, or the last rows.",
    ),
    Real(
        name="max_time",
        default=None,
        low=0.0,
        low_open=True,
        optional=True,
        text="Seconds after which no further round is begun; None sets no limit.",
        advice="Use max_time=None for no limit.",
    ),
)

RUN = by_name(
    Integer(
        name="n_jobs",
        default=None,
        low=1,
        high=1024,  # far more than help; a slip of more could exhaust the machine
        also=(-1,),
        optional=True,
        text="Number of threads; None and -1 take all that this process may use. The model does "
        "not depend on it.",
        advice="Use n_jobs=None for all CPUs.",
    ),
    Seed(
        name="random_state",
        default=0,
        text="Seed of every random choice; None takes a new one for each fit.",
        advice="Use random_state=0 for the same model every time.",
    ),
    Integer(
        name="verbose",
        default=1,
        low=0,
        text="Above 0, fits of more than about a second draw a progress bar in terminals and "
        "notebooks.",
        advice="Use verbose=0 for no progress bar.",
    ),
)


COLUMNS: dict[str, Param] = {
    param.name: param
    for param in (
        CategoricalFeatures(
            name="categorical_features",
            default="from_dtype",
            text="Columns that are categories whatever their type, as names, indices or a mask. "
            '"from_dtype" names none: categories are then columns of strings, and of the '
            "categorical types of pandas, Polars and Arrow, which they are in any case.",
            advice='Use for example categorical_features=["city", "day"].',
        ),
        Missing(
            name="missing",
            default=math.nan,
            text="A number that means missing in all columns of numbers, such as -999, or 0 in "
            "sparse tables; NaN, None and NA always do.",
            advice="Use missing=float('nan') for no such number.",
        ),
        MonotoneConstraints(
            name="monotone_constraints",
            default=None,
            text="Features, by name or index, in which predictions may only rise (1) or only fall "
            "(-1); a sequence has an entry for each feature, 0 for free ones.",
            advice='Use for example monotone_constraints={"age": 1}.',
        ),
        InteractionConstraints(
            name="interaction_constraints",
            default=None,
            text="Groups of features, by name or index, that may meet on a path from root to leaf; "
            "a feature in no group meets no other.",
            advice='Use for example interaction_constraints=[["age", "height"], ["income"]].',
        ),
    )
}


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
