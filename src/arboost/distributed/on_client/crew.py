"""Workers of an attempt, and their parts: the first choice, and the next after a loss."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arboost.distributed.on_client.assignment import balanced, near_data, without
from arboost.distributed.on_client.calls import Calls
from arboost.errors import WorkerError

__all__ = ["Crew", "Recruiter", "TableOfParts"]

_PAUSE = 0.2  # seconds between looks for new workers


@dataclass(frozen=True)
class TableOfParts:
    """A table in parts, in the order of its rows.

    Attributes
    ----------
    parts : tuple
        Futures of Dask, or paths.
    weights : tuple of float
        Bytes of each part, about.
    are_paths : bool
    """

    parts: tuple[Any, ...]
    weights: tuple[float, ...]
    are_paths: bool

    @property
    def keys(self) -> tuple[Any, ...]:
        """Keys of the futures, or the paths."""
        return self.parts if self.are_paths else tuple(part.key for part in self.parts)


@dataclass(frozen=True)
class Crew:
    """Workers of an attempt by rank, and the ranges of their parts of each table."""

    addresses: tuple[str, ...]
    ranges: Mapping[str, Sequence[range]]


class Recruiter:
    """Chooses workers.

    Parameters
    ----------
    calls : Calls
    tables : mapping of str to TableOfParts
        The first one decides on the number of workers.
    workers : sequence, or None for all
        Addresses or names of workers.
    patience : float
        Seconds to wait for another worker after a loss.
    """

    def __init__(
        self,
        calls: Calls,
        tables: Mapping[str, TableOfParts],
        workers: Sequence[Any] | None,
        patience: float,
    ) -> None:
        self._calls, self._tables, self._patience = calls, tables, patience
        self._allowed = None if workers is None else set(workers)
        self.banned: set[str] = set()  # addresses of workers that hang

    async def first(self) -> Crew:
        """Return the first crew: no more workers than parts, near the data."""
        free = await self._eligible()
        if not free:
            which = "no worker" if self._allowed is None else "none of the given workers"
            raise WorkerError(f"The cluster has {which}. Start workers, or check their addresses.")
        table = next(iter(self._tables.values()))
        n_ranks = max(1, min(len(free), len(table.parts)))
        ranges = {name: balanced(other.weights, n_ranks) for name, other in self._tables.items()}
        holders = await self._holders(table)
        first = next(iter(ranges.values()))
        return Crew(tuple(near_data(first, table.weights, holders, free)), ranges)

    async def next(self, crew: Crew, lost: Sequence[int]) -> Crew:
        """Return the crew after a loss.

        Spare and new workers take the parts of lost ones; what nobody takes goes to neighbours.
        Workers that join later are used after the next loss.
        """
        deadline = time.monotonic() + self._patience
        while True:
            spares = [one for one in await self._eligible() if one not in crew.addresses]
            if len(spares) >= len(lost) or time.monotonic() >= deadline:
                break
            await asyncio.sleep(_PAUSE)
        addresses = list(crew.addresses)
        for rank, spare in zip(lost, spares, strict=False):
            addresses[rank] = spare
        left = lost[len(spares) :]
        if len(left) == len(addresses):
            raise WorkerError("No worker is left.")
        weights = {name: table.weights for name, table in self._tables.items()}
        remaining = [address for rank, address in enumerate(addresses) if rank not in left]
        return Crew(tuple(remaining), without(left, crew.ranges, weights))

    async def _eligible(self) -> list[str]:
        """Return the workers that may be used, in the order in which they joined."""
        workers = await self._calls.workers()
        if self._allowed is not None:
            workers = {
                address: name
                for address, name in workers.items()
                if address in self._allowed or name in self._allowed
            }
            # A worker that is started again has a new address, but the same name.
            self._allowed |= set(workers.values())
        return [address for address in workers if address not in self.banned]

    async def _holders(self, table: TableOfParts) -> list[Sequence[str]]:
        if table.are_paths:
            return [()] * len(table.parts)
        who_has = await self._calls.client.scheduler.who_has(keys=table.keys)
        return [who_has[key] for key in table.keys]
