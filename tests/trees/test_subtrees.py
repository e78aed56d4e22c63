"""Subtrees that are grown at once: the same trees as node by node, for any size."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arboost import _core
from arboost.data.bins import storage_plan
from support.core_trees import encode

NEVER = 0
# Rows of a node below which its subtree is grown at once; None is the core's own choice.
SIZES = [2, 7, 40, 150, 1000, 10**9, None]


def codes_of(rng, n, n_bins, missing, categories=()):
    codes = np.stack([rng.integers(0, bins, n) for bins in n_bins], axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    if not categories:
        return encode(codes, n_bins)
    columns = _core.Columns(n)
    columns.add_matrix(np.where(codes < 0, np.nan, codes.astype(float)))
    flags = [f in categories for f in range(len(n_bins))]
    edges = [np.arange(bins - 1) + 0.5 for bins in n_bins]
    return _core.encode(columns, None, edges, 1, categorical=flags)


def gradients_of(rng, n, outputs, kind):
    """Gradients of classification (many are equal), of regression, and of tiny weights."""
    if kind == "classes":
        g = -(rng.integers(0, outputs + 1, n)[:, None] == np.arange(outputs)).astype(float)
        h = np.ones((n, outputs))
    else:
        g = rng.normal(size=(n, outputs))
        h = rng.uniform(0.1, 2.0, (n, outputs)) if kind == "numbers" else np.ones((n, outputs))
    if kind == "light rows":
        light = rng.random(n) < 0.3
        g[light] *= 1e-12
        h[light] *= 1e-12
    gradients = _core.Gradients(n, outputs, by_row=True)
    _core.set_gradients(g, h, gradients, 1)
    return gradients


def grow(codes, gradients, width, subtree_rows, *, n_threads=1, sample=None, turn=0, **params):
    tree_params = _core.TreeParams()
    for name, value in params.items():
        setattr(tree_params, name, value)
    if subtree_rows is not None:
        tree_params.subtree_rows = subtree_rows
    grower = _core.Grower(codes, width, tree_params)
    grower.grow(
        gradients, 0, seed=3, tree=1, rate=0.5, turn=turn, sample=sample, n_threads=n_threads
    )
    return grower.trees() | {"leaf": grower.leaf_of_row()}


def assert_same(one, other):
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def bootstrap(n, seed):
    sample = _core.Sample()
    sample.draw_with_replacement(n, n, seed, 0, 1)
    return sample


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([2, 3, 20, 90, 150, 400, 1500]))
    n_bins = draw(st.lists(st.sampled_from([1, 2, 3, 9, 40, 200]), min_size=1, max_size=6))
    n_bins *= draw(st.sampled_from([1, 1, 1, 8, 12]))  # rows of more than 32 columns, or 64
    if draw(st.integers(0, 4)) == 0:
        n_bins[0] = 300  # two-byte codes
    categories = [0] if n_bins[0] < 100 and draw(st.integers(0, 3)) == 0 else []
    missing = draw(st.sampled_from([0.0, 0.0, 0.3]))
    outputs = draw(st.sampled_from([1, 1, 2, 3, 4, 9]))
    kind = draw(st.sampled_from(["classes", "numbers", "light rows"]))
    params = {
        "max_depth": draw(st.sampled_from([4, None, None])),
        "max_leaves": draw(st.sampled_from([None, None, max(2, n // 5)])),
        "best_first": draw(st.booleans()),
        "min_child_weight": draw(st.sampled_from([0.0, 0.0, 2.0])),
        "min_samples_leaf": draw(st.sampled_from([1, 1, 5])),
        "gamma": draw(st.sampled_from([0.0, 0.1])),
        "reg_lambda": draw(st.sampled_from([0.0, 0.0, 1.0])),
        "reg_alpha": draw(st.sampled_from([0.0, 0.0, 0.0, 0.2])),
        "colsample_bynode": draw(st.sampled_from([0.4, 0.4, 1.0])),
        "colsample_bylevel": draw(st.sampled_from([0.7, 1.0, 1.0])),
        "random_cuts": draw(st.booleans()),
        "allow_zero_gain": draw(st.booleans()),
        "turn": draw(st.integers(0, 6)),
        "sample": bootstrap(n, 5) if draw(st.booleans()) else None,
    }
    codes = codes_of(rng, n, n_bins, missing, categories)
    return codes, gradients_of(rng, n, outputs, kind), outputs, params


@given(problems(), st.sampled_from(SIZES))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_tree_as_node_by_node(problem, size):
    codes, gradients, outputs, params = problem
    assert_same(
        grow(codes, gradients, outputs, NEVER, **params),
        grow(codes, gradients, outputs, size, **params),
    )


@pytest.mark.parametrize("best_first", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_deep_tree_for_any_threads(outputs, best_first):
    """Enough rows for gradients stored with the rows, threads, and histograms at the top."""
    rng = np.random.default_rng(2)
    n = 40_000
    codes = codes_of(rng, n, [250] * 8 + [30], 0.02)
    gradients = gradients_of(rng, n, outputs, "classes")
    params = {
        "max_depth": None,
        "min_child_weight": 0.0,
        "reg_lambda": 0.0,
        "colsample_bynode": 0.3,
        "best_first": best_first,
        "sample": bootstrap(n, 1),
    }
    expected = grow(codes, gradients, outputs, NEVER, **params)
    assert len(expected["left"]) > 10_000
    for size, n_threads in ((None, 1), (None, 2), (None, 4), (20, 2), (3000, 4)):
        assert_same(expected, grow(codes, gradients, outputs, size, n_threads=n_threads, **params))


@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_columns_that_share_a_byte(outputs, random_cuts):
    """Columns packed in one byte, exclusive flags (EFB) among them, and columns alone."""
    rng = np.random.default_rng(4)
    n = 3000
    X = rng.integers(0, [200, 3, 4, 2, 5, 90], (n, 6)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    flags = (rng.integers(0, 30, n)[:, None] == np.arange(8)).astype(float)
    X = np.hstack([X, flags])
    columns = _core.Columns(n)
    columns.add_matrix(X)
    edges = [np.unique(c[~np.isnan(c)])[:-1] + 0.5 for c in X.T]
    plan = storage_plan(columns, None, edges)
    shared = _core.encode(columns, None, edges, 1, [False] * len(edges), plan)
    own = _core.encode(columns, None, edges, 1)
    assert shared.n_stores < own.n_stores
    gradients = gradients_of(rng, n, outputs, "classes")
    params = {
        "max_depth": None,
        "min_child_weight": 0.0,
        "reg_lambda": 0.0,
        "colsample_bynode": 0.3,
        "random_cuts": random_cuts,
        "allow_zero_gain": True,
        "sample": bootstrap(n, 1),
    }
    expected = grow(own, gradients, outputs, NEVER, **params)
    assert len(expected["left"]) > 500
    for size in SIZES:
        assert_same(expected, grow(shared, gradients, outputs, size, **params))


def test_a_pure_node_is_a_leaf():
    """Rows of one class are a leaf, for any counts of draws: weights are no reason to split."""
    rng = np.random.default_rng(0)
    n = 300
    codes = codes_of(rng, n, [50, 50], 0.0)
    first = np.asarray(rng.integers(0, 2, n), float)
    gradients = _core.Gradients(n, 1, by_row=True)
    _core.set_gradients(-first[:, None], np.ones((n, 1)), gradients, 1)
    tree = grow(codes, gradients, 1, None, max_depth=None, reg_lambda=0.0, sample=bootstrap(n, 1))
    value = tree["value"]
    leaves = tree["left"] == 0
    assert leaves.sum() > 20
    inner = value[~leaves]
    assert ((inner > 0) & (inner < 0.5)).all()


def test_time_of_large_nodes_with_codes_of_two_bytes():
    """Rows of a large node are not sorted: the time would be quadratic in their number."""
    n = 1 << 20
    rng = np.random.default_rng(0)
    gradients = gradients_of(rng, n, 3, "classes")
    seconds = []
    for n_bins in (250, 300):
        codes = encode(rng.integers(0, n_bins, (n, 8)), [n_bins] * 8)
        start = time.process_time()
        grow(codes, gradients, 3, None, colsample_bynode=0.01, min_samples_leaf=n // 3)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 3 * seconds[0]
