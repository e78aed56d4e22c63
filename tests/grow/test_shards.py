"""Trees on rows in parts: the same as in memory, for every kind of row and sum."""

import numpy as np
import pytest

from arboost import _core
from support.growing import encode, gradients_of, wide_problem

PARTS = ([1.0], [1.0, 1.0], [3.0, 0.0, 0.5, 7.0, 0.0, 1.0, 2.0])


def grown(codes, gradients, width, shards, *, sample=None, n_threads=2, **params):
    tree_params = _core.TreeParams()
    for name, value in (params | {"shards": shards}).items():
        setattr(tree_params, name, value)
    grower = _core.Grower(codes, width, tree_params)
    for tree in range(2):
        grower.grow(
            gradients,
            0,
            seed=5,
            tree=tree,
            rate=0.3,
            sample=sample,
            leaves_from_all_rows=params.get("max_depth") == 4,
            n_threads=n_threads,
        )
    scores = np.zeros((gradients.n_rows, width))
    grower.add_leaves(scores, 0, n_threads)
    sums = grower.leaf_sums(gradients, 0, n_threads)
    return grower.trees() | {"leaf": grower.leaf_of_row(), "scores": scores, "sums": sums}


def assert_same(one, other):
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def sample_of(kind, gradients):
    sample = _core.Sample()
    n = gradients.n_rows
    match kind:
        case "bootstrap":
            sample.draw_with_replacement(n, n, 3, 0, 1)
        case "one side":
            sample.draw_one_side(gradients, 0.2, 0.1, 3, 0, 1)
        case "by gradient":
            sample.draw_by_gradient(gradients, 0.3, 1.0, 3, 0, 1)
        case _:
            return None
    return sample


# From 32,768 rows on, gradients are rounded at random, by the position of a row among all rows.
@pytest.mark.parametrize("shards", PARTS, ids=len)
@pytest.mark.parametrize("sample", ["none", "bootstrap", "one side", "by gradient"])
@pytest.mark.parametrize(
    "params",
    [
        {"max_depth": None, "max_leaves": 40, "best_first": True},
        {"max_depth": 4, "monotone": [1, -1] + [0] * 7},
        {"max_depth": 6, "min_samples_leaf": 50, "colsample_bynode": 0.5},
        {"max_depth": 5, "random_cuts": True, "allow_zero_gain": True},
    ],
    ids=["best first", "monotone", "leaf size", "random cuts"],
)
def test_many_rows(shards, sample, params):
    codes, n_bins, g, h = wide_problem(n=40_000)
    table, gradients = encode(codes, n_bins), gradients_of(g, h)
    drawn = sample_of(sample, gradients)
    expected = grown(table, gradients, 1, [], sample=drawn, **params)
    assert_same(expected, grown(table, gradients, 1, shards, sample=drawn, **params))


@pytest.mark.parametrize("shards", PARTS, ids=len)
def test_vector_leaves_and_little_memory(shards):
    codes, n_bins, g, h = wide_problem(n=3000, outputs=3)
    table, gradients = encode(codes, n_bins), gradients_of(g, h)
    params = {"max_depth": None, "max_leaves": 60, "histogram_bytes": 1}
    expected = grown(table, gradients, 3, [], **params)
    assert_same(expected, grown(table, gradients, 3, shards, **params))


def test_parts_without_rows_of_a_sample():
    codes, n_bins, g, h = wide_problem(n=50)
    table, gradients = encode(codes, n_bins), gradients_of(g, h)
    sample = _core.Sample()
    sample.draw(50, 0.05, 1, 0, 1)
    expected = grown(table, gradients, 1, [], sample=sample)
    assert_same(expected, grown(table, gradients, 1, [1.0] * 20, sample=sample))


def test_a_worker_that_fails_ends_the_tree_and_the_next_one_grows():
    codes, n_bins, g, h = wide_problem(n=400)
    table = encode(codes, n_bins)
    params = _core.TreeParams()
    params.criterion, params.reg_lambda, params.shards = "poisson", 0.0, [1.0, 1.0, 1.0]
    params.cat_l2 = 0.0
    grower = _core.Grower(table, 1, params)
    counts = -np.abs(g)
    wrong = counts.copy()
    wrong[-1] = 1.0  # a negative target, in the rows of the last worker
    request = {"seed": 0, "tree": 0, "rate": 1.0, "n_threads": 1}
    with pytest.raises(ValueError, match="below 0"):
        grower.grow(gradients_of(wrong, h), 0, **request)
    assert grower.n_trees == 0
    grower.grow(gradients_of(counts, h), 0, **request)
    assert grower.n_nodes > 1


@pytest.mark.parametrize("shards", [[0.0, 0.0], [-1.0, 2.0], [float("nan")]])
def test_wrong_parts(shards):
    codes, n_bins, *_ = wide_problem(n=50)
    params = _core.TreeParams()
    params.shards = shards
    with pytest.raises(ValueError, match="shards must be numbers from 0 on"):
        _core.Grower(encode(codes, n_bins), 1, params)


def test_medians_need_all_rows_in_one_process():
    codes, n_bins, *_ = wide_problem(n=50)
    params = _core.TreeParams()
    params.criterion, params.reg_lambda, params.shards = "absolute_error", 0.0, [1.0, 1.0]
    with pytest.raises(ValueError, match="all rows in the memory of one process"):
        _core.Grower(encode(codes, n_bins), 1, params)


def test_ranks_need_all_rows_in_one_process():
    columns = _core.Columns(50)
    columns.add_matrix(np.arange(50.0)[:, None])
    params = _core.TreeParams()
    params.candidates, params.shards = _core.Candidates.values, [1.0, 1.0]
    with pytest.raises(ValueError, match="all rows in one process"):
        _core.Grower(_core.rank(columns, None, 1), 1, params)
