"""Losses of workers in the attempts of one fit, and the limit on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from arboost.distributed.program import Interrupted
from arboost.distributed.reports import Lost, Outcome
from arboost.errors import WorkerError

__all__ = ["LossCount", "newest_state"]


class LossCount:
    """Counts losses without progress in between.

    Parameters
    ----------
    retries : int
        Losses without progress that are allowed.
    """

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._losses: list[str] = []
        self._n_losses = 0  # since the last progress
        self._progress: int | None = None

    def note_progress(self, progress: int | None) -> bool:
        """Take note of the newest state, and return whether it is newer than those before."""
        if progress is None or (self._progress is not None and progress <= self._progress):
            return False
        self._progress, self._n_losses = progress, 0
        return True

    def note_losses(self, lost: Mapping[str, str], outcomes: Mapping[int, Outcome | Lost]) -> None:
        """Count the end of an attempt: causes of lost workers by name, or else a report."""
        losses = [f"{name} is lost: {cause}." for name, cause in lost.items()]
        reports = [one.cause for one in outcomes.values() if isinstance(one, Interrupted)]
        self._losses += losses or reports[:1] or ["The workers lost each other."]
        self._n_losses += 1

    def check(self) -> None:
        """Raise WorkerError if there were too many losses without progress."""
        if self._n_losses > self._retries:
            raise self.error(
                f"Losses without progress in between: {self._n_losses}; retries={self._retries} "
                "allows no more."
            )

    def error(self, *advice: str) -> WorkerError:
        """Return the error that names all losses."""
        texts: Iterable[str] = dict.fromkeys(self._losses)
        return WorkerError(" ".join([*texts, *advice]))


def newest_state(outcomes: Mapping[int, Outcome | Lost]) -> tuple[int, int] | None:
    """Return rank and progress of the worker with the newest state; None where there is none."""
    progress = {
        rank: outcome.progress
        for rank, outcome in outcomes.items()
        if isinstance(outcome, Interrupted) and outcome.progress is not None
    }
    if not progress:
        return None
    newest = max(progress, key=lambda rank: (progress[rank], -rank))
    return newest, progress[newest]
