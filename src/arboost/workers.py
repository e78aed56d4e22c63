"""Workers of one fit, each of which holds some of the rows: messages, and calls that they meet in.

All workers run the same program, and meet in the same calls in the same order. `Transport` is what
a cluster has to provide: ordered messages between two workers. `Workers` is made of it, for Python
and, by `Workers.core`, for the reductions of the core.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core, lazy_property
from arboost.errors import WorkerError, warnings_collected

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview


class Transport(Protocol):
    """Ordered messages between the workers of one fit.

    Attributes
    ----------
    rank : int
        Number of this worker, from 0. Its rows follow those of lower ranks.
    size : int
        Number of workers.
    n_bytes, n_messages : int
        Sent so far.
    seconds : float
        Time that `receive` waited so far.
    """

    rank: int
    size: int
    n_bytes: int
    n_messages: int
    seconds: float

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to another worker, without waiting for it."""
        ...

    def receive(self, rank: int) -> Buffer:
        """Next message of another worker.

        Raises
        ------
        WorkerError
            The worker is lost, or was silent for too long.
        """
        ...


@dataclass(frozen=True)
class Traffic:
    """Messages of one worker.

    Attributes
    ----------
    n_bytes, n_messages : int
        Sent.
    waited, seconds : float
        Time that the worker waited for messages, and time in all.
    """

    n_bytes: int
    n_messages: int
    waited: float
    seconds: float


class Workers:
    """Calls in which the workers of a fit meet.

    Parameters
    ----------
    transport : Transport

    Attributes
    ----------
    n_votes : int
        Features that each worker proposes for a node of a tree; 0: all features are searched.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._started = monotonic()
        self.n_votes = 0

    @property
    def traffic(self) -> Traffic:
        """Messages of this worker so far."""
        sent = self._transport
        return Traffic(sent.n_bytes, sent.n_messages, sent.seconds, monotonic() - self._started)

    @property
    def rank(self) -> int:
        """Number of this worker."""
        return self._transport.rank

    @property
    def size(self) -> int:
        """Number of workers."""
        return self._transport.size

    @lazy_property
    def core(self) -> core.Workers:
        """The same workers for the reductions of the core."""
        return core.Workers(self._transport, self.rank, self.size)

    def gather(self, value: Any) -> list[Any]:
        """Values of all workers, by rank."""
        message = pickle.dumps(value, protocol=5)
        return self._exchange(value, lambda rank: message)

    def exchange(self, values: Sequence[Any]) -> list[Any]:
        """Values that all workers have for this one, by rank.

        ``values[rank]`` is the value for the worker of that rank.
        """
        return self._exchange(
            values[self.rank], lambda rank: pickle.dumps(values[rank], protocol=5)
        )

    def _exchange(self, own_value: Any, message_for: Callable[[int], bytes]) -> list[Any]:
        other_ranks = [rank for rank in range(self.size) if rank != self.rank]
        for rank in other_ranks:
            self._transport.send(rank, message_for(rank))
        values = [own_value] * self.size
        for rank in other_ranks:
            values[rank] = pickle.loads(self._transport.receive(rank))
        return values

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Value of one worker; those of others are ignored."""
        if self.rank != root:
            return pickle.loads(self._transport.receive(root))
        message = pickle.dumps(value, protocol=5)
        for rank in range(self.size):
            if rank != root:
                self._transport.send(rank, message)
        return value

    def concatenated(self, array: NDArray[Any]) -> NDArray[Any]:
        """Arrays of all workers as one, by rank."""
        return np.concatenate(self.gather(array))


@dataclass(frozen=True)
class Share:
    """One worker's rows of a table that is divided among workers; `fit` takes it for X.

    Attributes
    ----------
    X : source
        The rows of this worker, as `arboost.data.source.open_source` takes them: paths, or an
        iterable of tables or of tuples (X, y) or (X, y, weight) that starts again. They follow
        those of lower ranks. There may be none.
    workers : Workers
    """

    X: object
    workers: Workers


def run_collective(workers: Workers | None, work: Callable[[], T]) -> T:
    """Result of work on this worker's rows; an error of one worker is that of all.

    No worker waits for another that has failed: all raise the error of the lowest rank. `work` must
    not send messages. None for `workers` is a fit in one process.
    """
    if workers is None:
        return work()
    result: T | None = None
    error: Exception | None = None
    try:
        result = work()
    except Exception as raised:
        error = raised
    errors = workers.gather(None if error is None else _sendable(error))
    for rank, worker_error in enumerate(errors):
        if worker_error is not None:
            shown = error if error is not None and rank == workers.rank else worker_error
            shown.add_note(f"Error of worker {rank} of {workers.size}, on its own rows.")
            raise shown
    return result  # type: ignore[return-value]


def warn_on_first_worker(workers: Workers | None) -> AbstractContextManager[object]:
    """Leave warnings to the first worker; None is a fit in one process, which warns."""
    return nullcontext() if workers is None or workers.rank == 0 else warnings_collected()


def _sendable(error: Exception) -> Exception:
    """An error as other workers can raise it."""
    try:
        pickle.loads(pickle.dumps(error, protocol=5))
    except Exception:  # of a class that cannot be pickled
        return WorkerError(f"{type(error).__name__}: {error}")
    return error


def even_ranges(n: int, size: int) -> Sequence[range]:
    """Consecutive ranges of almost equal lengths, one for each worker."""
    bounds = [n * rank // size for rank in range(size + 1)]
    return [range(first, last) for first, last in pairwise(bounds)]
