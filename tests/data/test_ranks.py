"""Ranks and proposals: guarantees about weights, for any data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arboost import _core
from support.ranked import columns_of, fine_codes

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
