"""Training on files that need not fit in memory: rows are read in batches.

No rows are held out: early stopping holds out its own, and its score is the one that is shown. Rows
in the order of time are an exception: the last ones of the files are held out and scored.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import DataFailure, UsageFailure, reading_data
from arboost.cli.input.standard_input import STANDARD_INPUT
from arboost.cli.models import MODELS
from arboost.cli.outputs import ENSEMBLES, save_model
from arboost.cli.row_record import RowRecord, RowSample, row_hashes
from arboost.cli.tables import (
    input_label,
    open_rows,
    refuse_input,
    require_columns,
    resolve_names,
)
from arboost.cli.training.fit import FitPlan, as_failures, score_rows
from arboost.cli.training.keys import say_keys
from arboost.cli.training.rows import HOLDOUT, Split, divide, time_order
from arboost.cli.training.summary import Trained, show_training
from arboost.cli.training.task import Task, find_task
from arboost.data.stream.memory import limit_bytes
from arboost.sources.file_source import BY_NAME

if TYPE_CHECKING:
    from arboost.cli.training.run import TrainOptions

__all__ = ["fits_in_memory", "train_in_batches"]

_COPIES = 3.0  # of the table: rows to train on, rows to score, and codes
_TEXT_FACTOR = 1.5  # bytes in memory for a byte of text
_RATIO = 6.0  # of compressed text
_SHARE_OF_LIMIT = 4.0  # held-out rows take at most a fourth of the memory limit
_SMALL = 50e6  # bytes of files that need no estimate
_COUNTED = (".parquet", ".pq", ".parq")  # files that tell their number of rows


def train_in_batches(console: Console, options: TrainOptions, started: float) -> None:
    """Train on files within the memory limit, save the model and write the summary."""
    _check(options)
    label = input_label(options.data)
    stream, paths = open_rows(console, options.data, form=options.form)
    refuse_input(options.output, paths)
    names = stream.schema.names
    for option, name in (
        ("--target", options.target),
        ("--weight", options.weight),
        ("--groups", options.groups),
        *(("--offset", one) for one in options.offset),
        ("--time-column", options.time_column),
    ):
        if name is not None:
            require_columns([name], names, option)
    dropped = set(resolve_names(options.ignore, names, "--ignore"))
    if options.time_column is not None:
        dropped.add(options.time_column)
    task, split = _task(console, options, label)
    plan = FitPlan(
        model=options.model,
        task=task.name,
        params=options.values((task.name,)),
        target=options.target,
        weight=options.weight,
        groups=options.groups,
        offset=options.offset,
        dropped=frozenset(dropped),
        by_time=options.time_column is not None,
    )
    _say_keys(console, options, plan.features(names))
    estimator, seconds = _fit(console, plan, options, names, label, split)
    record, held_out = _record(console, options, plan, names, split)
    times = {"reading and fitting": seconds}
    evaluation = None
    if held_out is not None:
        evaluation, times["scoring"] = score_rows(console, plan, estimator, held_out)
    n_bytes = save_model(estimator, options.output, record)
    n_train = estimator.model_.provenance.get("rows", 0)
    show_training(
        console,
        Trained(
            options=options,
            plan=plan,
            task=task,
            estimator=estimator,
            evaluation=evaluation,
            record=record,
            split_text=_split_text(estimator) if split is None else split.text,
            n_rows=n_train if split is None else len(split.train) + len(split.test),
            n_train=n_train,
            n_bytes=n_bytes,
            seconds={**times, "total": time.monotonic() - started},
        ),
    )


def fits_in_memory(console: Console, options: TrainOptions) -> bool:
    """Whether a fit can hold the table; said aloud where it cannot.

    A table that needs to be in memory, for the model or the held-out rows, is read anyway.
    """
    from arboost.data.stream.memory import available_bytes

    if STANDARD_INPUT in options.data:
        return True
    needed, free = _COPIES * _table_bytes(options), available_bytes()
    if needed <= free:
        return True
    sizes = f"about {size_text(needed)}, more than the {size_text(free)} that are free"
    if options.model in ENSEMBLES or _options_of_tables(options):
        console.warn(f"the fit may need {sizes}; --memory-limit reads the table in batches")
        return True
    console.say(f"a fit in memory may need {sizes}: the table is read in batches")
    return False


def _table_bytes(options: TrainOptions) -> float:
    """Return the size of the table in memory, about."""
    from arboost.sources.file_source import open_files
    from arboost.sources.paths import compression_of, find_files

    with reading_data():
        paths = [file.path for file in find_files(list(options.data), options.form.kind)]
        size = float(sum(os.path.getsize(path) for path in paths))
        if size < _SMALL:
            return 0.0
        if paths[0].lower().endswith(_COUNTED):
            source = open_files(list(options.data), None, options.form)
            return float((source.n_rows or 0) * (source.row_bytes or 0))
    return size * _TEXT_FACTOR * (_RATIO if compression_of(paths[0]) is not None else 1.0)


def _check(options: TrainOptions) -> None:
    if options.model in ENSEMBLES:
        others = ", ".join(name for name in MODELS if name not in ENSEMBLES)
        raise UsageFailure(
            f"--memory-limit is not for {options.model}, which needs the table in memory. Use "
            f"another model ({others}), or leave it out."
        )
    needing = _options_of_tables(options)
    if needing:
        raise UsageFailure(
            f"{needing[0]} needs the table in memory: leave it or --memory-limit out, and score "
            "other files with arboost evaluate."
        )


def _options_of_tables(options: TrainOptions) -> list[str]:
    """Return the given options that need the table in memory."""
    given = {
        "--holdout": None if options.time_column is not None else options.holdout,
        "--folds": options.folds,
        "--refit": options.refit,
        "--drop-missing-target": options.drop_missing_target,
    }
    return [option for option, value in given.items() if value]


def _task(console: Console, options: TrainOptions, label: str) -> tuple[Task, Split | None]:
    """Return the task of the target, and the split by time; their columns alone are read."""
    import pyarrow

    times = options.time_column
    with console.phase(f"reading the target of {label}") as phase, reading_data():
        stream, _ = open_rows(
            console,
            options.data,
            form=options.form,
            columns=[options.target, *([] if times is None else [times])],
            progress=phase.update_bytes,
        )
        table = pyarrow.Table.from_batches(list(stream), stream.schema)
        task = find_task(table.column(options.target), options.target, *options.asked_task)
        phase.result = f"read the target of {label} in {seconds_text(phase.seconds)}"
    console.say(f"task: {task.name} ({task.reason})")
    if times is None:
        return task, None
    order = time_order(console, table.column(times), times)
    if order is not None:
        row = int(np.flatnonzero(np.diff(np.argsort(order)) < 0)[0]) + 2
        raise DataFailure(
            f"--time-column {times}: with --memory-limit the rows must be in the order of time, "
            f"but row {row:,} is earlier than the row before it. Sort the files by this column, or "
            "leave --memory-limit out."
        )
    share = HOLDOUT if options.holdout is None else options.holdout
    return task, divide(table.num_rows, share, options.seed, by_time=True) if share else None


def _fit(
    console: Console,
    plan: FitPlan,
    options: TrainOptions,
    names: list[str],
    label: str,
    split: Split | None,
) -> tuple[Any, float]:
    from arboost.progress import steps_reported

    with console.phase(f"loading {plan.model}"):
        estimator = plan.new_estimator()
    source: Any = list(options.data)
    if plan.dropped or options.form != BY_NAME:
        # A stream of the wanted columns is stored once; its columns still have their names.
        kept = [name for name in names if name not in plan.dropped]
        source, _ = open_rows(console, options.data, form=options.form, columns=kept)
        if split is not None:
            source = _first_rows(source, len(split.train))
    has_groups = plan.groups is not None and plan.splits_rows and plan.takes(estimator, "groups")
    arguments = plan.starts | ({"groups": plan.groups} if has_groups else {})
    if plan.groups is not None and not has_groups:
        raise UsageFailure("--groups is for early stopping here: leave it or --memory-limit out.")
    limit = options.memory_limit or "auto"
    within = "" if limit == "auto" else f" within {limit}"
    text = "no rows are held out" if split is None else split.text
    console.say(f"{label} is read in batches{within}; {text}")
    with (
        console.phase(f"reading {label}") as phase,
        as_failures({**plan.params, "memory_limit": 0}),
    ):
        with steps_reported(phase.step):
            estimator.fit(
                source,
                plan.target,
                plan.weight,
                memory_limit=limit,
                **arguments,
            )
        seconds = phase.seconds
        phase.result = f"read {label} and fitted {plan.model} in {seconds_text(seconds)}"
    return estimator, seconds


def _say_keys(console: Console, options: TrainOptions, features: list[str]) -> None:
    """Name the features that look like keys in the first batch."""
    import pyarrow

    stream, _ = open_rows(console, options.data, form=options.form, columns=features)
    with reading_data():
        first = next(iter(stream), None)
    if first is not None:
        say_keys(console, pyarrow.Table.from_batches([first]), features)


def _first_rows(stream: Any, n_rows: int) -> Any:
    """Return a stream of the first rows of another one."""
    import pyarrow

    def batches() -> Iterator[Any]:
        left = n_rows
        for batch in stream:
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if not left:
                return

    return pyarrow.RecordBatchReader.from_batches(stream.schema, batches())


def _record(
    console: Console,
    options: TrainOptions,
    plan: FitPlan,
    names: list[str],
    split: Split | None,
) -> tuple[RowRecord, Any]:
    """Return the record of the rows, which are read once more, and the held-out rows to score.

    Where the held-out rows would take more than a share of the memory limit, they are a sample.
    """
    import pyarrow

    columns = [*plan.features(names), plan.target]
    others = [*plan.offset, *([] if plan.weight is None else [plan.weight])]
    trained, held_out, start = RowSample(), RowSample(), 0
    step = 1
    parts: list[Any] = []
    with console.phase("noting the rows") as phase, reading_data():
        stream, _ = open_rows(
            console,
            options.data,
            form=options.form,
            columns=[*columns, *others],
            progress=phase.update_bytes,
        )
        for batch in stream:
            hashes = row_hashes(batch, columns)
            n_train = len(hashes) if split is None else max(len(split.train) - start, 0)
            start += len(hashes)
            trained.add(hashes[:n_train])
            if n_train < len(hashes):
                assert split is not None
                if not parts:
                    n_bytes = batch.nbytes / len(hashes) * len(split.test)
                    most = limit_bytes(options.memory_limit or "auto") / _SHARE_OF_LIMIT
                    step = math.ceil(n_bytes / most)
                held_out.add(hashes[n_train:])
                parts.append(_every(batch.slice(n_train), step))
    if split is None:
        return RowRecord.of(plan.target, trained), None
    table = pyarrow.Table.from_batches(parts)
    if step > 1:
        console.say(f"{table.num_rows:,} of {held_out.n_rows:,} held-out rows are scored")
    return RowRecord.of(plan.target, trained, held_out), table


def _every(batch: Any, step: int) -> Any:
    """Return every n-th row of a batch."""
    return batch if step == 1 else batch.take(np.arange(0, batch.num_rows, step))


def _split_text(estimator: Any) -> str:
    facts = estimator.model_.provenance
    if "best_score" in facts:
        return (
            f"{facts['metric']} {facts['best_score']:.5g} on rows that early stopping held out; "
            "arboost evaluate scores other files"
        )
    return "none scored; arboost evaluate scores other files"
