"""Calls of the client to the posts of workers, through the scheduler.

A client need not reach workers itself: many clusters let it reach the scheduler only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import Any

from arboost.distributed.on_worker.dask_session import open_post
from arboost.distributed.on_worker.dask_transport import cause_of
from arboost.distributed.records import CALL, dumps, loads
from arboost.errors import WorkerError

__all__ = ["Calls", "SilentError", "UnreachableError"]

_LOOK = 1.0  # seconds after which a worker that has not answered is looked for
_RESTART = 20.0  # seconds that the end of a suspended process may take
_SCHEDULER = 60.0  # seconds that the scheduler may take for an answer


class UnreachableError(Exception):
    """A worker did not answer; the message is the cause."""


class SilentError(UnreachableError):
    """A worker that is still in the cluster did not answer in time."""


class Calls:
    """Calls to workers; all methods are for the IO loop of the client.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    async def call(self, address: str, name: str, *arguments: object, limit: float) -> Any:
        """Return the answer of a worker's post.

        Raises
        ------
        UnreachableError
            The worker is lost, or does not answer within `limit` seconds.
        WorkerError
            The scheduler is gone.
        """
        message = {"op": CALL, "name": name, "arguments": dumps(arguments)}
        reply = await self._broadcast(address, message, limit)
        if not isinstance(reply, dict) or "answer" not in reply:
            raise UnreachableError("it was restarted")
        answer = loads(reply["answer"])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def open(self, address: str, limit: float) -> None:
        """Make a worker ready for calls."""
        message = {"op": "run", "function": dumps(open_post), "args": b"", "kwargs": b""}
        await self._broadcast(address, message, limit)

    async def restart(self, addresses: Sequence[str]) -> None:
        """Have Dask end the processes of workers that do not answer, and start new ones.

        Until it has found out by itself, after five minutes, nobody else computes their parts.
        """
        if addresses:
            await self._asked(
                self.client.scheduler.restart_workers(
                    workers=list(addresses),
                    timeout=_RESTART,
                    wait_for_workers=False,
                    on_error="return",
                    stimulus_id=f"arboost-restart-{time.time()}",
                )
            )

    async def workers(self) -> dict[str, Any]:
        """Return the workers of the cluster by address, with their names."""
        identity = await self._asked(self.client.scheduler.identity())
        return {
            address: worker["name"]
            for address, worker in identity["workers"].items()
            if worker["status"] in ("running", "paused")
        }

    async def _broadcast(self, address: str, message: dict[str, Any], limit: float) -> Any:
        scheduler = self.client.scheduler
        await self._find(address)
        calling = asyncio.ensure_future(
            scheduler.broadcast(msg=message, workers=[address], on_error="return_pickle")
        )
        deadline = time.monotonic() + limit
        try:
            while not (await asyncio.wait([calling], timeout=min(limit, _LOOK)))[0]:
                await self._find(address)
                if time.monotonic() > deadline:
                    raise SilentError(f"it did not answer for {limit:g} seconds")
            reply = (await self._asked(calling))[address]
        finally:
            calling.cancel()
        if not isinstance(reply, bytes):
            return reply
        failure = loads(reply)
        if isinstance(failure, ImportError):
            raise WorkerError(
                f"The worker at {address} cannot import arboost: {failure}. Install the same "
                "version of arboost[dask] on the client and on all workers."
            )
        raise UnreachableError(cause_of(failure))

    async def _find(self, address: str) -> None:
        """Raise UnreachableError if a worker has left.

        The scheduler would try for half a minute to connect to it.
        """
        if not await self._asked(self.client.scheduler.ncores(workers=[address])):
            raise UnreachableError("it has left the cluster")

    async def _asked(self, question: Awaitable[Any]) -> Any:
        """Return an answer of the scheduler; raise WorkerError if it is gone."""
        try:
            # asyncio.wait_for of Python 3.11 loses a cancellation that comes with the answer: the
            # fit would go on without its client.
            async with asyncio.timeout(_SCHEDULER):
                return await question
        except (OSError, RuntimeError) as error:
            raise WorkerError(
                f"The scheduler at {self.client.scheduler.addr} is gone: {cause_of(error)}."
            ) from None
