"""Splits and folds: disjoint and complete; random, stratified, by group and by time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, TimeSeriesSplit

import arboost
from arboost.training.splits import folds, split


def assert_splits(pair, n_rows):
    train, held_out = pair
    for rows in pair:
        assert rows.dtype == np.uint32
        assert len(rows) > 0
        assert (np.diff(rows.astype(int)) > 0).all()
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held_out])), np.arange(n_rows))


@given(st.integers(2, 300), st.floats(0.001, 0.999), st.integers(0, 2**32 - 1))
def test_random_split(n_rows, fraction, seed):
    pair = split(np.zeros(n_rows), fraction=fraction, seed=seed)
    assert_splits(pair, n_rows)
    assert abs(len(pair[1]) - fraction * n_rows) <= 1


def test_split_depends_on_the_seed_and_is_spread():
    first = split(np.zeros(10_000), fraction=0.1, seed=0)
    again = split(np.zeros(10_000), fraction=0.1, seed=0)
    other = split(np.zeros(10_000), fraction=0.1, seed=1)
    np.testing.assert_array_equal(first[1], again[1])
    assert 50 < len(np.intersect1d(first[1], other[1])) < 160  # expected: 100
    assert (np.histogram(first[1], bins=10, range=(0, 10_000))[0] > 60).all()


@pytest.mark.parametrize(
    ("n_rows", "fraction", "wanted"), [(100, 0.07, 7), (30, 0.1, 3), (31, 0.1, 4), (2, 0.9, 1)]
)
def test_sizes(n_rows, fraction, wanted):
    for how in ("random", "time"):
        assert len(split(np.zeros(n_rows), how=how, fraction=fraction, seed=0)[1]) == wanted


@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=8),
    st.floats(0.05, 0.95),
    st.integers(0, 1000),
)
def test_stratified_split(counts, fraction, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    pair = split(y, fraction=fraction, seed=seed, stratify=True)
    assert_splits(pair, len(y))
    for rows in pair:
        assert set(y[rows]) == set(y)
    held_out = np.bincount(y[pair[1]])
    # Rounded down or up, or changed by one to keep a row on each side.
    assert (np.abs(held_out - fraction * np.array(counts)) < 2).all()


def test_stratified_sizes():
    y = np.repeat([0, 1, 2], [700, 200, 100])
    _, held_out = split(y, fraction=0.1, seed=3, stratify=True)
    assert np.bincount(y[held_out]).tolist() == [70, 20, 10]


@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=12),
    st.floats(0.05, 0.95),
    st.integers(0, 1000),
)
def test_group_split(sizes, fraction, seed):
    names = np.array([f"g{i}" for i in range(len(sizes))])
    groups = np.random.default_rng(seed).permutation(np.repeat(names, sizes))
    pair = split(np.zeros(len(groups)), how="group", fraction=fraction, seed=seed, groups=groups)
    assert_splits(pair, len(groups))
    assert not set(groups[pair[0]]) & set(groups[pair[1]])
    assert abs(len(pair[1]) - fraction * len(groups)) <= max(sizes) + 1


def test_time_split():
    train, held_out = split(np.zeros(20), how="time", fraction=0.25, seed=5)
    assert train.tolist() == list(range(15))
    assert held_out.tolist() == list(range(15, 20))


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (np.zeros(1), {}, r"1 row\(s\), but early stopping .* at least 2\. Pass"),
        (np.array([0, 0, 1]), {"stratify": True}, "classes of one row.*: 1. Drop or merge"),
        (np.zeros(3), {"how": "group"}, "needs groups, but there are none"),
        (np.zeros(3), {"groups": [1, 2, 3]}, "groups are given, but validation_split='random'"),
        (np.zeros(3), {"how": "group", "groups": [1, 2]}, r"shape \(2,\), .* 3 rows"),
        (np.zeros(3), {"how": "group", "groups": ["a"] * 3}, "all rows are of one group, .*'a'"),
        (
            np.zeros(3),
            {"how": "group", "groups": [1.0, np.nan, 2.0]},
            "1 missing values .* row 1",
        ),
        (np.zeros(3), {"how": "group", "groups": ["a", "b", None]}, "first in row 2"),
    ],
)
def test_impossible_splits(y, options, message):
    with pytest.raises(ValueError, match=message):
        split(y, fraction=0.3, seed=0, **options)


def test_groups_of_several_types():
    with pytest.raises(TypeError, match="groups are of several types"):
        split(np.zeros(2), how="group", fraction=0.5, seed=0, groups=np.array(["a", 1], object))


def assert_folds(actual, n_rows):
    for pair in actual:
        assert_splits(pair, n_rows)
    held_out = np.concatenate([pair[1] for pair in actual])
    np.testing.assert_array_equal(np.sort(held_out), np.arange(n_rows))


@given(st.integers(2, 200), st.integers(2, 10), st.integers(0, 100))
def test_numbered_folds(n_rows, n_folds, seed):
    n_folds = min(n_folds, n_rows)
    actual = folds(np.zeros(n_rows), n_folds, seed=seed)
    assert len(actual) == n_folds
    assert_folds(actual, n_rows)
    sizes = [len(pair[1]) for pair in actual]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(2, 40), min_size=2, max_size=6), st.integers(2, 6))
def test_stratified_folds(counts, n_folds):
    y = np.repeat(np.arange(len(counts)), counts)
    n_folds = min(n_folds, len(y))
    actual = folds(y, n_folds, stratify=True)
    assert_folds(actual, len(y))
    for train, held_out in actual:
        assert set(y[train]) == set(y)
        shares = np.bincount(y[held_out], minlength=len(counts))
        assert (np.abs(shares - np.array(counts) / n_folds) < 1).all()


def test_folds_and_splits_use_different_random_numbers():
    held_out = split(np.zeros(1000), fraction=0.2, seed=0)[1]
    fold = folds(np.zeros(1000), 5, seed=0)[0][1]
    assert len(np.intersect1d(held_out, fold)) < 100


def test_group_folds(rng):
    groups = rng.integers(0, 40, 1000)
    actual = folds(np.zeros(1000), 4, groups=groups)
    assert_folds(actual, 1000)
    for train, held_out in actual:
        assert not set(groups[train]) & set(groups[held_out])
        assert 200 < len(held_out) < 300


@pytest.mark.parametrize(
    "splitter", [KFold(3), KFold(3, shuffle=True, random_state=0), TimeSeriesSplit(4)], ids=repr
)
def test_splitters(splitter):
    actual = folds(np.zeros(50), splitter)
    for (train, held_out), expected in zip(actual, splitter.split(np.zeros((50, 1))), strict=True):
        np.testing.assert_array_equal(train, np.sort(expected[0]))
        np.testing.assert_array_equal(held_out, np.sort(expected[1]))


@pytest.mark.parametrize("splitter", [GroupKFold(3), LeaveOneGroupOut()], ids=repr)
def test_splitters_of_groups(splitter, rng):
    groups = rng.integers(0, 5, 50)
    for train, held_out in folds(np.zeros(50), splitter, groups=groups):
        assert not set(groups[train]) & set(groups[held_out])


def test_listed_folds():
    mask = np.array([True, False, True, False, False])
    pairs = [([4, 0, 1], [3]), (mask, ~mask)]
    for given_folds in (pairs, iter(pairs)):
        actual = folds(np.zeros(5), given_folds)
        assert [[side.tolist() for side in pair] for pair in actual] == [
            [[0, 1, 4], [3]],
            [[0, 2], [1, 3, 4]],
        ]


@pytest.mark.parametrize(
    ("how", "options", "message"),
    [
        (1, {}, "folds=1 is not allowed: with 6 rows it must be from 2 to 6"),
        (7, {}, "folds=7 is not allowed"),
        (3, {"groups": [1, 1, 1, 2, 2, 2]}, "groups stay whole, and there are 2"),
        (2, {"stratify": True}, "classes of one row"),
        ([], {}, "folds holds no fold"),
        ([([0, 6], [1])], {}, r"folds\[0\]\[0\] holds the row 6, but rows go from 0 to 5"),
        ([([0], [-1])], {}, r"folds\[0\]\[1\] holds the row -1"),
        ([([0], [1]), ([0, 1], [1, 2])], {}, r"folds\[1\] has rows on both sides: 1"),
        ([([0, 0], [1])], {}, r"folds\[0\]\[0\] holds a row twice"),
        ([(np.zeros(6, bool), [1])], {}, r"folds\[0\]\[0\] is empty"),
        ([([0], [1])], {"groups": [1, 1, 1, 2, 2, 2]}, "folds lists its rows already"),
    ],
)
def test_impossible_folds(how, options, message):
    with pytest.raises(ValueError, match=message):
        folds(np.array([0, 0, 0, 0, 0, 1]), how, **options)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (True, "folds=True .* must be a number"),
        ("5", "folds='5'"),
        (2.5, r"folds=2.5"),
        (None, "folds=None"),
        ([3], r"folds\[0\] is int, but it must be a pair"),
        ([([0.0], [1])], r"folds\[0\]\[0\] is an array of float64"),
        ([([True, False], [1])], r"folds\[0\]\[0\] is an array of bool and shape \(2,\)"),
    ],
)
def test_invalid_types_of_folds(how, message):
    with pytest.raises(TypeError, match=message):
        folds(np.zeros(6), how)


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_search_of_few_rows(n_rows):
    """Fewer rows than folds are fewer folds."""
    X = np.arange(float(n_rows))[:, np.newaxis]
    model = arboost.GradientBoostingRegressor(n_iter_no_change=2).fit(X, X[:, 0])
    assert np.isfinite(model.predict(X)).all()


def test_search_of_one_row():
    model = arboost.GradientBoostingRegressor(n_iter_no_change=2)
    with pytest.raises(ValueError, match=r"1 row\(s\), but early stopping .*n_iter_no_change=None"):
        model.fit([[1.0]], [1.0])
    with pytest.raises(ValueError, match=r"folds=5 is not allowed: the data have 1 row\(s\)"):
        folds(np.zeros(1), 5)
    with pytest.raises(ValueError, match=r"from 2 to 3\. Use folds=3"):
        folds(np.zeros(3), 5)
