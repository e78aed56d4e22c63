"""One attempt of a fit on one worker: the thread of the program, its desk, and news of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from arboost.distributed.on_worker.dask_parts import WorkerParts
from arboost.distributed.on_worker.dask_transport import DaskTransport
from arboost.distributed.program import Interrupted, Program
from arboost.distributed.records import Done, Failed, News, Orders, Outcome, dumps, loads
from arboost.errors import WorkerError
from arboost.workers import Share, Workers

__all__ = ["Attempt"]

_PACE = 0.1  # seconds between messages of `Desk.show` that are sent
_SLICE = 0.5


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
    best : tuple of int and object, or None
        Progress and state after the end.
    """

    def __init__(
        self,
        worker: Any,
        orders: Orders,
        kept: dict[str, Any],
        best: tuple[int, object] | None,
    ) -> None:
        self.place, self.best = orders.place, best
        self.transport = DaskTransport(worker, orders.place, orders.timeout)
        self._worker, self._orders = worker, orders
        self._program: Program = loads(orders.program)
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._has_news = asyncio.Event()
        self._is_waking = False
        self._last_shown = 0.0
        self._outcome: Outcome | None = None
        self._thread: threading.Thread | None = None
        parts = {name: table.numbers for name, table in orders.tables.items()}
        self._desk = WorkerDesk(self.transport, kept, parts, orders.timeout, self._wake)
        self._desk.n_threads = worker.state.nthreads
        self._desk.memory = _free_memory(worker)

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
            self._outcome = Interrupted(reason, {}, self._progress)
            self._has_news.set()

    async def news(self, answer: tuple[int, bytes] | None, patience: float) -> News:
        """Take an answer of the client, and return news at the latest after `patience` seconds."""
        if answer is not None:
            self._desk.take(*answer)
        deadline = time.monotonic() + patience
        while True:
            found = self._newest()
            left = deadline - time.monotonic()
            if found is not None or left <= 0:
                return found or News()
            pause = self._last_shown + _PACE - time.monotonic()
            waits_for_pace = bool(self._desk.messages) and pause > 0
            try:
                await asyncio.wait_for(
                    self._has_news.wait(), min(left, pause) if waits_for_pace else left
                )
            except TimeoutError:
                continue
            self._has_news.clear()

    def _newest(self) -> News | None:
        """Return a question, the outcome, or a message whose time has come; None without them."""
        outcome, question, messages = self._outcome, self._desk.question, self._desk.messages
        is_time = time.monotonic() >= self._last_shown + _PACE
        if outcome is None and question is None and not (messages and is_time):
            return None
        shown = None
        if messages:
            self._last_shown = time.monotonic()
            try:
                shown = dumps(messages.popleft())
            except Exception as error:
                # Pickling calls methods of the message, which may raise anything.
                self.transport.end(f"A message could not be sent: {error}")
        return News(shown, question, outcome)

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
        try:
            outcome = self._result()
        except BaseException as error:
            # Whatever ends the thread, the client and the other workers must know.
            outcome = self._failure(error)
        failed = outcome.text if isinstance(outcome, Failed) else None
        if isinstance(outcome, Interrupted):
            failed = outcome.cause
        try:
            asyncio.run_coroutine_threadsafe(self._end(outcome, failed), self._loop)
        except RuntimeError:
            return  # the loop is closed: so is the Dask worker, and all of its connections

    def _result(self) -> Outcome:
        orders, workers = self._orders, Workers(self.transport)
        if orders.holder is not None:
            self.best = workers.broadcast(self.best, orders.holder)
            self._desk.resumed = None if self.best is None else self.best[1]
        tables = {name: Share(self._rows(table), workers) for name, table in orders.tables.items()}
        result = self._program(tables, self._desk)
        return Done(dumps(result) if self.place.rank == 0 else None)

    def _rows(self, table: Any) -> object:
        if table.are_paths and table.keys:
            return list(table.keys)
        return WorkerParts(self._worker, table.keys, self._orders.timeout, self._desk.check)

    def _failure(self, error: BaseException) -> Outcome:
        """Return the outcome of an exception: an interruption where the transport raised first."""
        if not self.transport.has_raised:
            return Failed.of(error)
        state: Callable[[], tuple[int, object]] | None = self._desk.kept.get("state")
        if state is not None:
            try:
                progress, value = state()
            except Exception as failure:
                return Failed.of(failure)
            if self.best is None or progress >= self.best[0]:
                self.best = progress, value
        return Interrupted(str(error), dict(self.transport.lost), self._progress)

    @property
    def _progress(self) -> int | None:
        return None if self.best is None else self.best[0]

    async def _end(self, outcome: Outcome, failed: str | None) -> None:
        self._outcome = outcome
        self._has_news.set()
        await self.transport.close(failed)


class WorkerDesk:
    """`Desk` of one attempt; its `messages` and `question` wait for the client.

    Parameters
    ----------
    transport : DaskTransport
    kept : dict
    parts : mapping of str to range
    timeout : float
        Seconds that the client may take for an answer.
    wake : callable
        Tells the IO loop that there are news.
    """

    def __init__(
        self,
        transport: DaskTransport,
        kept: dict[str, Any],
        parts: Mapping[str, range],
        timeout: float,
        wake: Callable[[], None],
    ) -> None:
        self.kept, self.parts = kept, parts
        self.resumed: object | None = None
        self.rank, self.n_threads = transport.rank, 1
        self.memory: int | None = None
        self.messages: deque[object] = deque(maxlen=1)  # the newest
        self.question: tuple[int, bytes] | None = None
        self._transport, self._timeout, self._wake = transport, timeout, wake
        self._n_questions = 0
        self._answer: bytes | None = None
        self._is_answered = threading.Event()

    def show(self, message: object) -> None:
        """Send a message to the client; see `Desk.show`."""
        if self.rank != 0:
            return
        self.messages.append(message)
        self._wake()

    def ask(self, message: object) -> Any:
        """Return the client's answer; see `Desk.ask`."""
        if self.rank != 0:
            raise RuntimeError(f"Rank {self.rank} asked the client, but only rank 0 may.")
        self._is_answered.clear()
        self._n_questions += 1
        self.question = self._n_questions, dumps(message)
        self._wake()
        deadline = time.monotonic() + self._timeout
        while not self._is_answered.wait(_SLICE):
            self.check()
            if time.monotonic() > deadline:
                raise WorkerError(f"The client did not answer within {self._timeout:g} seconds.")
        self.check()
        return loads(self._answer or b"")

    def check(self) -> None:
        """Raise if the fit is over; see `Desk.check`."""
        self._transport.check()

    def take(self, number: int, answer: bytes) -> None:
        """Take the client's answer; for the IO loop."""
        if self.question is not None and self.question[0] == number:
            self.question, self._answer = None, answer
            self._is_answered.set()


def _free_memory(worker: Any) -> int | None:
    """Return the bytes that the limit of a Dask worker leaves; None without a limit."""
    limit: int | None = worker.memory_manager.memory_limit
    if limit is None:
        return None
    return max(0, limit - int(worker.monitor.get_process_memory()))
