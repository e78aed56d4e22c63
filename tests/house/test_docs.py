"""The pages for users: all examples run from top to bottom and print the text on the page."""

import contextlib
import io
import re

import pytest

from support.paths import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
EXAMPLES = [*PAGES, ROOT / "README.md", *sorted((ROOT / "examples").glob("*.py"))]
PUBLIC_MODULES = {"arboost", "arboost.plots"}


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_pages_are_found():
    assert PAGES
    without = {page.stem for page in PAGES if not blocks(page)}
    assert without == {"forests_differences", "glossary", "real_tables"}  # nothing to run


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, code in enumerate(blocks(page)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page.name}, example {number}", "exec"), names)
        expected = re.findall(r"^# prints: (.*)$", code, re.MULTILINE)
        assert printed.getvalue().splitlines() == expected


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_imports_are_public(page):
    """Users import names of the package, never its inner modules."""
    text = page.read_text("utf-8")
    inner = set(re.findall(r"^\s*(?:from|import) (arboost[\w.]*)", text, re.MULTILINE))
    assert inner <= PUBLIC_MODULES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists()


def test_glossary_names_exist():
    """A class or parameter that is renamed in the code is renamed in the glossary, too."""
    files = [path for folder in ("src", "cpp") for path in (ROOT / folder).rglob("*.*")]
    suffixes = {".py", ".h", ".cpp"}
    text = "\n".join(path.read_text("utf-8") for path in files if path.suffix in suffixes)
    known = set(re.findall(r"\w+", text)) | {path.stem for path in files}
    rows = re.findall(r"^\|[^|]+\|([^|]+)\|", (ROOT / "docs/glossary.md").read_text("utf-8"), re.M)
    named = {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) > 100
    assert named - known == set()
