"""A program that all workers of a fit run at the same time, and its surroundings there.

    client:   Program, tables ──▶ worker 0: program(shares, desk) ──result──▶ client
                              ──▶ worker 1: program(shares, desk)
                              ──▶ ...

Workers meet in the calls of `Share.workers`. An attempt ends when a worker is lost; the next one
continues from the newest state that a worker has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from arboost.workers import Share

__all__ = ["Desk", "Interrupted", "Listener", "Program"]


class Desk(Protocol):
    """A worker's place in a fit.

    Attributes
    ----------
    kept : dict of str to Any
        Values that live on this worker from attempt to attempt of one fit. ``kept["state"]`` may
        be a function without arguments that returns ``(progress, state)``, an integer and a
        picklable object. It is called after the loss of a worker.
    resumed : object or None
        State that this attempt continues from, the same on all workers; None in the first attempt,
        and as long as no worker has one.
    rank : int
    n_threads : int
        Threads of the worker.
    memory : int or None
        Bytes that the fit may use on this worker; None: unknown.
    parts : mapping of str to range
        Numbers of the parts of each table that this worker holds in this attempt.
    """

    kept: dict[str, Any]
    resumed: object | None
    rank: int
    n_threads: int
    memory: int | None
    parts: Mapping[str, range]

    def show(self, message: object) -> None:
        """Send a message to the client, without waiting; those of other ranks are dropped.

        It costs nothing: about ten messages a second are sent, and a newer one replaces an older
        one that was not. Messages must not change afterwards.
        """
        ...

    def ask(self, message: object) -> Any:
        """Return the client's answer to a message; rank 0 only.

        Raises
        ------
        WorkerError
            There was no answer within the time limit, or the fit was cancelled.
        """
        ...

    def check(self) -> None:
        """Raise WorkerError if the fit was cancelled, or another worker is lost."""
        ...


class Program(Protocol):
    """A picklable function; all workers call it with their shares of the same tables."""

    def __call__(self, tables: Mapping[str, Share], desk: Desk) -> object:
        """Run in a thread of the worker; the value that rank 0 returns is the result of the fit."""
        ...


class Listener(Protocol):
    """The client's side of a program: `Desk.show` and `Desk.ask` end here, in the caller's thread.

    An exception of these methods cancels the fit.
    """

    def shown(self, message: Any) -> None:
        """Take a message of `Desk.show`."""
        ...

    def answer(self, message: Any) -> object:
        """Return the answer to a message of `Desk.ask`."""
        ...


@dataclass(frozen=True)
class Interrupted:
    """Report of a worker whose program ended because another worker is lost.

    Attributes
    ----------
    cause : str
        Message of the WorkerError.
    lost : dict of int to str
        Lost and silent workers by rank, and the cause of each.
    progress : int or None
        Progress of the state that this worker has; None where it has no state.
    """

    cause: str
    lost: Mapping[int, str] = field(default_factory=dict)
    progress: int | None = None
