"""Leaves that are kept between additions of the same trees, as dropout needs them."""

import numpy as np
import pytest

from arboost import _core
from support.core_trees import core_params, encode, gradients_of, wide_problem
from support.reference import Settings

N_TREES = 6


def grown(n_rows, width):
    codes, n_bins, g, h = wide_problem(n=n_rows, outputs=width)
    table = encode(codes, n_bins)
    grower = _core.Grower(table, width, core_params(Settings(max_depth=5)))
    gradients = gradients_of(g, h)
    for tree in range(N_TREES):
        grower.grow(gradients, 0, seed=0, tree=tree, rate=0.1 + tree, n_threads=1)
    return grower, table


def added_one_by_one(grower, table, rows, scores, trees, factors, output):
    for tree, factor in zip(trees, factors, strict=True):
        grower.add_tree(tree, factor, table, rows, scores, output, 1)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("some", [False, True])
def test_same_bits_as_one_by_one(some, width, n_threads):
    n_rows, rng = 40_000, np.random.default_rng(0)
    grower, table = grown(n_rows, width)
    rows = np.flatnonzero(rng.random(n_rows) < 0.5).astype(np.uint32) if some else None
    expected = rng.normal(size=(n_rows if rows is None else len(rows), 4))
    scores, kept = expected.copy(), _core.RowLeaves()
    for output in (0, 1, 0):
        trees = rng.integers(0, N_TREES, 10)
        factors = rng.normal(size=10)
        added_one_by_one(grower, table, rows, expected, trees.tolist(), factors, output)
        grower.add_trees(
            trees.astype(np.uint32),
            factors,
            np.full(10, output, np.uint32),
            table,
            rows,
            scores,
            kept,
            n_threads,
        )
        np.testing.assert_array_equal(scores, expected)


def test_wrong_arguments():
    grower, table = grown(500, 1)
    other, _ = grown(500, 1)
    scores, kept = np.zeros((500, 2)), _core.RowLeaves()
    one, factor = np.zeros(1, np.uint32), np.ones(1)

    def add(trees=one, factors=factor, outputs=one, rows=None, scores=scores, of=grower):
        of.add_trees(trees, factors, outputs, table, rows, scores, kept, 1)

    add()
    for wrong in (
        {"trees": np.array([N_TREES], np.uint32)},
        {"outputs": np.array([2], np.uint32)},
        {"factors": np.ones(2)},
        {"scores": np.zeros((499, 2))},
        {"rows": np.arange(10, dtype=np.uint32), "scores": np.zeros((10, 2))},
        {"of": other},
    ):
        with pytest.raises(ValueError, match=r"exist|fit|differ|other rows"):
            add(**wrong)
