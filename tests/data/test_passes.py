"""Edges, plan and codes of batches: the same as those of the whole table."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from arboost.backend import core
from arboost.data.bins import bin_table
from arboost.data.table import ingest


def columns(n_rows, seed=0):
    """Return columns of many kinds: continuous, few values, heavy values, missing, integers."""
    rng = np.random.default_rng(seed)
    few = rng.integers(0, 5, n_rows).astype(np.float64)
    few[rng.random(n_rows) < 1e-5] = 77.0  # a value that the sample hardly ever has
    heavy = np.where(rng.random(n_rows) < 0.7, 0.0, rng.normal(size=n_rows))
    holes = rng.normal(size=n_rows)
    holes[rng.random(n_rows) < 0.1] = np.nan
    return [
        rng.normal(size=n_rows),
        few,
        heavy,
        holes,
        rng.integers(-3, 300, n_rows).astype(np.int16),
        rng.normal(size=n_rows).astype(np.float32),
        rng.integers(0, 2, n_rows).astype(bool),
        np.full(n_rows, np.nan),
    ]


def table_of(parts, rows=slice(None)):
    table = core.Columns(len(parts[0][rows]))
    for part in parts:
        table.add(np.ascontiguousarray(part[rows]))
    return table


def sketch_of(parts, batch, max_bins, kept=None):
    sketch = core.TableSketch(len(parts), max_bins)
    for first in range(0, len(parts[0]), batch):
        rows = slice(first, first + batch)
        index = None if kept is None else np.flatnonzero(kept[rows]).astype(np.uint32)
        sketch.push(table_of(parts, rows), index, 2)
    return sketch


@pytest.mark.parametrize(
    ("n_rows", "batch"), [(700, 64), (200_000, 30_000), (260_000, 260_000), (450_000, 37_123)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_are_those_of_the_whole_table(n_rows, batch, weighted):
    parts = columns(n_rows)
    weights = np.random.default_rng(1).random(n_rows) if weighted else None
    expected = core.quantiles(table_of(parts), None, weights, 63, 2)
    found = sketch_of(parts, batch, 63).edges(weights, [False] * 8, 2)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_of_weight_0_have_no_part():
    parts = columns(300_000)
    kept = np.random.default_rng(2).random(300_000) < 0.8
    expected = core.quantiles(table_of(parts), np.flatnonzero(kept).astype(np.uint32), None, 255, 1)
    sketch = sketch_of(parts, 50_000, 255, kept)
    assert sketch.n_rows == kept.sum()
    for one, other in zip(sketch.edges(None, [False] * 8, 1), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_type_of_a_column_may_change():
    whole = np.arange(5000, dtype=np.float64) / 7
    whole[:1000] = np.arange(1000)
    sketch = core.TableSketch(1, 100)
    sketch.push(table_of([whole[:1000].astype(np.int8).astype(np.int16)]), None, 1)
    whole[:1000] = whole[:1000].astype(np.int8)
    sketch.push(table_of([whole[1000:]]), None, 1)
    expected = core.quantiles(table_of([whole]), None, None, 100, 1)
    np.testing.assert_array_equal(sketch.edges(None, [False], 1)[0], expected[0])


def test_codes_of_parts_are_those_of_the_whole_table():
    parts = columns(5000)
    binned = bin_table(
        ingest(np.stack(parts, axis=1).astype(float)),
        max_bins=63,
        rows=None,
        weights=None,
        n_threads=1,
    )
    sketch = sketch_of(parts, 1000, 63)
    edges = sketch.edges(None, [False] * 8, 1)
    plan = core.plan_sample(
        sketch.sample(), 5000, sketch.has_missing, edges, 1, [False] * len(parts), bundling=True
    )
    joined = core.CodesParts(5000)
    for first in range(0, 5000, 777):
        table = table_of(parts, slice(first, first + 777))
        codes, plan = core.encode_part(table, None, edges, 1, [False] * len(parts), plan)
        assert codes is not None
        joined.append(codes, 1)
    codes = joined.finish()
    np.testing.assert_array_equal(codes.to_numpy(), binned.codes.to_numpy())
    np.testing.assert_array_equal(codes.has_missing, binned.codes.has_missing)
    np.testing.assert_array_equal(codes.by_row, np.asarray(codes.by_column))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_rows_only_in_the_memory_of_spent_codes(n_threads, tmp_path):
    parts = columns(5000)
    sketch = sketch_of(parts, 1000, 63)
    edges = sketch.edges(None, [False] * 8, 1)
    plan = core.plan_sample(
        sketch.sample(), 5000, sketch.has_missing, edges, 1, [False] * 8, bundling=True
    )
    common = edges, n_threads, [False] * 8, plan
    with open(tmp_path / "codes", "w+b") as file:
        writer = core.CodesWriter(file.fileno(), 640)
        spent = None
        for first, last in ((0, 2000), (2000, 2500), (2500, 5000)):  # smaller, then larger
            table = table_of(parts, slice(first, last))
            codes, _ = core.encode_part(table, None, *common, rows_only=True, spent=spent)
            if spent is not None:
                assert spent.n_rows == 0
            writer.append(codes)
            spent = codes
        stored = writer.finish().take(None, 1)
    whole, _ = core.encode_part(table_of(parts), None, *common)
    np.testing.assert_array_equal(stored.to_numpy(), whole.to_numpy())
    np.testing.assert_array_equal(stored.by_row, whole.by_row)


def test_part_that_does_not_fit_changes_the_plan():
    n_rows = 4000
    kind = np.arange(n_rows) % 4
    flags = [np.where(kind == k, 1.0, 0.0) * (np.arange(n_rows) % 3 == 0) for k in range(3)]
    edges = [np.array([0.5])] * 3
    plan = core.plan_sample(
        table_of(flags), n_rows, [False] * 3, edges, 1, [False] * 3, bundling=True
    )
    assert [0, 1, 2] in plan.digits
    clash = [flag.copy() for flag in flags]
    clash[0][5] = clash[1][5] = 1.0
    codes, changed = core.encode_part(table_of(clash), None, edges, 1, [False] * 3, plan)
    assert codes is None
    codes, _ = core.encode_part(table_of(clash), None, edges, 1, [False] * 3, changed)
    np.testing.assert_array_equal(codes.to_numpy(), np.stack(clash, axis=1).astype(np.uint16))
    parts = core.CodesParts(2 * n_rows)
    parts.append(core.encode_part(table_of(flags), None, edges, 1, [False] * 3, plan)[0], 1)
    with pytest.raises(ValueError, match="does not belong"):
        parts.append(codes, 1)


@pytest.mark.parametrize("n_rows", [5000, 260_000])
def test_samples_of_shares_are_the_sample_of_all_rows(n_rows):
    parts = columns(n_rows)
    weights = np.random.default_rng(1).random(n_rows)
    whole = sketch_of(parts, 50_000, 63)
    bounds = [0, n_rows // 3, n_rows // 3, n_rows]
    sketches = []
    for first, last in pairwise(bounds):
        sketch = core.TableSketch(len(parts), 63, (first, n_rows))
        for start in range(first, last, 40_000):
            sketch.push(table_of(parts, slice(start, min(start + 40_000, last))), None, 1)
        sketches.append(sketch)
    places = np.concatenate([one.places for one in sketches])
    np.testing.assert_array_equal(places, whole.places)
    sample, distinct = core.Columns(len(places)), []
    for c in range(len(parts)):
        values = np.concatenate([one.values(c) for one in sketches])
        assert values.dtype == whole.values(c).dtype
        np.testing.assert_array_equal(values, whole.values(c))
        sample.add(values)
        distinct.append(whole.distinct(c))
    edges = core.sketch_edges(sample, places, n_rows, weights, distinct, 63, 2)
    for one, other in zip(edges, whole.edges(weights, [False] * 8, 2), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="more rows than there are in all"):
        sketches[-1].push(table_of(parts, slice(0, 9)), None, 1)


def test_plan_of_chosen_rows_is_that_of_the_sample():
    parts = columns(100_000)
    sketch = sketch_of(parts, 50_000, 255)
    edges = sketch.edges(None, [False] * 8, 1)
    given = 100_000, sketch.has_missing, edges, 1, [False] * 8, True
    whole = core.plan_sample(sketch.sample(), *given)
    rows, features = core.plan_rows(100_000, 1), core.shareable(edges, 100_000, bundling=True)
    assert 0 < len(features) < 8
    assert core.shareable(edges, 100_000, bundling=False) == []
    sample = core.Columns(len(rows))
    for feature in range(8):
        if feature in features:
            sample.add(sketch.values(feature)[rows])
        else:
            sample.add_missing()
    chosen = core.plan_sample(sample, *given, is_chosen=True)
    assert chosen.__getstate__() == whole.__getstate__()
    assert pickle.loads(pickle.dumps(whole)).__getstate__() == whole.__getstate__()


def test_changes_of_a_plan_are_joined():
    n_rows = 4000
    kind = np.arange(n_rows) % 5
    flags = [np.where(kind == k, 1.0, 0.0) * (np.arange(n_rows) % 3 == 0) for k in range(4)]
    edges = [np.array([0.5])] * 4
    plan = core.plan_sample(
        table_of(flags), n_rows, [False] * 4, edges, 1, [False] * 4, bundling=True
    )
    assert [0, 1, 2, 3] in plan.digits
    tables, changed = [], []
    for clash in ({0: 1.0, 1: 1.0}, {0: 1.0, 3: 1.0}, {2: np.nan}, {}):
        own = [flag.copy() for flag in flags]
        for feature, value in clash.items():
            own[feature][5] = value
        tables.append(table_of(own))
        changed.append(core.encode_part(tables[-1], None, edges, 1, [False] * 4, plan)[1])
    joined = core.join_plans(plan, changed)
    assert sorted(map(sorted, joined.digits)) == [[0, 2], [1], [3]]
    for table in tables:
        codes, fitting = core.encode_part(table, None, edges, 1, [False] * 4, joined)
        assert codes is not None
        assert fitting.__getstate__() == joined.__getstate__()


def test_codes_of_no_rows():
    edges = [np.array([0.5])] * 2
    plan = core.plan_sample(
        table_of([np.arange(9.0)] * 2), 9, [False] * 2, edges, 1, [False] * 2, bundling=True
    )
    codes, _ = core.encode_part(table_of([np.empty(0)] * 2), None, edges, 1, [False] * 2, plan)
    parts = core.CodesParts(0)
    with pytest.raises(ValueError, match="have not been appended"):
        parts.finish()
    parts.append(codes, 1)
    empty = parts.finish()
    assert empty.to_numpy().shape == (0, 2)
    empty.add_missing(np.array([0, 1], np.uint8))
    assert empty.has_missing.tolist() == [0, 1]
    assert empty.first_slot.tolist() == [0, 2, 5]
    with pytest.raises(ValueError, match="every feature"):
        empty.add_missing(np.array([1], np.uint8))


def test_level_sets():
    """Strings keep their numbers from part to part; levels are sorted, whatever the parts."""
    known = core.LevelSet()
    parts = [["b", None, "a", "b"], ["c", "a", ""], [None]]
    texts = [core.Text.of_objects(part)[0] for part in parts]
    assert [known.add_text(text).tolist() for text in texts] == [[0, -1, 1, 0], [2, 1, 3], [-1]]
    assert len(known) == 4
    assert known.n_bytes > 0
    values, offsets = known.strings()
    assert (bytes(values), offsets.tolist()) == (b"bac", [0, 1, 2, 3, 3])
    values, offsets, places = known.levels()
    assert (bytes(values), offsets.tolist(), places.tolist()) == (
        b"abc",
        [0, 0, 1, 2, 3],
        [2, 1, 3, 0],
    )
    assert known.add(values, offsets).tolist() == [3, 1, 0, 2]
    with pytest.raises(ValueError, match="outside its bytes"):
        known.add(values, np.array([0, 5, 3]))
