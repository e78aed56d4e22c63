"""Datasets, streams, queries and iterables as sources, and batches that are read ahead."""

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from arboost.data import source as source_module
from arboost.data.source import is_source, open_source, read_ahead, row_count
from arboost.errors import SchemaError

N_ROWS = 1000


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    labels = pa.array(rng.choice(["one", "two", "three"], N_ROWS)).dictionary_encode()
    return pa.table({"row": np.arange(N_ROWS), "x": rng.normal(size=N_ROWS), "label": labels})


def whole(source, batch_rows=70):
    batches = list(source.batches(batch_rows))
    assert all(0 < batch.n_rows == batch.table.num_rows <= batch_rows for batch in batches)
    read = [batch.bytes_read for batch in batches]
    assert read == sorted(read)
    assert batches[-1].bytes_read == (source.n_bytes or 0)
    return pa.Table.from_batches([batch.table for batch in batches], source.arrow_schema)


@pytest.fixture
def folder(table, tmp_path):
    for part in range(4):
        path = tmp_path / "data" / f"part={part}"
        path.mkdir(parents=True)
        pq.write_table(table.slice(part * 250, 250), path / "a.parquet", row_group_size=100)
    return tmp_path / "data"


def test_datasets(table, folder):
    dataset = ds.dataset(folder, partitioning="hive")
    assert is_source(dataset)
    source = open_source(dataset)
    assert source.names == ("row", "x", "label", "part")
    for _ in range(2):
        found = whole(source)
        assert found["row"].to_pylist() == [*range(N_ROWS)]
        assert found["part"].to_pylist() == [*np.repeat(range(4), 250)]
    assert {batch.file for batch in source.batches(500)} == set(dataset.files)
    assert whole(open_source(dataset, ["x"])).equals(table.select(["x"]))
    filtered = open_source(dataset.filter(ds.field("row") >= 990), ["row"])
    assert whole(filtered)["row"].to_pylist() == [*range(990, 1000)]
    both = ds.dataset(
        [dataset, ds.dataset(table.append_column("part", pa.array([9] * N_ROWS, pa.int32())))]
    )
    assert whole(open_source(both, ["row"])).num_rows == 2000
    assert whole(open_source(ds.dataset(table))).equals(table)
    with pytest.raises(SchemaError, match=r"no column 'labels' in the File.* mean 'label'\?"):
        open_source(dataset, ["labels"])


def test_files_of_datasets_are_checked(table, folder):
    pq.write_table(table.select(["row", "x"]), folder / "part=2" / "a.parquet")
    dataset = ds.dataset(folder, partitioning="hive")
    with pytest.raises(SchemaError, match=r"part=2.*a.parquet' has no column 'label'"):
        open_source(dataset)
    assert whole(open_source(dataset, ["row"])).num_rows == 1750
    (folder / "part=3" / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"part=3.*a.parquet' cannot be read"):
        open_source(dataset, ["row"])


def test_record_batch_readers(table, tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "_STORED_ROWS", 128)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(300))
    assert is_source(reader)
    source = open_source(reader, scratch=str(tmp_path))
    assert source.n_rows == N_ROWS
    assert os.listdir(tmp_path) == []  # the file has no name
    for _ in range(2):
        assert whole(source).equals(table)
    together = zip(source.batches(64), source.batches(64), strict=True)
    assert all(one.table.equals(other.table) for one, other in together)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert whole(open_source(reader, ["label", "row"])).equals(table.select(["label", "row"]))


def test_lazy_frames(table):
    frame = pl.LazyFrame({"row": range(N_ROWS), "s": ["a", "b"] * 500}).with_columns(
        pl.col("s").cast(pl.Categorical).alias("c"), x=pl.col("row") * 0.5
    )
    assert is_source(frame)
    source = open_source(frame)
    expected = frame.collect().to_arrow()
    for _ in range(2):
        found = whole(source)
        assert found.column_names == expected.column_names
        assert found.to_pydict() == expected.to_pydict()
    assert whole(open_source(frame, ["x"])).column_names == ["x"]
    with pytest.raises(SchemaError, match="There is no column 'y' in the LazyFrame"):
        open_source(frame, ["y"])


def test_duckdb_relations(table, folder):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(f"select row, x, label as \"a b\" from '{folder}/*/*.parquet'")
    assert is_source(relation)
    found = whole(open_source(relation))
    assert found["row"].to_pylist() == [*range(N_ROWS)]
    assert found["a b"].to_pylist() == table["label"].to_pylist()
    assert whole(open_source(relation, ["a b", "x"])).column_names == ["a b", "x"]


def test_other_dictionaries_in_each_batch():
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("c", kind)])
    batches = [pa.record_batch([pa.array([text]).cast(kind)], schema=schema) for text in "abc"]
    source = open_source(pa.RecordBatchReader.from_batches(schema, batches))
    assert whole(source)["c"].to_pylist() == ["a", "b", "c"]


def test_full_disk(table, tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(source_module, "_store", full)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    with pytest.raises(OSError, match="the RecordBatchReader cannot be stored in the folder") as no:
        open_source(reader, scratch=str(tmp_path))
    assert no.value.errno == errno.ENOSPC


def test_pyarrow_is_needed(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Reading files needs .*'arboost\[files\]'"):
        open_source(tmp_path)


class Batches:
    """Arrays of some numbers of rows, with targets, from the first one on."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        for size in self.sizes:
            yield np.zeros((size, 3)), np.zeros(size)


def test_every_pass_starts_again():
    source = open_source(Batches([3, 0, 5]))
    assert source.names is None
    assert source.n_rows is None
    for _ in range(2):
        found = [(batch.first_row, batch.n_rows, batch.file) for batch in source.batches(2)]
        assert found == [(0, 3, "batch 0 of the Batches"), (3, 5, "batch 2 of the Batches")]
        assert source.n_rows == 8


def test_functions():
    source = open_source(lambda: iter([np.zeros((4, 1))]))
    assert [[batch.n_rows for batch in source.batches(9)] for _ in range(2)] == [[4], [4]]


def test_other_rows_in_the_second_pass():
    batches = Batches([3, 5])
    source = open_source(batches)
    assert len(list(source.batches(9))) == 2
    batches.sizes = [3, 4]
    with pytest.raises(ValueError, match="had 8 rows, but 7 when it was read again"):
        list(source.batches(9))


def test_generators_are_refused():
    generator = iter(Batches([1]))
    assert is_source(generator)
    with pytest.raises(TypeError, match="is a generator, whose batches can be read only once"):
        open_source(generator)


def test_columns_are_for_files():
    with pytest.raises(ValueError, match=r"columns=\['x'\] is not allowed with an iterable"):
        open_source(Batches([1]), ["x"])


def test_tables_are_no_iterables():
    import pandas as pd
    import polars as pl

    frame = pd.DataFrame({"x": [1]})
    for X in (frame, frame["x"], pl.from_pandas(frame), {1}, range(3), "x", np.float64(1), Batches):
        if not isinstance(X, str):
            assert not is_source(X)
    with pytest.raises(TypeError, match="X is a DataFrame, which is not a source"):
        open_source(frame)


def test_rows_of_tables():
    import polars as pl

    tables = (np.zeros((2, 1)), pl.DataFrame({"x": [1, 2]}), {"x": [1, 2]}, [[1], [2]])
    assert [row_count(table) for table in tables] == [2] * 4
    assert row_count(({"x": [1, 2]}, [1, 2])) == 2


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def counted(n_items, made, closed):
    try:
        for item in range(n_items):
            made.append((item, threading.current_thread()))
            yield item
    finally:
        closed.append(threading.current_thread())


def test_one_item_ahead():
    made, closed = [], []
    items = read_ahead(counted(5, made, closed))
    assert next(items) == 0
    wait_for(lambda: len(made) == 2)
    time.sleep(0.02)
    assert len(made) == 2  # the third one waits until the second is taken
    assert list(items) == [1, 2, 3, 4]
    assert {thread for _, thread in made} == set(closed)
    assert threading.current_thread() not in closed


def test_close_ends_the_thread():
    made, closed = [], []
    before = threading.active_count()
    items = read_ahead(counted(5, made, closed))
    next(items)
    items.close()
    assert len(closed) == 1
    assert threading.active_count() == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_are_those_of_the_caller(error):
    def failing():
        yield 1
        raise error("no more")

    items = read_ahead(failing())
    assert next(items) == 1
    with pytest.raises(error, match="no more"):
        next(items)
    assert list(items) == []


def test_nothing_to_read():
    assert list(read_ahead(iter([]))) == []


@pytest.mark.parametrize(
    ("of", "name"), [(threading.Thread, "start"), (ThreadPoolExecutor, "shutdown")]
)
def test_an_interrupt_leaves_no_thread(of, name, monkeypatch):
    """Ctrl-C while the thread starts, or while it is told to end."""
    step = getattr(of, name)

    def interrupted(self):
        if threading.current_thread() is not threading.main_thread():
            return step(self)
        if name == "start":
            step(self)
        raise KeyboardInterrupt

    made, closed = [], []
    before = threading.active_count()
    items = read_ahead(counted(5, made, closed))
    with monkeypatch.context() as patch:
        patch.setattr(of, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            all(items.close() for _ in items)
    wait_for(lambda: threading.active_count() == before)
    assert len(closed) == 1
