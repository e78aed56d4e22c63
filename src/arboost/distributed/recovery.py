"""Recovery from lost workers: the limit on failures, the last round in memory, the checkpoint file.

When a worker is lost, the others go back to the last round that one of them has finished. All of
them have all trees; scores follow from the trees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from arboost.distributed.protocol import Interrupted, Outcomes
from arboost.distributed.worker import WorkerContext
from arboost.errors import WorkerError
from arboost.training.checkpoint import Checkpoint, State, WritePace
from arboost.workers import Workers

_LATER_PHASE = 1 << 40  # progress of a fit after its search for the number of rounds


class WorkerFailureBudget:
    """Limit on losses of workers without progress in between.

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
        """Take note of the newest state; whether it is newer than those before."""
        if progress is None or (self._progress is not None and progress <= self._progress):
            return False
        self._progress, self._n_losses = progress, 0
        return True

    def note_losses(self, lost: Mapping[str, str], outcomes: Outcomes) -> None:
        """Count the end of an attempt: causes of lost workers by name, or else a report."""
        losses = [f"{name} is lost: {cause}." for name, cause in lost.items()]
        reports = [
            outcome.cause for outcome in outcomes.values() if isinstance(outcome, Interrupted)
        ]
        self._losses += losses or reports[:1] or ["The workers lost each other."]
        self._n_losses += 1

    def check(self) -> None:
        """Raise WorkerError if there were too many losses without progress."""
        if self._n_losses > self._retries:
            raise self.error(
                f"Losses without progress in between: {self._n_losses}; retries={self._retries} "
                "allows no more."
            )

    def error(self, advice: str) -> WorkerError:
        """Error that names all losses."""
        return WorkerError(" ".join([*dict.fromkeys(self._losses), advice]))


def newest_state(outcomes: Outcomes) -> tuple[int, int] | tuple[None, None]:
    """Rank and progress of the worker with the newest state; None where there is no state."""
    progress = {
        rank: outcome.progress
        for rank, outcome in outcomes.items()
        if isinstance(outcome, Interrupted) and outcome.progress is not None
    }
    if not progress:
        return None, None
    newest = max(progress, key=lambda rank: (progress[rank], -rank))
    return newest, progress[newest]


@dataclass(frozen=True)
class FileRequest:
    """Request to the driver: read, write or remove a checkpoint file.

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
    """The last round of each phase of a fit; a search for the number of rounds is a phase.

    Parameters
    ----------
    context : WorkerContext
        It resumes from the states of an earlier attempt, by phase, and gets the newest ones.
    """

    def __init__(self, context: WorkerContext) -> None:
        resumed: Any = context.resumed_state
        self._done: dict[str, State] = dict(resumed or {})
        self._current: tuple[str, int, Callable[[], State]] | None = None
        context.newest_state = self.newest

    def resumed(self, phase: str) -> State | None:
        """State that a phase continues from."""
        return self._done.get(phase)

    def note(self, phase: str, rounds: int, state: Callable[[], State]) -> None:
        """Take note of the last round; a phase before is over."""
        if self._current is not None and self._current[0] != phase:
            self._done[self._current[0]] = self._current[2]()
        self._current = phase, rounds, state

    def newest(self) -> tuple[int, dict[str, State]]:
        """Progress of this worker, and the states of all phases."""
        if self._current is None:
            return 0, self._done
        phase, rounds, state = self._current
        earlier = {name: done for name, done in self._done.items() if name != phase}
        return len(earlier) * _LATER_PHASE + rounds, {**earlier, phase: state()}


@dataclass(frozen=True)
class WorkerCheckpoint(Checkpoint):
    """Checkpoint of a fit that several workers run.

    Attributes
    ----------
    path : str
        Name of the phase; the file is with the driver.
    every : int or None
    states : RoundStateStore
    context : WorkerContext
    workers : Workers
    has_file : bool
        Whether the user has asked for a file.
    """

    path: str
    states: RoundStateStore = field(kw_only=True, repr=False)
    context: WorkerContext = field(kw_only=True, repr=False)
    workers: Workers = field(kw_only=True, repr=False)
    has_file: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        """The driver has checked the path."""

    @property
    def compares(self) -> bool:
        """Whether a state is compared with the fingerprint of the fit."""
        return self.has_file

    def is_due(self, rounds: int, pace: WritePace) -> bool:
        """Whether to write after these rounds, by the clock of the first worker."""
        return self.has_file and self.workers.broadcast(super().is_due(rounds, pace))

    def rounds_at_once(self, rounds: int) -> int:
        """1: each round is noted."""
        return 1

    def note_round(self, rounds: int, take: Callable[[], Callable[[], State]]) -> None:
        """Take note of a finished round."""
        self.states.note(self.path, rounds, take())

    def load(self, fingerprint: Mapping[str, Any]) -> State | None:
        """State of an earlier attempt, or else that of the file."""
        earlier_state = self.states.resumed(self.path)
        if earlier_state is not None or not self.has_file:
            return earlier_state
        content = self.context.ask(FileRequest(self.path)) if self.context.rank == 0 else None
        content = self.workers.broadcast(content)
        if content is None:
            return None
        state = State.from_bytes(content, self.path)
        state.check_fit(fingerprint, self.path)
        return state

    def store(self, state: State) -> None:
        """Have the driver write a state, where the user has asked for a file."""
        if self.has_file and self.context.rank == 0:
            self.context.ask(FileRequest(self.path, state.to_bytes()))

    def remove(self) -> None:
        """Have the driver delete the file."""
        if self.has_file and self.context.rank == 0:
            self.context.ask(FileRequest(self.path, removes=True))
