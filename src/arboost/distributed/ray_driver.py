"""A program on a cluster of Ray: attempt after attempt, until one ends with a result.

    driver ──prepare──▶ all ranks ──run──▶ all ranks ··· outcomes
       └─────watch────▶ rank 0, again and again: messages, questions ◀──▶ listener

An attempt ends when an actor is lost. A new actor takes its parts, and the newest state of the
others is the start of the next attempt.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from arboost.distributed import protocol
from arboost.distributed.data import PartitionedTable, TableParts, balanced_ranges
from arboost.distributed.ray_worker import CONTROL, ActorSpec, ProcessLocation, actor_class, dumps
from arboost.distributed.recovery import WorkerFailureBudget, newest_state
from arboost.distributed.worker import Program
from arboost.errors import WorkerError

_LONG_POLL_S = 2.0  # that rank 0 may hold a call until it has something to report
_ANSWER_LIMIT_S = 10.0  # for an actor to answer once a program has ended
_POLL_S = 0.5  # between checks of the clock
_HEARTBEAT_S = 2.0  # between calls to the other ranks
_RETRY_S = 0.1  # after a call that failed
_SETTLE_LIMIT_S = 2.0  # after which Ray knows all CPUs that tasks and actors have given back
_SETTLE_POLL_S = 0.1
_KILL_LIMIT_S = 10.0  # for the end of a process
_CAUSE_PATTERN = re.compile(r"The actor is dead because (.+?\.)(?: |$)", re.DOTALL)


@dataclass(frozen=True)
class FitResources:
    """Resources and limits of a fit.

    Attributes
    ----------
    n_workers : int or None
        None: one for each part of the first table, as far as CPUs are free.
    cpus_per_worker : float
    timeout : float
        Seconds of silence after which an actor counts as lost.
    retries : int
        Losses without progress in between after which the fit fails.
    """

    n_workers: int | None = None
    cpus_per_worker: float = 1
    timeout: float = 60.0
    retries: int = 3


def run_program(
    program: Program,
    tables: Mapping[str, PartitionedTable],
    listener: protocol.Listener,
    resources: FitResources,
) -> Any:
    """Result of a program that actors run at the same time.

    Parameters
    ----------
    program : Program
    tables : mapping of str to PartitionedTable
        Each is divided into consecutive parts of about equal bytes.
    listener : Listener
        Takes messages of the program, in this thread.
    resources : FitResources

    Raises
    ------
    WorkerError
        Too many actors are lost, or do not start.
    Exception
        Raised by the program, or by the listener.
    """
    n_parts = len(next(iter(tables.values())).parts)
    n_cpus = resources.cpus_per_worker
    size = resources.n_workers or min(n_available_actors(n_cpus), n_parts)
    ranges = {name: balanced_ranges(table.sizes, size) for name, table in tables.items()}
    shares = [
        {name: table.slice(ranges[name][rank]) for name, table in tables.items()}
        for rank in range(size)
    ]
    group = ActorGroup(size, n_cpus, resources.timeout)
    budget = WorkerFailureBudget(resources.retries)
    packed, number, missing = dumps(program), 0, list(range(size))
    try:
        while True:
            try:
                outcomes: dict[int, protocol.Outcome] = {**group.start(missing)}
            except WorkerError as error:
                raise budget.error(str(error)) from None
            if not outcomes:
                attempt = DriverAttempt(group, number, listener, resources.timeout)
                outcomes = attempt.run(packed, shares)
            done = protocol.result_of(outcomes, group.names.__getitem__)
            if done is not None:
                return pickle.loads(done.result or b"")
            budget.note_progress(newest_state(outcomes)[1])
            lost = {
                rank: outcome.cause
                for rank, outcome in sorted(outcomes.items())
                if isinstance(outcome, protocol.Lost)
            }
            budget.note_losses({group.names[rank]: cause for rank, cause in lost.items()}, outcomes)
            budget.check()
            missing = list(lost)
            number += 1
    finally:
        group.stop()


# ---- one attempt ----


class _Heartbeat(NamedTuple):
    """A call to a rank, and its time."""

    answer: Any
    time: float


class DriverAttempt:
    """An attempt as the driver sees it: start all programs, watch them, collect their ends.

    All methods are for the caller's thread.

    Parameters
    ----------
    group : ActorGroup
    number : int
    listener : Listener
    timeout : float
        Seconds of silence after which an actor counts as lost.
    """

    def __init__(
        self, group: ActorGroup, number: int, listener: protocol.Listener, timeout: float
    ) -> None:
        self._group, self._number, self._listener = group, number, listener
        self._timeout, self._heard = timeout, 0.0
        self._heartbeats: dict[int, _Heartbeat] = {}  # by rank
        self._outcomes: dict[int, protocol.Outcome] = {}
        self._runs: dict[Any, int] = {}  # references of outcomes that are not there yet -> ranks

    def run(
        self, program: bytes, shares: Sequence[Mapping[str, TableParts]]
    ) -> dict[int, protocol.Outcome]:
        """Outcome of each rank.

        Parameters
        ----------
        program : bytes
        shares : sequence of mapping of str to TableParts
            Tables of each rank.
        """
        group, outcomes = self._group, self._outcomes
        preparing = {}
        for rank, tables in enumerate(shares):
            spec = ActorSpec(
                program,
                tables,
                self._timeout,
                attempt=self._number,
                rank=rank,
                actors=tuple(group.actors),
                names=tuple(group.names),
                n_threads=group.n_threads,
            )
            preparing[group.call(rank, "prepare", spec)] = rank
        progress = self._answers(preparing, self._timeout)
        if outcomes:
            # No program has started, so the others have nothing to report.
            return outcomes
        ranks_with_state = [rank for rank in sorted(progress) if progress[rank] is not None]
        holder = max(ranks_with_state, key=progress.__getitem__, default=None)
        self._runs = {
            actor.run.remote(self._number, holder): rank for rank, actor in enumerate(group.actors)
        }
        self._watch()
        is_done = isinstance(outcomes.get(0), protocol.Done)
        if not is_done:
            self._cancel()
        self._collect_ends(_ANSWER_LIMIT_S if is_done else self._timeout)
        return outcomes

    def _watch(self) -> None:
        """Pass messages to the listener until rank 0 has a result, or a rank has failed."""
        watching, self._heard = self._ask_report(None), time.monotonic()
        while time.monotonic() - self._heard < self._timeout + _LONG_POLL_S:
            ready, _ = ray.wait([*self._runs, watching], num_returns=1, timeout=_POLL_S)
            if watching in ready:
                watching = self._ask_report(self._pass_on(watching))
            elif ready:
                rank = self._runs[ready[0]]
                if rank == 0:
                    self._pass_on(watching)  # messages before the last one
                self._end(ready[0])
                if rank == 0 or not isinstance(self._outcomes[rank], protocol.Done):
                    return
            if self._has_silent_rank():
                return
        self._lose(0, protocol.silence_cause(self._timeout))

    def _has_silent_rank(self) -> bool:
        """Ask the other ranks for a sign of life; whether one of them is lost without it."""
        now = time.monotonic()
        for rank in sorted({*self._runs.values()} - {0}):
            heartbeat = self._heartbeats.get(rank)
            if heartbeat is not None and not ray.wait([heartbeat.answer], timeout=0)[0]:
                if now - heartbeat.time > self._timeout:
                    self._lose(rank, protocol.silence_cause(self._timeout))
                    return True
            elif heartbeat is None or now - heartbeat.time > _HEARTBEAT_S:
                self._heartbeats[rank] = _Heartbeat(self._group.call(rank, "where"), now)
        return False

    def _ask_report(self, answer: tuple[int, bytes] | None) -> Any:
        return self._group.call(0, "watch", self._number, answer, _LONG_POLL_S)

    def _pass_on(self, watching: Any) -> tuple[int, bytes] | None:
        """Pass a report of rank 0 to the listener, and return its answer to a question."""
        try:
            report: protocol.StatusReport = ray.get(watching, timeout=_LONG_POLL_S)
        except RayError:
            # The outcome tells the cause; until it is there, calls would fail without a pause.
            time.sleep(_RETRY_S)
            return None
        self._show(report)
        answer = None
        if report.question is not None:
            number, message = report.question
            answer = number, dumps(self._listener.answer(pickle.loads(message)))
        self._heard = time.monotonic()
        return answer

    def _show(self, report: protocol.StatusReport) -> None:
        if report.shown is not None:
            self._listener.show(pickle.loads(report.shown))

    def _cancel(self) -> None:
        """End the programs of all ranks that still run; those that do not answer are lost."""
        reason = "Another worker is lost, or has failed."
        calls = {
            self._group.call(rank, "cancel", self._number, reason): rank
            for rank in self._runs.values()
        }
        self._answers(calls, _ANSWER_LIMIT_S)

    def _answers(self, calls: Mapping[Any, int], limit: float) -> dict[int, Any]:
        """Answers to calls of ranks; ranks that do not answer are lost."""
        if not calls:
            return {}
        answers = {}
        ready, late = ray.wait(list(calls), num_returns=len(calls), timeout=limit)
        for reference in late:
            self._lose(calls[reference], f"it did not answer for {limit:g} seconds")
        for reference in ready:
            try:
                answers[calls[reference]] = ray.get(reference, timeout=limit)
            except RayError as error:
                self._lose(calls[reference], loss_cause(error), is_hanging=False)
        return answers

    def _collect_ends(self, limit: float) -> None:
        """Collect the outcomes of all ranks that still run."""
        if self._runs:
            ready, _ = ray.wait(list(self._runs), num_returns=len(self._runs), timeout=limit)
            for reference in ready:
                self._end(reference)
        for rank in list(self._runs.values()):
            self._lose(rank, f"its program did not end within {limit:g} seconds")

    def _end(self, run: Any) -> None:
        """Take the outcome of a rank whose program has ended."""
        rank = self._runs.pop(run)
        try:
            report: protocol.StatusReport = ray.get(run, timeout=self._timeout)
        except RayError as error:
            self._outcomes[rank] = protocol.Lost(loss_cause(error))
            return
        self._show(report)
        self._outcomes[rank] = report.outcome or protocol.Lost("it has given the attempt up")

    def _lose(self, rank: int, cause: str, *, is_hanging: bool = True) -> None:
        self._outcomes[rank] = protocol.Lost(cause)
        if is_hanging:
            self._group.hanging.add(rank)
        self._runs = {run: run_rank for run, run_rank in self._runs.items() if run_rank != rank}


# ---- actors ----


class ActorGroup:
    """The actors of a fit: one for each rank, and new ones in the places of lost ones.

    Parameters
    ----------
    size : int
    n_cpus : float
        CPUs that Ray reserves for each actor.
    timeout : float
        Seconds that actors may take to start.

    Attributes
    ----------
    actors : list of actor handles
    names : list of str
        Names in messages.
    hanging : set of int
        Ranks of actors that do not answer.
    n_threads : int
        Threads of each actor.
    """

    def __init__(self, size: int, n_cpus: float, timeout: float) -> None:
        self.actors: list[Any] = [None] * size
        self.names = [f"Worker {rank}" for rank in range(size)]
        self.hanging: set[int] = set()
        self.n_threads = max(1, int(n_cpus))
        self._locations: dict[int, ProcessLocation] = {}
        self._n_cpus, self._timeout = n_cpus, timeout
        self._class = actor_class()

    def start(self, ranks: Iterable[int]) -> dict[int, protocol.Lost]:
        """Kill the actors of these ranks, and start new ones; return those that have died.

        Raises
        ------
        WorkerError
            The cluster has no room for them within the time limit.
        """
        starting = {}
        for rank in ranks:
            self._kill(rank)
            # Actors on many machines read and hold more than those on one.
            options = {"num_cpus": self._n_cpus, "scheduling_strategy": "SPREAD"}
            self.actors[rank] = self._class.options(**options).remote()
            starting[self.call(rank, "where")] = rank
        if not starting:
            return {}
        ready, late = ray.wait(list(starting), num_returns=len(starting), timeout=self._timeout)
        lost = {}
        for reference in ready:
            rank = starting[reference]
            try:
                location: ProcessLocation = ray.get(reference, timeout=self._timeout)
                self._locations[rank] = location
                self.names[rank] = f"Worker {rank} at {location.address}, process {location.pid}"
            except RayError as error:
                lost[rank] = protocol.Lost(loss_cause(error))
        if late:
            free = ray.available_resources().get("CPU", 0)
            raise WorkerError(
                f"{len(late)} of {len(self.actors)} workers did not start within "
                f"{self._timeout:g} seconds: each needs {self._n_cpus:g} CPUs, and the cluster has "
                f"{free:g} left. Pass a smaller n_workers or cpus_per_worker, or a larger timeout."
            )
        return lost

    def call(self, rank: int, method: str, *arguments: object) -> Any:
        """Call a method of an actor while its program may run; return the reference."""
        chosen = getattr(self.actors[rank], method)
        return chosen.options(concurrency_group=CONTROL).remote(*arguments)

    def stop(self) -> None:
        """Kill all actors."""
        for rank in range(len(self.actors)):
            self._kill(rank)

    def _kill(self, rank: int) -> None:
        location = self._locations.pop(rank, None)
        if self.actors[rank] is not None:
            ray.kill(self.actors[rank])
            self.actors[rank] = None
            if rank in self.hanging and location is not None:
                _end_process(location)
        self.hanging.discard(rank)


def _end_process(location: ProcessLocation) -> None:
    """End the process of an actor from its node: Ray asks the process, which may be stopped."""
    strategy = NodeAffinitySchedulingStrategy(location.node, soft=False)
    ending = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=strategy)(_kill_process)
    with contextlib.suppress(RayError):  # the node is lost, too
        ray.get(ending.remote(location.pid), timeout=_KILL_LIMIT_S)


def _kill_process(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def n_available_actors(n_cpus: float) -> int:
    """Number of actors that the cluster has free CPUs for; at least 1."""
    total = ray.cluster_resources().get("CPU", 0)
    end = time.monotonic() + _SETTLE_LIMIT_S
    # Tasks and actors that have just ended give their CPUs back with a delay.
    while (free := ray.available_resources().get("CPU", 0)) < total and time.monotonic() < end:
        time.sleep(_SETTLE_POLL_S)
    return max(1, int(free // n_cpus))


def loss_cause(error: RayError) -> str:
    """Cause of a loss in words; Ray's own are pages of advice."""
    cause = _CAUSE_PATTERN.search(str(error)) if isinstance(error, RayActorError) else None
    if cause is not None:
        return cause[1].strip().removesuffix(".")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}".removesuffix(".")
