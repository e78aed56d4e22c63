"""Rows and columns of a tree: subsets, samples, and the leaves of rows outside the sample."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import _core
from arboost.trees.samples import RowSampling
from support.growing import TREE_ARRAYS, core_params, encode, gradients_of, grow, wide_problem
from support.reference import Settings

OUTSIDE = 2**32 - 1


def drawn(n, rate, seed=0, draw=0, n_threads=1):
    sample = _core.Sample()
    sample.draw(n, rate, seed, draw, n_threads)
    return sample


def walked(tree, codes):
    """The leaf of each row, by the definition of a tree."""
    at = np.zeros(len(codes), dtype=int)
    for _ in range(len(tree["left"])):
        code = codes[np.arange(len(codes)), tree["feature"][at]]
        left = np.where(code < 0, tree["default_left"][at] == 1, code <= tree["bin"][at])
        to = np.where(tree["left"][at] == 0, at, tree["left"][at] + ~left)
        if (to == at).all():
            return at
        at = to
    raise AssertionError("a walk without end")


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("n", [900, 50_000])
def test_rows_of_a_table_grow_the_tree_of_a_table_of_these_rows(n, outputs):
    codes, n_bins, g, h = wide_problem(n=n, outputs=outputs)
    rows = np.flatnonzero(np.random.default_rng(1).random(n) < 0.7).astype(np.uint32)
    s = Settings(max_depth=6)
    alone, leaf, _ = grow(codes[rows], n_bins, g[rows], h[rows], s)
    grower = _core.Grower(encode(codes, n_bins), outputs, core_params(s), rows)
    grower.grow(gradients_of(g[rows], h[rows]), 0, seed=0, tree=0, rate=1.0, n_threads=2)
    for name in TREE_ARRAYS:
        assert grower.trees()[name].tobytes() == alone[name].tobytes()
    np.testing.assert_array_equal(grower.leaf_of_row(), leaf)


@pytest.mark.parametrize("outputs", [1, 3])
def test_rows_outside_a_sample_do_not_touch_the_tree(outputs):
    codes, n_bins, g, h = wide_problem(n=5000, outputs=outputs)
    sample = drawn(5000, 0.5)
    inside = sample.positions()
    s = Settings(max_depth=6)
    alone, leaf, _ = grow(codes[inside], n_bins, g[inside], h[inside], s)
    grower = _core.Grower(encode(codes, n_bins), outputs, core_params(s))
    grower.grow(gradients_of(g, h), 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
    tree = grower.trees()
    for name in ("feature", "bin", "left", "default_left"):
        np.testing.assert_array_equal(tree[name], alone[name])
    # All rows share one scale of fixed-point numbers, so the last bits differ.
    np.testing.assert_allclose(tree["value"], alone["value"], rtol=1e-6)
    expected = np.full(5000, OUTSIDE)
    expected[inside] = leaf
    np.testing.assert_array_equal(grower.leaf_of_row(), expected)


def test_every_row_gets_the_value_of_its_leaf_sampled_or_not():
    codes, n_bins, g, h = wide_problem(n=5000)
    grower = _core.Grower(encode(codes, n_bins), 1, core_params(Settings(max_depth=7)))
    scores = np.zeros((5000, 1))
    grower.grow(
        gradients_of(g, h), 0, seed=0, tree=0, rate=1.0, sample=drawn(5000, 0.3), n_threads=2
    )
    grower.add_leaves(scores, 0, 2)
    tree = grower.trees()
    np.testing.assert_array_equal(scores[:, 0], tree["value"][walked(tree, codes)])


@pytest.mark.parametrize("max_leaves", [5, 255, 256, 257, 1000])
@pytest.mark.parametrize("bins", [200, 3000])
def test_walks_over_codes_end_in_the_right_leaves(max_leaves, bins):
    """Trees on both sides of the size limit of traversal by masks, codes of one and two bytes."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, bins, (3001, 4))
    codes[rng.random(codes.shape) < 0.1] = -1
    g = rng.normal(size=(3001, 1))
    s = Settings(max_depth=np.inf, max_leaves=max_leaves, best_first=True, min_child_weight=0)
    grower = _core.Grower(encode(codes, [bins] * 4), 1, core_params(s))
    grower.grow(gradients_of(g, np.ones_like(g)), 0, seed=0, tree=0, rate=1.0, n_threads=1)
    tree = grower.trees()
    assert (tree["left"] == 0).sum() == max_leaves
    other = rng.integers(0, bins, (2000, 4))
    other[rng.random(other.shape) < 0.1] = -1
    rows = np.flatnonzero(rng.random(2000) < 0.4).astype(np.uint32)
    values = tree["value"][walked(tree, other)]
    for chosen, expected in ((None, values), (rows, values[rows])):
        for n_threads in (1, 3):
            scores = np.ones((len(expected), 2))
            table = encode(other, [bins] * 4)
            grower.add_tree(0, -0.5, table, chosen, scores, 1, n_threads)
            np.testing.assert_array_equal(scores[:, 1], 1 + -0.5 * expected)
            assert (scores[:, 0] == 1).all()


def test_a_walk_of_vector_leaves():
    codes, n_bins, g, h = wide_problem(n=2000, outputs=3)
    grower = _core.Grower(encode(codes, n_bins), 3, core_params(Settings(max_depth=4)))
    grower.grow(gradients_of(g, h), 0, seed=0, tree=0, rate=1.0, n_threads=1)
    tree = grower.trees()
    scores = np.zeros((2000, 3))
    grower.add_tree(0, 2.0, encode(codes, n_bins), None, scores, 0, 2)
    np.testing.assert_array_equal(scores, 2 * tree["value"].reshape(-1, 3)[walked(tree, codes)])


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_uniform_samples_have_their_size_and_change_with_every_draw(rate):
    n = 100_000
    one, other = drawn(n, rate).positions(), drawn(n, rate, draw=1).positions()
    for positions in (one, other):
        assert abs(len(positions) - rate * n) < 5 * np.sqrt(n * rate * (1 - rate))
        assert (np.diff(positions.astype(int)) > 0).all()
    common = len(np.intersect1d(one, other))
    assert abs(common - rate**2 * n) < 5 * np.sqrt(n * rate**2)
    assert len(drawn(n, rate).weights()) == 0


def test_a_sample_is_never_empty():
    assert len(drawn(3, 1e-9).positions()) == 1


@pytest.mark.parametrize("method", ["uniform", "gradient_based", "goss"])
def test_the_same_sample_for_any_number_of_threads(method):
    rng = np.random.default_rng(0)
    gradients = gradients_of(rng.normal(size=(200_000, 1)), rng.uniform(size=(200_000, 1)))
    sampling = RowSampling(method=method, rate=0.2)
    samples = [
        sampling.draw(gradients, _core.Sample(), seed=3, round_=7, draw=7, n_threads=n)
        for n in (1, 2, 5)
    ]
    for other in samples[1:]:
        assert other.positions().tobytes() == samples[0].positions().tobytes()
        assert other.weights().tobytes() == samples[0].weights().tobytes()


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("reg_lambda", [0.0, 1.0, 50.0])
def test_rows_are_drawn_in_proportion_to_their_gradients(outputs, reg_lambda):
    rng = np.random.default_rng(1)
    n, rate = 20_000, 0.1
    g = rng.normal(size=(n, outputs)) * rng.exponential(size=(n, 1)) ** 2
    h = rng.uniform(0.01, 0.3, (n, outputs))
    gradients = gradients_of(g, h)
    norm = np.sqrt((g**2 + reg_lambda * h**2).sum(axis=1))
    seen, sizes = np.zeros(n), []
    draws = 300
    for draw in range(draws):
        sample = _core.Sample()
        sample.draw_by_gradient(gradients, rate, reg_lambda, 0, draw, 1)
        positions, weights = sample.positions(), sample.weights()
        seen[positions] += 1
        sizes.append(len(positions))
        # The weight is the inverse of min(1, s / mu).
        certain = weights == 1
        mu = (weights * norm[positions])[~certain & (weights < 1e3)]  # far from fixed point
        assert mu.max() / mu.min() - 1 < 1e-4
        assert norm[positions][certain].min() >= mu.mean() * (1 - 1e-4)
    assert abs(np.mean(sizes) / (rate * n) - 1) < 0.02
    expected = np.minimum(norm / mu.mean(), 1)
    rare = (expected < 1) & (draws * expected > 1)
    deviation = (seen - draws * expected)[rare] / np.sqrt(draws * expected * (1 - expected))[rare]
    assert abs(deviation.mean()) < 0.05
    assert 0.95 < deviation.std() < 1.05


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_sums_over_samples_by_gradient_have_the_mean_of_the_whole(reg_lambda):
    """One leaf over a quarter of the rows: its G and H, over many draws."""
    rng = np.random.default_rng(2)
    n = 4000
    g, h = rng.normal(size=(n, 1)), rng.uniform(0.05, 0.25, (n, 1))
    codes = (np.arange(n) % 4).reshape(-1, 1)
    gradients = gradients_of(g, h)
    grower = _core.Grower(
        encode(codes, [4]), 1, core_params(Settings(max_depth=1, min_child_weight=1e9))
    )
    sums = []
    for draw in range(2000):
        sample = _core.Sample()
        sample.draw_by_gradient(gradients, 0.2, reg_lambda, 0, draw, 1)
        grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
        sums.append(grower.leaf_sums(gradients, 0, 1)[0, 0])
    mean, spread = np.mean(sums, axis=0), np.std(sums, axis=0) / np.sqrt(len(sums))
    np.testing.assert_array_less(np.abs(mean - [g.sum(), h.sum()]), 4 * spread)


def test_a_weighted_sample_is_a_table_with_weights():
    codes, n_bins, g, h = wide_problem(n=3000)
    sample = _core.Sample()
    gradients = gradients_of(g, h)
    sample.draw_by_gradient(gradients, 0.3, 1.0, 0, 0, 1)
    inside, weights = sample.positions(), sample.weights()[:, np.newaxis].astype(float)
    s = Settings(max_depth=4, min_child_weight=5)
    alone, *_ = grow(codes[inside], n_bins, g[inside] * weights, h[inside] * weights, s)
    grower = _core.Grower(encode(codes, n_bins), 1, core_params(s))
    grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
    tree = grower.trees()
    for name in ("feature", "bin", "left"):
        np.testing.assert_array_equal(tree[name], alone[name])
    np.testing.assert_allclose(tree["value"], alone["value"], rtol=1e-5)


def grown_on_noise(s, *, n_features=20, tree=0, n_threads=1):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 30, (4000, n_features))
    g = rng.normal(size=(4000, 1))
    gradients = gradients_of(g, np.ones_like(g))
    grower = _core.Grower(encode(codes, [30] * n_features), 1, s)
    grower.grow(gradients, 0, seed=0, tree=tree, rate=1.0, n_threads=n_threads)
    return grower.trees()


def depths(tree):
    depth = np.zeros(len(tree["left"]), dtype=int)
    for node in np.flatnonzero(tree["left"]):
        depth[tree["left"][node] : tree["left"][node] + 2] = depth[node] + 1
    return depth


def test_columns_of_trees_levels_and_nodes():
    wide = Settings(max_depth=6)
    by_tree = [grown_on_noise(core_params(wide, colsample_bytree=0.25), tree=t) for t in range(2)]
    used = [set(tree["feature"][tree["left"] > 0]) for tree in by_tree]
    assert [len(features) for features in used] == [5, 5]
    assert used[0] != used[1]
    by_level = grown_on_noise(core_params(wide, colsample_bylevel=0.1))
    depth = depths(by_level)
    per_level = [set(by_level["feature"][(by_level["left"] > 0) & (depth == d)]) for d in range(6)]
    assert all(len(features) <= 2 for features in per_level)
    assert len(set.union(*per_level)) > 2
    by_node = grown_on_noise(core_params(wide, colsample_bynode=0.05))
    chosen = by_node["feature"][by_node["left"] > 0]
    # One feature for each node: on noise all features are used, whatever their gain.
    assert len(set(chosen)) > 10
    nested = grown_on_noise(
        core_params(wide, colsample_bytree=0.5, colsample_bylevel=0.5, colsample_bynode=0.5)
    )
    assert len(set(nested["feature"][nested["left"] > 0])) <= 10


@pytest.mark.parametrize("name", ["colsample_bytree", "colsample_bylevel", "colsample_bynode"])
def test_sampled_columns_do_not_depend_on_threads(name):
    params = core_params(Settings(max_depth=7), **{name: 0.3})
    one = grown_on_noise(params)
    for n_threads in (2, 4):
        many = grown_on_noise(params, n_threads=n_threads)
        for array in TREE_ARRAYS:
            assert one[array].tobytes() == many[array].tobytes()


def test_values_that_are_set_keep_to_monotone_constraints():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 20, (3000, 3))
    g = rng.normal(size=(3000, 1))
    params = core_params(Settings(max_depth=5, min_child_weight=0), monotone=[1, -1, 0])
    grower = _core.Grower(encode(codes, [20] * 3), 1, params)
    grower.grow(gradients_of(g, np.ones_like(g)), 0, seed=0, tree=0, rate=1.0, n_threads=1)
    n_nodes = grower.n_nodes
    assert n_nodes > 15
    grower.set_values(rng.normal(size=(n_nodes, 1)))
    tree = grower.trees()
    grid = np.stack(np.meshgrid(*[np.arange(20)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    value = tree["value"][walked(tree, grid)].reshape(20, 20, 20)
    assert (np.diff(value, axis=0) >= 0).all()
    assert (np.diff(value, axis=1) <= 0).all()
    assert np.diff(value, axis=2).min() < 0 < np.diff(value, axis=2).max()


def test_trees_come_back_as_they_were():
    codes, n_bins, g, h = wide_problem(n=3000)
    grower = _core.Grower(encode(codes, n_bins), 1, core_params(Settings()))
    for tree in range(3):
        grower.grow(
            gradients_of(g, h),
            0,
            seed=0,
            tree=tree,
            rate=1.0,
            sample=drawn(3000, 0.5, draw=tree),
            n_threads=1,
        )
    other = _core.Grower(encode(codes, n_bins), 1, core_params(Settings()))
    other.restore(grower.trees())
    assert other.n_trees == 3
    for name in TREE_ARRAYS:
        assert other.trees()[name].tobytes() == grower.trees()[name].tobytes()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("left", 10**6),
        ("left", -1),
        ("left", 1),
        ("feature", 99),
        ("feature", -1),
        ("bin", -1),
        ("tree_start", 10**9),
    ],
)
def test_trees_that_would_lead_nowhere_do_not_come_back(name, value):
    codes, n_bins, g, h = wide_problem(n=3000)
    grower = _core.Grower(encode(codes, n_bins), 1, core_params(Settings()))
    grower.grow(gradients_of(g, h), 0, seed=0, tree=0, rate=1.0, n_threads=1)
    arrays = grower.trees()
    arrays[name][1] = value
    with pytest.raises(ValueError, match=r"tree|child|feature"):
        grower.restore(arrays)


def test_leaves_from_all_rows():
    """Splits come from the sample, leaf values from all rows."""
    codes, n_bins, g, h = wide_problem(n=5000)
    gradients = gradients_of(g, h)
    trees = []
    for from_all in (False, True):
        grower = _core.Grower(encode(codes, n_bins), 1, core_params(Settings(max_depth=5)))
        grower.grow(
            gradients,
            0,
            seed=0,
            tree=0,
            rate=1.0,
            sample=drawn(5000, 0.3),
            leaves_from_all_rows=from_all,
            n_threads=2,
        )
        trees.append(grower.trees())
        if from_all:
            leaf = walked(trees[1], codes)
            np.testing.assert_array_equal(grower.leaf_of_row(), leaf)
            scores = np.zeros((5000, 1))
            grower.add_leaves(scores, 0, 1)
            np.testing.assert_array_equal(scores[:, 0], trees[1]["value"][leaf])
    for name in ("feature", "bin", "left", "gain"):
        np.testing.assert_array_equal(trees[0][name], trees[1][name])
    is_leaf = trees[1]["left"] == 0
    sums = [np.bincount(leaf, of[:, 0], len(is_leaf))[is_leaf] for of in (g, h)]
    np.testing.assert_allclose(trees[1]["value"][is_leaf], -sums[0] / (sums[1] + 1), rtol=1e-6)
    np.testing.assert_allclose(trees[1]["cover"][is_leaf], sums[1], rtol=1e-6)
