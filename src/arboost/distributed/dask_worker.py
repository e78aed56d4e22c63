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

from arboost.distributed import dask_transport
from arboost.distributed.protocol import Interrupted, Outcome, StatusReport, failure_text
from arboost.distributed.worker import WorkerAttempt
from arboost.errors import WorkerError

_GUARD_PERIOD_S = 0.5  # between checks of the fits of a worker
_CLIENT_CHECK_S = 5.0  # of silence after which the scheduler is asked for the client
_CLIENT_CHECK_SHARE = 1 / 12  # of the time limit, where that is less
_CLIENT_TIMEOUT_S = 60.0  # of silence after which a fit is given up
_POLL_S = 0.5  # after which a wait checks whether the attempt is over
_RETRY_S = 0.1  # after which Dask is asked again for a part that it computes
_N_PREFETCHED = 1  # parts that are brought before they are asked for
_CACHE_SHARE = 0.2  # of the worker's memory, for parts of other workers
_DEFAULT_MEMORY = 4 << 30  # of a worker without a limit
_MAX_DENSE_CELLS = 1 << 22  # of a slice of a sparse matrix


@dataclass
class _FitRecord:
    """A fit on this worker, from attempt to attempt."""

    client: str
    attempt: DaskAttempt | None = None
    client_check: float = _CLIENT_CHECK_S
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
        self._guard = PeriodicCallback(self._check_clients, 1000 * _GUARD_PERIOD_S)
        self._calls: dict[str, Callable[..., Awaitable[object]]] = {
            "prepare": self._prepare,
            "begin": self._begin,
            "watch": self._watch,
            "cancel": self._cancel,
            "release": self._release,
        }

    async def call(self, name: str, arguments: bytes) -> dict[str, bytes]:
        """Answer a call of a driver."""
        try:
            answer = await self._calls[name](*dask_transport.loads(arguments))
        except Exception as error:
            # The driver raises it.
            answer = error
        return {"answer": dask_transport.dumps(answer)}

    async def stream(self, comm: Any, fit: str, attempt: int, rank: int) -> None:
        """Read the messages of another worker until its last one."""
        current = self._current(fit, attempt)
        if current is None:
            comm.abort()
        else:
            await current.transport.read(rank, comm)

    async def _prepare(self, spec: dask_transport.DaskSpec) -> None:
        """Make the inboxes of this worker in an attempt, so that others can send to it."""
        fit = self.fits.setdefault(spec.member.fit, _FitRecord(spec.client))
        fit.heard = time.monotonic()
        fit.client_check = min(_CLIENT_CHECK_S, _CLIENT_CHECK_SHARE * spec.timeout)
        if fit.attempt is not None and fit.attempt.thread.is_alive():
            raise RuntimeError("The program of the last attempt has not ended.")
        best = None if fit.attempt is None else fit.attempt.best
        fit.attempt = DaskAttempt(self._worker, spec, best)
        self._worker.periodic_callbacks[dask_transport.CALL] = self._guard
        self._guard.start()

    async def _begin(self, fit: str, attempt: int) -> None:
        current = self._current(fit, attempt)
        if current is None:
            raise RuntimeError("The attempt was not prepared.")
        current.start()

    async def _watch(
        self, fit: str, attempt: int, answer: tuple[int, bytes] | None, patience: float
    ) -> StatusReport:
        """Report on an attempt as soon as there is something to report, or after `patience`."""
        current = self._current(fit, attempt)
        if current is None:
            return StatusReport(is_known=False)
        self.fits[fit].heard = time.monotonic()
        report = await current.wait_for_report(answer, patience)
        if fit in self.fits:
            self.fits[fit].heard = time.monotonic()
        return report

    async def _cancel(self, fit: str, reason: str) -> None:
        record = self.fits.get(fit)
        if record is not None and record.attempt is not None:
            record.attempt.cancel(reason)

    async def _release(self, fit: str) -> None:
        """Forget a fit; a program that still runs ends when it next checks the transport."""
        await self._cancel(fit, "The fit has ended.")
        self.fits.pop(fit, None)
        if not self.fits:
            self._guard.stop()
            self._worker.periodic_callbacks.pop(dask_transport.CALL, None)

    def _current(self, fit: str, attempt: int) -> DaskAttempt | None:
        record = self.fits.get(fit)
        if record is None or record.attempt is None or record.attempt.number != attempt:
            return None
        return record.attempt

    async def _check_clients(self) -> None:
        """Give up fits whose client is gone."""
        for name, fit in list(self.fits.items()):
            silence = time.monotonic() - fit.heard
            if silence > _CLIENT_TIMEOUT_S or (
                silence > fit.client_check and await self._is_gone(fit.client)
            ):
                await self._cancel(name, "The fit was cancelled: its client is gone.")
                await self._release(name)

    async def _is_gone(self, client: str) -> bool:
        """Whether the scheduler has seen the client leave."""
        try:
            async with asyncio.timeout(_CLIENT_CHECK_S):
                events = await self._worker.scheduler.events(topic=client)
        except OSError:  # a TimeoutError is one
            return False
        actions = [event.get("action") for _, event in events if isinstance(event, dict)]
        presence = [action for action in actions if action in ("add-client", "remove-client")]
        return presence[-1:] == ["remove-client"]


def install_extension(dask_worker: Any) -> None:
    """Give a Dask worker the extension and its two handlers, if it has none yet."""
    if dask_transport.CALL not in dask_worker.extensions:
        extension = dask_worker.extensions[dask_transport.CALL] = WorkerExtension(dask_worker)
        dask_worker.handlers[dask_transport.CALL] = extension.call
        dask_worker.handlers[dask_transport.STREAM] = extension.stream


class DaskAttempt(WorkerAttempt):
    """The program of a fit in a thread, and the connections to the other workers.

    Parameters
    ----------
    worker : distributed.Worker
    spec : DaskSpec
    best : tuple of int and object, or None
        Progress and state that this worker has.

    Attributes
    ----------
    number : int
    thread : threading.Thread
        It runs the program.
    """

    transport: dask_transport.DaskTransport

    def __init__(
        self, worker: Any, spec: dask_transport.DaskSpec, best: tuple[int, object] | None
    ) -> None:
        self.number = spec.member.attempt
        super().__init__(
            spec,
            dask_transport.DaskTransport(worker, spec.member, spec.timeout),
            best,
            dask_transport.dumps,
            n_threads=worker.state.nthreads,
            memory_limit=_free_memory(worker),
        )
        self._worker, self._holder = worker, spec.holder
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._has_report = asyncio.Event()
        self._is_waking = False
        name = f"arboost-{spec.member.fit[:8]}-{self.rank}"
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Connect to the other workers and start the program; for the IO loop."""
        if self.outcome is None:  # it may have been cancelled before
            self.transport.start()
            self.thread.start()

    def cancel(self, reason: str) -> None:
        """End the program; for the IO loop."""
        self.transport.end(reason)
        if self.thread.ident is None:  # it has not started
            self.outcome = Interrupted(reason, {}, self.progress)
            self._has_report.set()

    async def wait_for_report(
        self, answer: tuple[int, bytes] | None, patience: float
    ) -> StatusReport:
        """Take an answer of the driver, and report at the latest after `patience` seconds."""
        if answer is not None:
            self.take_answer(*answer)
        deadline = time.monotonic() + patience
        while True:
            report, seconds_left = self.report(), deadline - time.monotonic()
            if report is not None or seconds_left <= 0:
                return report or StatusReport()
            if await dask_transport.is_set_within(
                self._has_report, min(seconds_left, self.seconds_to_message())
            ):
                self._has_report.clear()

    def _wake(self) -> None:
        """Tell the IO loop that there is something to report; once for all that it has not seen."""
        if not self._is_waking:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._set_has_report)

    def _set_has_report(self) -> None:
        self._is_waking = False
        self._has_report.set()

    def _run(self) -> None:
        """Run the program and report its end; the whole thread."""
        outcome = self.run_program(self._holder)
        try:
            asyncio.run_coroutine_threadsafe(self._end(outcome), self._loop)
        except RuntimeError:
            return  # the loop is closed: so is the Dask worker, and all of its connections

    def _rows_of_cluster(self, parts: tuple[Any, ...]) -> WorkerParts:
        return WorkerParts(self._worker, parts, self._spec.timeout, self.check)

    async def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._has_report.set()
        await self.transport.close(failure_text(outcome))


def _free_memory(worker: Any) -> int | None:
    """Bytes that the limit of a Dask worker leaves; None without a limit."""
    limit: int | None = worker.memory_manager.memory_limit
    if limit is None:
        return None
    return max(0, limit - int(worker.monitor.get_process_memory()))


class WorkerParts:
    """Tables that Dask holds, in their order; each pass asks for them again.

    Parts on this worker are not copied. Others are brought from the workers that hold them, the
    next one while the program works on the last; they are cached for the next pass where they fit,
    and until `forget`. Dask computes lost parts again. Sparse matrices come as dense slices.

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
        self._cache: dict[Any, Any] = {}
        self._cache_left = _CACHE_SHARE * (worker.memory_manager.memory_limit or _DEFAULT_MEMORY)

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
            for part in upcoming:
                part.cancel()

    def forget(self) -> None:
        """Drop the cached parts."""
        self._cache.clear()
        self._cache_left = 0

    def _wait(self, part: concurrent.futures.Future[Any]) -> Any:
        """Wait for a part; for the program's thread."""
        try:
            while True:
                try:
                    return part.result(timeout=_POLL_S)
                except concurrent.futures.TimeoutError:
                    self._check()
        finally:
            part.cancel()

    async def _fetch(self, key: Any) -> Any:
        worker = self._worker
        deadline = time.monotonic() + self._timeout
        while time.monotonic() < deadline:
            if key in worker.data:
                return worker.data[key]
            if key in self._cache:
                return self._cache[key]
            holders = await self._holders(key)
            data = await self._gather(key, holders, deadline) if holders else {}
            if key in data:
                self._store(key, data[key])
                return data[key]
            await asyncio.sleep(_RETRY_S)
        raise WorkerError(
            f"The part {key!r} of the data was neither on a worker nor computed again within "
            f"{self._timeout:g} seconds. Check the tasks of Dask, or pass a larger timeout."
        )

    def _store(self, key: Any, part: Any) -> None:
        """Cache a part of another worker, if it fits."""
        size = sizeof(part)
        if size <= self._cache_left:
            self._cache_left -= size
            self._cache[key] = part

    async def _holders(self, key: Any) -> set[str]:
        """Other workers that hold a part."""
        who_has = await self._worker.scheduler.who_has(keys=[key])
        return set(who_has[key]) - {self._worker.address}

    async def _gather(self, key: Any, holders: set[str], deadline: float) -> dict[Any, Any]:
        """Part from another worker, by its key; nothing if all of these workers left."""
        gathering = asyncio.ensure_future(
            gather_from_workers({key: holders}, rpc=self._worker.rpc, who=self._worker.address)
        )
        try:
            while not (await asyncio.wait([gathering], timeout=_POLL_S))[0]:
                # A worker that hangs keeps its connection until Dask gives it up.
                if time.monotonic() > deadline or not holders & await self._holders(key):
                    return {}
            data: dict[Any, Any] = gathering.result()[0]
            return data
        finally:
            gathering.cancel()


def _dense_slices(part: Any) -> Iterator[Any]:
    """Yield a part; of one with a sparse matrix, dense tables of some of its rows at a time."""
    X, *columns = part if isinstance(part, tuple) else (part,)
    if not hasattr(X, "toarray"):
        yield part
        return
    rows, n_rows = X.tocsr(), X.shape[0]
    step = max(1, _MAX_DENSE_CELLS // max(1, X.shape[1]))
    for first in range(0, n_rows, step):
        dense = rows[first : first + step].toarray()
        members = (dense, *(column[first : first + step] for column in columns))
        yield members if isinstance(part, tuple) else dense
