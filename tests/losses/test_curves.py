"""Curves of ranks and calibration against scikit-learn; margins of votes, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.calibration import calibration_curve

from arboost.losses.curves import (
    calibration_bins,
    margin_distribution,
    margins,
    precision_recall_curve,
    roc_curve,
)
from arboost.losses.intervals import wilson


@pytest.fixture(params=["equal", "weighted"])
def scored(request, rng):
    """Rows with tied scores: hits, scores and weights."""
    score = np.round(rng.random(300), 1)
    hits = rng.random(300) < score
    return hits, score, None if request.param == "equal" else rng.uniform(0.1, 3.0, 300)


def test_roc_curve(scored):
    hits, score, weight = scored
    fpr, tpr, _ = metrics.roc_curve(hits, score, sample_weight=weight, drop_intermediate=False)
    np.testing.assert_allclose(roc_curve(hits, score, weight), (fpr, tpr), rtol=1e-12)


def test_precision_recall_curve(scored):
    hits, score, weight = scored
    precision, recall = precision_recall_curve(hits, score, weight)
    expected = metrics.precision_recall_curve(hits, score, sample_weight=weight)
    np.testing.assert_allclose(precision, expected[0][-2::-1], rtol=1e-12)
    np.testing.assert_allclose(recall, expected[1][-2::-1], rtol=1e-12)
    assert precision[-1] == pytest.approx(np.average(hits, weights=weight))


def test_calibration_bins(scored):
    hits, score, weight = scored
    edges = np.linspace(0.0, 1.0, 6)[1:-1]
    bins = calibration_bins(hits, score, weight, edges)
    if weight is None:
        share, probability = calibration_curve(hits, score, n_bins=5)
        np.testing.assert_allclose(bins.share, share, rtol=1e-12)
        np.testing.assert_allclose(bins.probability, probability, rtol=1e-12)
        low, high = wilson(bins.share, bins.n_rows)
        np.testing.assert_allclose((bins.low, bins.high), (low, high), rtol=1e-12)
    in_first = score <= edges[0]
    assert bins.n_rows[0] == np.count_nonzero(in_first)
    mean = np.average(score[in_first], weights=None if weight is None else weight[in_first])
    assert bins.probability[0] == pytest.approx(mean)


def test_an_empty_bin_has_no_share():
    bins = calibration_bins(np.array([True]), np.array([0.2]), None, np.array([0.5]))
    assert bins.share[0] == 1.0
    assert np.isnan([bins.share[1], bins.probability[1], bins.low[1], bins.high[1]]).all()
    assert bins.n_rows.tolist() == [1, 0]


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
        actual = margins(votes - shift, np.zeros(4), 4.0)
        np.testing.assert_allclose(actual, [1.0, 0.25, -0.25, -1.0], rtol=1e-15)


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
    actual = margins(scores, truth.astype(np.float64), weights.sum())
    np.testing.assert_allclose(actual, expected, atol=1e-14)
    assert (np.abs(actual) <= 1.0).all()
    sure = np.abs(actual) > 1e-12
    assert ((actual > 0) == (shares.argmax(axis=1) == truth))[sure].all()


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
