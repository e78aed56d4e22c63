"""Categorical splits by level sets: the best sets, the same for every source of a node's sums."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arboost import _core
from support.level_sets import (
    METHODS,
    TREE_ARRAYS,
    core_params,
    grow,
    levels_of,
    random_problem,
    table_of,
    wide_problem,
)
from support.ranked import columns_of
from support.reference import ReferenceGrower, Settings

FREE = {
    "min_child_weight": 0.0,
    "reg_lambda": 0.0,
    "min_cat_weight": 0.0,
    "cat_smooth": 0.0,
    "cat_l2": 0.0,
}


def split_of(matrix, g, n_levels, method="hist", **changes):
    """The levels that go left in the root of one tree, with missing as None."""
    s = Settings(max_depth=1, **(FREE | changes))
    codes = table_of(matrix, n_levels, method)
    trees = grow(codes, g, np.ones_like(g), core_params(s, method))[0].trees()
    if len(trees["left"]) == 1:
        return None
    return levels_of(trees["sets"][0]), bool(trees["default_left"][0])


def assert_same_tree(matrix, n_levels, g, h, s, method):
    codes = table_of(matrix, n_levels, method)
    grower, gradients = grow(codes, g, h, core_params(s, method, sketch_eps=0.0005))
    trees, leaf_of_row = grower.trees(), grower.leaf_of_row()
    n_bins = codes.n_bins.tolist()
    reference = ReferenceGrower(
        codes.to_numpy().astype(int),
        n_bins,
        gradients.to_numpy().astype(np.int64),
        (gradients.g_exponent, gradients.h_exponent),
        s,
        edges=list(codes.edges) if method == "exact" else None,
        categories=np.flatnonzero(n_levels),
    )
    nodes = reference.grow()
    assert len(nodes) == len(trees["left"])
    for node in nodes:
        i = node.id
        if not node.children:
            assert (leaf_of_row[node.rows] == i).all()
            assert trees["set"][i] == -1
            continue
        assert (trees["feature"][i], trees["left"][i]) == (node.feature, node.children[0].id)
        assert trees["default_left"][i] == node.missing_left
        if node.levels is None:
            assert (trees["bin"][i], trees["set"][i]) == (node.bin, -1)
        else:
            assert levels_of(trees["sets"][trees["set"][i]]) == node.levels


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_levels = draw(st.lists(st.sampled_from([0, 1, 2, 3, 7, 30, 255]), min_size=1, max_size=3))
    matrix, g, h = random_problem(
        rng,
        draw(st.integers(2, 80)),
        n_levels,
        draw(st.sampled_from([1, 1, 3])),
        draw(st.sampled_from([0.0, 0.3])),
    )
    s = Settings(
        max_depth=draw(st.sampled_from([1, 3, np.inf])),
        best_first=draw(st.booleans()),
        min_child_weight=draw(st.sampled_from([0.0, 1.0, 3.0])),
        min_samples_leaf=draw(st.sampled_from([1, 1, 4])),
        gamma=draw(st.sampled_from([0.0, 0.3])),
        reg_lambda=draw(st.sampled_from([0.0, 1.0])),
        reg_alpha=draw(st.sampled_from([0.0, 0.3])),
        max_delta_step=draw(st.sampled_from([0.0, 0.2])),
        max_cat_to_onehot=draw(st.sampled_from([1, 4])),
        max_cat_threshold=draw(st.sampled_from([1, 2, 64])),
        min_cat_weight=draw(st.sampled_from([0.0, 0.5, 2.0])),
        cat_smooth=draw(st.sampled_from([0.0, 3.0])),
        cat_l2=draw(st.sampled_from([0.0, 2.0])),
    )
    numbers = [f for f, levels in enumerate(n_levels) if levels == 0]
    if g.shape[1] == 1 and numbers and draw(st.booleans()):
        s.monotone = [
            draw(st.sampled_from([-1, 1])) if f in numbers else 0 for f in range(len(n_levels))
        ]
    return matrix, n_levels, g, h, s, draw(st.sampled_from(METHODS[:3]))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_same_trees_as_the_reference(problem):
    assert_same_tree(*problem)


@pytest.mark.parametrize("method", METHODS[:3])
@pytest.mark.parametrize("outputs", [1, 3])
def test_same_trees_in_large_nodes(method, outputs):
    """Enough rows for every source of a node's sums: built, subtracted, and directly from rows."""
    rng = np.random.default_rng(3)
    n_levels = [60, 0, 4, 250]
    matrix, g, h = random_problem(rng, 1500, n_levels, outputs)
    s = Settings(max_depth=np.inf, max_leaves=30, best_first=True, min_samples_leaf=5)
    assert_same_tree(matrix, n_levels, g, h, s, method)


def test_same_trees_when_gradients_are_rounded_to_travel_with_the_rows():
    matrix, g, h = random_problem(np.random.default_rng(4), 40_000, [30, 0])
    assert_same_tree(matrix, [30, 0], g, h, Settings(max_depth=3), "hist")


@pytest.mark.parametrize("method", METHODS)
def test_a_known_split(method):
    """Levels 1 and 4 are low, 0 and 3 high, missing is low; no row has level 2."""
    matrix = np.repeat([[1.0], [4.0], [0.0], [3.0], [np.nan]], 3, axis=0)
    g = np.repeat([[-2.0], [-1.0], [1.0], [2.0], [-1.5]], 3, axis=0)
    left, missing_left = split_of(matrix, g, [5], method)
    assert missing_left
    assert left & {0, 1, 3, 4} == {1, 4}
    assert {2, 5, 77, 255} <= left  # goes with missing


def test_unseen_levels_follow_the_heavier_side_where_no_row_is_missing():
    g = np.array([[-1.0], [-1.0], [-1.0], [1.0], [1.0]])
    heavy_left, missing_left = split_of(
        np.array([[0.0, 0, 1, 2, 3]]).T, g, [9], max_cat_to_onehot=1
    )
    assert missing_left
    assert heavy_left == frozenset(range(256)) - {2, 3}
    heavy_right, missing_left = split_of(
        np.array([[3.0, 0, 1, 2, 2]]).T, -g, [9], max_cat_to_onehot=1
    )
    assert not missing_left
    assert heavy_right == {2}


def test_few_levels_are_each_tried_against_all_others():
    """The best set of two levels beats every single level, but is tried only for more levels."""
    matrix, g = np.repeat([[0.0], [1.0], [2.0], [3.0]], 5, axis=0), np.repeat([-1.0, 1, -1.1, 1], 5)
    for most, sizes in ((3, {2}), (4, {1, 3})):
        left, _ = split_of(matrix, g[:, np.newaxis], [4], max_cat_to_onehot=most)
        assert len(left & set(range(4))) in sizes


def best_by_force(level, g, n_levels):
    """The highest score of all partitions of the levels in two."""
    sums = [g[level == c].sum() for c in range(n_levels)]
    counts = [(level == c).sum() for c in range(n_levels)]
    best = 0.0
    for size in range(1, n_levels):
        for left in combinations(range(n_levels), size):
            right = [c for c in range(n_levels) if c not in left]
            parts = [(sum(sums[c] for c in s), sum(counts[c] for c in s)) for s in (left, right)]
            if all(count for _, count in parts):
                best = max(best, sum(total**2 / count for total, count in parts))
    return best


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("method", ["hist", "exact"])
def test_the_best_of_all_partitions_is_found(seed, method):
    rng = np.random.default_rng(seed)
    n_levels = int(rng.integers(5, 9))
    level = rng.integers(0, n_levels, int(rng.integers(10, 300)))
    g = rng.normal(size=len(level)) + rng.normal(size=n_levels)[level]
    s = Settings(max_depth=1, **FREE)
    codes = table_of(level[:, np.newaxis], [n_levels], method)
    trees = grow(codes, g[:, np.newaxis], np.ones((len(g), 1)), core_params(s, method))[0].trees()
    expected = best_by_force(level, g, n_levels) - g.sum() ** 2 / len(g)
    np.testing.assert_allclose(trees["gain"][0], expected, rtol=1e-6)


def test_smoothing_keeps_rare_levels_from_the_ends():
    """One row of an extreme gradient does not make its level the first in order."""
    rng = np.random.default_rng(0)
    level = np.append(rng.integers(0, 8, 4000), [8])
    g = np.where(level < 2, -1.0, 1.0) + 0.1 * rng.normal(size=len(level))
    g[-1] = -30.0
    alone, _ = split_of(level[:, np.newaxis], g[:, np.newaxis], [9], max_cat_threshold=1)
    assert alone & set(range(9)) in ({8}, set(range(8)))
    smooth, _ = split_of(
        level[:, np.newaxis], g[:, np.newaxis], [9], max_cat_threshold=1, cat_smooth=100.0
    )
    assert smooth & set(range(9)) not in ({8}, set(range(8)))


@pytest.mark.parametrize("method", METHODS)
def test_rare_levels_stay_together(method):
    """Levels 5 to 8 have one row each; individually 5 and 6 would go left, 7 and 8 right."""
    matrix = np.concatenate([np.repeat(np.arange(5.0), 20), [5, 6, 7, 8]])[:, np.newaxis]
    g = np.where(matrix < 2, -1.0, 1.0)
    g[-4:, 0] = [-3.0, -2.5, 3.5, 3.0]
    apart, _ = split_of(matrix, g, [9], method)
    assert apart & set(range(9)) == {0, 1, 5, 6}
    together, _ = split_of(matrix, g, [9], method, min_cat_weight=2.0)
    assert together & set(range(9)) in ({0, 1}, {0, 1, 5, 6, 7, 8})
    rare = split_of(matrix, g, [9], method, min_cat_weight=50.0)
    assert rare is None  # only rare levels: no split is possible


def test_the_penalty_makes_gains_smaller():
    matrix, g, _ = random_problem(np.random.default_rng(1), 200, [20], missing=0.0)
    gains = []
    for cat_l2 in (0.0, 5.0, 50.0):
        s = Settings(max_depth=1, **(FREE | {"cat_l2": cat_l2}))
        trees = grow(table_of(matrix, [20]), g, np.ones_like(g), core_params(s))[0].trees()
        gains.append(trees["gain"][0])
    assert gains[0] > gains[1] > gains[2] > 0


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("method", METHODS)
def test_same_bytes_for_any_number_of_threads(method, outputs):
    n_levels, matrix, g, h = wide_problem(outputs)
    codes = table_of(matrix, n_levels, method)
    params = core_params(Settings(max_depth=8, max_leaves=63, best_first=True), method)
    one = grow(codes, g, h, params)[0].trees()
    assert len(one["sets"]) > 5
    for n_threads in (2, 4):
        many = grow(codes, g, h, params, n_threads)[0].trees()
        for name in TREE_ARRAYS:
            assert one[name].tobytes() == many[name].tobytes(), (name, n_threads)


def test_same_bytes_by_histograms_and_by_rows():
    """All methods have the same sums of levels, from histograms or from rows."""
    n_levels = [255, 40, 3]
    matrix, g, h = random_problem(np.random.default_rng(7), 20_000, n_levels)
    s = Settings(max_depth=np.inf, max_leaves=200, best_first=True)
    seen = []
    for method in METHODS:
        codes = table_of(matrix, n_levels, method)
        seen.append(grow(codes, g, h, core_params(s, method))[0].trees())
        if method == "hist":  # no stored histograms: those of children are built, not subtracted
            seen.append(grow(codes, g, h, core_params(s, method, histogram_bytes=0))[0].trees())
    for other in seen[1:]:
        for name in TREE_ARRAYS:
            assert seen[0][name].tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_every_instruction_set_gives_the_same_bytes(isa, instruction_sets):
    code = """
        import hashlib
        import numpy as np
        from support.level_sets import METHODS, TREE_ARRAYS, core_params, grow, table_of
        from support.level_sets import wide_problem
        from support.reference import Settings
        for outputs in (1, 3):
            n_levels, matrix, g, h = wide_problem(outputs)
            for method in METHODS:
                codes = table_of(matrix, n_levels, method)
                params = core_params(Settings(max_depth=6), method)
                grower, _ = grow(codes, g, h, params)
                scores = np.zeros((len(g), outputs))
                grower.add_tree(0, 1.0, codes, None, scores, 0, 1)
                parts = [grower.trees()[name] for name in TREE_ARRAYS] + [scores]
                print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
    """
    seen = [instruction_sets.run(name, code) for name in (isa, None)]
    assert seen[0] == seen[1]
    assert seen[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wide", [False, True])
def test_rows_walk_to_the_leaves_that_they_were_grown_in(method, wide):
    """With codes of one, two and four bytes; rows in order, traversed together, and by number."""
    n_levels, matrix, g, h = wide_problem()
    if wide:
        matrix[:, 1] = np.random.default_rng(0).integers(0, 2000, len(matrix))
    codes = table_of(matrix, n_levels, method)
    assert codes.width == (4 if method == "exact" else 2 if wide else 1)
    grower, _ = grow(codes, g, h, core_params(Settings(max_depth=7), method))
    values = grower.trees()["value"]
    scores = np.zeros((len(g), 1))
    grower.add_tree(0, 1.0, codes, None, scores, 0, 2)
    np.testing.assert_array_equal(scores[:, 0], values[grower.leaf_of_row()])
    rows = np.arange(0, len(g), 7, dtype=np.uint32)
    some = np.zeros((len(rows), 1))
    grower.add_tree(0, 1.0, codes, rows, some, 0, 1)
    np.testing.assert_array_equal(some, scores[rows])


def test_ranks_of_a_category_are_its_codes_whether_they_occur_or_not():
    matrix = np.array([[7.0], [2.0], [np.nan], [7.0], [9.5], [-1.0], [30.0]])
    ranks = table_of(matrix, [30], "exact")
    assert ranks.to_numpy()[:, 0].tolist() == [7, 2, 30, 7, 30, 30, 30]
    assert ranks.order.tolist() == [[1, 0, 3, 2, 4, 5, 6]]
    assert ranks.edges[0].tolist() == [i + 0.5 for i in range(29)]
    codes = table_of(matrix, [30])
    assert codes.to_numpy().tolist() == ranks.to_numpy().tolist()
    assert codes.is_category.tolist() == ranks.is_category.tolist() == [1]


def test_categories_of_the_wrong_form_are_refused():
    columns = columns_of(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="at most 255 levels"):
        _core.rank(columns, None, 1, [256])
    with pytest.raises(ValueError, match="at most 255 levels"):
        _core.encode(columns, None, [np.arange(255) + 0.5], 1, [True])
    with pytest.raises(ValueError, match=r"must be 0\.5, 1\.5"):
        _core.encode(columns, None, [np.array([0.5, 2.0])], 1, [True])
    with pytest.raises(ValueError, match="every column"):
        _core.encode(columns, None, [np.array([0.5])], 1, [True, False])
    with pytest.raises(ValueError, match="every column"):
        _core.rank(columns, None, 1, [2, 2])
    codes = table_of(np.zeros((3, 1)), [2])
    with pytest.raises(ValueError, match="monotone constraint on a category"):
        _core.Grower(codes, 1, core_params(Settings(monotone=[1])))


def test_trees_with_sets_come_back():
    n_levels, matrix, g, h = wide_problem()
    codes = table_of(matrix, n_levels)
    params = core_params(Settings(max_depth=5))
    grower, _ = grow(codes, g, h, params)
    trees = grower.trees()
    other = _core.Grower(codes, 1, params)
    other.restore(trees)
    for name in TREE_ARRAYS:
        assert other.trees()[name].tobytes() == trees[name].tobytes()
    wrong = {
        "set": [trees["set"][::-1].copy(), np.full_like(trees["set"], -1), trees["set"][1:].copy()],
        "sets": [trees["sets"][1:].copy(), trees["sets"][:, :3].copy()],
    }
    for name, arrays in wrong.items():
        for array in arrays:
            with pytest.raises(ValueError, match=r"sets|arrays of trees"):
                _core.Grower(codes, 1, params).restore(trees | {name: array})


N_CODES = 40


def problem(rng, n=3000, missing=0.1, outputs=1):
    codes = rng.integers(0, N_CODES, n).astype(float)
    g = np.sin(codes / 5)[:, np.newaxis] + 0.3 * rng.normal(size=(n, outputs))
    codes[rng.random(n) < missing] = np.nan
    return codes[:, np.newaxis], g, np.ones_like(g)


def in_order(matrix, order):
    """Return the codes that have the places of the matrix in an order."""
    return np.append(order, np.nan)[np.nan_to_num(matrix, nan=N_CODES).astype(int)]


def grow_grouped(matrix, shared, g, h, s, method="hist", n_threads=1, order=None, **more):
    """Return the tree of a category of groups, by default in the order of their codes."""
    order = list(range(N_CODES)) if order is None else order
    params = core_params(s, method, grouped={0: (order, sorted(shared))}, **more)
    return grow(table_of(matrix, [N_CODES], method), g, h, params, n_threads)[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("missing", "outputs"), [(0.0, 1), (0.1, 1), (0.1, 3)])
def test_shared_codes_are_cut_in_their_order(method, missing, outputs, rng):
    """With shared codes alone, a grouped category has the trees of a column of numbers."""
    matrix, g, h = problem(rng, missing=missing, outputs=outputs)
    s = Settings(max_depth=4, min_child_weight=20.0)
    category = grow_grouped(matrix, range(N_CODES), g, h, s, method)
    number, _ = grow(table_of(matrix, [0], method), g, h, core_params(s, method))
    np.testing.assert_array_equal(category.trees()["left"], number.trees()["left"])
    for part in ("value", "gain", "cover"):
        np.testing.assert_allclose(category.trees()[part], number.trees()[part], rtol=1e-9)
    np.testing.assert_array_equal(category.leaf_of_row(), number.leaf_of_row())


@pytest.mark.parametrize("method", METHODS)
def test_sets_of_codes_that_levels_do_not_share(method, rng):
    """Levels that alternate in the order are separated by one set, not by cuts."""
    codes = rng.integers(0, N_CODES, 8000).astype(float)
    g = np.where(codes % 2 == 0, 1.0, -1.0)[:, np.newaxis] + 0.1 * rng.normal(size=(8000, 1))
    matrix, h = codes[:, np.newaxis], np.ones_like(g)
    shared = {3, 4, 30}
    grower = grow_grouped(matrix, shared, g, h, Settings(max_depth=1), method)
    left = levels_of(grower.trees()["sets"][0]) & set(range(N_CODES))
    sides = set(range(0, N_CODES, 2)), set(range(1, N_CODES, 2))
    assert left - shared in [side - shared for side in sides]
    assert left & shared in (set(), shared)  # one entry of the search
    params = core_params(Settings(max_depth=1), method)
    plain, _ = grow(table_of(matrix, [N_CODES], method), g, h, params)
    assert levels_of(plain.trees()["sets"][0]) & set(range(N_CODES)) in sides


def test_levels_of_few_rows_are_pooled(rng):
    """Below 30 rows of mean hessian a level is not placed by itself, whatever min_cat_weight."""
    codes = np.concatenate([np.repeat(np.arange(20.0), 200), np.repeat(np.arange(20.0, 40.0), 15)])
    g = np.where(codes % 2 == 0, 1.0, -1.0)[:, np.newaxis] + 0.1 * rng.normal(size=(len(codes), 1))
    s = Settings(max_depth=1, min_cat_weight=0.0)
    grower = grow_grouped(codes[:, np.newaxis], (), g, np.ones_like(g), s)
    left = levels_of(grower.trees()["sets"][0]) & set(range(N_CODES))
    rare = set(range(20, 40))
    assert left & rare in (set(), rare)
    assert left - rare in (set(range(0, 20, 2)), set(range(1, 20, 2)))


def test_codes_that_a_node_lacks_follow_their_neighbours(rng):
    codes = np.repeat([2.0, 4.0, 30.0, 38.0], 100)
    g = np.where(codes < 10, 1.0, -1.0)[:, np.newaxis] + 0.01 * rng.normal(size=(400, 1))
    s = Settings(max_depth=1)
    grower = grow_grouped(codes[:, np.newaxis], range(N_CODES), g, np.ones_like(g), s)
    left = levels_of(grower.trees()["sets"][0]) & set(range(N_CODES))
    assert left == set(range(17))


@pytest.mark.parametrize("method", ["hist", "exact"])
def test_random_cuts_are_in_order(method, rng):
    matrix, g, h = problem(rng)
    order = rng.permutation(N_CODES)
    matrix = in_order(matrix, order)
    s, order = Settings(max_depth=5), order.tolist()
    grower = grow_grouped(matrix, {1, 2}, g, h, s, method, order=order, random_cuts=True)
    sets = [levels_of(words) & set(range(N_CODES)) for words in grower.trees()["sets"]]
    assert len(sets) > 5
    assert all(left == set(order[: len(left)]) for left in sets)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_means_need_not_be_that_of_the_codes(method, rng):
    """Codes in another order, with the order given, have the same splits."""
    matrix, g, h = problem(rng)
    order = rng.permutation(N_CODES)
    s, shared = Settings(max_depth=4), range(0, N_CODES, 3)
    one = grow_grouped(matrix, shared, g, h, s, method)
    moved = in_order(matrix, order)
    other = grow_grouped(moved, order[shared], g, h, s, method, order=order.tolist())
    np.testing.assert_array_equal(one.leaf_of_row(), other.leaf_of_row())


@pytest.mark.parametrize("more", [{"n_threads": 3}, {"subtree_rows": 0}])
def test_the_same_tree_for_any_threads_and_subtrees(more, rng):
    matrix, g, h = problem(rng, n=20_000)
    s, shared = Settings(max_depth=6), range(0, N_CODES, 3)
    trees = [grow_grouped(matrix, shared, g, h, s, **given).trees() for given in ({}, more)]
    for part, array in trees[0].items():
        np.testing.assert_array_equal(array, trees[1][part])


@pytest.mark.parametrize(
    ("n_levels", "order", "message"),
    [
        (0, range(N_CODES), "no category"),
        (N_CODES, range(5), "order"),
        (N_CODES, [0] * 40, "order"),
    ],
)
def test_wrong_groups_are_refused(n_levels, order, message, rng):
    matrix, g, h = problem(rng)
    params = core_params(Settings(max_depth=1), grouped={0: (list(order), [])})
    with pytest.raises(ValueError, match=message):
        grow(table_of(matrix, [n_levels]), g, h, params)
