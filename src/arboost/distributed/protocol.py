"""Messages between the driver and the workers of a fit: specifications, reports, outcomes.

    driver:   AttemptSpec ──▶ worker 0: program(shares, context) ──outcome──▶ driver
                          ──▶ worker 1: program(shares, context)
                          ──▶ ...

An attempt ends when a worker is lost; the next one continues from the newest state that a worker
has.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from arboost.distributed.data import TableParts


class Listener(Protocol):
    """The driver's end of `WorkerContext.show` and `WorkerContext.ask`, in the caller's thread.

    An exception of these methods cancels the fit.
    """

    def show(self, message: Any) -> None:
        """Take a message of `WorkerContext.show`."""
        ...

    def answer(self, message: Any) -> object:
        """Answer a message of `WorkerContext.ask`."""
        ...


@dataclass(frozen=True)
class AttemptSpec:
    """Work of one worker in one attempt; each cluster adds its addresses.

    Attributes
    ----------
    program : bytes
        The program, pickled.
    tables : mapping of str to TableParts
    timeout : float
        Seconds without a sign of life after which another worker counts as lost.
    """

    program: bytes
    tables: Mapping[str, TableParts]
    timeout: float


# ---- reports of a worker ----


@dataclass(frozen=True)
class Done:
    """The program has ended; rank 0 has the result, pickled."""

    result: bytes | None


@dataclass(frozen=True)
class Failed:
    """The program raised an exception.

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
        """Record of an exception, which `dumps` pickles."""
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


@dataclass(frozen=True)
class Interrupted:
    """The program ended because another worker is lost, or the fit was cancelled.

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


Outcome = Done | Failed | Interrupted | Lost  # the last one is the driver's word
Outcomes = Mapping[int, Outcome]  # by rank


@dataclass(frozen=True)
class StatusReport:
    """Answer of a worker to the driver that watches it.

    Attributes
    ----------
    shown : bytes or None
        The newest message of `WorkerContext.show`, pickled, if the driver has not seen it.
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


def result_of(outcomes: Outcomes, name: Callable[[int], str]) -> Done | None:
    """Outcome of rank 0 if it has a result; raise the error of the program, if a rank has one.

    Parameters
    ----------
    outcomes : mapping of int to Outcome or Lost
    name : callable
        Name of a worker in messages, by rank.
    """
    for rank in sorted(outcomes):
        failed = outcomes[rank]
        if isinstance(failed, Failed):
            error = (
                RuntimeError(failed.text) if failed.error is None else pickle.loads(failed.error)
            )
            error.add_note(f"{name(rank)} raised it in {failed.where}.")
            raise error
    first = outcomes.get(0)
    return first if isinstance(first, Done) else None


def failure_text(outcome: Outcome) -> str | None:
    """Reason of an end for the other workers; None for a program that has returned."""
    if isinstance(outcome, Failed):
        return outcome.text
    return outcome.cause if isinstance(outcome, Interrupted) else None


def silence_cause(timeout: float) -> str:
    """Cause of the loss of a worker that gave no sign of life within the limit."""
    return f"it did not answer for {timeout:g} seconds ({timeout=:g})"
