"""Text files as sources: dialects of CSV files, JSON lines, compression, faults with their line."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest

from arboost import GradientBoostingRegressor
from arboost.data import text_files
from arboost.data.source import FileFormat, open_files, open_source
from arboost.data.text_files import CsvDialect, find_dialect
from arboost.errors import DataWarning, SchemaError

FIRST_LINES = [
    ("a,b", "csv", ","),
    ("a;b", "csv", ";"),
    ("a|b|c", "csv", "|"),
    ("a\tb", "csv", "\t"),
    ("\n\na;b", "csv", ";"),
    ("\ufeffa;b", "csv", ";"),
    ("a,b;c", "csv", ","),
    ('"a,b";c', "csv", ";"),
    ('"a\n,b";c', "csv", ";"),
    ('"a;b"', "csv", ","),
    ("a;b|c", "csv", ","),  # either could be: --delimiter decides
    ("a", "csv", ","),
    ("a\r1,5", "csv", ","),
    ("a\tb", "tsv", "\t"),
    ("a,b\tc", "tsv", "\t"),
    ("a,b", "tsv", ","),
]


@pytest.mark.parametrize(("line", "kind", "delimiter"), FIRST_LINES)
def test_delimiter_of_the_first_line(line, kind, delimiter, tmp_path):
    path = tmp_path / "rows"
    path.write_text(line + "\n1;2\n", newline="")
    assert find_dialect(str(path), kind) == CsvDialect(delimiter)


def test_given_delimiter_is_not_questioned(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b;c\n1,2;3\n")
    assert find_dialect(str(path), "csv", ";") == CsvDialect(";")


@pytest.mark.parametrize("form", [FileFormat(), FileFormat(delimiter=";", decimal=".")])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_rows_of_another_delimiter(form, suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_CSV_BLOCK_BYTES", 256)
    text = "a;b\n" + "".join(f"{i};{i}.5\n" for i in range(200))
    path = tmp_path / f"rows.csv{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix else text.encode())
    source = open_files(str(path), None, form)
    table = pa.Table.from_batches([batch.table for batch in source.batches(50)])
    assert table.to_pydict() == {"a": list(range(200)), "b": [i + 0.5 for i in range(200)]}


def test_each_file_has_its_own_delimiter(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x|y\n3|4\n")
    source = open_files(str(tmp_path), None)
    rows = [row for batch in source.batches(9) for row in batch.table.to_pylist()]
    assert rows == [{"x": 1, "y": 2}, {"x": 3, "y": 4}]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_decimal_comma(suffix, tmp_path):
    text = b'a,b\n"1,5",x\n2,y\n'
    path = tmp_path / f"rows.csv{suffix}"
    path.write_bytes(gzip.compress(text) if suffix else text)
    source = open_files(str(path), None, FileFormat(decimal=","))
    (batch,) = source.batches(9)
    assert batch.table.to_pydict() == {"a": [1.5, 2.0], "b": ["x", "y"]}


def test_decimal_commas_are_not_read_as_strings(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("city;price\nBonn;1,5\nRome;\nOslo;2\n")
    with pytest.raises(ValueError, match=r"'price' of the file .* decimal comma, such as '1,5'"):
        open_files(str(path), None)
    as_asked = open_files(str(path), None, FileFormat(decimal="."))
    assert as_asked.arrow_schema.types == [pa.string(), pa.string()]


@pytest.mark.parametrize("values", ["1,5;x", "x;1,5 kg", "1.2.3;01.02.2024", "a,b;1,2,3"])
def test_other_strings_stay_strings(values, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"p;q\n{values}\nn;m\n")
    assert set(open_files(str(path), None).arrow_schema.types) == {pa.string()}


def test_thousands_separators(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("p;q\n1.234,5;1\n2,5;2\n")
    with pytest.raises(ValueError, match=r"thousands separators, such as '1\.234,5'"):
        open_files(str(path), None)
    with pytest.warns(DataWarning, match="read as strings"):
        source = open_files(str(path), None, FileFormat(decimal=","))
    assert source.arrow_schema.types == [pa.string(), pa.int64()]


def rows(n_rows=500):
    rng = np.random.default_rng(0)
    return [
        {"x": round(rng.normal(), 3), "n": int(rng.integers(9)), "label": rng.choice(["a", "b\n"])}
        for _ in range(n_rows)
    ]


def write(path, values):
    text = "".join(json.dumps(one) + "\n" for one in values).encode()
    kind = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with pa.output_stream(str(path), compression=kind) as file:
        file.write(text)


def whole(source, batch_rows=100):
    batches = list(source.batches(batch_rows))
    assert [batch.bytes_read for batch in batches] == sorted(batch.bytes_read for batch in batches)
    return pa.Table.from_batches([batch.table for batch in batches], source.arrow_schema)


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz", "a.ndjson.zst"])
@pytest.mark.parametrize("block", [64, 1000, 1 << 20])
def test_rows_and_types(name, block, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_JSON_BLOCK_BYTES", block)
    write(tmp_path / name, rows())
    expected = pa.Table.from_pylist(rows())
    source = open_source(tmp_path / name)
    for _ in range(2):
        assert whole(source).equals(expected)
    assert whole(open_source(tmp_path / name, ["label", "x"])).equals(
        expected.select(["label", "x"])
    )


def test_missing_keys_and_order(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_JSON_BLOCK_BYTES", 40)
    values = [{"a": 1, "b": "x"}] * 3 + [{"b": "y"}, {"c": 3, "a": 2}, {"b": None, "a": 4}]
    write(tmp_path / "a.jsonl", values)
    found = whole(open_source(tmp_path / "a.jsonl"))
    assert found.to_pydict() == {
        "a": [1, 1, 1, None, 2, 4],
        "b": ["x", "x", "x", "y", None, None],
    }


def test_line_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_JSON_BLOCK_BYTES", 64)
    monkeypatch.setattr(text_files, "_PARSED_BYTES", 32)
    values = [{"a": "x" * 1000}, {"a": "y"}, {"a": "z" * 100}]
    write(tmp_path / "a.jsonl", values)
    assert whole(open_source(tmp_path / "a.jsonl")).to_pylist() == values


def test_a_long_line_is_read_in_linear_time(monkeypatch):
    """Every byte is copied once, whatever the number of blocks of the line."""

    class Piece(bytes):
        copied = 0

        def __radd__(self, other):
            Piece.copied += len(other) + len(self)
            return other + bytes(self)

    monkeypatch.setattr(text_files, "_PARSED_BYTES", 32)
    text = b'{"a": "' + b"x" * 10_000 + b'"}\n{"a": "y"}\n'
    pieces = [Piece(text[first : first + 64]) for first in range(0, len(text), 64)]
    stream = iter([*pieces, b""])

    class Stream:
        def read(self, n_bytes):
            return next(stream)

    tables = list(text_files.json_blocks(Stream(), None, "a.jsonl"))
    assert pa.concat_tables(tables).to_pylist() == [{"a": "x" * 10_000}, {"a": "y"}]
    assert Piece.copied == 0


def test_blocks_to_parse_are_never_larger_than_the_data(monkeypatch):
    """PyArrow takes no block beyond 2 GiB."""
    from pyarrow import json as pa_json

    sizes, options = [], pa_json.ReadOptions
    monkeypatch.setattr(text_files, "_PARSED_BYTES", 1000)
    monkeypatch.setattr(
        pa_json,
        "ReadOptions",
        lambda block_size: sizes.append(block_size) or options(block_size=block_size),
    )
    data = b'{"a": "' + b"x" * 100_000 + b'"}\n'
    assert text_files.json_table(data, None, "a.jsonl").num_rows == 1
    assert max(sizes) == len(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'[{"a": 1}, {"a": 2}]', r"a list in line 1\. .* jq -c '\.\[\]'"),
        (b'{"a": 1}\n{"a": [' + b"1, " * 99, r"more than 0 MiB in line 2\. Each line must be one"),
    ],
)
def test_files_of_one_line(text, message, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_JSON_BLOCK_BYTES", 9)
    monkeypatch.setattr(text_files, "_LONGEST_LINE", 200)
    (tmp_path / "a.jsonl").write_bytes(text)
    with pytest.raises(ValueError, match=message):
        whole(open_source(tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (b'{"x": 1, "n": }', "line 301, column 15"),
        (b'{"x": "text", "n": 1}', "a string in line 301, key 'x'"),
        (b"[1, 2]", "has a list in line 301"),
        (b'{"x": "\xff"}', "is not UTF-8 in line 301"),
    ],
)
def test_fault_has_its_line(line, part, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_JSON_BLOCK_BYTES", 500)
    write(tmp_path / "a.jsonl", [{"x": 1.5, "n": 2}] * 300)
    with open(tmp_path / "a.jsonl", "ab") as file:
        file.write(line + b'\n{"x": 2.5, "n": 2}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl") as caught:
        whole(open_source(tmp_path / "a.jsonl"))
    assert part in str(caught.value)


def test_no_objects(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n\n")
    with pytest.raises(ValueError, match="holds no JSON object"):
        open_source(tmp_path / "a.jsonl")


def test_files_of_other_columns(tmp_path):
    write(tmp_path / "1.jsonl", [{"a": 1}])
    write(tmp_path / "2.jsonl", [{"b": 1}])
    with pytest.raises(SchemaError, match=r"2\.jsonl' has no column 'a'"):
        open_source(tmp_path)


def test_fit_is_that_of_the_table(tmp_path):
    write(tmp_path / "a.jsonl", rows())
    model = GradientBoostingRegressor(n_estimators=3)
    from_file = model.fit(str(tmp_path / "a.jsonl"), "x").to_json()
    assert from_file == model.fit(pa.Table.from_pylist(rows()), "x").to_json()


def test_predictions(tmp_path):
    table = pa.Table.from_pylist(rows(50))
    model = GradientBoostingRegressor(n_estimators=3).fit(table, "x")
    write(tmp_path / "a.jsonl", rows(50))
    model.predict_files(tmp_path / "a.jsonl", tmp_path / "out.jsonl.gz", columns_to_keep=["label"])
    with pa.input_stream(str(tmp_path / "out.jsonl.gz")) as file:
        found = [json.loads(line) for line in file.read().splitlines()]
    assert [one["label"] for one in found] == table["label"].to_pylist()
    assert [one["prediction"] for one in found] == model.predict(table).tolist()
