"""A worker's desk in one attempt of a fit, and the run of the program at it."""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from arboost.distributed.program import Interrupted, Program
from arboost.distributed.reports import Done, Failed, News, Outcome
from arboost.errors import WorkerError
from arboost.workers import Share, Transport, Workers

__all__ = ["Dumps", "EndingTransport", "ProgramRun", "WorkerDesk"]

Dumps = Callable[[object], bytes]

_PACE = 0.1  # seconds between messages of `Desk.show` that are sent
_SLICE = 0.5


class EndingTransport(Transport, Protocol):
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


class WorkerDesk:
    """`Desk` of one attempt; its messages and its question wait for the client.

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
        transport: EndingTransport,
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
        """Send a message to the client; see `Desk.show`."""
        if self.rank != 0:
            return
        self._messages.append(message)
        self._wake()

    def ask(self, message: object) -> Any:
        """Return the client's answer; see `Desk.ask`."""
        if self.rank != 0:
            raise RuntimeError(f"Rank {self.rank} asked the client, but only rank 0 may.")
        self._is_answered.clear()
        self._n_questions += 1
        self._question = self._n_questions, self._dumps(message)
        self._wake()
        deadline = time.monotonic() + self._timeout
        while not self._is_answered.wait(_SLICE):
            self.check()
            if time.monotonic() > deadline:
                raise WorkerError(f"The client did not answer within {self._timeout:g} seconds.")
        self.check()
        return pickle.loads(self._answer or b"")

    def check(self) -> None:
        """Raise if the fit is over; see `Desk.check`."""
        self._transport.check()

    def take(self, number: int, answer: bytes) -> None:
        """Take the client's answer; for another thread than the program's."""
        if self._question is not None and self._question[0] == number:
            self._question, self._answer = None, answer
            self._is_answered.set()

    def news(self, outcome: Outcome | None) -> News | None:
        """Return a question, the outcome, or a message whose time has come; None without them."""
        with self._lock:
            question, messages = self._question, self._messages
            if outcome is None and question is None and not (messages and self.pause() <= 0):
                return None
            if not messages:
                return News(None, question, outcome)
            self._last_shown = time.monotonic()
            message = messages.popleft()
        try:
            shown = self._dumps(message)
        except Exception as error:
            # Pickling calls methods of the message, which may raise anything.
            self._transport.end(f"A message could not be sent: {error}")
            shown = None
        return News(shown, question, outcome)

    def pause(self) -> float:
        """Return the seconds until a waiting message may be sent; infinity without one."""
        if not self._messages:
            return float("inf")
        return self._last_shown + _PACE - time.monotonic()


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
        transport: EndingTransport,
        desk: WorkerDesk,
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
