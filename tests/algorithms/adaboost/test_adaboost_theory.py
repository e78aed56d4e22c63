"""The four lemmas of AdaBoost, checked numerically with trees of the engine and of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from arboost import AdaBoostClassifier
from support.boosted import (
    LEARNERS,
    MORE,
    TABLES,
    TWO,
    all_stumps,
    close,
    fitted,
    recomputed,
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
