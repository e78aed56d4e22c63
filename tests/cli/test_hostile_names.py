"""Names, labels and paths of strangers: a terminal and a spreadsheet get none of their commands."""

import csv
import json
import os
import re

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import arboost
from support.command_line import run, run_failing

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
FEATURE, LABEL = f"size{ESCAPE}", f"yes{ESCAPE}"
_ALLOWED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose names and labels hold commands of terminals and spreadsheets, and a model."""
    path = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    table = pyarrow.table(
        {
            FEATURE: values,
            "=town": rng.choice([f"Rome{ESCAPE}", "@Bonn", "-Oslo"], 200),
            "y": np.where(values > 0, LABEL, "=HYPERLINK(1)"),
        }
    )
    parquet.write_table(table, path / "rows.parquet")
    result = run("train", path / "rows.parquet", "-t", "y", "-o", path / "m.arb", "-q")
    assert result.code == 0, result.err
    return path


@pytest.fixture
def inside(folder, tmp_path, monkeypatch):
    for name in ("rows.parquet", "m.arb"):
        os.link(folder / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        ["train", "rows.parquet", "-t", "y", "-o", "n.arb"],
        ["train", "rows.parquet", "-t", "y", "-o", "n.arb", "-m", "voting"],
        ["evaluate", "m.arb", "rows.parquet"],
        ["evaluate", "m.arb", "rows.parquet", "--metric", f"x{ESCAPE}"],
        ["explain", "m.arb"],
        ["explain", "m.arb", "rows.parquet"],
        ["explain", "m.arb", "rows.parquet", "--row", "0"],
        ["explain", "m.arb", "rows.parquet", "--row", "0", "--class", f"x{ESCAPE}"],
        ["inspect", "m.arb"],
        ["inspect", "m.arb", "--tree", "0"],
        ["inspect", "rows.parquet"],
        ["report", "m.arb", "rows.parquet", "-o", "page.html"],
        ["compare", "rows.parquet", "-t", "y", "-m", "baseline", "--folds", "2"],
        ["tune", "rows.parquet", "-t", "y", "-o", "n.arb", "--trials", "1", "-m", "decision_tree"],
        ["predict", "m.arb", "rows.parquet", "-o", f"out{ESCAPE.replace('/', '')}.csv"],
    ],
    ids=lambda line: "-".join(one for one in line if one.isascii() and one.isalpha()),
)
def test_terminal_gets_no_commands(inside, line):
    for more in ([], ["--json"]):
        result = run(*line, *more)
        assert not _ALLOWED.search(result.out + result.err), result
        if result.code == 0 and more:
            json.loads(result.out)


def test_json_keeps_the_names(inside):
    rows = json.loads(run("explain", "m.arb", "--json").out)["importances"]
    assert FEATURE in [row["feature"] for row in rows]


def test_escapes_are_shown(inside):
    assert r"size\x1b]0;owned\x07" in run("inspect", "m.arb", "--tree", "0").out
    assert r"yes\x1b]0;" in run("evaluate", "m.arb", "rows.parquet").out


def _cells(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter="\t" if path.endswith("tsv") else ","))


@pytest.mark.parametrize("output", ["out.csv", "out.tsv"])
def test_safe_csv(inside, output):
    line = ["predict", "m.arb", "rows.parquet", "--keep", f"=town,{FEATURE}", "-o", output]
    assert run(*line).code == 0
    plain = _cells(output)
    assert run(*line, "--safe-csv").code == 0
    safe = _cells(output)
    assert plain[0][0] == "=town"
    assert safe[0][0] == "'=town"
    assert {row[2] for row in safe[1:]} == {LABEL, "'=HYPERLINK(1)"}
    for old, new in zip(plain[1:], safe[1:], strict=True):
        assert new[1] == old[1]  # numbers, of which many are negative
        for one, other in zip(old, new, strict=True):
            assert other in (one, f"'{one}")


def test_safe_csv_of_shap_values(inside):
    assert run("explain", "m.arb", "rows.parquet", "-o", "values.csv", "--safe-csv").code == 0
    assert "'=town" in _cells("values.csv")[0]


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl"])
def test_safe_csv_is_for_csv(inside, name):
    code, line = run_failing("predict", "m.arb", "rows.parquet", "-o", name, "--safe-csv")
    assert code == 2
    assert "--safe-csv is for CSV and TSV output" in line
    model = arboost.load("m.arb")
    with pytest.raises(ValueError, match="escape_formulas=True is for CSV and TSV files"):
        model.predict_files("rows.parquet", name, escape_formulas=True)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (["predict", "m.csv", "rows.parquet", "-o", "m.csv"], "m.csv"),
        (["predict", "m.arb", "rows.parquet", "-o", "m.arb", "--output-format", "csv"], "m.arb"),
        (["explain", "m.csv", "rows.parquet", "-o", "m.csv"], "m.csv"),
        (["report", "m.html", "rows.parquet", "-o", "m.html"], "m.html"),
        (
            ["report", "m.arb", "rows.parquet", "-o", "link.html", "--compare", "m.html"],
            "link.html",
        ),
        (["report", "m.arb", "rows.parquet", "-o", "m.html", "--compare", "m.html"], "m.html"),
        (
            ["report", "m.arb", "rows.parquet", "-o", "t.html", "--train", "t.html"],
            "t.html",
        ),
        (["convert", "m.json", "m.json"], "m.json"),
        (["train", "t.json", "-t", "y", "-o", "t.json", "--format", "parquet"], "t.json"),
        (["train", "rows.parquet", "-t", "y", "-o", "s.json", "--config", "s.json"], "s.json"),
        (
            ["tune", "rows.parquet", "-t", "y", "--params-out", "s.toml", "--config", "s.toml"],
            "s.toml",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_inputs_are_not_overwritten(inside, line, read):
    for name in ("m.csv", "m.html", "m.json"):
        os.link("m.arb", name)
    os.symlink("m.html", "link.html")
    for name in ("t.html", "t.json"):
        os.link("rows.parquet", name)
    for name in ("s.toml", "s.json"):
        (inside / name).touch()
    before = (inside / read).read_bytes()
    more = {"report": ["--format", "parquet"], "tune": ["-o", "n.arb", "--trials", "1"]}
    result = run(*line, *more.get(line[0], []))
    assert result.code == 5, result
    assert f"{read!r} is one of the files to read, so it is not overwritten" in result.err
    assert (inside / read).read_bytes() == before
