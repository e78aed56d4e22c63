"""The four lemmas of AdaBoost, checked numerically with trees of the engine and of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from arboost import AdaBoostClassifier, GradientBoostingClassifier
from support.boosted import (
    LEARNERS,
    MORE,
    TABLES,
    TWO,
    all_stumps,
    close,
    fitted,
    recomputed,
    stump_votes,
    unit_votes,
)


class Recorder(DecisionTreeClassifier):
    """Tree that records its sample weights."""

    def fit(self, X, y, sample_weight=None):
        self.weight_ = sample_weight
        return super().fit(X, y, sample_weight=sample_weight)


# ---- the four lemmas ----

every_fit = [
    pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"]),
    pytest.mark.parametrize("learner", LEARNERS),
]


def each(*tables):
    def decorate(test):
        for mark in every_fit:
            test = mark(test)
        return pytest.mark.parametrize("table", tables)(test)

    return decorate


@each(*TWO, *MORE)
def test_lemma_1_the_distribution_follows_from_the_scores(table, learner, weighted):
    """D_{t+1} ~ D_1 exp(-y F_t), and each learner's error is over D_t."""
    model, X, y, weight = fitted(table, learner, weighted)
    by_hand = recomputed(model, X, y, weight)
    close(model.estimator_errors_, by_hand.errors)
    raw = model.decision_function(X)
    codes = np.searchsorted(model.classes_, y)
    margin = (2 * codes - 1) * raw if raw.ndim == 1 else raw[np.arange(len(y)), codes]
    follows = by_hand.distributions[0] * np.exp(-margin)
    close(by_hand.distributions[-1], follows / follows.sum(), rtol=1e-9)


def test_lemma_1_learners_get_that_distribution():
    X, y = TABLES["noise"]()
    model = AdaBoostClassifier(Recorder(max_depth=2), n_estimators=12).fit(X, y)
    distributions = recomputed(model, X, y).distributions
    assert len(model.estimators_) == 12
    for tree, distribution in zip(model.estimators_, distributions, strict=False):
        close(tree.weight_, distribution * len(y), rtol=1e-9)  # weights have mean 1


@pytest.mark.parametrize("table", ["noise", "noise, five classes"])
def test_lemma_1_trees_of_the_engine_get_that_distribution(table):
    """The tree of round t equals the first tree of a fit with sample weights D_t."""
    X, y = TABLES[table]()
    model = AdaBoostClassifier(n_estimators=8, max_depth=2).fit(X, y)
    distributions = recomputed(model, X, y).distributions
    votes = unit_votes(model, X)
    for tree, distribution, tree_votes in zip(
        model.estimators_, distributions, votes, strict=False
    ):
        alone = AdaBoostClassifier(n_estimators=1, max_depth=2).fit(
            X, y, sample_weight=distribution
        )
        np.testing.assert_array_equal(tree.forest.feature, alone.model_.forest.feature)
        close(unit_votes(alone, X)[0], tree_votes)


@each(*TWO)
@pytest.mark.parametrize("rate", [1.0, 0.3, 1.7])
@pytest.mark.parametrize("algorithm", ["discrete", "real", "gentle"])
def test_lemma_2_the_normalizers_bound_the_error(table, learner, weighted, rate, algorithm):
    """err <= exponential loss = product of Z_t, for any steps."""
    params = {"learning_rate": rate, "algorithm": algorithm}
    model, X, y, weight = fitted(table, learner, weighted, **params)
    assert len(model.normalizers_) == model.n_iter_
    product = np.cumprod(model.normalizers_)
    close(model.exponential_loss_, product)
    np.testing.assert_array_equal(model.training_error_bound_, model.exponential_loss_)
    assert (model.training_error_ <= product).all()
    wrong = [np.average(p != y, weights=weight) for p in model.staged_predict(X)]
    close(model.training_error_, wrong, rtol=1e-12)
    margins = [(2 * y - 1) * scores for scores in model.staged_decision_function(X)]
    close(model.exponential_loss_, [np.average(np.exp(-m), weights=weight) for m in margins])
    assert product[-1] < product[0] < 1


@each(*TWO)
def test_lemma_3_the_normalizer_is_twice_a_geometric_mean(table, learner, weighted):
    """Z_t = 2 sqrt(e_t (1 - e_t)), with alpha_t = 1/2 ln((1 - e_t) / e_t)."""
    model, X, y, weight = fitted(table, learner, weighted)
    e = model.estimator_errors_
    assert (e > 0).all()
    assert (e < 0.5).all()
    close(model.normalizers_, 2 * np.sqrt(e * (1 - e)))
    close(model.normalizers_, recomputed(model, X, y, weight).normalizers)
    close(model.estimator_weights_, 0.5 * np.log((1 - e) / e))


@each(*TWO)
def test_lemma_4_the_edges_bound_the_error(table, learner, weighted):
    """err <= exp(-2 sum gamma_t^2) <= exp(-2 T gamma^2) for the smallest gamma."""
    model, _, _, _ = fitted(table, learner, weighted)
    close(model.edges_, 0.5 - model.estimator_errors_)
    close(model.edge_bound_, np.exp(-2 * np.cumsum(model.edges_**2)))
    assert (model.training_error_bound_ <= model.edge_bound_ * (1 + 1e-12)).all()
    rounds = np.arange(1, model.n_iter_ + 1)
    smallest = np.minimum.accumulate(model.edges_)
    assert (model.training_error_ <= np.exp(-2 * rounds * smallest**2)).all()
    assert model.edge_bound_[-1] < 0.9


@each(*TWO)
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_lemma_4_with_shorter_steps(table, learner, weighted, rate):
    """Z is convex in the step: a part of the step gives at least that part of the decrease."""
    model, _, _, _ = fitted(table, learner, weighted, learning_rate=rate)
    factors = 1 - rate * (1 - np.exp(-2 * model.edges_**2))
    close(model.edge_bound_, np.cumprod(factors))
    assert (model.training_error_bound_ <= model.edge_bound_ * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    "params", [{"learning_rate": 1.5}, {"algorithm": "real"}, {"algorithm": "gentle"}], ids=str
)
def test_lemma_4_is_silent_where_it_does_not_hold(params):
    model, _, _, _ = fitted("noise", "engine", weighted=False, **params)
    assert np.isnan(model.edge_bound_).all()
    assert len(model.edge_bound_) == model.n_iter_


@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-9])
def test_lemma_3_of_tiny_errors(small):
    """Errors of less than half a row: the formula holds for every error except 0."""
    X, y = np.arange(6.0).reshape(-1, 1), np.array([0, 0, 1, 1, 1, 0])
    model = AdaBoostClassifier(n_estimators=1).fit(X, y, sample_weight=[1, 1, 1, 1, 1, small])
    e = small / (5 + small)
    close(model.estimator_errors_, [e], rtol=1e-8)
    close(model.estimator_weights_, [np.log((1 - e) / e) / 2], rtol=1e-8)
    close(model.normalizers_, [2 * np.sqrt(e * (1 - e))], rtol=1e-8)


# ---- more than two classes ----


@each(*MORE)
@pytest.mark.parametrize("rate", [1.0, 0.4, 1.5])
def test_bound_of_more_classes(table, learner, weighted, rate):
    model, X, y, weight = fitted(table, learner, weighted, learning_rate=rate)
    k, e, alpha = len(model.classes_), model.estimator_errors_, model.estimator_weights_
    by_hand = recomputed(model, X, y, weight)
    close(e, by_hand.errors)
    close(alpha, rate * (np.log((1 - e) / e) + np.log(k - 1)))
    close(model.normalizers_, by_hand.normalizers)
    close(
        model.normalizers_,
        (1 - e) * np.exp(-alpha * (1 - 1 / k)) + e * np.exp(alpha / k),
    )
    close(model.exponential_loss_, by_hand.losses)
    close(model.training_error_, by_hand.training_errors, rtol=1e-12)
    factors = (1 - e) * np.exp(-alpha / 2) + e * np.exp(alpha / 2)
    close(model.training_error_bound_, np.cumprod(factors))
    assert (model.training_error_ <= model.training_error_bound_).all()
    assert np.isnan(model.edge_bound_).all()


@pytest.mark.parametrize("algorithm", ["real", "gentle"])
def test_no_bound_of_more_classes_without_votes(algorithm):
    model, X, y, weight = fitted("wine", "engine", weighted=True, algorithm=algorithm)
    by_hand = recomputed(model, X, y, weight)
    assert np.isnan(model.training_error_bound_).all()
    close(model.estimator_errors_, by_hand.errors)
    close(model.exponential_loss_, by_hand.losses)
    close(model.normalizers_, by_hand.normalizers)
    assert model.estimator_weights_.tolist() == [1.0] * model.n_iter_


def test_the_bound_of_more_classes_is_not_the_loss():
    """SAMME's loss does not bound the error: rows with a third of the votes may be wrong."""
    model, _, _, _ = fitted("noise, five classes", "engine", weighted=False)
    assert (model.training_error_bound_ >= model.exponential_loss_).all()


# ---- small tables of any kind ----

tables = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def no_split_helps(X, codes, weight, n_classes):
    """Whether all classes have equal weight, in total and on both sides of every split."""

    def shares(rows):
        return np.bincount(codes[rows], weight[rows], n_classes) / weight[rows].sum()

    sides = [np.ones(len(X), bool)]
    for feature, threshold, _ in all_stumps(X):
        left = X[:, feature] <= threshold
        sides += [side for side in (left, ~left) if side.any()]
    return all(np.allclose(shares(side), 1 / n_classes) for side in sides)


@settings(max_examples=200)
@given(
    tables,
    st.integers(2, 4),
    st.sampled_from(["discrete", "real", "gentle"]),
    st.sampled_from([0.2, 1.0, 1.6]),
    st.integers(1, 2),
    st.booleans(),
)
def test_theory_of_any_table(rng, n_classes, algorithm, rate, depth, weighted):
    n_rows = int(rng.integers(n_classes, 25))
    X = rng.integers(0, 4, size=(n_rows, int(rng.integers(1, 4)))).astype(float)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes))
    weight = rng.integers(1, 5, n_rows).astype(float) if weighted else np.ones(n_rows)
    model = AdaBoostClassifier(
        n_estimators=6, max_depth=depth, learning_rate=rate, algorithm=algorithm
    )
    if no_split_helps(X, y, weight, n_classes):
        with pytest.raises(ValueError, match="nothing to boost"):
            model.fit(X, y, sample_weight=weight)
        return
    model.fit(X, y, sample_weight=weight)
    by_hand = recomputed(model, X, y, weight)
    tight = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(model.estimator_errors_, by_hand.errors, **tight)
    np.testing.assert_allclose(model.normalizers_, by_hand.normalizers, **tight)
    np.testing.assert_allclose(model.exponential_loss_, by_hand.losses, **tight)
    np.testing.assert_allclose(model.training_error_, by_hand.training_errors, **tight)
    assert (model.estimator_errors_ < 1 - 1 / n_classes).all()
    assert (model.estimator_weights_ > 0).all()
    if algorithm == "discrete":
        e = np.where(model.estimator_errors_ > 0, model.estimator_errors_, 1e-10)
        half = 2 if n_classes == 2 else 1
        expected = rate / half * (np.log((1 - e) / e) + np.log(n_classes - 1))
        np.testing.assert_allclose(model.estimator_weights_, expected, **tight)
    is_perfect = model.estimator_errors_[-1] < 1e-12
    assert (model.stop_reason_ == "perfect learner") == is_perfect
    slack = 1 + 1e-12
    if n_classes == 2 or algorithm == "discrete":
        assert (model.training_error_ <= model.training_error_bound_ * slack).all()
    if n_classes == 2 and algorithm == "discrete" and rate <= 1:
        # A perfect learner has a finite weight, while the formula's step is infinite.
        upto = model.n_iter_ - is_perfect
        assert (model.training_error_ <= model.edge_bound_ * slack)[:upto].all()
        assert (model.training_error_bound_ <= model.edge_bound_ * slack)[:upto].all()


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


def test_lemma_4_where_training_goes_on_at_another_rate():
    X, y = load_breast_cancer(return_X_y=True)
    first = AdaBoostClassifier(learning_rate=0.01, n_estimators=30).fit(X, y)
    model = AdaBoostClassifier(n_estimators=1).fit(X, y, init_model=first)
    bound = model.edge_bound_
    assert (np.isnan(bound) | (model.training_error_ <= bound)).all()
    np.testing.assert_array_equal(bound[:30], first.edge_bound_)


def test_a_loss_beyond_all_doubles():
    X = np.arange(8.0).reshape(-1, 1)
    y = (X[:, 0] > 3).astype(int)
    model = AdaBoostClassifier().fit(X, y)
    for _ in range(70):
        model = AdaBoostClassifier(n_estimators=1).fit(X, y, init_model=model)
    model = AdaBoostClassifier(n_estimators=1).fit(X, 1 - y, init_model=model)
    assert model.exponential_loss_[-1] > 1e300


@pytest.mark.parametrize("algorithm", ["real", "gentle"])
def test_weights_are_repeated_rows(algorithm):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, size=(200, 5)).astype(float)
    y = (X[:, 0] + rng.normal(scale=8.0, size=200) > 15).astype(int)
    weight = rng.integers(1, 4, 200)
    model = AdaBoostClassifier(n_estimators=8, algorithm=algorithm)
    weighted = model.fit(X, y, sample_weight=weight).decision_function(X)
    repeated = model.fit(np.repeat(X, weight, 0), np.repeat(y, weight)).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)
