"""Connections of one task of a barrier stage with the others, over the comm library of Dask.

Spark's own calls between tasks take about a second each, so they carry the addresses only:

    task 0: listen ──address──▶ allGather ──all addresses──▶ DaskTransport: one connection to each
    task 1: listen ──address──▶ allGather ──all addresses──▶ ...                       other task
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

import dask
from distributed.comm import listen
from distributed.core import CommClosedError, Status
from distributed.security import Security
from distributed.utils import LoopRunner

from arboost.distributed.on_worker.dask_transport import DaskTransport
from arboost.distributed.records import Place

__all__ = ["Endpoint"]


class Endpoint:
    """Listener of one task, with an IO loop in a thread of its own; a context manager.

    TLS and protocol are those of the configuration of Dask in this process.

    Parameters
    ----------
    host : str
        Host of this task as the other tasks reach it.

    Attributes
    ----------
    address : str
        Address that the other tasks connect to.
    loop : tornado.ioloop.IOLoop
    status : distributed.Status
    connection_args : dict
        Options of connections.
    """

    def __init__(self, host: str) -> None:
        security = Security()
        self.status = Status.running
        self.connection_args: dict[str, Any] = security.get_connection_args("worker")
        self._listen_args: dict[str, Any] = security.get_listen_args("worker")
        self._host = host
        self._runner = LoopRunner()
        self._connected: asyncio.Future[tuple[Place, DaskTransport]]

    def __enter__(self) -> Self:
        self._runner.start()
        self.loop = self._runner.loop
        self._runner.run_sync(self._listen)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.status = Status.closed
        self._runner.run_sync(self._stop)
        self._runner.stop()

    def connect(self, place: Place, timeout: float) -> DaskTransport:
        """Return the transport, which connects to all other tasks in the background."""
        transport: DaskTransport = self._runner.run_sync(self._connect, place, timeout)
        return transport

    def close(self, transport: DaskTransport, failed: str | None) -> None:
        """Tell the other tasks that this one has ended, or why it failed."""
        self._runner.run_sync(transport.close, failed)

    async def _listen(self) -> None:
        self._connected = asyncio.get_running_loop().create_future()
        scheme = dask.config.get("distributed.comm.default-scheme")
        self._listener = await listen(f"{scheme}://:0", self._accept, **self._listen_args)
        port = self._listener.listen_address.rpartition(":")[2]
        self.address = f"{scheme}://{self._host}:{port}"

    async def _connect(self, place: Place, timeout: float) -> DaskTransport:
        transport = DaskTransport(self, place, timeout)
        transport.start()
        self._connected.set_result((place, transport))
        return transport

    async def _accept(self, comm: Any) -> None:
        """Read the messages of another task; its connection may come before `connect`."""
        try:
            hello = await comm.read()
            place, transport = await asyncio.shield(self._connected)
        except CommClosedError:
            return
        if (hello["fit"], hello["attempt"]) == (place.fit, place.attempt):
            await transport.read(hello["rank"], comm)
        else:
            comm.abort()

    async def _stop(self) -> None:
        self._connected.cancel()
        self._listener.stop()
