"""The parameters of AdaBoost; parameters shared with boosters come from boosting.py."""

from __future__ import annotations

from dataclasses import replace

from arboost.params import kinds
from arboost.params.boosting import BOOSTED_CLASSIFIER, BUNDLING, PARAMS, VALIDATION
from arboost.params.forest import AUTO_BINS, SHARED, TREE_METHOD
from arboost.params.kinds import by_name

# Parameters of the engine's trees, without meaning for other learners.
ENGINE_ONLY = (
    "criterion",
    "max_depth",
    "max_leaves",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "tree_method",
    "max_bins",
    "bundling",
    "categorical_features",
    "category_encoding",
    "date_format",
    "calendar_parts",
    "missing",
    "device",
)

_STOPPING = ("tol", "validation_fraction", "validation_split", "max_time")

_COMMON = by_name(
    kinds.Learner(
        name="estimator",
        default=None,
        text="Learner of each round: None for the engine's own trees, or any scikit-learn "
        "estimator, which is cloned.",
        advice="Use estimator=None for trees of the engine.",
    ),
    kinds.Integer(
        name="n_estimators",
        default=50,
        low=1,
        text="Number of learners; fewer after early stopping, or where no further learner helps.",
        search=kinds.Search(10, 500, log=True),
    ),
    TREE_METHOD,
    kinds.Integer(
        name="min_samples_leaf",
        default=1,
        low=1,
        text="Smallest number of training rows in each child of a split.",
        search=kinds.Search(1, 100, log=True),
    ),
    kinds.Fraction(
        name="min_weight_fraction_leaf",
        default=0.0,
        high=0.5,
        text="Smallest share of the round's total weight that each child of a split must hold.",
    ),
    kinds.Integer(
        name="max_restarts",
        default=10,
        low=0,
        text="With resample=True: how often a round draws its rows again after a learner that is "
        "no better than chance.",
    ),
    kinds.Flag(
        name="oob_score",
        default=False,
        text="Whether to compute the out-of-bag score; needs resample=True.",
    ),
    kinds.Flag(
        name="warm_start",
        default=False,
        text="Whether a further call of fit keeps the learners and adds new ones up to "
        "n_estimators.",
    ),
)


def _depth(default: int) -> kinds.Integer:
    return kinds.Integer(
        name="max_depth",
        default=default,
        low=1,
        optional=True,
        text="Largest number of splits between the root of a tree and a leaf; None sets no limit. "
        "1: stumps.",
        advice="Use max_depth=None for no limit.",
        search=kinds.Search(1, 8),
    )


def _rate(high: float, limit: str) -> kinds.Real:
    return kinds.Real(
        name="learning_rate",
        default=1.0,
        low=0.0,
        high=high,
        low_open=True,
        high_open=True,
        text=f"Factor on the weight of every learner; smaller rates need more learners{limit}.",
        advice="Use learning_rate=1.0 for full steps.",
        search=kinds.Search(0.05, 1.5, log=True),
    )


def _resample(purpose: str) -> kinds.Flag:
    return kinds.Flag(
        name="resample",
        default=False,
        text="Whether each learner gets rows drawn with replacement in proportion to their "
        f"weights, instead of the weights; {purpose}.",
    )


def _metric(default: str) -> kinds.Param:
    return replace(
        PARAMS["eval_metric"],
        text="Metrics on the validation set after each round; early stopping uses the first. "
        f"None: {default}.",
        advice=f"Use eval_metric=None for {default}.",
    )


_ALL = (
    {name: PARAMS[name] for name in (*SHARED, *_STOPPING)}
    | by_name(replace(PARAMS["max_leaves"], search=None))  # max_depth is searched instead
    # n_iter_no_change without the text on n_estimators="auto"
    | by_name(BUNDLING, AUTO_BINS, VALIDATION["n_iter_no_change"])
    | _COMMON
)

ADABOOST_CLASSIFIER: dict[str, kinds.Param] = _ALL | by_name(
    kinds.Choice(
        name="criterion",
        default="gini",
        options=("gini", "error"),
        text="Impurity that the trees minimise: Gini impurity; or the weighted error, as in the "
        "theory of AdaBoost, and of equal errors the Gini impurity.",
        always_recorded=False,
    ),
    # (1 - e) exp(-alpha) + e exp(alpha) is 1 again at twice the best alpha.
    _rate(2.0, "; from 2 on, steps do not lower the loss"),
    _depth(1),
    _resample("for learners that take no weights"),
    _metric("error"),
    kinds.Choice(
        name="algorithm",
        default="discrete",
        options=("discrete", "real", "gentle"),
        text="Contribution of a learner to the scores: its vote, weighted by its error (SAMME for "
        "more than two classes); half the log-odds of its probabilities; or their difference.",
        search=kinds.Search(choices=("discrete", "real", "gentle")),
    ),
    BOOSTED_CLASSIFIER["class_weight"],
)

ADABOOST_REGRESSOR: dict[str, kinds.Param] = _ALL | by_name(
    _rate(10.0, ""),
    _depth(3),
    _resample("for learners that take no weights, and as Drucker published it"),
    _metric("squared_error"),
    kinds.Choice(
        name="loss",
        default="linear",
        options=("linear", "square", "exponential"),
        text="Loss of a row with the error d, relative to the largest error: d, d^2, or "
        "1 - exp(-d).",
        search=kinds.Search(choices=("linear", "square", "exponential")),
    ),
    kinds.Choice(
        name="aggregation",
        default="median",
        options=("median", "mean"),
        always_recorded=False,
        text="Combination of the learners' predictions by their weights: the median, as Drucker "
        "published it, or the mean.",
    ),
)
