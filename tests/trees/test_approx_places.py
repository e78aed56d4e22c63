"""Approximate trees wherever the rows are: in memory, in a file, or divided among workers."""

import numpy as np
import pytest

from arboost import _core
from arboost.workers import Workers
from support.local_workers import run_workers
from support.ranked import gradients_of, params_of, random_gradients, random_values
from support.shared_codes import shared

PER_ROUND, PER_NODE = _core.Candidates.per_round, _core.Candidates.per_node
PARTS = ([1.0], [1.0, 1.0], [0.0, 5.0, 1.0, 0.0, 11.0])


def problem(n, outputs=1, *, nothing=0.05, seed=0):
    """Return codes and gradients; a share of the rows has neither gradient nor hessian."""
    rng = np.random.default_rng(n + outputs + seed)
    matrix = np.c_[random_values(rng, n, missing=0.1), rng.integers(0, 9, n)]
    g, h = random_gradients(rng, matrix, outputs)
    empty = rng.random(n) < nothing
    g[empty] = h[empty] = 0.0
    columns = _core.Columns(n)
    columns.add_matrix(matrix)
    edges = [*_core.quantiles(columns, None, None, 65535, 1)[:-1], np.arange(0.5, 8)]
    categorical = [False] * 4 + [True]
    codes = _core.encode(columns, None, edges, 1, categorical, _core.StoragePlan())
    return codes, gradients_of(g, h)


def grown(codes, gradients, params, *, sample, rows=None, n_threads=1):
    grower = _core.Grower(codes, gradients.to_numpy().shape[1], params, rows)
    found = {}
    for tree in range(2):
        grower.propose(gradients, n_threads)
        grower.grow(gradients, 0, seed=5, tree=tree, rate=0.5, sample=sample, n_threads=n_threads)
    scores = np.zeros((gradients.n_rows, gradients.to_numpy().shape[1]))
    grower.add_leaves(scores, 0, n_threads)
    grower.add_tree(0, 0.5, codes, rows, scores, 0, n_threads)
    found["sums"] = grower.leaf_sums(gradients, 0, n_threads)
    return grower.trees() | found | {"scores": scores, "leaf": grower.leaf_of_row()}


def in_file(codes, folder, window_rows):
    with open(folder / f"{window_rows}.codes", "w+b") as file:
        writer = _core.CodesWriter(file.fileno(), window_rows)
        writer.append(codes)
        return writer.finish()


@pytest.mark.parametrize("candidates", [PER_ROUND, PER_NODE])
@pytest.mark.parametrize(("n", "outputs"), [(700, 1), (3000, 3), (40_000, 1)])
@pytest.mark.parametrize(
    ("sampled", "tree"),
    [
        (False, {"sketch_eps": 0.02, "max_depth": 6}),
        (True, {"sketch_eps": 0.1, "max_depth": None, "max_leaves": 30, "best_first": True}),
        (True, {"sketch_eps": 0.3, "max_depth": 4, "min_samples_leaf": 20}),
        (False, {"sketch_eps": 1e-4, "max_depth": 5, "reg_alpha": 0.5, "colsample_bynode": 0.5}),
    ],
    ids=["plain", "best first", "leaf size", "nearly exact"],
)
def test_same_trees(candidates, n, outputs, sampled, tree, tmp_path):
    codes, gradients = problem(n, outputs)
    params, sample = params_of(candidates, **tree), None
    if sampled:
        sample = _core.Sample()
        sample.draw_with_replacement(n, n, 3, 0, 1)
    expected = grown(codes, gradients, params, sample=sample)
    assert len(expected["left"]) > 5

    def program(workers: Workers):
        return grown(shared(codes, workers, parts), gradients, params, sample=sample, n_threads=2)

    found = [grown(codes, gradients, params, sample=sample, n_threads=3)]
    for n_threads, window_rows in ((1, 64), (4, 999), (2, n)):
        stored = in_file(codes, tmp_path, window_rows)
        found.append(grown(stored, gradients, params, sample=sample, n_threads=n_threads))
    for parts in PARTS:
        found += run_workers(len(parts), program)
    for one in found:
        for name, array in expected.items():
            np.testing.assert_array_equal(array, one[name], err_msg=name)


@pytest.mark.parametrize("candidates", [PER_ROUND, PER_NODE])
@pytest.mark.parametrize("least", [1, 3])
def test_rows_without_weight_in_small_nodes(candidates, least, tmp_path):
    """Values, levels and missing values of such rows alone are the same in rows and in sums."""
    for seed in range(40):
        codes, gradients = problem(20 + 7 * seed, nothing=0.6, seed=seed)
        params = params_of(
            candidates,
            sketch_eps=[0.3, 0.1, 0.02][seed % 3],
            min_child_weight=0.0,
            min_samples_leaf=least,
            min_cat_weight=0.0,
            cat_smooth=0.0,
        )
        expected = grown(codes, gradients, params, sample=None)
        found = grown(in_file(codes, tmp_path, 64), gradients, params, sample=None)
        for name, array in expected.items():
            np.testing.assert_array_equal(array, found[name], err_msg=f"{name}, seed {seed}")


@pytest.mark.parametrize("candidates", [PER_ROUND, PER_NODE])
def test_training_rows_among_those_of_workers(candidates):
    """Some workers have no training row."""
    codes, _ = problem(2000)
    rows = np.arange(0, 1300, 2).astype(np.uint32)
    own = gradients_of(*np.moveaxis(np.array(problem(650)[1].to_numpy(), float), 2, 0))
    params = params_of(candidates, sketch_eps=0.05)
    expected = grown(codes, own, params, sample=None, rows=rows)

    def program(workers: Workers):
        table = shared(codes, workers, [1.0, 1.0, 2.0])
        return grown(table, own, params, sample=None, rows=rows)

    for one in run_workers(3, program):
        for name, array in expected.items():
            np.testing.assert_array_equal(array, one[name], err_msg=name)
