"""A Dask worker's side of fits: an extension of it answers the driver and runs programs in threads.

    driver ──prepare, begin, watch, cancel, release──▶ scheduler ──▶ WorkerExtension ──▶ thread

A program has a thread of its own, so it takes no slot of Dask's tasks, and fits that run at the
same time do not wait for each other. The driver watches all workers. A worker that has heard
nothing from it for some seconds asks the scheduler whether the driver's client is still there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dask.sizeof import sizeof
from distributed.utils_comm import gather_from_workers
from tornado.ioloop import PeriodicCallback

from arboost.distributed.dask_transport import (
    CALL,
    STREAM,
    AttemptSpec,
    DaskTransport,
    TableParts,
    dumps,
    loads,
)
from arboost.distributed.protocol import Failed, Interrupted, Outcome, Program, StatusReport
from arboost.distributed.worker import AttemptContext, ProgramRun
from arboost.errors import WorkerError

_GUARD_PERIOD_S = 0.5  # seconds between looks at the fits of a worker
_CLIENT_CHECK_S = (
    5.0  # seconds without a word of the client after which the scheduler is asked for it
)
_CLIENT_TIMEOUT_S = 60.0  # seconds without a word of the client after which a fit is given up


@dataclass
class _FitRecord:
    """A fit on this worker, from attempt to attempt."""

    client: str
    kept: dict[str, Any] = field(default_factory=dict)
    attempt: WorkerAttempt | None = None
    best: tuple[int, object] | None = None
    heard: float = field(default_factory=time.monotonic)


class WorkerExtension:
    """Fits of one Dask worker; an extension of it that stays when the fits have ended.

    All methods are for the IO loop.

    Parameters
    ----------
    worker : distributed.Worker

    Attributes
    ----------
    fits : dict
        Fits by their ids.
    """

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self.fits: dict[str, _FitRecord] = {}
        self._guard = PeriodicCallback(self._look, 1000 * _GUARD_PERIOD_S)
        self._calls: dict[str, Callable[..., Awaitable[object]]] = {
            "prepare": self._prepare,
            "begin": self._begin,
            "watch": self._watch,
            "cancel": self._cancel,
            "release": self._release,
        }

    async def call(self, name: str, arguments: bytes) -> dict[str, bytes]:
        """Answer a call of a client."""
        try:
            answer = await self._calls[name](*loads(arguments))
        except Exception as error:
            # The program may be of modules that this worker lacks: the client raises it.
            answer = error
        return {"answer": dumps(answer)}

    async def stream(self, comm: Any, fit: str, attempt: int, rank: int) -> None:
        """Read the messages of another worker until its last one."""
        found = self._find(fit, attempt)
        if found is None:
            comm.abort()
            return
        await found.transport.read(rank, comm)

    async def _prepare(self, orders: AttemptSpec) -> None:
        """Make the place of this worker in an attempt, so that others can send to it."""
        fit = self.fits.setdefault(orders.place.fit, _FitRecord(orders.client))
        fit.heard = time.monotonic()
        if fit.attempt is not None and fit.attempt.is_running:
            raise RuntimeError("The program of the last attempt has not ended.")
        if fit.attempt is not None and fit.attempt.best is not None:
            fit.best = fit.attempt.best
        fit.attempt = WorkerAttempt(self._worker, orders, fit.kept, fit.best)
        self._worker.periodic_callbacks[CALL] = self._guard
        self._guard.start()

    async def _begin(self, fit: str, attempt: int) -> None:
        found = self._find(fit, attempt)
        if found is None:
            raise RuntimeError("The attempt was not prepared.")
        found.start()

    async def _watch(
        self, fit: str, attempt: int, answer: tuple[int, bytes] | None, patience: float
    ) -> StatusReport:
        """Return news of an attempt as soon as there are any, at the latest after `patience`."""
        found = self._find(fit, attempt)
        if found is None:
            return StatusReport(is_known=False)
        self.fits[fit].heard = time.monotonic()
        news = await found.news(answer, patience)
        if fit in self.fits:
            self.fits[fit].heard = time.monotonic()
        return news

    async def _cancel(self, fit: str, reason: str) -> None:
        found = self.fits.get(fit)
        if found is not None and found.attempt is not None:
            found.attempt.cancel(reason)

    async def _release(self, fit: str) -> None:
        """Forget a fit; a program that still runs ends at its next look at the transport."""
        await self._cancel(fit, "The fit has ended.")
        self.fits.pop(fit, None)
        if not self.fits:
            self._guard.stop()
            self._worker.periodic_callbacks.pop(CALL, None)

    def _find(self, fit: str, attempt: int) -> WorkerAttempt | None:
        found = self.fits.get(fit)
        if found is None or found.attempt is None or found.attempt.place.attempt != attempt:
            return None
        return found.attempt

    async def _look(self) -> None:
        """Give up fits whose client is gone."""
        for name, fit in list(self.fits.items()):
            silence = time.monotonic() - fit.heard
            if silence > _CLIENT_TIMEOUT_S or (
                silence > _CLIENT_CHECK_S and await self._is_gone(fit.client)
            ):
                await self._cancel(name, "The fit was cancelled: its client is gone.")
                await self._release(name)

    async def _is_gone(self, client: str) -> bool:
        """Whether the scheduler has seen the client leave."""
        try:
            events = await asyncio.wait_for(
                self._worker.scheduler.events(topic=client), _CLIENT_CHECK_S
            )
        except (TimeoutError, OSError):
            return False
        actions = [event.get("action") for _, event in events if isinstance(event, dict)]
        known = [action for action in actions if action in ("add-client", "remove-client")]
        return bool(known) and known[-1] == "remove-client"


def install_extension(dask_worker: Any) -> None:
    """Make the post of a Dask worker and its two handlers, if it has none yet."""
    if CALL not in dask_worker.extensions:
        post = dask_worker.extensions[CALL] = WorkerExtension(dask_worker)
        dask_worker.handlers[CALL] = post.call
        dask_worker.handlers[STREAM] = post.stream


class WorkerAttempt:
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
        orders: AttemptSpec,
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
        self._desk = AttemptContext(
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

    async def news(self, answer: tuple[int, bytes] | None, patience: float) -> StatusReport:
        """Take an answer of the client, and return news at the latest after `patience` seconds."""
        if answer is not None:
            self._desk.take(*answer)
        deadline = time.monotonic() + patience
        while True:
            found = self._desk.news(self._outcome)
            left = deadline - time.monotonic()
            if found is not None or left <= 0:
                return found or StatusReport()
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


_RETRY_S = 0.1  # seconds after which Dask is asked again for a part that it computes
_POLL_S = 0.5
_N_PREFETCHED = 1  # parts that are brought before they are asked for
_CACHE_SHARE = 0.2  # of the worker's memory, for parts of other workers
_DEFAULT_MEMORY = 4 << 30  # of a worker without a limit
_MAX_DENSE_CELLS = 1 << 22  # of a slice of a sparse matrix


class WorkerParts:
    """Tables that Dask holds, in their order; each pass asks for them again.

    Parts on this worker are not copied. Others are brought from the workers that hold them, the
    next one while the program works on the last; they are kept for the next pass as long as they
    fit, and until `forget`. Dask computes lost parts again. Sparse matrices come as dense slices.

    Parameters
    ----------
    worker : distributed.Worker
    keys : tuple
        Keys of the parts.
    timeout : float
        Seconds that Dask may take for a part.
    check : callable
        Raises if the fit is over.
    """

    def __init__(
        self, worker: Any, keys: tuple[Any, ...], timeout: float, check: Callable[[], None]
    ) -> None:
        self._worker, self._keys, self._timeout, self._check = worker, keys, timeout, check
        self._kept: dict[Any, Any] = {}
        self._room = _CACHE_SHARE * (worker.memory_manager.memory_limit or _DEFAULT_MEMORY)

    def __iter__(self) -> Iterator[Any]:
        loop = self._worker.loop.asyncio_loop
        upcoming: deque[concurrent.futures.Future[Any]] = deque()
        try:
            for key in self._keys:
                upcoming.append(asyncio.run_coroutine_threadsafe(self._fetch(key), loop))
                if len(upcoming) > _N_PREFETCHED:
                    yield from _dense_slices(self._wait(upcoming.popleft()))
            while upcoming:
                yield from _dense_slices(self._wait(upcoming.popleft()))
        finally:
            for fetched in upcoming:
                fetched.cancel()

    def forget(self) -> None:
        """Drop the parts that were kept."""
        self._kept.clear()
        self._room = 0

    def _wait(self, fetched: concurrent.futures.Future[Any]) -> Any:
        """Return a part; for the program's thread."""
        try:
            while True:
                try:
                    return fetched.result(timeout=_POLL_S)
                except concurrent.futures.TimeoutError:
                    self._check()
        finally:
            fetched.cancel()

    async def _fetch(self, key: Any) -> Any:
        worker = self._worker
        deadline = time.monotonic() + self._timeout
        while time.monotonic() < deadline:
            if key in worker.data:
                return worker.data[key]
            if key in self._kept:
                return self._kept[key]
            others = await self._holders(key)
            data = await self._brought(key, others, deadline) if others else {}
            if key in data:
                self._keep(key, data[key])
                return data[key]
            await asyncio.sleep(_RETRY_S)
        raise WorkerError(
            f"The part {key!r} of the data was neither on a worker nor computed again within "
            f"{self._timeout:g} seconds. Check the tasks of Dask, or pass a larger timeout."
        )

    def _keep(self, key: Any, part: Any) -> None:
        """Keep a part of another worker, where there is room."""
        size = sizeof(part)
        if size <= self._room:
            self._room -= size
            self._kept[key] = part

    async def _holders(self, key: Any) -> set[str]:
        """Return the other workers that hold a part."""
        who_has = await self._worker.scheduler.who_has(keys=[key])
        return set(who_has[key]) - {self._worker.address}

    async def _brought(self, key: Any, others: set[str], deadline: float) -> dict[Any, Any]:
        """Return a part from another worker, by its key; nothing if all of these workers left."""
        bringing = asyncio.ensure_future(
            gather_from_workers({key: others}, rpc=self._worker.rpc, who=self._worker.address)
        )
        try:
            while not (await asyncio.wait([bringing], timeout=_POLL_S))[0]:
                # A worker that hangs keeps its connection until Dask gives it up.
                if time.monotonic() > deadline or not others & await self._holders(key):
                    return {}
            found: dict[Any, Any] = bringing.result()[0]
            return found
        finally:
            bringing.cancel()


def _dense_slices(part: Any) -> Iterator[Any]:
    """Yield a part; of one with a sparse matrix, dense tables of some of its rows at a time."""
    X, *others = part if isinstance(part, tuple) else (part,)
    if not hasattr(X, "toarray"):
        yield part
        return
    rows, n_rows = X.tocsr(), X.shape[0]
    step = max(1, _MAX_DENSE_CELLS // max(1, X.shape[1]))
    for first in range(0, n_rows, step):
        dense = rows[first : first + step].toarray()
        some = (dense, *(other[first : first + step] for other in others))
        yield some if isinstance(part, tuple) else dense
