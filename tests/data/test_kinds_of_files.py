"""Arrow, CSV and TSV files as sources: the same rows as PyArrow reads at once."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, feather

from arboost.data import files, text_files
from arboost.data.source import open_source
from arboost.errors import SchemaError

N_ROWS = 1000


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = pa.array(rng.normal(size=N_ROWS).round(3), mask=rng.random(N_ROWS) < 0.1)
    labels = pa.array(rng.choice(["one", "two, or three", 'a "quote"'], N_ROWS))
    return pa.table({"x": x, "n": rng.integers(0, 9, N_ROWS), "label": labels})


def whole(source, batch_rows=300):
    batches = list(source.batches(batch_rows))
    assert all(0 < batch.n_rows <= batch_rows for batch in batches)
    assert [batch.bytes_read for batch in batches] == sorted(batch.bytes_read for batch in batches)
    return pa.Table.from_batches([batch.table for batch in batches], source.arrow_schema)


def write_stream(table, path):
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, 64)


WRITERS = {
    "a.feather": feather.write_feather,
    "small.arrow": lambda table, path: feather.write_feather(table, path, chunksize=64),
    "stream.arrow": write_stream,
    "a.csv": csv.write_csv,
    "a.csv.gz": lambda table, path: csv.write_csv(table, pa.output_stream(path)),
    "a.csv.zst": lambda table, path: csv.write_csv(table, pa.CompressedOutputStream(path, "zstd")),
    "a.tsv": lambda table, path: csv.write_csv(table, path, csv.WriteOptions(delimiter="\t")),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("columns", [None, ["label", "x"]])
def test_rows_and_types(table, tmp_path, name, columns, monkeypatch):
    monkeypatch.setattr(text_files, "_CSV_BLOCK_BYTES", 4096)
    path = str(tmp_path / name)
    WRITERS[name](table, path)
    source = open_source(path, columns)
    expected = table if columns is None else table.select(columns)
    for _ in range(2):
        assert whole(source).equals(expected)


def test_large_record_batches_are_mapped(table, tmp_path, monkeypatch):
    feather.write_feather(table, tmp_path / "a.feather", compression="uncompressed")
    monkeypatch.setattr(files, "_MAPPED_BYTES", 100)
    before = pa.total_allocated_bytes()
    batches = open_source(tmp_path / "a.feather").batches(10)
    assert next(batches).table.equals(table.to_batches()[0][:10])
    assert pa.total_allocated_bytes() - before < table.nbytes / 4
    batches.close()


def test_types_of_csv_files_are_joined(tmp_path):
    """Each file may have integers only, or no value, where others have decimal numbers."""
    (tmp_path / "1.csv").write_text("a,b,c\n1,,x\n2,,y\n")
    (tmp_path / "2.csv").write_text("a,b,c\n1.5,3,z\n")
    (tmp_path / "3.csv").write_text("a,b,c\n")
    source = open_source(tmp_path)
    assert source.arrow_schema.types == [pa.float64(), pa.int64(), pa.string()]
    assert whole(source).to_pydict() == {"a": [1, 2, 1.5], "b": [None, None, 3], "c": [*"xyz"]}
    (tmp_path / "4.csv").write_text("a,b,c\nmany,4,w\n")
    with pytest.raises(SchemaError, match=r"'a' is of type string in the file .*4\.csv"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\n" + "1\n" * 200 + "many\n", "invalid value 'many'.*of 1 MB.*Parquet"),
        ("a\n" + "1\n" * 200 + "1,2\n", "Expected 1 columns, got 2"),
        ("\n", "cannot be read"),
    ],
)
def test_errors_of_csv_files_name_the_file(tmp_path, monkeypatch, content, message):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    monkeypatch.setattr(text_files, "_CSV_BLOCK_BYTES", 64)
    with pytest.raises(ValueError, match=message) as caught:
        whole(open_source(path))
    assert "bad.csv" in str(caught.value)


def test_truncated_files(table, tmp_path):
    path = tmp_path / "a.csv.gz"
    csv.write_csv(table, pa.output_stream(str(path)))
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ValueError, match=r"a\.csv\.gz' cannot be read"):
        whole(open_source(path))
    feather.write_feather(table, tmp_path / "a.feather")
    content = (tmp_path / "a.feather").read_bytes()
    (tmp_path / "a.feather").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"a\.feather' cannot be read"):
        open_source(tmp_path / "a.feather")
    (tmp_path / "no.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(ValueError, match=r"no\.csv\.gz' cannot be read: .*Empty"):
        open_source(tmp_path / "no.csv.gz")


def test_one_kind_at_a_time(table, tmp_path):
    csv.write_csv(table, tmp_path / "a.csv")
    csv.write_csv(table.set_column(1, "n", pc.add(table["n"], 1)), str(tmp_path / "b.csv"))
    assert open_source(tmp_path).names == ("x", "n", "label")
    feather.write_feather(table, tmp_path / "c.feather")
    with pytest.raises(ValueError, match=r"a\.csv' \(csv\) and .*c\.feather' \(arrow\) are of two"):
        open_source(tmp_path)


MISSING = ["", "NA", "null", "NaN", "None", "#N/A", '""', '"NA"']


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("cell", MISSING)
def test_missing_cells_are_those_of_pandas(tmp_path, cell, suffix):
    """One file has one reading, by path and through pandas, in columns of any type."""
    path = tmp_path / f"rows{suffix}"
    text = f"size,maker\n1.5,Airbus\n{cell},{cell}\n2.5,no NA\n"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    (batch,) = open_source(path).batches(100)
    expected = pd.read_csv(path)
    for name in expected:
        assert batch.table.column(name).to_pylist() == [
            None if pd.isna(value) else value for value in expected[name]
        ]


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.jsonl"])
def test_other_encodings_are_named(encoding, name, tmp_path):
    text = '{"a": 1, "b": 2}\n' if "json" in name else "a,b\n1,2\n"
    with pa.output_stream(str(tmp_path / name)) as file:
        file.write(text.encode(encoding))
    shown = encoding.replace("LE", "(LE)?")
    with pytest.raises(ValueError, match=rf"in {shown}, but .* iconv -f {shown} -t UTF-8"):
        open_source(tmp_path / name)
