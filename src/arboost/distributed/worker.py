"""A worker's side of one attempt, on any cluster: inboxes, the context of the program, its run.

All workers run the program at the same time, and meet in the calls of `Share.workers`.
"""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from arboost.distributed import protocol
from arboost.distributed.data import TableParts
from arboost.errors import WorkerError
from arboost.workers import Buffer, Share, Workers

STALL_FACTOR = 10  # limit of messages, between which workers compute, in limits of signs of life

_MESSAGE_PERIOD_S = 0.1  # between messages of `WorkerContext.show` that are sent
_POLL_S = 0.5  # after which a wait checks whether the attempt is over


class InboxTransport:
    """`Transport` with a queue for the messages of each other worker; a subclass has `send`.

    All waits end when the attempt does. `receive` and `check` are for the program's thread, other
    methods for any thread.

    Parameters
    ----------
    rank, size : int
    timeout : float
        Seconds without a sign of life of a worker after which `receive` takes it for lost. A worker
        that lives, but sends no message, is lost after `STALL_FACTOR` times as long.
    name : callable
        Name of a worker in messages, by rank.

    Attributes
    ----------
    n_bytes, n_messages : int
        Sent so far.
    seconds : float
        Time that `receive` waited so far.
    lost : dict of int to str
        Lost and silent workers by rank, with the cause of each.
    has_raised : bool
        Whether the program has been told that the attempt is over.
    """

    has_signs_of_life = True  # `hear` is called by them

    def __init__(self, rank: int, size: int, timeout: float, name: Callable[[int], str]) -> None:
        self.rank, self.size = rank, size
        self.n_bytes = self.n_messages = 0
        self.seconds = 0.0
        self.lost: dict[int, str] = {}
        self.has_raised = False
        self._timeout, self._name = timeout, name
        self._end_reason: str | None = None
        self._queues: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(size)]
        self._heard = [0.0] * size  # times of signs of life

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to another worker, without waiting for it."""
        raise NotImplementedError

    def receive(self, rank: int) -> Buffer:
        """Next message of another worker.

        Raises
        ------
        WorkerError
            The worker is lost, failed, was silent for too long, or the fit was cancelled.
        """
        start = time.perf_counter()
        try:
            message = self._next(rank, start)
        finally:
            self.seconds += time.perf_counter() - start
        return message if isinstance(message, bytes) else memoryview(message)

    def check(self) -> None:
        """Raise WorkerError if the attempt is over."""
        self._check_process()
        if self._end_reason is not None:
            self._stop()

    def hear(self, rank: int) -> None:
        """Take note of a sign of life of another worker."""
        self._heard[rank] = time.perf_counter()

    def put(self, rank: int, message: Any) -> None:
        """Take a message of another worker; None says that it sends no more."""
        self._queues[rank].put(message)

    def end(self, reason: str) -> None:
        """End all waits of the program. The first reason counts."""
        if self._end_reason is None:
            self._end_reason = reason
        for messages in self._queues:
            messages.put(None)

    def lose(self, rank: int, cause: str) -> None:
        """End all waits of the program, because another worker is lost."""
        self.lost.setdefault(rank, cause)
        self.end(f"{self._name(rank)} is lost: {cause}.")

    def _check_process(self) -> None:
        """Call `end` if the process of this worker is about to end."""

    def _count(self, message: bytes) -> None:
        """Count a message that is about to be sent; raise WorkerError if the attempt is over."""
        self.check()
        self.n_bytes += len(message)
        self.n_messages += 1

    def _next(self, rank: int, start: float) -> Any:
        while True:
            seconds_left, _ = self._seconds_left(rank, start)
            try:
                message = self._queues[rank].get(timeout=max(0.0, min(seconds_left, _POLL_S)))
            except queue.Empty:
                self.check()
                seconds_left, cause = self._seconds_left(rank, start)
                if seconds_left > 0.0:
                    continue
                self.lose(rank, cause)
                self._stop()
            if message is None:
                self.end(f"{self._name(rank)} has ended before this worker.")
                self._stop()
            return message

    def _seconds_left(self, rank: int, start: float) -> tuple[float, str]:
        """Seconds after which a worker counts as lost, and the cause."""
        now, patience = time.perf_counter(), STALL_FACTOR * self._timeout
        stalled = start + patience - now, f"it was silent for {patience:g} seconds"
        if not self.has_signs_of_life:
            return stalled
        alive = max(start, self._heard[rank]) + self._timeout - now
        return min(stalled, (alive, protocol.silence_cause(self._timeout)))

    def _stop(self) -> None:
        self.has_raised = True
        raise WorkerError(str(self._end_reason))


class WorkerContext:
    """Surroundings of the program on one worker in one attempt; here without a way to the driver.

    Parameters
    ----------
    transport : InboxTransport
    n_threads : int
        Threads of the worker.
    memory_limit : int or None
        Bytes that the fit may use on this worker; None: unknown.
    parts : mapping of str to range
        Numbers of the parts of each table that this worker holds in this attempt.

    Attributes
    ----------
    newest_state : callable or None
        Set by the program: a function without arguments that returns ``(progress, state)``, an
        integer and a picklable object. It is called after the loss of a worker.
    resumed_state : object or None
        State that this attempt continues from, the same on all workers; None in the first attempt,
        and until a worker has a state.
    rank : int
    """

    def __init__(
        self,
        transport: InboxTransport,
        n_threads: int,
        memory_limit: int | None = None,
        parts: Mapping[str, range] | None = None,
    ) -> None:
        self.newest_state: Callable[[], tuple[int, object]] | None = None
        self.resumed_state: object | None = None
        self.transport, self.rank = transport, transport.rank
        self.n_threads, self.memory_limit, self.parts = n_threads, memory_limit, parts or {}

    def show(self, message: object) -> None:
        """Send a message to the driver, without waiting; those of other ranks are dropped.

        It costs nothing: about ten messages a second are sent, and a newer one replaces an older
        one that was not sent. Messages must not change afterwards.
        """

    def ask(self, message: object) -> Any:
        """Answer of the driver to a message; rank 0 only.

        Raises
        ------
        WorkerError
            There was no answer within the time limit, or the fit was cancelled.
        RuntimeError
            This worker has no channel to the driver.
        """
        raise RuntimeError(f"This worker cannot ask the driver: {message!r}")

    def check(self) -> None:
        """Raise WorkerError if the fit was cancelled, or another worker is lost."""
        self.transport.check()


# A picklable function; all workers call it with their shares of the same tables, in a thread. The
# value that rank 0 returns is the result of the fit.
Program = Callable[[Mapping[str, Share], WorkerContext], object]


class WorkerAttempt(WorkerContext):
    """Context of one attempt, with a way to the driver, and the run of its program in a thread.

    A subclass has the rows of its cluster in `_rows_of_cluster`, and tells the thread that reports
    to the driver by `_wake` that there is something to report.

    Parameters
    ----------
    spec : AttemptSpec
    transport : InboxTransport
    best : tuple of int and object, or None
        Progress and state that this worker has.
    dumps : callable
        Pickles messages, results and exceptions.
    n_threads : int
    memory_limit : int or None

    Attributes
    ----------
    best : tuple of int and object, or None
        After the end, the newest state.
    outcome : Outcome or None
        None while the program runs.
    """

    def __init__(
        self,
        spec: protocol.AttemptSpec,
        transport: InboxTransport,
        best: tuple[int, object] | None,
        dumps: Callable[[object], bytes],
        *,
        n_threads: int,
        memory_limit: int | None = None,
    ) -> None:
        parts = {name: table.numbers for name, table in spec.tables.items()}
        super().__init__(transport, n_threads, memory_limit, parts)
        self.best = best
        self.outcome: protocol.Outcome | None = None
        self._spec, self._dumps = spec, dumps
        self._messages: deque[object] = deque(maxlen=1)  # the newest
        self._last_shown = 0.0
        self._question: tuple[int, bytes] | None = None
        self._n_questions = 0
        self._answer: bytes | None = None
        self._is_answered = threading.Event()
        self._lock = threading.Lock()  # of threads that report

    # ---- for the program ----

    def show(self, message: object) -> None:
        """Send a message to the driver; see `WorkerContext.show`."""
        if self.rank == 0:
            self._messages.append(message)
            self._wake()

    def ask(self, message: object) -> Any:
        """Answer of the driver; see `WorkerContext.ask`."""
        if self.rank != 0:
            raise RuntimeError(f"Rank {self.rank} asked the driver, but only rank 0 may.")
        self._is_answered.clear()
        self._n_questions += 1
        self._question = self._n_questions, self._dumps(message)
        self._wake()
        deadline = time.monotonic() + self._spec.timeout
        while not self._is_answered.wait(_POLL_S):
            self.check()
            if time.monotonic() > deadline:
                raise WorkerError(
                    f"The driver did not answer within {self._spec.timeout:g} seconds."
                )
        self.check()
        return pickle.loads(self._answer or b"")

    # ---- for the thread of the program ----

    def run_program(self, holder: int | None) -> protocol.Outcome:
        """Run the program, however it ends.

        Parameters
        ----------
        holder : int or None
            Rank of the worker whose state all workers continue from.
        """
        try:
            workers = Workers(self.transport)
            if holder is not None:
                self.best = workers.broadcast(self.best, holder)
                self.resumed_state = None if self.best is None else self.best[1]
            tables = {
                name: Share(self._rows(table), workers) for name, table in self._spec.tables.items()
            }
            result = pickle.loads(self._spec.program)(tables, self)
            return protocol.Done(self._dumps(result) if self.rank == 0 else None)
        except BaseException as error:
            # Whatever ends the program, the driver and the other workers must know.
            return self._failure(error)

    def _rows(self, table: TableParts) -> object:
        is_files = table.are_paths and table.parts
        return list(table.parts) if is_files else self._rows_of_cluster(table.parts)

    def _rows_of_cluster(self, parts: tuple[Any, ...]) -> object:
        """Restartable iterable of parts that the cluster holds."""
        raise NotImplementedError

    def _failure(self, error: BaseException) -> protocol.Outcome:
        """Outcome of an exception: an interruption where the transport raised first."""
        if not self.transport.has_raised:
            return protocol.Failed.of(error, self._dumps)
        if self.newest_state is not None:
            try:
                state = self.newest_state()
            except Exception as failure:
                return protocol.Failed.of(failure, self._dumps)
            if self.best is None or state[0] >= self.best[0]:
                self.best = state
        return protocol.Interrupted(str(error), dict(self.transport.lost), self.progress)

    # ---- for the threads that report to the driver ----

    @property
    def progress(self) -> int | None:
        """Progress of the state that this worker has; None where it has no state."""
        return None if self.best is None else self.best[0]

    def take_answer(self, number: int, answer: bytes) -> None:
        """Take the driver's answer to the question of this number."""
        if self._question is not None and self._question[0] == number:
            self._question, self._answer = None, answer
            self._is_answered.set()

    def report(self) -> protocol.StatusReport | None:
        """Question, outcome, or a message whose time has come; None without them."""
        with self._lock:
            question, messages = self._question, self._messages
            if self.outcome is None and question is None and self.seconds_to_message() > 0:
                return None
            if not messages:
                return protocol.StatusReport(None, question, self.outcome)
            self._last_shown = time.monotonic()
            message = messages.popleft()
        try:
            shown = self._dumps(message)
        except Exception as error:
            # Pickling calls methods of the message, which may raise anything.
            self.transport.end(f"A message could not be sent: {error}")
            shown = None
        return protocol.StatusReport(shown, question, self.outcome)

    def seconds_to_message(self) -> float:
        """Seconds until a waiting message may be sent; infinity without one."""
        if not self._messages:
            return float("inf")
        return max(0.0, self._last_shown + _MESSAGE_PERIOD_S - time.monotonic())

    def _wake(self) -> None:
        """Tell the thread that reports to the driver that there is something to report."""
        raise NotImplementedError
