"""Records that the client and the workers of a fit exchange, and the calls that carry them."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distributed.protocol import pickle

from arboost.distributed.program import Interrupted

__all__ = [
    "CALL",
    "Done",
    "Failed",
    "News",
    "Orders",
    "Outcome",
    "Place",
    "TableParts",
    "dumps",
    "loads",
]

CALL = "arboost-call"  # name of the handler that answers the client


@dataclass(frozen=True)
class Place:
    """One worker's place in one attempt of a fit.

    Attributes
    ----------
    fit : str
    attempt, rank : int
    addresses : tuple of str
        Addresses of all workers, by rank.
    """

    fit: str
    attempt: int
    rank: int
    addresses: tuple[str, ...]

    def name(self, rank: int) -> str:
        """Return the name of a worker in messages."""
        return f"Worker {rank} at {self.addresses[rank]}"


@dataclass(frozen=True)
class TableParts:
    """Consecutive parts of a table: keys of Dask's data, or paths of files.

    Attributes
    ----------
    numbers : range
        Numbers of the parts among all parts of the table.
    keys : tuple
    are_paths : bool
    """

    numbers: range
    keys: tuple[Any, ...]
    are_paths: bool


@dataclass(frozen=True)
class Orders:
    """The task of one worker in one attempt.

    Attributes
    ----------
    place : Place
    client : str
        Id of the client of Dask.
    program : bytes
        The program, pickled.
    tables : mapping of str to TableParts
    holder : int or None
        Rank of the worker whose state all workers continue from.
    timeout : float
    """

    place: Place
    client: str
    program: bytes
    tables: Mapping[str, TableParts]
    holder: int | None
    timeout: float


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
    def of(cls, error: BaseException) -> Failed:
        """Return the record of an exception."""
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "unknown line"
        text = f"{type(error).__name__}: {error}"
        try:
            packed = dumps(error.with_traceback(None))
            loads(packed)
        except Exception:
            # An exception may hold anything, and fail to be copied in any way.
            return cls(None, text, where)
        return cls(packed, text, where)

    def raise_on_client(self, worker: str) -> None:
        """Raise the exception, with a note on the worker that raised it."""
        error = RuntimeError(self.text) if self.error is None else loads(self.error)
        error.add_note(f"{worker} raised it in {self.where}.")
        raise error


Outcome = Done | Failed | Interrupted


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


def dumps(value: object) -> bytes:
    """Return a value, pickled as Dask does it: functions of scripts are pickled with their code."""
    packed: bytes = pickle.dumps(value)
    return packed


def loads(packed: bytes) -> Any:
    """Return a pickled value."""
    return pickle.loads(packed)
