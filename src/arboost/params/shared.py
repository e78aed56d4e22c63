"""Parameters that several algorithms share: validation, threads, seed, bundling, columns."""

from __future__ import annotations

import math

from arboost.params.column_kinds import CalendarParts, DateFormat
from arboost.params.compound_kinds import (
    CategoricalFeatures,
    InteractionConstraints,
    Metrics,
    Missing,
    MonotoneConstraints,
)
from arboost.params.kinds import (
    Choice,
    Device,
    Flag,
    Fraction,
    Integer,
    Param,
    Real,
    Seed,
    Verbosity,
    by_name,
)

__all__ = ["BUNDLING", "COLUMNS", "DEVICE", "LEVELS", "MONOTONIC_CST", "RUN", "VALIDATION"]

BUNDLING = Flag(
    name="bundling",
    default=True,
    text='Whether features share stored columns with tree_method="hist": exclusive feature '
    "bundling (EFB), and several columns of few values in one byte. The model does not depend on "
    "it.",
)

DEVICE = Device(
    name="device",
    default="cpu",
    text='Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other '
    "CUDA devices than the first. The model does not depend on it.",
    advice='Use device="cpu", or device="cuda" with an NVIDIA GPU.',
)

VALIDATION = by_name(
    Metrics(
        name="eval_metric",
        default=None,
        text="Metrics on the validation set after each round; early stopping uses the first. None: "
        "the loss.",
        advice="Use eval_metric=None for the loss.",
    ),
    Integer(
        name="n_iter_no_change",
        default=None,
        low=1,
        optional=True,
        text="Early stopping: number of rounds without a better validation score after which "
        "training stops and the best round is kept; None trains all rounds.",
        advice="Use n_iter_no_change=None for no early stopping.",
    ),
    Real(
        name="tol",
        default=0.0,
        low=0.0,
        text="Early stopping: smallest improvement of the score that counts.",
    ),
    Fraction(
        name="validation_fraction",
        default=0.1,
        low_open=True,
        high_open=True,
        text="Early stopping without X_val: share of the training rows that is held out.",
    ),
    Choice(
        name="validation_split",
        default="random",
        options=("random", "group", "time"),
        text="Early stopping without X_val: choice of the held-out rows: random (stratified by "
        "class for classifiers), whole groups, or the last rows.",
    ),
    Real(
        name="max_time",
        default=None,
        low=0.0,
        low_open=True,
        optional=True,
        text="Number of seconds after which no further round starts; None sets no limit.",
        advice="Use max_time=None for no limit.",
    ),
)

RUN = by_name(
    Integer(
        name="n_jobs",
        default=None,
        low=1,
        high=1024,  # more threads never help, and a typing error could exhaust the machine
        also=(-1,),
        optional=True,
        text="Number of threads; None and -1 take all that this process may use. The model does "
        "not depend on it.",
        advice="Use n_jobs=None for all CPUs.",
    ),
    Seed(
        name="random_state",
        default=0,
        text="Seed of every random choice; None: a new seed for each fit.",
        advice="Use random_state=0 for the same model every time.",
    ),
    Verbosity(
        name="verbose",
        default=1,
        text="Whether fits of more than about a second draw a progress bar in terminals and "
        "notebooks; numbers above 0 are True.",
        advice="Use verbose=False for no progress bar.",
    ),
)


MONOTONIC_CST = MonotoneConstraints(
    name="monotonic_cst",
    default=None,
    text="scikit-learn's name of monotone_constraints.",
    advice='Use for example monotone_constraints={"age": 1}.',
)

COLUMNS: dict[str, Param] = by_name(
    CategoricalFeatures(
        name="categorical_features",
        default="from_dtype",
        text="Additional categories, whatever their type: names, indices or a mask of columns. "
        '"from_dtype": only columns of strings, and of the categorical types of pandas, Polars '
        "and Arrow, which are always categories.",
        advice='Use for example categorical_features=["city", "day"].',
    ),
    Choice(
        name="category_encoding",
        default="auto",
        options=("auto", "groups", "mean"),
        text="Encoding of categories of more than 100 levels by their targets: sets of at most 255 "
        "groups, of which each frequent level is one and rare levels of similar means share the "
        'others; or one number, the mean target of a level. "auto": groups in gradient boosting, '
        "the mean in all other algorithms; a Dataset has its own.",
        advice='Use category_encoding="auto".',
    ),
    CalendarParts(
        name="calendar_parts",
        default="auto",
        text='Calendar parts of dates that are features next to them: "hour", "weekday", "month" '
        'and "dayofyear". "auto": those that repeat, the hour in dates of more than a day, the '
        "weekday of more than a week, the others of more than a year. None: no parts.",
        advice='Use for example calendar_parts=["hour", "weekday"].',
        always_recorded=False,
    ),
    DateFormat(
        name="date_format",
        default="auto",
        text='Format of dates in strings, for all columns or by column: "iso" (year first), '
        '"dayfirst", "monthfirst", or a format of strptime such as "%d.%m.%y". "auto": year first, '
        "and day or month first where the values of a column leave no doubt. None: dates in "
        "strings are categories.",
        advice='Use for example date_format="dayfirst", or date_format={"when": "%d/%m/%Y"}.',
        always_recorded=False,
    ),
    Missing(
        name="missing",
        default=math.nan,
        text="Number that means missing in all numeric columns, such as -999, or 0 in sparse "
        "tables; NaN, None and NA are always missing.",
        advice="Use missing=float('nan') for no such number.",
    ),
    MonotoneConstraints(
        name="monotone_constraints",
        default=None,
        text="Direction of features, by name or index: predictions may only rise (1) or only "
        "fall (-1); a sequence has an entry for each feature, 0 for no constraint.",
        advice='Use for example monotone_constraints={"age": 1}.',
    ),
    MONOTONIC_CST,
    InteractionConstraints(
        name="interaction_constraints",
        default=None,
        text="Groups of features, by name or index, that may share a path from root to leaf; a "
        "feature in no group shares its paths with no other.",
        advice='Use for example interaction_constraints=[["age", "height"], ["income"]].',
    ),
)


LEVELS: dict[str, Param] = by_name(
    Integer(
        name="max_cat_to_onehot",
        default=4,
        low=1,
        high=256,
        text="Largest number of levels of a category in a node for one-vs-rest splits; more levels "
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
        text="Smallest hessian in a node of a level that a sorted category places by itself; all "
        "rarer levels stay together.",
        advice="Use min_cat_weight=0 to place every level.",
    ),
    Real(
        name="cat_smooth",
        default=30.0,
        low=0.0,
        text="Hessian added to each level's before levels are sorted, so that rare levels do not "
        "come first or last by chance.",
    ),
    Real(
        name="cat_l2",
        default=30.0,
        low=0.0,
        text="L2 penalty in addition to reg_lambda, in the gain of splits of sorted categories.",
    ),
)
