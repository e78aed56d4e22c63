"""The pages for users: all examples run from top to bottom and print the text on the page."""

import contextlib
import inspect
import io
import re

import pytest

import arboost
from support.paths import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKED = [*PAGES, *sorted(ROOT.glob("*.md")), ROOT / "bench" / "README.md"]
EXAMPLES = [*PAGES, ROOT / "README.md", *sorted((ROOT / "examples").glob("*.py"))]
PUBLIC_MODULES = {
    "arboost",
    "arboost.compat.sklearn",
    "arboost.dask",
    "arboost.plots",
    "arboost.spark",
}


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


@pytest.mark.parametrize("name", arboost.__all__)
def test_help_names_no_inner_module(name):
    """Help of public classes, their methods, and functions refers to public names."""
    public = getattr(arboost, name)
    members = [getattr(public, one) for one in dir(public) if not one.startswith("_")]
    inner = "|".join(path.stem for path in (ROOT / "src/arboost").iterdir() if path.stem != "plots")
    for documented in (public, *members):
        assert not re.search(rf"`arboost\.({inner})\b", inspect.getdoc(documented) or "")


def prose(page):
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """Return the names of the headings of a page, as in links: lower case, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def broken_links(page):
    """Return the links of a page to files and headings that do not exist."""
    broken = []
    for link in re.findall(r"\]\(([^)]+)\)", prose(page)):
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        if link.startswith("https://"):
            continue
        if not target.exists() or (heading and heading not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_links(page):
    assert broken_links(page) == []


def test_broken_links(tmp_path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text("# R2: `AdaBoost.R2`\n[a](#r2-adaboostr2) [b](#r2) [c](other.md#there)\n")
    other.write_text("```\n# there\n```\n[d](page.md) [e](gone.md) [f](https://example.org)\n")
    assert broken_links(page) == ["#r2", "other.md#there"]
    assert broken_links(other) == ["gone.md"]


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
