"""GOSS: the rows of large gradients, and a weighted sample of the others."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor, _core
from support.growing import core_params, encode, gradients_of
from support.reference import Settings
from support.trees import trees_of

SHARES = [(0.2, 0.1), (0.05, 0.3), (0.6, 0.4)]


def one_side(gradients, top_rate=0.2, other_rate=0.1, seed=0, draw=0, n_threads=1):
    sample = _core.Sample()
    sample.draw_one_side(gradients, top_rate, other_rate, seed, draw, n_threads)
    return sample.positions(), sample.weights()


@pytest.mark.parametrize(("top_rate", "other_rate"), SHARES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_largest_gradients_are_kept_and_of_the_others_a_share(outputs, top_rate, other_rate):
    rng = np.random.default_rng(0)
    n = 50_000
    g = rng.normal(size=(n, outputs)) * rng.exponential(size=(n, 1))
    positions, weights = one_side(gradients_of(g, np.ones_like(g)), top_rate, other_rate)
    assert (np.diff(positions.astype(int)) > 0).all()
    norm = np.sqrt((g**2).sum(axis=1))
    by_size = np.argsort(-norm)
    # Norms are compared to 8 bits of their mantissa: 1 in 256.
    last = norm[by_size[int(top_rate * n) - 1]]
    surely = np.flatnonzero(norm > last * (1 + 1 / 128))
    assert np.isin(surely, positions).all()
    large = weights == 1
    if top_rate + other_rate < 1:
        assert (norm[positions[large]] > last * (1 - 1 / 128)).all()
        # Rows of the last bucket, at most 1 % of all, are large by chance.
        assert abs(large.sum() - top_rate * n) < 5 * np.sqrt(0.01 * n)
    chance = other_rate / (1 - top_rate)
    np.testing.assert_allclose(weights[~large], 1 / chance, rtol=1e-5)
    expected, spread = other_rate * n, np.sqrt(n * other_rate * (1 - chance))
    if top_rate + other_rate < 1:
        assert abs((~large).sum() - expected) < 5 * spread
    else:
        assert len(positions) == n
        assert large.all()


def test_hessians_do_not_count():
    rng = np.random.default_rng(1)
    g = rng.normal(size=(5000, 1))
    samples = [one_side(gradients_of(g, h * np.ones_like(g))) for h in (1.0, 0.01)]
    np.testing.assert_array_equal(samples[0][0], samples[1][0])


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_equal_gradients_do_not_change_the_shares(levels):
    """Rows with the same norm as the last large one are drawn at random."""
    rng = np.random.default_rng(2)
    n = 40_000
    g = rng.integers(1, levels + 1, (n, 1)) * rng.choice([-1.0, 1.0], (n, 1))
    gradients = gradients_of(g, np.ones_like(g))
    positions, weights = one_side(gradients)
    assert abs((weights == 1).sum() - 0.2 * n) < 5 * np.sqrt(0.2 * 0.8 * n)
    assert abs(len(positions) - 0.3 * n) < 5 * np.sqrt(0.3 * 0.7 * n)
    if levels == 5:  # 20 % of the rows each: the top rows are nearly all of the largest norm
        kept = np.isin(np.flatnonzero(np.abs(g[:, 0]) == 5), positions)
        assert kept.mean() > 0.97


def test_rows_without_gradient_are_a_sample_too():
    g = np.zeros((10_000, 1))
    g[:100] = 1.0
    positions, weights = one_side(gradients_of(g, np.ones_like(g)))
    assert np.isin(np.arange(100), positions).all()
    assert abs(len(positions) - 3000) < 5 * np.sqrt(0.3 * 0.7 * 10_000)
    assert abs(weights.sum() - 10_000) < 5 * 7 * np.sqrt(1000)


@pytest.mark.parametrize("ties", [False, True])
def test_sums_over_samples_have_the_mean_of_the_whole(ties):
    """Sums of g, h and rows over every quarter of the table, over 4,000 draws.

    Sums of h and of rows vary by more than those of g, whose large terms are always kept. All
    twelve means lie within 4 standard errors of the sums over all rows.
    """
    rng = np.random.default_rng(3)
    n, quarter = 4000, np.arange(4000) % 4
    g, h = rng.normal(size=(n, 1)), rng.uniform(0.05, 0.25, (n, 1))
    if ties:
        g = np.round(g * 2) / 2
    gradients = gradients_of(g, h)
    values = np.concatenate([g, h, np.ones_like(g)], axis=1)
    sums = []
    for draw in range(4000):
        positions, weights = one_side(gradients, draw=draw)
        weighted = values[positions] * weights[:, np.newaxis]
        sums.append([weighted[quarter[positions] == q].sum(axis=0) for q in range(4)])
    error = np.std(sums, axis=0) / np.sqrt(len(sums))
    expected = [values[quarter == q].sum(axis=0) for q in range(4)]
    assert (error[:, 1:] > 0.01).all()  # samples differ
    np.testing.assert_array_less(np.abs(np.mean(sums, axis=0) - expected), 4 * error)


def test_leaves_are_of_the_amplified_sample():
    rng = np.random.default_rng(4)
    n = 3000
    g, h = rng.normal(size=(n, 1)), rng.uniform(0.05, 0.25, (n, 1))
    gradients = gradients_of(g, h)
    codes = (np.arange(n) % 4).reshape(-1, 1)
    grower = _core.Grower(encode(codes, [4]), 1, core_params(Settings(max_depth=3)))
    sample = _core.Sample()
    sample.draw_one_side(gradients, 0.2, 0.1, 0, 0, 1)
    grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
    inside, weights = sample.positions(), sample.weights()[:, np.newaxis]
    leaf = grower.leaf_of_row()[inside]
    value = grower.trees()["value"]
    for node in np.unique(leaf):
        sum_g = (g[inside] * weights)[leaf == node].sum()
        sum_h = (h[inside] * weights)[leaf == node].sum()
        assert value[node] == pytest.approx(-sum_g / (sum_h + 1.0), rel=1e-5)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 4))
    return X, X[:, 0] * X[:, 1] + rng.normal(size=3000)


def is_full(model):
    """Whether the tree's root counts all rows once: with h = 1 its cover is their number."""
    return [tree.cover[0] == 3000 for tree in trees_of(model)]


@pytest.mark.parametrize(("rate", "full"), [(1.0, 1), (0.4, 3), (0.25, 4), (5e-324, 6)])
def test_the_first_rounds_see_all_rows(problem, rate, full):
    model = GradientBoostingRegressor(n_estimators=6, learning_rate=rate, sampling_method="goss")
    assert is_full(model.fit(*problem)) == [True] * full + [False] * (6 - full)


def test_rounds_of_an_earlier_model_count(problem):
    model = GradientBoostingRegressor(n_estimators=2, learning_rate=0.25, sampling_method="goss")
    first = model.fit(*problem).model_
    more = GradientBoostingRegressor(n_estimators=4, learning_rate=0.25, sampling_method="goss")
    assert is_full(more.fit(*problem, init_model=first)) == [True] * 4 + [False] * 2


def test_forests_in_every_round_draw_for_each_tree(problem):
    model = GradientBoostingRegressor(
        n_estimators=2, learning_rate=1.0, sampling_method="goss", num_parallel_tree=3
    )
    trees = trees_of(model.fit(*problem))
    assert is_full(model) == [True] * 3 + [False] * 3
    assert len({tree.cover[0] for tree in trees[3:]}) == 3


def test_order_statistics_come_from_all_rows(problem):
    """Order statistics ignore sample weights, so Huber's in Friedman's boosting use all rows."""
    X, y = problem
    model = GradientBoostingRegressor(
        n_estimators=2, learning_rate=1.0, sampling_method="goss", loss="huber", boosting="gradient"
    )
    assert is_full(model.fit(X, y)) == [True, True]


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_classes_are_learnt_from_a_sample(strategy):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(6000, 5))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.5])
    scores = []
    for method in ("uniform", "goss"):
        model = GradientBoostingClassifier(
            n_estimators=30, learning_rate=0.3, sampling_method=method, multi_strategy=strategy
        )
        scores.append(model.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:]))
    assert scores[1] > scores[0] - 0.01
    assert scores[1] != scores[0]
