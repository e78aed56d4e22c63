"""Leaf values: order statistics, limited steps, and the quantiles behind them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arboost import _core
from arboost.losses import Target, make
from support.loss_cases import LOSSES, ORDERED, SMOOTH, problem


def test_leaves_without_a_minimum_take_a_limited_step():
    zero, one = np.zeros(1), np.ones(1)
    assert make("poisson").leaf_values(one, one) == -10  # all counts are 0
    assert make("log_loss").leaf_values(one, zero) == -10
    assert make("log_loss").leaf_values(-one, 1e-9 * one) == 10
    assert make("exponential").leaf_values(-one, one) == 1  # one class: the longest Newton step
    assert make("log_loss", n_outputs=3).leaf_values(-one, zero) == pytest.approx(20 / 3)
    for loss in (LOSSES[name] for name in SMOOTH):
        assert loss.leaf_values(zero, zero) == 0  # no rows


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("weighted", [False, True])
def test_refitted_leaves_minimise_the_loss(name, weighted, rng):
    loss = LOSSES[name]
    target, scores = problem(name, rng, n=400)
    target = target if weighted else Target(target.y, None)
    leaf = rng.integers(0, 5, 400).astype(np.uint32)
    leaf[leaf == 2] = 0xFFFFFFFF
    for output in range(loss.n_outputs):
        actual = loss.refit(target, scores, output, leaf, 6, 2)
        assert actual[2] == 0  # no rows
        assert actual[5] == 0
        for node in (0, 1, 3, 4):
            rows = leaf == node
            residual = target.y[rows] - scores[rows, output]
            weight = target.weight[rows] if weighted else np.ones(rows.sum())
            if name == "huber":
                (delta,) = loss.parameters(target, scores, 1)
                centre = plain_quantile(residual, weight, 0.5)
                clipped = (residual - centre).clip(-delta, delta)
                expected = centre + np.average(clipped, weights=weight)
            else:
                expected = plain_quantile(residual, weight, loss.alphas[output])
            assert actual[node] == pytest.approx(expected, rel=1e-9)


def plain_quantile(values, weight, alpha):
    """Quantile by definition: the middle of all values that minimise the pinball loss."""
    slack = values - values[:, None]  # [candidate][value]
    losses = np.maximum(alpha * slack, (alpha - 1) * slack) @ weight
    best = values[losses <= losses.min() + 1e-9 * np.abs(losses).max()]
    return (best.min() + best.max()) / 2


@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=12),
    st.sampled_from([0.1, 0.25, 0.29, 0.5, 0.9]),
    st.integers(0, 2**32),
)
def test_small_quantiles_are_minimisers(values, alpha, seed):
    y = np.array(values, float)
    times = np.random.default_rng(seed).integers(0, 4, len(y))
    times[0] = 1
    loss = make("quantile", alpha=alpha)
    expected = plain_quantile(y[times > 0], times[times > 0].astype(float), alpha)
    assert loss.start(Target(y, times.astype(float))) == pytest.approx(expected, abs=1e-12)
    assert loss.start(Target(y.repeat(times), None)) == pytest.approx(expected, abs=1e-12)
    # Weights scaled by other factors than powers of two have rounded sums.
    assert loss.start(Target(y, times * 0.1)) == pytest.approx(expected, abs=1e-12)


def test_the_median_of_two_is_their_middle():
    assert make("absolute_error").start(Target(np.array([1.0, 2.0]), None)) == 1.5
    assert make("absolute_error").start(Target(np.array([2.0, 1.0]), np.array([1.0, 3.0]))) == 1.0


@pytest.mark.parametrize("kind", ["normal", "sorted", "periodic", "ties", "heavy", "constant"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1030, 5000, 32_000, 100_000])
def test_large_quantiles_are_exact(kind, weighted, n, rng):
    """The same as by a sort, whether or not the quantile lies between the pivots of a sample."""
    sampled = 128 if n < 32768 else 2048
    y = {
        "normal": rng.normal(size=n),
        "sorted": np.sort(rng.normal(size=n)),
        "periodic": np.where(np.arange(n) % (n // sampled) == 0, -1.0, rng.random(n)),
        "ties": rng.integers(0, 5, n).astype(float),
        "heavy": rng.standard_cauchy(n),
        "constant": np.full(n, 3.0),
    }[kind]
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    in_order = np.sort(y if weight is None else y.repeat(weight.astype(int)))
    for alpha in (0.001, 0.25, 0.5, 0.9, 0.9999):
        rank = alpha * len(in_order)
        below = in_order[int(np.ceil(rank - 1e-6)) - 1]
        above = in_order[int(np.floor(rank + 1e-6))]
        actual = _core.residual_quantile(y, weight, None, alpha=alpha, absolute=False, n_threads=3)
        assert actual == 0.5 * below + 0.5 * above


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e300])
@pytest.mark.parametrize("unit", [None, 1e-200, 1e200])
def test_leaves_of_any_scale(size, unit):
    y = size * np.array([1.0, 2.0, 5.0, -4.0, 100.0])
    weight = None if unit is None else np.full(5, unit)
    leaf, scores = np.zeros(5, np.uint32), np.zeros((5, 1))
    for name, expected in [
        ("absolute_error", 2.0),
        ("quantile", 1.0),  # 0.3 of 5 rows is more than one of them
        ("huber", 2.0 + (-1.0 + 0.0 + 3.0 - 5.0 + 5.0) / 5),  # delta is the fourth of five, 5
    ]:
        actual = LOSSES[name].refit(Target(y, weight), scores, 0, leaf, 1, 1)[0]
        assert actual == pytest.approx(size * expected, rel=1e-9)
