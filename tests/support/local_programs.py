"""Programs of a cluster in threads of this process, with losses at chosen messages."""

from __future__ import annotations

import pickle
import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from arboost.errors import WorkerError
from arboost.workers import Share, Workers
from support.local_workers import LocalTransport


class Parts:
    """Tables of one worker, which can be read again."""

    def __init__(self, tables: Sequence[Any]) -> None:
        self._tables = tables

    def __iter__(self):
        return iter(self._tables)


def copied(value: Any) -> Any:
    """Return a value as another process gets it."""
    return pickle.loads(pickle.dumps(value))


class LocalContext:
    """`WorkerContext` of a thread; the listener is asked at once."""

    def __init__(self, rank: int, listener: Any, resumed: object) -> None:
        self.rank, self.n_threads, self.resumed_state, self._listener = rank, 1, resumed, listener
        self.newest_state = None
        self.memory_limit = None
        self.parts: dict[str, range] = {}

    def show(self, message: object) -> None:
        if self.rank == 0:
            self._listener.show(message)

    def ask(self, message: object) -> Any:
        assert self.rank == 0
        return pickle.loads(
            pickle.dumps(self._listener.answer(pickle.loads(pickle.dumps(message))))
        )

    def check(self) -> None:
        pass


class LosingTransport(LocalTransport):
    """A transport that fails after a number of messages."""

    def __init__(self, rank: int, queues: Any, last: int | None) -> None:
        super().__init__(rank, queues)
        self._last = last

    def send(self, rank: int, message: bytes) -> None:
        if self._last is not None and self.n_messages >= self._last:
            self.fail()
            raise WorkerError(f"worker {self.rank} is lost")
        super().send(rank, message)


def run_program(
    program: Any,
    tables: dict[str, Sequence[Sequence[Any]]],
    listener: Any,
    losses: Sequence[tuple[int, float]] = (),
) -> list[Any]:
    """Return the results of all workers; tables have the parts of each worker.

    `losses` has, for each attempt that fails, the rank that is lost, and the share of its messages
    in an undisturbed fit after which it is.
    """
    if losses:
        quiet = _Attempt(program, tables, listener, None)
        quiet.run()
    resumed = None
    for rank, share in losses:
        attempt = _Attempt(program, tables, listener, resumed)
        attempt.run(lost=(rank, int(share * quiet.n_messages[rank])))
        resumed = attempt.newest_state(rank)
    last = _Attempt(program, tables, listener, resumed)
    last.run()
    return last.results


class _Attempt:
    """One run of a program in threads."""

    def __init__(self, program: Any, tables: Any, listener: Any, resumed: object) -> None:
        self._size = len(tables["train"])
        self._program, self._tables = program, tables
        self._contexts = [LocalContext(rank, listener, resumed) for rank in range(self._size)]
        self.n_messages = [0] * self._size
        self.results: list[Any] = []

    def run(self, lost: tuple[int, int] | None = None) -> None:
        queues = [[queue.SimpleQueue() for _ in range(self._size)] for _ in range(self._size)]

        def run(rank: int) -> Any:
            is_lost = lost is not None and lost[0] == rank
            transport = LosingTransport(rank, queues, lost[1] if is_lost else None)
            workers = Workers(transport)
            shares = {name: Share(Parts(of[rank]), workers) for name, of in self._tables.items()}
            try:
                return copied(self._program)(shares, self._contexts[rank])
            except BaseException:
                transport.fail()
                raise
            finally:
                self.n_messages[rank] = transport.n_messages

        with ThreadPoolExecutor(self._size) as pool:
            futures = [pool.submit(run, rank) for rank in range(self._size)]
            errors = [error for error in (one.exception() for one in futures) if error is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, WorkerError)):
            if lost is None or not isinstance(error, WorkerError):
                raise error
        if lost is not None and not errors:
            raise AssertionError("the fit ended before the loss")
        self.results = [] if errors else [future.result() for future in futures]

    def newest_state(self, lost: int) -> Any:
        others = [context for rank, context in enumerate(self._contexts) if rank != lost]
        states = [context.newest_state() for context in others if context.newest_state]
        return copied(max(states, key=lambda state: state[0])[1]) if states else None
