"""Medians and means of trees: raw scores, rounds and truncated models."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arboost import _core
from arboost.data.table import ingest
from arboost.models.prediction import raw_scores, staged_raw_scores
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.level_sets import schema_of
from support.mean_models import mean_of, votes_model
from support.random_models import make_model, random_forest, random_table, walk


def defined(values, weights):
    """First value of each sorted row at which the cumulative weight reaches half."""
    medians = []
    for row in values:
        order = np.argsort(row, kind="stable")
        order = order[~np.isnan(row[order])]
        if not len(order):
            medians.append(np.nan)
            continue
        cumulated = np.cumsum(weights[order])
        medians.append(row[order[np.argmax(cumulated >= 0.5 * cumulated[-1])]])
    return np.array(medians)


# Sums of these weights depend on their order, and meet half of the total exactly or up to rounding.
WEIGHTS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0, 3.0, 1e-17, 1e16, 5e-324, 1e308])
VALUES = st.integers(-3, 3).map(float) | st.sampled_from([-0.0, np.nan, np.inf, -np.inf, 1e-300])


@settings(max_examples=200)
@given(data=st.data(), n=st.integers(1, 40))
def test_same_as_the_definition(data, n):
    weights = np.array(data.draw(st.lists(WEIGHTS, min_size=n, max_size=n)))
    values = np.array(data.draw(st.lists(VALUES, min_size=3 * n, max_size=3 * n))).reshape(3, n)
    with np.errstate(over="ignore"):
        expected = defined(values, weights)
    np.testing.assert_array_equal(_core.weighted_median(values, weights, 1), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 97, 1000])
def test_random_rows(rng, n):
    values, weights = rng.normal(size=(300, n)), rng.random(n)
    np.testing.assert_array_equal(
        _core.weighted_median(values, weights, 1), defined(values, weights)
    )


@pytest.mark.parametrize("weight", [1.0, 0.1, 1 / 3])
@pytest.mark.parametrize("n", [2, 6, 10, 22, 100])
def test_equal_weights(rng, n, weight):
    """Half of the total is then the sum of half of the weights, up to rounding."""
    values, weights = rng.normal(size=(300, n)), np.full(n, weight)
    medians = _core.weighted_median(values, weights, 1)
    np.testing.assert_array_equal(medians, defined(values, weights))
    if weight == 1.0:
        np.testing.assert_array_equal(medians, np.sort(values)[:, n // 2 - 1])


def test_half_is_reached():
    values = [[30.0, 10.0, 20.0]]
    for weights, expected in (
        ([1.0, 1.0, 1.0], 20.0),
        ([1.0, 2.0, 1.0], 10.0),
        ([1.0, 0.0, 1.0], 20.0),
        ([2.0, 1.0, 1.0], 20.0),
        ([3.0, 1.0, 1.0], 30.0),
        ([0.0, 0.0, 0.0], 10.0),
    ):
        assert _core.weighted_median(np.array(values), np.array(weights), 1) == expected


def test_missing_values_are_left_out():
    values = np.array([[np.nan, 1.0, 2.0, 3.0], [np.nan] * 4, [4.0, np.nan, np.nan, np.nan]])
    medians = _core.weighted_median(values, np.array([9.0, 1.0, 1.0, 1.0]), 1)
    np.testing.assert_array_equal(medians, [2.0, np.nan, 4.0])


@pytest.mark.parametrize("kind", ["rising", "falling", "pipe", "equal", "two"])
def test_rows_that_are_hard_to_split(kind):
    n = 5000
    up = np.arange(n, dtype=float)
    row = {
        "rising": up,
        "falling": -up,
        "pipe": np.minimum(up, up[::-1]),
        "equal": np.ones(n),
        "two": up % 2,
    }[kind]
    weights = 1.0 + np.sin(up)
    values = np.array([row, row[::-1]])
    np.testing.assert_array_equal(
        _core.weighted_median(values, weights, 1), defined(values, weights)
    )


def test_row_made_against_the_pivots():
    """Of the first, middle and last remaining value, two are always the smallest of all."""
    left, row = list(range(2000)), np.zeros(2000)
    for value in range(0, 1990, 2):
        first, middle = left[0], left[len(left) // 2]
        row[[first, middle]] = value, value + 1
        left = [i for i in left if i not in (first, middle)]
    row[left] = 1990.0 + np.arange(len(left))
    weights = np.where(row == row.max(), 3000.0, 1.0)
    assert _core.weighted_median(row[np.newaxis], weights, 1) == row.max()


def test_threads_and_strides_do_not_matter(rng):
    values, weights = rng.normal(size=(3000, 50)).round(1), rng.random(50)
    values[rng.random(values.shape) < 0.1] = np.nan
    medians = _core.weighted_median(values, weights, 1)
    np.testing.assert_array_equal(_core.weighted_median(values, weights, 3), medians)
    np.testing.assert_array_equal(
        _core.weighted_median(np.asfortranarray(values), weights, 1), medians
    )
    np.testing.assert_array_equal(_core.weighted_median(values[::-1], weights, 1), medians[::-1])
    half = _core.weighted_median(values[:, :25], weights[:25], 1)
    np.testing.assert_array_equal(half, defined(values[:, :25], weights[:25]))
    assert _core.weighted_median(values[:0], weights, 2).shape == (0,)


@pytest.mark.parametrize(
    ("n", "weights", "message"),
    [
        (0, [], "a median of no values"),
        (2, [1.0], "another number of weights"),
        (2, [1.0, -1.0], "negative or not finite"),
        (2, [1.0, np.nan], "negative or not finite"),
        (2, [1.0, np.inf], "negative or not finite"),
    ],
)
def test_refused(n, weights, message):
    with pytest.raises(ValueError, match=message):
        _core.weighted_median(np.zeros((3, n)), np.array(weights), 1)


def median_model(forest, weights, n_features=5, categories=(), base_score=0.0):
    model = Predictor(
        forest=forest,
        schema=schema_of([255 if f in categories else 0 for f in range(n_features)]),
        base_score=np.array([base_score]),
        link="identity",
        classes=None,
        trees_per_round=1,
        params={},
        kind="regressor",
        combine="median",
        tree_weights=weights,
    )
    model.validate()
    return model


def tree_values(model, X):
    """Leaf value of each row in each tree, from a model that sums."""
    fields = model.fields() | {"combine": "sum", "tree_weights": np.empty(0)}
    sums = Predictor(**fields | {"base_score": np.zeros(1)})
    stages = [np.zeros(len(X)), *(stage[:, 0] for stage in sums.staged_raw(X))]
    return np.diff(np.array(stages), axis=0).T


def whole_numbers(forest):
    """The forest with few distinct leaf values, which add without rounding."""
    return Forest(**{**vars(forest), "value": (4 * forest.value).round()})


# The core ranks the leaves only where many rows make it worthwhile: with 1200 it does.
@pytest.mark.parametrize("n_rows", [1, 33, 1200])
@pytest.mark.parametrize("n_trees", [1, 2, 7, 40])
@pytest.mark.parametrize("categories", [(), (1, 3)])
def test_same_as_medians_of_trees(rng, n_rows, n_trees, categories):
    forest = whole_numbers(random_forest(rng, n_trees, 5, 1, 1, categories=categories))
    weights = rng.choice([0.1, 0.2, 0.3, 0.7], n_trees)
    model = median_model(forest, weights, categories=categories, base_score=0.5)
    X = random_table(rng, n_rows, 5)
    X[:, categories] = rng.integers(0, 255, (n_rows, len(categories)))
    values = tree_values(model, X)
    scores = raw_scores(model, X, n_threads=1)
    np.testing.assert_array_equal(scores, 0.5 + defined(values, weights)[:, np.newaxis])
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=3), scores)
    np.testing.assert_array_equal(model.predict(X), scores[:, 0])
    for rounds, stage in enumerate(staged_raw_scores(model, X, n_threads=1), start=1):
        expected = 0.5 + defined(values[:, :rounds], weights[:rounds])
        np.testing.assert_array_equal(stage[:, 0], expected)
        np.testing.assert_array_equal(model.truncated(rounds).predict_raw(X), stage)


def test_more_leaves_than_two_bytes_can_count(rng):
    forest = whole_numbers(random_forest(rng, 9, 5, 1, 1, n_splits=12_000))
    assert (forest.left == 0).sum() > 2**15
    model = median_model(forest, rng.random(9))
    X = random_table(rng, 40_000, 5)
    medians = defined(tree_values(model, X), model.tree_weights)
    np.testing.assert_array_equal(model.predict(X, n_jobs=2), medians)
    np.testing.assert_array_equal(model.predict(X[:1000]), medians[:1000])


def test_neighbours_do_not_matter(rng):
    model = median_model(random_forest(rng, 50, 5, 1, 1), rng.random(50))
    X = random_table(rng, 5000, 5)
    whole = model.predict(X, n_jobs=1)
    np.testing.assert_array_equal(
        np.concatenate([model.predict(x) for x in X[:50, None]]), whole[:50]
    )
    np.testing.assert_array_equal(model.predict(X, n_jobs=4), whole)


def test_no_trees():
    model = median_model(Forest.empty(), np.empty(0), base_score=0.25)
    np.testing.assert_array_equal(model.predict([[0.0] * 5] * 2), [0.25, 0.25])
    assert list(model.staged_raw([[0.0] * 5])) == []


def test_copies(rng):
    model = median_model(random_forest(rng, 12, 5, 1, 1), rng.random(12))
    X = random_table(rng, 40, 5)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert repr(other) == "Predictor(regressor, 5 features, median of 12 trees)"


@pytest.mark.parametrize("n_rows", [1, 1000])
def test_leaves_that_are_no_numbers_are_left_out(rng, n_rows):
    """No model has such leaves, but both walks of the core give the same score for them."""
    forest = random_forest(rng, 9, 5, 1, 1, n_splits=3)
    value = np.where(rng.random(forest.value.shape) < 0.4, np.nan, forest.value)
    forest = Forest(**{**vars(forest), "value": value})
    X, weights, out = random_table(rng, n_rows, 5), rng.random(9), np.zeros((n_rows, 1))
    table = ingest(X, schema_of([0] * 5))
    _core.traverse_median(table.columns, forest, weights, out, 9, 1)
    each = np.zeros((n_rows, 9))
    for tree in range(9):
        column = np.zeros((n_rows, 1))
        _core.traverse(table.columns, forest, column, tree, tree + 1, 1)
        each[:, tree] = column[:, 0]
    np.testing.assert_array_equal(out[:, 0], defined(each, weights))


@pytest.mark.parametrize("n_rows", [1, 100])
@pytest.mark.parametrize(
    ("changes", "call", "message"),
    [
        ({"left": [9, 0, 0]}, {}, "a child outside its tree"),
        ({"feature": [7, -1, -1]}, {}, "a split on an unknown column"),
        ({"tree_start": [0, 4]}, {}, "trees outside the nodes"),
        ({"tree_start": [-1, 3]}, {}, "trees outside the nodes"),
        ({"tree_start": [2, 1]}, {}, "trees outside the nodes"),
        ({"value": np.zeros((3, 2))}, {}, "leaves of several values"),
        ({}, {"weights": np.array([-1.0])}, "negative or not finite"),
        ({}, {"weights": np.empty(0)}, "trees without weights"),
        ({}, {"weights": np.ones(2), "tree_end": 2}, "trees out of range"),
        ({}, {"tree_end": 0}, "a median of no values"),
        ({}, {"out": np.zeros((2, 1))}, "out is not one column"),
        ({}, {"out": np.zeros((100, 2))}, "out is not one column"),
    ],
)
def test_core_refuses(changes, call, message, n_rows):
    arrays = {
        "tree_start": [0, 3],
        "feature": [0, -1, -1],
        "threshold": [0, 0, 0],
        "left": [1, 0, 0],
        "default_left": [True, False, False],
        "value": np.zeros((3, 1)),
        "gain": [0, 0, 0],
        "cover": [0, 0, 0],
        "output": [0],
    }
    forest = Forest(**{name: np.array(value) for name, value in (arrays | changes).items()})
    table = ingest(np.zeros((n_rows, 1)), schema_of([0]))
    given = {"weights": np.ones(1), "out": np.zeros((n_rows, 1)), "tree_end": 1, "n_threads": 1}
    with pytest.raises(ValueError, match=message):
        _core.traverse_median(columns=table.columns, forest=forest, **(given | call))


def expected_scores(model, X, n_trees):
    """Base score plus mean, from the sums of a walk in Python."""
    unbased = replace(model, base_score=np.zeros(model.n_outputs))
    rounds = n_trees // model.trees_per_round
    return model.base_score + walk(unbased, X, n_trees) / max(rounds, 1)


@pytest.mark.parametrize("n_rows", [1, 300])
@pytest.mark.parametrize(("n_outputs", "width", "per_round"), [(1, 1, 1), (3, 1, 3), (3, 3, 2)])
def test_mean_is_the_sum_by_the_rounds(rng, n_outputs, width, per_round, n_rows):
    forest = random_forest(rng, 12, 5, n_outputs, width)
    model = mean_of(make_model(forest, 5, n_outputs, per_round))
    model.validate()
    X = random_table(rng, n_rows, 5)
    scores = raw_scores(model, X, n_threads=1)
    np.testing.assert_array_equal(scores, expected_scores(model, X, 12))
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=2), scores)
    assert repr(model) == "Predictor(regressor, 5 features, mean of 12 trees)"


def test_staged_means(rng):
    model = mean_of(make_model(random_forest(rng, 12, 4, 3, 1), 4, 3, trees_per_round=3))
    X = random_table(rng, 40, 4)
    stages = list(staged_raw_scores(model, X, n_threads=1))
    assert len(stages) == model.n_rounds == 4
    for rounds, stage in enumerate(stages, start=1):
        np.testing.assert_array_equal(stage, expected_scores(model, X, 3 * rounds))
        shorter = model.truncated(rounds)
        np.testing.assert_array_equal(stage, raw_scores(shorter, X, n_threads=1))


def test_no_trees_give_the_base_score():
    model = mean_of(make_model(Forest.empty(), 2, 1))
    np.testing.assert_array_equal(model.predict([[1, 2], [3, 4]]), [-1.0, -1.0])


@pytest.mark.parametrize(("votes", "label"), [([1, 1, -1], "yes"), ([1, -1], "no"), ([-1], "no")])
def test_share_of_two(votes, label):
    classes = np.array(["no", "yes"])
    model = votes_model(np.c_[votes], link="share_of_two", classes=classes)
    second = votes.count(1) / len(votes)
    np.testing.assert_allclose(model.predict_proba([[0]]), [[1 - second, second]])
    assert model.predict([[0], [1]]).tolist() == [label, label]


def test_shares():
    model = votes_model([[0, 0.5, 0.5], [0, 1, 0], [1, 0, 0]], classes=np.array([7, 8, 9]))
    np.testing.assert_allclose(model.predict_proba([[0]]), [[1 / 3, 1 / 2, 1 / 6]])
    assert model.predict([[0]]).tolist() == [8]


def test_several_targets():
    """The second target has two classes in one output, the third target a single class."""
    values = [[0.2, 0.8, 0, 0.5, 1], [0, 0.4, 0.6, -1, 1]]
    classes = (np.array([1, 2, 3]), np.array([0, 5]), np.array([4]))
    model = votes_model(values, classes=classes, targets=(3, 1, 1))
    proba = model.predict_proba([[0], [1]])
    assert [part.shape for part in proba] == [(2, 3), (2, 2), (2, 1)]
    np.testing.assert_allclose(proba[0][0], [0.1, 0.6, 0.3])
    np.testing.assert_allclose(proba[1][0], [0.625, 0.375])
    np.testing.assert_allclose(proba[2][0], [1.0])
    predictions = model.predict([[0], [1]])
    assert predictions.dtype == np.dtype(int)
    assert predictions.tolist() == [[2, 0, 4], [2, 0, 4]]


def test_labels_of_several_kinds_stay_what_they_are():
    classes = (np.array(["a", "b", "c"]), np.array([10, 20]))
    model = votes_model([[0, 0.8, 0.2, 0.5]], classes=classes, targets=(3, 1))
    assert model.predict([[0]]).tolist() == [["b", 20]]


def test_several_numbers():
    fields = {"kind": "regressor", "link": "identity", "classes": None, "targets": (1, 1)}
    model = votes_model([[1, 2], [3, 6]], **fields)
    assert model.predict([[0], [1]]).tolist() == [[2, 4], [2, 4]]
    with pytest.raises(TypeError, match="is not available for a regressor"):
        model.predict_proba([[0]])
