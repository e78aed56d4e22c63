"""Records of the driver, and messages between workers, over connections of Dask.

Each worker opens one connection to each other worker when an attempt starts, and writes to it;
the other worker's server reads it. TLS, ports and protocols are those of Dask. Two threads work on
a message on either side:

    program: send ──outbox──▶ IO loop ═══ connection ═══▶ IO loop ──inbox──▶ program: receive

The program's thread wakes the IO loop once for all messages that wait in outboxes, and the IO loop
fills inboxes that the program's thread waits at.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pickle import PickleBuffer
from typing import Any

from distributed.comm import connect
from distributed.core import CommClosedError, Status
from distributed.protocol import pickle
from distributed.protocol.serialize import ToPickle

from arboost.distributed.worker import InboxTransport

CALL = "arboost-call"  # name of the handler that answers the client


@dataclass(frozen=True)
class Membership:
    """One worker's place in one attempt of a fit.

    Attributes
    ----------
    fit : str
    attempt, rank : int
    addresses : tuple of str
        Addresses of all workers, by rank.
    """

    fit: str
    attempt: int
    rank: int
    addresses: tuple[str, ...]

    def name(self, rank: int) -> str:
        """Return the name of a worker in messages."""
        return f"Worker {rank} at {self.addresses[rank]}"


@dataclass(frozen=True)
class TableParts:
    """Consecutive parts of a table: keys of Dask's data, or paths of files.

    Attributes
    ----------
    numbers : range
        Numbers of the parts among all parts of the table.
    keys : tuple
    are_paths : bool
    """

    numbers: range
    keys: tuple[Any, ...]
    are_paths: bool


@dataclass(frozen=True)
class AttemptSpec:
    """The task of one worker in one attempt.

    Attributes
    ----------
    place : Place
    client : str
        Id of the client of Dask.
    program : bytes
        The program, pickled.
    tables : mapping of str to TableParts
    holder : int or None
        Rank of the worker whose state all workers continue from.
    timeout : float
    """

    place: Membership
    client: str
    program: bytes
    tables: Mapping[str, TableParts]
    holder: int | None
    timeout: float


def dumps(value: object) -> bytes:
    """Return a value, pickled as Dask does it: functions of scripts are pickled with their code."""
    packed: bytes = pickle.dumps(value)
    return packed


def loads(packed: bytes) -> Any:
    """Return a pickled value."""
    return pickle.loads(packed)


STREAM = "arboost-stream"  # name of the handler that reads a connection

_OUT_OF_BAND_BYTES = (
    1 << 14
)  # bytes from which on a message is a frame of its own, which nobody copies
_FLUSH_LIMIT_S = 2.0  # seconds that the last messages of an attempt may take
_SIGNS_PER_TIMEOUT = 4  # signs of life within the time limit
_CLOSED_STATUSES = (Status.closing, Status.closed, Status.failed, Status.stopping, Status.stopped)


class DaskTransport(InboxTransport):
    """`Transport` of one attempt on one worker.

    Methods without a note are for the program's thread, all others for the IO loop.

    Parameters
    ----------
    worker : distributed.Worker
        Or another object with its attributes `loop`, `status` and `connection_args`.
    place : Place
    timeout : float
        As `Inboxes` takes it.
    """

    def __init__(self, worker: Any, place: Membership, timeout: float) -> None:
        super().__init__(place.rank, len(place.addresses), timeout, place.name, self._look)
        self._worker, self._place = worker, place
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._links = {
            rank: _Connection(worker, place, rank, timeout / _SIGNS_PER_TIMEOUT)
            for rank in range(self.size)
            if rank != self.rank
        }
        self._is_waking = False
        self._tasks: list[asyncio.Task[None]] = []

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to another worker, without waiting for it."""
        self._count(message)
        self._links[rank].outbox.append(message)
        if not self._is_waking:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._wake)

    def start(self) -> None:
        """Open the connections to all other workers; for the IO loop."""
        self._tasks = [
            self._loop.create_task(self._write(rank, link)) for rank, link in self._links.items()
        ]

    async def read(self, rank: int, comm: Any) -> None:
        """Take the messages of another worker's connection until its last; for the IO loop."""
        comm.allow_offload = False
        try:
            while not self.deliver(rank, await comm.read()):
                pass
        except CommClosedError as error:
            self.lose(rank, error)
        except asyncio.CancelledError:
            self.end("This worker is closing.")
            raise
        finally:
            comm.abort()

    def deliver(self, rank: int, items: Any) -> bool:
        """Take messages of another worker; return whether they were its last. For the IO loop."""
        self._inboxes.hear(rank)
        for item in items:  # none in a sign of life
            if isinstance(item, dict):
                if item["failed"] is not None:
                    self.end(f"{self._place.name(rank)} failed: {item['failed']}")
                else:
                    self._inboxes.close(rank)
                return True
            self._inboxes.put(rank, item)
        return False

    def lose(self, rank: int, error: OSError) -> None:
        """Take the loss of another worker; for the IO loop."""
        self._inboxes.lose(rank, loss_cause(error))

    async def close(self, failed: str | None) -> None:
        """Tell the other workers that this one has ended, or why it failed; for the IO loop."""
        for link in self._links.values():
            link.outbox.append({"failed": failed})
        self._wake()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FLUSH_LIMIT_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _look(self) -> None:
        if self._worker.status in _CLOSED_STATUSES:
            self.end("This worker is closing.")

    def _wake(self) -> None:
        self._is_waking = False
        for link in self._links.values():
            if link.outbox:
                link.waiting.set()

    async def _write(self, rank: int, link: _Connection) -> None:
        try:
            await link.run()
        except OSError as error:
            self.lose(rank, error)


class _Connection:
    """The connection to one other worker: messages in the outbox are written in their order.

    After `pause` seconds without one, a batch of no messages is a sign of life.
    """

    def __init__(self, worker: Any, place: Membership, rank: int, pause: float) -> None:
        self._pause = pause
        self.outbox: deque[Any] = deque()
        self.waiting = asyncio.Event()
        self._worker, self._place, self._rank = worker, place, rank

    async def run(self) -> None:
        """Write until the last message; raise OSError if the worker cannot be reached."""
        place = self._place
        comm = await connect(place.addresses[self._rank], **self._worker.connection_args)
        try:
            # Frames are passed on as they are, so a thread to pack them would only cost time.
            comm.allow_offload = False
            hello = {"fit": place.fit, "attempt": place.attempt, "rank": place.rank}
            await comm.write({"op": STREAM, "reply": False, **hello})
            is_last = False
            while not is_last:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.waiting.wait(), self._pause)
                self.waiting.clear()
                batch = [self.outbox.popleft() for _ in range(len(self.outbox))]
                is_last = bool(batch) and isinstance(batch[-1], dict)
                await comm.write([_packed(message) for message in batch], on_error="raise")
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(comm.close(), _FLUSH_LIMIT_S)
        finally:
            comm.abort()


def loss_cause(error: Exception) -> str:
    """Return the cause of a loss in words; Dask's own name connections, not workers."""
    if isinstance(error, CommClosedError):
        return "its connection was closed"
    return f"{type(error).__name__}: {error}"


def _packed(message: Any) -> Any:
    """Return a message as Dask writes it without a copy."""
    if isinstance(message, dict) or len(message) < _OUT_OF_BAND_BYTES:
        return message
    return ToPickle(PickleBuffer(message))
