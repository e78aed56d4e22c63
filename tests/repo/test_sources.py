"""Rules of the sources that no linter checks: stray paths, docstrings, base classes."""

import ast
import re
from pathlib import Path

from sklearn.base import BaseEstimator

import arboost
from support.paths import ROOT

SUFFIXES = {".py", ".cpp", ".h", ".cu", ".cuh", ".toml", ".txt", ".md", ".yml", ".yaml"}
FOLDERS = ("src", "cpp", "tests", "bench", "examples", "tools", "docs", ".ci", ".github")
MOST_CLASSES = 4  # of arboost in the method resolution order of an estimator


def source_files():
    """Files of the checkout, by their names in it."""
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    return {
        path.relative_to(ROOT).as_posix(): path
        for path in [*ROOT.iterdir(), *inside]
        if path.is_file()
        and (path.suffix in SUFFIXES or path.name in {"Makefile", "run"})
        and "results" not in path.parts
    }


def test_no_file_needs_anything_outside():
    """No file may need files outside the checkout; only benchmarks use shared data, if present."""
    stray = {
        name: paths
        for name, path in source_files().items()
        if not name.startswith("bench/")
        and path != Path(__file__)
        and (
            paths := re.findall(
                r"\.\./shared|/home/\w+|/Users/\w+|/tmp/\w+", path.read_text("utf-8")
            )
        )
    }
    assert stray == {}


def first_lines(path):
    """Yield the first line of each docstring of a module, with the name of its owner."""
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, owners) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "module"), text.splitlines()[0]


def test_docstrings_begin_with_a_noun_or_verb():
    """The first line names the object or the result, in place of a clause "what ..."."""
    headless = [
        (path.name, owner, line)
        for path in (ROOT / "src" / "arboost").rglob("*.py")
        for owner, line in first_lines(path)
        if line.startswith(("What ", "Return what "))
    ]
    assert headless == []


def test_estimators_have_few_base_classes():
    public = [getattr(arboost, name) for name in arboost.__all__]
    estimators = [one for one in public if isinstance(one, type) and issubclass(one, BaseEstimator)]
    assert len(estimators) >= 16
    for estimator in estimators:
        classes = [one for one in estimator.__mro__ if one.__module__.split(".")[0] == "arboost"]
        assert len(classes) <= MOST_CLASSES, classes
