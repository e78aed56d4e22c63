"""Base scores of fits with an offset: the best constant of each loss on top of it."""

from __future__ import annotations

import numpy as np
import pytest

from arboost.losses import CustomLoss, Target, make
from arboost.losses.losses import start_from

N = 400
RNG = np.random.default_rng(3)
OFFSET = RNG.normal(size=(N, 3))
WEIGHT = RNG.uniform(0.2, 2.0, N)
AMOUNT = RNG.gamma(2.0, size=N) * np.exp(OFFSET[:, 0])
CLASS = (RNG.random(N) < 0.3).astype(float)

CASES = {
    "squared_error": (make("squared_error"), AMOUNT, 1),
    "absolute_error": (make("absolute_error"), AMOUNT, 1),
    "quantile": (make("quantile", alpha=0.8), AMOUNT, 1),
    "quantiles": (make("quantile", alpha=[0.2, 0.8]), AMOUNT, 2),
    "poisson": (make("poisson"), np.floor(AMOUNT), 1),
    "gamma": (make("gamma"), AMOUNT, 1),
    "tweedie": (make("tweedie", tweedie_power=1.3), np.floor(AMOUNT), 1),
    "two classes": (make("log_loss"), CLASS, 1),
    "exponential": (make("exponential"), CLASS, 1),
    "three classes": (make("log_loss", n_outputs=3), CLASS + (AMOUNT > 2), 3),
}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize("case", CASES)
def test_start_is_the_best_constant(case, weight):
    loss, y, n_outputs = CASES[case]
    target, offset = Target(y, weight), OFFSET[:, :n_outputs].copy()
    start = start_from(loss, target, offset)
    assert start.shape == (n_outputs,)
    best = loss.value(target, offset + start, 1)
    for output in range(n_outputs):
        for step in (-1e-3, 1e-3, -0.1, 0.1):
            moved = start.copy()
            moved[output] += step
            # Between two residuals the mean pinball loss may be flat.
            assert loss.value(target, offset + moved, 1) >= best - 1e-15


def test_start_of_huber_is_that_of_the_residuals():
    target = Target(AMOUNT, WEIGHT)
    without = Target(AMOUNT - OFFSET[:, 0], WEIGHT)
    loss = make("huber", alpha=0.8)
    assert start_from(loss, target, OFFSET[:, :1]) == loss.start(without)


@pytest.mark.parametrize("case", CASES)
def test_constant_offset_is_taken_out(case):
    loss, y, n_outputs = CASES[case]
    target, offset = Target(y, WEIGHT), np.full((N, n_outputs), 0.75)
    start = start_from(loss, target, offset)
    np.testing.assert_allclose(start + 0.75, loss.start(target) + (n_outputs == 3) * 0.75)


@pytest.mark.parametrize("case", ["poisson", "gamma", "tweedie", "two classes", "exponential"])
def test_large_offsets_do_not_overflow(case):
    loss, y, _ = CASES[case]
    offset = np.where(np.arange(N) % 2 == 0, 900.0, -900.0)[:, np.newaxis]
    assert np.isfinite(start_from(loss, Target(y, None), offset)).all()


def test_no_offset_is_the_start_of_the_loss():
    loss, y, _ = CASES["poisson"]
    assert start_from(loss, Target(y, None), None) == loss.start(Target(y, None))


def test_custom_loss_starts_where_its_function_says():
    loss = CustomLoss(
        name="half", gradients=lambda y, f, w: (w * (f - y), w), start=lambda y, w: 0.5
    )
    assert start_from(make(loss), Target(AMOUNT, None), OFFSET[:, :1]) == 0.5
