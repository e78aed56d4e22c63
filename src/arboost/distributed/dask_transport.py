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
from dataclasses import dataclass
from pickle import PickleBuffer
from typing import Any

from distributed.comm import connect
from distributed.core import CommClosedError, Status
from distributed.protocol import pickle
from distributed.protocol.serialize import ToPickle

from arboost.distributed.protocol import AttemptSpec
from arboost.distributed.worker import InboxTransport

CALL = "arboost-call"  # name of the handler that answers the driver
STREAM = "arboost-stream"  # name of the handler that reads a connection

_OUT_OF_BAND_BYTES = 1 << 14  # a message of this size is a frame, which nobody copies
_FLUSH_LIMIT_S = 2.0  # for the last messages of an attempt
_SIGNS_PER_TIMEOUT = 4  # signs of life within the time limit
_CLOSED_STATUSES = (Status.closing, Status.closed, Status.failed, Status.stopping, Status.stopped)


@dataclass(frozen=True)
class Membership:
    """Rank of one worker in one attempt of a fit.

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
        """Name of a worker in messages."""
        return f"Worker {rank} at {self.addresses[rank]}"


@dataclass(frozen=True)
class DaskSpec(AttemptSpec):
    """Work of one Dask worker in one attempt.

    Attributes
    ----------
    member : Membership
    client : str
        Id of the client of Dask.
    holder : int or None
        Rank of the worker whose state all workers continue from.
    """

    member: Membership
    client: str
    holder: int | None


def dumps(value: object) -> bytes:
    """Pickle a value as Dask does it: functions of scripts are pickled with their code."""
    packed: bytes = pickle.dumps(value)
    return packed


def loads(packed: bytes) -> Any:
    """Value that was pickled."""
    return pickle.loads(packed)


class DaskTransport(InboxTransport):
    """`Transport` of one attempt on one worker.

    `send` is for the program's thread, methods without a note are for the IO loop.

    Parameters
    ----------
    worker : distributed.Worker
        Or another object with its attributes `loop`, `status` and `connection_args`.
    member : Membership
    timeout : float
        As `InboxTransport` takes it.
    """

    def __init__(self, worker: Any, member: Membership, timeout: float) -> None:
        super().__init__(member.rank, len(member.addresses), timeout, member.name)
        self._worker = worker
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._connections = {
            rank: _Connection(worker, member, rank, timeout / _SIGNS_PER_TIMEOUT)
            for rank in range(self.size)
            if rank != self.rank
        }
        self._is_waking = False
        self._tasks: list[asyncio.Task[None]] = []

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to another worker, without waiting for it."""
        self._count(message)
        self._connections[rank].outbox.append(message)
        if not self._is_waking:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._wake)

    def start(self) -> None:
        """Open the connections to all other workers."""
        self._tasks = [
            self._loop.create_task(self._write(rank, connection))
            for rank, connection in self._connections.items()
        ]

    async def read(self, rank: int, comm: Any) -> None:
        """Take the messages of another worker's connection until its last."""
        comm.allow_offload = False
        try:
            while not self._deliver(rank, await comm.read()):
                pass
        except CommClosedError as error:
            self.lose(rank, loss_cause(error))
        except asyncio.CancelledError:
            self.end("This worker is closing.")
            raise
        finally:
            comm.abort()

    async def close(self, failure: str | None) -> None:
        """Tell the other workers that this one has ended, or why it failed."""
        for connection in self._connections.values():
            connection.outbox.append({"failure": failure})
        self._wake()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FLUSH_LIMIT_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _deliver(self, rank: int, items: Any) -> bool:
        """Take messages of another worker; whether they were its last."""
        self.hear(rank)
        for item in items:  # none in a sign of life
            if isinstance(item, dict):
                if item["failure"] is not None:
                    self.end(f"{self._name(rank)} failed: {item['failure']}")
                else:
                    self.put(rank, None)
                return True
            self.put(rank, item)
        return False

    def _check_process(self) -> None:
        if self._worker.status in _CLOSED_STATUSES:
            self.end("This worker is closing.")

    def _wake(self) -> None:
        self._is_waking = False
        for connection in self._connections.values():
            if connection.outbox:
                connection.has_messages.set()

    async def _write(self, rank: int, connection: _Connection) -> None:
        try:
            await connection.run()
        except OSError as error:
            self.lose(rank, loss_cause(error))


class _Connection:
    """The connection to one other worker: messages in the outbox are written in their order.

    After `pause` seconds without one, a batch of no messages is a sign of life.
    """

    def __init__(self, worker: Any, member: Membership, rank: int, pause: float) -> None:
        self.outbox: deque[Any] = deque()
        self.has_messages = asyncio.Event()
        self._worker, self._member, self._rank, self._pause = worker, member, rank, pause

    async def run(self) -> None:
        """Write until the last message; raise OSError if the worker cannot be reached."""
        member = self._member
        comm = await connect(member.addresses[self._rank], **self._worker.connection_args)
        try:
            # Frames are passed on as they are, so a thread to pack them would only cost time.
            comm.allow_offload = False
            hello = {"fit": member.fit, "attempt": member.attempt, "rank": member.rank}
            await comm.write({"op": STREAM, "reply": False, **hello})
            is_last = False
            while not is_last:
                await is_set_within(self.has_messages, self._pause)
                self.has_messages.clear()
                batch = [self.outbox.popleft() for _ in range(len(self.outbox))]
                is_last = bool(batch) and isinstance(batch[-1], dict)
                await comm.write([_frame(message) for message in batch], on_error="raise")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_LIMIT_S):
                    await comm.close()
        finally:
            comm.abort()


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most some seconds; whether it is set.

    asyncio.wait_for of Python 3.11 loses a cancellation that comes with the event: the task that
    waits would go on.
    """
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def loss_cause(error: Exception) -> str:
    """Cause of a loss in words; Dask's own name connections, not workers."""
    if isinstance(error, CommClosedError):
        return "its connection was closed"
    return f"{type(error).__name__}: {error}"


def _frame(message: Any) -> Any:
    """Message as Dask writes it without a copy."""
    if isinstance(message, dict) or len(message) < _OUT_OF_BAND_BYTES:
        return message
    return ToPickle(PickleBuffer(message))
