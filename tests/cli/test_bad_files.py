"""Files that cannot be used: one line with the file, the exit code, and nothing left behind."""

import gzip
import os
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from support.command_line import run_quietly

GOOD = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i, i % 7, i % 2) for i in range(60))
TABLE = pa.table({"a": range(60), "b": [i % 7 for i in range(60)], "y": [i % 2 for i in range(60)]})


def _parquet(path, table=TABLE):
    parquet.write_table(table, path)
    return path.read_bytes()


def _cut(path, data, share=0.6):
    path.write_bytes(data[: int(len(data) * share)])


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
        "'a' (nested)",
    ),
    "target_of_lists.parquet": (
        lambda path: _parquet(path, pa.table({"a": range(9), "y": [[1]] * 9})),
        "is of type list",
    ),
    "target_of_nulls.parquet": (
        lambda path: _parquet(path, pa.table({"a": range(9), "y": pa.nulls(9)})),
        "has no value in any row",
    ),
    "beyond_int64.parquet": (
        lambda path: _parquet(
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
    "parquet.csv": (lambda path: path.write_bytes(_parquet(path)), "is a Parquet file"),
    "gzip.csv": (lambda path: path.write_bytes(gzip.compress(GOOD)), "is a gzip file"),
    "plain.csv.gz": (lambda path: path.write_bytes(GOOD), "plain.csv.gz"),
    "cut.csv.gz": (lambda path: _cut(path, gzip.compress(os.urandom(9) + GOOD * 99)), "cut.csv.gz"),
    "cut_later.csv.gz": (lambda path: _cut(path, gzip.compress(GOOD * 99)), "cut_later.csv.gz"),
    "plain.csv.zst": (lambda path: path.write_bytes(GOOD), "plain.csv.zst"),
    "junk.parquet": (lambda path: path.write_bytes(os.urandom(4096)), "junk.parquet"),
    "cut.parquet": (lambda path: _cut(path, _parquet(path)), "cut.parquet"),
    "empty.parquet": (lambda path: path.write_bytes(b""), "is empty"),
    "no_rows.parquet": (lambda path: _parquet(path, TABLE.slice(0, 0)), "no rows"),
    "damaged.parquet": (
        lambda path: path.write_bytes(_parquet(path).replace(b"PAR1", b"PAR1\xff" * 9, 1)),
        "damaged.parquet",
    ),
    "junk.arrow": (lambda path: path.write_bytes(os.urandom(4096)), "junk.arrow"),
    "cut.feather": (
        lambda path: (feather.write_feather(TABLE, path), _cut(path, path.read_bytes())),
        "cut.feather",
    ),
    "lists.parquet": (
        lambda path: _parquet(path, TABLE.append_column("l", pa.array([[1]] * 60))),
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
        lambda path: (path.mkdir(), (path / "a.csv").write_bytes(GOOD), _parquet(path / "b.pq")),
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
    before = _content(tmp_path)
    code, line = run_quietly("train", name, "-t", "y", "-q")
    assert code == 3, line
    assert part in line
    assert _content(tmp_path) == before


def test_enough_of_them():
    assert len(DATA) >= 30


def _content(folder):
    return sorted((path, path.lstat().st_size) for path in folder.rglob("*"))


def _damaged(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def _newer(path):
    data = bytearray(path.read_bytes())
    data[8:12] = (250).to_bytes(4, "little")
    path.write_bytes(data)


MODELS = {
    "missing": (lambda path: path.unlink(), "labels.arb"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "is a folder"),
    "empty": (lambda path: path.write_bytes(b""), "labels.arb"),
    "text": (lambda path: path.write_text("not a model"), "labels.arb"),
    "cut": (lambda path: _cut(path, path.read_bytes()), "labels.arb"),
    "damaged": (_damaged, "labels.arb"),
    "newer": (_newer, "labels.arb"),
    "json": (lambda path: path.write_text('{"trees": 3}'), "labels.arb"),
    "table": (lambda path: shutil.copy("rows.csv", path), "labels.arb"),
}
COMMANDS = ("predict labels.arb rows.csv -o out.csv -q", "inspect labels.arb -q")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("command", COMMANDS)
def test_model(name, command, here):
    write, part = MODELS[name]
    write(here / "labels.arb")
    before = _content(here)
    code, line = run_quietly(*command.split())
    assert code == 4, line
    assert part in line
    assert _content(here) == before


ROWS = {
    "no_column": ("size,price\n1,2\n", "no column 'city'"),
    "nothing": ("", "is empty"),
    "text": ("size,city\n1,Rome\nlarge,Oslo\n", "'large' in line 3, column 1 ('size')"),
    "ragged": ("size,city\n1,Rome\n2\n", "line 3"),
    "other_letters": ("size,city\n1,Rome\n日本,Oslo\n", "'日本' in line 3, column 1"),
    "two_lines": ('size,city\n1,Rome\n"a\nb",Oslo\n', "in line 3, column 1 ('size')"),
}


@pytest.mark.parametrize("name", ROWS)
def test_predict(name, here):
    text, part = ROWS[name]
    (here / "new.csv").write_text(text)
    before = _content(here)
    code, line = run_quietly("predict", "labels.arb", "new.csv", "-o", "out.csv", "-q")
    assert code == 3, line
    assert part in line
    assert _content(here) == before


@pytest.mark.parametrize(
    ("value", "part"),
    [("", "row 3"), ("-1", "row 3"), ("x", "of type string"), ("inf", "row 3")],
)
def test_weights(value, part, here):
    lines = (here / "rows.csv").read_text().splitlines()
    lines[3] = lines[3].rpartition(",")[0] + f",{value}"
    (here / "rows.csv").write_text("\n".join(lines) + "\n")
    code, line = run_quietly("train", "rows.csv", "-t", "label", "--weight", "w", "-q")
    assert code == 3
    assert part in line


def test_rare_class_in_folds(here):
    with open("rows.csv", "a") as file:
        file.write("300,1,Rome,2024-01-30,1,rare,1\n")
    code, line = run_quietly("train", "rows.csv", "-t", "label", "--folds", "3", "-q")
    assert code == 3
    assert "a class has 1 row, fewer than --folds 3" in line


def test_class_of_the_latest_rows_only(here):
    with open("rows.csv", "a") as file:
        file.write("300,1,Rome,2024-01-30,1,rare,1\n" * 30)
    args = ("--time-column", "when", "--n-estimators", "2", "-q")
    code, line = run_quietly("train", "rows.csv", "-t", "label", *args)
    assert code == 3
    assert "'rare'" in line


def test_evaluate_without_its_target(here):
    lines = (here / "rows.csv").read_text().replace("label", "answer", 1)
    (here / "rows.csv").write_text(lines)
    code, line = run_quietly("evaluate", "labels.arb", "rows.csv", "-q")
    assert code == 3
    assert "'label'" in line


def test_evaluate_unknown_labels(here):
    lines = (here / "rows.csv").read_text().replace(",low,", ",medium,")
    (here / "rows.csv").write_text(lines)
    code, line = run_quietly("evaluate", "labels.arb", "rows.csv", "-q")
    assert code == 3
    assert "medium" in line


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("train rows.csv -t label -q -o nowhere/model.arb", 5, "does not exist"),
        ("train rows.csv -t label -q -o folder.arb", 5, "is a folder"),
        ("predict labels.arb rows.csv -o nowhere/out.csv -q", 5, "does not exist"),
        ("predict labels.arb rows.csv -o rows.csv -q", 5, "not overwritten"),
        ("explain labels.arb rows.csv -o rows.csv -q", 5, "not overwritten"),
        ("convert labels.arb labels.arb -q", 5, "not overwritten"),
        ("train rows.csv -t label -q -o /proc/model.arb", 5, "/proc/model.arb"),
        ("predict labels.arb rows.csv -o /dev/null --output-format csv -q", 5, "no file but a"),
    ],
)
def test_output(line, code, part, here):
    (here / "folder.arb").mkdir()
    before = _content(here)
    found, message = run_quietly(*line.split())
    assert found == code, message
    assert part in message
    assert _content(here) == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads every file")
def test_no_permission(here):
    (here / "rows.csv").chmod(0)
    code, line = run_quietly("train", "rows.csv", "-t", "label", "-q")
    assert code == 3
    assert "Permission denied" in line


def test_full_disk(here, monkeypatch):
    from arboost import write

    class Full:
        def __init__(self, file):
            self._file = file

        def __getattr__(self, name):
            return getattr(self._file, name)

        def write(self, data):
            raise OSError(28, "No space left on device")

    real = write._open_scratch

    def opened(target):
        scratch, file = real(target)
        return scratch, Full(file)

    monkeypatch.setattr(write, "_open_scratch", opened)
    before = _content(here)
    for line in (
        "train rows.csv -t label -q -o new.arb --n-estimators 2",
        "predict labels.arb rows.csv -o out.csv -q",
        "predict labels.arb rows.csv -o out.parquet -q",
        "explain labels.arb rows.csv -o shap.parquet -q",
        "convert labels.arb model.json -q",
        "convert labels.arb model.h -q",
    ):
        code, message = run_quietly(*line.split())
        assert code == 5, message
        assert "No space left on device" in message
        assert _content(here) == before


def test_random_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    suffixes = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".csv.gz", ".csv.zst", ".arb")
    for number in range(40):
        name = f"junk{number}{suffixes[number % len(suffixes)]}"
        alphabet = list(b'0123456789,,,\n\n"abc.') if number % 3 else list(range(256))
        (tmp_path / name).write_bytes(bytes(rng.choice(alphabet, rng.integers(1, 400)).tolist()))
        command = ["inspect", name] if name.endswith(".arb") else ["train", name, "-t", "y"]
        code, line = run_quietly(*command, "-q")
        assert code in (3, 4), line
    assert not [name for name in os.listdir(tmp_path) if not name.startswith("junk")]
