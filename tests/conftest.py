"""Settings and fixtures of all test files."""

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
