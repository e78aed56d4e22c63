"""Samples of rows: bootstrap draws, draws by gradient, and GOSS."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor, _core
from arboost.trees.samples import RowSampling
from support.core_trees import TREE_ARRAYS, core_params, encode, gradients_of, grow, wide_problem
from support.reference import Settings
from support.trees import trees_of


def by_weight(weight, seed=0, draw=0, n_threads=1):
    sample = _core.Sample()
    sample.draw_by_weight(np.asarray(weight, float), seed, draw, n_threads)
    return sample


def with_replacement(n_rows, n_draws, seed=0, draw=0, n_threads=1):
    sample = _core.Sample()
    sample.draw_with_replacement(n_rows, n_draws, seed, draw, n_threads)
    return sample


def counts_of(sample, n):
    """Number of draws of each row; positions ascend, and every one has a draw."""
    positions, weights = sample.positions(), sample.weights()
    assert (np.diff(positions.astype(int)) > 0).all()
    assert len(weights) == len(positions)
    assert (weights >= 1).all()
    assert (weights == np.round(weights)).all()
    counts = np.zeros(n)
    counts[positions] = weights
    return counts


SKEWS = {
    "equal": lambda rng, n: np.ones(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "steep": lambda rng, n: np.exp(rng.normal(size=n) * 3),
    "some": lambda rng, n: rng.random(n) * (rng.random(n) < 0.3),
}


@pytest.mark.parametrize("kind", SKEWS)
@pytest.mark.parametrize("n", [1, 2, 300, 16_384, 100_000])
def test_draws_are_as_many_as_rows_and_never_of_rows_without_weight(kind, n):
    weight = SKEWS[kind](np.random.default_rng(0), n)
    weight[0] = 1
    for draw in range(3):
        counts = counts_of(by_weight(weight, draw=draw), n)
        assert counts.sum() == n
        assert (counts[weight == 0] == 0).all()


@pytest.mark.parametrize("kind", SKEWS)
@pytest.mark.parametrize("n", [200, 200_000])
def test_draws_are_in_proportion_to_weights(kind, n):
    """Chi-square over groups of rows of at least 50 expected draws, in one part and in many."""
    weight = SKEWS[kind](np.random.default_rng(1), n)
    draws = 1 if n > 1000 else 300
    counts = sum(counts_of(by_weight(weight, seed=5, draw=draw), n) for draw in range(draws))
    expected = n * draws * weight / weight.sum()
    group = (np.cumsum(expected) / 50).astype(int)
    seen, hoped = np.bincount(group, counts), np.bincount(group, expected)
    full = hoped > 20
    degrees = full.sum()
    assert degrees > 40
    chi_square = ((seen - hoped)[full] ** 2 / hoped[full]).sum()
    assert abs(chi_square - degrees) < 4 * np.sqrt(2 * degrees)


@pytest.mark.parametrize("n", [1000, 200_000])
def test_rows_that_are_never_drawn_are_one_of_e(n):
    """A row is out of bag, missed by all n draws, with probability (1 - 1 / n)^n."""
    for seed in range(5):
        missed = (counts_of(by_weight(np.full(n, 0.1), seed=seed), n) == 0).mean()
        assert abs(missed - np.exp(-1)) < 4 * np.sqrt(0.1 / n) + 1 / n


def test_draws_of_another_number_or_seed_are_others():
    weight = np.random.default_rng(0).random(5000)
    one = counts_of(by_weight(weight), 5000)
    assert (one == counts_of(by_weight(weight), 5000)).all()
    for other in (by_weight(weight, draw=1), by_weight(weight, seed=1)):
        # In equal samples all counts would agree; in independent ones about 40 %.
        assert (one == counts_of(other, 5000)).mean() < 0.6


def test_one_row_may_have_nearly_all_the_weight():
    for heavy in (0, 12_345, 99_999):  # its interval covers nearly all parts
        weight = np.full(100_000, 1e-300)
        weight[heavy] = 1e300
        sample = by_weight(weight)
        assert sample.positions().tolist() == [heavy]
        assert sample.weights().tolist() == [100_000]
    weight = np.full(100_000, 1.0)
    weight[777] = 1e5
    counts = counts_of(by_weight(weight), 100_000)
    assert abs(counts[777] - 50_000) < 4 * np.sqrt(100_000 / 4)
    assert counts.sum() == 100_000
    assert counts_of(by_weight([3.0]), 1) == [1]


@pytest.mark.parametrize("kind", SKEWS)
def test_draws_with_replacement_are_the_same_for_any_number_of_threads(kind):
    weight = SKEWS[kind](np.random.default_rng(2), 300_000)
    one, equal = by_weight(weight, 3, 7), with_replacement(300_000, 200_000, 3, 7)
    for n_threads in (2, 5):
        for sample, expected in (
            (by_weight(weight, 3, 7, n_threads), one),
            (with_replacement(300_000, 200_000, 3, 7, n_threads), equal),
        ):
            assert sample.positions().tobytes() == expected.positions().tobytes()
            assert sample.weights().tobytes() == expected.weights().tobytes()


@pytest.mark.parametrize("n", [1, 7, 1000, 70_001])
def test_draws_with_equal_weights_need_no_weights(n):
    one, other = with_replacement(n, n, 4, 2), by_weight(np.full(n, 0.3), 4, 2)
    np.testing.assert_array_equal(one.positions(), other.positions())
    np.testing.assert_array_equal(one.weights(), other.weights())


@pytest.mark.parametrize(
    ("n_rows", "n_draws"), [(1, 5), (10, 100_000), (100_000, 3), (2**29 - 1, 4), (500, 250)]
)
def test_any_number_of_draws_with_replacement(n_rows, n_draws):
    sample = with_replacement(n_rows, n_draws)
    positions, weights = sample.positions().astype(int), sample.weights()
    assert weights.sum() == n_draws
    assert (np.diff(positions) > 0).all()
    assert positions.max() < n_rows
    if n_draws > 1000 * n_rows:
        share = n_draws / n_rows
        assert (np.abs(weights - share) < 4 * np.sqrt(share)).all()
        assert len(weights) == n_rows


def test_a_sample_can_be_drawn_again_and_otherwise():
    sample = by_weight(np.ones(50_000))
    sample.draw_with_replacement(20, 10, 0, 0, 1)
    assert sample.weights().sum() == 10
    sample.draw(1000, 0.5, 0, 0, 1)
    assert len(sample.weights()) == 0
    sample.draw_by_weight(np.ones(90_000), 0, 0, 1)
    assert counts_of(sample, 90_000).sum() == 90_000


def test_a_tree_of_drawn_rows_is_one_of_repeated_rows():
    codes, n_bins, g, h = wide_problem(n=3000)
    sample = by_weight(np.random.default_rng(3).exponential(size=3000))
    rows = sample.positions().repeat(sample.weights().astype(int))
    s = Settings(max_depth=4, min_child_weight=5)
    alone, *_ = grow(codes[rows], n_bins, g[rows], h[rows], s)
    grower = _core.Grower(encode(codes, n_bins), 1, core_params(s))
    grower.grow(gradients_of(g, h), 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
    tree = grower.trees()
    for name in ("feature", "bin", "left"):
        np.testing.assert_array_equal(tree[name], alone[name])
    np.testing.assert_allclose(tree["value"], alone["value"], rtol=1e-5)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        ([], "no rows to draw from"),
        ([1.0, -1e-9], "weight of row 1 is -0.0.* finite numbers from 0 on"),
        ([-1.0, 5.0], "weight of row 0 is -1"),
        ([1.0, np.nan], "weight of row 1 is .*nan"),
        ([1.0, np.inf, 2.0], "weight of row 1 is inf"),
        ([0.0, 0.0], "the weights add up to 0"),
        ([1e308, 1e308, 1e308], "too small or too large for a double"),
        ([5e-324], "too small or too large for a double"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weight, match):
    with pytest.raises(ValueError, match=match):
        by_weight(weight)


def test_numbers_of_draws_that_mean_nothing_are_refused():
    for n_rows, n_draws, match in (
        (0, 5, "no rows to draw from"),
        (5, 0, "no draws: at least one is needed"),
        (2**29, 1, "536870912 rows, but at most 536870911 are allowed"),
        (5, 2**32, "4294967296 draws: at most 4,294,967,295"),
    ):
        with pytest.raises(ValueError, match=match):
            with_replacement(n_rows, n_draws)


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


SHARES = [(0.2, 0.1), (0.05, 0.3), (0.6, 0.4)]


def one_side(gradients, top_rate=0.2, other_rate=0.1, seed=0, draw=0, n_threads=1):
    sample = _core.Sample()
    sample.draw_one_side(gradients, top_rate, other_rate, seed, draw, n_threads)
    return sample.positions(), sample.weights()


@pytest.mark.parametrize(("top_rate", "other_rate"), SHARES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_largest_gradients_are_kept_and_of_the_others_a_share(outputs, top_rate, other_rate):
    rng = np.random.default_rng(0)
    n = 50_000
    g = rng.normal(size=(n, outputs)) * rng.exponential(size=(n, 1))
    positions, weights = one_side(gradients_of(g, np.ones_like(g)), top_rate, other_rate)
    assert (np.diff(positions.astype(int)) > 0).all()
    norm = np.sqrt((g**2).sum(axis=1))
    by_size = np.argsort(-norm)
    # Norms are compared to 8 bits of their mantissa: 1 in 256.
    last = norm[by_size[int(top_rate * n) - 1]]
    surely = np.flatnonzero(norm > last * (1 + 1 / 128))
    assert np.isin(surely, positions).all()
    large = weights == 1
    if top_rate + other_rate < 1:
        assert (norm[positions[large]] > last * (1 - 1 / 128)).all()
        # Rows of the last bucket, at most 1 % of all, are large by chance.
        assert abs(large.sum() - top_rate * n) < 5 * np.sqrt(0.01 * n)
    chance = other_rate / (1 - top_rate)
    np.testing.assert_allclose(weights[~large], 1 / chance, rtol=1e-5)
    expected, spread = other_rate * n, np.sqrt(n * other_rate * (1 - chance))
    if top_rate + other_rate < 1:
        assert abs((~large).sum() - expected) < 5 * spread
    else:
        assert len(positions) == n
        assert large.all()


def test_hessians_do_not_count():
    rng = np.random.default_rng(1)
    g = rng.normal(size=(5000, 1))
    samples = [one_side(gradients_of(g, h * np.ones_like(g))) for h in (1.0, 0.01)]
    np.testing.assert_array_equal(samples[0][0], samples[1][0])


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_equal_gradients_do_not_change_the_shares(levels):
    """Rows with the same norm as the last large one are drawn at random."""
    rng = np.random.default_rng(2)
    n = 40_000
    g = rng.integers(1, levels + 1, (n, 1)) * rng.choice([-1.0, 1.0], (n, 1))
    gradients = gradients_of(g, np.ones_like(g))
    positions, weights = one_side(gradients)
    assert abs((weights == 1).sum() - 0.2 * n) < 5 * np.sqrt(0.2 * 0.8 * n)
    assert abs(len(positions) - 0.3 * n) < 5 * np.sqrt(0.3 * 0.7 * n)
    if levels == 5:  # 20 % of the rows each: the top rows are nearly all of the largest norm
        kept = np.isin(np.flatnonzero(np.abs(g[:, 0]) == 5), positions)
        assert kept.mean() > 0.97


def test_rows_without_gradient_are_a_sample_too():
    g = np.zeros((10_000, 1))
    g[:100] = 1.0
    positions, weights = one_side(gradients_of(g, np.ones_like(g)))
    assert np.isin(np.arange(100), positions).all()
    assert abs(len(positions) - 3000) < 5 * np.sqrt(0.3 * 0.7 * 10_000)
    assert abs(weights.sum() - 10_000) < 5 * 7 * np.sqrt(1000)


@pytest.mark.parametrize("ties", [False, True])
def test_sums_over_samples_have_the_mean_of_the_whole(ties):
    """Sums of g, h and rows over every quarter of the table, over 4,000 draws.

    Sums of h and of rows vary by more than those of g, whose large terms are always kept. All
    twelve means lie within 4 standard errors of the sums over all rows.
    """
    rng = np.random.default_rng(3)
    n, quarter = 4000, np.arange(4000) % 4
    g, h = rng.normal(size=(n, 1)), rng.uniform(0.05, 0.25, (n, 1))
    if ties:
        g = np.round(g * 2) / 2
    gradients = gradients_of(g, h)
    values = np.concatenate([g, h, np.ones_like(g)], axis=1)
    sums = []
    for draw in range(4000):
        positions, weights = one_side(gradients, draw=draw)
        weighted = values[positions] * weights[:, np.newaxis]
        sums.append([weighted[quarter[positions] == q].sum(axis=0) for q in range(4)])
    error = np.std(sums, axis=0) / np.sqrt(len(sums))
    expected = [values[quarter == q].sum(axis=0) for q in range(4)]
    assert (error[:, 1:] > 0.01).all()  # samples differ
    np.testing.assert_array_less(np.abs(np.mean(sums, axis=0) - expected), 4 * error)


def test_leaves_are_of_the_amplified_sample():
    rng = np.random.default_rng(4)
    n = 3000
    g, h = rng.normal(size=(n, 1)), rng.uniform(0.05, 0.25, (n, 1))
    gradients = gradients_of(g, h)
    codes = (np.arange(n) % 4).reshape(-1, 1)
    grower = _core.Grower(encode(codes, [4]), 1, core_params(Settings(max_depth=3)))
    sample = _core.Sample()
    sample.draw_one_side(gradients, 0.2, 0.1, 0, 0, 1)
    grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
    inside, weights = sample.positions(), sample.weights()[:, np.newaxis]
    leaf = grower.leaf_of_row()[inside]
    value = grower.trees()["value"]
    for node in np.unique(leaf):
        sum_g = (g[inside] * weights)[leaf == node].sum()
        sum_h = (h[inside] * weights)[leaf == node].sum()
        assert value[node] == pytest.approx(-sum_g / (sum_h + 1.0), rel=1e-5)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 4))
    return X, X[:, 0] * X[:, 1] + rng.normal(size=3000)


def is_full(model):
    """Whether the tree's root counts all rows once: with h = 1 its cover is their number."""
    return [tree.cover[0] == 3000 for tree in trees_of(model)]


@pytest.mark.parametrize(("rate", "full"), [(1.0, 1), (0.4, 3), (0.25, 4), (5e-324, 6)])
def test_the_first_rounds_see_all_rows(problem, rate, full):
    model = GradientBoostingRegressor(n_estimators=6, learning_rate=rate, sampling_method="goss")
    assert is_full(model.fit(*problem)) == [True] * full + [False] * (6 - full)


def test_rounds_of_an_earlier_model_count(problem):
    model = GradientBoostingRegressor(n_estimators=2, learning_rate=0.25, sampling_method="goss")
    first = model.fit(*problem).model_
    more = GradientBoostingRegressor(n_estimators=4, learning_rate=0.25, sampling_method="goss")
    assert is_full(more.fit(*problem, init_model=first)) == [True] * 4 + [False] * 2


def test_forests_in_every_round_draw_for_each_tree(problem):
    model = GradientBoostingRegressor(
        n_estimators=2, learning_rate=1.0, sampling_method="goss", num_parallel_tree=3
    )
    trees = trees_of(model.fit(*problem))
    assert is_full(model) == [True] * 3 + [False] * 3
    assert len({tree.cover[0] for tree in trees[3:]}) == 3


def test_order_statistics_come_from_all_rows(problem):
    """Order statistics ignore sample weights, so Huber's in Friedman's boosting use all rows."""
    X, y = problem
    model = GradientBoostingRegressor(
        n_estimators=2, learning_rate=1.0, sampling_method="goss", loss="huber", boosting="gradient"
    )
    assert is_full(model.fit(X, y)) == [True, True]


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_classes_are_learnt_from_a_sample(strategy):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(6000, 5))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.5])
    scores = []
    for method in ("uniform", "goss"):
        model = GradientBoostingClassifier(
            n_estimators=30, learning_rate=0.3, sampling_method=method, multi_strategy=strategy
        )
        scores.append(model.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:]))
    assert scores[1] > scores[0] - 0.01
    assert scores[1] != scores[0]
