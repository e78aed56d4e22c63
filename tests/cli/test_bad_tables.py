"""Tables that cannot be trained on: one line with the file, the exit code, and nothing left."""

import gzip
import os

import pyarrow as pa
import pytest
from pyarrow import feather

from support.bad_files import GOOD, TABLE, content, cut, parquet_bytes
from support.command_line import run_failing

# Files to train on: name, writer of the file, part of the message.
DATA = {
    "missing.csv": (lambda path: None, "There is no file or folder 'missing.csv'"),
    "missing*.csv": (lambda path: None, "No file matches the pattern"),
    "empty.csv": (lambda path: path.write_bytes(b""), "is empty"),
    "blank.csv": (lambda path: path.write_bytes(b"\n\n\n"), "blank.csv"),
    "header.csv": (lambda path: path.write_bytes(b"a,b,y\n"), "no rows"),
    "ragged.csv": (lambda path: path.write_bytes(GOOD + b"1,2\n"), "line 62: it has 2 values"),
    "wide.csv": (lambda path: path.write_bytes(GOOD + b"1,2,3,4\n"), "line 62: it has 4 values"),
    "second.csv": (lambda path: path.write_bytes(b"a,y\n1\n" + b"1,2\n" * 9), "line 2"),
    "semicolons.csv": (
        lambda path: path.write_bytes(b"a;b;y\n1;2;3\n1,5;2;3\n"),
        "decimal comma, such as '1,5'. Add --decimal ,",
    ),
    "two_delimiters.csv": (
        lambda path: path.write_bytes(b"a;b|y\n" + b"1;2|3\n" * 9),
        "--delimiter names the character",
    ),
    "spreadsheet.csv": (
        lambda path: path.write_bytes(b"sep=;\na;b;y\n" + b"1;2;3\n" * 9),
        "Delete its first line",
    ),
    "title.csv": (
        lambda path: path.write_bytes(b"Sales of 2024\n\n" + GOOD),
        "line 3: it has 3 values, but the header has 1 column",
    ),
    "comment.csv": (
        lambda path: path.write_bytes(b"# exported\n" + GOOD),
        "The first line must hold the names of all columns",
    ),
    "no_names.csv": (lambda path: path.write_bytes(GOOD[6:]), "have the name '0'"),
    "spaces.csv": (lambda path: path.write_bytes(GOOD.replace(b",y", b", y", 1)), "' y'"),
    "page.csv": (lambda path: path.write_bytes(b"\n<!DOCTYPE html><html>404"), "an HTML page"),
    "page.jsonl": (lambda path: path.write_bytes(b"<html>404</html>"), "an HTML page"),
    "sheet.csv": (lambda path: path.write_bytes(b"PK\x03\x04..."), "save it as CSV"),
    "array.csv": (lambda path: path.write_bytes(b'[{"a": 1, "y": 0}]'), "array.csv"),
    "names_latin1.csv": (
        lambda path: path.write_bytes(GOOD.replace(b"b", b"gr\xf6\xdfe", 1)),
        "not UTF-8 in line 1, column 2",
    ),
    "names_missing.csv": (
        lambda path: path.write_bytes(GOOD.replace(b"a,b", b",", 1)),
        "have the name ''",
    ),
    "comma_at_end.csv": (
        lambda path: path.write_bytes(GOOD.replace(b"y\n", b"y,\n", 1)),
        "line 2: it has 3 values, but the header has 4 columns",
    ),
    "dates.csv": (
        lambda path: path.write_bytes(b"a,y\n1,2024-01-01\n2,2024-01-02\n"),
        "of type date32",
    ),
    "dangling.csv": (lambda path: path.symlink_to("nowhere.csv"), "There is no file"),
    "loop.csv": (lambda path: path.symlink_to(path), "There is no file"),
    "more.csv.gz": (lambda path: path.write_bytes(gzip.compress(GOOD) + b"more"), "more.csv.gz"),
    "nothing.csv.gz": (lambda path: path.write_bytes(gzip.compress(b"")), "nothing.csv.gz"),
    "bad.jsonl.gz": (
        lambda path: path.write_bytes(gzip.compress(b'{"a": 1, "y": 0}\n{"a": \n')),
        "line 2",
    ),
    "twice.jsonl": (
        lambda path: path.write_bytes(b'{"a": 1, "a": 2, "y": 0}\n' * 9),
        "specified twice",
    ),
    "nested.jsonl": (
        lambda path: path.write_bytes(b'{"a": {"b": 1}, "y": 0}\n{"a": {"b": 2}, "y": 1}\n' * 9),
        "leave them out by --ignore",
    ),
    "target_of_lists.parquet": (
        lambda path: parquet_bytes(path, pa.table({"a": range(9), "y": [[1]] * 9})),
        "is of type list",
    ),
    "target_of_nulls.parquet": (
        lambda path: parquet_bytes(path, pa.table({"a": range(9), "y": pa.nulls(9)})),
        "has no value in any row",
    ),
    "beyond_int64.parquet": (
        lambda path: parquet_bytes(
            path,
            pa.table(
                {"a": range(9), "y": pa.array([2**64 - 1 - i for i in range(9)], pa.uint64())}
            ),
        ),
        "nearly every class has one row only",
    ),
    "quote.csv": (lambda path: path.write_bytes(GOOD + b'"1,2,3\n'), "quote.csv"),
    "junk.csv": (lambda path: path.write_bytes(os.urandom(4096)), "junk.csv"),
    "nul.csv": (lambda path: path.write_bytes(GOOD + b"1,\0,1\n"), "NUL byte in line 62"),
    "utf16.csv": (lambda path: path.write_bytes(GOOD.decode().encode("utf-16")), "UTF-16"),
    "latin1.csv": (
        lambda path: path.write_bytes(GOOD.replace(b"\n3,", b"\nM\xfcnchen,")),
        "not UTF-8 in line 5, column 1 ('a')",
    ),
    "twice.csv": (
        lambda path: path.write_bytes(b"a,a,y\n" + b"1,2,0\n2,1,1\n" * 9),
        "columns of the file 'twice.csv' have the name 'a'",
    ),
    "parquet.csv": (lambda path: path.write_bytes(parquet_bytes(path)), "is a Parquet file"),
    "gzip.csv": (lambda path: path.write_bytes(gzip.compress(GOOD)), "is a gzip file"),
    "plain.csv.gz": (lambda path: path.write_bytes(GOOD), "plain.csv.gz"),
    "cut.csv.gz": (lambda path: cut(path, gzip.compress(os.urandom(9) + GOOD * 99)), "cut.csv.gz"),
    "cut_later.csv.gz": (lambda path: cut(path, gzip.compress(GOOD * 99)), "cut_later.csv.gz"),
    "plain.csv.zst": (lambda path: path.write_bytes(GOOD), "plain.csv.zst"),
    "junk.parquet": (lambda path: path.write_bytes(os.urandom(4096)), "junk.parquet"),
    "cut.parquet": (lambda path: cut(path, parquet_bytes(path)), "cut.parquet"),
    "empty.parquet": (lambda path: path.write_bytes(b""), "is empty"),
    "no_rows.parquet": (lambda path: parquet_bytes(path, TABLE.slice(0, 0)), "no rows"),
    "damaged.parquet": (
        lambda path: path.write_bytes(parquet_bytes(path).replace(b"PAR1", b"PAR1\xff" * 9, 1)),
        "damaged.parquet",
    ),
    "junk.arrow": (lambda path: path.write_bytes(os.urandom(4096)), "junk.arrow"),
    "cut.feather": (
        lambda path: (feather.write_feather(TABLE, path), cut(path, path.read_bytes())),
        "cut.feather",
    ),
    "lists.parquet": (
        lambda path: parquet_bytes(path, TABLE.append_column("l", pa.array([[1]] * 60))),
        "'l'",
    ),
    "bad.jsonl": (
        lambda path: path.write_bytes(b'{"a": 1, "y": 0}\n{"a": 1, "y": }\n'),
        "line 2, column 15",
    ),
    "array.jsonl": (lambda path: path.write_bytes(b'{"a": 1, "y": 0}\n[1, 2]\n'), "line 2"),
    "mixed.jsonl": (
        lambda path: path.write_bytes(b'{"a": 1, "y": 0}\n{"a": "x", "y": 1}\n'),
        "mixed.jsonl",
    ),
    "empty.jsonl": (lambda path: path.write_bytes(b"\n\n"), "no JSON object"),
    "no_target.csv": (lambda path: path.write_bytes(GOOD.replace(b"y", b"Y", 1)), "no such column"),
    "all_missing.csv": (
        lambda path: path.write_bytes(b"a,y\n" + b"1,\n2,\n" * 9),
        "has no value in any row",
    ),
    "some_missing.csv": (lambda path: path.write_bytes(GOOD + b"1,2,\n"), "row 61"),
    "constant.csv": (lambda path: path.write_bytes(b"a,y\n" + b"1,5\n2,5\n" * 9), "one value only"),
    "infinite.csv": (lambda path: path.write_bytes(GOOD + b"1,2,inf\n"), "infinite in row 61"),
    "numbers_and_text.csv": (
        lambda path: path.write_bytes(
            b"a,y\n" + b"".join(b"%d,%d.5\n" % (i, i) for i in range(50)) + b"1,n.a.\n"
        ),
        "also the text 'n.a.'",
    ),
    "texts.csv": (
        lambda path: path.write_bytes(b"a,y\n" + b"".join(b"%d,t%d\n" % (i, i) for i in range(90))),
        "too many for classes",
    ),
    "one_row_a_class.csv": (
        lambda path: path.write_bytes(b"a,y\n" + b"".join(b"%d,c%d\n" % (i, i) for i in range(9))),
        "nearly every class has one row only",
    ),
    "names.csv": (
        lambda path: path.write_bytes("größe,y\n1,0\n2\n".encode()),
        "line 3: it has 1 value, but the header has 2 columns; column 2 ('y') is missing",
    ),
    "target_only.csv": (lambda path: path.write_bytes(b"y\n" + b"1\n0\n" * 9), "no column but"),
    "notes.txt": (lambda path: path.write_bytes(GOOD), "unknown kind"),
    "folder": (lambda path: path.mkdir(), "has no file whose name ends in"),
    "kinds": (
        lambda path: (
            path.mkdir(),
            (path / "a.csv").write_bytes(GOOD),
            parquet_bytes(path / "b.pq"),
        ),
        "of two kinds",
    ),
    "columns": (
        lambda path: (
            path.mkdir(),
            (path / "a.csv").write_bytes(GOOD),
            (path / "b.csv").write_bytes(GOOD.replace(b"b", b"c", 1)),
        ),
        "b.csv' has no column 'b'",
    ),
    "second_bad": (
        lambda path: (
            path.mkdir(),
            (path / "a.csv").write_bytes(GOOD),
            (path / "b.csv").write_bytes(GOOD + b"1\n"),
        ),
        "b.csv' is malformed in line 62",
    ),
}


@pytest.mark.parametrize("name", DATA)
def test_train(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write, part = DATA[name]
    write(tmp_path / name)
    before = content(tmp_path)
    code, line = run_failing("train", name, "-t", "y", "-q")
    assert code == 3, line
    assert part in line
    assert content(tmp_path) == before
