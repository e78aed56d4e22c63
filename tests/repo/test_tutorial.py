"""The pictures of the tutorial are those of its script."""

import importlib.util

import matplotlib as mpl
import pytest
from matplotlib import pyplot

from support.paths import ROOT

IMAGES = ROOT / "docs" / "images"


@pytest.fixture
def script(monkeypatch):
    """Return the script as a module, without its screenshot of the report."""
    spec = importlib.util.spec_from_file_location("make_tutorial", IMAGES / "make_tutorial.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "photograph", lambda path: path.write_bytes(b""))
    yield module
    pyplot.close("all")


def test_pictures(script, tmp_path):
    mpl.use("Agg")
    script.main(tmp_path)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {path.name for path in IMAGES.glob("tutorial_*")}
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    assert all(f"(images/{name})" in page for name in written)
