"""A program as a barrier stage of Spark, with new attempts after losses."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name of all users of Spark

from arboost.distributed.dask_transport import loads
from arboost.distributed.protocol import Interrupted, Listener, result_of
from arboost.distributed.spark_worker import OUTCOMES, BarrierTask, pack_batches
from arboost.distributed.training import TRAIN
from arboost.distributed.worker import Program
from arboost.errors import InputTypeError, WorkerError

_ROW_COLUMN, _KEY_COLUMN = "__arboost_row", "__arboost_key"  # columns for the time of a shuffle
# Numbers per worker: one of 10,000 workers stays without a key once in 1e13 times.
_CANDIDATES_PER_WORKER = 40
_UNSUPPORTED_CHAIN = "BarrierJobUnsupportedRDDChainException"
# Losses in the words of Spark; all other failures would come again.
_LOSS_PATTERN = re.compile(
    r"WorkerError: (?P<cause>.+)|ExecutorLostFailure.*|Python worker exited.*|FetchFailed.*"
)


def run_stage(
    program: Program,
    tables: Mapping[str, DataFrame],
    _listener: Listener,
    *,
    n_workers: int | None,
    timeout: float,
    retries: int,
) -> Any:
    """Result of a program whose workers are the tasks of a stage.

    Parameters
    ----------
    program : Program
    tables : mapping of str to DataFrame
        The training table stays with the tasks; all others are brought to the driver, and sent to
        all executors.
    n_workers : int or None
    timeout : float
    retries : int

    Raises
    ------
    WorkerError
        More attempts than `retries` have failed because tasks were lost.
    """
    frame = tables[TRAIN]
    slots, n_partitions = n_slots(frame), frame.rdd.getNumPartitions()
    if n_workers is not None and n_workers > slots:
        raise ValueError(
            f"n_workers={n_workers} is more than the {slots} tasks that Spark runs at the same "
            "time, as the workers of a fit must. Pass a smaller number, or add executors."
        )
    if n_partitions == 0:
        raise ValueError("frame has no partitions, so there are no rows to train on.")
    size = min(n_partitions, n_workers or slots)
    others = {name: _collect_batches(table) for name, table in tables.items() if name != TRAIN}
    sent = frame.sparkSession.sparkContext.broadcast(others)
    task = BarrierTask(program, uuid.uuid4().hex, timeout, sent)
    try:
        if size == n_partitions:
            try:
                return _run_attempts(frame, task, retries)
            except Py4JJavaError as error:
                # Such as a union, whose tables have fewer partitions than itself.
                if _UNSUPPORTED_CHAIN not in str(error):
                    raise
        return _run_attempts(regroup(frame, n_partitions, size), task, retries)
    finally:
        sent.destroy()


def _run_attempts(frame: DataFrame, task: BarrierTask, retries: int) -> Any:
    # Attempts of one DataFrame share the files of its shuffles.
    stage = frame.mapInArrow(task.run, OUTCOMES, barrier=True)
    cause = ""
    for _ in range(retries + 1):
        try:
            outcomes = {row.rank: loads(bytes(row.outcome)) for row in stage.collect()}
        except (Py4JJavaError, PySparkException) as error:
            loss = _LOSS_PATTERN.search(str(error))
            if loss is None:
                raise
            cause = loss["cause"] or loss[0]
            continue
        done = result_of(outcomes, "Task {}".format)
        causes = [end.cause for end in outcomes.values() if isinstance(end, Interrupted)]
        if done is not None and not causes:
            return loads(done.result or b"")
        cause = causes[0] if causes else "Task 0 has no result."
    raise WorkerError(
        f"The fit has failed {retries + 1} times, because tasks were lost: {cause.rstrip('.')}. "
        "See the logs of the executors."
    )


# ---- rows ----


def check_frame(frame: object, name: str) -> None:
    """Raise TypeError unless the argument is a DataFrame of a session with a SparkContext."""
    is_remote = type(frame).__module__.startswith("pyspark.sql.connect")
    if is_remote or not isinstance(frame, DataFrame):
        kind = "DataFrame of Spark Connect" if is_remote else type(frame).__name__
        raise InputTypeError(
            f"{name} is a {kind}, but must be a DataFrame of a SparkSession with a SparkContext."
        )


def n_slots(frame: DataFrame) -> int:
    """Number of tasks that run at the same time."""
    context = frame.sparkSession.sparkContext
    cores = int(context.getConf().get("spark.task.cpus", "1"))
    return max(int(context.defaultParallelism) // cores, 1)


def regroup(frame: DataFrame, n_partitions: int, n_groups: int) -> DataFrame:
    """Rows in as many partitions as groups, each of consecutive partitions.

    This is a shuffle: a barrier stage must not start with `coalesce`, which also does not keep the
    order of partitions that are cached or have preferred hosts.

    Parameters
    ----------
    frame : DataFrame
    n_partitions : int
        Number of partitions of the frame.
    n_groups : int
        At most as many.
    """
    keys = F.array(*map(F.lit, _partition_keys(frame, n_groups))).cast("array<bigint>")
    group = F.expr(f"least(spark_partition_id() * {n_groups} div {n_partitions}, {n_groups - 1})")
    numbered = frame.select(
        "*",
        F.monotonically_increasing_id().alias(_ROW_COLUMN),
        F.element_at(keys, (group + 1).cast("int")).alias(_KEY_COLUMN),
    )
    return (
        numbered.repartition(n_groups, _KEY_COLUMN)
        .sortWithinPartitions(_ROW_COLUMN)
        .drop(_ROW_COLUMN, _KEY_COLUMN)
    )


def _partition_keys(frame: DataFrame, n_groups: int) -> list[int]:
    """Number for each group whose hash code leads to its partition."""
    numbers = frame.sparkSession.range(0, _CANDIDATES_PER_WORKER * n_groups, 1, 1)
    pairs = numbers.selectExpr(f"pmod(hash(id), {n_groups})", "id").collect()
    keys = {int(group): int(number) for group, number in pairs}
    return [keys[group] for group in range(n_groups)]


def _collect_batches(frame: DataFrame) -> list[bytes]:
    """All rows as Arrow streams, in their order."""
    rows: list[Any] = frame.mapInArrow(pack_batches, "batch binary").collect()
    return [bytes(row.batch) for row in rows]
