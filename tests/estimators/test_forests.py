"""Random forests: bootstrap samples, means of trees, out-of-bag scores, weights."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score, r2_score

from arboost import (
    DataWarning,
    RandomForestClassifier,
    RandomForestRegressor,
    load,
)
from arboost.estimators.forest_target import round_middle
from arboost.trees.samples import RowDraws, draw_size, undrawn_rows
from support.forest_cases import NAMES, TARGETS, X, Y, answers, brute_force, forest, saved
from support.processes import run

# Bootstrap samples


def test_share_of_rows_that_are_never_drawn():
    """Out-of-bag share: (1 - 1/n)^n, which tends to 1/e = 36.8 %, with its standard deviation."""
    n, n_trees = 20_000, 50
    draws = RowDraws(n_rows=n, n_draws=n, seed=3)
    shares = [len(undrawn_rows(draws.drawn(tree).rows, n)) / n for tree in range(n_trees)]
    deviation = math.sqrt((math.exp(-1) - 2 * math.exp(-2)) / n)
    assert np.mean(shares) == pytest.approx((1 - 1 / n) ** n, abs=4 * deviation / n_trees**0.5)
    assert np.mean(shares) == pytest.approx(0.368, abs=0.001)
    assert 0.6 * deviation < np.std(shares) < 1.5 * deviation


def test_pairs_of_trees_are_independent():
    """Share of rows that are out of bag for two trees: 1/e^2."""
    n = 50_000
    draws = RowDraws(n_rows=n, n_draws=n, seed=0)
    first, second = (undrawn_rows(draws.drawn(tree).rows, n) for tree in (0, 1))
    assert len(np.intersect1d(first, second)) / n == pytest.approx(math.exp(-2), abs=0.006)


def test_weights_are_chances():
    n = 30_000
    weight = np.where(np.arange(n) % 3 == 0, 4.0, 1.0)
    sample = RowDraws(n_rows=n, n_draws=n, seed=1, weight=weight).sample(5, 1)
    counts = np.zeros(n)
    counts[sample.positions()] = sample.weights()
    assert counts.sum() == n
    assert counts[weight == 4].mean() == pytest.approx(2.0, abs=0.06)
    assert counts[weight == 1].mean() == pytest.approx(0.5, abs=0.03)


def test_number_of_draws():
    assert [draw_size(given, 40) for given in (None, 7, 0.5, 0.001, 1.5)] == [40, 7, 20, 1, 60]
    model = forest("numbers", max_samples=0.25).fit(X, Y)
    assert {len(rows) for rows in model.estimators_samples_} == {75}
    all_rows = forest("numbers", bootstrap=False).fit(X, Y).estimators_samples_
    np.testing.assert_array_equal(all_rows[3], np.arange(300))


def test_samples_of_rows_that_were_given():
    """Samples are indices into the given rows; rows of weight 0 have indices but are not drawn."""
    weight = np.ones(300)
    weight[::3] = 0.0
    model = forest("numbers").fit(X, Y, weight)
    drawn = np.concatenate(model.estimators_samples_)
    assert drawn.max() == 299
    assert not (drawn % 3 == 0).any()


def test_trees_are_those_of_their_samples():
    """Each tree equals a single tree fitted to its bootstrap sample, repeated rows included."""
    model = forest("numbers", max_features=None, n_estimators=4).fit(X, Y)
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        alone = RandomForestRegressor(1, bootstrap=False, max_features=None).fit(X[rows], Y[rows])
        np.testing.assert_allclose(alone.predict(X[rows]), tree.predict(X[rows]), rtol=1e-9)


# Means of trees


@pytest.mark.parametrize("kind", TARGETS)
def test_prediction_is_the_mean_of_the_trees(kind):
    model = forest(kind).fit(X, TARGETS[kind])
    mean = np.mean([answers(tree, X) for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(answers(model, X), mean, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", TARGETS)
def test_full_trees_know_all_their_rows(kind):
    model = forest(kind, bootstrap=False, n_estimators=3).fit(X, TARGETS[kind])
    predicted = model.predict(X)
    if kind == "numbers":
        np.testing.assert_allclose(predicted, Y, rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(predicted, TARGETS[kind])


@pytest.mark.parametrize("kind", TARGETS)
def test_saved_forests_predict_alike(kind, tmp_path):
    model = forest(kind).fit(X, TARGETS[kind])
    saved(model, tmp_path)
    again = load(tmp_path / "model.arb")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_whole_numbers_stay_whole():
    """A leaf of equal targets has exactly their value."""
    y = np.round(Y) + 1_000_003
    model = RandomForestRegressor(3, bootstrap=False, max_features=None).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


def test_middle():
    assert round_middle(np.array([5.0, 5.0])) == 5.0
    y = np.array([1e9, 1e9 + 3])
    assert (y - round_middle(y)).tolist() == [-1.5, 1.5]
    assert math.isfinite(round_middle(np.array([-8e307, 8e307])))
    assert round_middle(np.array([0.0, 5e-324])) in (0.0, 5e-324)


def test_importances_are_means_of_shares():
    model = forest("numbers").fit(X, Y)
    by_hand = np.mean([tree.feature_importances_ for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(model.feature_importances_, by_hand, rtol=1e-12)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    constant = forest("numbers").fit(X, np.ones(300))
    assert not constant.feature_importances_.any()
    assert (constant.predict(X) == 1.0).all()


def test_features_are_drawn_for_every_node():
    """max_features=1: all six features split about as often; with all six the best dominates."""
    one = forest("numbers", max_features=1, n_estimators=30).fit(X, Y)
    roots = [tree.model_.forest.feature[0] for tree in one.estimators_]
    assert len(set(roots)) > 3
    every = forest("numbers", max_features=None, n_estimators=30).fit(X, Y)
    assert len({tree.model_.forest.feature[0] for tree in every.estimators_}) < 3
    assert (one.max_features_, every.max_features_) == (1, 6)


# Out of bag


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_out_of_bag_numbers_by_brute_force(n_jobs):
    model = forest("numbers", n_estimators=20, oob_score=True, n_jobs=n_jobs).fit(X, Y)
    expected = brute_force(model, X, 300, 1)[:, 0]
    np.testing.assert_array_equal(model.oob_prediction_, expected)
    assert model.oob_score_ == r2_score(Y, expected)


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_out_of_bag_classes_by_brute_force(kind):
    y = TARGETS[kind]
    model = forest(kind, n_estimators=25, oob_score=True).fit(X, y)
    expected = brute_force(model, X, 300, len(model.classes_))
    np.testing.assert_allclose(model.oob_decision_function_, expected, rtol=1e-12, atol=1e-12)
    assert model.oob_score_ == np.mean(model.classes_[expected.argmax(axis=1)] == y)


def test_out_of_bag_says_what_new_rows_would():
    X, y = make_classification(4000, 10, flip_y=0.2, random_state=1)
    model = RandomForestClassifier(50, oob_score=True).fit(X[:2000], y[:2000])
    assert model.oob_score_ == pytest.approx(model.score(X[2000:], y[2000:]), abs=0.03)


def test_rows_that_every_tree_has_drawn():
    with pytest.warns(DataWarning, match="drawn for every tree"):
        model = forest("numbers", n_estimators=1, oob_score=True).fit(X, Y)
    drawn = np.unique(model.estimators_samples_[0])
    assert np.isnan(model.oob_prediction_[drawn]).all()
    assert np.isnan(model.oob_prediction_).sum() == len(drawn)
    assert math.isfinite(model.oob_score_)


def test_out_of_bag_leaves_out_rows_of_no_weight():
    weight = np.ones(300)
    weight[:50] = 0.0
    model = forest("three classes", n_estimators=30, oob_score=True).fit(X, NAMES, weight)
    assert model.oob_decision_function_.shape == (300, 3)
    assert np.isnan(model.oob_decision_function_[:50]).all()
    assert not np.isnan(model.oob_decision_function_[50:]).any()


def test_out_of_bag_by_a_function():
    def micro(y, predicted):
        return f1_score(y, predicted, average="micro")

    model = forest("three classes", n_estimators=30, oob_score=micro).fit(X, NAMES)
    usual = forest("three classes", n_estimators=30, oob_score=True).fit(X, NAMES)
    assert model.oob_score_ == pytest.approx(usual.oob_score_)
    model.set_params(oob_score=False).fit(X, NAMES)
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_decision_function_")


def test_a_failed_score_changes_nothing():
    def broken(y, predicted):
        raise RuntimeError("broken")

    model = forest("numbers", n_estimators=20).fit(X, Y)
    before = dict(vars(model.set_params(oob_score=broken)))
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(X[:20], Y[:20])
    assert vars(model) == before


# Weights


@pytest.mark.parametrize("kind", TARGETS)
def test_weights_are_repeated_rows(kind):
    y = TARGETS[kind]
    weight = np.random.default_rng(0).integers(0, 4, 300)
    model = forest(kind, bootstrap=False, max_features=None, n_estimators=2)
    weighted = answers(model.fit(X, y, weight), X)
    repeated = answers(model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)), X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-9)


def test_drawing_by_weight_is_like_repeated_rows():
    """Large forests on weighted and on repeated rows are close; without weights they are not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200)
    weight = np.where(X[:, 1] > 0, 5, 1)
    y = np.where(weight == 5, y + 2.0, y)
    settings = {"min_samples_leaf": 20, "max_features": None, "random_state": 0}
    weighted = RandomForestRegressor(400, **settings).fit(X[:, :1], y, weight)
    rows = np.repeat(np.arange(200), weight)
    repeated = RandomForestRegressor(400, max_samples=200, **settings).fit(X[rows, :1], y[rows])
    plain = RandomForestRegressor(400, **settings).fit(X[:, :1], y)
    near = np.abs(weighted.predict(X[:, :1]) - repeated.predict(X[:, :1])).mean()
    far = np.abs(weighted.predict(X[:, :1]) - plain.predict(X[:, :1])).mean()
    assert near < 0.25
    assert far > 2 * near


@pytest.mark.parametrize("bootstrap", [False, True])
def test_class_weights_by_name(bootstrap, tmp_path):
    counts = {label: np.count_nonzero(label == NAMES) for label in np.unique(NAMES)}
    factors = {label: 300 / (3 * count) for label, count in counts.items()}
    model = forest("three classes", n_estimators=5, bootstrap=bootstrap)
    balanced = model.set_params(class_weight="balanced").fit(X, NAMES).predict_proba(X)
    by_hand = model.set_params(class_weight=factors).fit(X, NAMES).predict_proba(X)
    np.testing.assert_array_equal(balanced, by_hand)
    weight = np.array([factors[label] for label in NAMES])
    weighted = model.set_params(class_weight=None).fit(X, NAMES, weight).predict_proba(X)
    np.testing.assert_array_equal(balanced, weighted)


def test_balanced_among_the_rows_of_a_tree():
    """Trees of a single leaf predict equal probabilities for all classes."""
    y = np.array(["rare"] * 30 + ["usual"] * 270)
    model = forest(
        "two classes", class_weight="balanced_subsample", max_depth=1, min_samples_leaf=200
    )
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X), 0.5, atol=1e-6)
    overall = model.set_params(class_weight="balanced").fit(X, y).predict_proba(X)
    assert np.abs(overall - 0.5).max() > 1e-4
    # Without bootstrap there are no subsamples: "balanced_subsample" equals "balanced".
    model.set_params(bootstrap=False, min_samples_leaf=1, max_depth=3)
    same = model.fit(X, y).predict_proba(X)
    by_sample = model.set_params(class_weight="balanced_subsample").fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(same, by_sample)


# Peak of the resident memory beyond that of a forest of few trees; the trees have three nodes.
PEAK = """
    import resource
    import sys

    import numpy as np

    import arboost

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2)).astype(np.float32)
    y = X[:, 0] > rng.normal(size=len(X))

    def peak(n_trees):
        forest = getattr(arboost, sys.argv[1])
        forest(n_estimators=n_trees, max_depth=1, bootstrap=True, n_jobs=2).fit(X, y)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    few = peak(8)
    print(peak(200) - few)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts KiB on Linux only")
@pytest.mark.parametrize("kind", ["RandomForestClassifier", "ExtraTreesRegressor"])
def test_samples_are_released_with_their_trees(kind):
    sample_kib = 40_000 * 8 // 1024
    assert int(run(PEAK, kind)) < 20 * sample_kib
