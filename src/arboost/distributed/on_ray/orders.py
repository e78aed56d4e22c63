"""Records that the driver sends to the actors of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ray import cloudpickle

__all__ = ["Orders", "TableBlocks", "dumps"]


@dataclass(frozen=True)
class TableBlocks:
    """Consecutive parts of a table: blocks of a Ray Dataset, or files.

    Attributes
    ----------
    parts : tuple
        Object references of blocks, or paths.
    sizes : tuple of int
        Bytes of each part.
    are_paths : bool
    first : int
        Number of the first part among all parts of the table.
    """

    parts: tuple[Any, ...]
    sizes: tuple[int, ...]
    are_paths: bool
    first: int = 0

    @property
    def numbers(self) -> range:
        """Numbers of the parts among all parts of the table."""
        return range(self.first, self.first + len(self.parts))

    def slice(self, numbers: range) -> TableBlocks:
        """Return some of the parts of a whole table."""
        chosen = slice(numbers.start, numbers.stop)
        return TableBlocks(self.parts[chosen], self.sizes[chosen], self.are_paths, numbers.start)


@dataclass(frozen=True)
class Orders:
    """The task of one actor in one attempt.

    Attributes
    ----------
    attempt, rank : int
    actors : tuple of actor handles
        All actors, by rank.
    names : tuple of str
        Names of all actors in messages, by rank.
    program : bytes
        The program, pickled.
    tables : mapping of str to TableBlocks
    n_threads : int
    timeout : float
    """

    attempt: int
    rank: int
    actors: tuple[Any, ...]
    names: tuple[str, ...]
    program: bytes
    tables: Mapping[str, TableBlocks]
    n_threads: int
    timeout: float


def dumps(value: object) -> bytes:
    """Return a value, pickled as Ray does it: functions of scripts are pickled with their code."""
    packed: bytes = cloudpickle.dumps(value)
    return packed
