"""Exclusive feature bundling and shared columns: bundles are found, and trees are the same."""

from __future__ import annotations

import numpy as np
import pytest

import arboost
from arboost import _core
from arboost.data.bins import storage_plan
from support.stored import (
    assert_same,
    dense,
    encode,
    every_storage,
    mixed_table,
    one_hot,
    sparse,
    target,
    trees_of,
)

FLAG = np.array([0.5])


def flags(matrix, **more):
    return encode(dense(matrix), [FLAG] * matrix.shape[1], **more)


def test_one_hot_groups_share_a_byte(rng):
    n = 30_000
    matrix = np.hstack([one_hot(rng, n, 40), one_hot(rng, n, 4)])
    codes = flags(matrix)
    # 41 codes times 5 fit into one byte: two exclusive digits.
    assert codes.shared_columns == [[list(range(40)), list(range(40, 44))]]
    assert codes.n_stores == 1
    assert codes.first_slot.tolist() == [0, 41 * 5]
    np.testing.assert_array_equal(codes.to_numpy(), matrix)


def test_columns_of_few_codes_are_digits_of_a_byte(rng):
    n = 20_000
    n_codes = [3, 7, 2, 5, 12, 2, 200]
    matrix = np.stack([rng.integers(0, k, n) for k in n_codes], axis=1).astype(float)
    codes = encode(dense(matrix), [np.arange(k - 1) + 0.5 for k in n_codes])
    assert codes.n_stores < len(n_codes)
    for column in codes.shared_columns:
        assert all(len(digit) == 1 for digit in column)
        assert np.prod([n_codes[digit[0]] for digit in column]) <= 256
    np.testing.assert_array_equal(codes.to_numpy(), matrix)


def test_small_tables_keep_their_columns(rng):
    assert flags(one_hot(rng, 500, 20)).shared_columns == []
    assert flags(one_hot(rng, 600, 20)).shared_columns == [[list(range(20))]]
    # Shared columns pay off only above a number of rows.
    many = rng.integers(0, 2, (1000, 5)).astype(float)
    assert flags(many).shared_columns == []


def test_a_bundle_that_the_sample_misjudged_is_split_up(rng):
    """Two columns conflict in one row of 200,000, outside of the sample."""
    n = 200_000
    matrix = np.zeros((n, 3))
    matrix[: n // 10, 0] = 1
    matrix[n // 5 : n // 4, 1] = 1
    matrix[n // 2 : n // 2 + n // 20, 2] = 1
    for row in range(100):
        meet = matrix.copy()
        meet[row, 1] = 1
        columns, edges = dense(meet), [FLAG] * 3
        plan = storage_plan(columns, None, edges)
        if plan.digits == [[0, 1, 2]]:
            break
    else:
        pytest.fail("no row is outside the sample")
    codes = _core.encode(columns, None, edges, 1, [], plan)
    assert sorted(map(sorted, codes.shared_columns[0])) == [[0, 2], [1]]
    np.testing.assert_array_equal(codes.to_numpy(), meet)
    # One row in 200,000 is fewer than a share of 0.00001 allows.
    wrong = encode(columns, edges, rate=0.00001)
    assert wrong.shared_columns == [[[0, 1, 2]]]
    expected = meet.copy()
    expected[row, 1] = 0  # the first feature keeps its code
    np.testing.assert_array_equal(wrong.to_numpy(), expected)


def test_a_missing_value_outside_the_sample_finds_room(rng):
    n = 200_000
    matrix = rng.integers(0, 2, (n, 8)).astype(float)
    codes = flags(matrix)
    assert codes.n_stores == 1
    found = 0
    for row in range(20):
        matrix[row, 5] = np.nan
        again = flags(matrix)
        assert again.has_missing.tolist() == [0, 0, 0, 0, 0, 1, 0, 0]
        np.testing.assert_array_equal(again.to_numpy(), np.where(np.isnan(matrix), 2, matrix))
        found += again.n_stores == 2
        matrix[row, 5] = 0
    assert found == 20


def test_conflicts_are_at_most_as_many_as_allowed(rng):
    n, rate = 20_000, 0.01
    matrix = (rng.random((n, 40)) < 0.004).astype(float)
    edges = [FLAG] * 40
    exact = encode(dense(matrix), edges)
    rough = encode(dense(matrix), edges, rate=rate)
    assert rough.n_stores < exact.n_stores
    np.testing.assert_array_equal(exact.to_numpy(), matrix)
    kept = rough.to_numpy().astype(float)
    assert (kept <= matrix).all()
    wrong = kept != matrix
    assert wrong.any()
    for column in rough.shared_columns:
        for digit in column:
            assert wrong[:, digit].any(axis=1).sum() <= rate * n
            # Of features that conflict in a row, the first one is kept.
            first = np.cumsum(matrix[:, digit], axis=1) <= 1
            np.testing.assert_array_equal(kept[:, digit], matrix[:, digit] * first)
    # Sparse columns are bundled to the same codes.
    thin = encode(sparse(matrix), edges, rate=rate)
    for column in thin.shared_columns:
        for digit in column:
            first = np.cumsum(matrix[:, digit], axis=1) <= 1
            np.testing.assert_array_equal(thin.to_numpy()[:, digit], matrix[:, digit] * first)


def test_a_rough_fit_is_nearly_as_good(rng):
    matrix = (rng.random((20_000, 40)) < 0.02).astype(float)
    y = matrix @ rng.normal(size=40) + rng.normal(size=len(matrix)) * 0.1
    errors = []
    for rate in (0.0, 0.02):
        model = arboost.GradientBoostingRegressor(
            n_estimators=40, max_conflict_rate=rate, max_depth=3
        )
        errors.append(np.mean((model.fit(matrix, y).predict(matrix) - y) ** 2))
    assert errors[1] < errors[0] + 0.1 * y.var()


SETTINGS = {
    "plain": {},
    "deep": {"max_depth": 20, "best_first": True, "max_leaves": 150},
    "counted": {"min_samples_leaf": 12},
    "columns": {"colsample_bytree": 0.4, "colsample_bynode": 0.6},
    "level": {"colsample_bylevel": 0.3},
    "penalties": {"reg_alpha": 0.5, "max_delta_step": 3.0, "gamma": 0.1},
    "no memory": {"histogram_bytes": 1},
    "interactions": {"interactions": [list(range(20)), list(range(15, 50)), [0, 57]]},
    "monotone": {"monotone": [(-1) ** f if f % 3 == 0 else 0 for f in range(58)]},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("n", [700, 20_000])
def test_trees_do_not_depend_on_storage(rng, name, n):
    matrix = mixed_table(rng, n)
    edges = _core.quantiles(dense(matrix), None, None, 255, 1)
    codes = every_storage(matrix, edges)
    assert codes["shared"].n_stores < codes["plain"].n_stores
    assert codes["sparse"].sparse_features
    digits = [len(column) for column in codes["shared"].shared_columns]
    assert max(digits) > 1 or n < 1000
    g, h = target(rng, matrix, 1)
    other = mixed_table(rng, 400)
    validation = [_core.encode(table, None, edges, 1) for table in (dense(other), sparse(other))]
    expected = trees_of(codes["plain"], g, h, validation=validation, **SETTINGS[name])
    np.testing.assert_array_equal(*expected[2])
    assert len(expected[0]["left"]) > 10
    for storage, n_threads in [
        ("shared", 1),
        ("shared", 4),
        ("sparse", 2),
        ("both", 4),
        ("zeros", 1),
    ]:
        found = trees_of(
            codes[storage], g, h, validation=validation, n_threads=n_threads, **SETTINGS[name]
        )
        assert_same(found, expected)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("max_bins", [9, 300])
def test_rows_of_folds_and_outputs(rng, outputs, max_bins):
    matrix = mixed_table(rng, 9000)
    table_rows = np.flatnonzero(rng.random(9000) < 0.95).astype(np.uint32)
    weights = rng.uniform(0.5, 2.0, len(table_rows))
    edges = _core.quantiles(dense(matrix), table_rows, weights, max_bins, 1)
    codes = every_storage(matrix, edges, rows=table_rows)
    fold = np.flatnonzero(rng.random(len(table_rows)) < 0.7).astype(np.uint32)
    g, h = target(rng, matrix[table_rows][fold], outputs)
    expected = trees_of(codes["plain"], g, h, rows=fold, min_samples_leaf=5)
    for found in codes.values():
        np.testing.assert_array_equal(found.to_numpy(), codes["plain"].to_numpy())
        assert_same(trees_of(found, g, h, rows=fold, n_threads=2, min_samples_leaf=5), expected)


def test_rows_that_are_taken_have_the_same_codes(rng):
    matrix = mixed_table(rng, 9000)
    edges = _core.quantiles(dense(matrix), None, None, 255, 1)
    some = rng.permutation(9000)[:3000].astype(np.uint32)
    for codes in every_storage(matrix, edges).values():
        taken = codes.take(some, 2)
        np.testing.assert_array_equal(taken.to_numpy(), codes.to_numpy()[some])
        again = taken.take(np.arange(3000, dtype=np.uint32)[::-1].copy(), 1)
        np.testing.assert_array_equal(again.to_numpy(), codes.to_numpy()[some[::-1]])


def test_categories_share_bytes(rng):
    n, levels = 9000, [3, 6, 40]
    matrix = np.stack([rng.integers(0, k, n) for k in levels], axis=1).astype(float)
    matrix[rng.random(matrix.shape) < 0.05] = np.nan
    matrix = np.hstack([matrix, one_hot(rng, n, 9)])
    edges = [np.arange(0.5, k - 1) for k in levels] + [FLAG] * 9
    categorical = [True] * 3 + [False] * 9
    codes = every_storage(matrix, edges, categorical=categorical)
    assert codes["shared"].n_stores < 6
    known = np.nan_to_num(matrix, nan=7.0)
    g = np.sin(known[:, :3] * 1.7).sum(axis=1, keepdims=True) + rng.normal(size=(n, 1))
    h = np.ones_like(g)
    expected = trees_of(codes["plain"], g, h)
    assert len(expected[0]["sets"]) > 0
    for storage in ("shared", "sparse", "both", "zeros"):
        assert_same(trees_of(codes[storage], g, h), expected)


FIT = """
import hashlib, sys
import numpy as np
import arboost
from support.stored import mixed_table
rng = np.random.default_rng(3)
X = mixed_table(rng, 9000)
y = np.nan_to_num(X) @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X))
options = {"n_estimators": 8, "bundling": sys.argv[1] == "on", "n_jobs": int(sys.argv[2])}
model = arboost.GradientBoostingRegressor(subsample=0.6, n_iter_no_change=5, **options).fit(X, y)
model.save(sys.argv[3])
print(hashlib.sha256(open(sys.argv[3], "rb").read()).hexdigest())
"""


def test_model_files_are_the_same_bytes(tmp_path, instruction_sets):
    """With and without bundling, for any threads and instruction set."""
    found = set()
    for bundling, threads, isa in [
        ("on", 1, None),
        ("off", 2, None),
        ("on", 4, "avx2"),
        ("on", 2, "baseline"),
    ]:
        found.add(instruction_sets.run(isa, FIT, bundling, threads, tmp_path / "model"))
    assert len(found) == 1


def test_parameters_are_checked(rng):
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    with pytest.raises(TypeError, match="bundling"):
        arboost.GradientBoostingRegressor(bundling="yes").fit(X, y)
    with pytest.raises(ValueError, match="max_conflict_rate"):
        arboost.Dataset(X, max_conflict_rate=1.0)
    data = arboost.Dataset(X, y, max_conflict_rate=0.1)
    with pytest.raises(ValueError, match=r"max_conflict_rate=0\.0 is not allowed"):
        arboost.GradientBoostingRegressor().fit(data)
