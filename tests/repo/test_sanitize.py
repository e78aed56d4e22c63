"""tools/sanitize.py: programs run with the core of the build, not with the installed one."""

import importlib.util
import os
import shutil
import sys

import pytest

from arboost import _core
from support.paths import ROOT

TOOL = ROOT / "tools" / "sanitize.py"
pytestmark = [
    pytest.mark.skipif(not TOOL.is_file(), reason="needs a checkout"),
    pytest.mark.skipif(sys.platform != "linux", reason="sanitizers are loaded first on Linux only"),
]


@pytest.fixture(scope="module")
def sanitize():
    """Return the tool as a module."""
    spec = importlib.util.spec_from_file_location("sanitize", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_programs_import_the_core_of_the_build(sanitize, tmp_path):
    """Also beside an editable install, which finds arboost before PYTHONPATH does."""
    shutil.copy(_core.__file__, tmp_path)
    environment = os.environ | {"PYTHONPATH": str(sanitize.package(tmp_path))}
    sanitize.check_core(tmp_path, "address", environment)


def test_another_core_is_refused(sanitize, tmp_path):
    with pytest.raises(SystemExit, match="is imported instead of the core in"):
        sanitize.check_core(tmp_path, "address", dict(os.environ))
