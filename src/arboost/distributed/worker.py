"""A worker's side of one attempt, on any cluster: context and run of the program, and inboxes."""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from arboost.distributed.protocol import (
    Done,
    Failed,
    Interrupted,
    Outcome,
    Program,
    StatusReport,
    silence_cause,
)
from arboost.errors import WorkerError
from arboost.workers import Buffer, Share, Transport, Workers

Dumps = Callable[[object], bytes]

_MESSAGE_PERIOD_S = 0.1  # seconds between messages of `WorkerContext.show` that are sent
_ANSWER_POLL_S = 0.5


class InterruptibleTransport(Transport, Protocol):
    """A transport whose waits end with the attempt.

    Attributes
    ----------
    lost : mapping of int to str
        Lost and silent workers by rank, with the cause of each.
    has_raised : bool
        Whether the program has been told that the attempt is over.
    """

    @property
    def lost(self) -> Mapping[int, str]: ...  # noqa: D102

    @property
    def has_raised(self) -> bool: ...  # noqa: D102

    def check(self) -> None:
        """Raise WorkerError if the attempt is over."""
        ...

    def end(self, reason: str) -> None:
        """End all waits of the program; for any thread."""
        ...


class AttemptContext:
    """`WorkerContext` of one attempt; its messages and its question wait for the client.

    Parameters
    ----------
    transport : EndingTransport
    kept : dict
    parts : mapping of str to range
    timeout : float
        Seconds that the client may take for an answer.
    wake : callable
        Called when there are news for the client.
    dumps : callable
        Pickles messages.
    """

    def __init__(
        self,
        transport: InterruptibleTransport,
        kept: dict[str, Any],
        parts: Mapping[str, range],
        timeout: float,
        *,
        wake: Callable[[], None],
        dumps: Dumps,
    ) -> None:
        self.kept, self.parts = kept, parts
        self.resumed: object | None = None
        self.rank, self.n_threads = transport.rank, 1
        self.memory: int | None = None
        self._messages: deque[object] = deque(maxlen=1)  # the newest
        self._last_shown = 0.0
        self._question: tuple[int, bytes] | None = None
        self._transport, self._timeout, self._wake, self._dumps = transport, timeout, wake, dumps
        self._n_questions = 0
        self._answer: bytes | None = None
        self._is_answered = threading.Event()
        self._lock = threading.Lock()  # of threads that ask for news

    def show(self, message: object) -> None:
        """Send a message to the client; see `WorkerContext.show`."""
        if self.rank != 0:
            return
        self._messages.append(message)
        self._wake()

    def ask(self, message: object) -> Any:
        """Return the client's answer; see `WorkerContext.ask`."""
        if self.rank != 0:
            raise RuntimeError(f"Rank {self.rank} asked the client, but only rank 0 may.")
        self._is_answered.clear()
        self._n_questions += 1
        self._question = self._n_questions, self._dumps(message)
        self._wake()
        deadline = time.monotonic() + self._timeout
        while not self._is_answered.wait(_ANSWER_POLL_S):
            self.check()
            if time.monotonic() > deadline:
                raise WorkerError(f"The client did not answer within {self._timeout:g} seconds.")
        self.check()
        return pickle.loads(self._answer or b"")

    def check(self) -> None:
        """Raise if the fit is over; see `WorkerContext.check`."""
        self._transport.check()

    def take(self, number: int, answer: bytes) -> None:
        """Take the client's answer; for another thread than the program's."""
        if self._question is not None and self._question[0] == number:
            self._question, self._answer = None, answer
            self._is_answered.set()

    def news(self, outcome: Outcome | None) -> StatusReport | None:
        """Return a question, the outcome, or a message whose time has come; None without them."""
        with self._lock:
            question, messages = self._question, self._messages
            if outcome is None and question is None and not (messages and self.pause() <= 0):
                return None
            if not messages:
                return StatusReport(None, question, outcome)
            self._last_shown = time.monotonic()
            message = messages.popleft()
        try:
            shown = self._dumps(message)
        except Exception as error:
            # Pickling calls methods of the message, which may raise anything.
            self._transport.end(f"A message could not be sent: {error}")
            shown = None
        return StatusReport(shown, question, outcome)

    def pause(self) -> float:
        """Return the seconds until a waiting message may be sent; infinity without one."""
        if not self._messages:
            return float("inf")
        return self._last_shown + _MESSAGE_PERIOD_S - time.monotonic()


class ProgramRun:
    """The run of a program by one worker in one attempt.

    Parameters
    ----------
    transport : EndingTransport
    desk : WorkerDesk
    best : tuple of int and object, or None
        Progress and state that this worker has.
    dumps : callable
        Pickles results and exceptions.

    Attributes
    ----------
    best : tuple of int and object, or None
        Progress and state after the end.
    """

    def __init__(
        self,
        transport: InterruptibleTransport,
        desk: AttemptContext,
        best: tuple[int, object] | None,
        dumps: Dumps,
    ) -> None:
        self.best = best
        self._transport, self._desk, self._dumps = transport, desk, dumps

    @property
    def progress(self) -> int | None:
        """Progress of the state that this worker has; None where it has no state."""
        return None if self.best is None else self.best[0]

    def outcome(
        self,
        load: Callable[[], Program],
        rows: Callable[[], Mapping[str, object]],
        holder: int | None,
    ) -> Outcome:
        """Return the outcome of the program, whichever it is.

        Parameters
        ----------
        load : callable
            Returns the program.
        rows : callable
            Returns the rows of this worker in each table.
        holder : int or None
            Rank of the worker whose state all workers continue from.
        """
        try:
            workers = Workers(self._transport)
            if holder is not None:
                self.best = workers.broadcast(self.best, holder)
                self._desk.resumed = None if self.best is None else self.best[1]
            tables = {name: Share(X, workers) for name, X in rows().items()}
            result = load()(tables, self._desk)
            return Done(self._dumps(result) if self._desk.rank == 0 else None)
        except BaseException as error:
            # Whatever ends the program, the client and the other workers must know.
            return self._failure(error)

    def _failure(self, error: BaseException) -> Outcome:
        """Return the outcome of an exception: an interruption where the transport raised first."""
        if not self._transport.has_raised:
            return Failed.of(error, self._dumps)
        state: Callable[[], tuple[int, object]] | None = self._desk.kept.get("state")
        if state is not None:
            try:
                progress, value = state()
            except Exception as failure:
                return Failed.of(failure, self._dumps)
            if self.best is None or progress >= self.best[0]:
                self.best = progress, value
        return Interrupted(str(error), dict(self._transport.lost), self.progress)


STALL_FACTOR = 10  # times the limit of signs of life: of messages, between which workers compute

_INBOX_POLL_S = 1.0  # seconds after which a wait looks for other reasons to end


class Inboxes:
    """One queue of messages for each other worker; all waits end when the attempt does.

    `next` and `check` are for the program's thread, other methods for any thread.

    Parameters
    ----------
    size : int
        Number of workers.
    timeout : float
        Seconds without a sign of life of a worker after which `next` takes it for lost. A worker
        that lives, but sends no message, is lost after `STALL_FACTOR` times as long.
    name : callable
        Name of a worker in messages, by rank.
    look : callable, optional
        Called before each look at the end of the attempt, which it may call `end` for.
    has_signs : bool
        Whether `hear` is called by signs of life.

    Attributes
    ----------
    seconds : float
        Time that `next` waited so far.
    lost : dict of int to str
        Lost and silent workers by rank, with the cause of each.
    has_raised : bool
        Whether the program has been told that the attempt is over.
    """

    def __init__(
        self,
        size: int,
        timeout: float,
        name: Callable[[int], str],
        look: Callable[[], None] = lambda: None,
        *,
        has_signs: bool = True,
    ) -> None:
        self.seconds = 0.0
        self.lost: dict[int, str] = {}
        self.has_raised = False
        self._timeout, self._name, self._look = timeout, name, look
        self._over: str | None = None  # reason for which the attempt is over
        self._queues: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(size)]
        self._heard, self._has_signs = [0.0] * size, has_signs

    def hear(self, rank: int) -> None:
        """Take note of a sign of life of another worker."""
        self._heard[rank] = time.perf_counter()

    def put(self, rank: int, message: Any) -> None:
        """Take a message of another worker."""
        self._queues[rank].put(message)

    def close(self, rank: int) -> None:
        """Take note that another worker sends no more messages."""
        self._queues[rank].put(None)

    def end(self, reason: str) -> None:
        """End all waits of the program. The first reason counts."""
        if self._over is None:
            self._over = reason
        for one in self._queues:
            one.put(None)

    def lose(self, rank: int, cause: str) -> None:
        """End all waits of the program, because another worker is lost."""
        self.lost.setdefault(rank, cause)
        self.end(f"{self._name(rank)} is lost: {cause}.")

    def check(self) -> None:
        """Raise WorkerError if the attempt is over."""
        self._look()
        if self._over is not None:
            self._stop()

    def next(self, rank: int) -> Any:
        """Return the next message of another worker.

        Raises
        ------
        WorkerError
            The attempt is over, or the worker was silent for too long.
        """
        start = time.perf_counter()
        try:
            return self._next(rank, start)
        finally:
            self.seconds += time.perf_counter() - start

    def _next(self, rank: int, start: float) -> Any:
        while True:
            left, _ = self._left(rank, start)
            try:
                message = self._queues[rank].get(timeout=max(0.0, min(left, _INBOX_POLL_S)))
            except queue.Empty:
                self.check()
                left, cause = self._left(rank, start)
                if left > 0.0:
                    continue
                self.lose(rank, cause)
                self._stop()
            if message is None:
                self.end(f"{self._name(rank)} has ended before this worker.")
                self._stop()
            return message

    def _left(self, rank: int, start: float) -> tuple[float, str]:
        """Return the seconds after which a worker counts as lost, and the cause."""
        now, patience = time.perf_counter(), STALL_FACTOR * self._timeout
        left = start + patience - now, f"it was silent for {patience:g} seconds"
        if not self._has_signs:
            return left
        alive = max(start, self._heard[rank]) + self._timeout - now
        return min(left, (alive, silence_cause(self._timeout)))

    def _stop(self) -> None:
        self.has_raised = True
        raise WorkerError(str(self._over))


class InboxTransport:
    """`Transport` whose messages arrive in inboxes; subclasses have `send`.

    Parameters
    ----------
    rank, size : int
    timeout : float
        As `Inboxes` takes it.
    name : callable
        Name of a worker in messages, by rank.
    look : callable, optional
        As `Inboxes` takes it.
    has_signs : bool
        As `Inboxes` takes it.

    Attributes
    ----------
    n_bytes, n_messages : int
        Sent so far.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        timeout: float,
        name: Callable[[int], str],
        look: Callable[[], None] = lambda: None,
        *,
        has_signs: bool = True,
    ) -> None:
        self.rank, self.size = rank, size
        self.n_bytes = self.n_messages = 0
        self._inboxes = Inboxes(size, timeout, name, look, has_signs=has_signs)

    @property
    def seconds(self) -> float:
        """Time that `receive` waited so far."""
        return self._inboxes.seconds

    @property
    def lost(self) -> dict[int, str]:
        """Lost and silent workers by rank, with the cause of each."""
        return self._inboxes.lost

    @property
    def has_raised(self) -> bool:
        """Whether the program has been told that the attempt is over."""
        return self._inboxes.has_raised

    def receive(self, rank: int) -> Buffer:
        """Return the next message of another worker.

        Raises
        ------
        WorkerError
            The worker is lost, failed, was silent for too long, or the fit was cancelled.
        """
        message = self._inboxes.next(rank)
        return message if isinstance(message, bytes) else memoryview(message)

    def check(self) -> None:
        """Raise WorkerError if the attempt is over."""
        self._inboxes.check()

    def end(self, reason: str) -> None:
        """End all waits of the program; for any thread. The first reason counts."""
        self._inboxes.end(reason)

    def _count(self, message: bytes) -> None:
        """Count a message that is about to be sent; raise WorkerError if the attempt is over."""
        self._inboxes.check()
        self.n_bytes += len(message)
        self.n_messages += 1
