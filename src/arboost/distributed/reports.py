"""Reports of a worker to the client: the outcome of its program, and news while it runs."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from arboost.distributed.program import Interrupted

__all__ = ["Done", "Failed", "Lost", "News", "Outcome", "silence_of"]


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


def silence_of(timeout: float) -> str:
    """Return the cause of the loss of a worker that gave no sign of life within the limit."""
    return f"it did not answer for {timeout:g} seconds ({timeout=:g})"


@dataclass(frozen=True)
class News:
    """A worker's answer to the client that watches it.

    Attributes
    ----------
    shown : bytes or None
        The newest message of `Desk.show`, pickled, if the client has not seen it.
    question : tuple of int and bytes, or None
        Number and message of `Desk.ask`, pickled, that waits for an answer.
    outcome : Outcome or None
        None while the program runs.
    is_known : bool
        Whether the worker knows the attempt.
    """

    shown: bytes | None = None
    question: tuple[int, bytes] | None = None
    outcome: Outcome | None = None
    is_known: bool = True
