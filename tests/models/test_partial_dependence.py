"""Partial dependence of every model: equal to one prediction of the table for each point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import ensemble
from sklearn.inspection import partial_dependence as sklearn_partial_dependence

import arboost
from arboost import Grid
from arboost.backend import core
from arboost.trees.forest import Forest
from support.fitted_models import KINDS, fitted, with_value
from support.random_models import THRESHOLDS, make_model, random_forest, walk


def responses(model, frame, response):
    if response == "raw":
        return model.predict_raw(frame)
    if model.kind == "regressor":
        return model.predict(frame).reshape(len(frame), -1)
    actual = model.predict_proba(frame)
    parts = actual if isinstance(actual, list) else [actual]
    return np.concatenate([p[:, 1:] if p.shape[1] == 2 else p for p in parts], axis=1)


def one_by_one(model, frame, names, grid, response):
    """Return the predictions of each point, shape (n_rows, points..., n_outputs)."""
    shape = [len(axis) for axis in grid]
    points = []
    for place in np.ndindex(*shape):
        changed = frame
        for name, axis, i in zip(names, grid, place, strict=True):
            changed = with_value(changed, name, axis[i])
        points.append(responses(model, changed, response))
    stacked = np.stack(points, axis=1)
    return stacked.reshape(len(frame), *shape, -1)


@pytest.mark.filterwarnings("ignore:.*levels")
@pytest.mark.parametrize("response", ["answer", "raw"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_feature(kind, response, rng):
    model, frame = fitted(kind, rng)
    for name in frame.columns:
        actual = model.partial_dependence(
            frame, name, kind="both", response=response, grid=Grid(7, missing=True)
        )
        expected = one_by_one(model, frame, [name], actual.grid, response)
        assert len(actual.outputs) == expected.shape[-1]
        if expected.shape[-1] == 1:
            expected = expected[..., 0]
        assert actual.names == (name,)
        assert actual.individual.shape == expected.shape
        np.testing.assert_allclose(actual.individual, expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(actual.average, expected.mean(axis=0), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("pair", [("age", "rooms"), ("city", "age"), ("rooms", "city")])
@pytest.mark.parametrize("kind", ["boosted", "three", "vectors", "forest", "median"])
def test_two_features(kind, pair, rng):
    model, frame = fitted(kind, rng)
    actual = model.partial_dependence(frame[:40], pair, kind="both", grid=Grid(5, missing=True))
    expected = one_by_one(model, frame[:40], pair, actual.grid, "answer")
    if expected.shape[-1] == 1:
        expected = expected[..., 0]
    np.testing.assert_allclose(actual.individual, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(actual.average, expected.mean(axis=0), rtol=1e-11, atol=1e-11)
    swapped = model.partial_dependence(frame[:40], pair[::-1], grid=Grid(5, missing=True))
    np.testing.assert_allclose(swapped.average.swapaxes(0, 1), actual.average, rtol=1e-12)


def by_cover(model, feature, values):
    """Return mean raw scores by a plain recursion over the nodes."""
    forest = model.forest

    def below(first, node, value, output):
        here = first + node
        left = forest.left[here]
        if left == 0:
            row = np.zeros(model.n_outputs)
            row[slice(None) if forest.width > 1 else [output]] = forest.value[here]
            return row
        if forest.feature[here] == feature:
            goes_left = (
                forest.default_left[here] if np.isnan(value) else (value <= forest.threshold[here])
            )
            return below(first, left if goes_left else left + 1, value, output)
        share = forest.cover[first + left] / forest.cover[first + left : first + left + 2].sum()
        return share * below(first, left, value, output) + (1 - share) * below(
            first, left + 1, value, output
        )

    starts = zip(forest.tree_start[:-1], forest.output, strict=True)
    pairs = list(starts)
    sums = [sum(below(first, 0, value, output) for first, output in pairs) for value in values]
    scale = model.n_rounds if model.combine == "mean" else 1
    return np.array(sums) / scale + model.base_score


@pytest.mark.parametrize("kind", ["boosted", "three", "vectors", "forest", "ada", "targets"])
def test_recursion(kind, rng):
    model, frame = fitted(kind, rng)
    actual = model.partial_dependence(
        frame, "age", method="recursion", response="raw", grid=Grid(9, missing=True)
    )
    expected = by_cover(model, 0, actual.grid[0])
    np.testing.assert_allclose(
        actual.average, expected.reshape(actual.average.shape), rtol=1e-11, atol=1e-12
    )


def translated(trees, like):
    """Return a model of scikit-learn's trees, with their nodes in our order, by level."""
    forest = Forest.empty()
    for one in trees:
        order, left = [0], []
        for node in order:
            is_leaf = one.children_left[node] < 0
            left.append(0 if is_leaf else len(order))
            order += [] if is_leaf else [one.children_left[node], one.children_right[node]]
        split = np.array(left) > 0
        forest = forest.joined(
            Forest(
                tree_start=[0, len(order)],
                feature=np.where(split, one.feature[order], 0),
                threshold=np.where(split, one.threshold[order], 0.0),
                left=left,
                default_left=np.zeros(len(order), bool),
                value=one.value[order, :, 0],
                gain=np.zeros(len(order)),
                cover=one.weighted_n_node_samples[order],
                output=[0],
            )
        )
    return replace(like, forest=forest, base_score=np.zeros(1), combine="mean")


def test_recursion_equals_scikit_learn(rng):
    X = rng.integers(0, 300, (200, 4)) / 64  # exact in float32
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    theirs = ensemble.RandomForestRegressor(4, max_depth=7, random_state=0).fit(X, y)
    like = arboost.DecisionTreeRegressor(max_depth=1).fit(X, y).model_
    ours = translated([one.tree_ for one in theirs.estimators_], like)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    for features in ([0], [3], [0, 1]):
        for method in ("recursion", "brute"):
            expected = sklearn_partial_dependence(
                theirs, X, features, method=method, grid_resolution=11, kind="average"
            )
            actual = ours.partial_dependence(X, features, method=method, grid=11)
            for axis, own in zip(expected.grid_values, actual.grid, strict=True):
                np.testing.assert_allclose(own, axis, rtol=1e-12)
            # scikit-learn evaluates grids in float32.
            np.testing.assert_allclose(actual.average, expected.average[0], rtol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "labels"),
    [
        (arboost.GradientBoostingRegressor(n_estimators=10), None),
        (arboost.GradientBoostingClassifier(n_estimators=10), 2),
        (arboost.RandomForestClassifier(n_estimators=5, random_state=0), 3),
        (arboost.AdaBoostRegressor(n_estimators=5, random_state=0), None),
    ],
)
def test_brute_equals_scikit_learn(estimator, labels, rng):
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    if labels:
        y = np.digitize(y, np.quantile(y, np.arange(1, labels) / labels))
    estimator.fit(X, y)
    weight = rng.random(len(X))
    for features in ([1], [0, 2]):
        options = {"method": "brute", "kind": "average", "grid_resolution": 8}
        expected = sklearn_partial_dependence(
            estimator, X, features, sample_weight=weight, **options
        )
        actual = estimator.model_.partial_dependence(X, features, grid=8, sample_weight=weight)
        for axis, own in zip(expected.grid_values, actual.grid, strict=True):
            np.testing.assert_allclose(own, axis, rtol=1e-12)
        average = np.moveaxis(expected.average, 0, -1)
        np.testing.assert_allclose(actual.average, np.squeeze(average), rtol=1e-9, atol=1e-12)


def test_same_for_any_number_of_threads(rng, monkeypatch):
    X = rng.normal(size=(3000, 4))
    model = arboost.GradientBoostingRegressor(n_estimators=60).fit(X, X[:, 0] * X[:, 1]).model_
    one = model.partial_dependence(X, 0, kind="both", n_jobs=1)
    two = model.partial_dependence(X, 0, kind="both", n_jobs=2)
    np.testing.assert_array_equal(one.average, two.average)
    np.testing.assert_array_equal(one.individual, two.individual)
    monkeypatch.setattr("arboost.models.partial_dependence._MOST_SCORES", 1000)
    few = model.partial_dependence(X, 0, kind="both", n_jobs=2)
    np.testing.assert_array_equal(few.individual, one.individual)
    np.testing.assert_allclose(few.average, one.average, rtol=1e-12)


def test_outlier_leaf_costs_no_precision():
    X = np.arange(40.0)[:, None]
    model = arboost.DecisionTreeRegressor().fit(X, X[:, 0]).model_
    value = np.where(model.forest.value == 20, 1e15, model.forest.value)
    model = replace(model, forest=replace(model.forest, value=value))
    actual = model.partial_dependence(X, 0)
    np.testing.assert_array_equal(actual.average, np.where(X[:, 0] == 20, 1e15, X[:, 0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "size"}, "not have: 'size'; the model has .* and the names 'age'"),
        ({"features": 50}, "features that the model does not have: 50;"),
        ({"features": True}, "features that the model does not have: True;"),
        ({"features": ("age", 0)}, "pair of two different ones"),
        ({"features": ("age", "city", "rooms")}, "pair of two different ones"),
        ({"features": ()}, "pair of two different ones"),
        ({"kind": "all"}, "kind='all' is not allowed: use one of average"),
        ({"method": "fast"}, "method='fast' is not allowed"),
        ({"response": "log"}, "response='log' is not allowed"),
        ({"grid": 1}, "resolution=1 is not allowed"),
        ({"grid": 2.5}, "resolution=2.5 is not allowed"),
        ({"method": "recursion", "kind": "both"}, "which uses no rows"),
        ({"method": "recursion", "sample_weight": np.ones(260)}, "sample_weight is not allowed"),
        ({"sample_weight": np.zeros(260)}, "zero"),
        ({"features": "city", "grid": Grid(values={"city": ["Paris"]})}, "none of its levels"),
        ({"grid": Grid(values={"age": ["old"]})}, "something else than a number"),
        ({"grid": Grid(values={"age": []})}, "must be a list of points"),
        ({"grid": Grid(values={"size": [1]})}, "Grid.values names features .* not have: 'size'"),
    ],
)
def test_bad_input(options, message, rng):
    model, frame = fitted("boosted", rng)
    features = options.pop("features", "age")
    with pytest.raises(ValueError, match=message):
        model.partial_dependence(frame, features, **options)


def test_recursion_that_would_be_wrong(rng):
    model, frame = fitted("two", rng)
    with pytest.raises(ValueError, match="not linear in them"):
        model.partial_dependence(frame, "age", method="recursion")
    model, frame = fitted("median", rng)
    with pytest.raises(ValueError, match="median of means"):
        model.partial_dependence(frame, "age", method="recursion")
    with pytest.raises(ValueError, match="X has no rows"):
        model.partial_dependence(frame[:0], "age")


def test_deep_forests_agree(rng):
    """Grids of more than 64 points, and trees with many splits on the same feature."""
    X = rng.normal(size=(400, 2))
    theirs = ensemble.RandomForestRegressor(5, random_state=0).fit(X, X[:, 0] * X[:, 1])
    model = arboost.RandomForestRegressor(5, random_state=0).fit(X, X[:, 0] * X[:, 1]).model_
    actual = model.partial_dependence(X, (0, 1), kind="both", grid=70)
    points = np.stack(np.meshgrid(*actual.grid, indexing="ij"), -1).reshape(-1, 2)
    np.testing.assert_allclose(actual.average.ravel(), model.predict(points), rtol=1e-12)
    assert np.corrcoef(actual.average.ravel(), theirs.predict(points))[0, 1] > 0.9


def test_sparse_tables(rng):
    X = sparse.random(200, 6, density=0.3, random_state=0, format="csr")
    dense = X.toarray()
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, dense[:, 0] - dense[:, 1])
    ours, other = (model.model_.partial_dependence(one, (0, 1), grid=9) for one in (X, dense))
    np.testing.assert_array_equal(ours.average, other.average)


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
    actual = model.partial_dependence(X, 0, grid=Grid(missing=True))
    np.testing.assert_array_equal(actual.grid[0], [0, 1, 2, 3, np.nan])
    given = model.partial_dependence(X, 0, grid=Grid(values={0: [-1]}))
    assert given.average[0] == pytest.approx(actual.average[-1], rel=1e-12)


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
        actual = np.empty((n_rows, int(np.prod(shape)), 3))
        columns = core.Columns(n_rows)
        columns.add_matrix(X)
        made.of_rows(columns=columns, begin=0, out=actual, n_threads=2)
        for point in rng.integers(0, actual.shape[1], 6).tolist():
            changed = X.copy()
            for feature, axis, i in zip(
                features, grid, np.unravel_index(point, shape), strict=True
            ):
                changed[:, feature] = axis[i]
            expected = walk(model, changed) - model.base_score
            np.testing.assert_allclose(actual[:, point], expected, rtol=1e-12, atol=1e-12)
