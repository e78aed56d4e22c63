"""The parameters of gradient boosting: name, kind, default, range, text, each written once.

An estimator stores its arguments unchanged, as scikit-learn requires; ``fit`` checks them first.
``tools/write_docstrings.py`` copies the texts into the docstrings of the estimators, and types
and defaults into their signatures.
"""

from __future__ import annotations

from dataclasses import replace

from arboost.params.compound_kinds import BaseScore, ClassWeight, LossChoice, Quantiles
from arboost.params.kinds import Choice, Flag, Fraction, Integer, Param, Real, Search
from arboost.params.kinds import by_name as _table
from arboost.params.shared import BUNDLING, COLUMNS, DEVICE, LEVELS, RUN, VALIDATION

__all__ = ["BOOSTED_CLASSIFIER", "BOOSTED_REGRESSOR", "PARAMS"]


_BOOSTING = _table(
    Integer(
        name="n_estimators",
        default="auto",
        low=1,
        automatic=True,
        text='Number of boosting rounds; with early stopping the largest number. "auto" finds the '
        "best number on held-out rows (folds below 5,000 rows), then trains on all rows; with "
        "X_val it stops early on X_val. Below 50 rows without X_val and n_iter_no_change it is "
        "100, and all other automatic values are those of a given number.",
        advice='Use n_estimators="auto" to find it.',
    ),
    Choice(
        name="preset",
        default="good",
        options=("fast", "good", "best"),
        text='Effort of a fit with n_estimators="auto": the largest product of learning rate and '
        "rounds (15, 30, 100), and below 5,000 rows the number of folds (one; one to five by the "
        "size of the table; five).",
    ),
    Real(
        name="learning_rate",
        default="auto",
        low=0.0,
        low_open=True,
        automatic=True,
        text="Factor on the values of every tree: smaller needs more rounds and overfits later. "
        '"auto": 0.1; with n_estimators="auto", 0.1 in the search for rounds and 0.1 or, where '
        '600 rounds take about a second, 0.05 in the fit; with preset="fast", 0.1 in both; with '
        'preset="best", 0.025 in both up to 10,000 rows, rising to 0.1 at 640,000.',
        advice='Use learning_rate="auto", or 0.1.',
        search=Search(0.02, 0.3, log=True),
    ),
    Choice(
        name="boosting",
        default="newton",
        options=("newton", "gradient"),
        text="Steps of the trees: XGBoost's second-order steps with their penalties, or "
        "Friedman's least-squares trees on the gradient with the loss's own minimum in each leaf.",
    ),
    Choice(
        name="line_search",
        default="leaf",
        options=("leaf", "round"),
        always_recorded=False,
        text='With boosting="gradient": a step length for each leaf, the minimum of the loss '
        "there, or one for all trees of a round, whose leaves keep the mean negative gradients "
        "(Friedman's algorithm 1 in its general form).",
    ),
    BaseScore(
        name="base_score",
        text="Prediction before the first tree: a value of y, or the probability of the second of "
        "two classes; for three or more classes a list of their probabilities, or 0 for raw scores "
        "of 0; None: estimated from the data.",
        advice="Use base_score=None to take it from the data.",
    ),
    Flag(
        name="warm_start",
        default=False,
        text="Whether a fit of a fitted estimator adds rounds to its own, up to n_estimators in "
        'all; with n_estimators="auto", as many more as held-out rows ask for.',
    ),
    Integer(
        name="num_parallel_tree",
        default=1,
        low=1,
        text="Number of trees per round, each grown on its own sample of rows and columns, and "
        "averaged: above 1, a random forest in every round.",
    ),
)

_SPLITS = _table(
    Choice(
        name="tree_method",
        default="hist",
        options=("hist", "exact", "approx"),
        text="Candidates for splits: the bin edges of a histogram, all distinct values, or the "
        "quantiles of a hessian-weighted sketch.",
    ),
    Integer(
        name="max_bins",
        default=255,
        low=2,
        high=65535,
        text='Largest number of bins of a feature with tree_method="hist", not counting missing '
        "values; above 255 a bin code takes two bytes.",
    ),
    replace(BUNDLING, text=f"{BUNDLING.text.removesuffix('.')} while max_conflict_rate is 0."),
    Fraction(
        name="max_conflict_rate",
        default=0.0,
        high_open=True,
        text="Share of the rows in which two features of a bundle may both differ from their most "
        "frequent value; only the first of them is then kept.",
        advice="Use max_conflict_rate=0.0 for bundles that change nothing.",
    ),
    Fraction(
        name="sketch_eps",
        default=0.004,
        low_open=True,
        high_open=True,
        text='Rank error of the sketch of tree_method="approx", as a share of the total hessian: '
        "about 1 / sketch_eps candidates for each feature.",
        advice="Use sketch_eps=0.004 for about 250 candidates.",
    ),
    Choice(
        name="sketch_scope",
        default="global",
        options=("global", "local"),
        text='Whether tree_method="approx" proposes candidates once per round or in every node.',
    ),
)

_FRIEDMAN = ("boosting", "gradient")  # which has no penalties
_GOSS = ("sampling_method", "goss")

_TREES = _table(
    Integer(
        name="max_depth",
        default="auto",
        low=1,
        optional=True,
        automatic=True,
        text="Largest number of splits between the root of a tree and a leaf; None sets no limit. "
        '"auto": 6; with n_estimators="auto", None, and max_leaves=31 unless max_leaves is given.',
        advice="Use max_depth=None for no limit.",
    ),
    Integer(
        name="max_leaves",
        default=None,
        low=2,
        optional=True,
        text="Largest number of leaves of a tree; None sets no limit.",
        advice="Use max_leaves=None for no limit.",
        search=Search(4, 128, log=True),
    ),
    Choice(
        name="grow_policy",
        default="auto",
        options=("auto", "depthwise", "leafwise"),
        text="Order of the splits: nodes nearest to the root first, or the largest gain first. "
        '"auto": depthwise; with n_estimators="auto", leafwise.',
    ),
    Real(
        name="min_child_weight",
        default="auto",
        low=0.0,
        automatic=True,
        text='Smallest sum of hessians (with boosting="gradient", of weights) in each child of a '
        'split. "auto": 1; with n_estimators="auto", 0.1.',
        advice='Use min_child_weight="auto", or 1.',
        search=Search(0.01, 30.0, log=True),
    ),
    Integer(
        name="min_samples_leaf",
        default="auto",
        low=1,
        automatic=True,
        text='Smallest number of training rows in each child of a split. "auto": 1; with '
        'n_estimators="auto" and loss="quantile" 5 / min(alpha, 1 - alpha) (the geometric mean '
        "over several quantiles), and at most a tenth of the rows.",
        advice='Use min_samples_leaf="auto", or 1 for no limit.',
        search=Search(1, 100, log=True),
    ),
    Real(name="gamma", default=0.0, low=0.0, text="Gain that a split must exceed."),
    Real(
        name="reg_lambda",
        default=None,
        low=0.0,
        optional=True,
        text='L2 penalty on the leaf values. None: 1; with n_estimators="auto", 3, or 1 '
        'for leaves of several values; with boosting="gradient", which has no penalties, 0.',
        advice="Use reg_lambda=None for the default.",
        search=Search(0.01, 30.0, log=True, unless=_FRIEDMAN),
    ),
    Real(
        name="reg_alpha",
        default=0.0,
        low=0.0,
        text="L1 penalty on the leaf values.",
        search=Search(0.001, 10.0, log=True, unless=_FRIEDMAN),
    ),
    Real(
        name="max_delta_step",
        default=0.0,
        low=0.0,
        text="Largest absolute leaf value before the learning rate; 0 sets no limit.",
        advice="Use max_delta_step=0 for no limit.",
    ),
)


def _share(name: str, text: str, auto: str | None = None, search: Search | None = None) -> Fraction:
    """Return a share of rows or columns; ``auto`` is the text on the value "auto", if allowed."""
    advice = f"Use {name}=1 for all."
    if auto is None:
        return Fraction(name=name, default=1.0, low_open=True, text=text, advice=advice)
    return Fraction(
        name=name,
        default="auto",
        low_open=True,
        automatic=True,
        text=f'{text} "auto": 1; with n_estimators="auto", {auto}.',
        advice=advice,
        search=search,
    )


def _goss_share(name: str, default: float, text: str) -> Fraction:
    text = f'With sampling_method="goss": share of the training rows that {text}.'
    advice, search = f"Use {name}={default} for the default.", Search(0.05, 0.5, only=_GOSS)
    return Fraction(
        name=name, default=default, low_open=True, text=text, advice=advice, search=search
    )


_SAMPLING = _table(
    _share(
        "subsample",
        "Share of the training rows that each tree is grown on.",
        '0.5 unless sampling_method="goss"',
        Search(0.4, 1.0, unless=_GOSS),
    ),
    Choice(
        name="sampling_method",
        default="auto",
        options=("auto", "uniform", "gradient_based", "goss"),
        text="Sampling of rows. uniform: equal probabilities. gradient_based: probabilities in "
        "proportion to the regularised gradient, with inverse-probability weights; samples choose "
        "the splits, all rows set the leaf values. goss: LightGBM's GOSS, the rows of the largest "
        "gradients and a reweighted sample of the others, after 1 / learning_rate rounds on all "
        'rows. "auto": uniform; with n_estimators="auto", gradient_based, except with '
        'boosting="gradient" and the losses absolute_error and quantile.',
    ),
    _goss_share("top_rate", 0.2, "are kept for their large gradients"),
    _goss_share("other_rate", 0.1, "are drawn from all others"),
    _share(
        "colsample_bytree",
        "Share of the features that each tree may use.",
        "6 / sqrt(n_features), at least 0.1 and at most 1",
        Search(0.2, 1.0),
    ),
    _share("colsample_bylevel", "Share of the tree's features that each level may use."),
    _share(
        "colsample_bynode",
        "Share of the level's features that each node may use.",
        "0.7",
        Search(0.4, 1.0),
    ),
)

_DROPOUT = _table(
    Fraction(
        name="rate_drop",
        default=0.0,
        text="DART: share of the earlier trees that a round drops from its gradients; 0: boosting "
        "without dropout.",
        advice="Use rate_drop=0 for no dropout.",
    ),
    Fraction(
        name="skip_drop",
        default=0.0,
        text="DART: probability that a round drops no tree.",
        advice="Use skip_drop=0 for dropout in every round.",
        search=Search(0.0, 0.8, unless=("rate_drop", 0.0)),
    ),
    Flag(
        name="one_drop",
        default=False,
        text="DART: whether a round with dropout drops at least one tree.",
    ),
    Choice(
        name="sample_type",
        default="uniform",
        options=("uniform", "weighted"),
        text="DART: whether trees are dropped with equal probabilities or in proportion to their "
        "weights.",
    ),
    Choice(
        name="normalize_type",
        default="tree",
        options=("tree", "forest"),
        text="DART: whether the new tree gets the weight of each dropped tree, or of all of them "
        "together.",
    ),
)

_STOPPING = _table(
    replace(
        VALIDATION["n_iter_no_change"],
        text=VALIDATION["n_iter_no_change"].text[:-1]
        + ', or with n_estimators="auto" is 2.5 / learning_rate, from 10 to 50; with '
        'preset="fast", 1 / learning_rate, from 5 to 50; with preset="best", 50.',
    )
)

# Shared by regressor and classifier; the two tables below add the parameters of one of them.
PARAMS: dict[str, Param] = (
    _BOOSTING
    | _SPLITS
    | _TREES
    | LEVELS
    | COLUMNS
    | _SAMPLING
    | _DROPOUT
    | VALIDATION
    | _STOPPING
    | _table(DEVICE)
    | RUN
)

_LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")

BOOSTED_REGRESSOR: dict[str, Param] = PARAMS | _table(
    LossChoice(
        name="loss",
        default="squared_error",
        options=_LOSSES,
        text="Loss to minimise: squared_error, absolute_error, huber, quantile; poisson, gamma or "
        "tweedie for a mean above 0; or an arboost.CustomLoss.",
    ),
    Quantiles(
        name="alpha",
        default=0.9,
        text='With loss="quantile": the quantile to predict, or several, whose predictions never '
        'cross. With loss="huber": the share of errors with a squared loss.',
        advice="Use alpha=0.5 for the median, alpha=[0.1, 0.5, 0.9] for three quantiles.",
    ),
    Real(
        name="tweedie_power",
        default=1.5,
        low=1.0,
        high=2.0,
        low_open=True,
        high_open=True,
        text='With loss="tweedie": power of the mean that the variance is proportional to.',
        advice='Use loss="poisson" for the power 1 and loss="gamma" for 2.',
    ),
)

BOOSTED_CLASSIFIER: dict[str, Param] = PARAMS | _table(
    LossChoice(
        name="loss",
        default="log_loss",
        options=("log_loss", "exponential"),
        text="Loss to minimise: log_loss; for two classes also exponential, AdaBoost's loss; or an "
        "arboost.CustomLoss.",
    ),
    Choice(
        name="multi_strategy",
        default="auto",
        options=("auto", "one_output_per_tree", "multi_output_tree"),
        text="With three or more classes: one tree per class in every round, or one tree whose "
        'leaves hold a value for each class. "auto": one_output_per_tree; with '
        'n_estimators="auto", multi_output_tree unless the table is small (up to about 0.5 s for '
        "600 rounds) or a class has less than a quarter of the rows of the average class.",
    ),
    Real(
        name="scale_pos_weight",
        default=1.0,
        low=0.0,
        low_open=True,
        text="With two classes: factor on the row weights of the second class.",
        advice="Use scale_pos_weight=1 for equal weights.",
    ),
    ClassWeight(
        name="class_weight",
        default=None,
        text="Factors on the row weights by label, 1 for labels that are not named; "
        '"balanced" gives all classes the same total weight.',
        advice='Use for example class_weight="balanced".',
    ),
)
