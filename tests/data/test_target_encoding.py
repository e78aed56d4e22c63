"""Target encoding: ordered means for rows of rare levels, groups of levels, or one mean a level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arboost import _core
from arboost.data.levels import NO_GROUP, Levels
from arboost.data.table import ingest
from arboost.data.target_encoding import target_encode

SMOOTHING, LARGE, STEPS = 10, 200, 32  # of cpp/bin/statistics.cpp


def statistics(codes, n_levels, target, weight=None):
    weight = None if weight is None else np.asarray(weight, float)
    return _core.level_statistics(
        np.asarray(codes, np.int32), n_levels, np.asarray(target, float), weight
    )


def earlier_rows(n):
    """Return earlier[i, j]: whether row j precedes row i, found by targets that mark one row."""
    marked = [statistics(np.zeros(n), 1, np.eye(n)[j])[0] for j in range(n)]
    return 1 / n + 1e-12 < np.array(marked).T


def test_rows_are_in_an_order():
    for n in (2, 3, 17, 32):
        earlier = earlier_rows(n)
        places = earlier.sum(axis=1)
        assert sorted(places) == list(range(n))
        np.testing.assert_array_equal(earlier, places[:, np.newaxis] > places)
    assert (places != np.arange(32)).sum() > 20


EARLIER = {n: earlier_rows(n) for n in range(1, STEPS + 1)}


@given(st.integers(1, STEPS), st.integers(1, 6), st.booleans(), st.integers(0, 2**32))
def test_a_row_sees_the_rows_of_its_level_before_it(n, n_levels, is_weighted, seed):
    """With at most as many rows as steps, nothing is rounded."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, n_levels, n)
    target = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
    weight = rng.uniform(0.5, 2, n) if is_weighted else np.ones(n)
    of_rows, of_levels = statistics(codes, n_levels, target, weight if is_weighted else None)
    known = codes >= 0
    if not known.any():
        assert np.isnan(of_rows).all()
        assert np.isnan(of_levels).all()
        return
    mean = np.average(target[known], weights=weight[known])
    a = SMOOTHING * weight[known].mean()

    def smoothed(seen):
        return mean + (weight * (target - mean))[seen].sum() / (weight[seen].sum() + a)

    same = codes[:, np.newaxis] == codes
    expected = [smoothed(EARLIER[n][i] & same[i]) if known[i] else np.nan for i in range(n)]
    tolerance = 1e-12 * np.abs(target).max()
    np.testing.assert_allclose(of_rows, expected, rtol=1e-9, atol=tolerance)
    # Levels have the value of the nearest step.
    for level in range(n_levels):
        if (codes == level).any():
            nearest = np.abs(of_rows[known] - smoothed(codes == level)).min()
            assert abs(of_levels[level] - smoothed(codes == level)) <= nearest + 2 * tolerance
        else:
            assert np.isnan(of_levels[level])


def test_large_levels_have_one_number_and_small_ones_few():
    rng = np.random.default_rng(0)
    sizes = [LARGE, LARGE - 1, 3 * LARGE, *[5] * 400]
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    target = rng.normal(size=len(codes)) + codes / 100
    of_rows, of_levels = statistics(codes, len(sizes), target)
    mean = target.mean()
    for level in (0, 2):
        rows = target[codes == level]
        exact = mean + (rows - mean).sum() / (len(rows) + SMOOTHING)
        assert of_levels[level] == pytest.approx(exact, rel=1e-12)
        assert (of_rows[codes == level] == of_levels[level]).all()
    small = ~np.isin(codes, [0, 2])
    steps = np.unique(of_rows[small])
    assert 5 < len(steps) <= STEPS
    assert np.isin(of_levels[np.unique(codes[small])], steps).all()


def test_weights_count_rows():
    """A row of weight 3 equals three rows in frequent levels, where order does not matter."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, 2000)
    target, weight = rng.normal(size=2000), rng.integers(1, 4, 2000)
    times = weight.astype(int)
    _, repeated = statistics(np.repeat(codes, times), 3, np.repeat(target, times))
    # a counts rows of mean weight, so make the mean weights equal.
    _, weighted = statistics(codes, 3, target, weight)
    mean, a = np.average(target, weights=weight), SMOOTHING
    total = np.bincount(codes, weights=weight)
    np.testing.assert_allclose(
        (weighted - mean) * (total + a * weight.mean()), (repeated - mean) * (total + a)
    )
    rows, levels = statistics(codes, 3, target, weight)
    for scaled in (1024 * weight, weight / 8):
        np.testing.assert_array_equal(statistics(codes, 3, target, scaled)[0], rows)
        np.testing.assert_array_equal(statistics(codes, 3, target, scaled)[1], levels)


@pytest.mark.parametrize("per_level", [1, 4, 30])
def test_noise_does_not_give_its_own_target_away(per_level):
    """Correlation of a row's number with its target: none beyond chance, of either sign.

    A level's mean with the row would give more than 1 / per_level, and without it a negative one.
    """
    rng = np.random.default_rng(2)
    n = 60_000
    codes = rng.permutation(n) // per_level
    target = (rng.random(n) < 0.3).astype(float)
    of_rows, _ = statistics(codes, codes.max() + 1, target)
    if np.ptp(of_rows) > 0:
        assert abs(np.corrcoef(of_rows, target)[0, 1]) < 4 / np.sqrt(n)
    else:
        assert per_level == 1


def test_levels_that_matter_are_seen():
    rng = np.random.default_rng(3)
    effect = rng.normal(size=2000)
    codes = rng.integers(0, 2000, 40_000)
    target = effect[codes] + rng.normal(size=40_000)
    of_rows, of_levels = statistics(codes, 2000, target)
    assert np.corrcoef(of_levels, effect)[0, 1] > 0.95
    assert np.corrcoef(of_rows, target)[0, 1] > 0.5


def pair_matrix(codes, y, n_classes):
    """Classes of pairs of different rows of a level, less the mean of all rows.

    The quotient v M v / v v of standardised scores is the share of their variance that lies between
    levels.
    """
    table = np.zeros((codes.max() + 1, n_classes))
    np.add.at(table, (codes, y), 1)
    n = table.sum(axis=1, keepdims=True)
    table, n = table[n[:, 0] > 1], n[n[:, 0] > 1]
    pairs = table.T @ (table / (n - 1)) - np.diag((table / (n - 1)).sum(axis=0))
    root = np.sqrt(np.bincount(y, minlength=n_classes) / len(y))
    rest = np.eye(n_classes) - np.outer(root, root)
    return rest @ (pairs / len(y) / root[:, np.newaxis] / root) @ rest, root


@pytest.mark.parametrize("n_levels", [300, 8000])
@pytest.mark.parametrize("axes", [1, 4])
def test_scores_of_classes_tell_levels_apart(axes, n_levels):
    rng = np.random.default_rng(4)
    n, k = 40_000, 5
    codes = rng.integers(0, n_levels, n)
    taste = np.exp(rng.normal(size=(n_levels, axes)) @ rng.normal(size=(axes, k)))
    taste /= taste.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > taste[codes].cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    scores = _core.class_scores(codes.astype(np.int32), n_levels, y.astype(float), None, k)
    matrix, root = pair_matrix(codes, y, k)
    between = (scores * root) @ matrix @ (scores * root)
    assert between > 0.99 * np.linalg.eigvalsh(matrix)[-1]
    assert between > 0.05
    assert scores[y].mean() == pytest.approx(0, abs=1e-9)
    assert scores[y].std() == pytest.approx(1)


def test_scores_of_two_classes_are_the_classes():
    rng = np.random.default_rng(5)
    codes, y = rng.integers(0, 50, 500), rng.integers(0, 2, 500)
    scores = _core.class_scores(codes.astype(np.int32), 50, y.astype(float), None, 2)
    p = y.mean()
    np.testing.assert_allclose(np.abs(np.diff(scores)), 1 / np.sqrt(p * (1 - p)))


def test_hostile_arguments():
    with pytest.raises(ValueError, match="different lengths"):
        statistics([0, 1], 2, [1.0])
    for code in (-2, 2):
        with pytest.raises(ValueError, match="no level"):
            statistics([0, code], 2, [1.0, 2.0])
    with pytest.raises(ValueError, match="no class"):
        _core.class_scores(np.zeros(2, np.int32), 1, np.array([0.0, 2.0]), None, 2)
    empty, levels = statistics([], 3, [])
    assert len(empty) == 0
    assert np.isnan(levels).all()


pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def table():
    """300 frequent levels of 30 to 60 rows, 400 rare levels of 5 rows, and missing values."""
    rng = np.random.default_rng(0)
    size = np.concatenate([rng.integers(30, 60, 300), np.full(400, 5)])
    code = rng.permutation(np.repeat(np.arange(700), size))
    y = rng.normal(size=700)[code] + 0.3 * rng.normal(size=len(code))
    frame = pandas.DataFrame({"key": [f"k{c:03d}" for c in code]})
    frame.loc[::50, "key"] = None
    return frame, y, code


def grouped(frame, y, **kwargs):
    return target_encode(ingest(frame), [(np.asarray(y, float), None)], encoding="groups", **kwargs)


def test_frequent_levels_are_groups_and_rare_ones_share_others(table):
    frame, y, _ = table
    levels = grouped(frame, y).schema.levels_of(0)
    assert 16 <= len(levels.shared_groups) <= 32  # rows without predecessors have one mean
    assert len(levels.group_means) == 223 + len(levels.shared_groups)
    assert (np.diff(levels.group_means) >= 0).all()
    is_shared = np.isin(levels.groups, levels.shared_groups)
    names = [levels.label(code) for code in np.flatnonzero(~is_shared)]
    counts = frame["key"].value_counts()
    assert len(names) == 223
    assert counts[names].min() >= counts.drop(names).max()
    assert len(set(levels.groups[~is_shared])) == 223
    levels.validate()


def test_rare_rows_do_not_see_their_own_target(table):
    """A change of one target moves the groups of later rows of its level, never its own."""
    frame, y, code = table
    known = grouped(frame, y).schema
    before = grouped(frame, y, known=known).columns.read(0)
    (other, *_) = np.flatnonzero((code == np.bincount(code).argmax()) & frame["key"].notna())
    for row in np.flatnonzero((code > 300) & frame["key"].notna())[:20]:
        changed = y.copy()
        changed[row] += 100.0
        changed[other] -= 100.0  # so that the mean of all rows stays
        after = grouped(frame, changed, known=known).columns.read(0)
        assert after[row] == before[row]
        differs = ~np.isclose(after, before, equal_nan=True)
        assert set(code[differs]) <= {code[row]}


def test_all_rows_of_a_frequent_level_have_its_group(table):
    frame, y, _ = table
    encoded = grouped(frame, y)
    levels, codes = encoded.schema.levels_of(0), encoded.columns.read(0)
    predicted = ingest(frame, encoded.schema).columns.read(0)
    alone = ~np.isin(codes, levels.shared_groups) & ~np.isnan(codes)
    assert alone.any()
    np.testing.assert_array_equal(codes[alone], predicted[alone])
    assert np.isnan(codes[::50]).all()


def test_levels_without_training_rows_are_missing(table):
    frame, y, code = table
    rows = np.flatnonzero(code != 5).astype(np.uint32)
    encoded = grouped(frame, y[rows], rows=rows)
    levels = encoded.schema.levels_of(0)
    assert levels.groups[5] == NO_GROUP
    assert np.isnan(encoded.columns.read(0)[code == 5]).all()
    assert np.isnan(ingest(frame[code == 5], encoded.schema).columns.read(0)).all()


def test_held_out_rows_are_encoded_from_training_rows_alone(table):
    """A held-out target has no influence on the encoding of held-out rows."""
    frame, y, code = table
    rng = np.random.default_rng(1)
    trained = np.flatnonzero(rng.random(len(y)) < 0.7).astype(np.uint32)
    held_out = np.setdiff1d(np.arange(len(y)), trained)
    encoded = grouped(frame, y)
    expected = encoded.held_out(trained).columns.read(0)
    wild = y.copy()
    wild[held_out] += 50 * rng.normal(size=len(held_out))
    known = encoded.schema
    other = grouped(frame, wild, known=known).held_out(trained).columns.read(0)
    np.testing.assert_array_equal(other, expected)
    lost = np.setdiff1d(code, code[trained])
    assert np.isnan(expected[np.isin(code, lost)]).all()


def test_fewer_frequent_levels_than_groups():
    rng = np.random.default_rng(2)
    code = np.repeat(np.arange(120), 40)
    frame = pandas.DataFrame({"key": [f"k{c}" for c in code]})
    levels = grouped(frame, rng.normal(size=len(code))).schema.levels_of(0)
    assert len(levels.group_means) == 120
    assert len(levels.shared_groups) == 0
    few = pandas.DataFrame({"key": [f"k{c}" for c in np.repeat(np.arange(900), 2)]})
    levels = grouped(few, rng.normal(size=1800)).schema.levels_of(0)
    assert 2 <= len(levels.group_means) == len(levels.shared_groups) <= 32


def test_weights_count_as_rows(table):
    frame, y, _ = table
    plain, doubled = grouped(frame, y), grouped(frame, y, weight=np.full(len(y), 2.0))
    assert plain.schema == doubled.schema
    light = np.where(frame["key"] == "k000", 1e-6, 1.0)
    levels = grouped(frame, y, weight=light).schema.levels_of(0)
    assert levels.groups[0] in levels.shared_groups


def test_several_targets_are_one(table):
    frame, y, _ = table
    one = grouped(frame, y).schema.levels_of(0)
    targets = [(y, None), (-3.0 * y, None), ((y > 0).astype(float), 2)]
    several = target_encode(ingest(frame), targets, encoding="groups").schema.levels_of(0)
    is_alone = ~np.isin(one.groups, one.shared_groups)
    means = [levels.means[is_alone] for levels in (one, several)]
    assert abs(np.corrcoef(*means)[0, 1]) > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": np.array([0, 9, 1], np.uint8)}, "groups that do not fit"),
        ({"groups": np.array([0], np.uint8)}, "groups that do not fit"),
        ({"statistic": np.zeros(3)}, "groups that do not fit"),
        ({"group_means": np.array([0.0, np.nan])}, "means that do not fit"),
        ({"group_means": None}, "without their parts"),
        ({"shared_groups": np.array([2], np.uint8)}, "shared groups that are none"),
        ({"shared_groups": np.array([1, 0], np.uint8)}, "shared groups that are none"),
    ],
)
def test_damaged_groups_are_refused(change, message):
    parts = {
        "groups": np.array([0, NO_GROUP, 1], np.uint8),
        "group_means": np.array([0.5, 1.5]),
        "shared_groups": np.array([1], np.uint8),
    }
    Levels("number", np.arange(3.0), **parts).validate()
    with pytest.raises(ValueError, match=message):
        Levels("number", np.arange(3.0), **(parts | change)).validate()
