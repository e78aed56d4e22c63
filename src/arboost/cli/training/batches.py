"""Training on files that need not fit in memory: rows are read in batches, none are held out.

Early stopping holds out rows itself; its score is the one that is shown.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import UsageFailure, reading_data
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
from arboost.cli.training.fit import FitPlan, as_failures
from arboost.cli.training.summary import Trained, show_training
from arboost.cli.training.task import Task, find_task
from arboost.sources.file_source import BY_NAME

if TYPE_CHECKING:
    from arboost.cli.training.run import TrainOptions

__all__ = ["fits_in_memory", "train_in_batches"]

_COPIES = 3.0  # of the table: rows to train on, rows to score, and codes
_TEXT_FACTOR = 1.5  # bytes in memory for a byte of text
_RATIO = 6.0  # of compressed text
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
    ):
        if name is not None:
            require_columns([name], names, option)
    dropped = resolve_names(options.ignore, names, "--ignore")
    task = _task(console, options, label)
    plan = FitPlan(
        model=options.model,
        task=task.name,
        params=options.values((task.name,)),
        target=options.target,
        weight=options.weight,
        groups=options.groups,
        offset=options.offset,
        dropped=frozenset(dropped),
    )
    estimator, seconds = _fit(console, plan, options, names, label)
    record = _record(console, options, plan, names)
    n_bytes = save_model(estimator, options.output, record)
    n_rows = estimator.model_.provenance.get("rows", 0)
    show_training(
        console,
        Trained(
            options=options,
            plan=plan,
            task=task,
            estimator=estimator,
            evaluation=None,
            record=record,
            split_text=_split_text(estimator),
            n_rows=n_rows,
            n_train=n_rows,
            n_bytes=n_bytes,
            seconds={"reading and fitting": seconds, "total": time.monotonic() - started},
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
        "--holdout": options.holdout,
        "--folds": options.folds,
        "--time-column": options.time_column,
        "--refit": options.refit,
        "--drop-missing-target": options.drop_missing_target,
    }
    return [option for option, value in given.items() if value]


def _task(console: Console, options: TrainOptions, label: str) -> Task:
    """Return the task of the target, whose column alone is read."""
    import pyarrow

    with console.phase(f"reading the target of {label}") as phase, reading_data():
        stream, _ = open_rows(
            console,
            options.data,
            form=options.form,
            columns=[options.target],
            progress=phase.update_bytes,
        )
        column = pyarrow.Table.from_batches(list(stream), stream.schema).column(0)
        task = find_task(column, options.target, *options.asked_task)
        phase.result = f"read the target of {label} in {seconds_text(phase.seconds)}"
    console.say(f"task: {task.name} ({task.reason})")
    return task


def _fit(
    console: Console, plan: FitPlan, options: TrainOptions, names: list[str], label: str
) -> tuple[Any, float]:
    from arboost.progress import steps_reported

    with console.phase(f"loading {plan.model}"):
        estimator = plan.new_estimator()
    source: Any = list(options.data)
    if plan.dropped or options.form != BY_NAME:
        # A stream of the wanted columns is stored once; its columns still have their names.
        kept = [name for name in names if name not in plan.dropped]
        source, _ = open_rows(console, options.data, form=options.form, columns=kept)
    has_groups = plan.groups is not None and plan.splits_rows and plan.takes(estimator, "groups")
    arguments = plan.starts | ({"groups": plan.groups} if has_groups else {})
    if plan.groups is not None and not has_groups:
        raise UsageFailure("--groups is for early stopping here: leave it or --memory-limit out.")
    limit = options.memory_limit or "auto"
    within = "" if limit == "auto" else f" within {limit}"
    console.say(f"{label} is read in batches{within}; no rows are held out")
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


def _record(console: Console, options: TrainOptions, plan: FitPlan, names: list[str]) -> RowRecord:
    """Return the record of the rows, which are read once more, batch by batch."""
    columns = [*plan.features(names), plan.target]
    with console.phase("noting the rows") as phase:
        stream, _ = open_rows(
            console,
            options.data,
            form=options.form,
            columns=columns,
            progress=phase.update_bytes,
        )
        sample = RowSample()
        with reading_data():
            for batch in stream:
                sample.add(row_hashes(batch, columns))
    return RowRecord.of(plan.target, sample)


def _split_text(estimator: Any) -> str:
    facts = estimator.model_.provenance
    if "best_score" in facts:
        return (
            f"{facts['metric']} {facts['best_score']:.5g} on rows that early stopping held out; "
            "arboost evaluate scores other files"
        )
    return "none scored; arboost evaluate scores other files"
