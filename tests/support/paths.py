"""Places of the checkout, and the environment of child processes that import test modules."""

import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
DOCS = ROOT / "docs"
MODELS = TESTS / "models"


def child_environment(folder, **variables):
    """Return the environment of a Python process that imports from a folder and from tests."""
    path = os.pathsep.join([str(folder), str(TESTS), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": path, **variables}
