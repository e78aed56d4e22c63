"""The program that all workers of a fit run at the same time, and their reports to the driver.

    driver:   Program, tables ──▶ worker 0: program(shares, context) ──result──▶ driver
                              ──▶ worker 1: program(shares, context)
                              ──▶ ...

Workers meet in the calls of `Share.workers`. An attempt ends when a worker is lost; the next one
continues from the newest state that a worker has.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from arboost.workers import Share


class WorkerContext(Protocol):
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

    def __call__(self, tables: Mapping[str, Share], desk: WorkerContext) -> object:
        """Run in a thread of the worker; the value that rank 0 returns is the result of the fit."""
        ...


class Listener(Protocol):
    """The client's side: `WorkerContext.show` and `WorkerContext.ask` end here.

    An exception of these methods cancels the fit.
    """

    def shown(self, message: Any) -> None:
        """Take a message of `WorkerContext.show`."""
        ...

    def answer(self, message: Any) -> object:
        """Return the answer to a message of `WorkerContext.ask`."""
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


@dataclass(frozen=True)
class Done:
    """The program has ended; rank 0 has the result, pickled."""

    result: bytes | None


@dataclass(frozen=True)
class Failed:
    """The program raised an exception of its own.

    Attributes
    ----------
    error : bytes or None
        The exception, pickled; None if that is impossible.
    text : str
        Type and message.
    where : str
        The line that raised it.
    """

    error: bytes | None
    text: str
    where: str

    @classmethod
    def of(cls, error: BaseException, dumps: Callable[[object], bytes]) -> Failed:
        """Return the record of an exception, which `dumps` pickles."""
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "unknown line"
        text = f"{type(error).__name__}: {error}"
        try:
            packed = dumps(error.with_traceback(None))
            pickle.loads(packed)
        except Exception:
            # An exception may hold anything, and fail to be copied in any way.
            return cls(None, text, where)
        return cls(packed, text, where)

    def raise_on_client(self, worker: str) -> None:
        """Raise the exception, with a note on the worker that raised it."""
        error = RuntimeError(self.text) if self.error is None else pickle.loads(self.error)
        error.add_note(f"{worker} raised it in {self.where}.")
        raise error


Outcome = Done | Failed | Interrupted


@dataclass(frozen=True)
class Lost:
    """A worker that does not answer, or whose program does not end.

    Attributes
    ----------
    cause : str
    is_silent : bool
        Whether its process answers nothing, and may be suspended.
    """

    cause: str
    is_silent: bool = False


def silence_cause(timeout: float) -> str:
    """Return the cause of the loss of a worker that gave no sign of life within the limit."""
    return f"it did not answer for {timeout:g} seconds ({timeout=:g})"


@dataclass(frozen=True)
class StatusReport:
    """A worker's answer to the client that watches it.

    Attributes
    ----------
    shown : bytes or None
        The newest message of `WorkerContext.show`, pickled, if the client has not seen it.
    question : tuple of int and bytes, or None
        Number and message of `WorkerContext.ask`, pickled, that waits for an answer.
    outcome : Outcome or None
        None while the program runs.
    is_known : bool
        Whether the worker knows the attempt.
    """

    shown: bytes | None = None
    question: tuple[int, bytes] | None = None
    outcome: Outcome | None = None
    is_known: bool = True
