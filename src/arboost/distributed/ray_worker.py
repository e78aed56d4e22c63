"""The actor of one rank of a fit on Ray; it lives from attempt to attempt.

Calls run in threads of three kinds, so that messages arrive and the driver is answered while the
program runs:

    run                              the program
    push                             messages of other actors
    where, prepare, watch, cancel    calls of the driver

    program: send ──push.remote──▶ Ray ──▶ actor's thread for messages ──inbox──▶ program: receive
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import ray
from ray import cloudpickle
from ray.exceptions import GetTimeoutError, ObjectLostError

from arboost.distributed.protocol import AttemptSpec, StatusReport
from arboost.distributed.worker import InboxTransport, WorkerAttempt
from arboost.errors import WorkerError

MESSAGES = "messages"  # concurrency group of the calls that carry messages
CONTROL = "control"  # concurrency group of the driver's calls

_N_CONTROL_THREADS = 4  # a call that waits for a report does not delay the others
_BLOCK_POLL_S = 0.5  # after which a wait checks whether the fit is over


@dataclass(frozen=True)
class ActorSpec(AttemptSpec):
    """Work of one actor in one attempt.

    Attributes
    ----------
    attempt, rank : int
    actors : tuple of actor handles
        All actors, by rank.
    names : tuple of str
        Names of all actors in messages, by rank.
    n_threads : int
    """

    attempt: int
    rank: int
    actors: tuple[Any, ...]
    names: tuple[str, ...]
    n_threads: int


def dumps(value: object) -> bytes:
    """Pickle a value as Ray does it: functions of scripts are pickled with their code."""
    packed: bytes = cloudpickle.dumps(value)
    return packed


class ProcessLocation(NamedTuple):
    """The process of an actor: address and number of its node, and number of the process."""

    address: str
    node: str
    pid: int


class FitWorker:
    """A worker of a fit."""

    def __init__(self) -> None:
        self._attempt: ActorAttempt | None = None

    def where(self) -> ProcessLocation:
        """Process of this actor."""
        node = ray.get_runtime_context().get_node_id()
        return ProcessLocation(ray.util.get_node_ip_address(), node, os.getpid())

    def prepare(self, spec: ActorSpec) -> int | None:
        """Make the inboxes of this actor in an attempt, so that others can send to it.

        Returns
        -------
        int or None
            Progress of the state that this actor has.
        """
        best = None if self._attempt is None else self._attempt.best
        self._attempt = ActorAttempt(spec, best)
        return self._attempt.progress

    def run(self, attempt: int, holder: int | None) -> StatusReport:
        """Run the program, and report its outcome and the last message that was not shown.

        Parameters
        ----------
        attempt : int
        holder : int or None
            Rank of the actor whose state all actors continue from.
        """
        current = self._current(attempt)
        return StatusReport(is_known=False) if current is None else current.run(holder)

    def push(self, attempt: int, rank: int, number: int, message: bytes) -> None:
        """Take a message of another actor; one of an attempt that is over is dropped."""
        current = self._current(attempt)
        if current is not None:
            current.transport.deliver(rank, number, message)

    def watch(
        self, attempt: int, answer: tuple[int, bytes] | None, patience: float
    ) -> StatusReport:
        """Take an answer of the driver, and report at the latest after `patience` seconds."""
        current = self._current(attempt)
        if current is None:
            return StatusReport(is_known=False)
        return current.wait_for_report(answer, patience)

    def cancel(self, attempt: int, reason: str) -> None:
        """End the program."""
        current = self._current(attempt)
        if current is not None:
            current.transport.end(reason)

    def _current(self, attempt: int) -> ActorAttempt | None:
        current = self._attempt
        return current if current is not None and current.number == attempt else None


def actor_class() -> Any:
    """Class of the actors for Ray, which restarts none of them: the driver does it."""
    groups = {MESSAGES: 1, CONTROL: _N_CONTROL_THREADS}
    return ray.remote(concurrency_groups=groups, max_restarts=0, max_task_retries=0)(FitWorker)


class ActorAttempt(WorkerAttempt):
    """One attempt on one actor.

    Parameters
    ----------
    spec : ActorSpec
    best : tuple of int and object, or None
        Progress and state that this actor has.

    Attributes
    ----------
    number : int
    """

    transport: RayTransport

    def __init__(self, spec: ActorSpec, best: tuple[int, object] | None) -> None:
        self.number = spec.attempt
        super().__init__(spec, RayTransport(spec), best, dumps, n_threads=spec.n_threads)
        self._has_report = threading.Event()

    def run(self, holder: int | None) -> StatusReport:
        """Run the program; report its outcome, and the last message."""
        self.outcome = self.run_program(holder)
        self._has_report.set()
        return self.report() or StatusReport(outcome=self.outcome)

    def wait_for_report(self, answer: tuple[int, bytes] | None, patience: float) -> StatusReport:
        """Take an answer of the driver, and report at the latest after `patience` seconds."""
        if answer is not None:
            self.take_answer(*answer)
        deadline = time.monotonic() + patience
        while self.outcome is None:
            self._has_report.clear()
            report, seconds_left = self.report(), deadline - time.monotonic()
            if report is not None or seconds_left <= 0:
                return report or StatusReport()
            self._has_report.wait(min(seconds_left, self.seconds_to_message()))
        return StatusReport()

    def _wake(self) -> None:
        self._has_report.set()

    def _rows_of_cluster(self, parts: tuple[Any, ...]) -> ActorBlocks:
        return ActorBlocks(parts, self._spec.timeout, self.check)


class RayTransport(InboxTransport):
    """`Transport` of one attempt on one actor.

    Ray delivers each call once, but calls that carry large messages may be overtaken by others.
    Numbers put them back in order.

    Parameters
    ----------
    spec : ActorSpec
    """

    has_signs_of_life = False

    def __init__(self, spec: ActorSpec) -> None:
        super().__init__(spec.rank, len(spec.names), spec.timeout, spec.names.__getitem__)
        self._attempt = spec.attempt
        self._pushes = [
            actor.push.options(num_returns=0, concurrency_group=MESSAGES) for actor in spec.actors
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
                self.put(rank, early.pop(self._n_delivered[rank]))
                self._n_delivered[rank] += 1


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
