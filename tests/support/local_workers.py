"""Workers as threads of this process: the smallest cluster."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from arboost.errors import WorkerError
from arboost.workers import Workers

T = TypeVar("T")
_LIMIT = 120  # seconds that a worker waits for another


class LocalTransport:
    """Messages through queues; a worker that fails ends the waits of all others."""

    def __init__(self, rank: int, queues: list[list[queue.SimpleQueue[Any]]]) -> None:
        self.rank, self.size, self._queues = rank, len(queues), queues
        self.n_bytes = self.n_messages = 0
        self.seconds = 0.0

    def send(self, rank: int, message: bytes) -> None:
        self.n_bytes += len(message)
        self.n_messages += 1
        self._queues[self.rank][rank].put(bytes(message))

    def receive(self, rank: int) -> bytes:
        try:
            message = self._queues[rank][self.rank].get(timeout=_LIMIT)
        except queue.Empty:
            raise WorkerError(f"worker {rank} was silent for {_LIMIT} seconds") from None
        if message is None:
            raise WorkerError(f"worker {rank} is lost")
        return message

    def fail(self) -> None:
        for of_rank in self._queues[self.rank]:
            of_rank.put(None)


def run_workers(size: int, program: Callable[[Workers], T]) -> list[T]:
    """Run a program in several workers at once; return their results, by rank.

    The first error that is not the loss of another worker is raised.
    """
    queues = [[queue.SimpleQueue() for _ in range(size)] for _ in range(size)]

    def run(rank: int) -> T:
        transport = LocalTransport(rank, queues)
        try:
            return program(Workers(transport))
        except BaseException:
            transport.fail()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(run, rank) for rank in range(size)]
        errors = [future.exception() for future in futures]
    found = [error for error in errors if error is not None]
    for error in sorted(found, key=lambda error: isinstance(error, WorkerError)):
        raise error
    return [future.result() for future in futures]
