"""AdaBoost against scikit-learn's AdaBoost, with the same trees, seeds and sampled rows.

Both libraries set the seed of every tree, and R2 samples rows. `ReplayedState` replaces
scikit-learn's generator and returns the seeds and rows of our fit, so that both grow the same trees
and only boosting is compared. scikit-learn's learner weights for two classes are twice those of the
textbooks (the factor cancels in every prediction). Its row weights are multiplied from round to
round, ours follow from the scores; 1e-10 is far above that difference and far below any other.

Between two equal splits the last bits of the weights decide: both divide the training rows alike,
but not other rows, and later trees may differ. `Steady` trees round the weights first, so that both
libraries grow the same trees, for training rows and held-out rows.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn import ensemble
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_friedman1,
    make_hastie_10_2,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from arboost import AdaBoostClassifier, AdaBoostRegressor
from arboost.backend import core


class ReplayedState(RandomState):
    """A generator that returns the seeds and samples of our fit."""

    def __init__(self, seeds, draws=()):
        super().__init__(0)
        self.seeds, self.draws = iter(seeds), iter(draws)

    def randint(self, high):
        return next(self.seeds)

    def choice(self, rows, *, size, replace, p):
        assert size == len(rows) == len(p)
        assert replace
        return next(self.draws)(p)


def rounded(weight):
    """Return the weights as shares of their sum, rounded to nine digits."""
    share = weight / weight.sum()
    unit = 10.0 ** (np.floor(np.log10(share)) - 8)
    return np.round(share / unit) * unit


class Steady(DecisionTreeClassifier):
    """A tree whose splits do not depend on the last bits of the weights."""

    def fit(self, X, y, sample_weight):
        return super().fit(X, y, sample_weight=rounded(sample_weight))


class SteadyRegressor(DecisionTreeRegressor):
    """A regression tree whose splits do not depend on the last bits of the weights."""

    def fit(self, X, y, sample_weight):
        return super().fit(X, y, sample_weight=rounded(sample_weight))


def seeds_of(model):
    return [member.random_state for member in model.estimators_]


def blobs(n_rows, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    return rng.normal(size=(n_rows, 4)) + rng.normal(size=(n_classes, 4))[y], y


CLASSES = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "hastie": lambda: make_hastie_10_2(500, random_state=0),
    "two blobs": lambda: blobs(300, 2),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "six blobs": lambda: blobs(400, 6),
    "digits": lambda: tuple(part[:500] for part in load_digits(return_X_y=True)),
}
NUMBERS = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "friedman": lambda: make_friedman1(300, noise=1.0, random_state=0),
}
load = cache(lambda name: (CLASSES | NUMBERS)[name]())


def same(found, expected, rtol=1e-10):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12)


def pairs(parts):
    """Return every second row for training, and the other rows as held-out rows."""
    X, y = parts
    return X[::2], y[::2], X[1::2], y[1::2]


def check_classifiers(ours, theirs, tables):
    k, n = len(ours.classes_), ours.n_iter_
    assert len(theirs.estimators_) == n
    same(ours.estimator_errors_, theirs.estimator_errors_[:n])
    same(ours.estimator_weights_ * (2 if k == 2 else 1), theirs.estimator_weights_[:n])
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    same(ours.feature_importances_, theirs.feature_importances_)
    # scikit-learn's scores are means of votes: 1 for a class and -1 / (K - 1) for the others. For
    # two classes it returns their difference.
    scale = k / (k - 1) / ours.estimator_weights_.sum()
    for X in tables:
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        same(ours.decision_function(X) * scale, theirs.decision_function(X))
        for our, their in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
            np.testing.assert_array_equal(our, their)


def both_classifiers(X, y, tree, weight=None, **shape):
    ours = AdaBoostClassifier(tree, **shape).fit(X, y, sample_weight=weight)
    theirs = ensemble.AdaBoostClassifier(tree, **shape, random_state=ReplayedState(seeds_of(ours)))
    return ours, theirs.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    ("depth", "rate", "weighted"),
    [(1, 1.0, False), (1, 0.5, True), (2, 1.0, True), (3, 0.1, False)],
)
def test_classifier(name, depth, rate, weighted):
    X, y, X_new, _ = pairs(load(name))
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    tree = Steady(max_depth=depth, min_samples_leaf=1 if depth < 3 else 8)
    ours, theirs = both_classifiers(X, y, tree, weight, n_estimators=15, learning_rate=rate)
    assert ours.n_iter_ == 15
    check_classifiers(ours, theirs, (X, X_new))


@pytest.mark.parametrize("name", ["hastie", "six blobs"])
def test_plain_trees(name):
    """Without rounded weights: the splits of these stumps have no ties."""
    X, y, X_new, _ = pairs(load(name))
    ours, theirs = both_classifiers(X, y, DecisionTreeClassifier(max_depth=1), n_estimators=15)
    check_classifiers(ours, theirs, (X, X_new))


@pytest.mark.parametrize("name", ["breast cancer", "iris"])
def test_many_rounds(name):
    X, y, X_new, _ = pairs(load(name))
    ours, theirs = both_classifiers(X, y, Steady(max_depth=1), n_estimators=100, learning_rate=0.3)
    assert ours.n_iter_ == 100
    check_classifiers(ours, theirs, (X, X_new))


def test_perfect_learner():
    """Both fits end there; scikit-learn gives the perfect learner the weight 1."""
    X, y, X_new, _ = pairs(load("wine"))
    ours, theirs = both_classifiers(X, y, Steady(), n_estimators=5)
    assert ours.n_iter_ == len(theirs.estimators_) == 1
    assert ours.estimator_errors_.tolist() == [theirs.estimator_errors_[0]] == [0.0]
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))


# ---- AdaBoost.R2 ----

LOSSES = ["linear", "square", "exponential"]


def drawn_by(number):
    """Return a sample by the random numbers of our fit and the weights of scikit-learn."""

    def draw(p):
        sample = core.Sample()
        sample.draw_by_weight(np.ascontiguousarray(p), 0, number, 1)
        return np.repeat(sample.positions().astype(int), sample.weights().astype(int))

    return draw


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("name", "depth", "rate", "weighted"),
    [("diabetes", 3, 1.0, False), ("friedman", 2, 0.5, True), ("friedman", 4, 1.0, False)],
)
def test_regressor_that_draws(loss, name, depth, rate, weighted):
    X, y, X_new, _ = pairs(load(name))
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    tree = DecisionTreeRegressor(max_depth=depth)
    shape = {"estimator": tree, "n_estimators": 20, "learning_rate": rate, "loss": loss}
    ours = AdaBoostRegressor(**shape, resample=True, max_restarts=0)
    ours.fit(X, y, sample_weight=weight)
    state = ReplayedState([*seeds_of(ours), 0], map(drawn_by, range(20)))
    theirs = ensemble.AdaBoostRegressor(**shape, random_state=state)
    theirs.fit(X, y, sample_weight=weight)
    n = ours.n_iter_
    assert n == len(theirs.estimators_) > 5
    same(ours.estimator_errors_, theirs.estimator_errors_[:n])
    same(ours.estimator_weights_, theirs.estimator_weights_[:n])
    same(ours.feature_importances_, theirs.feature_importances_)
    for rows in (X, X_new):
        same(ours.predict(rows), theirs.predict(rows))
        for our, their in zip(ours.staged_predict(rows), theirs.staged_predict(rows), strict=True):
            same(our, their)


def r2_by_hand(X, y, weight, seeds, *, loss, rate, depth):
    """Drucker's algorithm with learners that take weights: trees, errors and learner weights."""
    distribution = weight / weight.sum()
    trees, errors, weights = [], [], []
    for seed in seeds:
        tree = SteadyRegressor(max_depth=depth, random_state=seed)
        tree.fit(X, y, sample_weight=distribution * len(y))
        missed = np.abs(tree.predict(X) - y)
        share = missed / missed.max()
        lost = {"linear": share, "square": share**2, "exponential": 1 - np.exp(-share)}[loss]
        mean = distribution @ lost
        beta = mean / (1 - mean)
        distribution = distribution * beta ** (rate * (1 - lost))
        distribution /= distribution.sum()
        trees.append(tree)
        errors.append(mean)
        weights.append(rate * np.log(1 / beta))
    return trees, np.array(errors), np.array(weights)


def median_by_hand(values, weights):
    """Return the weighted median: the smallest value at which the weights reach half their sum."""
    order = values.argsort()
    reached = np.cumsum(weights[order])
    return values[order][np.searchsorted(reached, reached[-1] / 2)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("name", "depth", "rate", "weighted"),
    [("diabetes", 3, 1.0, False), ("diabetes", 2, 0.5, True), ("friedman", 4, 1.0, False)],
)
def test_regressor_that_weighs(loss, name, depth, rate, weighted):
    X, y, X_new, _ = pairs(load(name))
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    tree = SteadyRegressor(max_depth=depth)
    ours = AdaBoostRegressor(tree, n_estimators=12, learning_rate=rate, loss=loss)
    ours.fit(X, y, sample_weight=weight if weighted else None)
    trees, errors, weights = r2_by_hand(
        X, y, weight, seeds_of(ours), loss=loss, rate=rate, depth=depth
    )
    assert ours.n_iter_ > 5
    same(ours.estimator_errors_, errors)
    same(ours.estimator_weights_, weights)
    for rows in (X, X_new):
        values = np.stack([tree.predict(rows) for tree in trees], axis=1)
        same(ours.predict(rows), [median_by_hand(row, weights) for row in values])


# ---- trees of the engine against exact trees ----


def few_values(n_rows, n_classes, seed=0):
    """Return a table of at most 200 values a column, with enough noise to exclude equal splits."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 200, size=(n_rows, 5)).astype(float)
    signal = X[:, 0] - X[:, 1] * X[:, 2] / 200 + rng.normal(scale=50, size=n_rows)
    cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(cuts, signal), signal


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize(("depth", "rate", "rounds"), [(1, 1.0, 40), (1, 0.3, 40), (3, 1.0, 12)])
@pytest.mark.parametrize("method", ["hist", "exact"])
def test_engine_trees_are_exact_trees(n_classes, depth, rate, rounds, method):
    X, y, _ = few_values(2000, n_classes)
    shape = {"n_estimators": rounds, "learning_rate": rate}
    ours = AdaBoostClassifier(max_depth=depth, tree_method=method, **shape).fit(X, y)
    theirs = ensemble.AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=depth), **shape, random_state=0
    ).fit(X, y)
    assert ours.n_iter_ == len(theirs.estimators_) == rounds
    same(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-9)
    double = 2 if n_classes == 2 else 1
    same(ours.estimator_weights_ * double, theirs.estimator_weights_, rtol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_engine_stumps_on_real_tables(name):
    """Deeper trees have equal splits: with depth 3, iris after 28 rounds and wine after 2."""
    X, y = load(name)
    ours = AdaBoostClassifier(n_estimators=80).fit(X, y)
    theirs = ensemble.AdaBoostClassifier(n_estimators=80, random_state=0).fit(X, y)
    assert ours.n_iter_ == len(theirs.estimators_) == 80
    same(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_engine_trees_are_exact_trees_of_numbers(loss):
    X, _, y = few_values(1000, 2)
    shape = {"n_estimators": 12, "loss": loss}
    ours = AdaBoostRegressor(**shape, max_depth=3).fit(X, y)
    exact = AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), **shape).fit(X, y)
    assert ours.n_iter_ == exact.n_iter_ > 5
    same(ours.estimator_errors_, exact.estimator_errors_, rtol=1e-7)
    same(ours.estimator_weights_, exact.estimator_weights_, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(X), exact.predict(X), atol=1e-6 * np.ptp(y))
