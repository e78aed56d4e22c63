"""Programs for clusters, in a module that workers can import."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import chain

import numpy as np


def values(tables, name="train"):
    """Return the values of this worker's rows, in their order."""
    found = [np.asarray(table).ravel() for table in tables[name].X]
    return np.concatenate(found) if found else np.empty(0)


@dataclass(frozen=True)
class Rounds:
    """Adds up all values, weighted by the number of the round; shows each round."""

    n_rounds: int = 12
    pause: float = 0.05

    def __call__(self, tables, desk):
        workers = tables["train"].workers
        own = values(tables).sum()
        start, total = desk.resumed or (0, 0.0)
        pids = workers.gather(os.getpid())
        desk.kept["n_attempts"] = desk.kept.get("n_attempts", 0) + 1
        done = [start, total]
        desk.kept["state"] = lambda: (done[0], tuple(done))
        for number in range(start, self.n_rounds):
            total += number * sum(workers.gather(own))
            done[:] = number + 1, total
            if desk.rank == 0:
                desk.show({"round": number, "pids": pids})
            time.sleep(self.pause)
        return {
            "total": total,
            "start": start,
            "size": workers.size,
            "attempts": workers.gather(desk.kept["n_attempts"]),
            "parts": workers.gather(desk.parts["train"]),
        }

    def expected(self, n_parts):
        return sum(range(self.n_rounds)) * sum(range(10 * n_parts))


def rows_in_order(tables, desk):
    """Return the values of each table, gathered by rank, and the parts of each rank."""
    workers = tables["train"].workers
    return {
        name: (workers.concatenated(values(tables, name)), workers.gather(desk.parts[name]))
        for name in tables
    }


def items(tables, desk):
    """Return all parts of all tables, by rank, as they are; paths as lists."""
    workers = tables["train"].workers
    return {
        name: list(chain.from_iterable(workers.gather(list(share.X))))
        for name, share in tables.items()
    }


def all_messages(tables, desk):
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


def sleeps_and_checks(tables, desk):
    """Run until cancelled."""
    desk.show({"round": 0})
    while True:
        time.sleep(0.05)
        desk.check()


def waits(tables, desk):
    """Rank 0 computes, all others wait for it."""
    workers = tables["train"].workers
    if desk.rank == 0:
        return sleeps_and_checks(tables, desk)
    return workers.broadcast(None)


@dataclass(frozen=True)
class FailsOn:
    """Raises the error on some ranks; the others wait for them, or return at once."""

    ranks: tuple[int, ...]
    error: Exception
    n_meetings: int = 10

    def __call__(self, tables, desk):
        workers = tables["train"].workers
        if desk.rank in self.ranks:
            raise self.error
        for _ in range(self.n_meetings):
            workers.gather(desk.rank)


@dataclass(frozen=True)
class DiesWith:
    """The worker that holds a part ends its process, as one without memory does."""

    part: int

    def __call__(self, tables, desk):
        workers = tables["train"].workers
        workers.gather(None)
        if self.part in desk.parts["train"]:
            os._exit(1)
        workers.gather(None)


def asks(tables, desk):
    if desk.rank:
        return None
    for number in range(50):
        desk.show({"round": number})
    first = desk.ask("one")
    desk.show({"round": 99})
    return first, desk.ask({"two": 2})


class PickyError(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fails_with_picky(tables, desk):
    raise PickyError("one", "two")
