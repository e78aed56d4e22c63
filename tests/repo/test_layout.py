"""Rules of the house that no linter checks: sizes, first lines of docstrings, stray paths."""

import ast
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import arboost
from support.paths import ROOT

SUFFIXES = {".py", ".cpp", ".h", ".cu", ".cuh", ".toml", ".txt", ".md", ".yml", ".yaml"}
FOLDERS = ("src", "cpp", "tests", "bench", "examples", "tools", "docs", ".ci", ".github")
LONGEST_FUNCTION = 60
MOST_CLASSES = 4  # of arboost in the method resolution order of an estimator

PACKAGE = ROOT / "src" / "arboost"
ESTIMATORS = {
    name: public
    for name, public in ((name, getattr(arboost, name)) for name in arboost.__all__)
    if isinstance(public, type) and issubclass(public, BaseEstimator)
}


def source_files():
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    return sorted(
        path
        for path in [*ROOT.iterdir(), *inside]
        if path.is_file()
        and (path.suffix in SUFFIXES or path.name in {"Makefile", "run"})
        and "results" not in path.parts
    )


def name(path):
    return path.relative_to(ROOT).as_posix()


def code_lines(function):
    """Return the lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


@pytest.mark.parametrize(
    "path", [path for path in source_files() if path.suffix == ".py"], ids=name
)
def test_functions_are_short(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    # The signature of an estimator lists all its parameters.
    too_long = {
        function.name: code_lines(function)
        for function in functions
        if function.name != "__init__" and code_lines(function) > LONGEST_FUNCTION
    }
    assert not too_long


@pytest.mark.parametrize("path", source_files(), ids=name)
def test_file_needs_nothing_outside(path):
    """No file may need files outside the checkout; only benchmarks use shared data, if present."""
    allowed = path.is_relative_to(ROOT / "bench") or path == Path(__file__)
    stray = re.findall(r"\.\./shared|/home/\w+|/Users/\w+|/tmp/\w+", path.read_text("utf-8"))
    assert allowed or not stray


def first_lines(path):
    """Yield the first line of each docstring of a module, with the name of its owner."""
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, owners) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "module"), text.splitlines()[0]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=name)
def test_docstrings_begin_with_a_noun_or_verb(path):
    """The first line names the object or the result, in place of a clause "what ..."."""
    headless = {
        owner: line
        for owner, line in first_lines(path)
        if line.startswith(("What ", "Return what "))
    }
    assert not headless


def test_estimators_are_found():
    assert len(ESTIMATORS) >= 16


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_have_few_base_classes(estimator):
    order = ESTIMATORS[estimator].__mro__
    own = [cls.__name__ for cls in order if cls.__module__.partition(".")[0] == "arboost"]
    assert len(own) <= MOST_CLASSES, own
