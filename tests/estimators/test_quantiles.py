"""Quantile loss: one quantile, and several quantiles in one model without crossing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import d2_pinball_score, mean_pinball_loss, r2_score
from sklearn.model_selection import cross_val_score

import arboost
from arboost import GradientBoostingRegressor

QUANTILES = [0.1, 0.5, 0.9]


@pytest.fixture(scope="module")
def spread():
    """One column and a target whose spread grows with the column, so true quantiles are known."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, size=(4000, 1))
    return X, X[:, 0] * rng.uniform(0, 1, 4000)


def quantile(alpha, **params):
    return GradientBoostingRegressor(loss="quantile", alpha=alpha, **params)


@pytest.mark.parametrize("boosting", ["newton", "gradient"])
@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.8])
def test_share_of_rows_below(spread, alpha, boosting):
    X, y = spread
    model = quantile(alpha, boosting=boosting, max_depth=3).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(alpha, abs=0.02)
    # Mean error over the column, because leaves of few rows are noisy. The standard deviation of a
    # sample quantile is proportional to sqrt(alpha (1 - alpha)).
    grid = np.linspace(0.2, 3.8, 200).reshape(-1, 1)
    errors = np.abs(model.predict(grid) - alpha * grid[:, 0])
    assert errors.mean() < 0.2 * np.sqrt(alpha * (1 - alpha))


@pytest.mark.parametrize("alpha", QUANTILES)
def test_start_is_the_quantile(spread, alpha):
    X, y = spread
    model = quantile(alpha, n_estimators=1).fit(X, y)
    start = model.model_.base_score[0]
    assert np.mean(y <= start) == pytest.approx(alpha, abs=1 / len(y))


def test_start_of_weighted_rows():
    X, y = np.arange(4.0)[:, None], np.array([1.0, 2.0, 3.0, 10.0])
    model = quantile(0.5, n_estimators=1).fit(X, y, sample_weight=[1, 1, 1, 7])
    assert model.model_.base_score[0] == 10.0


def test_median_is_absolute_error():
    X, y = load_diabetes(return_X_y=True)
    settings = {"n_estimators": 20, "boosting": "gradient"}
    median = quantile(0.5, **settings).fit(X, y)
    absolute = GradientBoostingRegressor(loss="absolute_error", **settings).fit(X, y)
    np.testing.assert_allclose(median.predict(X), absolute.predict(X), rtol=1e-9)


@pytest.mark.parametrize("boosting", ["newton", "gradient"])
def test_several_never_cross(boosting):
    """Overfitted model: 60 deep rounds on few rows, where separate models cross."""
    X, y = load_diabetes(return_X_y=True)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    settings = {"n_estimators": 60, "learning_rate": 0.5, "boosting": boosting}
    predicted = quantile(levels, **settings).fit(X[:200], y[:200]).predict(X)
    assert predicted.shape == (len(X), 5)
    assert (np.diff(predicted, axis=1) >= 0).all()
    apart = [quantile(level, **settings).fit(X[:200], y[:200]).predict(X) for level in levels]
    assert (np.diff(apart, axis=0) < 0).any()


def test_several_are_as_good_as_one(spread):
    X, y = spread
    settings = {"max_depth": 3, "preset": "best"}
    together = quantile(QUANTILES, **settings).fit(X[:3000], y[:3000]).predict(X[3000:])
    for column, level in zip(together.T, QUANTILES, strict=True):
        alone = quantile(level, **settings).fit(X[:3000], y[:3000]).predict(X[3000:])
        losses = [mean_pinball_loss(y[3000:], p, alpha=level) for p in (column, alone)]
        assert losses[0] <= losses[1] * 1.01
        assert np.mean(y[3000:] <= column) == pytest.approx(level, abs=0.04)


def test_levels_ascend(spread):
    """Predictions are sorted to prevent crossing, so alpha must be ascending."""
    with pytest.raises(ValueError, match="alpha"):
        quantile([0.8, 0.2]).fit(*spread)


def test_several_are_saved(spread, tmp_path):
    X, y = spread
    model = quantile(QUANTILES, n_estimators=10).fit(X, y)
    model.save(tmp_path / "quantiles.arb")
    loaded = arboost.load(tmp_path / "quantiles.arb")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, [0.5, 1.5], []])
def test_levels_lie_between_0_and_1(spread, alpha):
    with pytest.raises(ValueError, match="alpha"):
        quantile(alpha).fit(*spread)


def test_score_of_several_quantiles(spread, rng):
    """The mean over the quantiles of D^2 of the pinball loss; R^2 of a single quantile."""
    X, y = spread
    weight = rng.uniform(size=len(y))
    model = quantile(QUANTILES, n_estimators=20).fit(X, y)
    columns = zip(QUANTILES, model.predict(X).T, strict=True)
    each = [d2_pinball_score(y, one, alpha=a, sample_weight=weight) for a, one in columns]
    assert model.score(X, y, weight) == pytest.approx(np.mean(each))
    assert 0.2 < model.score(X, y) < 1.0
    assert (cross_val_score(model, X, y, cv=2) > 0.2).all()
    one = quantile(0.9, n_estimators=20).fit(X, y)
    assert one.score(X, y) == r2_score(y, one.predict(X))
