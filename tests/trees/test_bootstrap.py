"""Bootstrap samples: counts, probabilities, threads, and trees that are grown on them."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import _core
from support.growing import core_params, encode, gradients_of, grow, wide_problem
from support.reference import Settings


def by_weight(weight, seed=0, draw=0, n_threads=1):
    sample = _core.Sample()
    sample.draw_by_weight(np.asarray(weight, float), seed, draw, n_threads)
    return sample


def with_replacement(n_rows, n_draws, seed=0, draw=0, n_threads=1):
    sample = _core.Sample()
    sample.draw_with_replacement(n_rows, n_draws, seed, draw, n_threads)
    return sample


def counts_of(sample, n):
    """Number of draws of each row; positions ascend, and every one has a draw."""
    positions, weights = sample.positions(), sample.weights()
    assert (np.diff(positions.astype(int)) > 0).all()
    assert len(weights) == len(positions)
    assert (weights >= 1).all()
    assert (weights == np.round(weights)).all()
    counts = np.zeros(n)
    counts[positions] = weights
    return counts


SKEWS = {
    "equal": lambda rng, n: np.ones(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "steep": lambda rng, n: np.exp(rng.normal(size=n) * 3),
    "some": lambda rng, n: rng.random(n) * (rng.random(n) < 0.3),
}


@pytest.mark.parametrize("kind", SKEWS)
@pytest.mark.parametrize("n", [1, 2, 300, 16_384, 100_000])
def test_draws_are_as_many_as_rows_and_never_of_rows_without_weight(kind, n):
    weight = SKEWS[kind](np.random.default_rng(0), n)
    weight[0] = 1
    for draw in range(3):
        counts = counts_of(by_weight(weight, draw=draw), n)
        assert counts.sum() == n
        assert (counts[weight == 0] == 0).all()


@pytest.mark.parametrize("kind", SKEWS)
@pytest.mark.parametrize("n", [200, 200_000])
def test_draws_are_in_proportion_to_weights(kind, n):
    """Chi-square over groups of rows of at least 50 expected draws, in one part and in many."""
    weight = SKEWS[kind](np.random.default_rng(1), n)
    draws = 1 if n > 1000 else 300
    counts = sum(counts_of(by_weight(weight, seed=5, draw=draw), n) for draw in range(draws))
    expected = n * draws * weight / weight.sum()
    group = (np.cumsum(expected) / 50).astype(int)
    seen, hoped = np.bincount(group, counts), np.bincount(group, expected)
    full = hoped > 20
    degrees = full.sum()
    assert degrees > 40
    chi_square = ((seen - hoped)[full] ** 2 / hoped[full]).sum()
    assert abs(chi_square - degrees) < 4 * np.sqrt(2 * degrees)


@pytest.mark.parametrize("n", [1000, 200_000])
def test_rows_that_are_never_drawn_are_one_of_e(n):
    """A row is out of bag, missed by all n draws, with probability (1 - 1 / n)^n."""
    for seed in range(5):
        missed = (counts_of(by_weight(np.full(n, 0.1), seed=seed), n) == 0).mean()
        assert abs(missed - np.exp(-1)) < 4 * np.sqrt(0.1 / n) + 1 / n


def test_draws_of_another_number_or_seed_are_others():
    weight = np.random.default_rng(0).random(5000)
    one = counts_of(by_weight(weight), 5000)
    assert (one == counts_of(by_weight(weight), 5000)).all()
    for other in (by_weight(weight, draw=1), by_weight(weight, seed=1)):
        # In equal samples all counts would agree; in independent ones about 40 %.
        assert (one == counts_of(other, 5000)).mean() < 0.6


def test_one_row_may_have_nearly_all_the_weight():
    for heavy in (0, 12_345, 99_999):  # its interval covers nearly all parts
        weight = np.full(100_000, 1e-300)
        weight[heavy] = 1e300
        sample = by_weight(weight)
        assert sample.positions().tolist() == [heavy]
        assert sample.weights().tolist() == [100_000]
    weight = np.full(100_000, 1.0)
    weight[777] = 1e5
    counts = counts_of(by_weight(weight), 100_000)
    assert abs(counts[777] - 50_000) < 4 * np.sqrt(100_000 / 4)
    assert counts.sum() == 100_000
    assert counts_of(by_weight([3.0]), 1) == [1]


@pytest.mark.parametrize("kind", SKEWS)
def test_draws_with_replacement_are_the_same_for_any_number_of_threads(kind):
    weight = SKEWS[kind](np.random.default_rng(2), 300_000)
    one, equal = by_weight(weight, 3, 7), with_replacement(300_000, 200_000, 3, 7)
    for n_threads in (2, 5):
        for sample, expected in (
            (by_weight(weight, 3, 7, n_threads), one),
            (with_replacement(300_000, 200_000, 3, 7, n_threads), equal),
        ):
            assert sample.positions().tobytes() == expected.positions().tobytes()
            assert sample.weights().tobytes() == expected.weights().tobytes()


@pytest.mark.parametrize("n", [1, 7, 1000, 70_001])
def test_draws_with_equal_weights_need_no_weights(n):
    one, other = with_replacement(n, n, 4, 2), by_weight(np.full(n, 0.3), 4, 2)
    np.testing.assert_array_equal(one.positions(), other.positions())
    np.testing.assert_array_equal(one.weights(), other.weights())


@pytest.mark.parametrize(
    ("n_rows", "n_draws"), [(1, 5), (10, 100_000), (100_000, 3), (2**29 - 1, 4), (500, 250)]
)
def test_any_number_of_draws_with_replacement(n_rows, n_draws):
    sample = with_replacement(n_rows, n_draws)
    positions, weights = sample.positions().astype(int), sample.weights()
    assert weights.sum() == n_draws
    assert (np.diff(positions) > 0).all()
    assert positions.max() < n_rows
    if n_draws > 1000 * n_rows:
        share = n_draws / n_rows
        assert (np.abs(weights - share) < 4 * np.sqrt(share)).all()
        assert len(weights) == n_rows


def test_a_sample_can_be_drawn_again_and_otherwise():
    sample = by_weight(np.ones(50_000))
    sample.draw_with_replacement(20, 10, 0, 0, 1)
    assert sample.weights().sum() == 10
    sample.draw(1000, 0.5, 0, 0, 1)
    assert len(sample.weights()) == 0
    sample.draw_by_weight(np.ones(90_000), 0, 0, 1)
    assert counts_of(sample, 90_000).sum() == 90_000


def test_a_tree_of_drawn_rows_is_one_of_repeated_rows():
    codes, n_bins, g, h = wide_problem(n=3000)
    sample = by_weight(np.random.default_rng(3).exponential(size=3000))
    rows = sample.positions().repeat(sample.weights().astype(int))
    s = Settings(max_depth=4, min_child_weight=5)
    alone, *_ = grow(codes[rows], n_bins, g[rows], h[rows], s)
    grower = _core.Grower(encode(codes, n_bins), 1, core_params(s))
    grower.grow(gradients_of(g, h), 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
    tree = grower.trees()
    for name in ("feature", "bin", "left"):
        np.testing.assert_array_equal(tree[name], alone[name])
    np.testing.assert_allclose(tree["value"], alone["value"], rtol=1e-5)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        ([], "no rows to draw from"),
        ([1.0, -1e-9], "weight of row 1 is -0.0.* finite numbers from 0 on"),
        ([-1.0, 5.0], "weight of row 0 is -1"),
        ([1.0, np.nan], "weight of row 1 is .*nan"),
        ([1.0, np.inf, 2.0], "weight of row 1 is inf"),
        ([0.0, 0.0], "the weights add up to 0"),
        ([1e308, 1e308, 1e308], "too small or too large for a double"),
        ([5e-324], "too small or too large for a double"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weight, match):
    with pytest.raises(ValueError, match=match):
        by_weight(weight)


def test_numbers_of_draws_that_mean_nothing_are_refused():
    for n_rows, n_draws, match in (
        (0, 5, "no rows to draw from"),
        (5, 0, "no draws: at least one is needed"),
        (2**29, 1, "536870912 rows, but at most 536870911 are allowed"),
        (5, 2**32, "4294967296 draws: at most 4,294,967,295"),
    ):
        with pytest.raises(ValueError, match=match):
            with_replacement(n_rows, n_draws)
