"""Every parameter once: name, kind, default, range, one sentence.

An estimator stores what it is given, as scikit-learn asks; `check` runs first thing in ``fit``.
``tools/write_docstrings.py`` copies the sentences into the docstrings of the estimators, and types
and defaults into their signatures.
"""

from __future__ import annotations

from arboost.params.compound_kinds import ClassWeight, LossChoice, Quantiles
from arboost.params.kinds import Choice, Flag, Fraction, Integer, Param, Real
from arboost.params.kinds import by_name as _table
from arboost.params.shared import COLUMNS, LEVELS, RUN, VALIDATION

__all__ = ["BOOSTED_CLASSIFIER", "BOOSTED_REGRESSOR", "PARAMS"]


_BOOSTING = _table(
    Integer(
        name="n_estimators",
        default="auto",
        low=1,
        automatic=True,
        text='Number of boosting rounds; with early stopping the largest number. "auto" finds the '
        "best number on rows that it sets aside, then trains on all rows.",
        advice='Use n_estimators="auto" to find it.',
    ),
    Real(
        name="learning_rate",
        default="auto",
        low=0.0,
        low_open=True,
        automatic=True,
        text="Factor on the values of every tree: smaller needs more rounds and overfits later. "
        '"auto" is 10 / n_estimators, but from 0.02 to 0.3; where rounds are found, 0.025 for up '
        "to 10,000 rows and 0.1 from 640,000 on.",
        advice='Use learning_rate="auto", or 0.1.',
    ),
    Choice(
        name="boosting",
        default="newton",
        options=("newton", "gradient"),
        text="How trees follow the loss: XGBoost's second-order steps with their penalties, or "
        "Friedman's least-squares trees on the gradient with the loss's own minimum in each leaf.",
    ),
    Real(
        name="base_score",
        default=None,
        optional=True,
        text="Prediction before the first tree: a value of y, or the probability of the second of "
        "two classes; None takes it from the data.",
        advice="Use base_score=None to take it from the data.",
    ),
    Integer(
        name="num_parallel_tree",
        default=1,
        low=1,
        text="Trees of each round that are grown on their own samples of rows and columns and "
        "averaged: above 1, a random forest in every round.",
    ),
)

_SPLITS = _table(
    Choice(
        name="tree_method",
        default="hist",
        options=("hist", "exact", "approx"),
        text="Where splits are looked for: between the bins of a histogram, between all distinct "
        "values, or between the quantiles of a hessian-weighted sketch.",
    ),
    Integer(
        name="max_bins",
        default=255,
        low=2,
        high=65535,
        text='Largest number of bins of a feature with tree_method="hist", missing values apart; '
        "above 255 a bin code takes two bytes.",
    ),
    Flag(
        name="bundling",
        default=True,
        text='Whether features share memory with tree_method="hist": columns of few values, and '
        "columns that are hardly ever away from their most frequent value at the same time. The "
        "model does not depend on it while max_conflict_rate is 0.",
    ),
    Fraction(
        name="max_conflict_rate",
        default=0.0,
        high_open=True,
        text="Share of the rows in which features that are bundled may both be away from their "
        "most frequent value; only the first of them then counts.",
        advice="Use max_conflict_rate=0.0 for bundles that change nothing.",
    ),
    Fraction(
        name="sketch_eps",
        default=0.004,
        low_open=True,
        high_open=True,
        text='Error of the ranks in the sketch of tree_method="approx", as a share of the total '
        "hessian: about 1 / sketch_eps candidates for each feature.",
        advice="Use sketch_eps=0.004 for about 250 candidates.",
    ),
    Choice(
        name="sketch_scope",
        default="global",
        options=("global", "local"),
        text='Whether tree_method="approx" takes candidates once a round or anew in every node.',
    ),
)

_TREES = _table(
    Integer(
        name="max_depth",
        default="auto",
        low=1,
        optional=True,
        automatic=True,
        text="Largest number of splits between the root of a tree and a leaf; None sets no limit. "
        '"auto" is 6; or with n_estimators="auto" None, and trees have 31 leaves unless max_leaves '
        "says otherwise.",
        advice="Use max_depth=None for no limit.",
    ),
    Integer(
        name="max_leaves",
        default=None,
        low=2,
        optional=True,
        text="Largest number of leaves of a tree; None sets no limit.",
        advice="Use max_leaves=None for no limit.",
    ),
    Choice(
        name="grow_policy",
        default="auto",
        options=("auto", "depthwise", "leafwise"),
        text="Which node is split next: those nearest to the root, or the one that gains most; "
        '"auto" is depthwise, or with n_estimators="auto" leafwise.',
    ),
    Real(
        name="min_child_weight",
        default="auto",
        low=0.0,
        automatic=True,
        text='Smallest sum of hessians (with boosting="gradient", of weights) that each side of a '
        'split must hold; "auto" is 1, or 0.1 with n_estimators="auto".',
        advice='Use min_child_weight="auto", or 1.',
    ),
    Integer(
        name="min_samples_leaf",
        default=1,
        low=1,
        text="Smallest number of training rows that each side of a split must hold.",
    ),
    Real(name="gamma", default=0.0, low=0.0, text="Gain that a split must exceed."),
    Real(
        name="reg_lambda",
        default=None,
        low=0.0,
        optional=True,
        text='L2 penalty on the values of the leaves; None is 1 with boosting="newton", 3 with '
        'n_estimators="auto" too, and 0 with boosting="gradient", which has no penalties.',
        advice="Use reg_lambda=None for the usual one.",
    ),
    Real(name="reg_alpha", default=0.0, low=0.0, text="L1 penalty on the values of the leaves."),
    Real(
        name="max_delta_step",
        default=0.0,
        low=0.0,
        text="Largest absolute value of a leaf before the learning rate; 0 sets no limit.",
        advice="Use max_delta_step=0 for no limit.",
    ),
)


def _share(name: str, text: str, searched: float | None = None) -> Fraction:
    """A share of something; for automatic ones, that of fits that look for their rounds."""
    advice = f"Use {name}=1 for all."
    if searched is None:
        return Fraction(name=name, default=1.0, low_open=True, text=text, advice=advice)
    text = f'{text[:-1]}; "auto" is 1, or {searched} with n_estimators="auto".'
    return Fraction(
        name=name, default="auto", low_open=True, automatic=True, text=text, advice=advice
    )


def _rate(name: str, default: float, text: str) -> Fraction:
    text = f'With sampling_method="goss": share of the training rows that {text}.'
    advice = f"Use {name}={default} for the usual one."
    return Fraction(name=name, default=default, low_open=True, text=text, advice=advice)


_SAMPLING = _table(
    _share("subsample", "Share of the training rows that each tree is grown on.", 0.5),
    Choice(
        name="sampling_method",
        default="auto",
        options=("auto", "uniform", "gradient_based", "goss"),
        text="How rows are sampled: each with the same chance; or with a chance in proportion to "
        "its regularised gradient and a weight that makes up for it, to choose splits by, while "
        "leaf values come from all rows; or LightGBM's GOSS: those of the largest gradients and "
        "some of the others, which then weigh more, after 1 / learning_rate rounds on all rows. "
        '"auto" is uniform, or with n_estimators="auto" gradient_based where the loss allows it.',
    ),
    _rate("top_rate", 0.2, "are kept for the size of their gradients"),
    _rate("other_rate", 0.1, "are drawn from all others"),
    _share("colsample_bytree", "Share of the features that each tree may use."),
    _share("colsample_bylevel", "Share of the tree's features that each level may use."),
    _share("colsample_bynode", "Share of the level's features that each node may use.", 0.7),
)

_DROPOUT = _table(
    Fraction(
        name="rate_drop",
        default=0.0,
        text="DART: share of the earlier trees that a round leaves out while it takes its "
        "gradients; 0 is boosting without dropout.",
        advice="Use rate_drop=0 for no dropout.",
    ),
    Fraction(
        name="skip_drop",
        default=0.0,
        text="DART: probability that a round leaves out nothing.",
        advice="Use skip_drop=0 for dropout in every round.",
    ),
    Flag(
        name="one_drop",
        default=False,
        text="DART: whether a round with dropout leaves out at least one tree.",
    ),
    Choice(
        name="sample_type",
        default="uniform",
        options=("uniform", "weighted"),
        text="DART: whether trees are left out with the same chance or in proportion to their "
        "weights.",
    ),
    Choice(
        name="normalize_type",
        default="tree",
        options=("tree", "forest"),
        text="DART: whether the new tree weighs as much as each of those left out, or as all of "
        "them together.",
    ),
)

# What all estimators share; the two tables below it add what one kind of them has.
PARAMS: dict[str, Param] = (
    _BOOSTING | _SPLITS | _TREES | LEVELS | COLUMNS | _SAMPLING | _DROPOUT | VALIDATION | RUN
)

_LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")

BOOSTED_REGRESSOR: dict[str, Param] = PARAMS | _table(
    LossChoice(
        name="loss",
        default="squared_error",
        options=_LOSSES,
        text="What is made small: squared_error, absolute_error, huber, quantile, or for a mean "
        "above 0 poisson, gamma, tweedie; or functions of your own.",
    ),
    Quantiles(
        name="alpha",
        default=0.9,
        text='With loss="quantile" the quantile to predict, or several of them, whose predictions '
        'never cross; with loss="huber" the share of errors that count as squares.',
        advice="Use alpha=0.5 for the median, alpha=[0.1, 0.5, 0.9] for three quantiles.",
    ),
    Real(
        name="tweedie_power",
        default=1.5,
        low=1.0,
        high=2.0,
        low_open=True,
        high_open=True,
        text='With loss="tweedie": the variance grows as this power of the mean.',
        advice='Use loss="poisson" for the power 1 and loss="gamma" for 2.',
    ),
)

BOOSTED_CLASSIFIER: dict[str, Param] = PARAMS | _table(
    LossChoice(
        name="loss",
        default="log_loss",
        options=("log_loss", "exponential"),
        text="What is made small: log_loss, for two classes also exponential, AdaBoost's loss; or "
        "functions of your own.",
    ),
    Choice(
        name="multi_strategy",
        default="one_output_per_tree",
        options=("one_output_per_tree", "multi_output_tree"),
        text="With three or more classes: a tree for each class in every round, or one tree whose "
        "leaves hold a value for each class.",
    ),
    Real(
        name="scale_pos_weight",
        default=1.0,
        low=0.0,
        low_open=True,
        text="With two classes: factor on the weights of the rows of the second.",
        advice="Use scale_pos_weight=1 for equal weights.",
    ),
    ClassWeight(
        name="class_weight",
        default=None,
        text="Factors on the weights of the rows by label, 1 for labels that are not named; "
        '"balanced" makes the classes weigh the same.',
        advice='Use for example class_weight="balanced".',
    ),
)
