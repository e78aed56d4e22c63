"""Grids: the points of a feature, and the core's refusal of damaged trees and bad grids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import Grid
from arboost.backend import core
from arboost.trees.forest import Forest
from support.fitted_models import fitted, with_value
from support.random_models import THRESHOLDS, make_model, random_forest, walk


def test_grid_of_numbers_and_times(rng):
    model, frame = fitted("boosted", rng)
    rooms = model.partial_dependence(frame, "rooms")
    assert rooms.grid[0].tolist() == [1, 2, 3, 4, 5]
    sold = model.partial_dependence(frame, "sold", grid=Grid(6, missing=True))
    assert sold.grid[0].dtype == "datetime64[us]"
    assert np.isnat(sold.grid[0]).tolist() == [False] * 6 + [True]
    assert sold.grid[0][0] > np.datetime64("2020-01-01")
    city = model.partial_dependence(frame, "city", grid=Grid(missing=True))
    assert city.grid[0].tolist() == ["Bern", "Oslo", "Rome", "Wien", None]
    street = model.partial_dependence(frame, "street", grid=10)
    assert len(street.grid[0]) == 10
    assert repr(street) == "PartialDependence(street: 10 points)"


def test_given_values(rng):
    model, frame = fitted("boosted", rng)
    grid = Grid(values={"age": [20, None, 60], "city": ["Wien", "Bern"], "sold": ["2021-05-01"]})
    both = model.partial_dependence(frame, ("age", "city"), grid=grid)
    np.testing.assert_array_equal(both.grid[0], [20, np.nan, 60])
    assert both.grid[1].tolist() == ["Wien", "Bern"]
    for i, age in enumerate(both.grid[0]):
        for j, city in enumerate(both.grid[1]):
            changed = with_value(with_value(frame, "age", age), "city", city)
            assert both.average[i, j] == pytest.approx(model.predict(changed).mean(), rel=1e-12)
    sold = model.partial_dependence(frame, "sold", grid=grid)
    changed = with_value(frame, "sold", pd.Timestamp("2021-05-01"))
    assert sold.average[0] == pytest.approx(model.predict(changed).mean(), rel=1e-12)


def test_a_number_that_means_missing(rng):
    X = rng.integers(0, 4, (60, 2)).astype(float)
    X[::5, 0] = -1
    model = arboost.GradientBoostingRegressor(n_estimators=5, missing=-1.0).fit(X, X[:, 0]).model_
    found = model.partial_dependence(X, 0, grid=Grid(missing=True))
    np.testing.assert_array_equal(found.grid[0], [0, 1, 2, 3, np.nan])
    given = model.partial_dependence(X, 0, grid=Grid(values={0: [-1]}))
    assert given.average[0] == pytest.approx(found.average[-1], rel=1e-12)


def test_infinite_values_are_no_points(rng):
    X = rng.normal(size=(50, 1))
    X[:3, 0] = np.inf, -np.inf, np.nan
    model = arboost.GradientBoostingRegressor(n_estimators=3).fit(X, np.arange(50.0)).model_
    assert np.isfinite(model.partial_dependence(X, 0, grid=10).grid[0]).all()
    one = model.partial_dependence(np.array([[0.0]] * 99 + [[1.0]]), 0, grid=2)
    assert one.grid[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="has no values in X"):
        model.partial_dependence([[np.inf], [np.nan]], 0)


@pytest.mark.parametrize("percentiles", [(0.9, 0.1), (0.5,), (-1, 2), "ab", None, (np.nan, 1)])
def test_bad_percentiles(percentiles):
    with pytest.raises(ValueError, match="percentiles="):
        Grid(percentiles=percentiles)


@pytest.mark.parametrize(
    "change",
    [
        {"left": [1, 0, 5]},
        {"left": [7, 0, 0]},
        {"feature": [9, 0, 0]},
        {"output": [3]},
        {"tree_start": [0, 4]},
        {"tree_start": [3, 3]},
        {"cover": [1.0]},
    ],
)
def test_the_core_refuses_damaged_trees(change):
    arrays = {
        "tree_start": [0, 3],
        "feature": [0, 0, 0],
        "threshold": [0.5, 0, 0],
        "left": [1, 0, 0],
        "default_left": [False] * 3,
        "value": [[0.0], [1.0], [2.0]],
        "gain": [1.0, 0, 0],
        "cover": [2.0, 1, 1],
        "output": [0],
    }
    grid = {"n_columns": 1, "n_outputs": 1, "features": [0], "values": [np.zeros(2)]}
    core.GridForest(forest=Forest(**arrays), **grid)
    with pytest.raises(ValueError, match=r"tree|child|column|output|arrays"):
        core.GridForest(forest=Forest(**{**arrays, **change}), **grid)


def test_the_core_refuses_bad_grids():
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit([[0, 1], [1, 0]], [0, 1]).model_
    sizes = {"forest": model.forest, "n_columns": 2, "n_outputs": 1}
    for features, values in (
        ([], []),
        ([2], [np.zeros(1)]),
        ([0], [np.zeros(0)]),
        ([0, 0], [np.zeros(1)] * 2),
        ([0, 1, 0], [np.zeros(1)] * 3),
        ([0], [np.zeros(1)] * 2),
    ):
        with pytest.raises(ValueError, match=r"grid|features"):
            core.GridForest(features=features, values=values, **sizes)
    made = core.GridForest(features=[0], values=[np.zeros(3)], **sizes)
    columns = core.Columns(2)
    for out in (np.empty((1, 2, 1)), np.empty((1, 3, 2)), np.empty((2, 3, 1))):
        with pytest.raises(ValueError, match="out has not"):
            made.of_trees(out)
    with pytest.raises(ValueError, match="another number of columns"):
        made.of_rows(columns=columns, begin=0, out=np.empty((2, 3, 1)), n_threads=1)
    columns.add_matrix(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="rows outside"):
        made.of_rows(columns=columns, begin=1, out=np.empty((2, 3, 1)), n_threads=1)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("features", [(0,), (3,), (0, 1), (3, 0), (1, 3)])
def test_trees_of_random_shape(features, width, rng):
    """Infinite and missing values, sets of 255 levels, single leaves; more than 64 points."""
    for n_rows in (1, 7, 17):
        forest = random_forest(rng, 12, 4, 3, width, categories=(3,))
        model = make_model(forest, 4, 3, trees_per_round=12 if width == 1 else 1, categories=(3,))
        values = np.array([*THRESHOLDS, np.nan, np.inf, -np.inf])
        X = rng.choice(values, (n_rows, 4))
        X[:, 3] = rng.choice([0, 7, 63, 64, 200, 254, np.nan], n_rows)
        points = {3: np.array([*range(0, 255, 3), np.nan])}
        grid = [points.get(feature, values) for feature in features]
        made = core.GridForest(
            forest=forest, n_columns=4, n_outputs=3, features=list(features), values=grid
        )
        shape = tuple(map(len, grid))
        found = np.empty((n_rows, int(np.prod(shape)), 3))
        columns = core.Columns(n_rows)
        columns.add_matrix(X)
        made.of_rows(columns=columns, begin=0, out=found, n_threads=2)
        for point in rng.integers(0, found.shape[1], 6).tolist():
            changed = X.copy()
            for feature, axis, i in zip(
                features, grid, np.unravel_index(point, shape), strict=True
            ):
                changed[:, feature] = axis[i]
            expected = walk(model, changed) - model.base_score
            np.testing.assert_allclose(found[:, point], expected, rtol=1e-12, atol=1e-12)
