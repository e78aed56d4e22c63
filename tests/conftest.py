"""What several test files share."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run: a failure that is seen once can be seen again.
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
    """Return a generator of its own for each test."""
    return np.random.default_rng(0)
