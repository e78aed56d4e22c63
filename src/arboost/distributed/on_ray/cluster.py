"""A program on a cluster of Ray: attempt after attempt, until one ends with a result.

An attempt ends when an actor is lost. All others keep the values of `Desk.kept`, a new actor takes
the place and the parts of the lost one, and the newest state is the start of the next attempt.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arboost.distributed.loss_count import LossCount, newest_state
from arboost.distributed.on_client.assignment import balanced
from arboost.distributed.on_ray.crew import Crew
from arboost.distributed.on_ray.driver_attempt import DriverAttempt
from arboost.distributed.on_ray.orders import TableBlocks, dumps
from arboost.distributed.program import Listener, Program
from arboost.distributed.reports import Done, Failed, Lost, Outcome
from arboost.errors import WorkerError

__all__ = ["Room", "run_program"]


@dataclass(frozen=True)
class Room:
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
    program: Program, tables: Mapping[str, TableBlocks], listener: Listener, room: Room
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
    ranges = {name: balanced(table.sizes, size) for name, table in tables.items()}
    shares = [
        {name: table.slice(ranges[name][rank]) for name, table in tables.items()}
        for rank in range(size)
    ]
    crew = Crew(size, room.cpus_per_worker, room.timeout)
    losses = LossCount(room.retries)
    packed, number = dumps(program), 0
    missing = list(range(size))
    try:
        while True:
            outcomes = _started(crew, missing, losses)
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


def _started(crew: Crew, missing: list[int], losses: LossCount) -> dict[int, Outcome | Lost]:
    """Start actors; return those that have died at once."""
    try:
        return {**crew.start(missing)}
    except WorkerError as error:
        raise losses.error(str(error)) from None
