"""Ranks, quantile sketches and proposals: guarantees about weights, for any data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arboost import _core
from support.ranked import columns_of, fine_codes

weights = st.integers(0, 40) | st.integers(0, 2**40)
pieces = st.lists(
    st.lists(st.tuples(st.integers(-20, 20), weights), min_size=1, max_size=30),
    min_size=1,
    max_size=6,
)


def sketch_of(piece) -> _core.Sketch:
    sketch = _core.Sketch()
    sketch.push(
        np.array([float(x) for x, _ in piece]), np.array([w for _, w in piece], dtype=np.int64)
    )
    return sketch


def weight_below(data, value):
    return sum(w for x, w in data if x < value)


def assert_bounds_hold(sketch, data):
    """Exact ranks lie within the bounds, and the bounds are as tight as claimed."""
    assert sketch.total == sum(w for _, w in data)
    kept = dict(
        zip(*(sketch.entries()[name].tolist() for name in ("value", "weight")), strict=True)
    )
    for value in np.arange(-20.5, 21, 0.5):
        rmin, rmax = sketch.rank_bounds(value)
        own = sum(w for x, w in data if x == value)
        below = weight_below(data, value)
        assert rmin <= below
        assert rmax >= below + own
        assert kept.get(value, 0) <= own
        assert rmax - rmin - kept.get(value, 0) <= sketch.error() <= sketch.error_bound()


@given(pieces)
def test_without_pruning_ranks_are_exact(parts):
    sketch = _core.Sketch()
    for part in parts:
        sketch.merge(sketch_of(part))
    data = [item for part in parts for item in part]
    assert sketch.error_bound() == 0
    for value in range(-21, 22):
        below = weight_below(data, value)
        assert sketch.rank_bounds(value) == (below, below + sum(w for x, w in data if x == value))


@settings(max_examples=300)
@given(pieces, st.data())
def test_any_tree_of_merges_and_prunes_keeps_its_bound(parts, data):
    """The bound of the theorems is the sum of the errors of all prunes, in any order."""
    waiting = [(sketch_of(part), list(part), 0) for part in parts]
    while True:
        at = data.draw(st.integers(0, len(waiting) - 1))
        sketch, items, allowed = waiting.pop(at)
        size = data.draw(st.integers(2, 12))
        if len(sketch.entries()["value"]) > size:
            allowed += -(-sketch.total // (size - 1))
            sketch.prune(size)
        assert len(sketch.entries()["value"]) <= size
        assert sketch.error_bound() == allowed
        assert_bounds_hold(sketch, items)
        if not waiting:
            break
        other, more, also = waiting.pop()
        sketch.merge(other)
        waiting.append((sketch, items + more, allowed + also))
        assert_bounds_hold(sketch, items + more)


@settings(max_examples=300)
@given(pieces, st.sampled_from([0.01, 0.05, 0.2, 0.5]), st.sampled_from([None, 8, 15]))
def test_cuts_leave_at_most_eps_between_neighbours(parts, eps, size):
    sketch = _core.Sketch()
    for part in parts:
        sketch.merge(sketch_of(part))
    if size is not None:
        sketch.prune(size)
    data = [item for part in parts for item in part if item[1] > 0]
    cuts = sketch.cuts(eps)
    assert (np.diff(cuts) > 0).all()
    limit = int(np.floor(eps * sketch.total))
    edges = [-np.inf, *cuts, np.inf]
    for low, high in itertools.pairwise(edges):
        inside = [(x, w) for x, w in data if low < x <= high]
        if not inside:
            continue
        largest = max(x for x, _ in inside)
        rest = sum(w for x, w in inside if x < largest)
        # Between two kept values of a coarse sketch there is no candidate.
        assert rest <= max(limit, sketch.error())
        for x in {x for x, _ in inside}:
            if sum(w for y, w in inside if y == x) >= 2 * max(limit, 1) and sketch.error() == 0:
                assert {y for y, _ in inside} == {x}
    most = limit - 2 * sketch.error()
    if most > 0:
        assert len(cuts) + 1 <= sketch.total / most + 1


def test_a_large_sketch_of_many_pieces():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=200_000), rng.integers(1, 2**30, 200_000)
    sketch = _core.Sketch()
    for part in np.array_split(np.arange(len(values)), 23):
        piece = _core.Sketch()
        piece.push(values[part], weight[part])
        piece.prune(1001)
        sketch.merge(piece)
    assert sketch.error() <= sketch.error_bound() <= sketch.total / 1000 + 23
    order = np.argsort(values)
    for eps in (0.01, 0.1):
        cuts = sketch.cuts(eps)
        exact = np.concatenate([[0], np.cumsum(weight[order])])
        at = exact[np.searchsorted(values[order], np.concatenate([cuts, [np.inf]]), side="right")]
        assert np.diff(at, prepend=0).max() <= eps * sketch.total + weight.max()
        assert len(cuts) <= 1.25 / eps


def test_a_sketch_leaves_out_what_has_no_weight_or_no_value():
    sketch = _core.Sketch()
    sketch.push(np.array([3.0, np.nan, -0.0, 0.0, 9.0]), np.array([1, 5, 2, 3, 0]))
    assert sketch.total == 6
    assert sketch.entries()["value"].tolist() == [0.0, 3.0]
    assert sketch.rank_bounds(0.0) == (0, 5)


def test_bad_input_to_a_sketch():
    sketch = _core.Sketch()
    with pytest.raises(ValueError, match="at least 0"):
        sketch.push(np.array([1.0]), np.array([-1]))
    with pytest.raises(ValueError, match="one weight"):
        sketch.push(np.array([1.0]), np.array([1, 2]))
    with pytest.raises(ValueError, match=r"2\^61"):
        sketch.push(np.array([1.0]), np.array([2**62]))
    with pytest.raises(ValueError, match="at least 2"):
        sketch.prune(1)
    with pytest.raises(ValueError, match="above 0"):
        sketch.cuts(0.0)


tables = st.integers(0, 2**32).map(np.random.default_rng)


@given(tables, st.integers(1, 80), st.sampled_from([np.float64, np.float32, np.int8]))
def test_ranks_are_the_order_of_the_distinct_values(rng, n, dtype):
    matrix = rng.choice([-3, -1, 0, 1, 2, 5, 100], (n, 4)).astype(dtype)
    if dtype != np.int8:
        matrix[:, 0] = rng.normal(size=n)
        matrix[rng.random(matrix.shape) < 0.2] = np.nan
        matrix[rng.random(matrix.shape) < 0.1] = -0.0
        matrix[0, 2] = np.inf
        matrix[:, 3] = np.nan
    rows = None
    if n > 3:
        rows = np.sort(rng.choice(n, n - 2, replace=False)).astype(np.uint32)
    ranks = _core.rank(columns_of(matrix), rows, 2)
    used = matrix if rows is None else matrix[rows]
    codes, order, edges = ranks.to_numpy(), ranks.order, ranks.edges
    assert (ranks.width, codes.dtype) == (4, np.uint32)
    for f in range(4):
        column = used[:, f].astype(float) + 0.0
        values = np.unique(column[~np.isnan(column)])
        expected = np.where(np.isnan(column), max(1, len(values)), np.searchsorted(values, column))
        np.testing.assert_array_equal(codes[:, f], expected)
        np.testing.assert_array_equal(order[f], np.argsort(expected, kind="stable"))
        assert ranks.n_bins[f] == max(1, len(values))
        assert ranks.has_missing[f] == np.isnan(column).any()
        assert len(edges[f]) == max(1, len(values)) - 1
        assert (values[:-1] <= edges[f]).all()
        assert (edges[f] < values[1:]).all()
    again = _core.encode(columns_of(used), None, list(edges), 1)
    np.testing.assert_array_equal(again.to_numpy(), codes)


def test_ranks_do_not_depend_on_the_threads_and_may_be_many():
    matrix = np.random.default_rng(1).normal(size=(70_000, 3))
    one, two = (_core.rank(columns_of(matrix), None, n) for n in (1, 2))
    assert one.n_bins.tolist() == [70_000] * 3
    np.testing.assert_array_equal(one.to_numpy(), two.to_numpy())
    np.testing.assert_array_equal(one.order, two.order)
    wide = _core.encode(columns_of(matrix), None, list(one.edges), 2)
    assert wide.width == 4
    np.testing.assert_array_equal(wide.to_numpy(), one.to_numpy())


@pytest.mark.parametrize("eps", [0.3, 0.02, 0.004, 0.0015])
def test_proposed_bins_respect_eps(eps):
    rng = np.random.default_rng(2)
    n = 150_000
    matrix = np.stack([rng.normal(size=n), rng.integers(0, 90, n), rng.exponential(size=n)], 1)
    matrix[rng.random(n) < 0.4, 2] = 0.0  # one heavy value
    matrix[rng.random(matrix.shape) < 0.1] = np.nan
    fine = fine_codes(matrix, 2)
    proposal = _core.Proposal(fine, eps)
    code = fine.to_numpy()
    for scale in (1.0, 30.0):  # in place, for other hessians
        hessians = (2**30 * np.exp(-scale * rng.random(n))).astype(np.uint32)
        hessians[rng.random(n) < 0.3] = 0
        proposal.update(hessians, 2)
        assert proposal.codes.width == (1 if eps >= 0.004 else 2)
        bins = proposal.codes.to_numpy()
        np.testing.assert_array_equal(proposal.codes.by_column, bins)
        for f in range(3):
            n_bins, n_values = proposal.codes.n_bins[f], fine.n_bins[f]
            assert n_bins <= 1.05 / eps + 2 or n_values <= n_bins
            present = code[:, f] < n_values
            assert (bins[~present, f] == n_bins).all()
            own = np.bincount(code[present, f], hessians[present], n_values)
            bin_of_code = np.zeros(n_values, int)
            bin_of_code[code[present, f]] = bins[present, f]
            assert (np.diff(bin_of_code) >= 0).all()
            last = np.flatnonzero(np.diff(bin_of_code, append=n_bins))
            assert last.tolist() == [proposal.last_code(f, b) for b in bin_of_code[last]]
            in_bin = np.bincount(bin_of_code, own, n_bins)
            if n_values <= n_bins:
                assert (bin_of_code == np.arange(n_values)).all()
                continue
            heaviest = np.zeros(n_bins)
            np.maximum.at(heaviest, bin_of_code, own)
            assert (in_bin - heaviest <= eps * own.sum()).all()
            heavy = np.flatnonzero(own >= 2 * eps * own.sum())
            assert (own[heavy] == in_bin[bin_of_code[heavy]]).all()


def test_gaps_between_candidates_of_many_distinct_values():
    """More values than fine bins: these are so small that eps holds for the values, too."""
    rng = np.random.default_rng(4)
    x = np.sort(rng.normal(size=300_000))
    fine, eps = fine_codes(x[:, np.newaxis], 2), 0.01
    assert fine.n_bins[0] == 65535
    assert np.bincount(fine.to_numpy()[:, 0]).max() < 1e-4 * len(x)
    hessians = rng.integers(2**20, 2**22, len(x)).astype(np.uint32)
    proposal = _core.Proposal(fine, eps)
    proposal.update(hessians, 2)
    bins = proposal.codes.to_numpy()[:, 0]
    gaps = np.bincount(bins, hessians) / hessians.sum(dtype=np.int64)
    assert gaps.max() <= eps + 2e-4
    assert len(gaps) <= 1 / eps + 1


def test_proposals_do_not_depend_on_the_threads():
    rng = np.random.default_rng(3)
    fine = fine_codes(rng.normal(size=(100_000, 3)), 2)
    hessians = rng.integers(0, 2**30, 100_000).astype(np.uint32)
    found = []
    for n_threads in (1, 3):
        proposal = _core.Proposal(fine, 0.004)
        proposal.update(hessians, n_threads)
        found.append(proposal.codes.to_numpy())
    np.testing.assert_array_equal(*found)


def test_proposals_of_hessians_that_vanish():
    fine = fine_codes(np.arange(1000.0)[:, None])
    proposal = _core.Proposal(fine, 0.01)
    for hessians in (np.zeros(1000), np.arange(1000) == 5, np.ones(1000)):
        proposal.update(hessians.astype(np.uint32), 1)
        assert proposal.codes.to_numpy().max() < proposal.codes.n_bins[0] <= 102
    with pytest.raises(ValueError, match="sketch_eps"):
        _core.Proposal(fine, 1.5)
