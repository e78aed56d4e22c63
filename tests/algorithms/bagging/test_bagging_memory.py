"""Memory of bagged boosters: one table of bins for all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# getrusage knows other systems, but includes the memory of the parent at the time of the fork.
STATUS = Path("/proc/self/status")

PEAK = """
import sys
import numpy as np
from arboost import BaggingRegressor, GradientBoostingRegressor

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 28))
y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
booster = GradientBoostingRegressor(n_estimators=2)
model = BaggingRegressor(booster, n_estimators=50, oob_score=True) if sys.argv[1:] else booster
before = peak()
model.fit(X, y)
print(before, peak())
"""


def peaks(*arguments):
    """Return the peak memory of a process before and after a fit."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    return map(int, done.stdout.split())


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="peak memory is read from Linux's /proc")
def test_fifty_boosters_take_little_more_memory_than_one():
    before, one = peaks()
    assert one > before  # the peak is that of the fit
    _, fifty = peaks("bagged")
    assert fifty <= 1.5 * one
