"""AdaBoost is forward stagewise fitting of the exponential loss."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

from arboost import AdaBoostClassifier, GradientBoostingClassifier
from support.boosted import (
    TABLES,
    TWO,
    all_stumps,
    close,
    fitted,
    recomputed,
    stump_votes,
    unit_votes,
)

TEN = np.arange(10.0).reshape(-1, 1)
SIGNS = np.array([1, 1, 1, -1, -1, -1, 1, 1, 1, -1])


class Stump(ClassifierMixin, BaseEstimator):
    """Stump of least weighted error, which need not be the stump of least impurity."""

    def fit(self, X, y, sample_weight):
        self.classes_ = np.unique(y)
        sign = np.where(y == self.classes_[1], 1.0, -1.0)
        best = np.inf
        for feature, threshold, turn in all_stumps(X):
            wrong = sample_weight[turn * stump_votes(X, feature, threshold) != sign].sum()
            if wrong < best - 1e-12:
                best, self.rule_ = wrong, (feature, threshold, turn)
        self.weight_ = sample_weight
        return self

    def predict(self, X):
        feature, threshold, turn = self.rule_
        return self.classes_[(turn * stump_votes(X, feature, threshold) > 0).astype(int)]


@pytest.mark.parametrize("estimator", [None, Stump(), DecisionTreeClassifier(max_depth=1)], ids=str)
def test_textbook_example(estimator):
    """Ten points on a line (Li Hang 2012, example 8.1): three stumps reach zero training error."""
    model = AdaBoostClassifier(estimator, n_estimators=3).fit(TEN, SIGNS)
    close(model.estimator_errors_, [3 / 10, 3 / 14, 2 / 11], rtol=1e-12)
    close(model.estimator_weights_, np.log([7 / 3, 11 / 3, 9 / 2]) / 2, rtol=1e-12)
    changes = [np.flatnonzero(np.diff(vote[:, 0])) + 0.5 for vote in unit_votes(model, TEN)]
    assert [change.tolist() for change in changes] == [[2.5], [8.5], [5.5]]
    weights = recomputed(model, TEN, SIGNS).distributions * 462
    close(weights[1], np.repeat([33, 77, 33], [6, 3, 1]), rtol=1e-12)
    close(weights[2], np.repeat([21, 77, 49, 21], [3, 3, 3, 1]), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(TEN), SIGNS)
    assert model.training_error_.tolist() == [0.3, 0.3, 0.0]
    assert model.stop_reason_ == "n_estimators"


def small_table(n_rows):
    rng = np.random.default_rng(n_rows)
    X = np.round(rng.normal(size=(n_rows, 3)), 1)
    return X, (X.sum(axis=1) + rng.normal(scale=2.0, size=n_rows) > 0).astype(int)


@pytest.mark.parametrize("n_rows", [10, 15, 40])
def test_each_round_is_the_best_of_all_stumps_and_steps(n_rows):
    """With stumps of least error, stump and step jointly minimise the exponential loss."""
    X, y = (TEN, (SIGNS > 0).astype(int)) if n_rows == 10 else small_table(n_rows)
    model = AdaBoostClassifier(Stump(), n_estimators=6).fit(X, y)
    assert model.n_iter_ == 6
    sign, scores = 2.0 * y - 1, np.zeros(len(y))
    for loss, votes, alpha in zip(
        model.exponential_loss_, unit_votes(model, X), model.estimator_weights_, strict=True
    ):
        least = min(
            minimize_scalar(
                lambda step, before, unit: np.exp(-sign * (before + step * unit)).mean(),
                args=(scores, turn * stump_votes(X, feature, threshold)),
                bounds=(0, 5),
                method="bounded",
            ).fun
            for feature, threshold, turn in all_stumps(X)
        )
        assert loss <= least * (1 + 1e-12)
        assert loss == pytest.approx(least, rel=1e-6)
        scores += alpha * votes[:, 0]


@pytest.mark.parametrize("table", ["noise", "noise, five classes"])
def test_steps_minimise_the_loss_of_their_learner(table):
    """alpha minimises the loss for the given learner, also for impurity trees and more classes."""
    model, X, y, _ = fitted(table, "engine", weighted=False)
    k, row = len(model.classes_), np.arange(len(y))
    scores = 0.0
    for alpha, votes in zip(model.estimator_weights_, unit_votes(model, X), strict=True):

        def loss(step, scores=scores, votes=votes):
            u = scores + step * votes
            return np.exp(-((2 * y - 1) * u[:, 0] if k == 2 else u[row, y])).mean()

        at, around = loss(alpha), [loss(alpha * f) for f in (0.99, 1.01)]
        assert at < min(around)
        best = minimize_scalar(loss, bounds=(0, 2 * alpha), method="bounded")
        assert best.x == pytest.approx(alpha, rel=1e-4)
        scores = scores + alpha * votes


@pytest.mark.parametrize("table", ["noise", "noise, five classes"])
def test_stumps_are_the_best_by_impurity(table):
    """Brute force over all splits: no split has lower Gini impurity under D_t."""
    model, X, y, _ = fitted(table, "engine", weighted=False, n_estimators=10)
    distributions = recomputed(model, X, y).distributions

    def gini(weight, left):
        sums = [np.bincount(y[side], weight[side]) for side in (left, ~left)]
        return sum(one.sum() - (one**2).sum() / one.sum() for one in sums)

    splits = {(feature, threshold) for feature, threshold, _ in all_stumps(X)} - {(0, -np.inf)}
    for tree, weight in zip(model.estimators_, distributions, strict=False):
        feature, threshold = tree.forest.feature[0], tree.forest.threshold[0]
        least = min(gini(weight, X[:, f] <= t) for f, t in splits)
        assert gini(weight, X[:, feature] <= threshold) == pytest.approx(least, rel=1e-7)


@pytest.mark.parametrize("table", TWO)
@pytest.mark.parametrize("depth", [1, 3])
def test_gentle_boosting_is_newton_boosting_of_the_exponential_loss(table, depth):
    """Weighted least squares of +-1 on a tree is the Newton step: g = -y w, h = w."""
    X, y = TABLES[table]()
    gentle = AdaBoostClassifier(algorithm="gentle", n_estimators=10, max_depth=depth).fit(X, y)
    newton = GradientBoostingClassifier(
        loss="exponential",
        boosting="newton",
        learning_rate=1.0,
        reg_lambda=0.0,
        min_child_weight=0.0,
        base_score=0.5,
        n_estimators=gentle.n_iter_,
        max_depth=depth,
    ).fit(X, y)
    ours, theirs = gentle.model_.forest, newton.model_.forest
    np.testing.assert_array_equal(ours.feature, theirs.feature)
    np.testing.assert_array_equal(ours.threshold, theirs.threshold)
    np.testing.assert_array_equal(ours.left, theirs.left)
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        gentle.decision_function(X), newton.decision_function(X), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(gentle.predict_proba(X), newton.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("table", ["noise", "noise, five classes"])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_of_real_boosting_minimise_the_loss(table, weighted):
    """Leaf values are optimal after smoothing by one row per leaf, divided among the classes."""
    model, X, y, weight = fitted(table, "engine", weighted, algorithm="real", n_estimators=10)
    k = len(model.classes_)
    total = len(y) if weight is None else weight.sum()
    distributions = recomputed(model, X, y, weight).distributions * total
    for votes, row_weight in zip(unit_votes(model, X), distributions, strict=False):
        leaves = np.unique(votes, axis=0)
        assert len(leaves) == 2
        for leaf in leaves:
            rows = (votes == leaf).all(axis=1)
            sums = np.bincount(y[rows], row_weight[rows], k) + 1 / k
            u = np.array([-leaf[0], leaf[0]]) if k == 2 else leaf
            # Optimum under the constraint that scores sum to 0: all classes have the same loss.
            lost = sums * np.exp(-u)
            assert u.sum() == pytest.approx(0, abs=1e-12)
            np.testing.assert_allclose(lost, lost.mean(), rtol=1e-6)


@pytest.mark.parametrize("algorithm", ["real", "gentle"])
def test_every_round_of_every_variant_lowers_the_loss(algorithm):
    for table in ("noise", "noise, five classes"):
        model, _, _, _ = fitted(table, "engine", weighted=False, algorithm=algorithm)
        assert (model.normalizers_ < 1).all()
