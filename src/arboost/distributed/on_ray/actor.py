"""The actor of one rank of a fit; it lives from attempt to attempt.

Calls run in threads of three kinds, so that messages arrive and orders are taken while the program
runs:

    run                              the program
    push                             messages of other actors
    where, prepare, watch, cancel    calls of the driver
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from typing import Any, NamedTuple

import ray

from arboost.distributed.on_ray.blocks import ActorBlocks
from arboost.distributed.on_ray.orders import Orders, TableBlocks, dumps
from arboost.distributed.on_ray.transport import MESSAGES, RayTransport
from arboost.distributed.program import Program
from arboost.distributed.reports import News, Outcome
from arboost.distributed.worker_desk import ProgramRun, WorkerDesk

__all__ = ["CONTROL", "FitWorker", "actor_class"]

CONTROL = "control"  # concurrency group of the driver's calls

_N_CONTROL = 4  # threads: a call that waits for news does not delay the others


class Whereabouts(NamedTuple):
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

    def where(self) -> Whereabouts:
        """Return the process of this actor."""
        node = ray.get_runtime_context().get_node_id()
        return Whereabouts(ray.util.get_node_ip_address(), node, os.getpid())

    def prepare(self, orders: Orders) -> int | None:
        """Make the place of this actor in an attempt, so that others can send to it.

        Returns
        -------
        int or None
            Progress of the state that this actor has.
        """
        self._attempt = ActorAttempt(orders, self._kept, self._best)
        return None if self._best is None else self._best[0]

    def run(self, attempt: int, holder: int | None) -> News:
        """Run the program, and return its outcome and the last message that was not shown.

        Parameters
        ----------
        attempt : int
        holder : int or None
            Rank of the actor whose state all actors continue from.
        """
        current = self._current(attempt)
        if current is None:
            return News(is_known=False)
        news = current.run(holder)
        self._best = current.best
        return news

    def push(self, attempt: int, rank: int, number: int, message: bytes) -> None:
        """Take a message of another actor; one of an attempt that is over is dropped."""
        current = self._current(attempt)
        if current is not None:
            current.transport.deliver(rank, number, message)

    def watch(self, attempt: int, answer: tuple[int, bytes] | None, patience: float) -> News:
        """Take an answer of the driver, and return news at the latest after `patience` seconds."""
        current = self._current(attempt)
        return News(is_known=False) if current is None else current.news(answer, patience)

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
        self, orders: Orders, kept: dict[str, Any], best: tuple[int, object] | None
    ) -> None:
        self.number = orders.attempt
        self.transport = RayTransport(orders)
        self._orders = orders
        self._has_news = threading.Event()
        self._outcome: Outcome | None = None
        parts = {name: table.numbers for name, table in orders.tables.items()}
        self._desk = WorkerDesk(
            self.transport, kept, parts, orders.timeout, wake=self._has_news.set, dumps=dumps
        )
        self._desk.n_threads = orders.n_threads
        self._program_run = ProgramRun(self.transport, self._desk, best, dumps)

    @property
    def best(self) -> tuple[int, object] | None:
        """Progress and state that this actor has."""
        return self._program_run.best

    def run(self, holder: int | None) -> News:
        """Run the program; return its outcome, and the last message."""
        self._outcome = self._program_run.outcome(self._load, self._rows, holder)
        self._has_news.set()
        return self._desk.news(self._outcome) or News(outcome=self._outcome)

    def news(self, answer: tuple[int, bytes] | None, patience: float) -> News:
        """Take an answer of the driver, and return news at the latest after `patience` seconds."""
        if answer is not None:
            self._desk.take(*answer)
        deadline = time.monotonic() + patience
        while self._outcome is None:
            self._has_news.clear()
            found = self._desk.news(None)
            left = deadline - time.monotonic()
            if found is not None or left <= 0:
                return found or News()
            self._has_news.wait(min(left, max(0.0, self._desk.pause())))
        return News()

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
    groups = {MESSAGES: 1, CONTROL: _N_CONTROL}
    return ray.remote(concurrency_groups=groups, max_restarts=0, max_task_retries=0)(FitWorker)
