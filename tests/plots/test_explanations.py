"""Plots of explanations: importances, partial dependence, SHAP values."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib import pyplot

import arboost
from arboost import Grid, plots
from arboost.plots import plot_partial_dependence
from support.drawn_trees import HOSTILE
from support.fitted_models import fitted
from support.plotted import any_overlap, legend_labels, render, tick_labels, wide_table


def test_importances_are_bars_with_the_largest_first(rng):
    model, _ = fitted("boosted", rng)
    axes = render(plots.plot_importances(model))
    gain = model.importances()
    lengths = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(lengths, np.sort(gain)[::-1] / gain.sum())
    assert tick_labels(axes) == [model.feature_names[i] for i in np.argsort(-gain, kind="stable")]


def test_importances_of_many_features_end_with_the_others(rng):
    X, y = wide_table(rng)
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    axes = render(plots.plot_importances(model))
    assert len(tick_labels(axes)) == 21
    assert tick_labels(axes)[-1] == "180 others"
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(1.0)
    assert not any_overlap(axes.get_yticklabels())
    assert tick_labels(plots.plot_importances(model, n_features=2))[-1] == "198 others"


def test_importances_of_rows(rng):
    model, frame = fitted("boosted", rng)
    y = model.predict(frame)
    for options in ({"kind": "permutation", "y": y}, {"kind": "shap"}):
        axes = render(plots.plot_importances(model, X=frame, **options))
        largest = np.sort(model.importances(X=frame, **options))[::-1]
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], largest)


def test_importances_of_nothing(rng):
    model, _ = fitted("constant", rng)
    assert {bar.get_width() for bar in render(plots.plot_importances(model)).patches} == {0.0}


def test_names_that_begin_alike_stay_apart():
    long = "median household income of the census tract in thousand USD "
    frame = pd.DataFrame({long + "a": [0.0, 1.0, 2.0], long + "b": [2.0, 1.0, 0.0]})
    axes = plots.plot_importances(arboost.DecisionTreeRegressor().fit(frame, [0, 1, 2]))
    assert len(set(tick_labels(axes))) == 2
    assert max(map(len, tick_labels(axes))) <= 32


def test_numbers_are_a_line_and_missing_is_a_point(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, "age", grid=Grid(9, missing=True))
    axes = render(plot_partial_dependence(found))
    line, point = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), found.grid[0][:-1])
    np.testing.assert_array_equal(line.get_ydata(), found.average[:-1])
    assert point.get_xdata()[0] > found.grid[0][-2]
    assert point.get_ydata()[0] == found.average[-1]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "prediction")
    assert axes.get_legend() is None
    assert [text.get_text() for text in axes.texts] == ["missing"]


def test_levels_are_points(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, "city", grid=Grid(missing=True))
    axes = render(plot_partial_dependence(found))
    (points,) = axes.lines
    assert points.get_linestyle() == "None"
    np.testing.assert_array_equal(points.get_ydata(), found.average)
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["Bern", "Oslo", "Rome", "Wien", "missing"]


def test_rows_and_times(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, "sold", kind="both", grid=5)
    axes = render(plot_partial_dependence(found))
    assert len(axes.lines) == 200 + 1  # of 260 rows
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), found.individual[0])
    np.testing.assert_array_equal(axes.lines[-1].get_ydata(), found.average)
    few = model.partial_dependence(frame[:7], "sold", kind="individual", grid=5)
    assert len(render(plot_partial_dependence(few)).lines) == 7


def test_dependence_several_outputs(rng):
    model, frame = fitted("three", rng)
    found = model.partial_dependence(frame, "age")
    axes = render(plot_partial_dependence(found))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["low", "mid", "top"]
    for i, line in enumerate(axes.lines):
        np.testing.assert_array_equal(line.get_ydata(), found.average[:, i])
    one = render(plot_partial_dependence(found, output=1))
    assert one.get_ylabel() == "mid"
    np.testing.assert_array_equal(one.lines[0].get_ydata(), found.average[:, 1])


def test_two_features_are_colours(rng):

    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, ("age", "city"), grid=Grid(6, missing=True))
    given = pyplot.subplots()[1]
    axes = render(plot_partial_dependence(found, given))
    assert axes is given
    np.testing.assert_array_equal(axes.collections[0].get_array(), found.average.T)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "city")
    rows = model.partial_dependence(frame[:9], ("age", "city"), kind="individual", grid=3)
    with pytest.raises(ValueError, match="has no average"):
        plot_partial_dependence(rows)


@pytest.mark.filterwarnings("ignore:Glyph")
def test_dependence_hostile_names(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, "rooms")
    for name in HOSTILE:
        levels = np.array([*HOSTILE[:4], None], object)
        wild = replace(found, names=(name,), outputs=(name,), grid=(levels,))
        render(plot_partial_dependence(wild))


def test_single_points(rng):
    model, frame = fitted("boosted", rng)
    for values in ([3.0], [None], [3.0, None]):
        found = model.partial_dependence(frame, "age", grid=Grid(values={"age": values}))
        render(plot_partial_dependence(found))


def test_dependence_bad_input(rng):
    model, frame = fitted("boosted", rng)
    with pytest.raises(TypeError, match="found is of type Predictor"):
        plot_partial_dependence(model)
    with pytest.raises(ValueError, match="output=1 is not allowed: there are 1 outputs"):
        plot_partial_dependence(model.partial_dependence(frame, "age"), output=1)


def test_many_levels_are_the_extreme_ones_and_the_others(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, "rooms", kind="both", grid=5)
    levels = np.array([*(f"level {i}" for i in range(90)), None], object)
    average = rng.permutation(91).astype(float)
    rows = average + rng.normal(size=(3, 1))
    many = replace(found, grid=(levels,), average=average, individual=rows)
    axes = render(plot_partial_dependence(many))
    names = [label.get_text() for label in axes.get_xticklabels()]
    order = np.argsort(-average[:-1])
    assert names[:10] == [levels[i] for i in order[:10]]
    assert names[10] == "70 others"
    assert names[11:] == [*(levels[i] for i in order[-10:]), "missing"]
    heights = axes.lines[-1].get_ydata()
    assert heights[10] == pytest.approx(average[order[10:-10]].mean())
    assert heights[-1] == average[-1]
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert not any(left.overlaps(right) for left, right in pairwise(boxes))


def test_many_levels_and_a_number_are_colours(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, ("age", "street"), grid=150)
    axes = render(plot_partial_dependence(found))
    assert len(axes.get_yticklabels()) == 21
    assert axes.collections[0].get_array().shape == (21, len(found.grid[0]))


def test_shap_summary_has_a_dot_for_each_row(rng):
    model, frame = fitted("boosted", rng)
    axes = render(plots.plot_shap_summary(model, frame))
    values = model.shap_values(frame)
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")
    assert tick_labels(axes) == [model.feature_names[i] for i in order]
    for place, feature in enumerate(order):  # grey dots and coloured ones
        dots = np.vstack([axes.collections[2 * place + i].get_offsets() for i in (0, 1)])
        np.testing.assert_allclose(np.sort(dots[:, 0]), np.sort(values[:, feature]))
        assert np.abs(dots[:, 1] - place).max() < 0.5
        grey = len(axes.collections[2 * place].get_offsets())
        name = model.feature_names[feature]
        column = frame[name.partition(".")[0]]
        assert grey == (len(frame) if name in ("city", "street") else column.isna().sum())


def test_shap_summary_of_many_features_and_of_one(rng):
    X, y = wide_table(rng)
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    axes = render(plots.plot_shap_summary(model, X, n_features=3))
    assert tick_labels(axes)[-1] == "197 others"
    rest = np.argsort(-np.abs(model.shap_values(X)).mean(axis=0), kind="stable")[3:]
    dots = axes.collections[6].get_offsets()
    sums = model.shap_values(X)[:, rest].sum(axis=1)
    np.testing.assert_allclose(np.sort(dots[:, 0]), np.sort(sums))
    one = arboost.DecisionTreeRegressor().fit(X[:, :1], y)
    assert tick_labels(render(plots.plot_shap_summary(one, X[:, :1]))) == ["x0"]


def test_shap_summary_of_classes(rng):
    model, frame = fitted("three", rng)
    axes = render(plots.plot_shap_summary(model, frame))
    assert sorted(legend_labels(axes)) == ["low", "mid", "top"]
    total = np.abs(model.shap_values(frame)).mean(axis=0).sum()
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(total)
    axes = render(plots.plot_shap_summary(model, frame, output=1))
    assert axes.get_xlabel().endswith("of mid")
    with pytest.raises(ValueError, match="output=3 is not allowed: there are 3 outputs"):
        plots.plot_shap_summary(model, frame, output=3)


def test_shap_waterfall_shows_the_values_of_the_user(rng):
    model, frame = fitted("boosted", rng)
    row = frame.iloc[[0]].copy()
    row["age"], row["sold"] = np.nan, pd.Timestamp("2021-02-03")
    axes = render(plots.plot_shap_waterfall(model, row))
    assert set(tick_labels(axes)) == {
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
    axes = render(plots.plot_shap_waterfall(model, X[:1]))
    end = axes.patches[0].get_x() + axes.patches[0].get_width()
    assert end == pytest.approx(model.predict_proba(X[:1])[0, 1])
    assert axes.get_xlabel() == "probability of True"
    axes = plots.plot_shap_summary(model, X)
    assert axes.get_xlabel() == "SHAP value: contribution to the probability of True"


def test_shap_waterfall_of_dicts_and_of_the_likely_class(rng):
    model, frame = fitted("three", rng)
    row = frame.iloc[0].to_dict()
    axes = render(plots.plot_shap_waterfall(model, row, n_features=2))
    assert tick_labels(axes)[-1] == "6 others"
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
    assert set(tick_labels(plots.plot_shap_waterfall(model, row))) == {"open = True", "size = 0"}
