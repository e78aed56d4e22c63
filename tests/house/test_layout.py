"""The rules of the house that no linter knows: sizes of files and functions, and stray paths."""

import ast
import re
from pathlib import Path

import pytest

from support.paths import ROOT

SUFFIXES = {".py", ".cpp", ".h", ".cu", ".cuh", ".toml", ".txt", ".md", ".yml", ".yaml"}
FOLDERS = ("src", "cpp", "tests", "bench", "examples", "tools", "docs", ".ci", ".github")
LONGEST_FILE = {".py": 400, ".cpp": 350, ".h": 350, ".cu": 350, ".cuh": 350}
LONGEST_FUNCTION = 60


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


@pytest.mark.parametrize("path", source_files(), ids=name)
def test_file_is_short(path):
    limit = LONGEST_FILE.get(path.suffix)
    if limit is not None:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= limit


@pytest.mark.parametrize(
    "path", [path for path in source_files() if path.suffix == ".py"], ids=name
)
def test_functions_are_short(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    # Signatures of estimators are long by nature: users meet all parameters there.
    too_long = {
        function.name: code_lines(function)
        for function in functions
        if function.name != "__init__" and code_lines(function) > LONGEST_FUNCTION
    }
    assert not too_long


@pytest.mark.parametrize("path", source_files(), ids=name)
def test_file_needs_nothing_outside(path):
    """Nothing may need files beside the checkout; benchmarks use shared data where they exist."""
    allowed = path.is_relative_to(ROOT / "bench") or path == Path(__file__)
    stray = re.findall(r"\.\./shared|/home/\w+|/Users/\w+|/tmp/\w+", path.read_text("utf-8"))
    assert allowed or not stray
