"""The page's HTML: self-contained, escaped, with its parts in the package."""

import json
import re
from importlib import resources

import pytest

from arboost.report.report import SECTIONS, assemble, frame
from support.report_payloads import HOSTILE_LEVEL, binary, multiclass, regression

FOLDER = resources.files("arboost.report").joinpath("page")
TEMPLATE = FOLDER.joinpath("template.html").read_text("utf-8")
FILES = re.findall(r"\{\{(.+?\.(?:js|css))\}\}", TEMPLATE)
SCRIPTS = [name for name in FILES if name.endswith(".js")]


def payload_of(page):
    """Return the payload that a page carries, as a browser reads it."""
    found = re.search(
        r'<script type="application/json" id="report-data">(.*?)</script>', page, re.S
    )
    return json.loads(found[1])


@pytest.mark.parametrize("make", [binary, multiclass, regression])
def test_page_carries_the_payload_unchanged(make):
    payload = make()
    assert payload_of(assemble(payload)) == payload | {"only": None}


def test_payload_cannot_end_its_script():
    payload = binary() | {"title": HOSTILE_LEVEL + "\u2028<!--", "target": "<!-- <script>"}
    page = assemble(payload)
    data = page.split('id="report-data">')[1].split("</script>")[0]
    assert not re.search("[<>&\u2028\u2029]", data)
    assert payload_of(page)["title"] == payload["title"]
    assert "<title>&lt;/script&gt;" in page


def test_scripts_are_balanced():
    """No vendored or own script holds a sequence that ends its element early."""
    page = assemble(binary())
    assert page.count("<script") == page.count("</script>") == 1 + len(SCRIPTS)


def test_page_forbids_requests_and_names_no_address():
    page = assemble(binary())
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in page
    assert "; base-uri 'none'; form-action 'none'\">" in page
    assert not re.search(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//", page)
    assert "@import" not in page


def test_every_script_and_style_of_the_folder_is_read():
    own = {path.name for path in FOLDER.iterdir() if path.name.endswith((".js", ".css"))}
    assert own == {name for name in FILES if "/" not in name}


@pytest.mark.parametrize("name", [name for name in SCRIPTS if "/" not in name])
def test_script_is_short_and_has_a_heading(name):
    text = FOLDER.joinpath(name).read_text("utf-8")
    assert text.startswith("/* ")
    assert len(text.splitlines()) <= 350
    assert "innerHTML" not in text
    assert "document.write" not in text


@pytest.mark.parametrize("name", ["d3", "plot"])
def test_vendored_library_has_its_licence(name):
    assert (
        "Permission to use, copy, modify" in FOLDER.joinpath(f"vendor/{name}-LICENSE").read_text()
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_chosen_section_carries_its_part_only(section):
    payload = binary()
    carried = payload_of(assemble(payload, only=[section]))
    assert carried["only"] == [section]
    assert carried["title"] == payload["title"]
    uses_rows = section in {"shap", "rows", "trees"}
    assert ("rows" in carried) == uses_rows
    assert ("trees" in carried["models"][0]) == (section in {"rows", "trees"})


@pytest.mark.parametrize("only", [["calibratoin"], []])
def test_unknown_section_is_named(only):
    with pytest.raises(ValueError, match=r"section got .* has the sections .*calibration"):
        assemble(binary(), only=only)


def test_number_that_json_lacks_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        assemble(binary() | {"created": float("nan")})


def test_frame_escapes_its_page():
    text = frame(assemble(binary(), only=["scores"]), height=300)
    assert text.startswith('<iframe srcdoc="&lt;!DOCTYPE html')
    assert text.count("<") == 2
    assert "height: 300px" in text
