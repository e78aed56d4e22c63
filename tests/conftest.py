"""Settings, markers and fixtures of all test files."""

import os
from fnmatch import fnmatch
from pathlib import Path

# Before NumPy and peers are loaded: on small tables, several threads wait for each other, and those
# of OpenMP wait busily. The threads of this library are not among them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from support.instruction_sets import InstructionSets

# The same examples on every run, so that every failure is reproducible.
settings.register_profile(
    "arboost",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("arboost")


# Markers by file; single tests are marked "slow" where they stand.
MARKERS = {
    "browser": ("report/test_page_*",),
    "cluster": ("distributed/*",),
    "cuda": ("cuda/*",),
    "docs": ("repo/test_docs.py", "repo/test_site.py", "examples/*"),
    "slow": (
        "distributed/test_spark.py",
        "examples/test_demo.py",
        "repo/test_docs.py",
        "system/test_memory_limit.py",
        "system/test_out_of_core.py",
    ),
}


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by markers
def pytest_collection_modifyitems(items):
    for item in items:
        name = item.path.relative_to(Path(__file__).parent).as_posix()
        for marker, patterns in MARKERS.items():
            if any(fnmatch(name, pattern) for pattern in patterns):
                item.add_marker(marker)


@pytest.fixture
def rng():
    """Return a new random generator for each test."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """One thread for linear algebra and peers: on small tables, several wait for each other.

    The threads of this library are not among them.
    """
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def instruction_sets():
    """Return processes for programs that need the core of a chosen instruction set."""
    processes = InstructionSets()
    yield processes
    processes.close()
