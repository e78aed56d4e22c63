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


class LocalDesk:
    """A worker's place; the listener is asked at once."""

    def __init__(self, rank: int, listener: Any, resumed: object) -> None:
        self.rank, self.n_threads, self.resumed, self._listener = rank, 1, resumed, listener
        self.kept: dict[str, Any] = {}
        self.parts: dict[str, range] = {}

    def show(self, message: object) -> None:
        if self.rank == 0:
            self._listener.shown(message)

    def ask(self, message: object) -> Any:
        assert self.rank == 0
        return pickle.loads(
            pickle.dumps(self._listener.answer(pickle.loads(pickle.dumps(message))))
        )

    def check(self) -> None:
        pass


class LosingTransport(LocalTransport):
    """A transport that fails after so many messages."""

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
    losses: Sequence[tuple[int, int]] = (),
) -> list[Any]:
    """Return the results of all workers; tables have the parts of each worker.

    `losses` has, for each attempt that fails, the rank and the number of messages after which it is
    lost.
    """
    size, resumed = len(tables["train"]), None
    for loss in [*losses, None]:
        queues = [[queue.SimpleQueue() for _ in range(size)] for _ in range(size)]
        desks = [LocalDesk(rank, listener, resumed) for rank in range(size)]

        def run(rank: int, queues=queues, desks=desks, loss=loss) -> Any:
            last = loss[1] if loss is not None and loss[0] == rank else None
            transport = LosingTransport(rank, queues, last)
            workers = Workers(transport)
            shares = {name: Share(Parts(of[rank]), workers) for name, of in tables.items()}
            try:
                return pickle.loads(pickle.dumps(program))(shares, desks[rank])
            except BaseException:
                transport.fail()
                raise

        with ThreadPoolExecutor(size) as pool:
            futures = [pool.submit(run, rank) for rank in range(size)]
            errors = [future.exception() for future in futures]
        if loss is None:
            return [future.result() for future in futures]
        if not any(errors):
            raise AssertionError("the fit ended before the loss")
        for error in errors:
            if error is not None and not isinstance(error, WorkerError):
                raise error
        survivors = [desk for rank, desk in enumerate(desks) if rank != loss[0]]
        states = [desk.kept["state"]() for desk in survivors if "state" in desk.kept]
        if states:
            resumed = pickle.loads(pickle.dumps(max(states, key=lambda state: state[0])[1]))
    raise AssertionError
