"""A program on a cluster of Dask: attempt after attempt, until one ends with a result.

    caller's thread          IO loop of the client              workers
    run_program ──start──▶  DriverFit.run ──prepare, begin──▶  threads
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
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future as ThreadFuture
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from dask.delayed import Delayed
from distributed import Future, wait
from distributed.client import FuturesCancelledError

from arboost.distributed import dask_transport, protocol
from arboost.distributed.dask_worker import install_extension
from arboost.distributed.data import (
    PartitionedTable,
    balanced_ranges,
    ranges_without,
    workers_near_data,
)
from arboost.distributed.recovery import WorkerFailureBudget, newest_state
from arboost.distributed.worker import Program
from arboost.errors import WorkerError

_LISTENER_POLL_S = 0.5  # after which the caller's thread checks that the IO loop runs
_RELEASE_LIMIT_S = 5.0  # for workers to forget a fit
_SPARE_POLL_S = 0.2  # between questions for new workers
_RECOMPUTE_POLL_S = 0.1  # between questions for lost parts
_START_LIMIT_S = 30.0  # for a worker to prepare and begin an attempt
_LONG_POLL_S = 2.0  # that rank 0 may hold a call of the driver until it has something to report
_HEARTBEAT_S = 2.0  # between calls to the other ranks
_ANSWER_LIMIT_S = 10.0  # for a worker to answer once a program has ended
_POLL_S = 0.5  # between checks of the clock
_RETRY_S = 0.5  # after a call that failed
_MAX_TRIES = 3  # calls to a worker that is still in the cluster
_MEMBERSHIP_POLL_S = 1.0  # without an answer after which the scheduler is asked for the worker
_RESTART_LIMIT_S = 20.0  # for the end of a suspended process
_SCHEDULER_LIMIT_S = 60.0  # for an answer of the scheduler


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
    listener: protocol.Listener,
    *,
    workers: Sequence[Any] | None = None,
    limits: Limits = Limits(),  # frozen
) -> Any:
    """Result of a program that runs on workers of a cluster at the same time.

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
    submitted = _submit_parts(client, tables)
    channel = DriverChannel()
    fit = DriverFit(client, dask_transport.dumps(program), channel, workers, limits)
    loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop
    running = asyncio.run_coroutine_threadsafe(fit.run(submitted), loop)
    running.add_done_callback(lambda _: channel.wake())
    try:
        while not running.done():
            channel.deliver(listener, _LISTENER_POLL_S)
            if not loop.is_running() or client.status == "closed":
                raise WorkerError("The client of Dask was closed during the fit.")
        while channel.deliver(listener, 0):
            pass
        return running.result()
    finally:
        if not running.done():
            running.cancel()
            fit.is_released.wait(_RELEASE_LIMIT_S if loop.is_running() else 0)


class DriverChannel:
    """Messages of the program, pickled, from the IO loop to the caller's thread."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()  # None, or with its answer

    def show(self, message: bytes) -> None:
        """Pass on a message of `WorkerContext.show`."""
        self._messages.put((message, None))

    def ask(self, message: bytes) -> asyncio.Future[bytes]:
        """Future answer to a message of `WorkerContext.ask`."""
        answer: ThreadFuture[bytes] = ThreadFuture()
        self._messages.put((message, answer))
        return asyncio.wrap_future(answer)

    def wake(self) -> None:
        """End the wait of `deliver`."""
        self._messages.put(None)

    def deliver(self, listener: protocol.Listener, limit: float) -> bool:
        """Give the listener a message; whether one came within the limit. In its thread."""
        try:
            item = self._messages.get(timeout=limit)
        except queue.Empty:
            return False
        if item is not None:
            message, answer = item
            if answer is None:
                listener.show(dask_transport.loads(message))
            else:
                answer.set_result(
                    dask_transport.dumps(listener.answer(dask_transport.loads(message)))
                )
        return True


# ---- parts of the tables ----


def _submit_parts(client: Any, tables: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Tables whose delayed parts are being computed; paths stay as they are."""
    delayed = [part for parts in tables.values() for part in parts if isinstance(part, Delayed)]
    futures = iter(client.compute(delayed, sync=False) if delayed else ())
    return {
        name: [next(futures) if isinstance(part, Delayed) else part for part in parts]
        for name, parts in tables.items()
    }


async def wait_for_parts(
    client: Any, tables: Mapping[str, Sequence[Any]], limit: float | None = None
) -> None:
    """Wait until workers hold all parts that are futures.

    The first computation of the parts has no limit: it takes as long as the tasks of the caller.
    """
    futures = [part for parts in tables.values() for part in parts if isinstance(part, Future)]
    if not futures:
        return
    try:
        async with asyncio.timeout(limit):
            while True:
                await wait(futures)
                for future in futures:
                    if future.status == "error":
                        raise await future.exception()
                held = await client.scheduler.who_has(keys=[future.key for future in futures])
                if all(held.values()):
                    return
                # The scheduler knows of a loss before the client's futures do.
                await asyncio.sleep(_RECOMPUTE_POLL_S)
    except TimeoutError:
        raise WorkerError(
            f"Lost parts of the data were not computed again within {limit:g} seconds."
        ) from None
    except FuturesCancelledError:
        raise WorkerError(
            "Parts of the data are lost, and Dask cannot compute them again. Pass delayed values "
            "or a collection of Dask instead of scattered data."
        ) from None


async def _partitioned(client: Any, parts: Sequence[Any]) -> PartitionedTable:
    if not parts or not isinstance(parts[0], Future):
        return PartitionedTable.of_files(parts)
    keys = tuple(part.key for part in parts)
    sizes = await client.scheduler.nbytes(keys=keys, summary=False)
    return PartitionedTable(keys, tuple(max(1, sizes[key]) for key in keys))


# ---- attempt after attempt ----


class DriverFit:
    """The driver's side of a fit; all methods are for the IO loop of the client.

    Parameters
    ----------
    client : distributed.Client
    program : bytes
    channel : DriverChannel
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
        channel: DriverChannel,
        workers: Sequence[Any] | None,
        limits: Limits,
    ) -> None:
        self.is_released = threading.Event()
        self._id = uuid4().hex
        self._calls = WorkerCalls(client)
        self._program, self._channel = program, channel
        self._workers, self._limits = workers, limits
        self._used: set[str] = set()  # addresses
        self._lost_parts: set[range] = set()  # since the last progress
        self._budget = WorkerFailureBudget(limits.retries)

    async def run(self, parts: Mapping[str, Sequence[Any]]) -> Any:
        """Run the program on parts of tables: futures, or paths."""
        try:
            return await self._run_attempts(parts)
        finally:
            await self._release()
            self.is_released.set()

    async def _run_attempts(self, parts: Mapping[str, Sequence[Any]]) -> Any:
        client, limits = self._calls.client, self._limits
        await wait_for_parts(client, parts)
        tables = {name: await _partitioned(client, table) for name, table in parts.items()}
        selector = WorkerSelector(self._calls, tables, self._workers, limits.patience)
        group, holder, number = await selector.first(), None, 0
        while True:
            self._used.update(group.addresses)
            attempt = DriverAttempt(self._calls, self._id, number, group, self._channel)
            outcomes = await attempt.run(self._program, tables, holder, limits.timeout)
            done = protocol.result_of(outcomes, group.name)
            if done is not None:
                return dask_transport.loads(done.result or b"")
            lost = await self._lost(group, outcomes, selector)
            newest, progress = newest_state(outcomes)
            self._count(group, lost, outcomes, progress)
            addresses = group.addresses
            try:
                await self._calls.restart(_silent_addresses(group, outcomes))
                group = await selector.next(group, sorted(lost))
                await wait_for_parts(client, parts, limits.timeout)
            except WorkerError as error:
                raise self._budget.error(str(error)) from None
            holder = None if newest is None else group.addresses.index(addresses[newest])
            number += 1

    async def _lost(
        self, group: WorkerGroup, outcomes: protocol.Outcomes, selector: WorkerSelector
    ) -> dict[int, str]:
        """Ranks of lost workers and the cause of each."""
        present = await self._calls.workers()
        lost = {}
        for rank, address in enumerate(group.addresses):
            outcome = outcomes[rank]
            if isinstance(outcome, protocol.Lost):
                lost[rank] = outcome.cause
                selector.excluded.add(address)
            elif address not in present:
                lost[rank] = "it has left the cluster"
        return lost

    def _count(
        self,
        group: WorkerGroup,
        lost: Mapping[int, str],
        outcomes: protocol.Outcomes,
        progress: int | None,
    ) -> None:
        """Count a loss; raise WorkerError if there were too many without progress."""
        if self._budget.note_progress(progress):
            self._lost_parts.clear()
        self._budget.note_losses({group.name(rank): lost[rank] for rank in lost}, outcomes)
        parts = {next(iter(group.ranges.values()))[rank] for rank in lost}
        if parts & self._lost_parts:
            raise self._budget.error(
                "The same rows were lost twice in a row. The memory of the worker was probably "
                "too small for them: use more workers, workers of more memory, or files, which are "
                "read in batches."
            )
        self._lost_parts |= parts
        self._budget.check()

    async def _release(self) -> None:
        """Let all workers forget the fit; one that does not answer forgets it by itself."""

        async def release(address: str) -> None:
            with contextlib.suppress(UnreachableError, WorkerError):
                await self._calls.call(address, "release", self._id, limit=_RELEASE_LIMIT_S)

        with contextlib.suppress(WorkerError):
            present = await self._calls.workers()
            await asyncio.gather(*(release(address) for address in self._used & present.keys()))


def _silent_addresses(group: WorkerGroup, outcomes: protocol.Outcomes) -> list[str]:
    """Addresses of the workers that answer nothing."""
    return [
        group.addresses[rank]
        for rank, outcome in sorted(outcomes.items())
        if isinstance(outcome, protocol.Lost) and outcome.is_silent
    ]


@dataclass(frozen=True)
class WorkerGroup:
    """Workers of an attempt by rank, and the ranges of their parts of each table."""

    addresses: tuple[str, ...]
    ranges: Mapping[str, Sequence[range]]

    def name(self, rank: int) -> str:
        """Name of a worker in messages."""
        return f"Worker {rank} at {self.addresses[rank]}"


class WorkerSelector:
    """Choice of the workers of an attempt.

    Parameters
    ----------
    calls : WorkerCalls
    tables : mapping of str to PartitionedTable
        The first one decides on the number of workers.
    workers : sequence, or None for all
        Addresses or names of workers.
    patience : float
        Seconds to wait for another worker after a loss.

    Attributes
    ----------
    excluded : set of str
        Addresses of workers that hang.
    """

    def __init__(
        self,
        calls: WorkerCalls,
        tables: Mapping[str, PartitionedTable],
        workers: Sequence[Any] | None,
        patience: float,
    ) -> None:
        self._calls, self._tables, self._patience = calls, tables, patience
        self._allowed = None if workers is None else set(workers)
        self.excluded: set[str] = set()

    async def first(self) -> WorkerGroup:
        """The first workers: at most one for each part, near the data."""
        free = await self._eligible()
        if not free:
            which = "no worker" if self._allowed is None else "none of the given workers"
            raise WorkerError(f"The cluster has {which}. Start workers, or check their addresses.")
        table = next(iter(self._tables.values()))
        n_ranks = max(1, min(len(free), len(table.parts)))
        ranges = {
            name: balanced_ranges(other.sizes, n_ranks) for name, other in self._tables.items()
        }
        holders: list[Sequence[str]] = [()] * len(table.parts)
        if not table.are_paths:
            who_has = await self._calls.client.scheduler.who_has(keys=table.parts)
            holders = [who_has[key] for key in table.parts]
        first = next(iter(ranges.values()))
        return WorkerGroup(tuple(workers_near_data(first, table.sizes, holders, free)), ranges)

    async def next(self, group: WorkerGroup, lost: Sequence[int]) -> WorkerGroup:
        """The workers after a loss.

        Spare and new workers take the parts of lost ones; what nobody takes goes to neighbours.
        Workers that join later are used after the next loss.
        """
        deadline = time.monotonic() + self._patience
        while True:
            eligible = await self._eligible()
            spares = [address for address in eligible if address not in group.addresses]
            if len(spares) >= len(lost) or time.monotonic() >= deadline:
                break
            await asyncio.sleep(_SPARE_POLL_S)
        addresses = list(group.addresses)
        for rank, spare in zip(lost, spares, strict=False):
            addresses[rank] = spare
        unfilled = lost[len(spares) :]
        if len(unfilled) == len(addresses):
            raise WorkerError("No worker is left.")
        sizes = {name: table.sizes for name, table in self._tables.items()}
        remaining = [address for rank, address in enumerate(addresses) if rank not in unfilled]
        return WorkerGroup(tuple(remaining), ranges_without(unfilled, group.ranges, sizes))

    async def _eligible(self) -> list[str]:
        """Workers that may be used, in the order in which they joined."""
        workers = await self._calls.workers()
        if self._allowed is not None:
            workers = {
                address: name
                for address, name in workers.items()
                if address in self._allowed or name in self._allowed
            }
            # A worker that is started again has a new address, but the same name.
            self._allowed |= set(workers.values())
        return [address for address in workers if address not in self.excluded]


# ---- one attempt ----


class DriverAttempt:
    """An attempt as the driver sees it: start all workers, watch them, collect their ends.

    All methods are for the client's IO loop.

    Parameters
    ----------
    calls : WorkerCalls
    fit : str
    number : int
    group : WorkerGroup
    channel : DriverChannel
    """

    def __init__(
        self, calls: WorkerCalls, fit: str, number: int, group: WorkerGroup, channel: DriverChannel
    ) -> None:
        self._calls, self._fit, self._number = calls, fit, number
        self._addresses, self._ranges, self._channel = group.addresses, group.ranges, channel
        self._is_ending = asyncio.Event()
        self._heard: dict[int, float] = {}  # times of the last answers, by rank

    async def run(
        self,
        program: bytes,
        tables: Mapping[str, PartitionedTable],
        holder: int | None,
        timeout: float,
    ) -> dict[int, protocol.Outcome]:
        """Outcome of each rank.

        Parameters
        ----------
        program : bytes
        tables : mapping of str to PartitionedTable
        holder : int or None
            Rank of the worker whose state all workers continue from.
        timeout : float
            Seconds of silence after which a worker counts as lost.
        """

        async def prepare(rank: int) -> None:
            shares = {name: table.slice(self._ranges[name][rank]) for name, table in tables.items()}
            member = dask_transport.Membership(self._fit, self._number, rank, self._addresses)
            spec = dask_transport.DaskSpec(
                program, shares, timeout, member, self._calls.client.id, holder
            )
            await self._calls.install(self._addresses[rank], _START_LIMIT_S)
            await self._call(rank, "prepare", spec, limit=_START_LIMIT_S)

        async def begin(rank: int) -> None:
            await self._call(rank, "begin", self._fit, self._number, limit=_START_LIMIT_S)

        ranks = range(len(self._addresses))
        outcomes: dict[int, protocol.Outcome] = {}
        outcomes |= await _unreachable(prepare, ranks)
        if not outcomes:
            outcomes |= await _unreachable(begin, ranks)
        watchers = {
            asyncio.create_task(self._watch(rank, timeout)): rank
            for rank in ranks
            if rank not in outcomes
        }
        cancelling = None
        try:
            why = "could not be started" if outcomes else await self._first_end(watchers)
            self._is_ending.set()
            if why is not None:
                reason = f"Another worker {why}."
                cancelling = asyncio.create_task(self._cancel(watchers.values(), reason))
            outcomes |= await self._last_ends(watchers, _ANSWER_LIMIT_S if why is None else timeout)
        finally:
            tasks = [*watchers] if cancelling is None else [*watchers, cancelling]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return outcomes

    async def _call(self, rank: int, name: str, *arguments: object, limit: float) -> Any:
        return await self._calls.call(self._addresses[rank], name, *arguments, limit=limit)

    async def _first_end(
        self, watchers: Mapping[asyncio.Task[protocol.Outcome], int]
    ) -> str | None:
        """Wait until rank 0 has a result, or a rank has failed; return why the others must end."""
        pending = set(watchers)
        while pending:
            ended, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                outcome = task.result()
                if isinstance(outcome, protocol.Done) and watchers[task] == 0:
                    return None
                if not isinstance(outcome, protocol.Done):
                    return "is lost, or has failed"
        return None

    async def _last_ends(
        self, watchers: Mapping[asyncio.Task[protocol.Outcome], int], limit: float
    ) -> dict[int, protocol.Outcome]:
        """Outcomes of all watched ranks.

        A worker that answers may take until the limit to end its program, one that does not is
        given up sooner.
        """
        start = time.monotonic()
        outcomes: dict[int, protocol.Outcome] = {}
        while len(outcomes) < len(watchers):
            waiting = [task for task, rank in watchers.items() if rank not in outcomes]
            ended, pending = await asyncio.wait(waiting, timeout=_POLL_S)
            outcomes |= {watchers[task]: task.result() for task in ended}
            now = time.monotonic()
            for rank in (watchers[task] for task in pending):
                heard = self._heard.get(rank, start)
                if now - max(start, heard) > _ANSWER_LIMIT_S:
                    silence = f"it did not answer for {now - heard:.0f} seconds"
                    outcomes[rank] = protocol.Lost(silence, is_silent=True)
                elif now - start > max(limit, _ANSWER_LIMIT_S):
                    outcomes[rank] = protocol.Lost(
                        f"its program did not end within {limit:g} seconds"
                    )
        return outcomes

    async def _cancel(self, ranks: Iterable[int], reason: str) -> None:
        """End the programs of ranks."""

        async def cancel(rank: int) -> None:
            await self._call(rank, "cancel", self._fit, reason, limit=_ANSWER_LIMIT_S)

        await _unreachable(cancel, ranks)

    async def _watch(self, rank: int, timeout: float) -> protocol.Outcome:
        """Watch a rank until its program has ended, and pass its messages on."""
        answer: tuple[int, bytes] | None = None
        n_failed = 0
        while True:
            patience = _LONG_POLL_S if rank == 0 or self._is_ending.is_set() else 0.0
            try:
                report = await self._report(rank, answer, patience, timeout + _LONG_POLL_S)
            except SilentError:
                return protocol.Lost(protocol.silence_cause(timeout), is_silent=True)
            except UnreachableError as error:
                n_failed += 1
                if (
                    n_failed >= _MAX_TRIES
                    or self._addresses[rank] not in await self._calls.workers()
                ):
                    return protocol.Lost(str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            n_failed, self._heard[rank] = 0, time.monotonic()
            if not report.is_known:
                return protocol.Lost("it was restarted, or has given the fit up")
            if report.shown is not None:
                self._channel.show(report.shown)
            if report.outcome is not None:
                return report.outcome
            answer = None if report.question is None else await self._answer(rank, report.question)
            if rank != 0:
                await dask_transport.is_set_within(self._is_ending, _HEARTBEAT_S)

    async def _report(
        self, rank: int, answer: tuple[int, bytes] | None, patience: float, limit: float
    ) -> protocol.StatusReport:
        report: protocol.StatusReport = await self._call(
            rank, "watch", self._fit, self._number, answer, patience, limit=limit
        )
        return report

    async def _answer(self, rank: int, question: tuple[int, bytes]) -> tuple[int, bytes]:
        """Answer of the caller; meanwhile the worker hears from the driver."""
        number, message = question
        answer = self._channel.ask(message)
        while not (await asyncio.wait([answer], timeout=_HEARTBEAT_S))[0]:
            with contextlib.suppress(UnreachableError):  # the next call to it will tell
                await self._report(rank, None, 0.0, _START_LIMIT_S)
        return number, answer.result()


async def _unreachable(
    call: Callable[[int], Awaitable[None]], ranks: Iterable[int]
) -> dict[int, protocol.Lost]:
    """Call all ranks at once; the ranks that could not be reached."""

    async def lost(rank: int) -> protocol.Lost | None:
        try:
            await call(rank)
        except UnreachableError as error:
            return protocol.Lost(str(error), isinstance(error, SilentError))
        return None

    ranks = list(ranks)
    results = await asyncio.gather(*map(lost, ranks))
    return {rank: loss for rank, loss in zip(ranks, results, strict=True) if loss is not None}


# ---- calls to workers ----


class UnreachableError(Exception):
    """A worker did not answer; the message is the cause."""


class SilentError(UnreachableError):
    """A worker that is still in the cluster did not answer in time."""


class WorkerCalls:
    """Calls of the driver to the extensions of workers, through the scheduler.

    A client need not reach workers itself: many clusters let it reach the scheduler only. All
    methods are for the IO loop of the client.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    async def call(self, address: str, name: str, *arguments: object, limit: float) -> Any:
        """Answer of a worker's extension.

        Raises
        ------
        UnreachableError
            The worker is lost, or does not answer within `limit` seconds.
        WorkerError
            The scheduler is gone.
        """
        message = {
            "op": dask_transport.CALL,
            "name": name,
            "arguments": dask_transport.dumps(arguments),
        }
        reply = await self._broadcast(address, message, limit)
        if not isinstance(reply, dict) or "answer" not in reply:
            raise UnreachableError("it was restarted")
        answer = dask_transport.loads(reply["answer"])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def install(self, address: str, limit: float) -> None:
        """Give a worker the extension that answers calls."""
        message = {
            "op": "run",
            "function": dask_transport.dumps(install_extension),
            "args": b"",
            "kwargs": b"",
        }
        await self._broadcast(address, message, limit)

    async def restart(self, addresses: Sequence[str]) -> None:
        """Have Dask end the processes of workers that do not answer, and start new ones.

        Until it has found out by itself, after five minutes, nobody else computes their parts.
        """
        if addresses:
            await self._ask_scheduler(
                self.client.scheduler.restart_workers(
                    workers=list(addresses),
                    timeout=_RESTART_LIMIT_S,
                    wait_for_workers=False,
                    on_error="return",
                    stimulus_id=f"arboost-restart-{time.time()}",
                )
            )

    async def workers(self) -> dict[str, Any]:
        """Workers of the cluster by address, with their names."""
        identity = await self._ask_scheduler(self.client.scheduler.identity())
        return {
            address: worker["name"]
            for address, worker in identity["workers"].items()
            if worker["status"] in ("running", "paused")
        }

    async def _broadcast(self, address: str, message: dict[str, Any], limit: float) -> Any:
        await self._check_present(address)
        calling = asyncio.ensure_future(
            self.client.scheduler.broadcast(
                msg=message, workers=[address], on_error="return_pickle"
            )
        )
        deadline = time.monotonic() + limit
        try:
            while not (await asyncio.wait([calling], timeout=min(limit, _MEMBERSHIP_POLL_S)))[0]:
                await self._check_present(address)
                if time.monotonic() > deadline:
                    raise SilentError(f"it did not answer for {limit:g} seconds")
            reply = (await self._ask_scheduler(calling))[address]
        finally:
            calling.cancel()
        if not isinstance(reply, bytes):
            return reply
        failure = dask_transport.loads(reply)
        if isinstance(failure, ImportError):
            raise WorkerError(
                f"The worker at {address} cannot import arboost: {failure}. Install the same "
                "version of arboost[dask] on the client and on all workers."
            )
        raise UnreachableError(dask_transport.loss_cause(failure))

    async def _check_present(self, address: str) -> None:
        """Raise UnreachableError if a worker has left.

        The scheduler would try for half a minute to connect to it.
        """
        if not await self._ask_scheduler(self.client.scheduler.ncores(workers=[address])):
            raise UnreachableError("it has left the cluster")

    async def _ask_scheduler(self, question: Awaitable[Any]) -> Any:
        """Answer of the scheduler; raise WorkerError if it is gone."""
        try:
            # Not asyncio.wait_for: see `is_set_within`.
            async with asyncio.timeout(_SCHEDULER_LIMIT_S):
                return await question
        except (OSError, RuntimeError) as error:
            cause = dask_transport.loss_cause(error)
            raise WorkerError(
                f"The scheduler at {self.client.scheduler.addr} is gone: {cause}."
            ) from None
