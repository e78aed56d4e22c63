"""The parameters of bagging; parameters shared with boosters come from boosting.py."""

from __future__ import annotations

from dataclasses import replace

from arboost.params.boosting import PARAMS
from arboost.params.compound_kinds import Learner
from arboost.params.count_kinds import CountOrShare
from arboost.params.kinds import Flag, Integer, Param, by_name

__all__ = ["BAGGING"]


BAGGING: dict[str, Param] = by_name(
    Learner(
        name="estimator",
        default=None,
        text="What is trained on each bag: any estimator of scikit-learn's kind, which is cloned; "
        "None is arboost's decision tree.",
        advice="Use estimator=None for decision trees.",
    ),
    Integer(
        name="n_estimators",
        default=10,
        low=1,
        text="Number of members, each of them an estimator with a bag of its own.",
    ),
    CountOrShare(
        name="max_samples",
        default=None,
        optional=True,
        text="Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of "
        "the sum of sample_weight). None draws as many as there are.",
        advice="Use max_samples=None for as many as there are, or 0.5 for half of them.",
    ),
    CountOrShare(
        name="max_features",
        default=1.0,
        text="Features to draw for each bag: a number, or a share of them, but at least one.",
        advice="Use max_features=1.0 for all of them.",
    ),
    Flag(
        name="bootstrap",
        default=True,
        text="Whether rows are drawn with replacement, and then in proportion to sample_weight; "
        "without, members get the weights of the rows that are drawn.",
    ),
    Flag(
        name="bootstrap_features",
        default=False,
        text="Whether a feature may come several times in a bag, and others not at all.",
    ),
    Flag(
        name="oob_score",
        default=False,
        text="Whether each training row is predicted by the members that have not drawn it, and "
        "the ensemble is scored by that.",
    ),
    Flag(
        name="warm_start",
        default=False,
        text="Whether a second call of fit keeps the members of the first and adds those that "
        "n_estimators asks for beyond them.",
    ),
    replace(
        PARAMS["n_jobs"],
        text="Number of threads; None and -1 take all that this process may use. Estimators of "
        "arboost are trained one by one, with all threads; others side by side. The result does "
        "not depend on it.",
    ),
    replace(
        PARAMS["random_state"],
        text="Seed of the bags, and of every parameter random_state of the members; None takes a "
        "new one for each fit.",
    ),
    PARAMS["verbose"],
)
