"""Single kernels on hand-made input: histograms, partitions, the split search."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arboost import _core
from support.core_trees import encode


def pack(g, h):
    """The core's packed sum: gradient in the high half, hessian in the low one."""
    return np.asarray(g, np.int64) * 2**32 + np.asarray(h, np.int64)


def narrow_elements(rows, g, h):
    pairs = (np.asarray(g, np.int64) * 65536 + h).astype(np.int32).astype(np.uint32)
    return (pairs.astype(np.uint64) << np.uint64(32)) | rows.astype(np.uint64)


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 300))
    n_bins = draw(st.lists(st.sampled_from([1, 2, 7, 255, 400]), min_size=1, max_size=4))
    codes = np.stack([rng.integers(0, bins, n) for bins in n_bins], axis=1)
    codes[rng.random(codes.shape) < 0.2] = -1
    return rng, codes, n_bins


def histogram(core_codes, elements, wide):
    kernel = _core.HistogramKernel(core_codes)
    out = np.zeros(kernel.n_slots, np.int64)
    kernel.add(elements, wide, out)
    return out, kernel.first_slots


@given(tables())
def test_histograms_are_sums_by_code(table):
    rng, codes, n_bins = table
    rows = rng.permutation(len(codes))[: rng.integers(0, len(codes) + 1)].astype(np.uint64)
    g, h = rng.integers(-9, 10, len(codes)), rng.integers(0, 9, len(codes))
    core_codes = encode(codes, n_bins)
    wide, first = histogram(core_codes, rows, pack(g, h))
    picked = rows.astype(int)
    narrow, _ = histogram(core_codes, narrow_elements(picked, g[picked], h[picked]), None)
    expected = np.zeros(len(wide), np.int64)
    for f, bins in enumerate(n_bins):
        code = np.where(codes[picked, f] < 0, bins, codes[picked, f])
        np.add.at(expected, first[f] + code, pack(g, h)[picked])
    np.testing.assert_array_equal(wide, expected)
    np.testing.assert_array_equal(narrow, expected)


@given(tables())
def test_partitions_are_permutations_and_children_add_up_to_their_parent(table):
    rng, codes, n_bins = table
    feature = int(rng.integers(len(n_bins)))
    cut, missing_left = int(rng.integers(n_bins[feature])), bool(rng.integers(2))
    core_codes = encode(codes, n_bins)
    rows = rng.permutation(len(codes)).astype(np.uint64)
    out = np.zeros_like(rows)
    in_rows = bool(rng.integers(2))
    n_left = _core.partition_kernel(core_codes, feature, cut, missing_left, rows, out, in_rows)
    left, right = out[:n_left], out[n_left:]
    assert sorted(out) == list(range(len(codes)))
    code = codes[:, feature]
    goes_left = np.where(code < 0, missing_left, code <= cut)
    assert goes_left[left.astype(int)].all()
    assert not goes_left[right.astype(int)].any()
    values = pack(rng.integers(-9, 10, len(codes)), rng.integers(0, 9, len(codes)))
    parent, one, other = (histogram(core_codes, part, values)[0] for part in (rows, left, right))
    np.testing.assert_array_equal(parent, one + other)


def find_split(hist, *, has_missing=False, lam=0.0, min_h=1, min_count=1):
    """(score, bin, missing_left) of the best split, from a feature's sums by code and channel."""
    hist = hist.reshape(len(hist), -1)
    return _core.find_split_kernel(hist, has_missing, hist.sum(axis=0), lam, min_h, min_count)


def test_the_best_split_of_a_hand_made_histogram():
    """Gradients -4, -4, +2, +6 in four bins of hessian 1 each: cut in the middle."""
    hist = pack([-4, -4, 2, 6], [1, 1, 1, 1])
    score, cut, _ = find_split(hist)
    assert (score, cut) == (64 / 2 + 64 / 2, 1)
    # Each side needs a hessian of 3, so three bins, and no cut leaves three on both.
    assert find_split(hist, min_h=3)[0] == -1
    # lambda shrinks both sides: 64 / (2 + 2) twice.
    assert find_split(hist, lam=2.0)[:2] == (32, 1)


@pytest.mark.parametrize(("missing", "left"), [(-5, True), (5, False)])
def test_missing_values_go_where_they_fit(missing, left):
    hist = pack([-4, 4, missing], [1, 1, 1])
    assert find_split(hist, has_missing=True)[1:] == (0, left)


def test_missing_values_can_be_split_from_all_others():
    hist = pack([1, 1, -8], [1, 1, 1])
    assert find_split(hist, has_missing=True) == (2 + 64, 1, False)


def test_equal_scores_take_the_lowest_bin():
    hist = pack([-2, 0, 0, 2], [1, 0, 0, 1])  # the middle bins are empty
    assert find_split(hist)[1] == 0


def first_best_split(g, h, counts, *, has_missing, lam, min_h, min_count):
    """Return the best split of a search in doubles, by sums (n_codes, outputs) of both sides."""
    n_bins = len(g) - has_missing
    best = (-1.0, 0, False)
    for missing_left in (False, True)[: 1 + has_missing]:
        extra = slice(n_bins, None) if missing_left else slice(0, 0)
        for cut in range(n_bins - (missing_left or not has_missing)):
            sides = [x[: cut + 1].sum(axis=0) + x[extra].sum(axis=0) for x in (g, h, counts)]
            others = [x.sum(axis=0) - side for x, side in zip((g, h, counts), sides, strict=True)]
            if min(sides[1].sum(), others[1].sum()) < min_h * g.shape[1]:
                continue
            if min(sides[2], others[2]) < min_count:
                continue
            score = 0.0
            with np.errstate(all="ignore"):
                for k in range(g.shape[1]):
                    left, right = float(sides[1][k]) + lam, float(others[1][k]) + lam
                    one, other = float(sides[0][k]), float(others[0][k])
                    score += np.float64(one * one * right + other * other * left) / (left * right)
            if score > best[0]:
                best = (score, cut, missing_left)
    return best


@st.composite
def sums_by_code(draw):
    """Return gradients, hessians (n_codes, outputs) and counts: tiny sums, or sums near 2^31."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, outputs = draw(st.integers(2, 70)), draw(st.sampled_from([1, 1, 2, 5]))
    size = draw(st.sampled_from([3, 1000, (2**31 - 1) // n]))
    g, h = rng.integers(-size, size + 1, (n, outputs)), rng.integers(0, size + 1, (n, outputs))
    kind = draw(st.sampled_from(["mixed", "one sign", "alternating", "equal"]))
    if kind == "one sign":
        g = np.abs(g)
    if kind == "alternating":  # prefix sums repeat: many near-ties
        g = np.repeat(np.where(np.arange(n) % 2 == 0, size, -size)[:, None], outputs, axis=1)
    if kind == "equal":
        g, h = np.full_like(g, size), np.full_like(h, size)
    h[rng.random(n) < draw(st.sampled_from([0, 0.5]))] = 0
    return g, h, rng.integers(1, 9, n)


@given(
    sums_by_code(),
    st.sampled_from([0.0, 1e-15, 2e-15, 1.0, 1e6, 9.9e11, 1e12, 1e18]),
    st.sampled_from([1, 5]),
    st.sampled_from([1, 6]),
    st.booleans(),
)
def test_the_search_in_floats_finds_the_best_of_doubles(sums, lam, min_h, min_count, has_missing):
    """Many near-ties: the winner must be that of doubles, the first among equals."""
    g, h, counts = sums
    has_missing = has_missing and len(g) > 2
    hist = pack(g, h)
    if min_count > 1:
        hist = np.column_stack([hist, counts])
    limits = {"has_missing": has_missing, "lam": lam, "min_h": min_h, "min_count": min_count}
    assert find_split(hist, **limits) == first_best_split(g, h, counts, **limits)


def kernel_log(x):
    """Return log x by the arithmetic of `log_of` in cpp/loss/functions.h."""
    m, k = math.frexp(x)
    if m < math.sqrt(0.5):
        m, k = 2 * m, k - 1
    s = (m - 1.0) / (m + 1.0)
    series = 0.0
    for odd in range(21, 2, -2):
        series = series * (s * s) + 1.0 / odd
    log_m = 2.0 * s + 2.0 * s * (s * s * series)
    return k * 6.93147180369123816490e-01 + (k * 1.90821492927058770002e-10 + log_m)


def log_score(g, h, h_per_g, *, two_classes):
    """Return the score of a side by entropy or deviance, from the sums of one output."""
    weight = h * h_per_g
    parts = [(weight - g) / 2, (weight + g) / 2] if two_classes else [-g]
    return sum(part * kernel_log(part / weight) if part > 0 else 0.0 for part in parts)


def first_best_logarithm(g, h, *, has_missing, min_h, criterion, h_per_g):
    """Return the node's score, and the best split of a search in doubles."""
    n_bins, outputs = len(g) - has_missing, g.shape[1]
    of = {"h_per_g": h_per_g, "two_classes": criterion == "entropy" and outputs == 1}

    def side(sums):
        return [log_score(float(a), float(b), **of) for a, b in zip(*sums, strict=True)]

    node = sum(side((g.sum(axis=0), h.sum(axis=0))), 0.0)
    best = (node, 0, False)
    for missing_left in (False, True)[: 1 + has_missing]:
        extra = slice(n_bins, None) if missing_left else slice(0, 0)
        for cut in range(n_bins - (missing_left or not has_missing)):
            left = [x[: cut + 1].sum(axis=0) + x[extra].sum(axis=0) for x in (g, h)]
            right = [x.sum(axis=0) - one for x, one in zip((g, h), left, strict=True)]
            if min(left[1].sum(), right[1].sum()) < min_h * outputs:
                continue
            if criterion == "poisson" and max(left[0].max(), right[0].max()) >= 0:
                continue
            score = sum((a + b for a, b in zip(side(left), side(right), strict=True)), 0.0)
            if score > best[0]:
                best = (score, cut, missing_left)
    return node, best


@st.composite
def log_sums_by_code(draw):
    """Return gradients and hessians (n_codes, outputs) of classes or counts, and the criterion."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, criterion = draw(st.integers(2, 70)), draw(st.sampled_from(["entropy", "poisson"]))
    outputs = draw(st.sampled_from([1, 1, 2, 5]))
    size = draw(st.sampled_from([1, 3, 1000, 2**29 // n, (2**31 - 1) // n]))
    h = rng.integers(0, size + 1, (n, 1))
    if criterion == "poisson":
        counts = rng.integers(0, size + 1, (n, outputs)) * (h > 0)
        return -counts, h.repeat(outputs, axis=1), criterion
    share = rng.dirichlet(np.full(max(outputs, 2), draw(st.sampled_from([0.02, 0.3, 50.0]))), n)
    if draw(st.booleans()):  # prefix sums of nearly equal scores
        share = np.repeat(share[:1], n, axis=0)
    if outputs == 1:
        g = np.rint((2 * share[:, :1] - 1) * h).astype(np.int64)
        # Gradients and hessians are rounded one by one, so that the sum of a class can be negative.
        return g + rng.integers(-1, 2, (n, 1)) * (h > 0) * draw(st.booleans()), h, criterion
    return -np.floor(share * h).astype(np.int64), h.repeat(outputs, axis=1), criterion


@given(log_sums_by_code(), st.sampled_from([1, 5]), st.sampled_from([0, 1, -3]), st.booleans())
def test_float_logarithms_find_the_best_of_doubles(sums, min_h, power, has_missing):
    """Shares near 0 and 1, tiny and huge sums: the winner is that of double logarithms."""
    g, h, criterion = sums
    if power == 1 and np.abs(g).sum() < 2**30:  # units of gradients that are half as large
        g = 2 * g
    elif criterion == "entropy":
        power = 0
    h_per_g = 2.0**power
    has_missing = has_missing and len(g) > 2
    limits = {"has_missing": has_missing, "min_h": min_h}
    of = {"criterion": criterion, "h_per_g": h_per_g}
    node, best = first_best_logarithm(g, h, **limits, **of)
    hist = pack(g, h)
    actual = _core.find_split_kernel(
        hist, totals=hist.sum(axis=0), reg_lambda=0.0, floor=node, **limits, **of
    )
    assert actual == best


def test_elements_outside_the_table_are_refused():
    codes = encode(np.zeros((3, 1), int), [2])
    kernel = _core.HistogramKernel(codes)
    with pytest.raises(ValueError, match="does not have"):
        kernel.add(np.array([3], np.uint64), None, np.zeros(kernel.n_slots, np.int64))


def test_rows_that_walk_together_reach_the_leaves_of_single_rows(instruction_sets):
    """Full and uneven trees of up to 256 leaves, sets, missing codes on both sides, one leaf."""
    code = """
        import hashlib
        import numpy as np
        from support.level_sets import core_params, grow, random_problem, table_of
        from support.reference import Settings
        rng = np.random.default_rng(0)
        n, n_levels = 12 * 512 + 100, [0, 200, 0, 7]
        matrix, g, h = random_problem(rng, n, n_levels, missing=0.2)
        codes = table_of(matrix, n_levels)
        assert codes.width == 1
        rows = np.arange(n, dtype=np.uint32)
        some = {
            "all": rows,
            "half": rows[rng.random(n) < 0.5],
            "ends": rows[(rows < 1500) | (rows > n - 1500)],  # a gap of more than a block
            "few": rows[rng.random(n) < 0.1],  # each row walks alone
        }
        for depth, leaves in ((0, np.inf), (3, np.inf), (6, np.inf), (8, np.inf), (20, 256)):
            rules = Settings(
                max_depth=depth, max_leaves=leaves, best_first=leaves < n, min_child_weight=0.1
            )
            grower, _ = grow(codes, g, h, core_params(rules))
            together, alone = np.zeros((2, n, 1))
            grower.add_tree(0, 1.0, codes, None, together, 0, 1)
            for part in np.array_split(rows, 20):  # too few to walk together
                grower.add_tree(0, 1.0, codes, part, alone[part[0] : part[-1] + 1], 0, 1)
            assert (together == alone).all(), depth
            for name, wanted in some.items():
                found = np.zeros((len(wanted), 1))
                grower.add_tree(0, 1.0, codes, wanted, found, 0, 1)
                assert (found == alone[wanted]).all(), (depth, name)
            trees = grower.trees()
            print((trees["left"] == 0).sum(), hashlib.sha256(together.tobytes()).hexdigest())
    """
    seen = {isa: instruction_sets.run(isa, code) for isa in ("baseline", "avx2", "avx512", None)}
    assert len(set(seen.values())) == 1
