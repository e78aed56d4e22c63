"""Plots of SHAP values: a dot for each row, a step for each feature, the user's values."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arboost
from arboost import plots
from support.fitted_models import fitted
from support.plotted import drawn, legend, names, wide

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def test_shap_summary_has_a_dot_for_each_row(rng):
    model, frame = fitted("boosted", rng)
    axes = drawn(plots.plot_shap_summary(model, frame))
    values = model.shap_values(frame)
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")
    assert names(axes) == [model.feature_names[i] for i in order]
    for place, feature in enumerate(order):  # grey dots and coloured ones
        dots = np.vstack([axes.collections[2 * place + i].get_offsets() for i in (0, 1)])
        np.testing.assert_allclose(np.sort(dots[:, 0]), np.sort(values[:, feature]))
        assert np.abs(dots[:, 1] - place).max() < 0.5
        grey = len(axes.collections[2 * place].get_offsets())
        name = model.feature_names[feature]
        column = frame[name.partition(".")[0]]
        assert grey == (len(frame) if name in ("city", "street") else column.isna().sum())


def test_shap_summary_of_many_features_and_of_one(rng):
    X, y = wide(rng)
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    axes = drawn(plots.plot_shap_summary(model, X, n_features=3))
    assert names(axes)[-1] == "197 others"
    rest = np.argsort(-np.abs(model.shap_values(X)).mean(axis=0), kind="stable")[3:]
    dots = axes.collections[6].get_offsets()
    sums = model.shap_values(X)[:, rest].sum(axis=1)
    np.testing.assert_allclose(np.sort(dots[:, 0]), np.sort(sums))
    one = arboost.DecisionTreeRegressor().fit(X[:, :1], y)
    assert names(drawn(plots.plot_shap_summary(one, X[:, :1]))) == ["x0"]


def test_shap_summary_of_classes(rng):
    model, frame = fitted("three", rng)
    axes = drawn(plots.plot_shap_summary(model, frame))
    assert sorted(legend(axes)) == ["low", "mid", "top"]
    total = np.abs(model.shap_values(frame)).mean(axis=0).sum()
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(total)
    axes = drawn(plots.plot_shap_summary(model, frame, output=1))
    assert axes.get_xlabel().endswith("of mid")
    with pytest.raises(ValueError, match="output=3 is not allowed: there are 3 outputs"):
        plots.plot_shap_summary(model, frame, output=3)


def test_shap_waterfall_shows_the_values_of_the_user(rng):
    model, frame = fitted("boosted", rng)
    row = frame.iloc[[0]].copy()
    row["age"], row["sold"] = np.nan, pd.Timestamp("2021-02-03")
    axes = drawn(plots.plot_shap_waterfall(model, row))
    assert set(names(axes)) == {
        "age = missing",
        f"rooms = {row['rooms'].item()}",
        f"city = {row['city'].item()}",
        f"street = {row['street'].item()}",
        "sold = 2021-02-03",
        "sold.weekday = 2",
        "sold.month = 2",
        "sold.dayofyear = 34",
    }
    steps = [bar.get_width() for bar in axes.patches]
    values = model.shap_values(row)[0]
    np.testing.assert_allclose(steps, values[np.argsort(-np.abs(values), kind="stable")])
    first = axes.patches[0]
    assert first.get_x() + first.get_width() == pytest.approx(model.predict_raw(row).item())


def test_shap_plots_of_a_forest_of_two_classes_end_at_a_probability(rng):
    X = rng.normal(size=(60, 3))
    model = arboost.RandomForestClassifier(n_estimators=5, random_state=0).fit(X, X[:, 0] > 0)
    axes = drawn(plots.plot_shap_waterfall(model, X[:1]))
    end = axes.patches[0].get_x() + axes.patches[0].get_width()
    assert end == pytest.approx(model.predict_proba(X[:1])[0, 1])
    assert axes.get_xlabel() == "probability of True"
    axes = plots.plot_shap_summary(model, X)
    assert axes.get_xlabel() == "SHAP value: contribution to the probability of True"


def test_shap_waterfall_of_dicts_and_of_the_likely_class(rng):
    model, frame = fitted("three", rng)
    row = frame.iloc[0].to_dict()
    axes = drawn(plots.plot_shap_waterfall(model, row, n_features=2))
    assert names(axes)[-1] == "6 others"
    assert axes.get_xlabel() == f"raw score of {model.predict(frame[:1]).item()}"
    with pytest.raises(ValueError, match=r"X has 260 rows, .* Pass X.iloc\[\[i\]\]"):
        plots.plot_shap_waterfall(model, frame)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "dict", "series"])
def test_shap_waterfall_shows_truth_values(kind):
    frame = pd.DataFrame({"open": [True, False] * 10, "size": np.arange(20.0)})
    model = arboost.DecisionTreeRegressor().fit(frame, frame["size"] * frame["open"])
    row = {
        "pandas": frame[:1],
        "polars": pl.from_pandas(frame[:1]),
        "pyarrow": pa.Table.from_pandas(frame[:1]),
        "dict": frame.iloc[0].to_dict(),
        "series": frame.iloc[0],
    }[kind]
    assert set(names(plots.plot_shap_waterfall(model, row))) == {"open = True", "size = 0"}
