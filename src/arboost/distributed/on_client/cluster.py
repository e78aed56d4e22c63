"""A program on a cluster of Dask: attempt after attempt, until one ends with a result.

    caller's thread          IO loop of the client              workers
    run_program ──start──▶  ClientFit.run ──prepare, begin──▶  threads
       │  ◀── shown, asked ── _watch  ◀────── news ─────────      │
       └──── answers ──────▶    │  ──────── answers ───────▶      │
    result  ◀───────────────────┴──────────────────────────────  rank 0

An attempt ends when a worker is lost. All others keep the values of `Desk.kept`, the newest state
is the start of the next attempt, and parts of the lost worker go to a spare or new worker or to its
neighbours. A worker that hangs is treated as a lost one, after the time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future as ThreadFuture
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from arboost.distributed.loss_count import LossCount, newest_state
from arboost.distributed.on_client.attempt import ClientAttempt
from arboost.distributed.on_client.calls import Calls, UnreachableError
from arboost.distributed.on_client.crew import Crew, Recruiter
from arboost.distributed.on_client.futures import as_futures, computed
from arboost.distributed.program import Listener, Program
from arboost.distributed.records import Done, Failed, Outcome, dumps, loads
from arboost.distributed.reports import Lost
from arboost.errors import WorkerError

__all__ = ["Limits", "run_program"]

_SLICE = 0.5  # seconds between looks of the caller's thread at the IO loop
_GOODBYE = 5.0  # seconds that workers may take to forget a fit


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
    futures = as_futures(client, tables)
    messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
    fit = ClientFit(client, dumps(program), messages, workers, limits)
    loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop
    running = asyncio.run_coroutine_threadsafe(fit.run(futures), loop)
    running.add_done_callback(lambda _: messages.put(_Message(None, None)))
    try:
        while not running.done():
            with contextlib.suppress(queue.Empty):
                messages.get(timeout=_SLICE).pass_to(listener)
            if not loop.is_running() or client.status == "closed":
                raise WorkerError("The client of Dask was closed during the fit.")
        while not messages.empty():
            messages.get().pass_to(listener)
        return running.result()
    finally:
        if not running.done():
            running.cancel()
            fit.is_released.wait(_GOODBYE if loop.is_running() else 0)


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
        self._calls = Calls(client)
        self._program, self._messages = program, messages
        self._workers, self._limits = workers, limits
        self._used: set[str] = set()
        self._lost_parts: set[range] = set()  # since the last progress
        self._losses = LossCount(limits.retries)

    async def run(self, given: Mapping[str, Sequence[Any]]) -> Any:
        """Return the result of the program."""
        try:
            return await self._attempts(given)
        finally:
            await self._release()
            self.is_released.set()

    async def _attempts(self, given: Mapping[str, Sequence[Any]]) -> Any:
        tables = await computed(self._calls.client, given)
        recruiter = Recruiter(self._calls, tables, self._workers, self._limits.patience)
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
                await self._calls.restart(_silent(old, outcomes))
                crew = await recruiter.next(crew, sorted(lost))
                await computed(self._calls.client, given, self._limits.timeout)
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
        self, crew: Crew, outcomes: Mapping[int, Outcome | Lost], recruiter: Recruiter
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
        crew: Crew,
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
                await self._calls.call(address, "release", self._id, limit=_GOODBYE)

        with contextlib.suppress(WorkerError):
            here = await self._calls.workers()
            await asyncio.gather(*(release(one) for one in self._used if one in here))


def _silent(addresses: Sequence[str], outcomes: Mapping[int, Outcome | Lost]) -> list[str]:
    """Return the addresses of the workers that answer nothing."""
    lost = {rank for rank, one in outcomes.items() if isinstance(one, Lost) and one.is_silent}
    return [addresses[rank] for rank in sorted(lost)]
