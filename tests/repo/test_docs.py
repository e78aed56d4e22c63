"""Examples on pages and in docstrings run and print the text there; scripts draw the pictures."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import shutil

import matplotlib as mpl
import pytest
from matplotlib import pyplot

import arboost
from support import pages
from support.paths import ROOT

README = ROOT / "README.md"
IMAGES = ROOT / "docs" / "images"
LARGEST_PICTURE = 60_000  # bytes
ROOMS = sorted(module.name for module in pkgutil.iter_modules(arboost.__path__))
CLUSTERS = {"ray": "ray", "spark": "pyspark"}
WITHOUT_CODE = {"benchmarks", "developers", "gallery", "reference"}  # pages of tables and lists


def has_code(page):
    return any(language == "python" for language, _ in pages.blocks(page.read_text("utf-8")))


def test_pages_are_found():
    without = {
        page.parent.name for page in pages.PAGES if not has_code(page) and page.stem != "index"
    }
    assert len(pages.PAGES) > 40
    assert without <= WITHOUT_CODE


@pytest.mark.parametrize("page", [*filter(has_code, pages.PAGES)], ids=lambda page: page.stem)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    pages.run_page(page)
    pyplot.close("all")


def test_readme(capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL).group(1)
    expected = re.search(r"^# prints: (.*)$", code, re.MULTILINE).group(1)
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out.strip() == expected


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package = importlib.import_module(f"arboost.{room}") if is_importable(room) else None
    inner = pkgutil.walk_packages(getattr(package, "__path__", ()), f"arboost.{room}.")
    for name in [f"arboost.{room}", *(module.name for module in inner)]:
        if is_importable(name):
            assert doctest.testmod(importlib.import_module(name)).failed == 0, name


def is_importable(name):
    """Whether the packages of a module are installed: Ray and Spark may be absent."""
    packages = [package for word, package in CLUSTERS.items() if word in name]
    return all(importlib.util.find_spec(package) for package in packages)


@pytest.fixture
def script():
    """A function that imports a script of docs/images."""
    mpl.use("Agg")

    def imported(name):
        spec = importlib.util.spec_from_file_location(name, IMAGES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield imported
    pyplot.close("all")


def test_pictures_of_the_tutorial(script, tmp_path, monkeypatch):
    tutorial = script("make_tutorial")
    monkeypatch.setattr(tutorial, "photograph", lambda path: path.write_bytes(b""))
    tutorial.main(tmp_path)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {path.name for path in IMAGES.glob("tutorial_*")}
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    assert all(f"(images/{name})" in page for name in written)


def test_pictures_of_the_theory(script, tmp_path, capsys):
    script("make_theory").main(tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert len(capsys.readouterr().out.splitlines()) == len(written)
    shown = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "theory").glob("*.md"))
    for name in written:
        assert f"(../images/{name})" in shown
        assert (IMAGES / name).stat().st_size < LARGEST_PICTURE
        # Bytes differ between versions of matplotlib, so only the amount of detail is checked.
        assert (tmp_path / name).read_text("utf-8").count("<path") > 10
