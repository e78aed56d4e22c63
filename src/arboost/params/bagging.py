"""The parameters of bagging; parameters shared with boosters come from boosting.py."""

from __future__ import annotations

from dataclasses import replace

from arboost.params.boosting import PARAMS
from arboost.params.compound_kinds import Learner
from arboost.params.count_kinds import CountOrShare
from arboost.params.kinds import Choice, Flag, Integer, Param, Search, by_name

__all__ = ["BAGGING_CLASSIFIER", "BAGGING_REGRESSOR"]


BAGGING_REGRESSOR: dict[str, Param] = by_name(
    Learner(
        name="estimator",
        default=None,
        text="Member of each bag: any scikit-learn estimator, which is cloned; None: arboost's "
        "decision tree.",
        advice="Use estimator=None for decision trees.",
    ),
    Integer(
        name="n_estimators",
        default=10,
        low=1,
        text="Number of members, each with a bag of its own.",
    ),
    CountOrShare(
        name="max_samples",
        default=None,
        optional=True,
        text="Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of "
        "the sum of sample_weight). None draws as many as the table has.",
        advice="Use max_samples=None for as many as the table has, or 0.5 for half of them.",
        search=Search(0.3, 1.0),
    ),
    CountOrShare(
        name="max_features",
        default=1.0,
        text="Number of features to draw for each bag, or a share of them; at least one is drawn.",
        advice="Use max_features=1.0 for all of them.",
        search=Search(0.3, 1.0),
    ),
    Flag(
        name="bootstrap",
        default=True,
        text="Whether rows are drawn with replacement, in proportion to sample_weight; without "
        "replacement, members get the weights of the drawn rows.",
    ),
    Flag(
        name="bootstrap_features",
        default=False,
        text="Whether features are drawn with replacement.",
    ),
    Flag(
        name="oob_score",
        default=False,
        text="Whether to compute out-of-bag predictions and their score.",
    ),
    Flag(
        name="warm_start",
        default=False,
        text="Whether a further call of fit keeps the members and adds new ones up to "
        "n_estimators.",
    ),
    replace(
        PARAMS["n_jobs"],
        text="Number of threads; None and -1 take all that this process may use. Estimators of "
        "arboost are trained one after the other, with all threads; others in parallel. The "
        "result does not depend on it.",
    ),
    replace(
        PARAMS["random_state"],
        text="Seed of the bags, and of the members' random_state parameters; None: a new seed "
        "for each fit.",
    ),
    PARAMS["verbose"],
)

BAGGING_CLASSIFIER: dict[str, Param] = BAGGING_REGRESSOR | by_name(
    Choice(
        name="voting",
        default="soft",
        options=("soft", "hard"),
        text="soft: the mean of the members' class probabilities, or of the classes of members "
        "without any. hard: a majority vote of the members' classes, ties for the smaller label; "
        "predict_proba has the shares of the votes.",
    ),
)
