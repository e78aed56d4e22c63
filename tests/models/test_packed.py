"""Packed forests: the same scores as tree by tree, for every way of traversal."""

from __future__ import annotations

import copy
import hashlib
import pickle
from dataclasses import replace

import numpy as np
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.backend import core
from arboost.data.table import ingest
from arboost.models.model import Model
from arboost.models.prediction import raw_scores
from support.random_models import make_model, random_forest, random_table, walk
from support.scrambled_models import scrambled


def tree_by_tree(model, X):
    """Scores from trees that are packed one at a time."""
    table = ingest(X, model.schema)
    scores = np.tile(model.base_score, (len(X), 1))
    for tree in range(model.n_trees):
        core.traverse(table.columns, model.forest, scores, tree, tree + 1, 1)
    return scores


def many_thresholds(rng, forest):
    """A forest in which every split has a threshold of its own."""
    return replace(forest, threshold=rng.normal(size=forest.n_nodes))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("n_outputs", "width"), [(1, 1), (3, 1), (3, 3)])
@pytest.mark.parametrize("n_features", [3, 15, 16, 40, 70])
def test_same_as_tree_by_tree(rng, n_features, n_outputs, width, missing):
    """Rows of all strides, more of them than are traversed together."""
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
    """Thresholds of one feature; from 32766 on they are not numbered."""
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
    """More rows than fit a block, in a large forest."""
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
    """Infinite and equal thresholds, zeros of both signs, and values exactly at them."""
    ends = [-np.inf, np.inf, -0.0, 0.0, 5e-324, -5e-324, 1.7e308, -1.7e308]
    forest = random_forest(rng, 100, 2, 1, 1)
    forest = replace(forest, threshold=rng.choice(ends, forest.n_nodes))
    model = make_model(forest, 2, 1)
    X = rng.choice([*ends, np.nan], (100, 2))
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X))


def test_packed_once(rng):
    model = make_model(random_forest(rng, 30, 3, 1, 1), 3, 1)
    X = random_table(rng, 20, 3)
    predictions = model.predict(X)
    packed = model.packed
    model.predict(X)
    assert model.packed is packed
    plain = Model(**model.fields())
    assert plain.packed is not packed
    for other in (copy.deepcopy(plain), pickle.loads(pickle.dumps(plain)), model.truncated(30)):
        assert "packed" not in vars(other)
        np.testing.assert_array_equal(raw_scores(other, X, n_threads=1)[:, 0], predictions)
    assert not np.array_equal(model.truncated(10).predict(X), predictions)


def test_other_tables_are_refused(rng):
    model = make_model(random_forest(rng, 30, 3, 1, 1), 3, 1)
    for n_columns, shape in ((2, (5, 1)), (3, (5, 2)), (3, (4, 1))):
        table = ingest(np.zeros((5, n_columns)))
        with pytest.raises(ValueError, match="another number of"):
            model.packed.traverse(table.columns, np.zeros(shape), 1)


def level_trees(rng, depth, n_trees, n_features, share=1.0):
    """A model of full trees without some of their splits."""
    forest = random_forest(rng, n_trees, n_features, 1, 1, n_splits=0)
    for tree in range(n_trees):
        left, level = [0], [0]
        for _ in range(depth):
            below = []
            for node in level:
                if node and rng.random() > share:
                    continue
                left[node] = len(left)
                below += [len(left), len(left) + 1]
                left += [0, 0]
            level = below
        n = len(left)
        one = replace(
            random_forest(rng, 1, n_features, 1, 1, n_splits=0),
            tree_start=np.array([0, n]),
            feature=np.where(left, rng.integers(0, n_features, n), -1),
            level_set=np.full(n, -1),
            threshold=rng.normal(size=n).round(1),
            left=np.array(left),
            default_left=rng.integers(0, 2, n).astype(bool),
            value=rng.normal(size=(n, 1)),
            gain=np.zeros(n),
            cover=np.ones(n),
        )
        forest = one if tree == 0 else forest.joined(one)
    return make_model(forest, n_features, 1)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("share", [1.0, 0.8])
@pytest.mark.parametrize("depth", range(10))
def test_trees_of_every_depth(rng, depth, share, missing):
    """Full and nearly full trees; deeper trees are traversed in another way."""
    model = level_trees(rng, depth, 5, 4, share)
    X = random_table(rng, 600, 4, missing)
    X[:300] = X[:300].round(1)  # at thresholds
    expected = walk(model, X)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), expected)
    for rows in (slice(0, 40), slice(550, 600), slice(88, 600)):
        np.testing.assert_array_equal(raw_scores(model, X[rows], n_threads=2), expected[rows])
    for i in range(20):
        np.testing.assert_array_equal(model.row.raw(X[i : i + 1]), expected[i : i + 1])


@pytest.mark.parametrize("n_splits", [64, 127, 128, 254, 255, 256])
def test_as_many_leaves_as_a_byte_tells_apart(rng, n_splits):
    forest = random_forest(rng, 6, 3, 1, 1, n_splits=n_splits)
    while np.diff(forest.tree_start).max() != 2 * n_splits + 1:
        forest = random_forest(rng, 6, 3, 1, 1, n_splits=n_splits)
    model = make_model(many_thresholds(rng, forest), 3, 1)
    X = random_table(rng, 530, 3, 0.1)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), tree_by_tree(model, X))


def test_more_tests_than_one_group_takes(rng):
    """Thresholds of one feature that need several bytes, and many groups of trees."""
    forest = many_thresholds(rng, random_forest(rng, 300, 3, 3, 1, n_splits=200))
    model = make_model(forest, 3, 3)
    thresholds = forest.threshold[forest.is_split]
    X = rng.choice(thresholds, (600, 3))
    X[rng.random(X.shape) < 0.02] = np.nan
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=2), tree_by_tree(model, X))
    np.testing.assert_array_equal(raw_scores(model, X[40:90], n_threads=2), walk(model, X[40:90]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", ["depthwise", "leafwise"])
def test_rows_at_every_threshold_of_a_fit(rng, dtype, shape):
    """Rows at the thresholds and at the adjacent floating-point numbers; zeros of both signs."""
    X = rng.normal(size=(2000, 3)).astype(dtype)
    X[:, 1] = np.round(X[:, 1] * 3) / 3
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X).sum(axis=1) + rng.normal(size=len(X))
    fit = GradientBoostingRegressor(
        n_estimators=12,
        grow_policy=shape,
        max_leaves=30 if shape == "leafwise" else None,
        max_depth=None if shape == "leafwise" else 5,
    ).fit(X, y)
    model, forest = fit.model_, fit.model_.forest
    rows = []
    for feature in range(3):
        mine = forest.is_split & (forest.feature == feature)
        at = np.unique(forest.threshold[mine]).astype(dtype)
        around = [np.nextafter(at, dtype(np.inf)), at, np.nextafter(at, dtype(-np.inf))]
        values = np.concatenate([*around, dtype([0.0, -0.0, np.inf, -np.inf, np.nan])])
        some = X[rng.integers(0, len(X), len(values))]
        some[:, feature] = values
        rows.append(some)
    table = np.concatenate(rows)
    expected = walk(model, table)
    np.testing.assert_array_equal(model.predict_raw(table), expected)
    for i in range(len(table)):
        np.testing.assert_array_equal(model.predict_raw(table[i : i + 1]), expected[i : i + 1])


def test_wide_leaves_and_sets_by_blocks(rng):
    """Vector leaves, categories of few and many levels, rows that end inside a block."""
    for width, n_rows in ((1, 513), (3, 700)):
        forest = random_forest(rng, 30, 6, 3, width, n_splits=40, categories=(0, 2, 5))
        model = make_model(forest, 6, 3, categories=(0, 2, 5))
        X = random_table(rng, n_rows, 6, 0.05)
        for feature in (0, 2, 5):
            X[:, feature] = rng.integers(0, 260, n_rows)
        np.testing.assert_array_equal(raw_scores(model, X, n_threads=2), walk(model, X))


def scores_digest():
    """Digest of the scores of all kinds of traversal."""
    rng = np.random.default_rng(11)
    X = random_table(rng, 3000, 5, 0.02).astype(np.float32)
    y = np.nan_to_num(np.clip(X, -2, 2)).sum(axis=1)
    levels = X.copy()
    levels[:, 1] = rng.integers(0, 40, len(X))
    classes = np.digitize(y, [-1, 1])
    digest = hashlib.sha256()
    for model, table, target in (
        (GradientBoostingRegressor(n_estimators=30), X, y),
        (GradientBoostingRegressor(n_estimators=9, max_depth=9), X, y),
        (GradientBoostingRegressor(n_estimators=9, tree_method="exact", loss="poisson"), X, y**2),
        (
            GradientBoostingClassifier(
                n_estimators=9, grow_policy="leafwise", max_leaves=200, max_depth=None
            ),
            X,
            classes,
        ),
        (GradientBoostingClassifier(n_estimators=9, categorical_features=[1]), levels, y > 0),
    ):
        model.fit(table, target)
        for rows in (slice(0, 3000), slice(0, 600), slice(0, 20), slice(5, 6)):
            digest.update(model.predict(table[rows]).tobytes())
            digest.update(model.model_.predict_raw(table[rows]).tobytes())
            if model.model_.kind == "classifier":
                digest.update(model.predict_proba(table[rows]).tobytes())
    return digest.hexdigest()


@pytest.mark.slow
def test_same_bytes_for_every_instruction_set(instruction_sets):
    program = """
        from models.test_packed import scores_digest
        print(scores_digest())
    """
    wishes = (None, "avx512", "avx2", "baseline")
    actual = {instruction_sets.run(wish, program) for wish in wishes}
    assert len(actual) == 1
