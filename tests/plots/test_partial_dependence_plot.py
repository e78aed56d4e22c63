"""Plots of partial dependence: the lines and colours hold the values of the result."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

from arboost import Grid
from arboost.plots import plot_partial_dependence
from support.drawn_trees import HOSTILE
from support.fitted_models import fitted

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def drawn(axes):
    """Return the axes after rendering, which raises for impossible values."""
    axes.figure.canvas.draw()
    return axes


def test_numbers_are_a_line_and_missing_is_a_point(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, "age", grid=Grid(9, missing=True))
    axes = drawn(plot_partial_dependence(found))
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
    axes = drawn(plot_partial_dependence(found))
    (points,) = axes.lines
    assert points.get_linestyle() == "None"
    np.testing.assert_array_equal(points.get_ydata(), found.average)
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["Bern", "Oslo", "Rome", "Wien", "missing"]


def test_rows_and_times(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, "sold", kind="both", grid=5)
    axes = drawn(plot_partial_dependence(found))
    assert len(axes.lines) == 200 + 1  # of 260 rows
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), found.individual[0])
    np.testing.assert_array_equal(axes.lines[-1].get_ydata(), found.average)
    few = model.partial_dependence(frame[:7], "sold", kind="individual", grid=5)
    assert len(drawn(plot_partial_dependence(few)).lines) == 7


def test_several_outputs(rng):
    model, frame = fitted("three", rng)
    found = model.partial_dependence(frame, "age")
    axes = drawn(plot_partial_dependence(found))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["low", "mid", "top"]
    for i, line in enumerate(axes.lines):
        np.testing.assert_array_equal(line.get_ydata(), found.average[:, i])
    one = drawn(plot_partial_dependence(found, output=1))
    assert one.get_ylabel() == "mid"
    np.testing.assert_array_equal(one.lines[0].get_ydata(), found.average[:, 1])


def test_two_features_are_colours(rng):
    from matplotlib import pyplot

    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, ("age", "city"), grid=Grid(6, missing=True))
    given = pyplot.subplots()[1]
    axes = drawn(plot_partial_dependence(found, given))
    assert axes is given
    np.testing.assert_array_equal(axes.collections[0].get_array(), found.average.T)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "city")
    rows = model.partial_dependence(frame[:9], ("age", "city"), kind="individual", grid=3)
    with pytest.raises(ValueError, match="has no average"):
        plot_partial_dependence(rows)


@pytest.mark.filterwarnings("ignore:Glyph")
def test_hostile_names(rng):
    model, frame = fitted("boosted", rng)
    found = model.partial_dependence(frame, "rooms")
    for name in HOSTILE:
        levels = np.array([*HOSTILE[:4], None], object)
        wild = replace(found, names=(name,), outputs=(name,), grid=(levels,))
        drawn(plot_partial_dependence(wild))


def test_single_points(rng):
    model, frame = fitted("boosted", rng)
    for values in ([3.0], [None], [3.0, None]):
        found = model.partial_dependence(frame, "age", grid=Grid(values={"age": values}))
        drawn(plot_partial_dependence(found))


def test_bad_input(rng):
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
    axes = drawn(plot_partial_dependence(many))
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
    axes = drawn(plot_partial_dependence(found))
    assert len(axes.get_yticklabels()) == 21
    assert axes.collections[0].get_array().shape == (21, len(found.grid[0]))
