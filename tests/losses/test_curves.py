"""Margins of votes, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arboost.losses.curves import margin_distribution, margins


def test_two_classes_by_hand():
    weights = np.array([0.5, 0.25, 0.25])
    votes = np.array([[1, 1, 1], [1, -1, -1], [-1, -1, 1], [-1, -1, -1]])
    scores = (votes @ weights).reshape(-1, 1)
    second, first = np.ones(4), np.zeros(4)
    assert margins(scores, second, 1.0).tolist() == [1.0, 0.0, -0.5, -1.0]
    assert margins(scores, first, 1.0).tolist() == [-1.0, 0.0, 0.5, 1.0]


def test_three_classes_by_hand():
    # Votes for the classes, 4 in all. A constant in all columns does not matter.
    votes = np.array([[4.0, 0.0, 0.0], [2.0, 1.0, 1.0], [1.0, 1.0, 2.0], [0.0, 4.0, 0.0]])
    for shift in (0.0, 4.0 / 3.0):
        found = margins(votes - shift, np.zeros(4), 4.0)
        np.testing.assert_allclose(found, [1.0, 0.25, -0.25, -1.0], rtol=1e-15)


@st.composite
def elections(draw):
    n_classes = draw(st.integers(2, 5))
    n_learners = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    votes = rng.integers(0, n_classes, (n_learners, 20))
    return votes, rng.integers(0, n_classes, 20), rng.random(n_learners) + 0.01, n_classes


@given(elections())
def test_margins_are_shares_of_votes(election):
    votes, truth, weights, n_classes = election
    shares = np.array([(votes == k).T @ weights for k in range(n_classes)]).T / weights.sum()
    expected = [
        row[code] - max(share for k, share in enumerate(row) if k != code)
        for row, code in zip(shares, truth, strict=True)
    ]
    if n_classes == 2:
        scores = ((2 * votes - 1).T @ weights).reshape(-1, 1)
    else:
        scores = weights.sum() * (shares - 1 / n_classes)
    found = margins(scores, truth.astype(np.float64), weights.sum())
    np.testing.assert_allclose(found, expected, atol=1e-14)
    assert (np.abs(found) <= 1.0).all()
    sure = np.abs(found) > 1e-12
    assert ((found > 0) == (shares.argmax(axis=1) == truth))[sure].all()


def test_scores_stay_as_they_are():
    scores = np.array([[1.0, 2.0, -3.0]])
    margins(scores, np.array([1.0]), 6.0)
    assert scores.tolist() == [[1.0, 2.0, -3.0]]


def test_without_a_vote():
    assert margins(np.zeros((2, 1)), np.array([0.0, 1.0]), 0.0).tolist() == [0.0, 0.0]


def test_distribution_by_hand():
    place, share = margin_distribution(np.array([0.2, -0.4, 0.2, 1.0]))
    assert place.tolist() == [-0.4, 0.2, 1.0]
    assert share.tolist() == [0.25, 0.75, 1.0]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=50))
def test_distribution_counts_rows(values):
    place, share = margin_distribution(np.array(values))
    assert share[-1] == 1.0
    assert (np.diff(place) > 0).all()
    counted = [sum(value <= limit for value in values) / len(values) for limit in place]
    assert share.tolist() == pytest.approx(counted)
