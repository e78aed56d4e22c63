"""scikit-learn's own tests of bagging, with our classes in the place of its own.

docs/bagging.md has a table of the tests that differ, each with its reason. Whatever else fails is a
bug, and so is a row whose test passes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "bagging.md"
SUITE = "sklearn.ensemble.tests.test_bagging"

SWAP = """
    import sklearn.ensemble
    import arboost

    for name in ("BaggingClassifier", "BaggingRegressor"):
        setattr(sklearn.ensemble, name, getattr(arboost, name))
"""


def run(folder):
    """Return whether each test passed, by its name with parameters."""
    (folder / "swapped_bagging.py").write_text(textwrap.dedent(SWAP), "utf-8")
    report = folder / "report.xml"
    options = [f"--junit-xml={report}", f"--rootdir={folder}", "-p", "swapped_bagging"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    search = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [*command, "--pyargs", SUITE],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    cases = ElementTree.parse(report).iter("testcase")
    return {case.get("name"): case.find("failure") is None for case in cases}


def rows():
    """Return the names of tests in the first column of the table, and the reason of each."""
    lines = re.findall(r"^\| (`test_.*?`) \| (.*?) \|$", PAGE.read_text("utf-8"), re.M)
    return {name: reason for names, reason in lines for name in re.findall(r"`(test_\w+)`", names)}


# To import it here would fail: it has markers of its own.
@pytest.mark.skipif(
    not find_spec("sklearn.ensemble.tests"), reason="scikit-learn came without its tests"
)
@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    passed = run(tmp_path)
    assert len(passed) > 100
    differ = {name.partition("[")[0] for name, is_right in passed.items() if not is_right}
    assert differ == set(rows())
    assert all(rows().values())
