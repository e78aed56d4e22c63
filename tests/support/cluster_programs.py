"""Programs for clusters, in a module that workers can import."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np


def values(tables, name="train"):
    """Return the values of this worker's rows, in their order."""
    arrays = [np.asarray(table).ravel() for table in tables[name].X]
    return np.concatenate(arrays) if arrays else np.empty(0)


@dataclass(frozen=True)
class Rounds:
    """Adds up all values, weighted by the number of the round.

    Rank 0 asks the driver after some rounds, and waits for the answer before the next one: what the
    driver does meanwhile happens in the middle of the program, however slow the machine is.
    """

    n_rounds: int = 12
    asks_after: tuple[int, ...] = (3,)

    def __call__(self, tables, context):
        workers = tables["train"].workers
        local_sum = values(tables).sum()
        start, total = context.resumed_state or (0, 0.0)
        pids = workers.gather(os.getpid())
        progress = [start, total]
        context.newest_state = lambda: (progress[0], tuple(progress))
        for number in range(start, self.n_rounds):
            total += number * sum(workers.gather(local_sum))
            progress[:] = number + 1, total
            if context.rank == 0 and number in self.asks_after:
                context.ask({"round": number, "pids": pids})
        return {
            "total": total,
            "start": start,
            "pids": pids,
            "parts": workers.gather(context.parts["train"]),
        }

    def expected(self, n_parts):
        return sum(range(self.n_rounds)) * sum(range(10 * n_parts))


def rows_in_order(tables, context):
    """Return the values of each table, gathered by rank, and the parts of each rank."""
    workers = tables["train"].workers
    return {
        name: (workers.concatenated(values(tables, name)), workers.gather(context.parts[name]))
        for name in tables
    }


def items(tables, context):
    """Return all parts of all tables, by rank, as they are; paths as lists."""
    workers = tables["train"].workers
    return {
        name: list(chain.from_iterable(workers.gather(list(share.X))))
        for name, share in tables.items()
    }


def all_messages(tables, context):
    """Send messages of many sizes to all workers in bursts; return whether all are right."""
    transport = tables["train"].workers._transport
    sizes = [0, 1, 100, 16383, 16384, 70_000, 3_000_000, 5, 0, 200_000]
    others = [rank for rank in range(transport.size) if rank != transport.rank]
    for rank in others:
        for number, size in enumerate(sizes):
            transport.send(rank, message(transport.rank, rank, number, size))
    right = [
        transport.receive(rank) == message(rank, transport.rank, number, size)
        for rank in others
        for number, size in enumerate(sizes)
    ]
    assert transport.n_messages == len(sizes) * len(others)
    assert transport.n_bytes == sum(sizes) * len(others)
    assert transport.seconds > 0
    return all(all(one) for one in tables["train"].workers.gather(right))


def message(source, target, number, size):
    return np.random.default_rng([source, target, number]).bytes(size)


def sleeps_and_checks(tables, context):
    """Run until cancelled."""
    context.show({"round": 0})
    while True:
        time.sleep(0.05)
        context.check()


def waits(tables, context):
    """Rank 0 computes, all others wait for it."""
    workers = tables["train"].workers
    if context.rank == 0:
        return sleeps_and_checks(tables, context)
    return workers.broadcast(None)


@dataclass(frozen=True)
class ShowsUntilSeen:
    """Rank 0 shows messages, each of them after the driver has made a file for the last one."""

    folder: str
    n_messages: int = 3

    def __call__(self, tables, context):
        for number in range(self.n_messages) if context.rank == 0 else ():
            context.show({"round": number})
            while not Path(self.folder, str(number)).exists():
                context.check()
                time.sleep(0.01)


@dataclass(frozen=True)
class FailsOn:
    """Raises the error on some ranks; the others wait for them, or return at once."""

    ranks: tuple[int, ...]
    error: Exception
    n_meetings: int = 10

    def __call__(self, tables, context):
        workers = tables["train"].workers
        if context.rank in self.ranks:
            raise self.error
        for _ in range(self.n_meetings):
            workers.gather(context.rank)


@dataclass(frozen=True)
class DiesWith:
    """The worker that holds a part ends its process, as one without memory does.

    Rank 0 asks the driver first.
    """

    part: int

    def __call__(self, tables, context):
        workers = tables["train"].workers
        if context.rank == 0:
            context.ask("now")
        workers.gather(None)
        if self.part in context.parts["train"]:
            os._exit(1)
        workers.gather(None)


def asks(tables, context):
    if context.rank:
        return None
    for number in range(50):
        context.show({"round": number})
    first = context.ask("one")
    context.show({"round": 99})
    return first, context.ask({"two": 2})


class PickyError(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fails_with_picky(tables, context):
    raise PickyError("one", "two")
