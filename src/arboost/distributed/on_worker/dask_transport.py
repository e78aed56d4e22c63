"""Messages between the workers of a fit, over connections of Dask.

Each worker opens one connection to each other worker, when an attempt starts, and writes to it;
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
from pickle import PickleBuffer
from typing import Any

from distributed.comm import connect
from distributed.core import CommClosedError, Status
from distributed.protocol.serialize import ToPickle

from arboost.distributed.inboxes import InboxTransport
from arboost.distributed.records import Place

__all__ = ["STREAM", "DaskTransport", "cause_of"]

STREAM = "arboost-stream"  # name of the handler that reads a connection

_OUT_OF_BAND = 1 << 14  # bytes from which on a message is a frame of its own, which nobody copies
_FLUSH = 2.0  # seconds that the last messages of an attempt may take
_SIGNS = 4  # signs of life within the time limit
_CLOSED = (Status.closing, Status.closed, Status.failed, Status.stopping, Status.stopped)


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

    def __init__(self, worker: Any, place: Place, timeout: float) -> None:
        super().__init__(place.rank, len(place.addresses), timeout, place.name, self._look)
        self._worker, self._place = worker, place
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._links = {
            rank: _Link(worker, place, rank, timeout / _SIGNS)
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
        self._inboxes.lose(rank, cause_of(error))

    async def close(self, failed: str | None) -> None:
        """Tell the other workers that this one has ended, or why it failed; for the IO loop."""
        for link in self._links.values():
            link.outbox.append({"failed": failed})
        self._wake()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FLUSH)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _look(self) -> None:
        if self._worker.status in _CLOSED:
            self.end("This worker is closing.")

    def _wake(self) -> None:
        self._is_waking = False
        for link in self._links.values():
            if link.outbox:
                link.waiting.set()

    async def _write(self, rank: int, link: _Link) -> None:
        try:
            await link.run()
        except OSError as error:
            self.lose(rank, error)


class _Link:
    """The connection to one other worker: messages in the outbox are written in their order.

    After `pause` seconds without one, a batch of no messages is a sign of life.
    """

    def __init__(self, worker: Any, place: Place, rank: int, pause: float) -> None:
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
                await asyncio.wait_for(comm.close(), _FLUSH)
        finally:
            comm.abort()


def cause_of(error: Exception) -> str:
    """Return the cause of a loss in words; Dask's own name connections, not workers."""
    if isinstance(error, CommClosedError):
        return "its connection was closed"
    return f"{type(error).__name__}: {error}"


def _packed(message: Any) -> Any:
    """Return a message as Dask writes it without a copy."""
    if isinstance(message, dict) or len(message) < _OUT_OF_BAND:
        return message
    return ToPickle(PickleBuffer(message))
