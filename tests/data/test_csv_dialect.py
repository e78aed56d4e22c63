"""Delimiters that are found in the first line of CSV files, and decimal commas."""

import gzip

import pyarrow as pa
import pytest

from arboost.data import text_files
from arboost.data.source import FileFormat, open_files
from arboost.data.text_files import CsvDialect, find_dialect
from arboost.errors import DataWarning

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
