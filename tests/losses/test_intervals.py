"""Confidence intervals: as wide as theory says, for sums, ranks, shares, means and any metric."""

import numpy as np
import pytest
from sklearn import metrics

from arboost.losses.intervals import (
    Replicates,
    interval,
    mean_interval,
    metric_interval,
    poisson_counts,
    sample_rows,
    wilson,
)
from arboost.losses.metrics import prediction_metric


def test_intervals_are_as_wide_as_theory_says():
    """The interval of a share of many rows is that of the binomial distribution."""
    rng = np.random.default_rng(1)
    hits = rng.random(4000) < 0.8
    draws = Replicates.of(4000, 10_000)
    sums = draws.sums(np.stack([hits, np.ones(4000)], axis=1).astype(float))
    low, high = interval(hits.mean(), sums[:, 0] / sums[:, 1], hits.mean(), draws.scale)
    expected = 2 * 1.96 * np.sqrt(0.16 / 4000)
    assert high - low == pytest.approx(expected, rel=0.15)


def test_intervals_of_a_sample_are_scaled_to_all_rows():
    rng = np.random.default_rng(1)
    values = rng.normal(size=40_000)
    draws = Replicates.of(len(values), 5000)
    own = values[draws.rows]
    sums = draws.sums(np.stack([own, np.ones(len(own))], axis=1))
    low, high = interval(values.mean(), sums[:, 0] / sums[:, 1], own.mean(), draws.scale)
    assert high - low == pytest.approx(2 * 1.96 / np.sqrt(len(values)), rel=0.15)
    assert low < values.mean() < high


def test_replicates_of_ranks_are_weighted_areas():
    rng = np.random.default_rng(2)
    positive = rng.random(300) < 0.4
    score = np.round(positive + rng.normal(size=300), 1)  # with ties
    draws = Replicates.of(300, 1000)
    above, beside = draws.ranks(positive, score, None)
    pairs = (beside * (np.cumsum(above, axis=1) - above / 2)).sum(axis=1)
    areas = pairs / (above.sum(axis=1) * beside.sum(axis=1))
    assert areas[0] == pytest.approx(metrics.roc_auc_score(positive, score))
    for i in (1, 7):
        weight = draws.draws[i - 1]
        expected = metrics.roc_auc_score(positive, score, sample_weight=weight)
        assert areas[i] == pytest.approx(expected)


def test_binned_ranks_are_near_the_exact_ones():
    rng = np.random.default_rng(2)
    positive = rng.random(20_000) < 0.1
    score = positive + rng.normal(size=20_000)
    above, beside = Replicates.of(20_000, 50_000).ranks(positive, score, None)
    assert above.shape[1] <= 1000
    pairs = (beside * (np.cumsum(above, axis=1) - above / 2)).sum(axis=1)
    area = pairs[0] / (above[0].sum() * beside[0].sum())
    assert area == pytest.approx(metrics.roc_auc_score(positive, score), abs=1e-3)


def test_draws_are_poisson():
    draws = poisson_counts(50, 4000)
    counts = np.bincount(draws.ravel(), minlength=4) / draws.size
    assert counts[:4] == pytest.approx(np.exp(-1) / np.array([1, 1, 2, 6]), abs=0.004)
    assert abs(np.corrcoef(draws[0], draws[1])[0, 1]) < 0.06


def test_samples_are_nested():
    small, large = sample_rows(1000, 50), sample_rows(1000, 200)
    assert len(small) == 50
    assert set(small) <= set(large)
    assert (np.diff(small) > 0).all()


def test_wilson_interval():
    """8 of 10: the values of the textbook."""
    low, high = wilson(np.array([0.8]), np.array([10.0]))
    assert (low[0], high[0]) == pytest.approx((0.4902, 0.9433), abs=1e-3)


def test_interval_of_a_mean():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    low, high = mean_interval(values, np.ones(4))
    half = 1.96 * values.std(ddof=1) / 2
    assert (low, high) == pytest.approx((2.5 - half, 2.5 + half))
    assert np.isnan(mean_interval(np.ones(1), np.ones(1))).all()


def test_interval_of_any_metric_is_that_of_its_replicates():
    """The accuracy of many rows, as a metric: the interval of the binomial distribution."""
    rng = np.random.default_rng(1)
    truth = (rng.random(4000) < 0.8).astype(np.intp)
    proba = np.tile([0.1, 0.9], (4000, 1))
    accuracy, _ = prediction_metric("accuracy", of_classes=True)
    value = accuracy(truth, proba, None)
    low, high = metric_interval(accuracy, value, truth, proba, None)
    assert low < value < high
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.16 / 4000), rel=0.2)


def test_replicates_without_a_class_have_no_area():
    """One positive row is in two of three replicates: the others do not count."""
    truth = np.arange(12) == 3
    proba = np.linspace(0.1, 0.9, 12)
    area, _ = prediction_metric("auc", of_classes=True)
    columns = np.stack([1 - proba, proba], axis=1)
    value = area(truth.astype(np.intp), columns, None)
    low, high = metric_interval(area, value, truth.astype(np.intp), columns, None)
    assert np.isfinite([low, high]).all()
    assert low <= value <= high
