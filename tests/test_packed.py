"""Forests that are packed once: the same scores as tree by tree, however they are walked."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from arboost.backend import core
from arboost.ingest import ingest
from arboost.model import Model
from arboost.predict import raw_scores
from test_compact import scrambled
from test_predict import make_model, random_forest, random_table, walk


def tree_by_tree(model, X):
    """Scores from trees that are packed one at a time, for the call only."""
    table = ingest(X, model.schema)
    scores = np.tile(model.base_score, (len(X), 1))
    for tree in range(model.n_trees):
        core.traverse(table.columns, model.forest, scores, tree, tree + 1, 1)
    return scores


def many_thresholds(rng, forest):
    """Every split has one of its own."""
    return replace(forest, threshold=rng.normal(size=forest.n_nodes))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("n_outputs", "width"), [(1, 1), (3, 1), (3, 3)])
@pytest.mark.parametrize("n_features", [3, 15, 16, 40, 70])
def test_same_as_tree_by_tree(rng, n_features, n_outputs, width, missing):
    """Rows of all strides, and more of them than walk together."""
    forest = random_forest(rng, 150, n_features, n_outputs, width, n_splits=60)
    forest = scrambled(rng, forest)
    X = random_table(rng, 203, n_features, missing)
    for kind in (forest, many_thresholds(rng, forest)):
        model = make_model(kind, n_features, n_outputs)
        expected = tree_by_tree(model, X)
        np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), expected)
        np.testing.assert_array_equal(raw_scores(model, X[:1], n_threads=1), expected[:1])


@pytest.mark.parametrize("n_thresholds", [32_000, 33_000, 70_000])
def test_as_many_thresholds_as_there_can_be(rng, n_thresholds):
    """Of one feature; from 32766 on they have no numbers."""
    n_trees = 40
    forest = random_forest(rng, n_trees, 1, 1, 1, n_splits=4000)
    while forest.is_split.sum() < n_thresholds:
        forest = forest.joined(forest)
    thresholds = rng.normal(size=n_thresholds)
    values = np.zeros(forest.n_nodes)
    values[forest.is_split] = np.resize(thresholds, forest.is_split.sum())
    model = make_model(replace(forest, threshold=values), 1, 1)
    X = np.concatenate([rng.choice(thresholds, 50), rng.normal(size=50), [np.nan]]).reshape(-1, 1)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), tree_by_tree(model, X))


@pytest.mark.parametrize("categories", [(), (1,)])
def test_blocks_and_threads_do_not_matter(rng, categories):
    """More rows than a block has, in a forest that no cache has to hold."""
    forest = random_forest(rng, 60, 6, 1, 1, n_splits=600, categories=categories)
    assert forest.n_nodes > 20_000
    model = make_model(forest, 6, 1, categories=categories)
    X = random_table(rng, 90_000, 6, 0.01)
    X[:, 1] = rng.integers(0, 255, len(X))
    whole = raw_scores(model, X, n_threads=1)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=3), whole)
    for rows in (slice(0, 300), slice(40_000, 40_333), slice(89_999, 90_000)):
        np.testing.assert_array_equal(tree_by_tree(model, X[rows]), whole[rows])
    np.testing.assert_array_equal(walk(model, X[:20]), whole[:20])


def test_thresholds_at_the_ends(rng):
    """Infinite ones, equal ones, zeros of both signs, and values exactly at them."""
    ends = [-np.inf, np.inf, -0.0, 0.0, 5e-324, -5e-324, 1.7e308, -1.7e308]
    forest = random_forest(rng, 100, 2, 1, 1)
    forest = replace(forest, threshold=rng.choice(ends, forest.n_nodes))
    model = make_model(forest, 2, 1)
    X = rng.choice([*ends, np.nan], (100, 2))
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X))


def test_packed_once(rng):
    model = make_model(random_forest(rng, 30, 3, 1, 1), 3, 1)
    X = random_table(rng, 20, 3)
    answers = model.predict(X)
    packed = model.packed
    model.predict(X)
    assert model.packed is packed
    plain = Model(**model.fields())
    assert plain.packed is not packed
    for other in (copy.deepcopy(plain), pickle.loads(pickle.dumps(plain)), model.truncated(30)):
        assert "packed" not in vars(other)
        np.testing.assert_array_equal(raw_scores(other, X, n_threads=1)[:, 0], answers)
    assert not np.array_equal(model.truncated(10).predict(X), answers)


def test_other_tables_are_refused(rng):
    model = make_model(random_forest(rng, 30, 3, 1, 1), 3, 1)
    for n_columns, shape in ((2, (5, 1)), (3, (5, 2)), (3, (4, 1))):
        table = ingest(np.zeros((5, n_columns)))
        with pytest.raises(ValueError, match="another number of"):
            model.packed.traverse(table.columns, np.zeros(shape), 1)
