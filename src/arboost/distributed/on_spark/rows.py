"""Partitions of a Spark DataFrame: the same rows in the same order, in one partition per worker."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name of all users of Spark

from arboost.distributed.on_spark.task import packed_batches

__all__ = ["check_frame", "collected", "n_slots", "regrouped"]

_ROW, _KEY = "__arboost_row", "__arboost_key"  # columns for the time of a shuffle
_CANDIDATES = 40  # numbers per worker: one of 10,000 workers stays without a key once in 1e13 times


def check_frame(frame: object, name: str) -> None:
    """Raise TypeError unless the argument is a DataFrame of a session with a SparkContext."""
    is_remote = type(frame).__module__.startswith("pyspark.sql.connect")
    if is_remote or not isinstance(frame, DataFrame):
        kind = "DataFrame of Spark Connect" if is_remote else type(frame).__name__
        raise TypeError(
            f"{name} is a {kind}, but must be a DataFrame of a SparkSession with a SparkContext."
        )


def n_slots(frame: DataFrame) -> int:
    """Return the number of tasks that run at the same time."""
    context = frame.sparkSession.sparkContext
    cores = int(context.getConf().get("spark.task.cpus", "1"))
    return max(int(context.defaultParallelism) // cores, 1)


def regrouped(frame: DataFrame, n_partitions: int, n_groups: int) -> DataFrame:
    """Return the rows in as many partitions as groups, each of consecutive partitions.

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
    keys = F.array(*map(F.lit, _keys(frame, n_groups))).cast("array<bigint>")
    group = F.expr(f"least(spark_partition_id() * {n_groups} div {n_partitions}, {n_groups - 1})")
    numbered = frame.select(
        "*",
        F.monotonically_increasing_id().alias(_ROW),
        F.element_at(keys, (group + 1).cast("int")).alias(_KEY),
    )
    return numbered.repartition(n_groups, _KEY).sortWithinPartitions(_ROW).drop(_ROW, _KEY)


def _keys(frame: DataFrame, n_groups: int) -> list[int]:
    """Return a number for each group whose hash code leads to its partition."""
    numbers = frame.sparkSession.range(0, _CANDIDATES * n_groups, 1, 1)
    found = numbers.selectExpr(f"pmod(hash(id), {n_groups})", "id").collect()
    keys = {int(group): int(number) for group, number in found}
    return [keys[group] for group in range(n_groups)]


def collected(frame: DataFrame) -> list[bytes]:
    """Return all rows as Arrow streams, in their order."""
    rows: list[Any] = frame.mapInArrow(packed_batches, "batch binary").collect()
    return [bytes(row.batch) for row in rows]
