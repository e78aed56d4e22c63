"""Residuals, means by prediction, and the coverage of predicted intervals."""

import numpy as np
import pytest

import arboost
from arboost.losses.intervals import mean_interval
from support.reported import fitted, halves, section, table


def residuals():
    frame, targets = table()
    test = halves()[1]
    predicted = fitted("GradientBoosting", "regression").predict(frame[test])
    return predicted, targets["regression"][test] - predicted


def test_points_and_residuals():
    predicted, residual = residuals()
    found = section("regression", "regression")
    assert found["points"]["predicted"] == pytest.approx(predicted, rel=1e-4)
    assert sum(found["residuals"]["counts"]) == len(residual)
    middle = {one["probability"]: one["residual"] for one in found["quantiles"]}
    assert middle[0.5] == pytest.approx(np.median(residual), rel=1e-4)


def test_means_by_prediction():
    predicted, residual = residuals()
    found = section("regression", "regression")["by_prediction"]
    assert sum(one["n"] for one in found) == len(residual)
    total = sum(one["n"] * one["mean_residual"] for one in found)
    assert total == pytest.approx(residual.sum(), abs=1e-2)
    order = np.argsort(predicted)
    first = order[: found[0]["n"]]
    assert found[0]["mean_residual"] == pytest.approx(residual[first].mean(), rel=1e-3)


def test_interval_of_a_mean():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    low, high = mean_interval(values, np.ones(4))
    half = 1.96 * values.std(ddof=1) / 2
    assert (low, high) == pytest.approx((2.5 - half, 2.5 + half))
    assert np.isnan(mean_interval(np.ones(1), np.ones(1))).all()


def test_coverage_of_quantile_boosters(rng):
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + rng.normal(size=400)
    alphas = [0.05, 0.25, 0.5, 0.75, 0.95]
    model = arboost.GradientBoostingRegressor(loss="quantile", alpha=alphas, n_estimators=30)
    columns = model.fit(X, y).predict(X)
    found = model.report(X, y).payload["models"][0]["regression"]["coverage"]
    assert [one["nominal"] for one in found] == pytest.approx([0.5, 0.9])
    inside = (y >= columns[:, 1]) & (y <= columns[:, 3])
    assert found[0]["observed"] == pytest.approx(inside.mean(), abs=1e-4)
    assert found[0]["width"] == pytest.approx((columns[:, 3] - columns[:, 1]).mean(), rel=1e-4)


def test_coverage_of_quantile_forests(rng):
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + rng.normal(size=300)
    model = arboost.RandomForestRegressor(15, quantiles=True, random_state=0)
    model.fit(X[:150], y[:150])
    found = model.report(X[150:], y[150:]).payload["models"][0]["regression"]["coverage"]
    assert [one["nominal"] for one in found] == pytest.approx([0.5, 0.8, 0.9, 0.95])
    low, high = model.predict_quantiles(X[150:], [0.1, 0.9]).T
    inside = (y[150:] >= low) & (y[150:] <= high)
    assert found[1]["observed"] == pytest.approx(inside.mean(), abs=1e-4)


def test_no_coverage_without_quantiles():
    assert section("regression", "regression")["coverage"] is None
