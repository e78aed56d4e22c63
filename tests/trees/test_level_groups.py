"""Splits of grouped categories: cuts in the order of the codes, and sets of frequent levels."""

from __future__ import annotations

import numpy as np
import pytest

from support.leveled import METHODS, core_params, grow, levels_of, table_of
from support.reference import Settings

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
