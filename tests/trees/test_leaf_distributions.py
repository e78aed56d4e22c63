"""Quantiles from the rows of leaves, against their definition in exact fractions."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arboost.data.schema import Schema
from arboost.data.table import ingest
from arboost.models.prediction import leaf_ids
from arboost.trees.forest import Forest
from arboost.trees.leaf_distributions import (
    LeafDistributions,
    forest_quantiles,
    leaf_distributions,
)
from support.random_models import make_model, random_forest, random_table


def defined(y, weight, training, leaves, quantiles):
    """Smallest y at which the trees' mean share reaches the quantile, in exact fractions."""
    results = []
    for row in leaves:
        shares, n_trees = {}, 0
        for tree, leaf in enumerate(row):
            inside = [i for i in range(len(y)) if training[i, tree] == leaf and weight[i] > 0]
            total = sum(weight[i] for i in inside)
            n_trees += bool(inside)
            for i in inside:
                shares[y[i]] = shares.get(y[i], 0) + weight[i] / total
        reached = list(itertools.accumulate(shares[value] for value in sorted(shares)))
        cumulated = list(zip(sorted(shares), reached, strict=True))
        results.append(
            [
                next((value for value, upto in cumulated if upto >= q * n_trees), np.nan)
                for q in quantiles
            ]
        )
    return results


QUANTILES = [Fraction(i, 12) for i in range(13)] + [Fraction(1, 7), Fraction(99, 100)]


def problem(rng, n_rows, n_trees, n_splits=20):
    model = make_model(random_forest(rng, n_trees, 4, 1, 1, n_splits=n_splits), 4, 1)
    X = random_table(rng, n_rows, 4)
    return model, ingest(X, model.schema)


@pytest.mark.parametrize("n_splits", [0, 2, 40])
@pytest.mark.parametrize("n_trees", [1, 2, 3, 12])
@pytest.mark.parametrize("weights", [None, [1, 2, 3], [0, 1, 7]])
def test_same_as_the_definition(rng, weights, n_trees, n_splits):
    """With few distinct y and integer weights, where shares meet quantiles exactly."""
    model, table = problem(rng, 60, n_trees, n_splits)
    y = rng.integers(0, 12, 60) / 4.0
    weight = None if weights is None else rng.choice(weights, 60).astype(float)
    in_leaves = leaf_distributions(model.forest, table, y, weight, n_threads=1)
    training = leaf_ids(model, table, n_threads=1)
    new = ingest(random_table(rng, 25, 4), model.schema)
    leaves = leaf_ids(model, new, n_threads=1)
    exact = [Fraction(int(one)) for one in (np.ones(60) if weight is None else weight)]
    quantiles = [float(one) for one in QUANTILES]
    actual = forest_quantiles(model.forest, new, in_leaves, quantiles, n_threads=1)
    expected = defined(y.tolist(), exact, training, leaves, QUANTILES)
    np.testing.assert_array_equal(actual, expected)


def chain_of_leaves(n_trees, n_leaves):
    """Forest whose tree t sends rows to the leaf number x[t], and the nodes of the leaves."""
    n_nodes = 2 * n_leaves - 1
    is_split = np.arange(n_nodes) % 2 == 0
    is_split[-1] = False
    numbers = np.arange(n_nodes)
    forest = Forest(
        tree_start=np.arange(n_trees + 1) * n_nodes,
        feature=np.repeat(np.arange(n_trees), n_nodes),
        threshold=np.tile(numbers / 2 + 0.5, n_trees),
        left=np.tile(np.where(is_split, numbers + 1, 0), n_trees),
        default_left=np.zeros(n_trees * n_nodes, bool),
        value=np.zeros((n_trees * n_nodes, 1)),
        gain=np.zeros(n_trees * n_nodes),
        cover=np.ones(n_trees * n_nodes),
        output=np.zeros(n_trees),
    )
    return forest, is_split


@settings(max_examples=100)
@given(data=st.data(), n_trees=st.integers(1, 6), n_leaves=st.integers(1, 4))
def test_any_leaves(data, n_trees, n_leaves):
    """Random rows and weights, leaves without rows, and trees of empty leaves only."""
    n = data.draw(st.integers(1, 12))
    y = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), float)
    leaf = st.lists(st.integers(0, n_leaves - 1), min_size=n_trees, max_size=n_trees)
    training = np.array(data.draw(st.lists(leaf, min_size=n, max_size=n)))
    new_leaves = np.array(data.draw(st.lists(leaf, min_size=3, max_size=3)))
    quantile = data.draw(st.fractions(0, 1, max_denominator=60))
    values, rank = np.unique(y, return_inverse=True)
    forest, is_split = chain_of_leaves(n_trees, n_leaves)
    counts, ranks = [], []
    for tree in range(n_trees):
        leaves = iter(range(n_leaves))
        for split in is_split:
            inside = [] if split else np.sort(rank[training[:, tree] == next(leaves)])
            counts.append(len(inside))
            ranks.append(inside)
    in_leaves = LeafDistributions(
        tree_start=forest.tree_start,
        start=np.cumsum([0, *counts]),
        rank=np.concatenate(ranks).astype(np.int32),
        upto=np.empty(0, np.int64),
        values=values,
    )
    expected = defined(y.tolist(), [Fraction(1)] * n, training, new_leaves, [quantile])
    table = ingest(new_leaves.astype(float), Schema(names=None, n_features=n_trees))
    actual = forest_quantiles(forest, table, in_leaves, [float(quantile)], n_threads=1)
    np.testing.assert_array_equal(actual, expected)


def test_one_leaf_gives_the_quantiles_of_y(rng):
    """A forest of lone roots is the sample itself, whatever the number of trees."""
    model, table = problem(rng, 1000, 5, n_splits=0)
    y = rng.normal(size=1000)
    in_leaves = leaf_distributions(model.forest, table, y, n_threads=1)
    quantiles = np.arange(41) / 40
    actual = forest_quantiles(model.forest, table, in_leaves, quantiles, n_threads=1)
    expected = np.sort(y)[np.maximum(np.arange(41) * 25 - 1, 0)]
    np.testing.assert_array_equal(actual, np.tile(expected, (1000, 1)))


def test_weights_are_repetitions_and_their_scale_does_not_matter(rng):
    model, table = problem(rng, 80, 6)
    X = random_table(rng, 80, 4)
    y, times = rng.normal(size=80), rng.integers(0, 4, 80)
    quantiles = [0.0, 0.1, 0.5, 0.9, 1.0]
    repeated = ingest(np.repeat(X, times, axis=0), model.schema)
    in_leaves = leaf_distributions(model.forest, repeated, np.repeat(y, times), n_threads=1)
    expected = forest_quantiles(model.forest, table, in_leaves, quantiles, n_threads=1)
    for scale in (1.0, 2.0**-1000, 2.0**900):
        weighted = ingest(X, model.schema)
        in_leaves = leaf_distributions(model.forest, weighted, y, times * scale, n_threads=1)
        actual = forest_quantiles(model.forest, table, in_leaves, quantiles, n_threads=1)
        np.testing.assert_array_equal(actual, expected)


def test_same_for_any_number_of_threads(rng):
    model, table = problem(rng, 5000, 20, n_splits=50)
    y = rng.normal(size=5000).round(2)
    weight = rng.random(5000)
    for given_weight in (None, weight):
        results = []
        for n_threads in (1, 4):
            in_leaves = leaf_distributions(
                model.forest, table, y, given_weight, n_threads=n_threads
            )
            actual = forest_quantiles(
                model.forest, table, in_leaves, [0.1, 0.5], n_threads=n_threads
            )
            results.append((in_leaves.rank.tobytes(), in_leaves.upto.tobytes(), actual.tobytes()))
        assert results[0] == results[1]


def test_trees_of_more_leaves_than_16_bits(rng):
    """A tree with a leaf for each of 70,000 values of y."""
    n = 70_000
    left = np.zeros(2 * n - 1, np.int32)
    left[: n - 1] = 2 * np.arange(n - 1) + 1  # a heap
    order, waiting = [], [0]
    while waiting:  # the leaves from left to right
        node = waiting.pop()
        waiting += [left[node] + 1, left[node]] if left[node] else []
        order += [] if left[node] else [node]
    rows_below = np.where(left == 0, 1, 0)
    for node in range(n - 2, -1, -1):
        rows_below[node] = rows_below[left[node]] + rows_below[left[node] + 1]
    start = np.zeros(2 * n - 1, int)
    for node in range(n - 1):
        start[left[node]] = start[node]
        start[left[node] + 1] = start[node] + rows_below[left[node]]
    threshold = np.where(left, start + rows_below[np.where(left, left, 0)] - 0.5, 0.0)
    forest = Forest(
        tree_start=[0, 2 * n - 1],
        feature=np.zeros(2 * n - 1),
        threshold=threshold,
        left=left,
        default_left=np.zeros(2 * n - 1, bool),
        value=np.zeros((2 * n - 1, 1)),
        gain=np.zeros(2 * n - 1),
        cover=np.ones(2 * n - 1),
        output=[0],
    )
    model = make_model(forest, 1, 1)
    table = ingest(np.arange(n, dtype=float)[:, None], model.schema)
    np.testing.assert_array_equal(leaf_ids(model, table, n_threads=1)[:, 0], order)
    y = rng.permutation(n).astype(float)
    in_leaves = leaf_distributions(model.forest, table, y, n_threads=1)
    np.testing.assert_array_equal(
        forest_quantiles(model.forest, table, in_leaves, 0.5, n_threads=1), y
    )


def test_shapes_and_pickles(rng):
    model, table = problem(rng, 30, 3)
    in_leaves = leaf_distributions(model.forest, table, np.arange(30.0), n_threads=1)
    assert in_leaves.rank.nbytes == 4 * 30 * 3
    assert in_leaves.upto.size == 0
    assert forest_quantiles(model.forest, table, in_leaves, 0.5, n_threads=1).shape == (30,)
    assert forest_quantiles(model.forest, table, in_leaves, [0.5], n_threads=1).shape == (30, 1)
    again = pickle.loads(pickle.dumps(in_leaves))
    np.testing.assert_array_equal(
        forest_quantiles(model.forest, table, again, 0.3, n_threads=1),
        forest_quantiles(model.forest, table, in_leaves, 0.3, n_threads=1),
    )


def test_bad_input(rng):
    model, table = problem(rng, 30, 3)
    y = np.arange(30.0)
    in_leaves = leaf_distributions(model.forest, table, y, n_threads=1)
    for quantiles in (-0.1, 1.5, [0.5, np.nan], [[0.5]]):
        with pytest.raises(ValueError, match="numbers from 0 to 1"):
            forest_quantiles(model.forest, table, in_leaves, quantiles, n_threads=1)
    with pytest.raises(ValueError, match="one number for each row"):
        leaf_distributions(model.forest, table, y[:-1], n_threads=1)
    for weight in (np.zeros(30), np.full(30, np.nan), np.linspace(-1, 1, 30)):
        with pytest.raises(ValueError, match="weights of at least 0"):
            leaf_distributions(model.forest, table, y, weight, n_threads=1)
    other = make_model(random_forest(rng, 4, 4, 1, 1), 4, 1)
    with pytest.raises(ValueError, match="another forest"):
        forest_quantiles(other.forest, table, in_leaves, 0.5, n_threads=1)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("tree_start", 0, 1, "start at 0"),
        ("tree_start", -1, 10**6, "outside the nodes"),
        ("start", -1, 10**6, "outside the rows"),
        ("start", 0, -5, "outside the rows"),
        ("rank", 0, 10**6, "a rank without value"),
        ("rank", 0, -1, "a rank without value"),
    ],
)
def test_core_refuses_damaged_distributions(rng, name, place, value, message):
    model, table = problem(rng, 30, 3)
    in_leaves = leaf_distributions(model.forest, table, np.arange(30.0), n_threads=1)
    arrays = {one: getattr(in_leaves, one).copy() for one in vars(in_leaves)}
    arrays[name][place] = value
    with pytest.raises(ValueError, match=message):
        forest_quantiles(model.forest, table, LeafDistributions(**arrays), 0.5, n_threads=1)


def test_shares_that_do_not_add_up_lead_nowhere(rng):
    """Quantiles may be wrong then, but are values of the training rows."""
    model, table = problem(rng, 30, 3, n_splits=10)
    in_leaves = leaf_distributions(model.forest, table, np.arange(30.0), np.ones(30), n_threads=1)
    for share in (0, 2**44):
        damaged = replace(in_leaves, upto=np.full_like(in_leaves.upto, share))
        actual = forest_quantiles(model.forest, table, damaged, [0.0, 0.5, 1.0], n_threads=1)
        assert np.isin(actual, in_leaves.values).all()
    for share in (-1, 2**44 + 1):
        damaged = replace(in_leaves, upto=np.full_like(in_leaves.upto, share))
        with pytest.raises(ValueError, match="between 0 and 1"):
            forest_quantiles(model.forest, table, damaged, 0.5, n_threads=1)
