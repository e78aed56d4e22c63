"""Workers of one fit, each of which holds some of the rows: messages, and calls that they meet in.

All workers run the same program, and meet in the same calls in the same order. `Transport` is what
a cluster has to provide: ordered messages between two workers. `Workers` is made of it, for Python
and, by `Workers.core`, for the reductions of the core.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = ["Share", "Transport", "Workers"]


class Transport(Protocol):
    """Ordered messages between the workers of one fit.

    Attributes
    ----------
    rank : int
        Number of this worker, from 0. Its rows follow those of lower ranks.
    size : int
        Number of workers.
    """

    rank: int
    size: int

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to another worker, without waiting for it."""
        ...

    def receive(self, rank: int) -> bytes:
        """Return the next message of another worker.

        Raises
        ------
        WorkerError
            The worker is lost, or was silent for too long.
        """
        ...


class Workers:
    """Calls in which the workers of a fit meet.

    Parameters
    ----------
    transport : Transport
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def rank(self) -> int:
        """Number of this worker."""
        return self._transport.rank

    @property
    def size(self) -> int:
        """Number of workers."""
        return self._transport.size

    @cached_property
    def core(self) -> core.Workers:
        """The same workers for the reductions of the core."""
        return core.Workers(self._transport, self.rank, self.size)

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers, by rank."""
        message = pickle.dumps(value, protocol=5)
        others = [rank for rank in range(self.size) if rank != self.rank]
        for rank in others:
            self._transport.send(rank, message)
        values = [value] * self.size
        for rank in others:
            values[rank] = pickle.loads(self._transport.receive(rank))
        return values

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of one worker; those of others are ignored."""
        if self.rank != root:
            return pickle.loads(self._transport.receive(root))
        message = pickle.dumps(value, protocol=5)
        for rank in range(self.size):
            if rank != root:
                self._transport.send(rank, message)
        return value

    def concatenated(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the arrays of all workers as one, by rank."""
        return np.concatenate(self.gather(array))


@dataclass(frozen=True)
class Share:
    """One worker's rows of a table that is divided among workers; `fit` takes it for X.

    Attributes
    ----------
    X : source
        The rows of this worker, as `arboost.sources.opening.open_source` takes them: paths, or an
        iterable of tables or of tuples (X, y) or (X, y, weight) that starts again. They follow
        those of lower ranks. There may be none.
    workers : Workers
    """

    X: object
    workers: Workers


def spread(n: int, size: int) -> Sequence[range]:
    """Return consecutive ranges of almost equal lengths, one for each worker."""
    bounds = [n * rank // size for rank in range(size + 1)]
    return [range(first, last) for first, last in zip(bounds, bounds[1:], strict=False)]
