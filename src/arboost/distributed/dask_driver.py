"""A program on a cluster of Dask: attempt after attempt, until one ends with a result.

    caller's thread          IO loop of the client              workers
    run_program ──start──▶  ClientFit.run ──prepare, begin──▶  threads
       │  ◀── shown, asked ── _watch  ◀────── reports ──────      │
       └──── answers ──────▶    │  ──────── answers ───────▶      │
    result  ◀───────────────────┴──────────────────────────────  rank 0

An attempt ends when a worker is lost. The newest state of a worker is the start of the next
attempt, and parts of the lost worker go to a spare or new worker or to its neighbours. A worker
that hangs is treated as a lost one, after the time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from concurrent.futures import Future as ThreadFuture
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from dask.delayed import Delayed
from distributed import Future, wait
from distributed.client import FuturesCancelledError

from arboost.distributed.dask_transport import (
    CALL,
    AttemptSpec,
    Membership,
    TableParts,
    dumps,
    loads,
    loss_cause,
)
from arboost.distributed.dask_worker import install_extension
from arboost.distributed.data import balanced_ranges, ranges_without, workers_near_data
from arboost.distributed.protocol import (
    Done,
    Failed,
    Listener,
    Lost,
    Outcome,
    Program,
    StatusReport,
    silence_cause,
)
from arboost.distributed.recovery import WorkerFailureBudget, newest_state
from arboost.errors import WorkerError

_LISTENER_POLL_S = 0.5  # seconds between looks of the caller's thread at the IO loop
_RELEASE_LIMIT_S = 5.0  # seconds that workers may take to forget a fit


@dataclass(frozen=True)
class Limits:
    """Limits of a fit.

    Attributes
    ----------
    timeout : float
        Seconds of silence after which a worker counts as lost.
    patience : float
        Seconds to wait for another worker after a loss.
    retries : int
        Losses without progress in between after which the fit fails.
    """

    timeout: float = 60.0
    patience: float = 5.0
    retries: int = 3


def run_program(
    client: Any,
    program: Program,
    tables: Mapping[str, Sequence[Any]],
    listener: Listener,
    *,
    workers: Sequence[Any] | None = None,
    limits: Limits = Limits(),  # frozen
) -> Any:
    """Return the result of a program that runs on workers of a cluster at the same time.

    Parameters
    ----------
    client : distributed.Client
    program : Program
    tables : mapping of str to sequence
        Parts of each table in the order of its rows: futures or delayed values of Dask, or paths.
        The first table is the one that is divided evenly.
    listener : Listener
        Takes messages of the program, in this thread.
    workers : sequence, optional
        Addresses or names of the workers to use; all by default.
    limits : Limits

    Raises
    ------
    WorkerError
        Too many workers are lost, or the scheduler is.
    Exception
        Raised by the program, by the tasks of the parts, or by the listener.
    """
    futures = submit_parts(client, tables)
    messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
    fit = ClientFit(client, dumps(program), messages, workers, limits)
    loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop
    running = asyncio.run_coroutine_threadsafe(fit.run(futures), loop)
    running.add_done_callback(lambda _: messages.put(_Message(None, None)))
    try:
        while not running.done():
            with contextlib.suppress(queue.Empty):
                messages.get(timeout=_LISTENER_POLL_S).pass_to(listener)
            if not loop.is_running() or client.status == "closed":
                raise WorkerError("The client of Dask was closed during the fit.")
        while not messages.empty():
            messages.get().pass_to(listener)
        return running.result()
    finally:
        if not running.done():
            running.cancel()
            fit.is_released.wait(_RELEASE_LIMIT_S if loop.is_running() else 0)


@dataclass(frozen=True)
class _Message:
    """A message of the program, pickled, and the place of its answer, if it is a question."""

    packed: bytes | None
    answer: ThreadFuture[bytes] | None

    def pass_to(self, listener: Listener) -> None:
        if self.packed is None:
            return
        if self.answer is None:
            listener.shown(loads(self.packed))
        else:
            self.answer.set_result(dumps(listener.answer(loads(self.packed))))


class ClientFit:
    """The client's side of a fit; all methods are for its IO loop.

    Parameters
    ----------
    client : distributed.Client
    program : bytes
    messages : queue
        For the caller's thread.
    workers : sequence or None
    limits : Limits

    Attributes
    ----------
    is_released : threading.Event
        Set when all workers have forgotten the fit.
    """

    def __init__(
        self,
        client: Any,
        program: bytes,
        messages: queue.SimpleQueue[_Message],
        workers: Sequence[Any] | None,
        limits: Limits,
    ) -> None:
        self.is_released = threading.Event()
        self._id = uuid4().hex
        self._calls = WorkerCalls(client)
        self._program, self._messages = program, messages
        self._workers, self._limits = workers, limits
        self._used: set[str] = set()
        self._lost_parts: set[range] = set()  # since the last progress
        self._losses = WorkerFailureBudget(limits.retries)

    async def run(self, given: Mapping[str, Sequence[Any]]) -> Any:
        """Return the result of the program."""
        try:
            return await self._attempts(given)
        finally:
            await self._release()
            self.is_released.set()

    async def _attempts(self, given: Mapping[str, Sequence[Any]]) -> Any:
        tables = await computed_tables(self._calls.client, given)
        recruiter = WorkerSelector(self._calls, tables, self._workers, self._limits.patience)
        crew, holder, number = await recruiter.first(), None, 0
        while True:
            self._used.update(crew.addresses)
            attempt = ClientAttempt(self._calls, self._id, number, crew, self)
            outcomes = await attempt.run(self._program, tables, holder, self._limits.timeout)
            for rank in sorted(outcomes):
                failed = outcomes[rank]
                if isinstance(failed, Failed):
                    failed.raise_on_client(f"Worker {rank} at {crew.addresses[rank]}")
            first = outcomes[0]
            if isinstance(first, Done):
                return loads(first.result or b"")
            lost = await self._lost(crew, outcomes, recruiter)
            newest = newest_state(outcomes)
            self._count(crew, lost, outcomes, None if newest is None else newest[1])
            old = crew.addresses
            try:
                await self._calls.restart(_silent_addresses(old, outcomes))
                crew = await recruiter.next(crew, sorted(lost))
                await computed_tables(self._calls.client, given, self._limits.timeout)
            except WorkerError as error:
                raise self._losses.error(str(error)) from None
            holder = None if newest is None else crew.addresses.index(old[newest[0]])
            number += 1

    def show(self, message: bytes) -> None:
        """Pass a message to the caller's thread."""
        self._messages.put(_Message(message, None))

    def ask(self, message: bytes) -> asyncio.Future[bytes]:
        """Return the future answer of the caller's thread."""
        answer: ThreadFuture[bytes] = ThreadFuture()
        self._messages.put(_Message(message, answer))
        return asyncio.wrap_future(answer)

    async def _lost(
        self, crew: WorkerGroup, outcomes: Mapping[int, Outcome | Lost], recruiter: WorkerSelector
    ) -> dict[int, str]:
        """Return the ranks of lost workers and the cause of each."""
        here = await self._calls.workers()
        lost = {}
        for rank, address in enumerate(crew.addresses):
            outcome = outcomes[rank]
            if isinstance(outcome, Lost):
                lost[rank] = outcome.cause
                recruiter.banned.add(address)
            elif address not in here:
                lost[rank] = "it has left the cluster"
        return lost

    def _count(
        self,
        crew: WorkerGroup,
        lost: Mapping[int, str],
        outcomes: Mapping[int, Outcome | Lost],
        progress: int | None,
    ) -> None:
        """Count a loss; raise WorkerError if there were too many without progress."""
        if self._losses.note_progress(progress):
            self._lost_parts.clear()
        named = {f"Worker {rank} at {crew.addresses[rank]}": lost[rank] for rank in lost}
        self._losses.note_losses(named, outcomes)
        parts = {next(iter(crew.ranges.values()))[rank] for rank in lost}
        if parts & self._lost_parts:
            raise self._losses.error(
                "The same rows were lost twice in a row. The memory of the worker was probably "
                "too small for them: use more workers, workers of more memory, or files, which are "
                "read in batches."
            )
        self._lost_parts |= parts
        self._losses.check()

    async def _release(self) -> None:
        """Let all workers forget the fit; one that does not answer forgets it by itself."""

        async def release(address: str) -> None:
            with contextlib.suppress(UnreachableError, WorkerError):
                await self._calls.call(address, "release", self._id, limit=_RELEASE_LIMIT_S)

        with contextlib.suppress(WorkerError):
            here = await self._calls.workers()
            await asyncio.gather(*(release(one) for one in self._used if one in here))


def _silent_addresses(
    addresses: Sequence[str], outcomes: Mapping[int, Outcome | Lost]
) -> list[str]:
    """Return the addresses of the workers that answer nothing."""
    lost = {rank for rank, one in outcomes.items() if isinstance(one, Lost) and one.is_silent}
    return [addresses[rank] for rank in sorted(lost)]


_SPARE_POLL_S = 0.2  # seconds between looks for new workers


@dataclass(frozen=True)
class TableOfParts:
    """A table in parts, in the order of its rows.

    Attributes
    ----------
    parts : tuple
        Futures of Dask, or paths.
    weights : tuple of float
        Bytes of each part, about.
    are_paths : bool
    """

    parts: tuple[Any, ...]
    weights: tuple[float, ...]
    are_paths: bool

    @property
    def keys(self) -> tuple[Any, ...]:
        """Keys of the futures, or the paths."""
        return self.parts if self.are_paths else tuple(part.key for part in self.parts)


@dataclass(frozen=True)
class WorkerGroup:
    """Workers of an attempt by rank, and the ranges of their parts of each table."""

    addresses: tuple[str, ...]
    ranges: Mapping[str, Sequence[range]]


class WorkerSelector:
    """Chooses workers.

    Parameters
    ----------
    calls : Calls
    tables : mapping of str to TableOfParts
        The first one decides on the number of workers.
    workers : sequence, or None for all
        Addresses or names of workers.
    patience : float
        Seconds to wait for another worker after a loss.
    """

    def __init__(
        self,
        calls: WorkerCalls,
        tables: Mapping[str, TableOfParts],
        workers: Sequence[Any] | None,
        patience: float,
    ) -> None:
        self._calls, self._tables, self._patience = calls, tables, patience
        self._allowed = None if workers is None else set(workers)
        self.banned: set[str] = set()  # addresses of workers that hang

    async def first(self) -> WorkerGroup:
        """Return the first crew: no more workers than parts, near the data."""
        free = await self._eligible()
        if not free:
            which = "no worker" if self._allowed is None else "none of the given workers"
            raise WorkerError(f"The cluster has {which}. Start workers, or check their addresses.")
        table = next(iter(self._tables.values()))
        n_ranks = max(1, min(len(free), len(table.parts)))
        ranges = {
            name: balanced_ranges(other.weights, n_ranks) for name, other in self._tables.items()
        }
        holders = await self._holders(table)
        first = next(iter(ranges.values()))
        return WorkerGroup(tuple(workers_near_data(first, table.weights, holders, free)), ranges)

    async def next(self, crew: WorkerGroup, lost: Sequence[int]) -> WorkerGroup:
        """Return the crew after a loss.

        Spare and new workers take the parts of lost ones; what nobody takes goes to neighbours.
        Workers that join later are used after the next loss.
        """
        deadline = time.monotonic() + self._patience
        while True:
            spares = [one for one in await self._eligible() if one not in crew.addresses]
            if len(spares) >= len(lost) or time.monotonic() >= deadline:
                break
            await asyncio.sleep(_SPARE_POLL_S)
        addresses = list(crew.addresses)
        for rank, spare in zip(lost, spares, strict=False):
            addresses[rank] = spare
        left = lost[len(spares) :]
        if len(left) == len(addresses):
            raise WorkerError("No worker is left.")
        weights = {name: table.weights for name, table in self._tables.items()}
        remaining = [address for rank, address in enumerate(addresses) if rank not in left]
        return WorkerGroup(tuple(remaining), ranges_without(left, crew.ranges, weights))

    async def _eligible(self) -> list[str]:
        """Return the workers that may be used, in the order in which they joined."""
        workers = await self._calls.workers()
        if self._allowed is not None:
            workers = {
                address: name
                for address, name in workers.items()
                if address in self._allowed or name in self._allowed
            }
            # A worker that is started again has a new address, but the same name.
            self._allowed |= set(workers.values())
        return [address for address in workers if address not in self.banned]

    async def _holders(self, table: TableOfParts) -> list[Sequence[str]]:
        if table.are_paths:
            return [()] * len(table.parts)
        who_has = await self._calls.client.scheduler.who_has(keys=table.keys)
        return [who_has[key] for key in table.keys]


_START_LIMIT_S = 30.0  # seconds that a worker may take to take its orders
_LONG_POLL_S = 2.0  # seconds that rank 0 may hold a call of the client until it has news
_HEARTBEAT_S = 2.0  # seconds between calls to the other ranks
_ANSWER_LIMIT_S = 10.0  # seconds that a worker may take to answer once a program has ended
_POLL_S = 0.5  # seconds between looks at the clock
_MAX_TRIES = 3  # calls to a worker that is still in the cluster


class DriverChannel(Protocol):
    """Takes messages of the program."""

    def show(self, message: bytes) -> None:
        """Take a message of `WorkerContext.show`."""
        ...

    def ask(self, message: bytes) -> asyncio.Future[bytes]:
        """Return the future answer to a message of `WorkerContext.ask`."""
        ...


class ClientAttempt:
    """An attempt; all methods are for the client's IO loop.

    Parameters
    ----------
    calls : Calls
    fit : str
    number : int
    crew : Crew
    board : Board
    """

    def __init__(
        self, calls: WorkerCalls, fit: str, number: int, crew: WorkerGroup, board: DriverChannel
    ) -> None:
        self._calls, self._fit, self._number = calls, fit, number
        self._crew, self._board = crew, board
        self._is_ending = asyncio.Event()
        self._heard: dict[int, float] = {}  # times of the last answers, by rank

    async def run(
        self,
        program: bytes,
        tables: Mapping[str, TableOfParts],
        holder: int | None,
        timeout: float,
    ) -> dict[int, Outcome | Lost]:
        """Return the outcome of each rank."""
        outcomes = await self._all(
            self._prepare(rank, program, tables, holder, timeout) for rank in self._ranks
        )
        if not outcomes:
            outcomes = await self._all(self._call(rank, "begin") for rank in self._ranks)
        watchers = {
            asyncio.create_task(self._watch(rank, timeout)): rank
            for rank in self._ranks
            if rank not in outcomes
        }
        try:
            why = "could not be started" if outcomes else await self._first_end(watchers)
            self._is_ending.set()
            cancelling = asyncio.ensure_future(self._cancel(why, outcomes))
            outcomes |= await self._last_ends(watchers, _ANSWER_LIMIT_S if why is None else timeout)
            cancelling.cancel()
        finally:
            for task in watchers:
                task.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)
        return outcomes

    @property
    def _ranks(self) -> range:
        return range(len(self._crew.addresses))

    async def _first_end(self, watchers: dict[asyncio.Task[Outcome | Lost], int]) -> str | None:
        """Wait until rank 0 has a result, or a rank has failed; return why the others must end."""
        pending = set(watchers)
        while pending:
            ended, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                outcome = task.result()
                if isinstance(outcome, Done) and watchers[task] == 0:
                    return None
                if not isinstance(outcome, Done):
                    return "is lost, or has failed"
        return None

    async def _last_ends(
        self, watchers: Mapping[asyncio.Task[Outcome | Lost], int], limit: float
    ) -> dict[int, Outcome | Lost]:
        """Return the outcomes of all watched ranks.

        A worker that answers may take until the limit to end its program, one that does not is
        given up sooner.
        """
        start = time.monotonic()
        outcomes: dict[int, Outcome | Lost] = {}
        while len(outcomes) < len(watchers):
            waiting = [task for task, rank in watchers.items() if rank not in outcomes]
            ended, pending = await asyncio.wait(waiting, timeout=_POLL_S)
            outcomes |= {watchers[task]: task.result() for task in ended}
            now = time.monotonic()
            for rank in (watchers[task] for task in pending):
                if now - max(start, self._heard.get(rank, start)) > _ANSWER_LIMIT_S:
                    silence = (
                        f"it did not answer for {now - self._heard.get(rank, start):.0f} seconds"
                    )
                    outcomes[rank] = Lost(silence, is_silent=True)
                elif now - start > max(limit, _ANSWER_LIMIT_S):
                    outcomes[rank] = Lost(f"its program did not end within {limit:g} seconds")
        return outcomes

    async def _cancel(self, why: str | None, outcomes: Mapping[int, Outcome | Lost]) -> None:
        """End the programs of all ranks, unless they end by themselves."""
        if why is not None:
            await self._all(
                self._call(rank, "cancel", f"Another worker {why}.")
                for rank in self._ranks
                if rank not in outcomes
            )

    async def _all(self, starts: Any) -> dict[int, Outcome | Lost]:
        """Run one call to each rank; return the ranks that could not be reached."""
        results = await asyncio.gather(*starts)
        return {rank: lost for rank, lost in results if lost is not None}

    async def _prepare(
        self,
        rank: int,
        program: bytes,
        tables: Mapping[str, TableOfParts],
        holder: int | None,
        timeout: float,
    ) -> tuple[int, Lost | None]:
        addresses = self._crew.addresses
        shares = {}
        for name, table in tables.items():
            numbers = self._crew.ranges[name][rank]
            keys = table.keys[numbers.start : numbers.stop]
            shares[name] = TableParts(numbers, keys, table.are_paths)
        place = Membership(self._fit, self._number, rank, addresses)
        orders = AttemptSpec(place, self._calls.client.id, program, shares, holder, timeout)

        async def prepare() -> None:
            await self._calls.open(addresses[rank], _START_LIMIT_S)
            await self._calls.call(addresses[rank], "prepare", orders, limit=_START_LIMIT_S)

        return await self._reached(rank, prepare())

    async def _call(self, rank: int, name: str, *arguments: object) -> tuple[int, Lost | None]:
        """Call a rank's post with the fit, and the attempt or other arguments."""
        given = arguments or (self._number,)
        address = self._crew.addresses[rank]
        limit = _START_LIMIT_S if name == "begin" else _ANSWER_LIMIT_S
        return await self._reached(
            rank, self._calls.call(address, name, self._fit, *given, limit=limit)
        )

    async def _reached(
        self, rank: int, calling: Coroutine[Any, Any, Any]
    ) -> tuple[int, Lost | None]:
        try:
            await calling
        except UnreachableError as error:
            return rank, Lost(str(error), isinstance(error, SilentError))
        return rank, None

    async def _watch(self, rank: int, timeout: float) -> Outcome | Lost:
        """Watch a rank until its program has ended, and pass its messages on."""
        address, answer = self._crew.addresses[rank], None
        tries = 0
        while True:
            try:
                news: StatusReport = await self._calls.call(
                    address,
                    "watch",
                    self._fit,
                    self._number,
                    answer,
                    _LONG_POLL_S if rank == 0 or self._is_ending.is_set() else 0.0,
                    limit=timeout + _LONG_POLL_S,
                )
            except SilentError:
                return Lost(silence_cause(timeout), is_silent=True)
            except UnreachableError as error:
                tries += 1
                if tries >= _MAX_TRIES or address not in await self._calls.workers():
                    return Lost(str(error))
                await asyncio.sleep(0.5)
                continue
            tries, self._heard[rank] = 0, time.monotonic()
            if not news.is_known:
                return Lost("it was restarted, or has given the fit up")
            if news.shown is not None:
                self._board.show(news.shown)
            if news.outcome is not None:
                return news.outcome
            answer = None if news.question is None else await self._answer(address, news.question)
            if rank != 0 and not self._is_ending.is_set():
                await self._pause()

    async def _answer(self, address: str, question: tuple[int, bytes]) -> tuple[int, bytes]:
        """Return the caller's answer; keep in touch with the worker meanwhile."""
        number, message = question
        answer = self._board.ask(message)
        while not (await asyncio.wait([answer], timeout=_HEARTBEAT_S))[0]:
            with contextlib.suppress(UnreachableError):  # the next call to it will tell
                await self._calls.call(
                    address, "watch", self._fit, self._number, None, 0.0, limit=_START_LIMIT_S
                )
        return number, answer.result()

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_ending.wait(), _HEARTBEAT_S)


def submit_parts(client: Any, tables: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return tables whose delayed parts are being computed; paths stay as they are."""
    delayed = [part for parts in tables.values() for part in parts if isinstance(part, Delayed)]
    futures = iter(client.compute(delayed, sync=False) if delayed else ())
    return {
        name: [next(futures) if isinstance(part, Delayed) else part for part in parts]
        for name, parts in tables.items()
    }


async def computed_tables(
    client: Any, tables: Mapping[str, Sequence[Any]], limit: float | None = None
) -> dict[str, TableOfParts]:
    """Return tables whose parts are there; for the IO loop.

    The first computation of the parts has no limit: it takes as long as the tasks of the caller.
    """
    futures = [part for parts in tables.values() for part in parts if isinstance(part, Future)]
    try:
        if futures:
            await wait(futures, timeout=limit)
    except TimeoutError:
        raise WorkerError(
            f"Lost parts of the data were not computed again within {limit:g} seconds."
        ) from None
    except FuturesCancelledError:
        raise WorkerError(
            "Parts of the data are lost, and Dask cannot compute them again. Pass delayed values "
            "or a collection of Dask instead of scattered data."
        ) from None
    for future in futures:
        if future.status == "error":
            raise await future.exception()
    sizes = {}
    if futures:
        keys = [future.key for future in futures]
        sizes = await client.scheduler.nbytes(keys=keys, summary=False)
    return {name: _computed_table(parts, sizes) for name, parts in tables.items()}


def _computed_table(parts: Sequence[Any], sizes: Mapping[Any, int]) -> TableOfParts:
    are_paths = bool(parts) and not isinstance(parts[0], Future)
    if are_paths:
        weights = [os.path.getsize(path) if os.path.exists(path) else 1 for path in parts]
    else:
        weights = [max(1, sizes[part.key]) for part in parts]
    return TableOfParts(tuple(parts), tuple(map(float, weights)), are_paths)


_MEMBERSHIP_POLL_S = 1.0  # seconds after which a worker that has not answered is looked for
_RESTART_LIMIT_S = 20.0  # seconds that the end of a suspended process may take
_SCHEDULER_LIMIT_S = 60.0  # seconds that the scheduler may take for an answer


class UnreachableError(Exception):
    """A worker did not answer; the message is the cause."""


class SilentError(UnreachableError):
    """A worker that is still in the cluster did not answer in time."""


class WorkerCalls:
    """Calls to workers; all methods are for the IO loop of the client.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    async def call(self, address: str, name: str, *arguments: object, limit: float) -> Any:
        """Return the answer of a worker's post.

        Raises
        ------
        UnreachableError
            The worker is lost, or does not answer within `limit` seconds.
        WorkerError
            The scheduler is gone.
        """
        message = {"op": CALL, "name": name, "arguments": dumps(arguments)}
        reply = await self._broadcast(address, message, limit)
        if not isinstance(reply, dict) or "answer" not in reply:
            raise UnreachableError("it was restarted")
        answer = loads(reply["answer"])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def open(self, address: str, limit: float) -> None:
        """Make a worker ready for calls."""
        message = {"op": "run", "function": dumps(install_extension), "args": b"", "kwargs": b""}
        await self._broadcast(address, message, limit)

    async def restart(self, addresses: Sequence[str]) -> None:
        """Have Dask end the processes of workers that do not answer, and start new ones.

        Until it has found out by itself, after five minutes, nobody else computes their parts.
        """
        if addresses:
            await self._asked(
                self.client.scheduler.restart_workers(
                    workers=list(addresses),
                    timeout=_RESTART_LIMIT_S,
                    wait_for_workers=False,
                    on_error="return",
                    stimulus_id=f"arboost-restart-{time.time()}",
                )
            )

    async def workers(self) -> dict[str, Any]:
        """Return the workers of the cluster by address, with their names."""
        identity = await self._asked(self.client.scheduler.identity())
        return {
            address: worker["name"]
            for address, worker in identity["workers"].items()
            if worker["status"] in ("running", "paused")
        }

    async def _broadcast(self, address: str, message: dict[str, Any], limit: float) -> Any:
        scheduler = self.client.scheduler
        await self._find(address)
        calling = asyncio.ensure_future(
            scheduler.broadcast(msg=message, workers=[address], on_error="return_pickle")
        )
        deadline = time.monotonic() + limit
        try:
            while not (await asyncio.wait([calling], timeout=min(limit, _MEMBERSHIP_POLL_S)))[0]:
                await self._find(address)
                if time.monotonic() > deadline:
                    raise SilentError(f"it did not answer for {limit:g} seconds")
            reply = (await self._asked(calling))[address]
        finally:
            calling.cancel()
        if not isinstance(reply, bytes):
            return reply
        failure = loads(reply)
        if isinstance(failure, ImportError):
            raise WorkerError(
                f"The worker at {address} cannot import arboost: {failure}. Install the same "
                "version of arboost[dask] on the client and on all workers."
            )
        raise UnreachableError(loss_cause(failure))

    async def _find(self, address: str) -> None:
        """Raise UnreachableError if a worker has left.

        The scheduler would try for half a minute to connect to it.
        """
        if not await self._asked(self.client.scheduler.ncores(workers=[address])):
            raise UnreachableError("it has left the cluster")

    async def _asked(self, question: Awaitable[Any]) -> Any:
        """Return an answer of the scheduler; raise WorkerError if it is gone."""
        try:
            # asyncio.wait_for of Python 3.11 loses a cancellation that comes with the answer: the
            # fit would go on without its client.
            async with asyncio.timeout(_SCHEDULER_LIMIT_S):
                return await question
        except (OSError, RuntimeError) as error:
            raise WorkerError(
                f"The scheduler at {self.client.scheduler.addr} is gone: {loss_cause(error)}."
            ) from None
