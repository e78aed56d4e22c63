"""Files that cannot be used: one line with the file, the exit code, and nothing left behind."""

import os
import shutil

import numpy as np
import pytest

from support.bad_files import content, cut
from support.command_line import run_failing


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
    "cut": (lambda path: cut(path, path.read_bytes()), "labels.arb"),
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
    before = content(here)
    code, line = run_failing(*command.split())
    assert code == 4, line
    assert part in line
    assert content(here) == before


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
    before = content(here)
    code, line = run_failing("predict", "labels.arb", "new.csv", "-o", "out.csv", "-q")
    assert code == 3, line
    assert part in line
    assert content(here) == before


@pytest.mark.parametrize(
    ("value", "part"),
    [("", "row 3"), ("-1", "row 3"), ("x", "of type string"), ("inf", "row 3")],
)
def test_weights(value, part, here):
    lines = (here / "rows.csv").read_text().splitlines()
    lines[3] = lines[3].rpartition(",")[0] + f",{value}"
    (here / "rows.csv").write_text("\n".join(lines) + "\n")
    code, line = run_failing("train", "rows.csv", "-t", "label", "--weight", "w", "-q")
    assert code == 3
    assert part in line


def test_rare_class_in_folds(here):
    with open("rows.csv", "a") as file:
        file.write("300,1,Rome,2024-01-30,1,rare,1\n")
    code, line = run_failing("train", "rows.csv", "-t", "label", "--folds", "3", "-q")
    assert code == 3
    assert "classes of one row" in line
    assert "rare" in line


def test_class_of_the_latest_rows_only(here):
    with open("rows.csv", "a") as file:
        file.write("300,1,Rome,2024-01-30,1,rare,1\n" * 30)
    args = ("--time-column", "when", "--n-estimators", "2", "-q")
    code, line = run_failing("train", "rows.csv", "-t", "label", *args)
    assert code == 3
    assert "'rare'" in line


def test_evaluate_without_its_target(here):
    lines = (here / "rows.csv").read_text().replace("label", "answer", 1)
    (here / "rows.csv").write_text(lines)
    code, line = run_failing("evaluate", "labels.arb", "rows.csv", "-q")
    assert code == 3
    assert "'label'" in line


def test_evaluate_unknown_labels(here):
    lines = (here / "rows.csv").read_text().replace(",low,", ",medium,")
    (here / "rows.csv").write_text(lines)
    code, line = run_failing("evaluate", "labels.arb", "rows.csv", "-q")
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
        ("predict labels.arb rows.csv -o /dev/null --output-format csv -q", 5, "a device or pipe"),
    ],
)
def test_output(line, code, part, here):
    (here / "folder.arb").mkdir()
    before = content(here)
    found, message = run_failing(*line.split())
    assert found == code, message
    assert part in message
    assert content(here) == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads every file")
def test_no_permission(here):
    (here / "rows.csv").chmod(0)
    code, line = run_failing("train", "rows.csv", "-t", "label", "-q")
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

    def open_full(path, mode):
        return Full(open(path, mode))

    monkeypatch.setattr(write, "open", open_full, raising=False)
    before = content(here)
    for line in (
        "train rows.csv -t label -q -o new.arb --n-estimators 2",
        "predict labels.arb rows.csv -o out.csv -q",
        "predict labels.arb rows.csv -o out.parquet -q",
        "explain labels.arb rows.csv -o shap.parquet -q",
        "convert labels.arb model.json -q",
        "convert labels.arb model.h -q",
    ):
        code, message = run_failing(*line.split())
        assert code == 5, message
        assert "No space left on device" in message
        assert content(here) == before


def test_random_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    suffixes = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".csv.gz", ".csv.zst", ".arb")
    for number in range(40):
        name = f"junk{number}{suffixes[number % len(suffixes)]}"
        alphabet = list(b'0123456789,,,\n\n"abc.') if number % 3 else list(range(256))
        (tmp_path / name).write_bytes(bytes(rng.choice(alphabet, rng.integers(1, 400)).tolist()))
        command = ["inspect", name] if name.endswith(".arb") else ["train", name, "-t", "y"]
        code, line = run_failing(*command, "-q")
        assert code in (3, 4), line
    assert not [name for name in os.listdir(tmp_path) if not name.startswith("junk")]
