"""The parameters of gradient boosting, and those that several algorithms share.

Each is written once. An estimator stores its arguments unchanged, as scikit-learn requires; ``fit``
checks them first. ``tools/write_docstrings.py`` copies the texts into the docstrings of the
estimators, and types and defaults into their signatures.
"""

from __future__ import annotations

import math
from dataclasses import replace

from arboost.params import kinds
from arboost.params.kinds import by_name

BUNDLING = kinds.Flag(
    name="bundling",
    default=True,
    text='Whether features share stored columns with tree_method="hist": exclusive feature '
    "bundling (EFB), and several columns of few values in one byte. The model does not depend on "
    "it.",
)

DEVICE = kinds.Device(
    name="device",
    default="cpu",
    text='Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other '
    "CUDA devices than the first. The model does not depend on it.",
    advice='Use device="cpu", or device="cuda" with an NVIDIA GPU.',
)

VALIDATION = by_name(
    kinds.Metrics(
        name="eval_metric",
        default=None,
        text="Metrics on the validation set after each round; early stopping uses the first. None: "
        "the loss.",
        advice="Use eval_metric=None for the loss.",
    ),
    kinds.Integer(
        name="n_iter_no_change",
        default=None,
        low=1,
        optional=True,
        text="Early stopping: number of rounds without a better validation score after which "
        "training stops and the best round is kept; None trains all rounds.",
        advice="Use n_iter_no_change=None for no early stopping.",
    ),
    kinds.Real(
        name="tol",
        default=0.0,
        low=0.0,
        text="Early stopping: smallest improvement of the score that counts.",
    ),
    kinds.Fraction(
        name="validation_fraction",
        default=0.1,
        low_open=True,
        high_open=True,
        text="Early stopping without X_val: share of the training rows that is held out.",
    ),
    kinds.Choice(
        name="validation_split",
        default="random",
        options=("random", "group", "time"),
        text="Early stopping without X_val: choice of the held-out rows: random (stratified by "
        "class for classifiers), whole groups, or the last rows.",
    ),
    kinds.Real(
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
    kinds.Integer(
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
    kinds.Seed(
        name="random_state",
        default=0,
        text="Seed of every random choice; None: a new seed for each fit.",
        advice="Use random_state=0 for the same model every time.",
    ),
    kinds.Verbosity(
        name="verbose",
        default=1,
        text="Whether fits of more than about a second draw a progress bar in terminals and "
        "notebooks; numbers above 0 are True.",
        advice="Use verbose=False for no progress bar.",
    ),
)


MONOTONIC_CST = kinds.MonotoneConstraints(
    name="monotonic_cst",
    default=None,
    text="scikit-learn's name of monotone_constraints.",
    advice="Use for example monotonic_cst=[1, 0, -1], an entry for each feature.",
)

COLUMNS: dict[str, kinds.Param] = by_name(
    kinds.CategoricalFeatures(
        name="categorical_features",
        default="from_dtype",
        text="Additional categories, whatever their type: names, indices or a mask of columns. "
        '"from_dtype": only columns of strings, and of the categorical types of pandas, Polars '
        "and Arrow, which are always categories.",
        advice='Use for example categorical_features=["city", "day"].',
    ),
    kinds.Choice(
        name="category_encoding",
        default="auto",
        options=("auto", "groups", "mean"),
        text="Encoding of categories of more than 100 levels by their targets: sets of at most 255 "
        "groups, of which each frequent level is one and rare levels of similar means share the "
        'others; or one number, the mean target of a level. "auto": groups in gradient boosting, '
        "the mean in all other algorithms; a Dataset has its own.",
        advice='Use category_encoding="auto".',
    ),
    kinds.CalendarParts(
        name="calendar_parts",
        default="auto",
        text='Calendar parts of dates that are features next to them: "hour", "weekday", "month" '
        'and "dayofyear". "auto": those that repeat, the hour in dates of more than a day, the '
        "weekday of more than a week, the others of more than a year. None: no parts.",
        advice='Use for example calendar_parts=["hour", "weekday"].',
        always_recorded=False,
    ),
    kinds.DateFormat(
        name="date_format",
        default="auto",
        text='Format of dates in strings, for all columns or by column: "iso" (year first), '
        '"dayfirst", "monthfirst", or a format of strptime such as "%d.%m.%y". "auto": year first, '
        "and day or month first where the values of a column leave no doubt. None: dates in "
        "strings are categories.",
        advice='Use for example date_format="dayfirst", or date_format={"when": "%d/%m/%Y"}.',
        always_recorded=False,
    ),
    kinds.Missing(
        name="missing",
        default=math.nan,
        text="Number that means missing in all numeric columns, such as -999, or 0 in sparse "
        "tables; NaN, None and NA are always missing.",
        advice="Use missing=float('nan') for no such number.",
    ),
    kinds.MonotoneConstraints(
        name="monotone_constraints",
        default=None,
        text="Direction of features, by name or index: predictions may only rise (1) or only "
        "fall (-1); a sequence has an entry for each feature, 0 for no constraint.",
        advice='Use for example monotone_constraints={"age": 1}.',
    ),
    MONOTONIC_CST,
    kinds.InteractionConstraints(
        name="interaction_constraints",
        default=None,
        text="Groups of features, by name or index, that may share a path from root to leaf; a "
        "feature in no group shares its paths with no other.",
        advice='Use for example interaction_constraints=[["age", "height"], ["income"]].',
    ),
)


LEVELS: dict[str, kinds.Param] = by_name(
    kinds.Integer(
        name="max_cat_to_onehot",
        default=4,
        low=1,
        high=256,
        text="Largest number of levels of a category in a node for one-vs-rest splits; more levels "
        "are sorted by their mean gradients and split into two sets.",
    ),
    kinds.Integer(
        name="max_cat_threshold",
        default=64,
        low=1,
        high=256,
        text="Largest number of levels in the smaller of the two sets that a sorted category is "
        "split into.",
    ),
    kinds.Real(
        name="min_cat_weight",
        default=10.0,
        low=0.0,
        text="Smallest hessian in a node of a level that a sorted category places by itself; all "
        "rarer levels stay together.",
        advice="Use min_cat_weight=0 to place every level.",
    ),
    kinds.Real(
        name="cat_smooth",
        default=30.0,
        low=0.0,
        text="Hessian added to each level's before levels are sorted, so that rare levels do not "
        "come first or last by chance.",
    ),
    kinds.Real(
        name="cat_l2",
        default=30.0,
        low=0.0,
        text="L2 penalty in addition to reg_lambda, in the gain of splits of sorted categories.",
    ),
)

_BOOSTING = by_name(
    kinds.Integer(
        name="n_estimators",
        default="auto",
        low=1,
        automatic=True,
        text='Number of boosting rounds; with early stopping the largest number. "auto" finds the '
        "best number on held-out rows (folds below 5,000 rows), then trains on all rows; with "
        "X_val it stops early on X_val. With fewer than 50 rows and neither X_val nor "
        'n_iter_no_change, "auto" means 100 rounds and the textbook defaults.',
        advice='Use n_estimators="auto" to find it.',
    ),
    kinds.Choice(
        name="preset",
        default="good",
        options=("fast", "good", "best"),
        text='How hard a fit with n_estimators="auto" tries: "fast", "good" and "best" search up '
        "to 150, 300 and 4,000 rounds. See the table of presets on the page on tuning.",
    ),
    kinds.Real(
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
        search=kinds.Search(0.02, 0.3, log=True),
    ),
    kinds.Choice(
        name="boosting",
        default="newton",
        options=("newton", "gradient"),
        text="Steps of the trees: XGBoost's second-order steps with their penalties, or "
        "Friedman's least-squares trees on the gradient with the loss's own minimum in each leaf.",
    ),
    kinds.Choice(
        name="line_search",
        default="leaf",
        options=("leaf", "round"),
        always_recorded=False,
        text='With boosting="gradient": a step length for each leaf, the minimum of the loss '
        "there, or one for all trees of a round, whose leaves keep the mean negative gradients "
        "(Friedman's algorithm 1 in its general form).",
    ),
    kinds.BaseScore(
        name="base_score",
        text="Prediction before the first tree: a value of y, or the probability of the second of "
        "two classes; for three or more classes a list of their probabilities, or 0 for raw scores "
        "of 0; None: estimated from the data.",
        advice="Use base_score=None to take it from the data.",
    ),
    kinds.Flag(
        name="warm_start",
        default=False,
        text="Whether a fit of a fitted estimator adds rounds to its own, up to n_estimators in "
        'all; with n_estimators="auto", as many more as held-out rows ask for.',
    ),
    kinds.Integer(
        name="num_parallel_tree",
        default=1,
        low=1,
        text="Number of trees per round, each grown on its own sample of rows and columns, and "
        "averaged: above 1, a random forest in every round.",
    ),
)

_SPLITS = by_name(
    kinds.Choice(
        name="tree_method",
        default="hist",
        options=("hist", "exact", "approx"),
        text="Candidates for splits: the bin edges of a histogram, all distinct values, or the "
        "quantiles of a hessian-weighted sketch.",
    ),
    kinds.Integer(
        name="max_bins",
        default=255,
        low=2,
        high=65535,
        text='Largest number of bins of a feature with tree_method="hist", not counting missing '
        "values; above 255 a bin code takes two bytes.",
    ),
    replace(BUNDLING, text=f"{BUNDLING.text.removesuffix('.')} while max_conflict_rate is 0."),
    kinds.Fraction(
        name="max_conflict_rate",
        default=0.0,
        high_open=True,
        text="Share of the rows in which two features of a bundle may both differ from their most "
        "frequent value; only the first of them is then kept.",
        advice="Use max_conflict_rate=0.0 for bundles that change nothing.",
    ),
    kinds.Fraction(
        name="sketch_eps",
        default=0.004,
        low_open=True,
        high_open=True,
        text='Rank error of the sketch of tree_method="approx", as a share of the total hessian: '
        "about 1 / sketch_eps candidates for each feature.",
        advice="Use sketch_eps=0.004 for about 250 candidates.",
    ),
    kinds.Choice(
        name="sketch_scope",
        default="global",
        options=("global", "local"),
        text='Whether tree_method="approx" proposes candidates once per round or in every node.',
    ),
)

_FRIEDMAN = ("boosting", "gradient")  # which has no penalties
_GOSS = ("sampling_method", "goss")

_TREES = by_name(
    kinds.Integer(
        name="max_depth",
        default="auto",
        low=1,
        optional=True,
        automatic=True,
        text="Largest number of splits between the root of a tree and a leaf; None sets no limit. "
        '"auto": 6; with n_estimators="auto", None, and max_leaves=31 unless max_leaves is given.',
        advice="Use max_depth=None for no limit.",
    ),
    kinds.Integer(
        name="max_leaves",
        default=None,
        low=2,
        optional=True,
        text="Largest number of leaves of a tree; None sets no limit.",
        advice="Use max_leaves=None for no limit.",
        search=kinds.Search(4, 128, log=True),
    ),
    kinds.Choice(
        name="grow_policy",
        default="auto",
        options=("auto", "depthwise", "leafwise"),
        text="Order of the splits: nodes nearest to the root first, or the largest gain first. "
        '"auto": depthwise; with n_estimators="auto", leafwise.',
    ),
    kinds.Real(
        name="min_child_weight",
        default="auto",
        low=0.0,
        automatic=True,
        text='Smallest sum of hessians (with boosting="gradient", of weights) in each child of a '
        'split. "auto": 1; with n_estimators="auto", 0.1.',
        advice='Use min_child_weight="auto", or 1.',
        search=kinds.Search(0.01, 30.0, log=True),
    ),
    kinds.Integer(
        name="min_samples_leaf",
        default="auto",
        low=1,
        automatic=True,
        text='Smallest number of training rows in each child of a split. "auto": 1; with '
        'n_estimators="auto" and loss="quantile" 5 / min(alpha, 1 - alpha) (the geometric mean '
        "over several quantiles), and at most a tenth of the rows.",
        advice='Use min_samples_leaf="auto", or 1 for no limit.',
        search=kinds.Search(1, 100, log=True),
    ),
    kinds.Real(name="gamma", default=0.0, low=0.0, text="Gain that a split must exceed."),
    kinds.Real(
        name="reg_lambda",
        default=None,
        low=0.0,
        optional=True,
        text='L2 penalty on the leaf values. None: 1; with n_estimators="auto", 3, or 1 '
        'for leaves of several values; with boosting="gradient", which has no penalties, 0.',
        advice="Use reg_lambda=None for the default.",
        search=kinds.Search(0.01, 30.0, log=True, unless=_FRIEDMAN),
    ),
    kinds.Real(
        name="reg_alpha",
        default=0.0,
        low=0.0,
        text="L1 penalty on the leaf values.",
        search=kinds.Search(0.001, 10.0, log=True, unless=_FRIEDMAN),
    ),
    kinds.Real(
        name="max_delta_step",
        default=0.0,
        low=0.0,
        text="Largest absolute leaf value before the learning rate; 0 sets no limit.",
        advice="Use max_delta_step=0 for no limit.",
    ),
)


def _share(
    name: str, text: str, auto: str | None = None, search: kinds.Search | None = None
) -> kinds.Fraction:
    """A share of rows or columns; ``auto`` is the text on the value "auto", if allowed."""
    advice = f"Use {name}=1 for all."
    if auto is None:
        return kinds.Fraction(name=name, default=1.0, low_open=True, text=text, advice=advice)
    return kinds.Fraction(
        name=name,
        default="auto",
        low_open=True,
        automatic=True,
        text=f'{text} "auto": 1; with n_estimators="auto", {auto}.',
        advice=advice,
        search=search,
    )


def _goss_share(name: str, default: float, text: str) -> kinds.Fraction:
    text = f'With sampling_method="goss": share of the training rows that {text}.'
    advice, search = f"Use {name}={default} for the default.", kinds.Search(0.05, 0.5, only=_GOSS)
    return kinds.Fraction(
        name=name, default=default, low_open=True, text=text, advice=advice, search=search
    )


_SAMPLING = by_name(
    _share(
        "subsample",
        "Share of the training rows that each tree is grown on.",
        '0.5 unless sampling_method="goss"',
        kinds.Search(0.4, 1.0, unless=_GOSS),
    ),
    kinds.Choice(
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
        kinds.Search(0.2, 1.0),
    ),
    _share("colsample_bylevel", "Share of the tree's features that each level may use."),
    _share(
        "colsample_bynode",
        "Share of the level's features that each node may use.",
        "0.7",
        kinds.Search(0.4, 1.0),
    ),
)

_DROPOUT = by_name(
    kinds.Fraction(
        name="rate_drop",
        default=0.0,
        text="DART: share of the earlier trees that a round drops from its gradients; 0: boosting "
        "without dropout.",
        advice="Use rate_drop=0 for no dropout.",
    ),
    kinds.Fraction(
        name="skip_drop",
        default=0.0,
        text="DART: probability that a round drops no tree.",
        advice="Use skip_drop=0 for dropout in every round.",
        search=kinds.Search(0.0, 0.8, unless=("rate_drop", 0.0)),
    ),
    kinds.Flag(
        name="one_drop",
        default=False,
        text="DART: whether a round with dropout drops at least one tree.",
    ),
    kinds.Choice(
        name="sample_type",
        default="uniform",
        options=("uniform", "weighted"),
        text="DART: whether trees are dropped with equal probabilities or in proportion to their "
        "weights.",
    ),
    kinds.Choice(
        name="normalize_type",
        default="tree",
        options=("tree", "forest"),
        text="DART: whether the new tree gets the weight of each dropped tree, or of all of them "
        "together.",
    ),
)

_STOPPING = by_name(
    replace(
        VALIDATION["n_iter_no_change"],
        text=VALIDATION["n_iter_no_change"].text[:-1]
        + ', or with n_estimators="auto" is 2.5 / learning_rate, from 10 to 50; with '
        'preset="fast", 1 / learning_rate, from 5 to 50; with preset="best", 50.',
    )
)

# Shared by regressor and classifier; the two tables below add the parameters of one of them.
PARAMS: dict[str, kinds.Param] = (
    _BOOSTING
    | _SPLITS
    | _TREES
    | LEVELS
    | COLUMNS
    | _SAMPLING
    | _DROPOUT
    | VALIDATION
    | _STOPPING
    | by_name(DEVICE)
    | RUN
)

_LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")

BOOSTED_REGRESSOR: dict[str, kinds.Param] = PARAMS | by_name(
    kinds.LossChoice(
        name="loss",
        default="squared_error",
        options=_LOSSES,
        text="Loss to minimise: squared_error, absolute_error, huber, quantile; poisson, gamma or "
        "tweedie for a mean above 0; or an arboost.CustomLoss.",
    ),
    kinds.Quantiles(
        name="alpha",
        default=0.9,
        text='With loss="quantile": the quantile to predict, or several, whose predictions never '
        'cross. With loss="huber": the share of errors with a squared loss.',
        advice="Use alpha=0.5 for the median, alpha=[0.1, 0.5, 0.9] for three quantiles.",
    ),
    kinds.Real(
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

RANKING_LOSSES = ("lambdamart", "pairwise", "listwise")
# A ranker takes one Newton step, holds out whole queries, and starts from scores of 0.
RANKER_VALUES = {
    "boosting": "newton",
    "line_search": "leaf",
    "base_score": None,
    "validation_split": "group",
}

BOOSTED_RANKER: dict[str, kinds.Param] = {
    name: param for name, param in PARAMS.items() if name not in RANKER_VALUES
} | by_name(
    kinds.Choice(
        name="loss",
        default="lambdamart",
        options=RANKING_LOSSES,
        text="Loss to minimise: lambdamart, pairs of documents weighed by the change of a metric; "
        "pairwise, all pairs alike (RankNet); or listwise, the cross entropy of whole lists "
        "(XE-NDCG).",
    ),
    kinds.Choice(
        name="target_metric",
        default="ndcg",
        options=("ndcg", "map", "mrr"),
        text='With loss="lambdamart": metric whose change weighs a pair. map and mrr take every '
        "relevance above 0 for relevant.",
    ),
    kinds.Choice(
        name="gain",
        default="exponential",
        options=("exponential", "linear"),
        text="Gain of a document of relevance y in NDCG and in the listwise loss: 2^y - 1 or y.",
    ),
    kinds.Integer(
        name="truncation_level",
        default=30,
        low=1,
        optional=True,
        text="Pairs with one of this many documents at the top of the present ranking count, and "
        'no others; with target_metric="ndcg" it is the k of NDCG@k, too. None counts all pairs. '
        'It has no effect with loss="listwise".',
        advice="Use truncation_level=None for all pairs.",
    ),
    replace(
        VALIDATION["eval_metric"],
        text="Metrics on the validation set after each round; early stopping uses the first. None: "
        "ndcg@10. Or ndcg, map, mrr and precision, each also of the first k documents, as map@5.",
        advice="Use eval_metric=None for ndcg@10.",
    ),
    kinds.Flag(
        name="score_normalization",
        default=True,
        text="Whether pairs of nearly equal scores weigh more, and gradients of a query grow like "
        'the logarithm of their sum. It has no effect with loss="listwise".',
    ),
)

BOOSTED_CLASSIFIER: dict[str, kinds.Param] = PARAMS | by_name(
    kinds.LossChoice(
        name="loss",
        default="log_loss",
        options=("log_loss", "exponential"),
        text="Loss to minimise: log_loss; for two classes also exponential, AdaBoost's loss; or an "
        "arboost.CustomLoss.",
    ),
    kinds.Choice(
        name="multi_strategy",
        default="auto",
        options=("auto", "one_output_per_tree", "multi_output_tree"),
        text="With three or more classes: one tree per class in every round, or one tree whose "
        'leaves hold a value for each class. "auto": one_output_per_tree; with '
        'n_estimators="auto", multi_output_tree unless the table is small (up to about 0.5 s for '
        "600 rounds) or a class has less than a quarter of the rows of the average class.",
    ),
    kinds.Real(
        name="scale_pos_weight",
        default=1.0,
        low=0.0,
        low_open=True,
        text="With two classes: factor on the row weights of the second class.",
        advice="Use scale_pos_weight=1 for equal weights.",
    ),
    kinds.ClassWeight(
        name="class_weight",
        default=None,
        text="Factors on the row weights by label, 1 for labels that are not named; "
        '"balanced" gives all classes the same total weight.',
        advice='Use for example class_weight="balanced".',
    ),
)
