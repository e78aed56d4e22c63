"""Recovery from lost workers: the limit on failures, the last round in memory, the checkpoint file.

When a worker is lost, the others go back to the last round that one of them has finished. All of
them have all trees; scores follow from the trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from arboost.distributed.protocol import Interrupted, Lost, Outcome, WorkerContext
from arboost.errors import WorkerError
from arboost.training.checkpoint import (
    Checkpoint,
    State,
    WritePace,
    refuse_other,
    state_bytes,
    state_of,
)
from arboost.workers import Workers


class WorkerFailureBudget:
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


_LATER_PHASE = 1 << 40  # progress of a fit after its search for the number of rounds


@dataclass(frozen=True)
class FileRequest:
    """Request to the client: read, write or remove a checkpoint file.

    Attributes
    ----------
    path : str
    content : bytes or None
        To be written.
    removes : bool
        Whether the file is to be removed.
    """

    path: str
    content: bytes | None = None
    removes: bool = False


class RoundStateStore:
    """The last round of each phase of a fit; a search for the number of rounds is one of its own.

    Parameters
    ----------
    kept : dict
        Values of the worker that live from attempt to attempt; it gets the entry "state".
    resumed : mapping of str to State, or None
        States that an earlier attempt has left, by phase.
    """

    def __init__(self, kept: dict[str, Any], resumed: Mapping[str, State] | None) -> None:
        self._done: dict[str, State] = dict(resumed or {})
        self._current: tuple[str, int, Callable[[], State]] | None = None
        kept["state"] = self.newest

    def resumed(self, phase: str) -> State | None:
        """Return the state that a phase continues from."""
        return self._done.get(phase)

    def note(self, phase: str, rounds: int, state: Callable[[], State]) -> None:
        """Take note of the last round; a phase before is over."""
        if self._current is not None and self._current[0] != phase:
            self._done[self._current[0]] = self._current[2]()
        self._current = phase, rounds, state

    def newest(self) -> tuple[int, dict[str, State]]:
        """Return the progress of this worker, and the states of all phases."""
        if self._current is None:
            return 0, self._done
        phase, rounds, state = self._current
        others = {name: one for name, one in self._done.items() if name != phase}
        return len(others) * _LATER_PHASE + rounds, {**others, phase: state()}


@dataclass(frozen=True)
class WorkerCheckpoint(Checkpoint):
    """Checkpoint of a fit that several workers run.

    Attributes
    ----------
    path : str
        Name of the phase; the file is with the client.
    every : int or None
    book : RoundBook
    desk : Desk
    workers : Workers
    has_file : bool
        Whether the user has asked for a file.
    """

    path: str
    book: RoundStateStore = field(kw_only=True, repr=False)
    desk: WorkerContext = field(kw_only=True, repr=False)
    workers: Workers = field(kw_only=True, repr=False)
    has_file: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        """The client has checked the path."""

    @property
    def compares(self) -> bool:
        """Whether a state is compared with the fingerprint of the fit."""
        return self.has_file

    def is_due(self, rounds: int, pace: WritePace) -> bool:
        """Return whether to write after these rounds, by the clock of the first worker."""
        return self.has_file and self.workers.broadcast(super().is_due(rounds, pace))

    def rounds_at_once(self, rounds: int) -> int:
        """Return 1: each round is noted."""
        return 1

    def note_round(self, rounds: int, take: Callable[[], Callable[[], State]]) -> None:
        """Take note of a finished round."""
        self.book.note(self.path, rounds, take())

    def load(self, fingerprint: Mapping[str, Any]) -> State | None:
        """Return the state of an earlier attempt, or else that of the file."""
        known = self.book.resumed(self.path)
        if known is not None or not self.has_file:
            return known
        content = self.desk.ask(FileRequest(self.path)) if self.desk.rank == 0 else None
        content = self.workers.broadcast(content)
        if content is None:
            return None
        state = state_of(content, self.path)
        refuse_other(state.fingerprint, fingerprint, self.path)
        return state

    def store(self, state: State) -> None:
        """Have the client write a state, where the user has asked for a file."""
        if self.has_file and self.desk.rank == 0:
            self.desk.ask(FileRequest(self.path, state_bytes(state)))

    def remove(self) -> None:
        """Have the client delete the file."""
        if self.has_file and self.desk.rank == 0:
            self.desk.ask(FileRequest(self.path, removes=True))
