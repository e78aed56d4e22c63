"""Calls of the client to the posts of workers, through the scheduler.

A client need not reach workers itself: many clusters let it reach the scheduler only.
"""

from __future__ import annotations

import asyncio
from typing import Any

from arboost.distributed.on_worker.dask_session import open_post
from arboost.distributed.on_worker.dask_transport import cause_of
from arboost.distributed.records import CALL, dumps, loads
from arboost.errors import WorkerError

__all__ = ["Calls", "UnreachableError"]


class UnreachableError(Exception):
    """A worker did not answer; the message is the cause."""


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

    async def workers(self) -> dict[str, Any]:
        """Return the workers of the cluster by address, with their names."""
        try:
            identity = await self.client.scheduler.identity()
        except (OSError, RuntimeError) as error:
            raise self._no_scheduler(error) from None
        return {
            address: worker["name"]
            for address, worker in identity["workers"].items()
            if worker["status"] in ("running", "paused")
        }

    async def _broadcast(self, address: str, message: dict[str, Any], limit: float) -> Any:
        try:
            replies = await asyncio.wait_for(
                self.client.scheduler.broadcast(
                    msg=message, workers=[address], on_error="return_pickle"
                ),
                limit,
            )
        except TimeoutError:
            raise UnreachableError(f"it did not answer for {limit:g} seconds") from None
        except (OSError, RuntimeError) as error:
            raise self._no_scheduler(error) from None
        reply = replies[address]
        if not isinstance(reply, bytes):
            return reply
        failure = loads(reply)
        if isinstance(failure, ImportError):
            raise WorkerError(
                f"The worker at {address} cannot import arboost: {failure}. Install the same "
                "version of arboost[dask] on the client and on all workers."
            )
        raise UnreachableError(cause_of(failure))

    def _no_scheduler(self, error: Exception) -> WorkerError:
        scheduler = self.client.scheduler.addr
        return WorkerError(f"The scheduler at {scheduler} is gone: {cause_of(error)}.")
