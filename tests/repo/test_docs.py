"""The pages for users: all blocks of code run from top to bottom and print the text on the page."""

import inspect
import re
import shutil

import pytest

import arboost
from support import pages
from support.paths import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
LINKED = [*PAGES, *sorted(ROOT.glob("*.md")), ROOT / "bench" / "README.md"]
EXAMPLES = [*PAGES, ROOT / "README.md", *sorted((ROOT / "examples").glob("*.py"))]
PUBLIC_MODULES = {
    "arboost",
    "arboost.compat.sklearn",
    "arboost.dask",
    "arboost.plots",
    "arboost.ray",
    "arboost.spark",
}

# Folders with pages of tables and lists, without code.
WITHOUT_CODE = {"benchmarks", "developers", "gallery", "reference"}


def page_name(page):
    return page.relative_to(ROOT).with_suffix("").as_posix()


def has_code(page):
    return any(language == "python" for language, _ in pages.blocks(page.read_text("utf-8")))


def test_pages_are_found():
    without = {page.parent.name for page in PAGES if not has_code(page) and page.stem != "index"}
    assert len(PAGES) > 40
    assert without <= WITHOUT_CODE


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    pages.run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_blocks_have_a_language(page):
    """A block that is only shown is text, py or c, so that no block is left out in silence."""
    fences = re.findall(r"^```(.*)$", page.read_text("utf-8"), re.MULTILINE)
    assert all(fences[::2])
    assert not any(fences[1::2])


@pytest.mark.parametrize("page", EXAMPLES, ids=page_name)
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


@pytest.mark.parametrize("page", LINKED, ids=page_name)
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
    glossary = (ROOT / "docs/developers/glossary.md").read_text("utf-8")
    rows = re.findall(r"^\|[^|]+\|([^|]+)\|", glossary, re.M)
    named = {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) > 100
    assert named - known == set()
