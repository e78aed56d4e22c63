"""Leaves and paths of rows, against a walk in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from arboost.data.table import ingest
from arboost.models.prediction import decision_path, leaf_ids
from arboost.trees.forest import Forest, depths, parents
from support.random_models import ODD_CODES, make_model, random_forest, random_table


def walked(forest, X):
    """Nodes of each row in each tree, from the root to the leaf."""
    paths = [[[] for _ in range(forest.n_trees)] for _ in X]
    for row, x in enumerate(X):
        for tree in range(forest.n_trees):
            start, node = forest.tree_start[tree], 0
            path = paths[row][tree]
            path.append(0)
            while forest.left[start + node]:
                at = start + node
                value, number = x[forest.feature[at]], forest.level_set[at]
                goes_left = forest.default_left[at]
                if number >= 0:
                    if value in range(255):
                        word = int(forest.level_sets[number, int(value) // 64])
                        goes_left = word >> (int(value) % 64) & 1
                elif not np.isnan(value):
                    goes_left = value <= forest.threshold[at]
                node = int(forest.left[at]) + (not goes_left)
                path.append(node)
    return paths


CASES = [(1, 1, 1), (3, 1, 3), (3, 3, 1)]  # outputs, width, trees of a round


@pytest.mark.parametrize("n_rows", [1, 9, 200])
@pytest.mark.parametrize(("n_outputs", "width", "per_round"), CASES)
@pytest.mark.parametrize("categories", [(), (1, 3)])
def test_leaves_and_paths(rng, n_rows, n_outputs, width, per_round, categories):
    forest = random_forest(rng, 12, 5, n_outputs, width, categories=categories)
    model = make_model(forest, 5, n_outputs, per_round, categories)
    X = random_table(rng, n_rows, 5)
    for feature in categories:
        X[:, feature] = rng.choice([*range(255), *ODD_CODES], n_rows)
    numbers = ingest(X, make_model(forest, 5, n_outputs).schema) if not categories else None
    table = numbers or raw_codes(X, model.schema)
    expected = walked(forest, X)
    found = leaf_ids(model, table, n_threads=1)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [[path[-1] for path in row] for row in expected])

    indicator, tree_start = decision_path(model, table, n_threads=1)
    np.testing.assert_array_equal(tree_start, forest.tree_start)
    assert indicator.shape == (n_rows, forest.n_nodes)
    assert indicator.has_sorted_indices
    assert (indicator.data == 1).all()
    for row, paths in enumerate(expected):
        nodes = np.concatenate([forest.tree_start[t] + path for t, path in enumerate(paths)])
        start, end = indicator.indptr[row : row + 2]
        np.testing.assert_array_equal(indicator.indices[start:end], nodes)


def raw_codes(X, schema):
    """A table of level codes, some of them invalid."""
    table = ingest(X)
    return type(table)(table.columns, schema)


def test_same_for_any_number_of_threads(rng):
    forest = random_forest(rng, 30, 5, 1, 1, n_splits=60)
    model = make_model(forest, 5, 1)
    table = ingest(random_table(rng, 20_000, 5), model.schema)
    one, four = (leaf_ids(model, table, n_threads=n) for n in (1, 4))
    assert one.tobytes() == four.tobytes()


def test_no_trees_and_no_rows(rng):
    empty = make_model(Forest.empty(), 2, 1)
    table = ingest(np.zeros((4, 2)), empty.schema)
    assert leaf_ids(empty, table, n_threads=1).shape == (4, 0)
    indicator, tree_start = decision_path(empty, table, n_threads=1)
    assert indicator.shape == (4, 0)
    assert tree_start.tolist() == [0]
    model = make_model(random_forest(rng, 3, 2, 1, 1), 2, 1)
    no_rows = ingest(np.zeros((0, 2)), model.schema)
    assert leaf_ids(model, no_rows, n_threads=1).shape == (0, 3)
    assert decision_path(model, no_rows, n_threads=1)[0].shape == (0, model.forest.n_nodes)


def test_parents_and_depths(rng):
    forest = random_forest(rng, 20, 5, 1, 1)
    above, depth = parents(forest), depths(forest)
    expected_parent, expected_depth = np.full(forest.n_nodes, -1), np.zeros(forest.n_nodes)
    for start, end in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True):
        for node in range(start, end):
            if forest.left[node]:
                children = start + forest.left[node] + np.arange(2)
                expected_parent[children] = node
                expected_depth[children] = expected_depth[node] + 1
    np.testing.assert_array_equal(above, expected_parent)
    np.testing.assert_array_equal(depth, expected_depth)


def test_core_refuses_what_does_not_fit(rng):
    packed = make_model(random_forest(rng, 3, 2, 1, 1), 2, 1).packed
    columns = ingest(np.zeros((4, 2))).columns
    for shape in ((4, 2), (3, 3)):
        with pytest.raises(ValueError, match="one column for each tree"):
            packed.leaves(columns, np.empty(shape, np.int32), 1)
    with pytest.raises(TypeError):
        packed.leaves(columns, np.empty((4, 3), np.int64), 1)
    with pytest.raises(ValueError, match="another number of columns"):
        packed.leaves(ingest(np.zeros((4, 3))).columns, np.empty((4, 3), np.int32), 1)
