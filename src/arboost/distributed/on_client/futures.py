"""Parts of tables as the caller has them -> futures of Dask whose values are there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from dask.delayed import Delayed
from distributed import Future, wait
from distributed.client import FuturesCancelledError

from arboost.distributed.on_client.crew import TableOfParts
from arboost.errors import WorkerError

__all__ = ["as_futures", "computed"]


def as_futures(client: Any, tables: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return tables whose delayed parts are being computed; paths stay as they are."""
    delayed = [part for parts in tables.values() for part in parts if isinstance(part, Delayed)]
    futures = iter(client.compute(delayed, sync=False) if delayed else ())
    return {
        name: [next(futures) if isinstance(part, Delayed) else part for part in parts]
        for name, parts in tables.items()
    }


async def computed(
    client: Any, tables: Mapping[str, Sequence[Any]], limit: float | None = None
) -> dict[str, TableOfParts]:
    """Return tables whose parts are there; for the IO loop.

    The first computation of the parts has no limit: it takes as long as the tasks of the caller.
    """
    futures = [part for parts in tables.values() for part in parts if isinstance(part, Future)]
    try:
        if futures:
            await wait(futures, timeout=limit)
    except TimeoutError:
        raise WorkerError(
            f"Lost parts of the data were not computed again within {limit:g} seconds."
        ) from None
    except FuturesCancelledError:
        raise WorkerError(
            "Parts of the data are lost, and Dask cannot compute them again. Pass delayed values "
            "or a collection of Dask instead of scattered data."
        ) from None
    for future in futures:
        if future.status == "error":
            raise await future.exception()
    sizes = {}
    if futures:
        keys = [future.key for future in futures]
        sizes = await client.scheduler.nbytes(keys=keys, summary=False)
    return {name: _table(parts, sizes) for name, parts in tables.items()}


def _table(parts: Sequence[Any], sizes: Mapping[Any, int]) -> TableOfParts:
    are_paths = bool(parts) and not isinstance(parts[0], Future)
    if are_paths:
        weights = [os.path.getsize(path) if os.path.exists(path) else 1 for path in parts]
    else:
        weights = [max(1, sizes[part.key]) for part in parts]
    return TableOfParts(tuple(parts), tuple(map(float, weights)), are_paths)
