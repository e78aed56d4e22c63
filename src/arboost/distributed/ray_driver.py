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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from arboost.distributed.data import balanced_ranges
from arboost.distributed.protocol import (
    Done,
    Failed,
    Listener,
    Lost,
    Outcome,
    Program,
    StatusReport,
    silence_cause,
)
from arboost.distributed.ray_worker import (
    CONTROL,
    ActorSpec,
    ProcessLocation,
    TableBlocks,
    actor_class,
    dumps,
)
from arboost.distributed.recovery import WorkerFailureBudget, newest_state
from arboost.errors import WorkerError


@dataclass(frozen=True)
class FitResources:
    """Resources and limits of a fit.

    Attributes
    ----------
    n_workers : int
    cpus_per_worker : float
    timeout : float
        Seconds of silence after which an actor counts as lost.
    retries : int
        Losses without progress in between after which the fit fails.
    """

    n_workers: int
    cpus_per_worker: float = 1
    timeout: float = 60.0
    retries: int = 3


def run_program(
    program: Program, tables: Mapping[str, TableBlocks], listener: Listener, room: FitResources
) -> Any:
    """Return the result of a program that actors run at the same time.

    Parameters
    ----------
    program : Program
    tables : mapping of str to TableBlocks
        Each is divided into consecutive parts of about equal bytes.
    listener : Listener
        Takes messages of the program, in this thread.
    room : Room

    Raises
    ------
    WorkerError
        Too many actors are lost, or do not start.
    Exception
        Raised by the program, or by the listener.
    """
    size = room.n_workers
    ranges = {name: balanced_ranges(table.sizes, size) for name, table in tables.items()}
    shares = [
        {name: table.slice(ranges[name][rank]) for name, table in tables.items()}
        for rank in range(size)
    ]
    crew = ActorGroup(size, room.cpus_per_worker, room.timeout)
    losses = WorkerFailureBudget(room.retries)
    packed, number = dumps(program), 0
    missing = list(range(size))
    try:
        while True:
            outcomes = _start_actors(crew, missing, losses)
            if not outcomes:
                attempt = DriverAttempt(crew, number, listener, room.timeout)
                outcomes = attempt.run(packed, shares)
            for rank in sorted(outcomes):
                failed = outcomes[rank]
                if isinstance(failed, Failed):
                    failed.raise_on_client(crew.names[rank])
            first = outcomes.get(0)
            if isinstance(first, Done):
                return pickle.loads(first.result or b"")
            newest = newest_state(outcomes)
            losses.note_progress(None if newest is None else newest[1])
            lost = {rank: one.cause for rank, one in outcomes.items() if isinstance(one, Lost)}
            losses.note_losses({crew.names[rank]: lost[rank] for rank in sorted(lost)}, outcomes)
            losses.check()
            missing = sorted(lost)
            number += 1
    finally:
        crew.stop()


def _start_actors(
    crew: ActorGroup, missing: list[int], losses: WorkerFailureBudget
) -> dict[int, Outcome | Lost]:
    """Start actors; return those that have died at once."""
    try:
        return {**crew.start(missing)}
    except WorkerError as error:
        raise losses.error(str(error)) from None


_LONG_POLL_S = 2.0  # seconds that rank 0 may hold a call until it has news
_ANSWER_LIMIT_S = 10.0  # seconds that an actor may take to answer once a program has ended
_POLL_S = 0.5  # seconds between looks at the clock
_HEARTBEAT_S = 2.0  # seconds between calls to the other ranks
_RETRY_S = 0.1  # seconds after a call that failed

Outcomes = dict[int, Outcome | Lost]


class _Heartbeat(NamedTuple):
    """A call to a rank, and its time."""

    answer: Any
    time: float


class DriverAttempt:
    """An attempt; all methods are for the caller's thread.

    Parameters
    ----------
    crew : Crew
    number : int
    listener : Listener
    timeout : float
        Seconds of silence after which an actor counts as lost.
    """

    def __init__(self, crew: ActorGroup, number: int, listener: Listener, timeout: float) -> None:
        self._crew, self._number, self._listener = crew, number, listener
        self._timeout, self._heard = timeout, 0.0
        self._asked: dict[int, _Heartbeat] = {}  # for a sign of life, by rank
        self._outcomes: Outcomes = {}
        self._runs: dict[Any, int] = {}  # references of outcomes that are not there yet -> ranks

    def run(self, program: bytes, shares: Iterable[Mapping[str, TableBlocks]]) -> Outcomes:
        """Return the outcome of each rank.

        Parameters
        ----------
        program : bytes
        shares : iterable of mapping of str to TableBlocks
            Tables of each rank.
        """
        crew, outcomes = self._crew, self._outcomes
        references = {}
        for rank, tables in enumerate(shares):
            orders = ActorSpec(
                attempt=self._number,
                rank=rank,
                actors=tuple(crew.actors),
                names=tuple(crew.names),
                program=program,
                tables=tables,
                n_threads=crew.n_threads,
                timeout=self._timeout,
            )
            references[crew.call(rank, "prepare", orders)] = rank
        progress = self._answers(references, self._timeout)
        if outcomes:
            # No program has started, so the others have nothing to report.
            return outcomes
        known = [rank for rank in sorted(progress) if progress[rank] is not None]
        holder = max(known, key=progress.__getitem__, default=None)
        self._runs = {
            actor.run.remote(self._number, holder): rank for rank, actor in enumerate(crew.actors)
        }
        self._watch()
        if not isinstance(outcomes.get(0), Done):
            self._cancel()
        self._last_ends(_ANSWER_LIMIT_S if isinstance(outcomes.get(0), Done) else self._timeout)
        return outcomes

    def _watch(self) -> None:
        """Pass messages to the listener until rank 0 has a result, or a rank has failed."""
        watching, self._heard = self._ask_news(None), time.monotonic()
        while time.monotonic() - self._heard < self._timeout + _LONG_POLL_S:
            ready, _ = ray.wait([*self._runs, watching], num_returns=1, timeout=_POLL_S)
            if watching in ready:
                watching = self._ask_news(self._pass_on(watching))
            elif ready:
                rank = self._runs[ready[0]]
                if rank == 0:
                    self._pass_on(watching)  # messages before the last one
                self._end(ready[0])
                if rank == 0 or not isinstance(self._outcomes[rank], Done):
                    return
            if self._has_silent_rank():
                return
        self._lose(0, silence_cause(self._timeout))

    def _has_silent_rank(self) -> bool:
        """Ask the other ranks for a sign of life; whether one of them is lost without it."""
        now = time.monotonic()
        for rank in sorted({*self._runs.values()} - {0}):
            asked = self._asked.get(rank)
            if asked is not None and not ray.wait([asked.answer], timeout=0)[0]:
                if now - asked.time > self._timeout:
                    self._lose(rank, silence_cause(self._timeout))
                    return True
            elif asked is None or now - asked.time > _HEARTBEAT_S:
                self._asked[rank] = _Heartbeat(self._crew.call(rank, "where"), now)
        return False

    def _ask_news(self, answer: tuple[int, bytes] | None) -> Any:
        return self._crew.call(0, "watch", self._number, answer, _LONG_POLL_S)

    def _pass_on(self, watching: Any) -> tuple[int, bytes] | None:
        """Pass news of rank 0 to the listener, and return its answer to a question."""
        try:
            news: StatusReport = ray.get(watching, timeout=_LONG_POLL_S)
        except RayError:
            # The outcome tells the cause; until it is there, calls would fail without a pause.
            time.sleep(_RETRY_S)
            return None
        self._show(news)
        answer = None
        if news.question is not None:
            number, message = news.question
            answer = number, dumps(self._listener.answer(pickle.loads(message)))
        self._heard = time.monotonic()
        return answer

    def _show(self, news: StatusReport) -> None:
        if news.shown is not None:
            self._listener.shown(pickle.loads(news.shown))

    def _cancel(self) -> None:
        """End the programs of all ranks that still run; those that do not answer are lost."""
        reason = "Another worker is lost, or has failed."
        calls = {
            self._crew.call(rank, "cancel", self._number, reason): rank
            for rank in self._runs.values()
        }
        self._answers(calls, _ANSWER_LIMIT_S)

    def _answers(self, calls: Mapping[Any, int], limit: float) -> dict[int, Any]:
        """Return the answers to calls of ranks; ranks that do not answer are lost."""
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

    def _last_ends(self, limit: float) -> None:
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
            news: StatusReport = ray.get(run, timeout=self._timeout)
        except RayError as error:
            self._outcomes[rank] = Lost(loss_cause(error))
            return
        self._show(news)
        self._outcomes[rank] = news.outcome or Lost("it has given the attempt up")

    def _lose(self, rank: int, cause: str, *, is_hanging: bool = True) -> None:
        self._outcomes[rank] = Lost(cause)
        if is_hanging:
            self._crew.hanging.add(rank)
        self._runs = {run: other for run, other in self._runs.items() if other != rank}


_SETTLE_LIMIT_S = (
    2.0  # seconds after which Ray knows all CPUs that tasks and actors have given back
)
_SETTLE_POLL_S = 0.1
_KILL_LIMIT_S = 10.0  # seconds that the end of a process may take
_CAUSE_PATTERN = re.compile(r"The actor is dead because (.+?\.)(?: |$)", re.DOTALL)


class ActorGroup:
    """The actors of a fit, by rank.

    Parameters
    ----------
    size : int
    n_cpus : float
        CPUs that Ray reserves for each actor.
    timeout : float
        Seconds that actors may take to start.
    """

    def __init__(self, size: int, n_cpus: float, timeout: float) -> None:
        self.actors: list[Any] = [None] * size
        self.names = [f"Worker {rank}" for rank in range(size)]
        self.hanging: set[int] = set()  # ranks of actors that do not answer
        self._places: dict[int, ProcessLocation] = {}
        self._n_cpus, self._timeout = n_cpus, timeout
        self._class = actor_class()

    @property
    def size(self) -> int:
        """Number of actors."""
        return len(self.actors)

    @property
    def n_threads(self) -> int:
        """Threads of each actor."""
        return max(1, int(self._n_cpus))

    def start(self, ranks: Iterable[int]) -> dict[int, Lost]:
        """Start actors, the old ones of these ranks are killed; return those that have died.

        Raises
        ------
        WorkerError
            The cluster has no room for them within the time limit.
        """
        started = {}
        for rank in ranks:
            self._kill(rank)
            # Actors on many machines read and hold more than those on one.
            options = {"num_cpus": self._n_cpus, "scheduling_strategy": "SPREAD"}
            self.actors[rank] = self._class.options(**options).remote()
            started[self.call(rank, "where")] = rank
        if not started:
            return {}
        ready, late = ray.wait(list(started), num_returns=len(started), timeout=self._timeout)
        lost = {}
        for reference in ready:
            rank = started[reference]
            try:
                place: ProcessLocation = ray.get(reference, timeout=self._timeout)
                self._places[rank] = place
                self.names[rank] = f"Worker {rank} at {place.address}, process {place.pid}"
            except RayError as error:
                lost[rank] = Lost(loss_cause(error))
        if late:
            raise WorkerError(self._no_room(len(late)))
        return lost

    def call(self, rank: int, method: str, *arguments: object) -> Any:
        """Call a method of an actor while its program may run; return the reference."""
        chosen = getattr(self.actors[rank], method)
        return chosen.options(concurrency_group=CONTROL).remote(*arguments)

    def stop(self) -> None:
        """Kill all actors."""
        for rank in range(self.size):
            self._kill(rank)

    def _kill(self, rank: int) -> None:
        if self.actors[rank] is not None:
            ray.kill(self.actors[rank])
            self.actors[rank] = None
            if rank in self.hanging and rank in self._places:
                _end_process(self._places[rank])
        self.hanging.discard(rank)
        self._places.pop(rank, None)

    def _no_room(self, n_late: int) -> str:
        free = ray.available_resources().get("CPU", 0)
        return (
            f"{n_late} of {self.size} workers did not start within {self._timeout:g} seconds: each "
            f"needs {self._n_cpus:g} CPUs, and the cluster has {free:g} left. Pass a smaller "
            "n_workers or cpus_per_worker, or a larger timeout."
        )


def _end_process(place: ProcessLocation) -> None:
    """End the process of an actor from its node: Ray asks the process, which may be stopped."""
    strategy = NodeAffinitySchedulingStrategy(place.node, soft=False)
    ending = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=strategy)(_kill_process)
    with contextlib.suppress(RayError):  # the node is lost, too
        ray.get(ending.remote(place.pid), timeout=_KILL_LIMIT_S)


def _kill_process(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def n_available_actors(n_cpus: float) -> int:
    """Return the number of actors that the cluster has free CPUs for; at least 1."""
    total = ray.cluster_resources().get("CPU", 0)
    end = time.monotonic() + _SETTLE_LIMIT_S
    # Tasks and actors that have just ended give their CPUs back with a delay.
    while (free := ray.available_resources().get("CPU", 0)) < total and time.monotonic() < end:
        time.sleep(_SETTLE_POLL_S)
    return max(1, int(free // n_cpus))


def loss_cause(error: RayError) -> str:
    """Return the cause of a loss in words; Ray's own are pages of advice."""
    found = _CAUSE_PATTERN.search(str(error)) if isinstance(error, RayActorError) else None
    if found is not None:
        return found[1].strip().removesuffix(".")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}".removesuffix(".")
