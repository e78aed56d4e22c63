"""Shares of a table, one for each worker: schema, edges and codes of all rows at once; errors."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import arboost
from arboost.data.batch_rows import EdgeRows, RowColumns
from arboost.data.binned_source import read_evaluation
from arboost.data.memory import MemoryPlan
from arboost.workers import Share
from support.local_workers import run_workers
from support.shared_tables import assert_same, batches, check, feature_codes, read
from support.streamed import features, frame, written

SPLITS = [
    [1500],
    [700, 800],
    [0, 1500],
    [1, 1498, 1],
    [300, 0, 0, 1199, 1],
]


@pytest.mark.parametrize("sizes", SPLITS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", ["number", "two", "three"])
def test_tables_of_all_kinds(target, weighted, sizes):
    table = features(frame(), target)
    kind = "regressor" if target == "number" else "classifier"
    if not weighted:
        table = table.drop(columns="weight")
    check(table, sizes, y=target, weight="weight" if weighted else None, kind=kind)


@pytest.mark.parametrize("sizes", SPLITS[1:], ids=str)
@pytest.mark.parametrize("encoding", ["groups", "mean"])
@pytest.mark.parametrize("target", ["number", "two", "three"])
def test_categories_of_many_levels(target, encoding, sizes):
    table = features(frame(), target)
    levels = np.random.default_rng(6).zipf(1.3, len(table)) % 400
    table["many"] = [f"level {one}" for one in levels]
    table["others"] = pd.Series(levels % 170).where(levels % 7 > 0).astype("category")
    kind = "regressor" if target == "number" else "classifier"
    check(table, sizes, y=target, weight="weight", kind=kind, encoding=encoding)


@pytest.mark.parametrize("sizes", [[250_000, 30_000], [100_001, 0, 179_999]], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_sampled_rows(sizes, weighted):
    """Beyond 200,000 rows the edges come from a sample, by positions among all rows."""
    rng, n_rows = np.random.default_rng(5), sum(sizes)
    X = pd.DataFrame(
        {
            "real": rng.normal(size=n_rows),
            "few": rng.integers(0, 50, n_rows).astype(np.int16),
            "narrow": rng.normal(size=n_rows).astype(np.float32),
            "rare": np.where(np.arange(n_rows) == n_rows - 1, 7.0, rng.integers(0, 3, n_rows)),
            "sparse": np.where(rng.random(n_rows) < 0.05, 1.0, 0.0),
            "y": rng.normal(size=n_rows),
            "weight": rng.integers(0, 4, n_rows) / 3,
        }
    )
    ends = np.cumsum(sizes)
    parts = [lambda s=s, e=e: [X.iloc[e - s : e]] for s, e in zip(sizes, ends, strict=True)]
    given = {"y": "y", "weight": "weight" if weighted else None, "max_bins": 255}
    expected = read(lambda: [X], **given)
    found = run_workers(len(sizes), lambda w: read(Share(parts[w.rank], w), **given))
    assert_same(found, expected)


@pytest.mark.parametrize("sizes", SPLITS, ids=str)
def test_held_out_rows_and_class_weights(sizes):
    """Edges come from some rows, by a choice of all targets, with weights by class."""

    def training(y, groups):
        return np.flatnonzero(np.arange(len(y)) % 7 != (y[0] == groups[0])).astype(np.uint32)

    def weights(y, weight):
        return weight * np.where(y == "yes", 3.0, 1.0)

    table = features(frame(), "two")
    table["group"] = np.arange(len(table)) // 11
    edge_rows = EdgeRows(training, weights, "odd")
    given = {"y": "two", "weight": "weight", "groups": "group", "edge_rows": edge_rows}
    check(table, sizes, kind="classifier", **given)
    table["many"] = [f"level {one}" for one in np.arange(len(table)) ** 2 % 331]
    check(table, sizes, kind="classifier", encoding="mean", **given)


@pytest.mark.parametrize("sizes", [[700, 800], [0, 900, 600]], ids=str)
@pytest.mark.parametrize("place", ["kept", "stored"])
def test_files(sizes, place, tmp_path, monkeypatch):
    if place == "stored":
        monkeypatch.setattr(MemoryPlan, "stores", lambda *given: True)
        monkeypatch.setattr(MemoryPlan, "keeps", lambda *given: False)
    table, sources, first = features(frame(), "three"), [], 0
    for rank, size in enumerate(sizes):
        (tmp_path / str(rank)).mkdir()
        rows = table.iloc[first : first + size]
        sources.append(written(rows, tmp_path / str(rank), [size // 2, size - size // 2]))
        first += size
    given = {"y": "three", "weight": "weight", "kind": "classifier"}
    expected = read(written(table, tmp_path, [len(table)]), **given)
    found = run_workers(len(sizes), lambda w: read(Share(sources[w.rank], w), **given))
    assert_same(found, expected)
    assert [one.codes.own.is_stored for _, one in found] == [
        place == "stored" and one.codes.own.n_rows > 0 for _, one in found
    ]
    unlabelled = run_workers(len(sizes), lambda w: read(Share(sources[w.rank], w)))
    assert_same(unlabelled, read(str(tmp_path / "*.parquet")))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_more_workers_than_rows_and_tuples(size):
    X, y, weight = np.arange(8.0).reshape(4, 2), np.arange(4), np.array([1.0, 0.0, 2.0, 3.0])
    rows = [(X[i : i + 1], y[i : i + 1], weight[i : i + 1]) for i in range(4)]
    found = run_workers(size, lambda w: read(Share(lambda: rows[w.rank :: size], w)))
    own = [rows[rank::size] for rank in range(size)]
    expected = read(lambda: [one for part in own for one in part])
    assert_same(found, expected)


def test_arrays_of_targets():
    """y and weights may be arrays, of each worker's own rows."""
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(900, 3)), rng.integers(0, 3, 900), rng.integers(0, 2, 900) * 1.0
    expected = read(lambda: [X], y=y, weight=weight, kind="classifier")

    def program(w):
        own = slice(0, 400) if w.rank == 0 else slice(400, 900)
        share = Share(lambda: [X[own]], w)
        return read(share, y=y[own], weight=weight[own], kind="classifier")

    assert_same(run_workers(2, program), expected)


def test_types_and_orders_of_batches():
    """Columns without values in a batch take the type of the others, in any order of columns."""
    frames = [
        pd.DataFrame({"a": [None, None], "b": [1, 2], "t": [None, None], "y": [0.0, 1.0]}),
        pd.DataFrame({"b": [3.5, 4.0], "t": [1, 2], "a": ["x", None], "y": [2.0, 3.0]}),
        pd.DataFrame({"a": ["y", "x"], "t": [4, 5], "b": [None, None], "y": [4.0, 5.0]}),
        pd.DataFrame({"a": [np.nan] * 2, "t": [np.nan] * 2, "b": [7, 8], "y": [4.0, 5.0]}),
    ] * 5
    expected = read(lambda: frames, y="y")
    for size in (1, 2, 3, 5):
        bounds = [len(frames) * rank // size for rank in range(size + 1)]
        found = run_workers(
            size,
            lambda w, bounds=bounds: read(
                Share(lambda: frames[bounds[w.rank] : bounds[w.rank + 1]], w), y="y"
            ),
        )
        assert_same(found, expected)


def test_bundles_that_rows_of_a_worker_break():
    """Every worker has another clash with the plan: all end with the same one."""
    n_rows = 4000
    kind = np.arange(n_rows) % 5
    X = (kind[:, None] == np.arange(4)) * (np.arange(n_rows) % 2 == 0)[:, None] * 1.0
    X[900, :2], X[1900, 2], X[3999, 2:] = 1.0, np.nan, 1.0
    sizes = [1000, 1000, 2000]
    _, found = check(pd.DataFrame(X, columns=list("abcd")), sizes, max_bins=255)
    assert_same(found, read(lambda: [pd.DataFrame(X, columns=list("abcd"))], max_bins=255))


def test_missing_values_of_one_worker():
    table = pd.DataFrame({"a": [1.0] * 1200, "b": [2.0] * 1100 + [np.nan] * 100})
    check(table, [600, 600])
    table["c"] = np.arange(1200) % 40
    check(table, [600, 600])


@pytest.mark.parametrize("sizes", [[900, 600], [0, 1500], [300, 0, 0, 1199, 1]], ids=str)
@pytest.mark.parametrize("encoding", ["groups", "mean"])
def test_evaluation_sets_and_held_out_rows(sizes, encoding):
    table, other = features(frame(), "three"), features(frame(400, seed=1), "three")
    many = np.random.default_rng(6).integers(0, 300, 1900)
    table["many"] = [f"level {one}" for one in many[:1500]]
    other["many"] = [f"level {one}" for one in many[1500:]]
    held_out = np.flatnonzero(np.arange(901) % 5 == 0).astype(np.uint32)
    given = {"y": "three", "weight": "weight", "kind": "classifier", "encoding": encoding}
    parts = batches(table, sizes)
    evaluated = batches(other, [0] * (len(sizes) - 1) + [400])

    def program(X, X_other):
        data, binned = read(X, **given)
        rest = np.setdiff1d(np.arange(data.n_rows), held_out).astype(np.uint32)
        codes = data.encoded_table.held_out_codes(binned, (rest, held_out), 1)
        rows, found = read_evaluation(X_other, RowColumns("three", "weight"), data.schema)
        y, weight = found.y, found.weight
        return codes, rows.encode(binned, 1), y, weight, rows.n_rows

    expected = program(lambda: [table], lambda: [other])
    found = run_workers(
        len(sizes), lambda w: program(Share(parts[w.rank], w), Share(evaluated[w.rank], w))
    )
    for k in (0, 1):
        shared = np.concatenate([feature_codes(one[k].own) for one in found])
        np.testing.assert_array_equal(shared, expected[k].to_numpy())
        assert {one[k].n_rows for one in found} == {expected[k].n_rows}
    for one in found:
        np.testing.assert_array_equal(one[2], expected[2])
        np.testing.assert_array_equal(one[3], expected[3])
        assert one[4] == expected[4]


def test_only_the_first_worker_warns():
    table = features(frame(), "number").assign(key=[f"k{i}" for i in range(1500)])
    parts = batches(table, [700, 800])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_workers(2, lambda w: read(Share(parts[w.rank], w), y="number"))
    assert [str(one.message)[:4] for one in caught if "twice" in str(one.message)] == ["Keys"]
    constant = pd.DataFrame({"a": [1.0] * 9, "b": [np.nan] * 9})
    with pytest.warns(arboost.DataWarning, match="all columns of X are constant"):
        check(constant, [4, 5])


KINDS = {
    "numbers": lambda: [1.0, 2.0],
    "strings": lambda: ["u", None],
    "nothing": lambda: [None, None],
    "missing": lambda: [np.nan, np.nan],
    "times": lambda: pd.to_datetime(["2020-01-01", None]),
    "no times": lambda: pd.to_datetime([None, None]),
    "levels": lambda: pd.Categorical(["v", None]),
    "codes": lambda: pd.Categorical([4.0, 1.0]),
    "no codes": lambda: pd.Categorical([np.nan, np.nan]),
}


@pytest.mark.parametrize("seed", range(60))
def test_random_kinds_of_columns(seed):
    """Batches of any kinds: the same schema, or an error, the same one on all workers."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(list(KINDS), 3, replace=False).tolist()
    usual = rng.choice(kinds)
    picks = [usual if rng.random() < 0.5 else rng.choice(kinds) for _ in range(7)]
    frames = [pd.DataFrame({"x": KINDS[one](), "z": [1.0, 2.0]}) for one in picks]
    size = int(rng.integers(2, 5))
    bounds = [0, *np.sort(rng.integers(0, 8, size - 1)).tolist(), 7]

    def outcome(X):
        try:
            return read(X)
        except ValueError as error:
            return str(error).partition(": ")[2]

    expected = outcome(lambda: frames)
    found = run_workers(
        size, lambda w: outcome(Share(lambda: frames[bounds[w.rank] : bounds[w.rank + 1]], w))
    )
    if isinstance(expected, str):
        assert found == [found[0]] * size
        assert isinstance(found[0], str)
    else:
        assert_same(found, expected)


BAD = {
    "columns": (lambda one: one.drop(columns="few"), "lacks the columns 'few'"),
    "kind": (lambda one: one.assign(few="x"), "'few' of X holds strings, but numbers in batches"),
    "type": (lambda one: one.assign(few=one["few"].astype("category")), "is of a categorical type"),
    "weight": (lambda one: one.assign(weight=-1.0), "negative, NaN or infinite"),
    "y": (lambda one: one.assign(number=np.nan), "missing or infinite"),
}


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("name", BAD)
def test_an_error_of_one_worker_is_that_of_all(name, rank):
    change, message = BAD[name]
    table = features(frame(), "number")
    parts = batches(table, [500, 500, 500])
    given = {"y": "number", "weight": "weight"}
    tables = [list(part()) for part in parts]
    tables[rank][1] = change(tables[rank][1])
    with pytest.raises((TypeError, ValueError)) as of_one:
        read(lambda: [one for part in tables for one in part], **given)

    def program(w):
        with pytest.raises(type(of_one.value)) as caught:
            read(Share(lambda: tables[w.rank], w), **given)
        return str(caught.value), w.rank

    started = time.monotonic()
    found = {text for text, _ in run_workers(3, program)}
    assert time.monotonic() - started < 20
    assert len(found) == 1
    assert message in found.pop()
    assert message in str(of_one.value)


def test_errors_of_sources_and_arguments(tmp_path):
    def failing(w):
        with pytest.raises(FileNotFoundError) as caught:
            read(Share(str(tmp_path / "none.parquet") if w.rank else (lambda: []), w))
        return str(caught.value)

    assert len(set(run_workers(2, failing))) == 1

    def empty(w):
        with pytest.raises(ValueError, match="X has no rows"):
            read(Share(lambda: [], w))

    run_workers(2, empty)

    def sparse(w):
        with pytest.raises(TypeError, match="batches must be dense"):
            read(Share(lambda: [scipy.sparse.eye(4) if w.rank == 1 else np.eye(4)], w))

    run_workers(3, sparse)

    def changing(w):
        passes = iter(range(9))

        def rows():
            yield np.ones((5 if w.rank == 1 and next(passes) else 4, 2))

        with pytest.raises(ValueError, match="rows"):
            read(Share(rows, w))

    run_workers(3, changing)

    def cached(w):
        with pytest.raises(ValueError, match="cache='kept' is not allowed with a Share"):
            read(Share(lambda: [np.ones((4, 2))], w), cache="kept")

    run_workers(2, cached)
