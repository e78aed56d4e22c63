"""Links: raw scores to predictions, and base scores to raw scores."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from arboost.losses import links
from arboost.losses.links import LINKS, base_scores

EXTREMES = np.array([[-1.7e308], [-800.0], [-1e-300], [0.0], [709.7], [710.0], [1.7e308]])


@pytest.mark.parametrize("name", LINKS)
def test_finite_scores_have_finite_predictions(name):
    raw = EXTREMES if name != "softmax" else np.repeat(EXTREMES / 2, 3, axis=1) * [1, 0, -1]
    prediction = LINKS[name](raw)
    assert np.isfinite(prediction).all()
    if name in ("logistic", "logistic_of_double", "softmax", "share_of_two"):
        np.testing.assert_allclose(prediction.sum(axis=1), 1.0)
    elif name != "ordered":
        assert (np.diff(prediction[:, 0]) >= 0).all()


def test_exp_is_almost_exact_and_ends_at_the_largest_doubles():
    raw = np.linspace(-745, 709, 301).reshape(-1, 1)
    np.testing.assert_allclose(LINKS["exp"](raw), np.exp(raw), rtol=5e-16, atol=1e-323)
    largest = LINKS["exp"](np.array([[1e6], [709.7827]]))
    assert largest[0] > largest[1] > 1.79e308


def test_ordered_sorts_each_row():
    raw = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, -1.0]])
    assert LINKS["ordered"](raw).tolist() == [[1, 2, 3], [-1, 0, 5]]
    assert raw[0, 0] == 3.0  # the input is unchanged


def test_shares_stay_in_their_range():
    raw = np.array([[0.2, 0.8, 0.0], [-1e-17, 1.0000000000000002, 0.5]])
    assert LINKS["shares"](raw).tolist() == [[0.2, 0.8, 0.0], [0.0, 1.0, 0.5]]
    two = np.array([[-1.0000000000000002], [-0.5], [0.0], [1.0]])
    assert LINKS["share_of_two"](two).tolist() == [[1, 0], [0.75, 0.25], [0.5, 0.5], [0, 1]]


def test_half_log_odds():
    raw = np.array([[0.5], [-2.0]])
    np.testing.assert_allclose(
        LINKS["logistic_of_double"](raw)[:, 1], 1 / (1 + np.exp(-2 * raw[:, 0]))
    )


@pytest.mark.parametrize("name", sorted(LINKS.keys() - {"softmax", "shares"}))
@pytest.mark.parametrize("value", [0.001, 0.3, 0.999])
def test_base_scores_are_what_links_undo(name, value):
    prediction = LINKS[name](base_scores(name, value, 1)[np.newaxis])
    assert prediction[0, -1] == pytest.approx(value)


@pytest.mark.parametrize(
    ("link", "value", "message"),
    [
        ("shares", 0.5, "with 3 classes it is a list of their 3 probabilities"),
        ("share_of_two", 1.0, "the probability of the second"),
        ("exp", 0.0, "it is a mean, above 0"),
        ("exp", -1.0, "base_score=-1.0"),
        ("exp", float("inf"), "above 0"),
        ("exp", float("nan"), "above 0"),
        ("logistic", 1.0, "probability of the second"),
        ("logistic_of_double", -0.5, "above 0 and below 1"),
        ("softmax", 0.5, r"base_score=0\.5 is not allowed: with 3 classes"),
        ("softmax", [0.5, 0.5], "3 probabilities"),
        ("softmax", [0.5, 0.5, 0.0], "each above 0"),
        ("softmax", [0.5, 0.4, 0.2], "together 1"),
        ("logistic", [0.5, 0.5], "it has 2 numbers, and the model has 1 raw score"),
    ],
)
def test_base_scores_out_of_range(link, value, message):
    with pytest.raises(ValueError, match=message):
        base_scores(link, value, 3 if link in ("softmax", "shares") else 1)


def test_base_scores_of_classes_are_what_softmax_undoes():
    shares = [0.2, 0.3, 0.5]
    prediction = LINKS["softmax"](base_scores("softmax", shares, 3)[np.newaxis])
    np.testing.assert_allclose(prediction, [shares], rtol=1e-14)
    assert base_scores("softmax", 0.0, 3).tolist() == [0.0, 0.0, 0.0]


def test_examples_in_the_docstrings():
    assert doctest.testmod(links).failed == 0
