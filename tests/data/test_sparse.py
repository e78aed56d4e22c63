"""Sparse columns: the edges, codes and trees of dense ones, at the cost of the stored values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import arboost
from arboost import _core
from support.ranked import gradients_of, grow, params_of
from support.stored import assert_same, dense, encode, mixed_table, sparse, target, trees_of


@pytest.mark.parametrize("max_bins", [2, 11, 255, 300])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("some", [False, True])
def test_edges_and_codes_are_those_of_dense_columns(rng, max_bins, weighted, some):
    matrix = mixed_table(rng, 3000)
    matrix[:, 0] = np.where(rng.random(3000) < 0.3, rng.normal(size=3000), -0.0)
    rows = np.flatnonzero(rng.random(3000) < 0.5).astype(np.uint32) if some else None
    weights = rng.uniform(0.1, 3.0, 3000 if rows is None else len(rows)) if weighted else None
    expected = _core.quantiles(dense(matrix), rows, weights, max_bins, 1)
    for n_threads in (1, 2):
        found = _core.quantiles(sparse(matrix), rows, weights, max_bins, n_threads)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    one = _core.encode(dense(matrix), rows, expected, 1)
    other = _core.encode(sparse(matrix), rows, expected, 2)
    np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())
    np.testing.assert_array_equal(one.has_missing, other.has_missing)
    assert len(other.sparse_features) > 30
    assert other.n_stores + len(other.sparse_features) == matrix.shape[1]


def test_edges_of_many_rows_come_from_the_same_sample(rng):
    """Above 200,000 rows edges come from a sample; columns of few values are read in all rows."""
    n = 250_000
    column = np.where(rng.random(n) < 0.02, rng.normal(size=n), 0.0)
    counts = np.where(rng.random(n) < 0.001, rng.integers(1, 40, n), 0.0)
    lonely = np.zeros(n)
    lonely[rng.integers(n)] = 7.0
    matrix = np.stack([column, counts, lonely], axis=1)
    weights = rng.uniform(0.5, 2.0, n)
    for w in (None, weights):
        for max_bins in (16, 255):
            expected = _core.quantiles(dense(matrix), None, w, max_bins, 1)
            found = _core.quantiles(sparse(matrix), None, w, max_bins, 2)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
            assert found[2].tolist() == [3.5]


def test_a_value_may_mean_missing(rng):
    matrix = mixed_table(rng, 2000)
    for value in (0.0, 1.0):
        tables = dense(matrix), sparse(matrix)
        for table in tables:
            table.set_missing(value)
        edges = [_core.quantiles(table, None, None, 255, 1) for table in tables]
        for one, other in zip(*edges, strict=True):
            np.testing.assert_array_equal(one, other)
        codes = [_core.encode(table, None, edges[0], 1) for table in tables]
        codes.append(encode(tables[1], edges[0]))
        for other in codes[1:]:
            np.testing.assert_array_equal(other.to_numpy(), codes[0].to_numpy())
            np.testing.assert_array_equal(other.has_missing, codes[0].has_missing)


def test_values_that_are_stored_but_usual_are_not_kept():
    values = np.array([0.0, 2.0, 0.0, 3.0])
    columns = _core.Columns(1000)
    columns.add_sparse(np.array([3, 5, 7, 900], np.uint32), values, 0.0)
    codes = _core.encode(columns, None, [np.array([1.0, 2.5])], 1)
    expected = np.zeros(1000)
    expected[[5, 900]] = 1, 2
    np.testing.assert_array_equal(codes.to_numpy()[:, 0], expected)
    stored = codes.arrays
    assert stored[3].tolist() == [5, 900]


def test_dense_sparse_columns_are_stored_densely(rng):
    column = np.where(rng.random(1000) < 0.4, 1.0, 0.0)
    codes = _core.encode(sparse(column[:, None]), None, [np.array([0.5])], 1)
    assert codes.sparse_features == []
    assert codes.n_stores == 1


def test_bundles_of_sparse_columns_must_be_filled(rng):
    n = 20_000
    level = rng.integers(0, 100, n)
    full = (level[:, None] == np.arange(100)).astype(float)
    rare = (level[:, None] == np.arange(3)).astype(float)
    edges = [np.array([0.5])]
    assert encode(sparse(full), edges * 100).shared_columns == [[list(range(100))]]
    assert encode(sparse(rare), edges * 3).sparse_features == [0, 1, 2]


@pytest.mark.parametrize("bundling", [False, True])
@pytest.mark.parametrize("n_columns", [16, 17])
def test_a_few_sparse_columns_of_many_rows_are_stored_in_full(rng, n_columns, bundling):
    """Lists of a few values cost more than the columns; the trees are the same."""
    n = 70_000
    matrix = np.where(rng.random((n, n_columns)) < 0.1, rng.normal(size=(n, n_columns)), 0.0)
    matrix[:, :4] = np.round(matrix[:, :4])
    matrix[rng.random(n) < 0.01, 1] = np.nan
    edges = _core.quantiles(dense(matrix), None, None, 255, 1)
    codes = encode(sparse(matrix), edges, bundling=bundling)
    assert codes.sparse_features == ([] if n_columns == 16 else list(range(17)))
    plain = _core.encode(dense(matrix), None, edges, 1)
    np.testing.assert_array_equal(codes.to_numpy(), plain.to_numpy())
    g, h = np.nan_to_num(matrix[:, :2]).sum(axis=1, keepdims=True), np.ones((n, 1))
    expected = trees_of(plain, g, h, max_depth=5)
    for n_threads in (1, 2, 4):
        assert_same(trees_of(codes, g, h, max_depth=5, n_threads=n_threads), expected)


@pytest.mark.parametrize("n_rows", [1, 7, 300, 20_000])
def test_nodes_of_all_sizes(rng, n_rows):
    """A table of sparse columns only: small nodes search only their stored features."""
    matrix = np.where(rng.random((n_rows, 60)) < 0.03, rng.normal(size=(n_rows, 60)), 0.0)
    matrix[:, 30:] = matrix[:, 30:] > 0
    matrix[rng.random(matrix.shape) < 0.005] = np.nan
    edges = _core.quantiles(dense(matrix), None, None, 255, 1)
    g, h = target(rng, matrix, 1)
    plain = _core.encode(dense(matrix), None, edges, 1)
    codes = encode(sparse(matrix, stored=1.0), edges, bundling=False)
    expected = trees_of(plain, g, h, max_depth=10, min_child_weight=0.1)
    for n_threads in (1, 2):
        found = trees_of(codes, g, h, max_depth=10, min_child_weight=0.1, n_threads=n_threads)
        assert_same(found, expected)


def test_samples_walk_over_sparse_columns(rng):
    matrix = mixed_table(rng, 40_000)
    g, _ = target(rng, matrix, 1)
    X = scipy.sparse.csc_matrix(np.nan_to_num(matrix))
    expected = None
    for table in (X.toarray(), X, X.tocsr()):
        model = arboost.GradientBoostingRegressor(
            n_estimators=4, subsample=0.3, sampling_method="gradient_based", n_iter_no_change=3
        )
        raw = model.fit(table, g[:, 0]).predict(X.toarray())
        expected = raw if expected is None else expected
        np.testing.assert_array_equal(raw, expected)


@pytest.mark.parametrize("candidates", ["values", "per_round", "per_node"])
def test_ranks_and_fine_bins_of_sparse_columns(rng, candidates):
    matrix = mixed_table(rng, 1500)
    g, h = target(rng, matrix, 1)
    params = params_of(getattr(_core.Candidates, candidates), sketch_eps=0.05)
    edges = _core.quantiles(dense(matrix), None, None, 65535, 1)

    def codes(table):
        if candidates == "values":
            return _core.rank(table, None, 1)
        return _core.encode(table, None, edges, 1, plan=_core.StoragePlan())

    one, other = (
        grow(codes(table), gradients_of(g, h), params, n_trees=2)
        for table in (dense(matrix), sparse(matrix))
    )
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])


def test_fits_and_cross_validation_of_sparse_tables(rng):
    X = scipy.sparse.random(3000, 80, 0.03, "csr", random_state=1)
    y = np.asarray(X @ rng.normal(size=80)) + rng.normal(size=3000) * 0.1
    for loss, labels in (("squared_error", y), ("log_loss", (y > 0.1) + (y > 0.5))):
        kind = "Regressor" if loss == "squared_error" else "Classifier"
        make = getattr(arboost, f"GradientBoosting{kind}")
        probe = X[:500]
        models = [make(n_estimators=5, random_state=1).fit(T, labels) for T in (X, X.toarray())]
        one, other = (model.predict(probe) for model in models)
        np.testing.assert_array_equal(one, other)
