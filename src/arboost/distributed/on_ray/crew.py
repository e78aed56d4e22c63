"""The actors of a fit: one for each rank, and new ones in the places of lost ones."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterable
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from arboost.distributed.on_ray.actor import CONTROL, Whereabouts, actor_class
from arboost.distributed.reports import Lost
from arboost.errors import WorkerError

__all__ = ["Crew", "cause_of", "n_that_fit"]

_SETTLED = 2.0  # seconds after which Ray knows all CPUs that tasks and actors have given back
_LOOK = 0.1
_END = 10.0  # seconds that the end of a process may take
_CAUSE = re.compile(r"The actor is dead because (.+?\.)(?: |$)", re.DOTALL)


class Crew:
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
        self._places: dict[int, Whereabouts] = {}
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
                place: Whereabouts = ray.get(reference, timeout=self._timeout)
                self._places[rank] = place
                self.names[rank] = f"Worker {rank} at {place.address}, process {place.pid}"
            except RayError as error:
                lost[rank] = Lost(cause_of(error))
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


def _end_process(place: Whereabouts) -> None:
    """End the process of an actor from its node: Ray asks the process, which may be stopped."""
    strategy = NodeAffinitySchedulingStrategy(place.node, soft=False)
    ending = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=strategy)(_kill_process)
    with contextlib.suppress(RayError):  # the node is lost, too
        ray.get(ending.remote(place.pid), timeout=_END)


def _kill_process(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def n_that_fit(n_cpus: float) -> int:
    """Return the number of actors that the cluster has free CPUs for; at least 1."""
    total = ray.cluster_resources().get("CPU", 0)
    end = time.monotonic() + _SETTLED
    # Tasks and actors that have just ended give their CPUs back with a delay.
    while (free := ray.available_resources().get("CPU", 0)) < total and time.monotonic() < end:
        time.sleep(_LOOK)
    return max(1, int(free // n_cpus))


def cause_of(error: RayError) -> str:
    """Return the cause of a loss in words; Ray's own are pages of advice."""
    found = _CAUSE.search(str(error)) if isinstance(error, RayActorError) else None
    if found is not None:
        return found[1].strip().removesuffix(".")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}".removesuffix(".")
