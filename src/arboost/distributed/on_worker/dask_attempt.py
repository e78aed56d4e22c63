"""One attempt of a fit on one worker: the thread of the program, its desk, and news of it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from arboost.distributed.on_worker.dask_parts import WorkerParts
from arboost.distributed.on_worker.dask_transport import DaskTransport
from arboost.distributed.program import Interrupted, Program
from arboost.distributed.records import Failed, News, Orders, Outcome, TableParts, dumps, loads
from arboost.distributed.worker_desk import ProgramRun, WorkerDesk

__all__ = ["Attempt"]


class Attempt:
    """The program of a fit in a thread of its own.

    Parameters
    ----------
    worker : distributed.Worker
    orders : Orders
    kept : dict
        Values that the program keeps on this worker.
    best : tuple of int and object, or None
        Progress and state that this worker has.

    Attributes
    ----------
    place : Place
    transport : DaskTransport
    """

    def __init__(
        self,
        worker: Any,
        orders: Orders,
        kept: dict[str, Any],
        best: tuple[int, object] | None,
    ) -> None:
        self.place = orders.place
        self.transport = DaskTransport(worker, orders.place, orders.timeout)
        self._worker, self._orders = worker, orders
        self._program: Program = loads(orders.program)
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._has_news = asyncio.Event()
        self._is_waking = False
        self._outcome: Outcome | None = None
        self._thread: threading.Thread | None = None
        parts = {name: table.numbers for name, table in orders.tables.items()}
        self._desk = WorkerDesk(
            self.transport, kept, parts, orders.timeout, wake=self._wake, dumps=dumps
        )
        self._desk.n_threads = worker.state.nthreads
        self._desk.memory = _free_memory(worker)
        self._program_run = ProgramRun(self.transport, self._desk, best, dumps)

    @property
    def best(self) -> tuple[int, object] | None:
        """Progress and state that this worker has."""
        return self._program_run.best

    @property
    def is_running(self) -> bool:
        """Whether the program has started and not ended."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Connect to the other workers and start the program; for the IO loop."""
        if self._outcome is not None:
            return  # it was cancelled before
        self.transport.start()
        name = f"arboost-{self.place.fit[:8]}-{self.place.rank}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def cancel(self, reason: str) -> None:
        """End the program; for the IO loop."""
        self.transport.end(reason)
        if self._thread is None:
            self._outcome = Interrupted(reason, {}, self._program_run.progress)
            self._has_news.set()

    async def news(self, answer: tuple[int, bytes] | None, patience: float) -> News:
        """Take an answer of the client, and return news at the latest after `patience` seconds."""
        if answer is not None:
            self._desk.take(*answer)
        deadline = time.monotonic() + patience
        while True:
            found = self._desk.news(self._outcome)
            left = deadline - time.monotonic()
            if found is not None or left <= 0:
                return found or News()
            wait = min(left, max(0.0, self._desk.pause()))
            try:
                await asyncio.wait_for(self._has_news.wait(), wait)
            except TimeoutError:
                continue
            self._has_news.clear()

    def _wake(self) -> None:
        """Tell the IO loop that there are news; once for all that it has not seen."""
        if not self._is_waking:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self._is_waking = False
        self._has_news.set()

    def _run(self) -> None:
        """Run the program and report its end; the whole thread."""
        outcome = self._program_run.outcome(self._load, self._rows, self._orders.holder)
        failed = outcome.text if isinstance(outcome, Failed) else None
        if isinstance(outcome, Interrupted):
            failed = outcome.cause
        try:
            asyncio.run_coroutine_threadsafe(self._end(outcome, failed), self._loop)
        except RuntimeError:
            return  # the loop is closed: so is the Dask worker, and all of its connections

    def _load(self) -> Program:
        return self._program

    def _rows(self) -> dict[str, object]:
        return {name: self._rows_of(table) for name, table in self._orders.tables.items()}

    def _rows_of(self, table: TableParts) -> object:
        if table.are_paths and table.keys:
            return list(table.keys)
        return WorkerParts(self._worker, table.keys, self._orders.timeout, self._desk.check)

    async def _end(self, outcome: Outcome, failed: str | None) -> None:
        self._outcome = outcome
        self._has_news.set()
        await self.transport.close(failed)


def _free_memory(worker: Any) -> int | None:
    """Return the bytes that the limit of a Dask worker leaves; None without a limit."""
    limit: int | None = worker.memory_manager.memory_limit
    if limit is None:
        return None
    return max(0, limit - int(worker.monitor.get_process_memory()))
