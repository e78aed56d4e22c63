"""Pages say what is true: links, names, equations, papers and the code that they refer to exist."""

import inspect
import re

import pytest

import arboost
from support.claims import claims, falsehoods
from support.pages import PAGES, prose
from support.paths import ROOT

THEORY = ROOT / "docs" / "theory"
THEORY_PAGES = [page for page in sorted(THEORY.glob("*.md")) if page.stem != "index"]
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

NAME = r"[A-Z][a-z]+(?:-[A-Z][a-z]+)*"
# First author, other authors, year, the rest of the citation up to the end of its clause.
CITATION = re.compile(
    rf"\b(?P<author>{NAME})(?:,? (?:and )?(?:{NAME}|others|et al\.))*,? \(?"
    r"(?P<year>(?:19|20)\d\d)\b\)?(?P<place>(?:[^;.()]|\.\d)*)"
)
PLACE = re.compile(r"\b(equation|algorithm|theorem)s? (\d[\d.]*\d|\d)(?: (?:to|and) (\d+))?")
NOT_THEORY = {("Reingold", "1981")}  # the layout of pictures of trees


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/developers/design.md"])
def test_architecture_is_true(page):
    text = (ROOT / page).read_text("utf-8")
    assert len(claims(text)) >= 30
    assert falsehoods(text) == []


def test_blocks_have_a_language():
    """A block that is only shown is text, py or c, so that no block is skipped silently."""
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text("utf-8"), re.MULTILINE)
        assert all(fences[::2]), page.name
        assert not any(fences[1::2]), page.name


def test_imports_are_public():
    """Users import names of the package, never its inner modules."""
    texts = [page.read_text("utf-8") for page in EXAMPLES]
    pattern = re.compile(r"^\s*(?:from|import) (arboost[\w.]*)", re.MULTILINE)
    assert {name for text in texts for name in pattern.findall(text)} <= PUBLIC_MODULES


def test_help_names_no_inner_module():
    """Help of public classes, their methods, and functions refers to public names."""
    inner = "|".join(path.stem for path in (ROOT / "src/arboost").iterdir() if path.stem != "plots")
    public = [getattr(arboost, name) for name in arboost.__all__]
    members = [
        getattr(one, name) for one in public for name in dir(one) if not name.startswith("_")
    ]
    for documented in (*public, *members):
        assert not re.search(rf"`arboost\.({inner})\b", inspect.getdoc(documented) or "")


def anchors(page):
    """Return the names of the headings of a page, as in links: lower case, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", prose(page.read_text("utf-8")), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def broken_links(page):
    """Return the links of a page to files and headings that do not exist."""
    broken = []
    for link in re.findall(r"\]\(([^)]+)\)", prose(page.read_text("utf-8"))):
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        if link.startswith("https://"):
            continue
        if not target.exists() or (heading and heading not in anchors(target)):
            broken.append(link)
    return broken


def test_links():
    assert {page.name: links for page in LINKED if (links := broken_links(page))} == {}


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


def tags(text):
    """Return the numbers of the equations of a page, in their order."""
    return [int(tag) for tag in re.findall(r"\\tag\{(\d+)\}", prose(text))]


def linked(page):
    """Return the text of a page and of the theory pages that it links to."""
    text = prose(page.read_text("utf-8"))
    names = {page.name, *re.findall(r"\]\((\w+\.md)", text)}
    return {name: (THEORY / name).read_text("utf-8") for name in names if (THEORY / name).exists()}


def papers(text):
    """Return first author and year of each paper in the list at the end of a page."""
    listed = text.partition("## Papers")[2]
    return set(re.findall(rf"^- ({NAME})[^(\n]*\(((?:19|20)\d\d)\)", listed, re.MULTILINE))


def citations(text):
    """Return (author, year, [(kind, number)]) of each citation of a source file."""
    joined = re.sub(r"\s*\n\s*(?://|#)?\s*", " ", text)
    found = []
    for match in CITATION.finditer(joined):
        places = []
        for kind, first, last in PLACE.findall(match["place"]):
            numbers = range(int(first), int(last) + 1) if last else [first]
            places += [(kind, str(number)) for number in numbers]
        found.append((match["author"], match["year"], places))
    return found


def cited():
    """Return all citations of the code."""
    files = [path for folder in ("src", "cpp") for path in (ROOT / folder).rglob("*.*")]
    texts = [path.read_text("utf-8") for path in files if path.suffix in {".py", ".h", ".cpp"}]
    return [citation for text in texts for citation in citations(text)]


@pytest.mark.parametrize("page", THEORY_PAGES, ids=lambda page: page.stem)
def test_code_exists(page):
    text = page.read_text("utf-8")
    table = text.partition("## Where in the code")[2].partition("\n## ")[0]
    assert len(claims(table)) >= 3
    assert falsehoods(text) == []


@pytest.mark.parametrize("page", THEORY_PAGES, ids=lambda page: page.stem)
def test_equations(page):
    """Numbers are unique and ascend, and references are to equations of linked pages."""
    text = page.read_text("utf-8")
    assert tags(text)
    assert tags(text) == sorted(set(tags(text)))
    known = {number for other in linked(page).values() for number in tags(other)}
    referred = re.findall(r"equations? \((\d+)\)(?: (?:to|and) \((\d+)\))?", prose(text))
    assert {int(number) for pair in referred for number in pair if number} <= known


def test_papers_of_the_code():
    """Each paper that a comment cites is in the list of a page."""
    listed = set().union(*(papers(page.read_text("utf-8")) for page in THEORY_PAGES))
    named = {(author, year) for author, year, _ in cited()}
    assert len(named) > 15
    assert named - listed == NOT_THEORY


def test_places_of_the_code():
    """Equations, algorithms and theorems that a comment cites are on a page with this paper."""
    texts = [page.read_text("utf-8") for page in THEORY_PAGES]
    checked = 0
    for author, year, places in cited():
        pages = [text for text in texts if (author, year) in papers(text)]
        for kind, number in places:
            words = rf"{kind} \(?{re.escape(number)}\b"
            if kind == "equation":
                words += rf"|\\tag\{{{number}\}}"
            assert any(re.search(words, text) for text in pages), (author, kind, number)
            checked += 1
    assert checked > 10


def test_statements_have_code_and_tests():
    rows = re.findall(
        r"^\| [^|]+ \| `([^`]+)` \| `([^`]+)` `(\w+)` \|$",
        (ROOT / "docs" / "developers" / "statements.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(rows) > 100
    for code, file, test in rows:
        folder = ROOT if code.startswith("cpp/") else ROOT / "src" / "arboost"
        assert (folder / code).is_file(), code
        assert f"def test_{test}(" in (ROOT / "tests" / file).read_text("utf-8"), f"{file} {test}"
