"""Examples of README and docstrings: they run and print the text on the page."""

import doctest
import importlib
import pkgutil
import re

import pytest

import arboost
from support.paths import ROOT

README = ROOT / "README.md"
MODULES = [
    module.name
    for module in pkgutil.walk_packages(arboost.__path__, "arboost.")
    if not module.name.endswith("._core")
]


def test_readme(capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL).group(1)
    expected = re.search(r"^# prints: (.*)$", code, re.MULTILINE).group(1)
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out.strip() == expected


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, tmp_path, monkeypatch):
    if name == "arboost.ray" or ".on_ray" in name:
        pytest.importorskip("ray", reason="ray is not installed")
    monkeypatch.chdir(tmp_path)
    if name.startswith(("arboost.spark", "arboost.distributed.on_spark.")):
        pytest.importorskip("pyspark")
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
