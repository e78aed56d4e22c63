"""A worker of a fit as a task of a barrier stage of Spark: batches of its partition -> outcome.

A program that fails has an outcome, too, so that Spark does not run it again. A task that has lost
another one raises WorkerError: then the stage fails, and the driver starts the next attempt.
Spark's own calls between tasks take about a second each, so they carry the addresses only:

    task 0: listen ──address──▶ allGather ──all addresses──▶ DaskTransport: one connection to each
    task 1: listen ──address──▶ allGather ──all addresses──▶ ...                       other task
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import dask
import pyarrow as pa
from distributed.comm import listen
from distributed.core import CommClosedError, Status
from distributed.security import Security
from distributed.utils import LoopRunner

from arboost.distributed.dask_transport import DaskTransport, Membership, dumps
from arboost.distributed.protocol import Done, Failed, Interrupted, Outcome, failure_text
from arboost.distributed.training import TRAIN
from arboost.distributed.worker import Program, WorkerContext
from arboost.errors import WorkerError
from arboost.workers import Share, Workers, even_ranges

OUTCOMES = "rank int, outcome binary"  # schema of the results of a stage


@dataclass(frozen=True)
class BarrierTask:
    """The function of all tasks of a stage.

    Attributes
    ----------
    program : Program
    fit : str
        Id of the fit.
    timeout : float
        Seconds of silence after which another task counts as lost.
    others : pyspark.Broadcast
        Further tables by name, each as the lists of bytes that `pack_batches` returns. Each task
        takes some of their rows.
    """

    program: Program
    fit: str
    timeout: float
    others: Any

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the program, and yield its outcome: one row, or none where another task has it."""
        from pyspark import BarrierTaskContext

        # Spark's batches come once, and a fit reads them more than once.
        rows = _BatchTable(list(batches))
        context: Any = BarrierTaskContext.get()
        rank = context.partitionId()
        host = context.getTaskInfos()[rank].address.rpartition(":")[0]
        with TaskEndpoint(host) as endpoint:
            addresses = tuple(context.allGather(endpoint.address))
            member = Membership(self.fit, context.stageId(), rank, addresses)
            transport = endpoint.connect(member, self.timeout)
            failure: str | None = "its task has ended"
            try:
                outcome = self._outcome(rows, transport, context.cpus())
                failure = failure_text(outcome)
            except WorkerError as error:
                failure = str(error)
                raise
            finally:
                endpoint.close(transport, failure)
        if not isinstance(outcome, Done) or rank == 0:
            yield pa.RecordBatch.from_pydict(
                {"rank": pa.array([rank], pa.int32()), "outcome": [dumps(outcome)]}
            )

    def _outcome(self, rows: _BatchTable, transport: DaskTransport, n_threads: int) -> Outcome:
        workers = Workers(transport)
        tables = {TRAIN: Share(rows, workers)}
        for name, batches in self.others.value.items():
            tables[name] = Share(_task_rows(batches, transport), workers)
        try:
            result = self.program(tables, WorkerContext(transport, n_threads))
            return Done(dumps(result) if transport.rank == 0 else None)
        except Exception as error:
            # Errors of any class are for the user, except losses, which another attempt may mend.
            if not transport.has_raised:
                return Failed.of(error, dumps)
            if transport.lost:
                raise WorkerError(str(error)) from None
            return Interrupted(str(error))


class _BatchTable:
    """Batches as one table, which can be read again."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._tables = [pa.Table.from_batches(batches)] if batches else []

    def __iter__(self) -> Iterator[pa.Table]:
        return iter(self._tables)


def pack_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches as rows of one binary column "batch", for the driver."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"batch": [sink.getvalue().to_pybytes()]})


def _task_rows(packed: Sequence[bytes], transport: DaskTransport) -> _BatchTable:
    """Rows of one task, of a table that all tasks have."""
    batches = [batch for stream in packed for batch in pa.ipc.open_stream(stream)]
    if not batches:
        return _BatchTable(batches)
    table = pa.Table.from_batches(batches)
    rows = even_ranges(table.num_rows, transport.size)[transport.rank]
    return _BatchTable(table.slice(rows.start, len(rows)).to_batches())


class TaskEndpoint:
    """Listener of one task, with an IO loop in a thread; a context manager.

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
        self._connected: asyncio.Future[tuple[Membership, DaskTransport]]

    def __enter__(self) -> Self:
        self._runner.start()
        self.loop = self._runner.loop
        self._runner.run_sync(self._listen)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.status = Status.closed
        self._runner.run_sync(self._stop)
        self._runner.stop()

    def connect(self, member: Membership, timeout: float) -> DaskTransport:
        """Transport, which connects to all other tasks in the background."""
        transport: DaskTransport = self._runner.run_sync(self._connect, member, timeout)
        return transport

    def close(self, transport: DaskTransport, failure: str | None) -> None:
        """Tell the other tasks that this one has ended, or why it failed."""
        self._runner.run_sync(transport.close, failure)

    async def _listen(self) -> None:
        self._connected = asyncio.get_running_loop().create_future()
        scheme = dask.config.get("distributed.comm.default-scheme")
        self._listener = await listen(f"{scheme}://:0", self._accept, **self._listen_args)
        port = self._listener.listen_address.rpartition(":")[2]
        self.address = f"{scheme}://{self._host}:{port}"

    async def _connect(self, member: Membership, timeout: float) -> DaskTransport:
        transport = DaskTransport(self, member, timeout)
        transport.start()
        self._connected.set_result((member, transport))
        return transport

    async def _accept(self, comm: Any) -> None:
        """Read the messages of another task; its connection may come before `connect`."""
        try:
            hello = await comm.read()
            member, transport = await asyncio.shield(self._connected)
        except CommClosedError:
            return
        if (hello["fit"], hello["attempt"]) == (member.fit, member.attempt):
            await transport.read(hello["rank"], comm)
        else:
            comm.abort()

    async def _stop(self) -> None:
        self._connected.cancel()
        self._listener.stop()
