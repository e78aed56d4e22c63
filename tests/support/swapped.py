"""Runs of scikit-learn's test files with arboost's classes in place of its own."""

import os
import re
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from xml.etree import ElementTree

import pytest

from support.paths import DOCS

COMPAT = "arboost.compat.sklearn"

PLUGIN = """
import sklearn.ensemble
import sklearn.tree
import arboost
import {package} as package

fits = 0


def counted(fit):
    def wrapper(*arguments, **named):
        global fits
        fits += 1
        return fit(*arguments, **named)

    return wrapper


for name in {names}:
    swapped = getattr(package, name)
    swapped.fit = counted(swapped.fit)
    for module in (sklearn.ensemble, sklearn.tree):
        if hasattr(module, name):
            setattr(module, name, swapped)


def pytest_sessionfinish():
    with open("fits.txt", "w") as file:
        file.write(str(fits))

"""


def run(folder, suite, names, only="", more="", package="arboost"):
    """Return test outcomes (passed or not) by name with parameters, and the number of our fits.

    Parameters
    ----------
    folder : path
        Empty working folder.
    suite : str
        Module of scikit-learn's tests. Without the module, the calling test is skipped.
    names : tuple of str
        Classes of sklearn.ensemble or sklearn.tree to swap.
    only : str
        Expression that selects tests, as in pytest's option -k.
    more : str
        Python code that runs after the swap.
    package : str
        Package of the classes.
    """
    # The module is not imported here: its marks are unknown to this suite.
    if find_spec(suite.rpartition(".")[0]) is None or find_spec(suite) is None:
        pytest.skip("scikit-learn was installed without its tests")
    plugin = PLUGIN.format(names=names, package=package) + textwrap.dedent(more)
    (folder / "swapped_classes.py").write_text(plugin, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")  # instead of this suite's settings
    report = folder / "report.xml"
    options = [f"--junit-xml={report}", f"--rootdir={folder}", "-p", "swapped_classes", "-k", only]
    # Only names of failed tests are needed: tracebacks and assertion messages would take up to half
    # of the time.
    options += ["-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options]
    search = os.pathsep.join([str(folder), *filter(None, sys.path)])
    # scikit-learn's tests give linear algebra cores / test processes threads. More than one thread
    # is slower on tables of this size.
    one_thread = {"OMP_NUM_THREADS": "1", "PYTEST_XDIST_WORKER_COUNT": str(os.cpu_count())}
    done = subprocess.run(
        [*command, "--pyargs", suite],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": search,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **one_thread,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    passed = {
        case.get("name"): case.find("failure") is None and case.find("error") is None
        for case in ElementTree.parse(report).iter("testcase")
    }
    return passed, int((folder / "fits.txt").read_text("utf-8"))


def failed(passed):
    """Return the names, without parameters, of tests that did not pass."""
    return {name.partition("[")[0] for name, is_right in passed.items() if not is_right}


def differences(page, heading=None):
    """Return tests (first column) and reasons (last column) of a table of differences.

    The table is the only one of a page, or the one below a heading.
    """
    (path,) = DOCS.rglob(page)
    text = path.read_text("utf-8")
    if heading is not None:
        text = text.partition(f"\n{heading}\n")[2].partition("\n##")[0]
    rows = re.findall(r"^\| (`test_.*?`) \| (?:.* \| )?(.+?) \|$", text, re.MULTILINE)
    return {name: reason for names, reason in rows for name in re.findall(r"`(test_\w+)`", names)}
