"""What tests of members share: data, learners by hand, and models of a few rounds."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from arboost.algorithms.adaboost.estimator_learners import MemberLearners, MemberSet
from arboost.algorithms.adaboost.estimator_model import Ballot, MemberModel
from arboost.algorithms.adaboost.schemes import Amounts, Votes
from arboost.algorithms.members.tables import member_table
from arboost.losses import Target

ALGORITHMS = ("discrete", "real", "gentle")
CLASSES = {2: np.array(["no", "yes"]), 3: np.array(["a", "b", "c"]), 4: np.array([-3, 0, 2, 7])}


def classes_data(n_classes, n_rows=200):
    X, y = make_classification(
        n_rows, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=n_classes
    )
    return X, y.astype(float)


def votes_scheme(n_classes, algorithm="discrete"):
    return Votes(algorithm=algorithm, n_classes=n_classes, rate=1.0)


NUMBERS = Ballot(Amounts(error="linear", rate=1.0))


def ballot_of(n_classes, algorithm="discrete"):
    return Ballot(votes_scheme(n_classes, algorithm), CLASSES[n_classes])


def learners_of(estimator, X, y, ballot, *, evaluations=(), seed=0):
    data = MemberSet("training", member_table(X).X, Target(y, None))
    return MemberLearners(estimator, data, evaluations, ballot, seed=seed)


class Drawn:
    """Rows that were drawn by their weights, as `core.Sample` holds them."""

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


def model_of(learners, weights, ballot, X, n_rows, **changes):
    link = "logistic_of_double"
    if ballot.classes is None:
        link = "identity"
    elif len(ballot.classes) > 2:
        link = "softmax"
    members = learners.fitted(len(weights))
    fields = {
        "members": members,
        "weights": np.array(weights),
        "covers": np.full(len(members), float(n_rows)),
        "ballot": ballot,
        "schema": member_table(X).schema,
        "link": link,
        "params": {},
        "combine": "median" if ballot.classes is None else "sum",
    }
    return MemberModel(**fields | changes)


def boosted(X, y, n_classes, algorithm="discrete", n_rounds=8, estimator=None):
    """Return a model of a few rounds, each with the weight 0.5."""
    ballot = ballot_of(n_classes, algorithm)
    learners = learners_of(estimator or DecisionTreeClassifier(max_depth=2), X, y, ballot)
    for number in range(n_rounds):
        learners.learn(np.ones(len(y)), Drawn(np.ones(len(y)), number), number)
        learners.keep(0.5)
    return model_of(learners, [0.5] * n_rounds, ballot, X, len(y))


class Wrong(BaseEstimator):
    """A learner whose answers are those it is made with."""

    def __init__(self, answers=None):
        self.answers = answers

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        return self.answers

    predict_proba = predict
