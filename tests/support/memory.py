"""Resident memory of a fresh process, the core's included: tracemalloc sees Python's only."""

from __future__ import annotations

import sys

import pytest

from support.processes import run

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

_MEASURED = """
import sys
import numpy as np
import arboost
from arboost.models.files import model_file

def peak():
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

path = sys.argv[1]
{setup}
before = peak()
try:
    {action}
    print("done")
except arboost.ModelFormatError as error:
    print(error)
print(peak() - before)
"""


def peak_of(action, path, setup=""):
    """Return the message and the growth of the peak of resident memory in bytes."""
    message, grown = run(_MEASURED.format(action=action, setup=setup), path).splitlines()
    return message, int(grown)
