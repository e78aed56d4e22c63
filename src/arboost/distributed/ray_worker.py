"""The actor of one rank of a fit on Ray; it lives from attempt to attempt.

Calls run in threads of three kinds, so that messages arrive and the driver is answered while the
program runs:

    run                              the program
    push                             messages of other actors
    where, prepare, watch, cancel    calls of the driver
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import ray
from ray import cloudpickle
from ray.exceptions import GetTimeoutError, ObjectLostError

from arboost.distributed.protocol import Outcome, Program, StatusReport
from arboost.distributed.worker import AttemptContext, InboxTransport, ProgramRun
from arboost.errors import WorkerError


@dataclass(frozen=True)
class TableBlocks:
    """Consecutive parts of a table: blocks of a Ray Dataset, or files.

    Attributes
    ----------
    parts : tuple
        Object references of blocks, or paths.
    sizes : tuple of int
        Bytes of each part.
    are_paths : bool
    first : int
        Number of the first part among all parts of the table.
    """

    parts: tuple[Any, ...]
    sizes: tuple[int, ...]
    are_paths: bool
    first: int = 0

    @property
    def numbers(self) -> range:
        """Numbers of the parts among all parts of the table."""
        return range(self.first, self.first + len(self.parts))

    def slice(self, numbers: range) -> TableBlocks:
        """Return some of the parts of a whole table."""
        chosen = slice(numbers.start, numbers.stop)
        return TableBlocks(self.parts[chosen], self.sizes[chosen], self.are_paths, numbers.start)


@dataclass(frozen=True)
class ActorSpec:
    """The task of one actor in one attempt.

    Attributes
    ----------
    attempt, rank : int
    actors : tuple of actor handles
        All actors, by rank.
    names : tuple of str
        Names of all actors in messages, by rank.
    program : bytes
        The program, pickled.
    tables : mapping of str to TableBlocks
    n_threads : int
    timeout : float
    """

    attempt: int
    rank: int
    actors: tuple[Any, ...]
    names: tuple[str, ...]
    program: bytes
    tables: Mapping[str, TableBlocks]
    n_threads: int
    timeout: float


def dumps(value: object) -> bytes:
    """Return a value, pickled as Ray does it: functions of scripts are pickled with their code."""
    packed: bytes = cloudpickle.dumps(value)
    return packed


CONTROL = "control"  # concurrency group of the driver's calls

_N_CONTROL_THREADS = 4  # threads: a call that waits for news does not delay the others


class ProcessLocation(NamedTuple):
    """The process of an actor: address and number of its node, and number of the process."""

    address: str
    node: str
    pid: int


class FitWorker:
    """A worker of a fit."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}
        self._best: tuple[int, object] | None = None
        self._attempt: ActorAttempt | None = None

    def where(self) -> ProcessLocation:
        """Return the process of this actor."""
        node = ray.get_runtime_context().get_node_id()
        return ProcessLocation(ray.util.get_node_ip_address(), node, os.getpid())

    def prepare(self, orders: ActorSpec) -> int | None:
        """Make the place of this actor in an attempt, so that others can send to it.

        Returns
        -------
        int or None
            Progress of the state that this actor has.
        """
        self._attempt = ActorAttempt(orders, self._kept, self._best)
        return None if self._best is None else self._best[0]

    def run(self, attempt: int, holder: int | None) -> StatusReport:
        """Run the program, and return its outcome and the last message that was not shown.

        Parameters
        ----------
        attempt : int
        holder : int or None
            Rank of the actor whose state all actors continue from.
        """
        current = self._current(attempt)
        if current is None:
            return StatusReport(is_known=False)
        news = current.run(holder)
        self._best = current.best
        return news

    def push(self, attempt: int, rank: int, number: int, message: bytes) -> None:
        """Take a message of another actor; one of an attempt that is over is dropped."""
        current = self._current(attempt)
        if current is not None:
            current.transport.deliver(rank, number, message)

    def watch(
        self, attempt: int, answer: tuple[int, bytes] | None, patience: float
    ) -> StatusReport:
        """Take an answer of the driver, and return news at the latest after `patience` seconds."""
        current = self._current(attempt)
        return StatusReport(is_known=False) if current is None else current.news(answer, patience)

    def cancel(self, attempt: int, reason: str) -> None:
        """End the program."""
        current = self._current(attempt)
        if current is not None:
            current.transport.end(reason)

    def _current(self, attempt: int) -> ActorAttempt | None:
        current = self._attempt
        return current if current is not None and current.number == attempt else None


class ActorAttempt:
    """One attempt on one actor.

    Parameters
    ----------
    orders : Orders
    kept : dict
        Values that the program keeps on this actor.
    best : tuple of int and object, or None
        Progress and state that this actor has.

    Attributes
    ----------
    number : int
    transport : RayTransport
    """

    def __init__(
        self, orders: ActorSpec, kept: dict[str, Any], best: tuple[int, object] | None
    ) -> None:
        self.number = orders.attempt
        self.transport = RayTransport(orders)
        self._orders = orders
        self._has_news = threading.Event()
        self._outcome: Outcome | None = None
        parts = {name: table.numbers for name, table in orders.tables.items()}
        self._desk = AttemptContext(
            self.transport, kept, parts, orders.timeout, wake=self._has_news.set, dumps=dumps
        )
        self._desk.n_threads = orders.n_threads
        self._program_run = ProgramRun(self.transport, self._desk, best, dumps)

    @property
    def best(self) -> tuple[int, object] | None:
        """Progress and state that this actor has."""
        return self._program_run.best

    def run(self, holder: int | None) -> StatusReport:
        """Run the program; return its outcome, and the last message."""
        self._outcome = self._program_run.outcome(self._load, self._rows, holder)
        self._has_news.set()
        return self._desk.news(self._outcome) or StatusReport(outcome=self._outcome)

    def news(self, answer: tuple[int, bytes] | None, patience: float) -> StatusReport:
        """Take an answer of the driver, and return news at the latest after `patience` seconds."""
        if answer is not None:
            self._desk.take(*answer)
        deadline = time.monotonic() + patience
        while self._outcome is None:
            self._has_news.clear()
            found = self._desk.news(None)
            left = deadline - time.monotonic()
            if found is not None or left <= 0:
                return found or StatusReport()
            self._has_news.wait(min(left, max(0.0, self._desk.pause())))
        return StatusReport()

    def _load(self) -> Program:
        program: Program = pickle.loads(self._orders.program)
        return program

    def _rows(self) -> dict[str, object]:
        return {name: self._rows_of(table) for name, table in self._orders.tables.items()}

    def _rows_of(self, table: TableBlocks) -> object:
        if table.are_paths and table.parts:
            return list(table.parts)
        return ActorBlocks(table.parts, self._orders.timeout, self.transport.check)


def actor_class() -> Any:
    """Return the class of the actors for Ray. None is restarted by Ray: the driver does it."""
    groups = {MESSAGES: 1, CONTROL: _N_CONTROL_THREADS}
    return ray.remote(concurrency_groups=groups, max_restarts=0, max_task_retries=0)(FitWorker)


MESSAGES = "messages"  # concurrency group of the calls that carry messages


class RayTransport(InboxTransport):
    """`Transport` of one attempt on one actor.

    Parameters
    ----------
    orders : Orders

    Attributes
    ----------
    n_bytes, n_messages : int
        Sent so far.
    """

    def __init__(self, orders: ActorSpec) -> None:
        names = orders.names
        super().__init__(
            orders.rank, len(names), orders.timeout, lambda rank: names[rank], has_signs=False
        )
        self._attempt = orders.attempt
        self._pushes = [
            actor.push.options(num_returns=0, concurrency_group=MESSAGES) for actor in orders.actors
        ]
        self._n_sent = [0] * self.size
        self._n_delivered = [0] * self.size
        self._early: list[dict[int, bytes]] = [{} for _ in range(self.size)]  # by number
        self._lock = threading.Lock()

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to another actor, without waiting for it."""
        self._count(message)
        self._pushes[rank].remote(self._attempt, self.rank, self._n_sent[rank], message)
        self._n_sent[rank] += 1

    def deliver(self, rank: int, number: int, message: bytes) -> None:
        """Take a message of another actor, by its number; for any thread."""
        with self._lock:
            early = self._early[rank]
            early[number] = message
            while self._n_delivered[rank] in early:
                self._inboxes.put(rank, early.pop(self._n_delivered[rank]))
                self._n_delivered[rank] += 1


_BLOCK_POLL_S = 0.5  # seconds after which a wait looks whether the fit is over


class ActorBlocks:
    """Tables in Ray's object store, in their order; each pass asks for them again.

    Blocks of this machine are not copied. Others are brought by Ray, one at a time.

    Parameters
    ----------
    references : tuple of ray.ObjectRef
    timeout : float
        Seconds that Ray may take for a block.
    check : callable
        Raises if the fit is over.
    """

    def __init__(
        self, references: tuple[Any, ...], timeout: float, check: Callable[[], None]
    ) -> None:
        self._references, self._timeout, self._check = references, timeout, check

    def __iter__(self) -> Iterator[Any]:
        return map(self._block, self._references)

    def _block(self, reference: Any) -> Any:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return ray.get(reference, timeout=_BLOCK_POLL_S)
            except GetTimeoutError:
                self._check()
                if time.monotonic() > deadline:
                    raise WorkerError(
                        f"A block of the dataset was not there within {self._timeout:g} seconds. "
                        "Check the nodes of the cluster, or pass a larger timeout."
                    ) from None
            except ObjectLostError as error:
                raise WorkerError(
                    f"A block of the dataset is lost with its node ({type(error).__name__}), and "
                    "Ray cannot compute it again. Pass files, which actors read themselves."
                ) from None
