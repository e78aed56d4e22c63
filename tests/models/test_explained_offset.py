"""Explanations of models with an offset: it is the part of a raw score that no feature has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor, permutation_importances
from arboost.plots import plot_calibration, plot_residuals
from arboost.report.inputs import ReportOptions, read_input
from arboost.report.models import ChangedRows

N = 300
RNG = np.random.default_rng(4)
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
OFFSET = RNG.uniform(-1.5, 1.5, N)
NAMED = X.assign(start=OFFSET)
COUNTS = RNG.poisson(np.exp(0.5 * X["a"].to_numpy() + OFFSET)).astype(float)


@pytest.fixture(scope="module")
def named():
    model = GradientBoostingRegressor(loss="poisson", n_estimators=8)
    return model.fit(NAMED, COUNTS, offset="start")


@pytest.fixture(scope="module")
def by_array():
    model = GradientBoostingRegressor(loss="poisson", n_estimators=8)
    return model.fit(X, COUNTS, offset=OFFSET)


@pytest.mark.parametrize("background", [None, NAMED[:20]], ids=["covers", "rows"])
def test_values_and_offset_sum_to_the_raw_score(named, background):
    values = named.shap_values(NAMED, background=background)
    base = named.expected_value(background=background)
    raw = named.predict_raw(NAMED)[:, 0]
    np.testing.assert_allclose(values.sum(axis=1) + base + OFFSET, raw)
    assert values.shape == (N, 3)


def test_values_of_classes_and_offset_sum_to_the_raw_scores():
    offset = np.stack([OFFSET, 0 * OFFSET, -OFFSET], axis=1)
    labels = np.digitize(X["a"] + OFFSET, [-0.5, 0.5])
    model = GradientBoostingClassifier(n_estimators=4).fit(X, labels, offset=offset)
    total = model.shap_values(X).sum(axis=1) + model.expected_value() + offset
    np.testing.assert_allclose(total, model.predict_raw(X, offset=offset))
    pairs = model.shap_interactions(X).sum(axis=(1, 2)) + model.expected_value() + offset
    np.testing.assert_allclose(pairs, model.predict_raw(X, offset=offset))


def test_permutation_importances_see_the_offset(named, by_array):
    actual = permutation_importances(named, NAMED, COUNTS, n_repeats=2)
    np.testing.assert_array_equal(
        permutation_importances(by_array, X, COUNTS, n_repeats=2, offset=OFFSET), actual
    )
    mean = by_array.importances("permutation", X, COUNTS, n_repeats=2, offset=OFFSET)
    np.testing.assert_array_equal(mean, actual.mean(axis=0))
    without = permutation_importances(by_array, X, COUNTS, n_repeats=2, offset=0)
    assert not np.allclose(actual, without)
    with pytest.raises(ValueError, match="fitted with an array of offsets"):
        permutation_importances(by_array, X, COUNTS)
    with pytest.raises(ValueError, match="does not look at offset"):
        by_array.importances("gain", offset=OFFSET)


def test_dependence_is_the_mean_of_predictions_with_offset(named, by_array):
    actual = named.partial_dependence(NAMED, "a", grid=5)
    for point, average in zip(actual.grid[0], actual.average, strict=True):
        assert average == pytest.approx(named.predict(NAMED.assign(a=point)).mean())
    same = by_array.partial_dependence(X, "a", grid=5, offset=OFFSET)
    np.testing.assert_array_equal(same.average, actual.average)
    raw = by_array.partial_dependence(X, "a", grid=5, method="recursion", response="raw")
    assert raw.average.shape == (5,)
    with pytest.raises(ValueError, match='offset is not allowed with method="recursion"'):
        by_array.partial_dependence(X, "a", method="recursion", response="raw", offset=OFFSET)


def test_report_predicts_with_the_offset(named, by_array):
    expected = named.predict(NAMED)
    for model, table, offset in ((named, NAMED, None), (by_array, X, OFFSET)):
        for one in (model, model.model_):
            inputs = read_input(one, table, COUNTS, ReportOptions(offset=offset))
            np.testing.assert_array_equal(inputs.model_rows[0].predicted.values, expected)
            assert inputs.model_rows[0].model.is_whole
    kept = np.arange(N) % 3 > 0
    y = np.where(kept, COUNTS, np.nan)
    inputs = read_input(by_array, X, y, ReportOptions(offset=OFFSET))
    np.testing.assert_array_equal(inputs.model_rows[0].predicted.values, expected[kept])
    rows = inputs.model_rows[0]
    sample = rows.table.sample(np.array([5, 2]))
    again = rows.model.predicted_blocks(sample, [ChangedRows(np.array([1, 0, 1]), {})])[0]
    np.testing.assert_array_equal(again.values, expected[kept][[2, 5, 2]])
    with pytest.raises(ValueError, match="fitted with an array of offsets"):
        read_input(by_array, X, COUNTS, ReportOptions())
    plain = GradientBoostingRegressor(loss="poisson", n_estimators=2).fit(X, COUNTS)
    with pytest.raises(ValueError, match="fitted without one"):
        read_input(plain, X, COUNTS, ReportOptions(offset=OFFSET))


def test_report_has_all_sections(named, by_array):
    other = GradientBoostingRegressor(n_estimators=2).fit(NAMED, COUNTS, offset="start")
    page = named.report(NAMED, COUNTS, X_train=NAMED, y_train=COUNTS, compare=other)
    assert by_array.report(NAMED, COUNTS, offset="start").scores == page.scores
    scores = named.report(NAMED, COUNTS).scores
    rmse = np.sqrt(np.mean((named.predict(NAMED) - COUNTS) ** 2))
    assert scores["RMSE"] == pytest.approx(rmse, abs=0.01)
    assert "without its offset" in page.to_html()


def test_plots_predict_with_the_offset(named, by_array):
    pytest.importorskip("matplotlib")
    axes = plot_residuals(named, NAMED, COUNTS)
    points = axes.collections[0].get_offsets().data
    np.testing.assert_array_equal(points[:, 0], named.predict(NAMED))
    other = plot_residuals(by_array, X, COUNTS, offset=OFFSET)
    np.testing.assert_array_equal(other.collections[0].get_offsets().data, points)
    labels = COUNTS > 0
    model = GradientBoostingClassifier(n_estimators=4).fit(X, labels, offset=OFFSET)
    axes = plot_calibration(model, X, labels, offset=OFFSET)
    assert axes.get_xlabel() == "predicted probability of True"
