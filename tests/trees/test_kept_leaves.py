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


def evaluation(table, rows, scores, *, adds_repeatedly=True):
    y = np.zeros(len(scores))
    return _core.make_evaluation(
        table, rows, y, None, scores, adds_repeatedly=adds_repeatedly, device=-1
    )


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("some", [False, True])
def test_same_bits_as_one_by_one(some, width, n_threads):
    n_rows, rng = 40_000, np.random.default_rng(0)
    grower, table = grown(n_rows, width)
    rows = np.flatnonzero(rng.random(n_rows) < 0.5).astype(np.uint32) if some else None
    start = rng.normal(size=(n_rows if rows is None else len(rows), width))
    kept, walked = (evaluation(table, rows, start, adds_repeatedly=kept) for kept in (True, False))
    expected = start.copy()
    for tree, factor in zip(
        rng.integers(0, N_TREES, 30).tolist(), rng.normal(size=30), strict=True
    ):
        grower.add_tree(tree, factor, table, rows, expected, 0, 1)
        for actual in (kept, walked):
            actual.add(grower, tree, 1, factor, n_threads)
            np.testing.assert_array_equal(actual.scores, expected)


def test_trees_of_a_round_belong_to_its_outputs():
    grower, table = grown(500, 1)
    actual, expected = evaluation(table, None, np.zeros((500, 2))), np.zeros((500, 2))
    actual.add(grower, 2, 2, 0.5, 1)
    for tree, output in ((2, 0), (3, 1)):
        grower.add_tree(tree, 0.5, table, None, expected, output, 1)
    np.testing.assert_array_equal(actual.scores, expected)


def test_wrong_arguments():
    grower, table = grown(500, 1)
    actual = evaluation(table, None, np.zeros((500, 2)))
    with pytest.raises(ValueError, match="exist"):
        actual.add(grower, N_TREES - 1, 2, 1.0, 1)
    with pytest.raises(ValueError, match="fit"):
        actual.set_scores(np.zeros((499, 2)))
    with pytest.raises(ValueError, match="length 499, expected 500"):
        evaluation(table, None, np.zeros((499, 2)))
    wide, _ = grown(500, 3)
    with pytest.raises(ValueError, match="fit"):
        actual.add(wide, 0, 1, 1.0, 1)
