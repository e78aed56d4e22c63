"""scikit-learn's own tests of AdaBoost, with our classes in the place of its own.

docs/adaboost_differences.md has a table of the tests that differ, each with its reason. Whatever
else fails is a bug, and so is a row whose test passes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adaboost_differences.md"
SUITE = "sklearn.ensemble.tests.test_weight_boosting"

SWAP = """
    import sklearn.ensemble
    import arboost

    for name in ("AdaBoostClassifier", "AdaBoostRegressor"):
        setattr(sklearn.ensemble, name, getattr(arboost, name))
"""
# Arguments that are not given become what scikit-learn does without asking.
DEFAULTS = """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    arboost.AdaBoostClassifier.__init__.__defaults__ = (DecisionTreeClassifier(max_depth=1),)
    arboost.AdaBoostRegressor.__init__.__defaults__ = (DecisionTreeRegressor(max_depth=3),)
    arboost.AdaBoostRegressor.__init__.__kwdefaults__["resample"] = True
"""


def run(folder, *plugin, only=""):
    """Return whether each test passed, by its name with parameters."""
    source = "".join(textwrap.dedent(part) for part in plugin)
    (folder / "swapped_adaboost.py").write_text(source, "utf-8")
    report = folder / "report.xml"
    options = [f"--junit-xml={report}", f"--rootdir={folder}", "-p", "swapped_adaboost", "-k", only]
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
    """Return the names of tests in the first column of the table, and the reasons of each."""
    lines = re.findall(r"^\| (`test_.*?`) \| (.*?) \| (.*?) \|$", PAGE.read_text("utf-8"), re.M)
    return {
        name: reason for names, _, reason in lines for name in re.findall(r"`(test_\w+)`", names)
    }


def function(name):
    return name.partition("[")[0]


@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    pytest.importorskip(SUITE)
    passed = run(tmp_path, SWAP)
    assert len(passed) > 40
    differ = {function(name) for name, is_right in passed.items() if not is_right}
    assert differ == set(rows())
    assert all(rows().values())


def test_defaults_are_all_that_the_last_rows_say(tmp_path):
    pytest.importorskip(SUITE)
    by_default = ["test_iris", "test_diabetes", "test_sample_weight_adaboost_regressor"]
    assert list(rows())[-3:] == by_default
    passed = run(tmp_path, SWAP, DEFAULTS, only=" or ".join(by_default))
    assert {function(name) for name in passed} == set(by_default)
    assert all(passed.values()), passed
