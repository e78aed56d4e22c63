"""Messages of other workers that wait for the program's thread, and the end of an attempt.

A transport of a cluster subclasses `InboxTransport`, and adds the way to other workers.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Any

from arboost.distributed.reports import silence_of
from arboost.errors import WorkerError
from arboost.workers import Buffer

__all__ = ["STALLED", "InboxTransport", "Inboxes"]

STALLED = 10  # times the limit of signs of life: of messages, between which workers compute

_SLICE = 1.0  # seconds after which a wait looks for other reasons to end


class Inboxes:
    """One queue of messages for each other worker; all waits end when the attempt does.

    `next` and `check` are for the program's thread, other methods for any thread.

    Parameters
    ----------
    size : int
        Number of workers.
    timeout : float
        Seconds without a sign of life of a worker after which `next` takes it for lost. A worker
        that lives, but sends no message, is lost after `STALLED` times as long.
    name : callable
        Name of a worker in messages, by rank.
    look : callable, optional
        Called before each look at the end of the attempt, which it may call `end` for.
    has_signs : bool
        Whether `hear` is called by signs of life.

    Attributes
    ----------
    seconds : float
        Time that `next` waited so far.
    lost : dict of int to str
        Lost and silent workers by rank, with the cause of each.
    has_raised : bool
        Whether the program has been told that the attempt is over.
    """

    def __init__(
        self,
        size: int,
        timeout: float,
        name: Callable[[int], str],
        look: Callable[[], None] = lambda: None,
        *,
        has_signs: bool = True,
    ) -> None:
        self.seconds = 0.0
        self.lost: dict[int, str] = {}
        self.has_raised = False
        self._timeout, self._name, self._look = timeout, name, look
        self._over: str | None = None  # reason for which the attempt is over
        self._queues: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(size)]
        self._heard, self._has_signs = [0.0] * size, has_signs

    def hear(self, rank: int) -> None:
        """Take note of a sign of life of another worker."""
        self._heard[rank] = time.perf_counter()

    def put(self, rank: int, message: Any) -> None:
        """Take a message of another worker."""
        self._queues[rank].put(message)

    def close(self, rank: int) -> None:
        """Take note that another worker sends no more messages."""
        self._queues[rank].put(None)

    def end(self, reason: str) -> None:
        """End all waits of the program. The first reason counts."""
        if self._over is None:
            self._over = reason
        for one in self._queues:
            one.put(None)

    def lose(self, rank: int, cause: str) -> None:
        """End all waits of the program, because another worker is lost."""
        self.lost.setdefault(rank, cause)
        self.end(f"{self._name(rank)} is lost: {cause}.")

    def check(self) -> None:
        """Raise WorkerError if the attempt is over."""
        self._look()
        if self._over is not None:
            self._stop()

    def next(self, rank: int) -> Any:
        """Return the next message of another worker.

        Raises
        ------
        WorkerError
            The attempt is over, or the worker was silent for too long.
        """
        start = time.perf_counter()
        try:
            return self._next(rank, start)
        finally:
            self.seconds += time.perf_counter() - start

    def _next(self, rank: int, start: float) -> Any:
        while True:
            left, _ = self._left(rank, start)
            try:
                message = self._queues[rank].get(timeout=max(0.0, min(left, _SLICE)))
            except queue.Empty:
                self.check()
                left, cause = self._left(rank, start)
                if left > 0.0:
                    continue
                self.lose(rank, cause)
                self._stop()
            if message is None:
                self.end(f"{self._name(rank)} has ended before this worker.")
                self._stop()
            return message

    def _left(self, rank: int, start: float) -> tuple[float, str]:
        """Return the seconds after which a worker counts as lost, and the cause."""
        now, patience = time.perf_counter(), STALLED * self._timeout
        left = start + patience - now, f"it was silent for {patience:g} seconds"
        if not self._has_signs:
            return left
        alive = max(start, self._heard[rank]) + self._timeout - now
        return min(left, (alive, silence_of(self._timeout)))

    def _stop(self) -> None:
        self.has_raised = True
        raise WorkerError(self._over)


class InboxTransport:
    """`Transport` whose messages arrive in inboxes; subclasses have `send`.

    Parameters
    ----------
    rank, size : int
    timeout : float
        As `Inboxes` takes it.
    name : callable
        Name of a worker in messages, by rank.
    look : callable, optional
        As `Inboxes` takes it.
    has_signs : bool
        As `Inboxes` takes it.

    Attributes
    ----------
    n_bytes, n_messages : int
        Sent so far.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        timeout: float,
        name: Callable[[int], str],
        look: Callable[[], None] = lambda: None,
        *,
        has_signs: bool = True,
    ) -> None:
        self.rank, self.size = rank, size
        self.n_bytes = self.n_messages = 0
        self._inboxes = Inboxes(size, timeout, name, look, has_signs=has_signs)

    @property
    def seconds(self) -> float:
        """Time that `receive` waited so far."""
        return self._inboxes.seconds

    @property
    def lost(self) -> dict[int, str]:
        """Lost and silent workers by rank, with the cause of each."""
        return self._inboxes.lost

    @property
    def has_raised(self) -> bool:
        """Whether the program has been told that the attempt is over."""
        return self._inboxes.has_raised

    def receive(self, rank: int) -> Buffer:
        """Return the next message of another worker.

        Raises
        ------
        WorkerError
            The worker is lost, failed, was silent for too long, or the fit was cancelled.
        """
        message = self._inboxes.next(rank)
        return message if isinstance(message, bytes) else memoryview(message)

    def check(self) -> None:
        """Raise WorkerError if the attempt is over."""
        self._inboxes.check()

    def end(self, reason: str) -> None:
        """End all waits of the program; for any thread. The first reason counts."""
        self._inboxes.end(reason)

    def _count(self, message: bytes) -> None:
        """Count a message that is about to be sent; raise WorkerError if the attempt is over."""
        self._inboxes.check()
        self.n_bytes += len(message)
        self.n_messages += 1
