"""The compiled core, and the number of threads."""

from __future__ import annotations

import threading

import arboost._core as core
from arboost.params.check import check

__all__ = ["checked_threads", "core", "startable", "threads"]


def threads(n_jobs: int | None) -> int:
    """Return the number of threads: ``n_jobs``, or for None and -1 all of this process."""
    return core.available_threads() if n_jobs is None or n_jobs == -1 else n_jobs


def checked_threads(n_jobs: object) -> int:
    """Return the number of threads for a user's ``n_jobs``; raise for an invalid value."""
    return threads(check({"n_jobs": n_jobs})["n_jobs"])


def startable(n_threads: int) -> int:
    """Return how many of so many Python threads the system can start now; at least 1.

    Executors fail where they cannot start all of their threads: they are to get this number.
    """
    if n_threads <= 1:
        return 1
    gate, started = threading.Event(), []
    try:
        for _ in range(n_threads):
            thread = threading.Thread(target=gate.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:  # "can't start new thread"
        pass
    finally:
        gate.set()
        for thread in started:
            thread.join()
    return max(len(started), 1)
