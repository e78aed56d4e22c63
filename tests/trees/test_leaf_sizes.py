"""Leaf sizes from hessians: the same trees as with rows counted in every histogram."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arboost import _core
from arboost.data.bins import storage_plan

HESSIANS = ["equal", "logistic", "heavy tails", "some zero", "most zero"]


def hessians_of(rng, shape, kind):
    """Return hessians whose range leaves no doubt, some doubt, or nothing but doubt."""
    if kind == "equal":
        return np.ones(shape)
    if kind == "logistic":
        p = 1 / (1 + np.exp(-2 * rng.normal(size=shape)))
        return p * (1 - p)
    if kind == "heavy tails":
        return np.exp(3 * rng.normal(size=shape))
    h = rng.uniform(0.1, 1, shape)
    h[rng.random(shape[0]) < (0.3 if kind == "some zero" else 0.9)] = 0.0
    return h


def gradients_of(rng, codes, outputs, hessians):
    """Gradients that depend on two columns; rows of hessian 0 have gradient 0."""
    n = len(codes)
    h = hessians_of(rng, (n, outputs), hessians)
    signal = np.sin(codes[:, :1]) + (codes[:, -1:] == 0) * rng.choice([0, 3, 30])
    g = (signal + rng.normal(size=(n, outputs))) * np.sqrt(h)
    gradients = _core.Gradients(n, outputs, by_row=True)
    _core.set_gradients(g, h, gradients, 1)
    return gradients


def encode(codes, n_bins, *, categories=(), shared=False):
    X = np.where(codes < 0, np.nan, codes.astype(float))
    columns = _core.Columns(len(codes))
    columns.add_matrix(X)
    edges = [np.arange(n - 1) + 0.5 for n in n_bins]
    plan = storage_plan(columns, None, edges) if shared else None
    flags = [f in categories for f in range(len(n_bins))]
    return _core.encode(columns, None, edges, 1, flags, plan)


def grow(codes, gradients, outputs, *, n_threads=1, sample=None, **params):
    tree_params = _core.TreeParams()
    for name, value in params.items():
        setattr(tree_params, name, value)
    grower = _core.Grower(codes, outputs, tree_params)
    grower.grow(gradients, 0, seed=3, tree=1, rate=1.0, sample=sample, n_threads=n_threads)
    return grower.trees() | {"leaf": grower.leaf_of_row()}


def assert_counts_change_nothing(*args, **params):
    expected = grow(*args, count_rows=True, **params)
    actual = grow(*args, **params)
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)
    return actual


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([60, 400, 1500, 4000]))
    n_bins = draw(st.lists(st.sampled_from([2, 3, 9, 40, 120]), min_size=1, max_size=5))
    if draw(st.integers(0, 5)) == 0:
        n_bins[0] = 300  # two-byte codes
    outputs = draw(st.sampled_from([1, 1, 1, 2, 3]))
    # Geometric codes: most splits are near a side of few rows.
    codes = np.stack([np.minimum(rng.geometric(2 / (b + 1), n) - 1, b - 1) for b in n_bins], axis=1)
    codes[rng.random(codes.shape) < draw(st.sampled_from([0.0, 0.0, 0.005, 0.3]))] = -1
    categories = [0] if n_bins[0] < 100 and draw(st.integers(0, 3)) == 0 else []
    sample = _core.Sample() if draw(st.integers(0, 3)) == 0 else None
    if sample is not None:
        sample.draw_with_replacement(n, n, 5, 0, 1)
    params = {
        "max_depth": draw(st.sampled_from([3, None, None])),
        "max_leaves": draw(st.sampled_from([None, 10, 40])),
        "best_first": draw(st.booleans()),
        "min_child_weight": draw(st.sampled_from([0.0, 0.0, 2.0])),
        "min_samples_leaf": draw(st.sampled_from([2, 5, 20, 100])),
        "reg_lambda": draw(st.sampled_from([0.0, 1.0])),
        "reg_alpha": draw(st.sampled_from([0.0, 0.0, 0.2])),
        "max_delta_step": draw(st.sampled_from([0.0, 0.0, 0.5])),
        "colsample_bynode": draw(st.sampled_from([0.4, 1.0, 1.0])),
        "random_cuts": draw(st.integers(0, 5)) == 0,
        "allow_zero_gain": draw(st.integers(0, 2)) == 0,
        "subtree_rows": draw(st.sampled_from([0, 0, 100])),
        "n_threads": draw(st.sampled_from([1, 2])),
        "sample": sample,
    }
    if outputs == 1 and not categories and draw(st.integers(0, 3)) == 0:
        params["monotone"] = [int(rng.integers(-1, 2)) for _ in n_bins]
    gradients = gradients_of(rng, codes, outputs, draw(st.sampled_from(HESSIANS)))
    table = encode(codes, n_bins, categories=categories, shared=draw(st.booleans()))
    return table, gradients, outputs, params


@given(problems())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_tree_as_with_counts(problem):
    *args, params = problem
    assert_counts_change_nothing(*args, **params)


@pytest.mark.parametrize("hessians", HESSIANS)
def test_gradients_stored_with_the_rows(hessians):
    """From 32,768 rows on, hessians are rounded at random: equal ones may differ by a unit."""
    rng = np.random.default_rng(1)
    codes = np.minimum(rng.geometric(0.05, (40_000, 5)) - 1, 99)
    codes[rng.random(codes.shape) < 0.02] = -1
    gradients = gradients_of(rng, codes, 1, hessians)
    limits = {"min_child_weight": 0.0, "max_leaves": 120, "max_depth": None, "best_first": True}
    for least in (20, 300):
        tree = assert_counts_change_nothing(
            encode(codes, [100] * 5), gradients, 1, n_threads=2, min_samples_leaf=least, **limits
        )
        sizes = np.bincount(tree["leaf"])
        assert (tree["left"] == 0).sum() > 30
        assert sizes[sizes > 0].min() >= least


@pytest.mark.parametrize("n_rare", [19, 20])
def test_a_split_in_doubt_is_counted(n_rare):
    """Rare rows of large hessians have the best split; they are enough only if there are 20."""
    rng = np.random.default_rng(0)
    n = 4000
    codes = rng.integers(0, 30, (n, 3))
    codes[:, 1] = 0
    codes[:n_rare, 1] = 1
    g = rng.normal(size=(n, 1)) + (codes[:, :1] > 12)
    h = np.full((n, 1), 0.2)
    g[:n_rare] = 60.0
    h[: n_rare // 2] = 5.0
    gradients = _core.Gradients(n, 1, by_row=True)
    _core.set_gradients(g, h, gradients, 1)
    codes = encode(codes, [30, 2, 30])
    tree = assert_counts_change_nothing(codes, gradients, 1, max_depth=2, min_samples_leaf=20)
    assert tree["feature"][0] == (1 if n_rare == 20 else 0)
