"""Approximate trees: candidate thresholds eps of the hessian apart, per round or per node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arboost import _core
from arboost.workers import Workers
from support.local_workers import run_workers
from support.ranked import (
    assert_same_bytes,
    columns_of,
    fine_codes,
    fine_edges,
    gradients_of,
    grow,
    params_of,
    random_gradients,
    random_values,
)
from support.shared_codes import shared

BINS, VALUES = _core.Candidates.bins, _core.Candidates.values
PER_ROUND, PER_NODE = _core.Candidates.per_round, _core.Candidates.per_node


def problem(seed, n, outputs=1):
    rng = np.random.default_rng(seed)
    matrix = random_values(rng, n, missing=rng.choice([0.0, 0.2]))
    return fine_codes(matrix), matrix, *random_gradients(rng, matrix, outputs)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([2, 40, 2500]), st.sampled_from([1, 1, 3]))
def test_a_vanishing_eps_gives_exact_trees(seed, n, outputs):
    codes, matrix, g, h = problem(seed, n, outputs)
    gradients = gradients_of(g, h)
    exact = grow(_core.rank(columns_of(matrix), None, 1), gradients, params_of(VALUES), n_trees=2)
    for candidates in (PER_ROUND, PER_NODE):
        params = params_of(candidates, sketch_eps=1.1e-6 if candidates == PER_ROUND else 1e-12)
        assert_same_bytes(exact, grow(codes, gradients, params, n_trees=2))


def thinned(own, eps):
    """Codes of a node's candidate thresholds, from the hessian of each value in integer units."""
    apart = int(np.floor(eps * own["total"]))
    cuts, kept, before = [], 0, 0
    seen = None
    for rank, h in own["values"]:
        if seen is not None and cuts[-1:] != [seen] and h >= 2 * apart:
            cuts.append(seen)
            kept = before
        before += h
        if before - kept > apart:
            cuts.append(rank)
            kept = before
        seen = rank
    return [rank for rank in cuts if rank != seen]


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([40, 700, 4000]),
    st.sampled_from([0.01, 0.1, 0.3]),
    st.sampled_from([1, 1, 2]),
)
def test_candidates_of_a_node_are_eps_apart(seed, n, eps, outputs):
    """The root's split is the best of the candidates by the rule, found by a histogram of them."""
    fine, matrix, g, h = problem(seed, n, outputs)
    gradients = gradients_of(g, h)
    actual = grow(fine, gradients, params_of(PER_NODE, sketch_eps=eps, max_depth=1))
    fixed = gradients.to_numpy()[:, :, 1].astype(np.int64)
    shift = 0  # as the grower scales hessians to sums of 31 bits
    while max((fixed.sum(0) >> shift) + n) >= 2**31:
        shift += 1
    units = ((fixed + (1 << shift >> 1)) >> shift).sum(1)
    code, edges, allowed = fine.to_numpy(), [], []
    all_edges = fine_edges(matrix)
    for f in range(matrix.shape[1]):
        own = np.bincount(code[:, f], units, fine.n_bins[f] + 1)[: fine.n_bins[f]].astype(int)
        used = np.flatnonzero(np.bincount(code[:, f], minlength=len(own))[: len(own)])
        cuts = thinned({"total": units.sum(), "values": [(r, own[r]) for r in used]}, eps)
        allowed.append(np.append(cuts, len(own) - 1))
        edges.append(all_edges[f][np.array(cuts, int)])
    codes = _core.encode(columns_of(matrix), None, edges, 1)
    best = grow(codes, gradients, params_of(BINS, max_depth=1))
    best["bin"] = np.array(
        [
            allowed[f][b] if b < len(allowed[f]) else b
            for f, b in zip(best["feature"], best["bin"], strict=True)
        ],
        dtype=np.int32,
    ) * (best["left"] > 0)
    assert_same_bytes(actual, best | {"bin": best["bin"].astype(np.int32)})


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("n", [3000, 50_000])
def test_trees_of_a_round_are_those_of_its_bins(n, outputs):
    fine, _, g, h = problem(7, n, outputs)
    gradients = gradients_of(g, h)
    tree = {"max_depth": 7, "min_samples_leaf": 3}
    actual = grow(fine, gradients, params_of(PER_ROUND, sketch_eps=0.02, **tree))
    proposal = _core.Proposal(fine, 0.02)
    shift = (outputs - 1).bit_length()
    summed = gradients.to_numpy()[:, :, 1].astype(np.int64).sum(1) >> shift
    proposal.update(summed.astype(np.uint32), 1)
    expected = grow(proposal.codes, gradients, params_of(BINS, **tree))
    inner = expected["left"] > 0
    expected["bin"][inner] = [
        proposal.last_code(f, b)
        for f, b in zip(expected["feature"][inner], expected["bin"][inner], strict=True)
    ]
    assert inner.sum() > 30
    assert_same_bytes(actual, expected)


def test_candidates_follow_the_hessians_of_each_round():
    """Nearly all hessian on one side: nearly all candidates are there."""
    n = 20_000
    x = np.arange(n, dtype=float)
    fine = fine_codes(x[:, np.newaxis])
    grower = _core.Grower(fine, 1, params_of(PER_ROUND, sketch_eps=0.1, max_depth=None))
    for side in (x < n / 2, x >= n / 2):
        h = np.where(side, 1.0, 1e-4)[:, np.newaxis]
        gradients = gradients_of(np.sin(x / 500)[:, np.newaxis] * h, h)
        grower.propose(gradients, 1)
        grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, n_threads=1)
        trees = grower.trees()
        start = trees["tree_start"][-2]
        cuts = trees["bin"][start:][trees["left"][start:] > 0]
        assert len(cuts) >= 5
        assert side[cuts].mean() > 0.8
        assert np.diff(np.sort(cuts[side[cuts]])).min() > 0.09 * n / 2


@pytest.mark.parametrize("candidates", [PER_ROUND, PER_NODE])
def test_same_bytes_for_any_number_of_threads(candidates):
    fine, _, g, h = problem(8, 60_000)
    gradients = gradients_of(g, h)
    params = params_of(candidates, sketch_eps=0.01, max_depth=8)
    one = grow(fine, gradients, params, n_trees=2)
    for n_threads in (2, 5):
        assert_same_bytes(one, grow(fine, gradients, params, n_trees=2, n_threads=n_threads))


@pytest.mark.parametrize("candidates", [PER_ROUND, PER_NODE])
def test_samples_rows_columns_and_constraints(candidates):
    """Trees follow their parameters: leaves, row samples, monotone and interaction constraints."""
    fine, matrix, g, h = problem(9, 4000)
    rows = np.arange(0, 4000, 2).astype(np.uint32)
    gradients = gradients_of(g[rows], h[rows])
    sample = _core.Sample()
    sample.draw(len(rows), 0.7, 1, 0, 1)
    params = params_of(
        candidates,
        sketch_eps=0.01,
        monotone=[1, 0, 0, 0],
        interactions=[[0, 2], [1]],
        min_samples_leaf=10,
        colsample_bynode=0.8,
    )
    grower = _core.Grower(fine, 1, params, rows)
    grower.propose(gradients, 1)
    grower.grow(gradients, 0, seed=1, tree=0, rate=1.0, sample=sample, n_threads=1)
    trees, leaf = grower.trees(), grower.leaf_of_row()
    assert np.bincount(leaf[leaf != 2**32 - 1]).sum() == len(sample.positions())
    counts = np.bincount(leaf[leaf != 2**32 - 1])
    assert counts[counts > 0].min() >= 10
    scores = np.zeros((4000, 1))
    grower.add_tree(0, 1.0, fine, None, scores, 0, 1)
    own = np.zeros((len(rows), 1))
    grower.add_leaves(own, 0, 1)
    np.testing.assert_array_equal(own, scores[rows])
    assert set(trees["feature"][trees["left"] > 0]) in ({0, 2}, {0}, {2}, {1})
    # Along feature 0 alone, with all other features fixed, scores never fall.
    edges = fine_edges(matrix)
    base = np.repeat(matrix[:1], len(edges[0]), axis=0)
    base[:, 0] = edges[0]
    scores = np.zeros((len(base), 1))
    codes = _core.encode(columns_of(base), None, edges, 1)
    grower.add_tree(0, 1.0, codes, None, scores, 0, 1)
    assert (np.diff(scores[:, 0]) >= 0).all()


def test_a_round_needs_candidates():
    fine, _, g, h = problem(10, 100)
    grower = _core.Grower(fine, 1, params_of(PER_ROUND))
    with pytest.raises(RuntimeError, match="proposed"):
        grower.grow(gradients_of(g, h), 0, seed=1, tree=0, rate=1.0, n_threads=1)


PARTS = ([1.0], [1.0, 1.0], [0.0, 5.0, 1.0, 0.0, 11.0])


def placed_problem(n, outputs=1, *, nothing=0.05, seed=0):
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
    actual = {}
    for tree in range(2):
        grower.propose(gradients, n_threads)
        grower.grow(gradients, 0, seed=5, tree=tree, rate=0.5, sample=sample, n_threads=n_threads)
    scores = np.zeros((gradients.n_rows, gradients.to_numpy().shape[1]))
    grower.add_leaves(scores, 0, n_threads)
    grower.add_tree(0, 0.5, codes, rows, scores, 0, n_threads)
    actual["sums"] = grower.leaf_sums(gradients, 0, n_threads)
    return grower.trees() | actual | {"scores": scores, "leaf": grower.leaf_of_row()}


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
    codes, gradients = placed_problem(n, outputs)
    params, sample = params_of(candidates, **tree), None
    if sampled:
        sample = _core.Sample()
        sample.draw_with_replacement(n, n, 3, 0, 1)
    expected = grown(codes, gradients, params, sample=sample)
    assert len(expected["left"]) > 5

    def program(workers: Workers):
        return grown(shared(codes, workers, parts), gradients, params, sample=sample, n_threads=2)

    actual = [grown(codes, gradients, params, sample=sample, n_threads=3)]
    for n_threads, window_rows in ((1, 64), (4, 999), (2, n)):
        stored = in_file(codes, tmp_path, window_rows)
        actual.append(grown(stored, gradients, params, sample=sample, n_threads=n_threads))
    for parts in PARTS:
        actual += run_workers(len(parts), program)
    for one in actual:
        for name, array in expected.items():
            np.testing.assert_array_equal(array, one[name], err_msg=name)


@pytest.mark.parametrize("candidates", [PER_ROUND, PER_NODE])
@pytest.mark.parametrize("least", [1, 3])
def test_rows_without_weight_in_small_nodes(candidates, least, tmp_path):
    """Values, levels and missing values of such rows alone are the same in rows and in sums."""
    for seed in range(40):
        codes, gradients = placed_problem(20 + 7 * seed, nothing=0.6, seed=seed)
        params = params_of(
            candidates,
            sketch_eps=[0.3, 0.1, 0.02][seed % 3],
            min_child_weight=0.0,
            min_samples_leaf=least,
            min_cat_weight=0.0,
            cat_smooth=0.0,
        )
        expected = grown(codes, gradients, params, sample=None)
        actual = grown(in_file(codes, tmp_path, 64), gradients, params, sample=None)
        for name, array in expected.items():
            np.testing.assert_array_equal(array, actual[name], err_msg=f"{name}, seed {seed}")


@pytest.mark.parametrize("candidates", [PER_ROUND, PER_NODE])
def test_training_rows_among_those_of_workers(candidates):
    """Some workers have no training row."""
    codes, _ = placed_problem(2000)
    rows = np.arange(0, 1300, 2).astype(np.uint32)
    own = gradients_of(*np.moveaxis(np.array(placed_problem(650)[1].to_numpy(), float), 2, 0))
    params = params_of(candidates, sketch_eps=0.05)
    expected = grown(codes, own, params, sample=None, rows=rows)

    def program(workers: Workers):
        table = shared(codes, workers, [1.0, 1.0, 2.0])
        return grown(table, own, params, sample=None, rows=rows)

    for one in run_workers(3, program):
        for name, array in expected.items():
            np.testing.assert_array_equal(array, one[name], err_msg=name)
