"""A cluster of Dask for all tests that do not close it, and a time limit for each test."""

import signal

import pytest

from support.clusters import cluster_of, wait_for_workers, wait_until_free

LIMIT = 300  # seconds; only a test that hangs takes so long, also next to other work


@pytest.fixture(autouse=True)
def _time_limit():
    """Raise TimeoutError in a test that takes too long."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(_signal, _frame):
        raise TimeoutError(f"the test took more than {LIMIT} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def _shared():
    with cluster_of(3) as client:
        yield client


@pytest.fixture
def client(_shared):
    """Client of three workers, which Dask restarts when a test kills them; no fit may be left."""
    wait_for_workers(_shared)
    yield _shared
    wait_until_free(_shared)
