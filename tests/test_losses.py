"""Losses: gradients against finite differences, starts against a numeric minimum."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import _core
from arboost.losses import LOSSES, Target


def loss_value(name, y, scores, weight):
    """Sum over rows, written as plainly as possible; scores (n, outputs)."""
    if name == "squared_error":
        rows = (scores[:, 0] - y) ** 2 / 2
    elif name == "logistic":
        rows = np.logaddexp(0, scores[:, 0]) - y * scores[:, 0]
    else:
        rows = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), y.astype(int)]
    return float(np.sum(rows * weight))


def problem(name, rng, n=40):
    outputs = 4 if name == "softmax" else 1
    y = {
        "squared_error": rng.normal(size=n) * 10,
        "logistic": rng.integers(0, 2, n).astype(float),
        "softmax": rng.integers(0, 4, n).astype(float),
    }[name]
    return y, rng.normal(size=(n, outputs)) * 3, rng.uniform(0.5, 2, n)


def gradients(name, y, scores, weight, *, by_row=False, n_threads=1):
    out = _core.Gradients(*scores.shape, by_row=by_row)
    LOSSES[name].gradients(Target(y, weight), scores, out, n_threads)
    fixed = out.to_numpy().astype(float)
    return fixed[..., 0] * 2.0**-out.g_exponent, fixed[..., 1] * 2.0**-out.h_exponent


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_finite_differences(name, rng):
    y, scores, weight = problem(name, rng)
    g, h = gradients(name, y, scores, weight)
    step = 1e-4
    for row in range(5):
        for k in range(scores.shape[1]):
            up, down = scores.copy(), scores.copy()
            up[row, k] += step
            down[row, k] -= step
            values = [loss_value(name, y, s, weight) for s in (up, scores, down)]
            first = (values[0] - values[2]) / (2 * step)
            second = (values[0] - 2 * values[1] + values[2]) / step**2
            assert g[row, k] == pytest.approx(first, abs=2e-6)
            # Softmax takes twice the diagonal of its hessian: a bound on the whole matrix.
            factor = 2 if name == "softmax" else 1
            assert h[row, k] == pytest.approx(factor * second, abs=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_keep_30_bits(name, rng):
    y, scores, _ = problem(name, rng, n=1000)
    scores *= 10
    g, _ = gradients(name, y, scores, None)
    if name == "squared_error":
        exact = scores - y[:, None]
    elif name == "logistic":
        exact = 1 / (1 + np.exp(-scores)) - y[:, None]
    else:
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
        exact = shifted / shifted.sum(axis=1, keepdims=True)
        exact[np.arange(len(y)), y.astype(int)] -= 1
    np.testing.assert_allclose(g, exact, rtol=0, atol=2.0**-29 * np.abs(exact).max())


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_threads_and_layout_do_not_matter(name, by_row, rng):
    y, scores, weight = problem(name, rng, n=50_000)
    one = gradients(name, y, scores, weight)
    many = gradients(name, y, scores, weight, by_row=by_row, n_threads=4)
    np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_start_is_the_best_constant(name, weighted, rng):
    y, _, weight = problem(name, rng, n=300)
    target = Target(y, weight if weighted else None)
    outputs = 4 if name == "softmax" else 1
    start = LOSSES[name].start(target, outputs)
    best = loss_value(name, y, np.tile(start, (300, 1)), weight if weighted else 1.0)
    for k in range(outputs):
        for step in (-1e-3, 1e-3):
            moved = start.copy()
            moved[k] += step
            value = loss_value(name, y, np.tile(moved, (300, 1)), weight if weighted else 1.0)
            assert value > best


def test_starts_of_extreme_targets_are_finite():
    same = Target(np.full(10, 1e9 + 0.1), None)
    assert LOSSES["squared_error"].start(same, 1)[0] == 1e9 + 0.1
    for value in (0.0, 1.0):
        assert np.isfinite(LOSSES["logistic"].start(Target(np.full(5, value), None), 1)).all()
    one_class = Target(np.zeros(5), None)
    assert np.isfinite(LOSSES["softmax"].start(one_class, 3)).all()


def test_wrong_lengths_are_refused(rng):
    out = _core.Gradients(10, 1, by_row=False)
    with pytest.raises(ValueError, match="y has length 9, expected 10"):
        _core.apply_loss("logistic", np.zeros(9), None, np.zeros((10, 1)), out, 1)
    with pytest.raises(ValueError, match="unknown loss 'hinge'"):
        _core.apply_loss("hinge", np.zeros(10), None, np.zeros((10, 1)), out, 1)
