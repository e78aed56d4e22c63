"""Losses by name, their checks of y, and custom losses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from arboost import _core
from arboost.losses import CLASSIFICATION, REGRESSION, CustomLoss, Target, make


def poisson_gradients(y, score, weight):
    mean = np.exp(score)
    return weight * (mean - y), weight * mean


def poisson_start(y, weight):
    return np.log(np.average(y, weights=weight))


def poisson_value(y, score, weight):
    deviance = np.where(y > 0, y * np.log(np.where(y > 0, y, 1)), 0) - y + np.exp(score) - y * score
    return np.average(deviance, weights=weight)


CUSTOM = CustomLoss(
    name="counts",
    gradients=poisson_gradients,
    start=poisson_start,
    value=poisson_value,
    link="exp",
)


def pairs(loss, target, scores, **options):
    out = _core.Gradients(*scores.shape, by_row=False)
    loss.gradients(target, scores, out, 1, **options)
    return out.to_numpy().tolist(), out.g_exponent, out.h_exponent


@pytest.mark.parametrize("name", [*REGRESSION, *CLASSIFICATION])
def test_losses_have_their_names(name):
    loss = make(name, alpha=0.9, tweedie_power=1.5)
    assert loss.name == name
    assert loss.n_outputs == 1


def test_outputs_and_links():
    several = make("quantile", alpha=[0.1, 0.9])
    assert (several.n_outputs, several.link) == (2, "ordered")
    assert make("quantile", alpha=(0.1,)).link == "identity"
    assert make("quantile", alpha=np.array([0.1, 0.9])) == several
    assert (make("log_loss", n_outputs=3).n_outputs, make("log_loss").link) == (3, "logistic")
    assert make("tweedie", tweedie_power=1.5).link == "exp"
    assert make("exponential").link == "logistic_of_double"


def test_who_refits_leaves():
    assert make("absolute_error").refits("newton")
    assert make("quantile", alpha=0.5).refits("gradient")
    assert not make("huber", alpha=0.9).refits("newton")
    assert make("huber", alpha=0.9).refits("gradient")
    assert not make("poisson").refits("gradient")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hinge", {}, "loss='hinge' is not known. Use one of 'squared_error'"),
        ("quantile", {}, "alpha=None is not allowed"),
        ("quantile", {"alpha": 1.0}, "alpha=1.0 is not allowed"),
        ("quantile", {"alpha": [0.9, 0.1]}, "in rising order"),
        ("quantile", {"alpha": []}, "is not allowed"),
        ("quantile", {"alpha": [0.5, 0.5]}, "in rising order"),
        ("huber", {"alpha": [0.1, 0.9]}, "loss='huber' has one"),
        ("huber", {"alpha": 0.0}, "above 0 and below 1"),
        ("tweedie", {"tweedie_power": 2.0}, "loss='gamma' in place of 2"),
        ("tweedie", {}, "tweedie_power=None is not allowed"),
        ("exponential", {"n_outputs": 3}, "loss='exponential' is not allowed with 3 classes"),
        (CUSTOM, {"n_outputs": 3}, "loss='counts' is not allowed with 3 classes"),
    ],
)
def test_what_cannot_be_made(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


@pytest.mark.parametrize(
    ("name", "y", "message"),
    [
        ("poisson", [1.0, -2.0], "y has the value -2.0, but loss='poisson' is for values of 0"),
        ("tweedie", [1.0, -2.0], "y has the value -2.0"),
        ("tweedie", [0.0, 0.0], "y is 0 in all rows"),
        ("gamma", [1.0, 0.0], "y has the value 0.0, but loss='gamma' is for values above 0"),
    ],
)
def test_targets_outside_the_domain(name, y, message):
    loss = make(name, tweedie_power=1.5)
    with pytest.raises(ValueError, match=message):
        loss.check_target(np.array(y))
    loss.check_target(np.array([1.0, 2.0]))


def test_a_custom_loss_is_as_good_as_a_built_in_one(rng):
    y, scores = rng.poisson(2.0, 500).astype(float), rng.normal(size=(500, 1))
    for weight in (None, rng.uniform(0.5, 2, 500)):
        target, own, built_in = Target(y, weight), make(CUSTOM), make("poisson")
        found, expected = pairs(own, target, scores), pairs(built_in, target, scores)
        np.testing.assert_allclose(found[0], expected[0], atol=2)
        assert found[1:] == expected[1:]
        squares = pairs(own, target, scores, least_squares=True)
        assert squares[2] == pairs(built_in, target, scores, least_squares=True)[2]
        assert own.start(target) == pytest.approx(built_in.start(target))
        assert own.value(target, scores, 1) == pytest.approx(built_in.value(target, scores, 1))
    assert own.scores_of(1.0).tolist() == [0.0]
    assert (own.name, own.link, own.n_outputs) == ("counts", "exp", 1)
    assert pickle.loads(pickle.dumps(own)) == own


def test_a_custom_loss_may_leave_things_out():
    loss = make(CustomLoss(name="plain", gradients=poisson_gradients))
    target = Target(np.ones(3), None)
    assert loss.start(target).tolist() == [0.0]
    assert loss.link == "identity"
    np.testing.assert_allclose(loss.leaf_values(np.array([2.0, 0]), np.array([4.0, 0])), [-0.5, 0])
    with pytest.raises(ValueError, match="'plain' has no function `value`"):
        loss.value(target, np.zeros((3, 1)), 1)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_custom_loss_cannot_change_what_it_is_given(which):
    def greedy(*arrays):
        arrays[which][:] = 7
        return arrays[0], arrays[2]

    loss = make(CustomLoss(name="greedy", gradients=greedy))
    for weight in (None, np.ones(3)):
        with pytest.raises(ValueError, match="read-only"):
            pairs(loss, Target(np.ones(3), weight), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("gradients", "error", "message"),
    [
        (np.ones(3), TypeError, "'bad' returned a ndarray, but a pair is needed"),
        ((np.ones(3),), TypeError, "returned a tuple, but a pair"),
        ((np.ones(2), np.ones(3)), ValueError, r"first derivatives of shape \(2,\)"),
        ((np.ones(3), np.ones((3, 1))), ValueError, r"second derivatives of shape \(3, 1\)"),
        ((np.array([0, np.nan, 0]), np.ones(3)), ValueError, "first derivative nan in row 1"),
        ((np.ones(3), np.array([1, 1, np.inf])), ValueError, "second derivative inf in row 2"),
        ((np.ones(3), np.array([1, -2.0, 1])), ValueError, "second derivative -2.0 in row 1"),
    ],
)
def test_wrong_gradients_of_a_custom_loss(gradients, error, message):
    loss = make(CustomLoss(name="bad", gradients=lambda *_: gradients))
    with pytest.raises(error, match=message):
        pairs(loss, Target(np.ones(3), None), np.zeros((3, 1)))


def test_wrong_fields_of_a_custom_loss():
    with pytest.raises(ValueError, match="link='softmax' of the loss 'bad' is not allowed"):
        CustomLoss(name="bad", gradients=poisson_gradients, link="softmax")
    with pytest.raises(TypeError, match="gradients=None of the loss 'bad' is not a function"):
        CustomLoss(name="bad", gradients=None)
    with pytest.raises(TypeError, match="value=3 of the loss 'bad' is not a function"):
        CustomLoss(name="bad", gradients=poisson_gradients, value=3)
    for wrong in (np.nan, [1.0, 2.0]):
        loss = make(
            CustomLoss(name="bad", gradients=poisson_gradients, start=lambda *_, w=wrong: w)
        )
        with pytest.raises(ValueError, match="start of the loss 'bad' returned"):
            loss.start(Target(np.ones(3), None))
