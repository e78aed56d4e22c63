"""The parameters of trees and forests; parameters shared with boosters come from boosting.py."""

from __future__ import annotations

import math
from dataclasses import replace

from arboost.params import kinds
from arboost.params.boosting import BUNDLING, MONOTONIC_CST, PARAMS
from arboost.params.kinds import by_name

AUTO_BINS = kinds.Integer(
    name="max_bins",
    default="auto",
    low=2,
    high=65535,
    automatic=True,
    text=f'{PARAMS["max_bins"].text.removesuffix(".")}. "auto": 255; or a bin for each value where '
    "trees that may have more than 256 leaves need them for pure leaves, on up to 32,768 rows; a "
    "Dataset has its own.",
    advice='Use max_bins="auto", or 255.',
)

# Parameters that trees, forests and AdaBoost share with boosters.
SHARED = (
    "categorical_features",
    "category_encoding",
    "date_format",
    "calendar_parts",
    "missing",
    "device",
    "n_jobs",
    "random_state",
    "verbose",
)
TREE_METHOD = kinds.Choice(
    name="tree_method",
    default="hist",
    options=("hist", "exact"),
    text="Candidates for splits: the bin edges of a histogram, or all distinct values.",
)

_TREE = by_name(
    kinds.Integer(
        name="max_depth",
        default=None,
        low=1,
        optional=True,
        text="Largest number of splits between the root of a tree and a leaf; None sets no limit.",
        advice="Use max_depth=None for no limit.",
        search=kinds.Search(2, 64, log=True),
    ),
    kinds.CountOrShare(
        name="min_samples_split",
        default=2,
        low=2,
        text="Smallest number of training rows, or share of them, in a node that is split.",
        advice="Use min_samples_split=2 for no limit.",
    ),
    kinds.CountOrShare(
        name="min_samples_leaf",
        default=1,
        share_open=True,
        text="Smallest number of training rows, or share of them, in each child of a split; "
        "a row that is drawn twice is one row.",
        advice="Use min_samples_leaf=1 for no limit.",
        search=kinds.Search(1, 64, log=True),
    ),
    kinds.Fraction(
        name="min_weight_fraction_leaf",
        default=0.0,
        high=0.5,
        text="Smallest share of the total weight in each child of a split.",
        advice="Use min_weight_fraction_leaf=0 for no limit.",
    ),
    kinds.Integer(
        name="max_leaf_nodes",
        default=None,
        low=2,
        optional=True,
        text="Largest number of leaves of a tree, which then grows best-first, by the decrease of "
        "impurity; None sets no limit.",
        advice="Use max_leaf_nodes=None for no limit.",
    ),
    kinds.Real(
        name="min_impurity_decrease",
        default=0.0,
        low=0.0,
        text="Smallest decrease of impurity of a split, weighted by the node's share of the total "
        "weight.",
        advice="Use min_impurity_decrease=0 for no limit.",
    ),
    kinds.Real(
        name="ccp_alpha",
        default=0.0,
        low=0.0,
        text="Minimal cost-complexity pruning: decrease of impurity per additional leaf below "
        "which branches are pruned, the weakest first.",
        advice="Use ccp_alpha=0 for no pruning.",
    ),
    TREE_METHOD,
    BUNDLING,
    replace(
        PARAMS["monotone_constraints"],
        text="Features in which predictions, or the probability of the second of two classes, may "
        "only rise (1) or only fall (-1), 0 for no constraint: a sequence with an entry for each "
        "feature, or a dict by name or index.",
    ),
    MONOTONIC_CST,
)

_FOREST = by_name(
    kinds.Integer(name="n_estimators", default=100, low=1, text="Number of trees."),
    kinds.OobScore(
        name="oob_score",
        default=False,
        text="Whether to compute the out-of-bag score, or a function of (y, prediction) to compute "
        "it with; needs bootstrap=True.",
    ),
    kinds.Flag(
        name="warm_start",
        default=False,
        text="Whether a further call of fit keeps the trees and adds new ones up to n_estimators.",
    ),
    kinds.CountOrShare(
        name="max_samples",
        default=None,
        high_share=math.inf,
        optional=True,
        text="With bootstrap=True: number of draws for each tree, or that number as a share of "
        "the rows; None draws as often as there are rows.",
        advice="Use max_samples=None for as many draws as rows.",
        search=kinds.Search(0.3, 1.0, only=("bootstrap", True)),
    ),
)


def _bootstrap(*, default: bool) -> kinds.Flag:
    return kinds.Flag(
        name="bootstrap",
        default=default,
        text="Whether each tree is grown on rows drawn with replacement, in proportion to their "
        "weights, instead of all rows.",
    )


def _features(default: object) -> kinds.FeatureCount:
    return kinds.FeatureCount(
        name="max_features",
        default=default,
        text="Number of features drawn for each node as candidates for its split: the square root "
        "or the logarithm of their number, a number, a share of them, or None for all.",
        advice="Use max_features=None for all.",
        search=kinds.Search(0.1, 1.0),
    )


def _class_weight(*words: str) -> kinds.ClassWeights:
    text = (
        "Factors on the row weights by label, 1 for labels that are not named; for several targets "
        'a list, whose factors are multiplied. "balanced" gives all classes the same total weight'
    )
    if len(words) > 1:
        text += ', "balanced_subsample" among the rows drawn for each tree'
    return kinds.ClassWeights(
        name="class_weight",
        default=None,
        words=words,
        text=text + ".",
        advice='Use for example class_weight="balanced".',
    )


_CLASSIFICATION_CRITERIA = kinds.Choice(
    name="criterion",
    default="gini",
    options=("gini", "entropy", "log_loss", "error", "gain_ratio"),
    text="Impurity to minimise: Gini impurity; entropy, also called log_loss; the share of rows "
    "outside the most frequent class, of equal ones the Gini impurity; or entropy with C4.5's "
    "choice of the feature, by its gain over the entropy of the split itself.",
)
_REGRESSION_CRITERIA = kinds.Choice(
    name="criterion",
    default="squared_error",
    options=("squared_error", "absolute_error", "poisson"),
    text="Impurity to minimise: squared error; absolute error around medians, which are then the "
    "leaf values; or the Poisson deviance, for counts.",
)

_SPLITTER = kinds.Choice(
    name="splitter",
    default="best",
    options=("best", "random"),
    text="Threshold of a feature in a node: the best value, or a random one between the smallest "
    "and the largest value of the node's rows.",
)

_ALL = by_name(AUTO_BINS) | {name: PARAMS[name] for name in SHARED} | _TREE

TREE_CLASSIFIER: dict[str, kinds.Param] = _ALL | by_name(
    _SPLITTER, _CLASSIFICATION_CRITERIA, _features(None), _class_weight("balanced")
)
TREE_REGRESSOR: dict[str, kinds.Param] = _ALL | by_name(
    _SPLITTER, _REGRESSION_CRITERIA, _features(None)
)

_FOREST_CLASS_WEIGHT = _class_weight("balanced", "balanced_subsample")
RANDOM_FOREST_CLASSIFIER: dict[str, kinds.Param] = (
    _ALL
    | _FOREST
    | by_name(
        _CLASSIFICATION_CRITERIA, _features("sqrt"), _FOREST_CLASS_WEIGHT, _bootstrap(default=True)
    )
)
_QUANTILES = kinds.Flag(
    name="quantiles",
    default=False,
    text="Whether leaves keep their values of y, for `predict_quantiles`: four bytes for each row "
    "and tree.",
)
RANDOM_FOREST_REGRESSOR: dict[str, kinds.Param] = (
    _ALL
    | _FOREST
    | by_name(_QUANTILES, _REGRESSION_CRITERIA, _features(1.0), _bootstrap(default=True))
)
EXTRA_TREES_CLASSIFIER: dict[str, kinds.Param] = RANDOM_FOREST_CLASSIFIER | by_name(
    _bootstrap(default=False)
)
EXTRA_TREES_REGRESSOR: dict[str, kinds.Param] = RANDOM_FOREST_REGRESSOR | by_name(
    _bootstrap(default=False)
)
