"""Records that the client and the workers of a fit exchange, and the calls that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distributed.protocol import pickle

from arboost.distributed.reports import Done, Failed, News, Outcome

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


def dumps(value: object) -> bytes:
    """Return a value, pickled as Dask does it: functions of scripts are pickled with their code."""
    packed: bytes = pickle.dumps(value)
    return packed


def loads(packed: bytes) -> Any:
    """Return a pickled value."""
    return pickle.loads(packed)
