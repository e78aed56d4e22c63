"""A worker of a fit as a task of a barrier stage: batches of its partition -> outcome.

A program that fails has an outcome, too, so that Spark does not run it again. A task that has lost
another one raises WorkerError: then the stage fails, and the driver starts the next attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from arboost.distributed.on_spark.endpoint import Endpoint
from arboost.distributed.on_worker.dask_transport import DaskTransport
from arboost.distributed.program import Interrupted, Program
from arboost.distributed.records import Done, Failed, Outcome, Place, dumps
from arboost.distributed.training import TRAIN
from arboost.errors import WorkerError
from arboost.workers import Share, Workers, spread

__all__ = ["OUTCOMES", "BarrierTask", "packed_batches"]

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
        Seconds without a message after which another task counts as lost.
    others : pyspark.Broadcast
        Further tables by name, each as the lists of bytes that `packed_batches` returns. Each task
        takes its share of their rows.
    """

    program: Program
    fit: str
    timeout: float
    others: Any

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the program, and yield its outcome: one row, or none where another task has it."""
        from pyspark import BarrierTaskContext

        # Spark's batches come once, and a fit reads them more than once.
        rows = _Rows(list(batches))
        context: Any = BarrierTaskContext.get()
        rank = context.partitionId()
        host = context.getTaskInfos()[rank].address.rpartition(":")[0]
        with Endpoint(host) as endpoint:
            addresses = tuple(context.allGather(endpoint.address))
            place = Place(self.fit, context.stageId(), rank, addresses)
            transport = endpoint.connect(place, self.timeout)
            failed: str | None = "its task has ended"
            try:
                outcome = self._outcome(rows, transport, context.cpus())
                failed = _failure(outcome)
            except WorkerError as error:
                failed = str(error)
                raise
            finally:
                endpoint.close(transport, failed)
        if not isinstance(outcome, Done) or rank == 0:
            yield pa.RecordBatch.from_pydict(
                {"rank": pa.array([rank], pa.int32()), "outcome": [dumps(outcome)]}
            )

    def _outcome(self, rows: _Rows, transport: DaskTransport, n_threads: int) -> Outcome:
        workers = Workers(transport)
        tables = {TRAIN: Share(rows, workers)}
        for name, batches in self.others.value.items():
            tables[name] = Share(_share(batches, transport), workers)
        try:
            result = self.program(tables, TaskDesk(transport, n_threads))
            return Done(dumps(result) if transport.rank == 0 else None)
        except Exception as error:
            # Errors of any class are for the user, except losses, which another attempt may mend.
            if not transport.has_raised:
                return Failed.of(error, dumps)
            if transport.lost:
                raise WorkerError(str(error)) from None
            return Interrupted(str(error))


class TaskDesk:
    """`Desk` of a task, which has no channel to the driver.

    Parameters
    ----------
    transport : DaskTransport
    n_threads : int
        Cores of the task.
    """

    def __init__(self, transport: DaskTransport, n_threads: int) -> None:
        self.rank, self.n_threads = transport.rank, n_threads
        self.memory: int | None = None
        self.kept: dict[str, Any] = {}
        self.parts: Mapping[str, range] = {}
        self.resumed: object | None = None
        self._transport = transport

    def show(self, message: object) -> None:
        """Drop a message: Spark itself shows the progress of its stages."""

    def ask(self, message: object) -> Any:
        """Raise: nobody can answer."""
        raise RuntimeError(f"A task of Spark cannot ask the driver: {message!r}")

    def check(self) -> None:
        """Raise WorkerError if another task is lost."""
        self._transport.check()


class _Rows:
    """Batches as one table, which can be read again."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._tables = [pa.Table.from_batches(batches)] if batches else []

    def __iter__(self) -> Iterator[pa.Table]:
        return iter(self._tables)

    def part(self, rank: int, size: int) -> _Rows:
        """Return the rows of one of several workers."""
        if not self._tables:
            return self
        (table,) = self._tables
        part = spread(table.num_rows, size)[rank]
        return _Rows(table.slice(part.start, len(part)).to_batches())


def packed_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches as rows of one binary column "batch", for the driver."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"batch": [sink.getvalue().to_pybytes()]})


def _share(packed: Sequence[bytes], transport: DaskTransport) -> _Rows:
    batches = [batch for one in packed for batch in pa.ipc.open_stream(one)]
    return _Rows(batches).part(transport.rank, transport.size)


def _failure(outcome: Outcome) -> str | None:
    """Return the reason for the other tasks; None for a program that has returned."""
    if isinstance(outcome, Failed):
        return outcome.text
    return outcome.cause if isinstance(outcome, Interrupted) else None
