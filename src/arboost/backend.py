"""Which module does the heavy work, and with how many threads."""

from __future__ import annotations

import arboost._core as core
from arboost.params.check import check

__all__ = ["checked_threads", "core", "threads"]


def threads(n_jobs: int | None) -> int:
    """Threads to use: ``n_jobs`` of them, or for None and -1 all that this process may use."""
    return core.available_threads() if n_jobs is None or n_jobs == -1 else n_jobs


def checked_threads(n_jobs: object) -> int:
    """Return the same for what a user has passed; raise where it is no number of threads."""
    return threads(check({"n_jobs": n_jobs})["n_jobs"])
