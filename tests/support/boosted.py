"""Reference AdaBoost: the textbook's recursion for the distribution over rows.

A fit computes the distribution from the scores. The reference multiplies it from round to round,
using only the predictions of the fitted learners.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier

from arboost import AdaBoostClassifier


def stump_votes(X, feature, threshold):
    return np.where(X[:, feature] <= threshold, -1.0, 1.0)


def all_stumps(X):
    """Yield (feature, threshold, direction) of every stump, including the two constants."""
    yield from ((0, -np.inf, turn) for turn in (1.0, -1.0))
    for feature in range(X.shape[1]):
        for low, high in itertools.pairwise(np.unique(X[:, feature])):
            yield from ((feature, (low + high) / 2, turn) for turn in (1.0, -1.0))


@dataclass
class Recomputed:
    """Values per round, shape (n_rounds,); `distributions` (n_rounds + 1, n_rows) sum to 1."""

    errors: np.ndarray
    normalizers: np.ndarray
    losses: np.ndarray
    training_errors: np.ndarray
    distributions: np.ndarray
    scores: np.ndarray


def unit_votes(model, X):
    """Return the unweighted votes of each learner, from its own predictions."""
    if model.estimator is None:
        pairs = zip(model.estimators_, model.estimator_weights_, strict=True)
        return [tree.predict_raw(X) / weight for tree, weight in pairs]
    k = len(model.classes_)
    chosen = [model.classes_[:, None] == one.predict(X) for one in model.estimators_]
    if k == 2:
        return [np.where(one[1], 1.0, -1.0)[:, None] for one in chosen]
    return [one.T - 1.0 / k for one in chosen]


def recomputed(model, X, y, weight=None):
    n_rows, n_classes = len(y), len(model.classes_)
    codes = np.searchsorted(model.classes_, y)
    start = np.ones(n_rows) if weight is None else np.asarray(weight, float)
    start = start / start.sum()

    def margin_of(scores):
        if n_classes == 2:
            return (2 * codes - 1) * scores[:, 0]
        return scores[np.arange(n_rows), codes]

    def is_wrong(scores):
        predicted = scores[:, 0] > 0 if n_classes == 2 else scores.argmax(axis=1)
        return predicted != codes

    distributions, scores = [start], 0.0
    found = {"errors": [], "normalizers": [], "losses": [], "training_errors": []}
    for alpha, votes in zip(model.estimator_weights_, unit_votes(model, X), strict=True):
        found["errors"].append(distributions[-1][is_wrong(votes)].sum())
        grown = distributions[-1] * np.exp(-alpha * margin_of(votes))
        found["normalizers"].append(grown.sum())
        distributions.append(grown / grown.sum())
        scores = scores + alpha * votes
        found["losses"].append(start @ np.exp(-margin_of(scores)))
        found["training_errors"].append(start[is_wrong(scores)].sum())
    facts = {name: np.array(values) for name, values in found.items()}
    return Recomputed(**facts, distributions=np.array(distributions), scores=scores)


def noisy_table(n_rows=300, n_classes=2, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 30, size=(n_rows, 5)).astype(float)
    signal = X[:, 0] + 0.5 * X[:, 1] + rng.normal(scale=8.0, size=n_rows)
    cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(cuts, signal)


TABLES = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "noise": noisy_table,
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "noise, five classes": lambda: noisy_table(n_classes=5),
}
TWO = ["breast cancer", "noise"]
MORE = ["iris", "wine", "noise, five classes"]
LEARNERS = {"engine": None, "scikit-learn": DecisionTreeClassifier(max_depth=1)}


@cache
def fitted(table, learner, weighted, n_estimators=25, **params):
    X, y = TABLES[table]()
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if weighted else None
    model = AdaBoostClassifier(LEARNERS[learner], n_estimators=n_estimators, **params)
    return model.fit(X, y, sample_weight=weight), X, y, weight


def close(found, expected, rtol=1e-10):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-14)
