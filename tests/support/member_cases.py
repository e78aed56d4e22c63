"""Shared cases of estimators as members: data, hand-made learners, models of a few rounds."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from arboost.estimators.adaboost.estimator_learners import (
    EstimatorLearners,
    EstimatorModel,
    MemberVotes,
)
from arboost.estimators.adaboost.schemes import ClassScheme, R2Scheme
from arboost.estimators.member_fits import member_table
from arboost.training.inputs import table_rows

ALGORITHMS = ("discrete", "real", "gentle")
CLASSES = {2: np.array(["no", "yes"]), 3: np.array(["a", "b", "c"]), 4: np.array([-3, 0, 2, 7])}


def classes_data(n_classes, n_rows=200):
    X, y = make_classification(
        n_rows, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=n_classes
    )
    return X, y.astype(float)


def class_scheme(n_classes, algorithm="discrete"):
    return ClassScheme(algorithm=algorithm, n_classes=n_classes, rate=1.0)


REGRESSION = MemberVotes(R2Scheme(error="linear", rate=1.0))


def class_votes(n_classes, algorithm="discrete"):
    return MemberVotes(class_scheme(n_classes, algorithm), CLASSES[n_classes])


def rows_of(X, y, weight=None):
    return table_rows(member_table(X), y, weight)


def learners_of(estimator, X, y, votes, *, weight=None, evaluations=(), seed=0):
    return EstimatorLearners(estimator, rows_of(X, y, weight), evaluations, votes, seed=seed)


class Drawn:
    """Rows drawn by their weights, as `core.Sample` holds them."""

    def __init__(self, weight, draw=0):
        n_rows = len(weight)
        chance = np.asarray(weight, float) / np.sum(weight)
        counts = np.random.default_rng(draw).multinomial(n_rows, chance)
        self._positions = np.flatnonzero(counts).astype(np.uint32)
        self._weights = counts[counts > 0].astype(np.float32)

    def positions(self):
        return self._positions

    def weights(self):
        return self._weights


def model_of(learners, weights, votes, X, n_rows, **changes):
    link = "logistic_of_double"
    if votes.classes is None:
        link = "identity"
    elif len(votes.classes) > 2:
        link = "softmax"
    members = learners.fitted(len(weights))
    fields = {
        "members": members,
        "weights": np.array(weights),
        "covers": np.full(len(members), float(n_rows)),
        "votes": votes,
        "schema": member_table(X).schema,
        "link": link,
        "params": {},
        "combine": "median" if votes.classes is None else "sum",
    }
    return EstimatorModel(**fields | changes)


def boosted(X, y, n_classes, algorithm="discrete", n_rounds=8, estimator=None):
    """Return a model of a few rounds, each with the weight 0.5."""
    votes = class_votes(n_classes, algorithm)
    learners = learners_of(estimator or DecisionTreeClassifier(max_depth=2), X, y, votes)
    for number in range(n_rounds):
        learners.learn(np.ones(len(y)), Drawn(np.ones(len(y)), number), number)
        learners.keep(0.5)
    return model_of(learners, [0.5] * n_rounds, votes, X, len(y))


class Wrong(BaseEstimator):
    """A learner whose predictions are its parameter."""

    def __init__(self, answers=None):
        self.answers = answers

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        return self.answers

    predict_proba = predict
