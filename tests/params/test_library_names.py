"""The pages of names and metrics are those of the tables in the code."""

import runpy
import subprocess
import sys

from arboost.params.suggestions import LIBRARIES, Row
from support.paths import ROOT

TOOL = ROOT / "tools" / "write_tables.py"


def test_pages_are_up_to_date():
    result = subprocess.run(
        [sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_table_is_on_a_page(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which the tool adds the checkout
    sys.path.insert(0, str(TOOL.parent))  # as Python does for a script
    tool = runpy.run_path(str(TOOL))
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
    assert [name for name in tool["tables"]() if f"<!-- table: {name} -->" not in pages] == []
    page = "before\n<!-- table: values -->\nold\n<!-- end -->\nafter\n"
    written = tool["rewritten"](page, {"values": "| new |\n"})
    assert written == "before\n<!-- table: values -->\n| new |\n<!-- end -->\nafter\n"


def test_rows():
    rows = (Row("ours", sklearn="a b", xgboost="b"), Row("other", catboost="a c"))
    assert rows[0].names() == ["a", "b"]
    assert rows[0].names("xgboost") == ["b"]
    assert all(hasattr(rows[0], library) for library in LIBRARIES)
