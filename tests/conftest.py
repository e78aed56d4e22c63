"""Settings and fixtures of all test files."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

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
