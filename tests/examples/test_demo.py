"""The demo: its text, and the files that it leaves."""

import os
import re
import subprocess
import sys

import pytest

import arboost
from support.paths import ROOT

DEMO = ROOT / "examples/demo.py"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return the text of a run whose output is no terminal, and the folder of its files."""
    folder = tmp_path_factory.mktemp("demo") / "new"
    text = subprocess.run(
        [sys.executable, "-W", "error", DEMO, folder],
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "40"},
    ).stdout
    return text, folder


def test_text(shown):
    text, _ = shown
    assert "\x1b" not in text
    *lines, path = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert re.findall(r"^(\d)  \w", text, re.MULTILINE) == list("123456")
    models = re.findall(r"^(\w+)(?: \*)? +0\.\d{3} +0\.\d{3} +[\d.]+ s", text, re.MULTILINE)
    assert {"gradient_boosting", "adaboost", "random_forest", "stacking", "baseline"} <= set(models)
    assert models[-1] == "baseline"
    assert float(re.search(r"test rows: (\S+);", text)[1]) > 0.7
    assert "without scikit-learn" in text
    assert "equal to the last bit" in text
    assert path.endswith("report.html")


def test_files(shown):
    text, folder = shown
    names = {path.name for path in folder.iterdir()}
    assert names == {"flights.arb", "report.html", "rows.json"}
    assert text.splitlines()[-1] == str((folder / "report.html").resolve())
    assert arboost.load(folder / "flights.arb").classes.tolist() == ["no", "yes"]


def test_length():
    assert len(DEMO.read_text("utf-8").splitlines()) <= 150
