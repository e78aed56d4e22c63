"""Exact trees: the same as histogram trees with one bin per value, and as the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arboost import Dataset, _core
from support import reference
from support.ranked import (
    assert_same_bytes,
    columns_of,
    gradients_of,
    grow,
    params_of,
    random_gradients,
    random_values,
)

BINS, VALUES = _core.Candidates.bins, _core.Candidates.values


def assert_like_hist(matrix, g, h, *, rows=None, sample=None, n_trees=1, **tree):
    """The same bytes as histogram trees on codes of one value each."""
    ranks = _core.rank(columns_of(matrix), None, 1)
    codes = _core.encode(columns_of(matrix), None, list(ranks.edges), 1)
    gradients = gradients_of(g, h)
    more = {"rows": rows, "sample": sample, "n_trees": n_trees}
    exact = grow(ranks, gradients, params_of(VALUES, **tree), **more)
    hist = grow(codes, gradients, params_of(BINS, **tree), **more)
    assert_same_bytes(exact, hist)
    return exact


trees = st.fixed_dictionaries(
    {
        "max_depth": st.sampled_from([1, 3, 6, None]),
        "max_leaves": st.sampled_from([3, 20, None]),
        "best_first": st.booleans(),
        "min_child_weight": st.sampled_from([0.0, 1.0, 5.0]),
        "min_samples_leaf": st.sampled_from([1, 4]),
        "gamma": st.sampled_from([0.0, 0.5]),
        "reg_lambda": st.sampled_from([0.0, 1.0]),
        "reg_alpha": st.sampled_from([0.0, 0.2]),
        "max_delta_step": st.sampled_from([0.0, 0.3]),
        "colsample_bytree": st.sampled_from([0.5, 1.0]),
        "colsample_bylevel": st.sampled_from([0.7, 1.0]),
        "colsample_bynode": st.sampled_from([0.6, 1.0]),
        "interactions": st.sampled_from([[], [[0, 1], [1, 2, 3]]]),
    }
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2**32),
    st.sampled_from([2, 30, 1500]),
    st.sampled_from([1, 1, 3]),
    st.sampled_from([[], [1, 0, -1, 0]]),
    st.booleans(),
    trees,
)
def test_same_bytes_as_with_a_bin_for_every_value(seed, n, outputs, monotone, some_rows, tree):
    rng = np.random.default_rng(seed)
    # With constraints and missing values, histograms also try only the missing values on the left,
    # where they have empty bins below all values of a node.
    matrix = random_values(rng, n, missing=0.0 if monotone else rng.choice([0.0, 0.2]))
    rows = sample = None
    if some_rows and n > 2:
        rows = np.sort(rng.choice(n, 2 * n // 3, replace=False)).astype(np.uint32)
    used = matrix if rows is None else matrix[rows]
    g, h = random_gradients(rng, used, outputs)
    if rng.random() < 0.5:
        sample = _core.Sample()
        sample.draw_by_gradient(gradients_of(g, h), 0.6, 1.0, 3, 0, 1)
    tree = tree | {"monotone": monotone if outputs == 1 else []}
    assert_like_hist(matrix, g, h, rows=rows, sample=sample, n_trees=2, **tree)


def test_same_bytes_as_hist_on_a_large_table_of_few_values():
    """More rows than a block, and nodes that all threads share."""
    rng = np.random.default_rng(1)
    matrix = np.floor(random_values(rng, 30_000) * 30)
    g, h = random_gradients(rng, matrix)
    tree = assert_like_hist(matrix, g, h, max_depth=7)
    assert len(tree["left"]) > 60


def assert_like_reference(matrix, g, h, s, **tree):
    ranks = _core.rank(columns_of(matrix), None, 1)
    gradients = gradients_of(g, h)
    actual = grow(ranks, gradients, params_of(VALUES, **tree))
    fixed = gradients.to_numpy().astype(np.int64)
    exponents = (gradients.g_exponent, gradients.h_exponent)
    oracle = reference.ReferenceGrower(
        ranks.to_numpy(), ranks.n_bins.tolist(), fixed, exponents, s, edges=ranks.edges
    )
    nodes = oracle.grow()
    assert len(nodes) == len(actual["left"])
    for node in nodes:
        i = node.id
        assert (actual["left"][i] > 0) == bool(node.children)
        if node.children:
            assert (actual["feature"][i], actual["bin"][i]) == (node.feature, node.bin)
            assert actual["default_left"][i] == node.missing_left
        np.testing.assert_allclose(actual["value"][i], 0.5 * oracle.leaf_value(node), rtol=1e-14)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 60), st.sampled_from([1, 3]))
def test_same_trees_as_the_reference(seed, n, depth):
    rng = np.random.default_rng(seed)
    matrix = random_values(rng, n)
    g, h = random_gradients(rng, matrix)
    assert_like_reference(matrix, g, h, reference.Settings(max_depth=depth), max_depth=depth)


def test_large_problems_keep_all_bits_of_their_gradients(monkeypatch):
    """Where histograms round gradients to 15 bits, exact trees do not."""
    monkeypatch.setattr(reference, "NARROW_ROWS", np.inf)
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 6, (40_000, 2)).astype(float)
    g, h = rng.normal(size=(40_000, 1)) + matrix[:, :1] / 50, rng.uniform(0.5, 1, (40_000, 1))
    assert_like_reference(matrix, g, h, reference.Settings(max_depth=3), max_depth=3)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("best_first", [False, True])
def test_same_bytes_for_any_number_of_threads(outputs, best_first):
    rng = np.random.default_rng(3)
    matrix = random_values(rng, 50_000)
    ranks = _core.rank(columns_of(matrix), None, 2)
    gradients = gradients_of(*random_gradients(rng, matrix, outputs))
    params = params_of(VALUES, max_depth=9, max_leaves=63, best_first=best_first)
    one = grow(ranks, gradients, params)
    for n_threads in (2, 4, 16):
        assert_same_bytes(one, grow(ranks, gradients, params, n_threads=n_threads))


def test_the_best_split_of_all_is_found():
    """A step between two of 5000 values, which is no edge of 255 bins."""
    x = np.random.default_rng(4).permutation(5000).astype(float)
    g = np.where(x <= 3210, -1.0, 1.0)[:, np.newaxis]
    ranks = _core.rank(columns_of(x[:, np.newaxis]), None, 1)
    tree = grow(ranks, gradients_of(g, np.ones_like(g)), params_of(VALUES, max_depth=1))
    assert tree["bin"][0] == 3210
    assert ranks.edges[0][3210] == 3210.5


def test_scores_of_rows_outside_the_sample():
    rng = np.random.default_rng(5)
    matrix = random_values(rng, 3000)
    ranks = _core.rank(columns_of(matrix), None, 1)
    gradients = gradients_of(*random_gradients(rng, matrix))
    sample = _core.Sample()
    sample.draw(3000, 0.5, 1, 0, 1)
    grower = _core.Grower(ranks, 1, params_of(VALUES))
    grower.grow(gradients, 0, seed=5, tree=0, rate=0.5, sample=sample, n_threads=1)
    scores, walked = np.zeros((3000, 1)), np.zeros((3000, 1))
    grower.add_leaves(scores, 0, 1)
    wide = _core.encode(columns_of(matrix), None, list(ranks.edges), 1)
    grower.add_tree(0, 1.0, wide, None, walked, 0, 1)
    np.testing.assert_array_equal(scores, walked)
    leaf, values = grower.leaf_of_row(), grower.trees()["value"]
    inside = leaf != 2**32 - 1
    np.testing.assert_array_equal(scores[inside, 0], values[leaf[inside]])


def test_codes_and_candidates_must_fit():
    matrix = np.arange(6.0).reshape(3, 2)
    ranks = _core.rank(columns_of(matrix), None, 1)
    codes = _core.encode(columns_of(matrix), None, list(ranks.edges), 1)
    for table, candidates in ((ranks, BINS), (codes, VALUES)):
        with pytest.raises(ValueError, match="candidates"):
            _core.Grower(table, 1, params_of(candidates))


def test_a_dataset_of_ranks():
    X = np.array([[1.0, 0.0], [2.0, np.nan], [4.0, -0.0], [2.0, 5.0]])
    data = Dataset(X, sample_weight=[1, 1, 1, 0], tree_method="exact")
    assert [edges.tolist() for edges in data.binned.edges] == [[1.5, 3.0], []]
    assert data.binned.codes.to_numpy().tolist() == [[0, 0], [1, 1], [2, 0]]
    assert repr(data) == "Dataset(3 rows, 2 features, tree_method='exact')"
    data.binned.require("exact")
    with pytest.raises(ValueError, match='tree_method="approx"'):
        data.binned.require("approx")
    with pytest.raises(ValueError, match='tree_method="hist"'):
        data.binned.require("hist")
    with pytest.raises(ValueError, match='tree_method="exact"'):
        Dataset(X).binned.require("exact")
    with pytest.raises(ValueError, match="hist, exact, approx"):
        Dataset(X, tree_method="sorted")
