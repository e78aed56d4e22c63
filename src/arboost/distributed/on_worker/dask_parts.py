"""Parts of a table on a worker: data of Dask -> restartable iterable."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from dask.sizeof import sizeof
from distributed.utils_comm import gather_from_workers

from arboost.errors import WorkerError

__all__ = ["WorkerParts"]

_AGAIN = 0.1  # seconds after which Dask is asked again for a part that it computes
_SLICE = 0.5
_AHEAD = 1  # parts that are brought before they are asked for
_KEPT_SHARE = 0.2  # of the worker's memory, for parts of other workers
_USUAL_MEMORY = 4 << 30  # of a worker without a limit
_DENSE_CELLS = 1 << 22  # of a slice of a sparse matrix


class WorkerParts:
    """Tables that Dask holds, in their order; each pass asks for them again.

    Parts on this worker are not copied. Others are brought from the workers that hold them, the
    next one while the program works on the last; they are kept for the next pass as long as they
    fit, and until `forget`. Dask computes lost parts again. Sparse matrices come as dense slices.

    Parameters
    ----------
    worker : distributed.Worker
    keys : tuple
        Keys of the parts.
    timeout : float
        Seconds that Dask may take for a part.
    check : callable
        Raises if the fit is over.
    """

    def __init__(
        self, worker: Any, keys: tuple[Any, ...], timeout: float, check: Callable[[], None]
    ) -> None:
        self._worker, self._keys, self._timeout, self._check = worker, keys, timeout, check
        self._kept: dict[Any, Any] = {}
        self._room = _KEPT_SHARE * (worker.memory_manager.memory_limit or _USUAL_MEMORY)

    def __iter__(self) -> Iterator[Any]:
        loop = self._worker.loop.asyncio_loop
        upcoming: deque[concurrent.futures.Future[Any]] = deque()
        try:
            for key in self._keys:
                upcoming.append(asyncio.run_coroutine_threadsafe(self._fetch(key), loop))
                if len(upcoming) > _AHEAD:
                    yield from _dense_slices(self._wait(upcoming.popleft()))
            while upcoming:
                yield from _dense_slices(self._wait(upcoming.popleft()))
        finally:
            for fetched in upcoming:
                fetched.cancel()

    def forget(self) -> None:
        """Drop the parts that were kept."""
        self._kept.clear()
        self._room = 0

    def _wait(self, fetched: concurrent.futures.Future[Any]) -> Any:
        """Return a part; for the program's thread."""
        try:
            while True:
                try:
                    return fetched.result(timeout=_SLICE)
                except concurrent.futures.TimeoutError:
                    self._check()
        finally:
            fetched.cancel()

    async def _fetch(self, key: Any) -> Any:
        worker = self._worker
        deadline = time.monotonic() + self._timeout
        while time.monotonic() < deadline:
            if key in worker.data:
                return worker.data[key]
            if key in self._kept:
                return self._kept[key]
            others = await self._holders(key)
            data = await self._brought(key, others, deadline) if others else {}
            if key in data:
                self._keep(key, data[key])
                return data[key]
            await asyncio.sleep(_AGAIN)
        raise WorkerError(
            f"The part {key!r} of the data was neither on a worker nor computed again within "
            f"{self._timeout:g} seconds. Check the tasks of Dask, or pass a larger timeout."
        )

    def _keep(self, key: Any, part: Any) -> None:
        """Keep a part of another worker, where there is room."""
        size = sizeof(part)
        if size <= self._room:
            self._room -= size
            self._kept[key] = part

    async def _holders(self, key: Any) -> set[str]:
        """Return the other workers that hold a part."""
        who_has = await self._worker.scheduler.who_has(keys=[key])
        return set(who_has[key]) - {self._worker.address}

    async def _brought(self, key: Any, others: set[str], deadline: float) -> dict[Any, Any]:
        """Return a part from another worker, by its key; nothing if all of these workers left."""
        bringing = asyncio.ensure_future(
            gather_from_workers({key: others}, rpc=self._worker.rpc, who=self._worker.address)
        )
        try:
            while not (await asyncio.wait([bringing], timeout=_SLICE))[0]:
                # A worker that hangs keeps its connection until Dask gives it up.
                if time.monotonic() > deadline or not others & await self._holders(key):
                    return {}
            found: dict[Any, Any] = bringing.result()[0]
            return found
        finally:
            bringing.cancel()


def _dense_slices(part: Any) -> Iterator[Any]:
    """Yield a part; of one with a sparse matrix, dense tables of some of its rows at a time."""
    X, *others = part if isinstance(part, tuple) else (part,)
    if not hasattr(X, "toarray"):
        yield part
        return
    rows, n_rows = X.tocsr(), X.shape[0]
    step = max(1, _DENSE_CELLS // max(1, X.shape[1]))
    for first in range(0, n_rows, step):
        dense = rows[first : first + step].toarray()
        some = (dense, *(other[first : first + step] for other in others))
        yield some if isinstance(part, tuple) else dense
