"""Runs a test file of scikit-learn with classes of arboost in the place of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

DOCS = Path(__file__).resolve().parents[1] / "docs"

PLUGIN = """
import sklearn.ensemble
import arboost

fits = 0


def counted(fit):
    def wrapper(*arguments, **named):
        global fits
        fits += 1
        return fit(*arguments, **named)

    return wrapper


for name in {names}:
    swapped = getattr(arboost, name)
    swapped.fit = counted(swapped.fit)
    setattr(sklearn.ensemble, name, swapped)


def pytest_sessionfinish():
    with open("fits.txt", "w") as file:
        file.write(str(fits))
"""


def run(folder, suite, names, only=""):
    """Return whether each test passed, by its name with parameters, and how often ours were fitted.

    Parameters
    ----------
    folder : path
        An empty one to work in.
    suite : str
        Module of scikit-learn's tests.
    names : tuple of str
        Classes of sklearn.ensemble to swap.
    only : str
        Which tests, as the option -k of pytest has it.
    """
    (folder / "swapped_classes.py").write_text(PLUGIN.format(names=names), "utf-8")
    report = folder / "report.xml"
    options = [f"--junit-xml={report}", f"--rootdir={folder}", "-p", "swapped_classes", "-k", only]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    search = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [*command, "--pyargs", suite],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    cases = ElementTree.parse(report).iter("testcase")
    passed = {case.get("name"): case.find("failure") is None for case in cases}
    return passed, int((folder / "fits.txt").read_text("utf-8"))


def failed(passed):
    """Return the functions, without parameters, of tests that did not pass."""
    return {name.partition("[")[0] for name, is_right in passed.items() if not is_right}


def differences(page, heading):
    """Return tests and reasons of the table below a heading, a test in each first column."""
    text = (DOCS / page).read_text("utf-8")
    section = text.partition(f"\n{heading}\n")[2].partition("\n##")[0]
    return dict(re.findall(r"^\| `(test_\w+)` \| (.+?) \|$", section, re.MULTILINE))
