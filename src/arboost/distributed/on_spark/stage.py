"""A program as a barrier stage of Spark, with new attempts after losses."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from arboost.distributed.on_spark.rows import n_slots, regrouped
from arboost.distributed.on_spark.task import OUTCOMES, BarrierTask
from arboost.distributed.program import Interrupted, Program
from arboost.distributed.records import Done, Failed, Outcome, loads
from arboost.errors import WorkerError

__all__ = ["run_stage"]

_CHAIN = "BarrierJobUnsupportedRDDChainException"
# Losses in the words of Spark; all other failures would come again.
_LOSSES = re.compile(
    r"WorkerError: (?P<cause>.+)|ExecutorLostFailure.*|Python worker exited.*|FetchFailed.*"
)


def run_stage(
    frame: DataFrame,
    program: Program,
    others: Mapping[str, list[bytes]],
    *,
    n_workers: int | None,
    timeout: float,
    retries: int,
) -> Any:
    """Return the result of a program whose workers are the tasks of a stage.

    Parameters
    ----------
    frame : DataFrame
        Training rows.
    program : Program
    others : mapping of str to list of bytes
        Further tables, as `collected` returns them.
    n_workers : int or None
    timeout : float
    retries : int

    Raises
    ------
    WorkerError
        More attempts than `retries` have failed because tasks were lost.
    """
    slots, n_partitions = n_slots(frame), frame.rdd.getNumPartitions()
    if n_workers is not None and n_workers > slots:
        raise ValueError(
            f"n_workers={n_workers} is more than the {slots} tasks that Spark runs at the same "
            "time, as the workers of a fit must. Pass a smaller number, or add executors."
        )
    if n_partitions == 0:
        raise ValueError("frame has no partitions, so there are no rows to train on.")
    size = min(n_partitions, n_workers or slots)
    sent = frame.sparkSession.sparkContext.broadcast(dict(others))
    task = BarrierTask(program, uuid.uuid4().hex, timeout, sent)
    try:
        if size == n_partitions:
            try:
                return _attempts(frame, task, retries)
            except Py4JJavaError as error:
                # Such as a union, whose tables have fewer partitions than itself.
                if _CHAIN not in str(error):
                    raise
        return _attempts(regrouped(frame, n_partitions, size), task, retries)
    finally:
        sent.destroy()


def _attempts(frame: DataFrame, task: BarrierTask, retries: int) -> Any:
    # Attempts of one DataFrame share the files of its shuffles.
    stage = frame.mapInArrow(task.run, OUTCOMES, barrier=True)
    cause = ""
    for _ in range(retries + 1):
        try:
            outcomes = {row.rank: loads(bytes(row.outcome)) for row in stage.collect()}
        except (Py4JJavaError, PySparkException) as error:
            loss = _LOSSES.search(str(error))
            if loss is None:
                raise
            cause = loss["cause"] or loss[0]
            continue
        end = _end(outcomes)
        if isinstance(end, Done):
            return loads(end.result or b"")
        cause = end.cause
    raise WorkerError(
        f"The fit has failed {retries + 1} times, because tasks were lost: {cause.rstrip('.')}. "
        "See the logs of the executors."
    )


def _end(outcomes: Mapping[int, Outcome]) -> Done | Interrupted:
    """Return the end of an attempt; raise the error of the program, if one task has one."""
    for rank, outcome in sorted(outcomes.items()):
        if isinstance(outcome, Failed):
            outcome.raise_on_client(f"Task {rank}")
    interrupted = [one for one in outcomes.values() if isinstance(one, Interrupted)]
    done = outcomes.get(0)
    if interrupted or not isinstance(done, Done):
        return interrupted[0] if interrupted else Interrupted("Task 0 has no result.")
    return done
