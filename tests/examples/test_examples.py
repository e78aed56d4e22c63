"""The examples: each runs, and prints the output and draws the picture that docs/gallery keeps."""

import importlib.util
import re
import runpy
import sys

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

from support.paths import ROOT

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem != "demo")
NEEDS = {"export": ["onnx", "onnxruntime"], "larger_than_memory": ["pyarrow"]}


@pytest.fixture(scope="module")
def gallery():
    """Return the tool that stores output and pictures."""
    spec = importlib.util.spec_from_file_location("write_gallery", ROOT / "tools/write_gallery.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["write_gallery"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["write_gallery"]


@pytest.fixture
def run(gallery, tmp_path, monkeypatch, capsys):
    """Return a function that runs an example in an empty folder and returns its output."""
    for name, value in gallery.FIXED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    style = tmp_path / "matplotlibrc"
    style.write_text(gallery.STYLE)

    def run(name):
        mpl.use("Agg")
        with mpl.rc_context(fname=style):
            runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
            plt.close("all")
        return capsys.readouterr().out

    return run


def picture_texts(path):
    """Return the words and numbers of a picture."""
    return re.findall(r"<text[^>]*>(.*?)</text>", path.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, gallery, run, tmp_path):
    for package in NEEDS.get(name, []):
        pytest.importorskip(package)
    kept = gallery.read(ROOT / "examples" / f"{name}.py")
    assert run(name) == kept.output, f"run python tools/write_gallery.py {name}"
    drawn = tmp_path / f"{name}.svg"
    assert drawn.exists() == (kept.picture is not None)
    if kept.picture is not None:
        assert picture_texts(drawn) == picture_texts(kept.picture)
        assert kept.picture.stat().st_size < 100_000


def test_every_example_has_a_place_in_the_gallery(gallery):
    assert gallery.OTHERS not in gallery.groups()
    listed = [name for names in gallery.GROUPS.values() for name in names]
    assert sorted(listed) == sorted([*EXAMPLES, "demo"])


def test_gallery_keeps_nothing_else(gallery):
    kept = {path.stem for path in gallery.GALLERY.iterdir()} - {"index"}
    assert kept == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_short(name):
    assert len((ROOT / "examples" / f"{name}.py").read_text("utf-8").splitlines()) <= 60
