"""The grower: the same trees as the plain reference, for any threads and any source of sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arboost import _core
from support.core_trees import (
    TREE_ARRAYS,
    core_params,
    encode,
    gradients_of,
    grow,
    wide_problem,
)
from support.reference import ReferenceGrower, Settings, fixed_point


def assert_same_tree(codes, n_bins, g, h, s, turn=0):
    tree, leaf_of_row, gradients = grow(codes, n_bins, g, h, s, turn=turn)
    fixed = gradients.to_numpy().astype(np.int64)
    np.testing.assert_array_equal(fixed[:, :, 0], fixed_point(g, np.abs(g).max())[0])
    np.testing.assert_array_equal(fixed[:, :, 1], fixed_point(h, h.max())[0])
    matrix = np.where(codes < 0, np.array(n_bins), codes)
    exponents = (gradients.g_exponent, gradients.h_exponent)
    reference = ReferenceGrower(matrix, n_bins, fixed, exponents, s, turn=turn)
    nodes = reference.grow()
    assert len(nodes) == len(tree["left"])
    for node in nodes:
        i = node.id
        if node.children:
            split = (tree["feature"][i], tree["bin"][i], tree["left"][i])
            assert split == (node.feature, node.bin, node.children[0].id)
            assert tree["default_left"][i] == node.missing_left
        else:
            assert tree["left"][i] == 0
            assert (leaf_of_row[node.rows] == i).all()
        value = tree["value"].reshape(-1, g.shape[1])[i]
        np.testing.assert_allclose(value, reference.leaf_value(node), rtol=1e-14, atol=1e-300)


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(2, 60))
    n_bins = draw(st.lists(st.sampled_from([1, 2, 3, 9, 40, 300]), min_size=1, max_size=3))
    codes = np.stack([rng.integers(0, bins, n) for bins in n_bins], axis=1)
    codes[rng.random(codes.shape) < draw(st.sampled_from([0.0, 0.3]))] = -1
    outputs = draw(st.sampled_from([1, 1, 3]))
    g = rng.normal(size=(n, outputs))
    h = draw(st.sampled_from([np.ones((n, outputs)), rng.uniform(0.1, 2, (n, outputs))]))
    s = Settings(
        max_depth=draw(st.sampled_from([1, 3, np.inf])),
        max_leaves=draw(st.sampled_from([2, 5, np.inf])),
        best_first=draw(st.booleans()),
        min_child_weight=draw(st.sampled_from([0.0, 1.0, 4.0])),
        min_samples_leaf=draw(st.sampled_from([1, 1, 4])),
        gamma=draw(st.sampled_from([0.0, 0.5])),
        reg_lambda=draw(st.sampled_from([0.0, 1.0])),
        reg_alpha=draw(st.sampled_from([0.0, 0.3])),
        max_delta_step=draw(st.sampled_from([0.0, 0.2])),
    )
    features = range(len(n_bins))
    if outputs == 1 and draw(st.booleans()):
        s.monotone = [draw(st.sampled_from([-1, 0, 1])) for _ in features]
    if draw(st.booleans()):
        group = st.sets(st.sampled_from(features), min_size=1).map(sorted)
        s.interactions = draw(st.lists(group, min_size=1, max_size=3))
    return codes, n_bins, g, h, s, draw(st.integers(0, 5))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_same_trees_as_the_reference(problem):
    assert_same_tree(*problem)


@pytest.mark.parametrize("best_first", [False, True])
@pytest.mark.parametrize("min_samples_leaf", [1, 20])
def test_same_trees_with_histograms_and_subtraction(best_first, min_samples_leaf):
    """Enough rows for every source of a node's sums: built, subtracted, and directly from rows."""
    rng = np.random.default_rng(3)
    n, n_bins = 1500, [40, 7, 12]
    codes = np.stack([rng.integers(0, bins, n) for bins in n_bins], axis=1)
    codes[rng.random(codes.shape) < 0.1] = -1
    g = rng.normal(size=(n, 1)) + (codes[:, :1] > 20) - (codes[:, 1:2] == 3)
    s = Settings(
        max_depth=np.inf,
        max_leaves=40,
        best_first=best_first,
        min_samples_leaf=min_samples_leaf,
    )
    assert_same_tree(codes, n_bins, g, np.ones_like(g), s)


def test_same_trees_when_gradients_are_rounded_to_travel_with_the_rows():
    rng = np.random.default_rng(4)
    n, n_bins = 40_000, [6, 3]
    codes = np.stack([rng.integers(0, bins, n) for bins in n_bins], axis=1)
    g = rng.normal(size=(n, 1)) + codes[:, :1]
    assert_same_tree(codes, n_bins, g, rng.uniform(0.5, 1, g.shape), Settings(max_depth=3))


def test_huge_gradients_do_not_hide_the_others():
    """15 bits would round small gradients to 0: the grower must use its wide integers."""
    rng = np.random.default_rng(5)
    n = 40_000
    codes = rng.integers(0, 10, (n, 1))
    g = np.where(codes > 4, 1.0, -1.0) + 0.1 * rng.normal(size=(n, 1))
    codes[:2] = 0
    g[:2] = [[1e6], [-1e6]]  # they cancel in every sum
    tree, *_ = grow(codes, [10], g, np.ones_like(g), Settings(max_depth=1))
    assert tree["bin"][0] == 4


def test_of_equal_splits_the_first_in_turn_is_taken():
    codes = np.repeat(np.arange(10)[:, np.newaxis] > 4, 4, axis=1).astype(int)
    g = np.where(codes[:, :1] > 0, 1.0, -1.0)
    for turn in range(9):
        tree, *_ = grow(codes, [2] * 4, g, np.ones_like(g), Settings(max_depth=1), turn=turn)
        assert tree["feature"][0] == turn % 4


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("best_first", [False, True])
def test_same_bytes_for_any_number_of_threads(outputs, best_first):
    problem = wide_problem(outputs=outputs)
    s = Settings(max_depth=9, max_leaves=63, best_first=best_first)
    one, *_ = grow(*problem, s)
    for n_threads in (2, 3, 4, 16):
        many, *_ = grow(*problem, s, n_threads=n_threads)
        for name in TREE_ARRAYS:
            assert one[name].tobytes() == many[name].tobytes(), (name, n_threads)


@pytest.mark.parametrize("outputs", [1, 3])
def test_same_bytes_without_memory_for_histograms(outputs):
    """Without a stored histogram of a node, those of its children are built from their rows."""
    problem = wide_problem(outputs=outputs)
    s = Settings(max_depth=9, max_leaves=63, best_first=True)
    kept, *_ = grow(*problem, s)
    for n_threads in (1, 4):
        built, *_ = grow(*problem, s, n_threads=n_threads, histogram_bytes=0)
        for name in TREE_ARRAYS:
            assert kept[name].tobytes() == built[name].tobytes(), (name, n_threads)


@pytest.mark.parametrize(("outputs", "min_samples_leaf"), [(1, 1), (3, 1), (5, 1), (1, 9), (5, 9)])
def test_same_bytes_from_blocks_of_columns(outputs, min_samples_leaf):
    """Without memory for a histogram a thread, the columns of one histogram are divided."""
    problem = wide_problem(n=17_000, features=200, outputs=outputs)
    s = Settings(max_depth=4, min_samples_leaf=min_samples_leaf)
    for colsample_bytree in (1.0, 0.95):
        by_rows, *_ = grow(*problem, s, colsample_bytree=colsample_bytree)
        by_columns, *_ = grow(
            *problem, s, n_threads=4, histogram_bytes=0, colsample_bytree=colsample_bytree
        )
        for name in TREE_ARRAYS:
            assert by_rows[name].tobytes() == by_columns[name].tobytes(), name


def test_memory_for_histograms_does_not_grow_with_the_threads():
    codes, n_bins, g, h = wide_problem(n=17_000, features=300)
    one = 300 * 201 * 8  # bytes of a histogram
    params = core_params(
        Settings(max_depth=12, max_leaves=64, best_first=True), histogram_bytes=4 * one
    )
    workspace = _core.Workspace()
    grower = _core.Grower(encode(codes, n_bins), 1, params, None, workspace)
    grower.grow(gradients_of(g, h), 0, seed=0, tree=0, rate=1.0, turn=0, n_threads=16)
    assert workspace.histogram_bytes <= 6 * one  # two of a node beyond the limit


def test_small_gradients_of_many_rows_are_not_rounded_away():
    """Few bits a row, as where hundreds of millions of rows share 31 bits."""
    n = 4000
    codes = np.arange(n)[:, None] // 20
    g = np.where(codes < 70, -0.01, 0.01)
    g[::20], g[1::20] = 3, -3  # these alone get many units
    problem = codes, [200], g, np.ones_like(g), Settings(max_depth=1, reg_lambda=0)
    fine, *_ = grow(*problem)
    coarse, *_ = grow(*problem, sum_bits=16)
    assert (fine["feature"][0], fine["bin"][0], len(fine["left"])) == (0, 69, 3)
    assert len(coarse["left"]) == 3
    assert abs(coarse["bin"][0] - 69) <= 3


def test_the_order_of_rows_does_not_matter_for_leaf_sums():
    codes, n_bins, g, h = wide_problem(n=20_000)
    order = np.random.default_rng(0).permutation(len(g))
    s = Settings(max_depth=5)
    whole, *_ = grow(codes, n_bins, g, h, s)
    shuffled, *_ = grow(codes[order], n_bins, g[order], h[order], s)
    for name in TREE_ARRAYS:
        assert whole[name].tobytes() == shuffled[name].tobytes()


def test_every_row_ends_in_the_leaf_its_codes_lead_to():
    codes, n_bins, g, h = wide_problem(n=40_000)
    tree, leaf_of_row, _ = grow(codes, n_bins, g, h, Settings(max_depth=7), n_threads=2)
    at = np.zeros(len(codes), dtype=int)
    for _ in range(7):
        code = codes[np.arange(len(codes)), tree["feature"][at]]
        left = np.where(code < 0, tree["default_left"][at] == 1, code <= tree["bin"][at])
        at = np.where(tree["left"][at] == 0, at, tree["left"][at] + ~left)
    np.testing.assert_array_equal(at, leaf_of_row)
    cover = np.zeros(len(tree["left"]))
    np.add.at(cover, at, h[:, 0])
    is_leaf = tree["left"] == 0
    np.testing.assert_allclose(tree["cover"][is_leaf], cover[is_leaf], rtol=1e-7)


def test_children_add_up_to_their_parent():
    codes, n_bins, g, h = wide_problem(n=40_000)
    tree, *_ = grow(codes, n_bins, g, h, Settings(max_depth=6))
    split = np.flatnonzero(tree["left"])
    left = tree["left"][split]
    children = tree["cover"][left] + tree["cover"][left + 1]
    np.testing.assert_allclose(tree["cover"][split], children, rtol=1e-12)


def test_a_table_with_two_byte_codes():
    rng = np.random.default_rng(8)
    n, bins = 5000, 3000
    codes = rng.integers(0, bins, (n, 1))
    g = np.where(codes < 1234, -1.0, 1.0)
    tree, *_ = grow(codes, [bins], g, np.ones_like(g), Settings(max_depth=1))
    assert (tree["feature"][0], len(tree["left"])) == (0, 3)
    left = codes[:, 0] <= tree["bin"][0]
    assert (left == (codes[:, 0] < 1234)).all()


def test_nothing_to_learn_gives_one_leaf():
    codes = np.random.default_rng(0).integers(0, 5, (100, 2))
    for g in (np.zeros((100, 1)), np.ones((100, 1))):
        tree, leaf_of_row, _ = grow(codes, [5, 5], g, np.ones((100, 1)), Settings(reg_lambda=0))
        assert len(tree["left"]) == 1
        assert (leaf_of_row == 0).all()
        assert tree["value"][0] == -g[0, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gradients_that_are_not_finite_are_refused(bad):
    g = np.ones((10, 1))
    g[3] = bad
    with pytest.raises(ValueError, match="infinite or not a number"):
        _core.set_gradients(g, np.ones_like(g), _core.Gradients(10, 1, by_row=False), 1)
