"""The site of the documentation: a complete reference, and built pages that need no network."""

import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

import arboost
import arboost.compat.sklearn
import arboost.dask
import arboost.plots
from arboost.losses import CLASSIFICATION, REGRESSION
from arboost.losses.metrics import PROBABILITY_METRICS, VALUE_METRICS
from support.browser import Visit, launched
from support.paths import DOCS, ROOT

TOOLS = ROOT / "tools"
PARTS = [path for path in sorted(DOCS.glob("*/index.md")) if path.parent.name != "gallery"]
MODULES = [arboost, arboost.plots, arboost.compat.sklearn, arboost.dask]
PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if name not in ("__version__", "plots")
}
# Words that users type, and the page that answers.
SEARCHES = {
    "missing values": "tasks/missing_values",
    "early stopping": "tasks/training",
    "imbalanced": "tasks/imbalance",
    "save model": "tasks/saving",
    "GPU": "tasks/gpu",
    "shap": "theory/shap",
    "categorical": "tasks/categories",
    "feature importance": "tasks/explaining",
    "quantile": "tasks/intervals",
    "predict_proba": "reference/estimators",
}
RESOURCES = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


@pytest.fixture(scope="module")
def reference():
    sys.path.append(str(TOOLS))
    try:
        from docs_site.reference import Reference
    finally:
        sys.path.remove(str(TOOLS))
    return Reference()


@pytest.fixture(scope="module")
def italics():
    pytest.importorskip("math_core", reason="the packages of the extra docs are not installed")
    sys.path.append(str(TOOLS))
    try:
        from docs_site.mathml import italics
    finally:
        sys.path.remove(str(TOOLS))
    return italics


@pytest.fixture(scope="module")
def text(reference):
    return "\n".join(reference.markdown.values())


def test_every_page_is_in_the_navigation():
    """The navigation has the pages that the index of a folder links to."""
    names = {path.parent.name for path in PARTS}
    assert names == {"benchmarks", "developers", "reference", "tasks", "theory"}
    for index in PARTS:
        linked = set(re.findall(r"\]\((\w+\.md)", index.read_text("utf-8")))
        pages = {path.name for path in index.parent.glob("*.md")} - {"index.md"}
        assert pages - linked == set(), index


def described(text, name):
    """Return the description of a class or function, up to the next one."""
    start = re.search(rf"^:+\{{py:\w+\}} {re.escape(name)}\b", text, re.MULTILINE)
    assert start, f"{name} is not in the reference"
    rest = text[start.end() :]
    end = re.search(r"^:+\{py:(?:class|function|exception)\} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def test_reference_has_every_name_and_parameter(text):
    missing = []
    for name, public in PUBLIC.items():
        description = described(text, name)
        if inspect.isfunction(public) or hasattr(public, "_TABLE"):
            missing += [
                (name, parameter)
                for parameter in inspect.signature(public).parameters
                if f"`{parameter}`" not in description
                and parameter not in description.partition("\n")[0]
            ]
    assert missing == []


def test_reference_has_every_method(text):
    missing = []
    for name, public in PUBLIC.items():
        if name.count(".") > 1 or not isinstance(public, type):
            continue
        description = described(text, name)
        missing += [
            (name, method)
            for method in dir(public)
            if not method.startswith("_")
            and inspect.isfunction(inspect.getattr_static(public, method))
            and inspect.getdoc(getattr(public, method))
            and not re.search(rf"\b{method}\b", description)
        ]
    assert missing == []


def test_reference_has_defaults_and_ranges(text):
    found = described(text, "arboost.GradientBoostingRegressor")
    row = next(line for line in found.splitlines() if line.startswith("| `max_bins` "))
    assert [cell.strip() for cell in row.split("|")[2:4]] == ["`255`", "an integer from 2 to 65535"]
    groups = re.findall(r"^\*\*(.+)\*\*$", found, re.MULTILINE)
    assert {"Boosting rounds", "Split search", "Trees", "Sampling", "Dropout", "Run"} <= set(groups)


def test_no_name_is_left_over(reference):
    """Every public name has a page of its group: see tools/docs_site/groups.py."""
    assert "others" not in reference.markdown


def test_reference_has_losses_and_metrics(reference):
    losses = reference.markdown["losses"]
    assert [name for name in (*REGRESSION, *CLASSIFICATION) if f"| `{name}` |" not in losses] == []
    metrics = (DOCS / "reference" / "metrics.md").read_text("utf-8")
    names = [*VALUE_METRICS, *PROBABILITY_METRICS]
    assert [name for name in names if f"| `{name}` |" not in metrics] == []


def test_reference_has_clusters_without_their_packages(text):
    """Ray and Spark need not be installed: their modules are read, not imported."""
    for name in ("arboost.ray.DistributedFit", "arboost.spark.Estimator"):
        assert "estimator" in described(text, name)


def test_reference_has_every_command_and_option(reference):
    click = pytest.importorskip("click")
    from arboost.cli.commands import cli

    page = reference.markdown["command_line"]
    context = click.Context(cli)
    for name in cli.list_commands(context):
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        options = cli.get_command(context, name).params
        flags = [one.opts[0] for one in options if isinstance(one, click.Option) and not one.hidden]
        assert [flag for flag in flags if f"`{flag}`" not in section] == []


def test_reference_has_no_markup_of_other_formats(reference, text):
    """Docstrings of scikit-learn have roles; only estimators have methods of scikit-learn."""
    assert re.findall(r":(?:math|ref|func|class|term):`", text) == []
    assert "$R^2$" in described(text, "arboost.RandomForestRegressor")
    assert "Methods of scikit-learn" in described(text, "arboost.RandomForestRegressor")
    assert "scikit-learn" not in described(text, "TreePicture")


def test_targets_of_names_are_described(reference, text):
    """A name in running text links to a description that exists."""
    objects = set(re.findall(r"^:+\{py:\w+\} ([\w.]+)", text, re.MULTILINE))
    assert set(reference.targets.values()) - objects == set()


class Page(HTMLParser):
    """Links, resources and anchors of a built page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.resources, self.anchors = [], [], set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in RESOURCES and found.get(RESOURCES[tag]):
            self.resources.append(found[RESOURCES[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for package in ("sphinx", "furo", "myst_parser", "math_core", "ziamath"):
        pytest.importorskip(package, reason="the packages of the extra docs are not installed")
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, TOOLS / "docs_site", "--folder", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.mark.slow
def test_site_needs_no_network(site):
    """Styles, scripts and pictures are files of the site."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 60
    outside = {
        (path.name, url)
        for path in pages
        for url in Page(path).resources
        if urlsplit(url).scheme not in ("", "data") or url.startswith("//")
    }
    assert outside == set()
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"url\(\s*[\"']?(?:https?:)?//", styles) == []


@pytest.mark.slow
def test_site_has_no_broken_link(site):
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for url in [*page.links, *page.resources]:
            parts = urlsplit(url)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].anchors if target in pages else set()
            is_heading = target.suffix == ".html" and parts.fragment not in ("", "top")
            if not target.exists() or (is_heading and unquote(parts.fragment) not in anchors):
                broken.append((path.relative_to(site).as_posix(), url))
    assert broken == []


@pytest.mark.slow
def test_site_has_formulas_and_a_search(site, italics):
    """Formulas are MathML with a font of the site; the index of the search is a script."""
    theory = (site / "theory" / "gradient_boosting.html").read_text("utf-8")
    assert "<math" in theory
    assert "$" not in re.sub(r"<(code|pre|script).*?</\1>", "", theory, flags=re.DOTALL)
    font = site / "_static" / "STIXTwoMath.woff2"
    assert font.stat().st_size < 200_000
    from fontTools.ttLib import TTFont

    # Browsers draw x of a formula as an italic letter of mathematics.
    pages = (path.read_text("utf-8") for path in (site / "theory").glob("*.html"))
    letters = set().union(*map(italics, pages))
    assert {"\U0001d465", "\u210e"} <= letters
    assert {ord(letter) for letter in letters} <= set(TTFont(font).getBestCmap())
    index = (site / "searchindex.js").read_text("utf-8")
    assert index.startswith("Search.setIndex(")
    assert "GradientBoostingClassifier" in index


@pytest.mark.slow
@pytest.mark.browser
def test_site_in_a_browser(site):
    """Pages fit a phone and say nothing in the console; the search works without a server."""
    shown = ("index", "tutorial", "theory/xgboost", "reference/gradient_boosting", "gallery/index")
    with launched() as browser:
        for name in shown:
            visit = Visit(browser, site / f"{name}.html", viewport={"width": 360, "height": 740})
            too_wide = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert (name, too_wide, visit.messages) == (name, 0, [])
            visit.close()
        visit = Visit(browser, site / "index.html")
        visit.page.fill("input[name=q]", "GradientBoostingClassifier")
        visit.page.keyboard.press("Enter")
        assert visit.text("#search-results li a") == "arboost.GradientBoostingClassifier"
        assert visit.messages == []
        assert all(url.startswith(("file:", "data:")) for url in visit.requests)
        visit.close()


@pytest.mark.slow
@pytest.mark.browser
def test_search_finds_the_page_that_answers(site):
    with launched() as browser:
        visit = Visit(browser, site / "index.html")
        found = {}
        for words in SEARCHES:
            visit.page.goto(f"{visit.address.rpartition('/')[0]}/search.html?q={words}")
            first = visit.page.locator("#search-results li a").first.get_attribute("href")
            found[words] = first.partition(".html")[0]
        assert found == SEARCHES
        visit.close()
