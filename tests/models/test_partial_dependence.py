"""Partial dependence of every model: equal to one prediction of the table for each point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn import ensemble
from sklearn.inspection import partial_dependence as sklearn_partial_dependence

import arboost
from arboost import Grid
from arboost.trees.forest import Forest
from support.fitted_models import KINDS, fitted, with_value


def responses(model, frame, response):
    if response == "raw":
        return model.predict_raw(frame)
    if model.kind == "regressor":
        return model.predict(frame).reshape(len(frame), -1)
    found = model.predict_proba(frame)
    parts = found if isinstance(found, list) else [found]
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
        found = model.partial_dependence(
            frame, name, kind="both", response=response, grid=Grid(7, missing=True)
        )
        expected = one_by_one(model, frame, [name], found.grid, response)
        assert len(found.outputs) == expected.shape[-1]
        if expected.shape[-1] == 1:
            expected = expected[..., 0]
        assert found.names == (name,)
        assert found.individual.shape == expected.shape
        np.testing.assert_allclose(found.individual, expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(found.average, expected.mean(axis=0), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("pair", [("age", "rooms"), ("city", "age"), ("rooms", "city")])
@pytest.mark.parametrize("kind", ["boosted", "three", "vectors", "forest", "median"])
def test_two_features(kind, pair, rng):
    model, frame = fitted(kind, rng)
    found = model.partial_dependence(frame[:40], pair, kind="both", grid=Grid(5, missing=True))
    expected = one_by_one(model, frame[:40], pair, found.grid, "answer")
    if expected.shape[-1] == 1:
        expected = expected[..., 0]
    np.testing.assert_allclose(found.individual, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.average, expected.mean(axis=0), rtol=1e-11, atol=1e-11)
    swapped = model.partial_dependence(frame[:40], pair[::-1], grid=Grid(5, missing=True))
    np.testing.assert_allclose(swapped.average.swapaxes(0, 1), found.average, rtol=1e-12)


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
    found = model.partial_dependence(
        frame, "age", method="recursion", response="raw", grid=Grid(9, missing=True)
    )
    expected = by_cover(model, 0, found.grid[0])
    np.testing.assert_allclose(
        found.average, expected.reshape(found.average.shape), rtol=1e-11, atol=1e-12
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
            found = ours.partial_dependence(X, features, method=method, grid=11)
            for axis, own in zip(expected.grid_values, found.grid, strict=True):
                np.testing.assert_allclose(own, axis, rtol=1e-12)
            # scikit-learn evaluates grids in float32.
            np.testing.assert_allclose(found.average, expected.average[0], rtol=1e-9)


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
        found = estimator.model_.partial_dependence(X, features, grid=8, sample_weight=weight)
        for axis, own in zip(expected.grid_values, found.grid, strict=True):
            np.testing.assert_allclose(own, axis, rtol=1e-12)
        average = np.moveaxis(expected.average, 0, -1)
        np.testing.assert_allclose(found.average, np.squeeze(average), rtol=1e-9, atol=1e-12)


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
    found = model.partial_dependence(X, 0)
    np.testing.assert_array_equal(found.average, np.where(X[:, 0] == 20, 1e15, X[:, 0]))


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
    found = model.partial_dependence(X, (0, 1), kind="both", grid=70)
    points = np.stack(np.meshgrid(*found.grid, indexing="ij"), -1).reshape(-1, 2)
    np.testing.assert_allclose(found.average.ravel(), model.predict(points), rtol=1e-12)
    assert np.corrcoef(found.average.ravel(), theirs.predict(points))[0, 1] > 0.9


def test_sparse_tables(rng):
    X = sparse.random(200, 6, density=0.3, random_state=0, format="csr")
    dense = X.toarray()
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, dense[:, 0] - dense[:, 1])
    ours, other = (model.model_.partial_dependence(one, (0, 1), grid=9) for one in (X, dense))
    np.testing.assert_array_equal(ours.average, other.average)
