"""The compiled core, and the number of threads."""

from __future__ import annotations

import arboost._core as core
from arboost.params.check import check

__all__ = ["checked_threads", "core", "threads"]


def threads(n_jobs: int | None) -> int:
    """Return the number of threads: ``n_jobs``, or for None and -1 all of this process."""
    return core.available_threads() if n_jobs is None or n_jobs == -1 else n_jobs


def checked_threads(n_jobs: object) -> int:
    """Return the number of threads for a user's ``n_jobs``; raise for an invalid value."""
    return threads(check({"n_jobs": n_jobs})["n_jobs"])
