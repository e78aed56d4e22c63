"""The theory pages and the code lead to each other: names, equations, papers and pictures exist."""

import importlib.util
import re

import pytest

from support.claims import claims, falsehoods
from support.paths import ROOT

THEORY = ROOT / "docs" / "theory"
IMAGES = ROOT / "docs" / "images"
PAGES = [page for page in sorted(THEORY.glob("*.md")) if page.stem != "index"]
LARGEST_PICTURE = 60_000  # bytes

NAME = r"[A-Z][a-z]+(?:-[A-Z][a-z]+)*"
# First author, other authors, year, the rest of the citation up to the end of its clause.
CITATION = re.compile(
    rf"\b(?P<author>{NAME})(?:,? (?:and )?(?:{NAME}|others|et al\.))*,? \(?"
    r"(?P<year>(?:19|20)\d\d)\b\)?(?P<place>(?:[^;.()]|\.\d)*)"
)
PLACE = re.compile(r"\b(equation|algorithm|theorem)s? (\d[\d.]*\d|\d)(?: (?:to|and) (\d+))?")
NOT_THEORY = {("Reingold", "1981")}  # the layout of pictures of trees


def prose(text):
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_exists(page):
    text = page.read_text("utf-8")
    table = text.partition("## Where in the code")[2].partition("\n## ")[0]
    assert len(claims(table)) >= 3
    assert falsehoods(text) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
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
    listed = set().union(*(papers(page.read_text("utf-8")) for page in PAGES))
    named = {(author, year) for author, year, _ in cited()}
    assert len(named) > 15
    assert named - listed == NOT_THEORY


def test_places_of_the_code():
    """Equations, algorithms and theorems that a comment cites are on a page with this paper."""
    texts = [page.read_text("utf-8") for page in PAGES]
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


def test_citations():
    text = (
        "// As in gain (Chen and Guestrin 2016,\n// equation 7, without its factor); then\n"
        "# Lundberg and others 2020, algorithm 3. Breiman et al. 1984, theorem 4.5;\n"
        "those of Chen and Guestrin (2016), equations 5 to 7, and 2016 is no citation.\n"
    )
    assert citations(text) == [
        ("Chen", "2016", [("equation", "7")]),
        ("Lundberg", "2020", [("algorithm", "3")]),
        ("Breiman", "1984", [("theorem", "4.5")]),
        ("Chen", "2016", [("equation", "5"), ("equation", "6"), ("equation", "7")]),
    ]


def test_pictures(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("make_theory", IMAGES / "make_theory.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert len(capsys.readouterr().out.splitlines()) == len(written)
    shown = "".join(page.read_text("utf-8") for page in PAGES)
    for name in written:
        assert f"(../images/{name})" in shown
        assert (IMAGES / name).stat().st_size < LARGEST_PICTURE
        # Bytes differ between versions of matplotlib, so only the amount of detail is checked.
        assert (tmp_path / name).read_text("utf-8").count("<path") > 10


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
