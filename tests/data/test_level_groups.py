"""Groups of levels: a category of many levels as at most 255 groups in the order of their means."""

from __future__ import annotations

import numpy as np
import pytest

from arboost.data.levels import NO_GROUP, Levels
from arboost.data.table import ingest
from arboost.data.target_encoding import target_encode

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
