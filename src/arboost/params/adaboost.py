"""The parameters of AdaBoost; parameters shared with boosters come from boosting.py."""

from __future__ import annotations

from dataclasses import replace

from arboost.params.boosting import BOOSTED_CLASSIFIER, PARAMS
from arboost.params.compound_kinds import Learner
from arboost.params.kinds import Choice, Flag, Fraction, Integer, Param, Real, by_name

__all__ = ["ADABOOST_CLASSIFIER", "ADABOOST_REGRESSOR", "ENGINE_ONLY"]

# They say how trees of the engine are grown, and have no meaning for other learners.
ENGINE_ONLY = (
    "max_depth",
    "max_leaves",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "tree_method",
    "max_bins",
    "bundling",
    "categorical_features",
    "missing",
)

_SHARED = (
    "max_leaves",
    "min_samples_leaf",
    "max_bins",
    "bundling",
    "categorical_features",
    "missing",
    "n_iter_no_change",
    "tol",
    "validation_fraction",
    "validation_split",
    "max_time",
    "n_jobs",
    "random_state",
    "verbose",
)


_COMMON = by_name(
    Learner(
        name="estimator",
        default=None,
        text="What learns in each round: None for the engine's own trees, or any estimator of "
        "scikit-learn's kind, which is cloned.",
        advice="Use estimator=None for trees of the engine.",
    ),
    Integer(
        name="n_estimators",
        default=50,
        low=1,
        text="Number of learners; fewer where learning ends by itself or early stopping does.",
    ),
    Choice(
        name="tree_method",
        default="hist",
        options=("hist", "exact"),
        text="Where splits are looked for: between the bins of a histogram, or between all "
        "distinct values.",
    ),
    Fraction(
        name="min_weight_fraction_leaf",
        default=0.0,
        high=0.5,
        text="Smallest share of the weight of all rows, as the round has them, that each side of a "
        "split must hold.",
    ),
    Integer(
        name="max_restarts",
        default=10,
        low=0,
        text="With resample=True: how often the rows of a round are drawn again after a learner "
        "that is no better than chance.",
    ),
    Flag(
        name="oob_score",
        default=False,
        text="Whether training rows are scored by the learners that did not draw them; needs "
        "resample=True.",
    ),
    Flag(
        name="warm_start",
        default=False,
        text="Whether a second call of fit keeps the learners of the first and adds those that "
        "n_estimators asks for beyond them.",
    ),
)


def _depth(default: int) -> Integer:
    return Integer(
        name="max_depth",
        default=default,
        low=1,
        optional=True,
        text="Largest number of splits between the root of a tree and a leaf; None sets no limit. "
        "1 is a stump.",
        advice="Use max_depth=None for no limit.",
    )


def _rate(high: float, limit: str) -> Real:
    return Real(
        name="learning_rate",
        default=1.0,
        low=0.0,
        high=high,
        low_open=True,
        high_open=True,
        text=f"Factor on the weight of every learner: smaller needs more of them{limit}.",
        advice="Use learning_rate=1.0 for steps in full.",
    )


def _resample(purpose: str) -> Flag:
    return Flag(
        name="resample",
        default=False,
        text="Whether each learner gets rows that are drawn by their weights, with replacement, "
        f"instead of the weights themselves; {purpose}.",
    )


def _metric(usual: str) -> Param:
    return replace(
        PARAMS["eval_metric"],
        text="What is measured on the validation data after each round, the first of several for "
        f"early stopping; None is {usual}.",
        advice=f"Use eval_metric=None for {usual}.",
    )


_ALL = {name: PARAMS[name] for name in _SHARED} | _COMMON

ADABOOST_CLASSIFIER: dict[str, Param] = _ALL | by_name(
    # (1 - e) exp(-alpha) + e exp(alpha) is 1 again at twice the best alpha.
    _rate(2.0, "; from 2 on steps would undo themselves"),
    _depth(1),
    _resample("for learners that take no weights"),
    _metric("error"),
    Choice(
        name="algorithm",
        default="discrete",
        options=("discrete", "real", "gentle"),
        text="What a learner adds to the scores: its vote, weighed by its error (SAMME for more "
        "than two classes); half the log-odds of its class probabilities; or their difference.",
    ),
    BOOSTED_CLASSIFIER["class_weight"],
)

ADABOOST_REGRESSOR: dict[str, Param] = _ALL | by_name(
    _rate(10.0, ""),
    _depth(3),
    _resample("for learners that take no weights, and as Drucker published it"),
    _metric("squared_error"),
    Choice(
        name="loss",
        default="linear",
        options=("linear", "square", "exponential"),
        text="Loss of a row from its error d, a share of the largest error of all rows: d, d^2, or "
        "1 - exp(-d).",
    ),
)
