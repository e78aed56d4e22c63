"""Datasets, streams and queries as sources."""

import errno
import os

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from arboost.data import source as source_module
from arboost.data.source import is_source, open_source
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
