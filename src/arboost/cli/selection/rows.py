"""Table, target and columns of the rows that models are compared and tuned on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from arboost.cli.console import Console
from arboost.cli.errors import DataFailure, UsageFailure
from arboost.cli.tables import Loaded, read_table, require_columns, resolve_names
from arboost.cli.training.keys import say_keys
from arboost.cli.training.rows import in_time_order
from arboost.cli.training.task import Task, find_task, with_target
from arboost.sources.file_source import FileFormat

__all__ = ["RowOptions", "SelectedRows", "read_selected"]


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Options on the rows, under the names of the command line.

    Attributes
    ----------
    data : tuple of str
    target : str
    form : FileFormat
    task : str or None
    weight, groups, time_column : str or None
        Columns that are no features.
    offset : tuple of str
        Columns of the offset, which are not features.
    ignore : tuple of str
    drop_missing_target : bool
    """

    data: tuple[str, ...]
    target: str
    form: FileFormat
    task: str | None
    weight: str | None
    groups: str | None
    ignore: tuple[str, ...]
    drop_missing_target: bool
    time_column: str | None = None
    offset: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Return the columns with a role, by option."""
        given = {
            "--target": self.target,
            "--weight": self.weight,
            "--groups": self.groups,
            "--time-column": self.time_column,
        }
        return {option: name for option, name in given.items() if name is not None}


@dataclass(frozen=True)
class SelectedRows:
    """Rows of a command.

    Attributes
    ----------
    X : pyarrow.Table
        Features and target.
    target : str
    weight, groups : array or None
    task : Task
    loaded : Loaded
    """

    X: Any
    target: str
    weight: Any
    groups: Any
    task: Task
    loaded: Loaded


def read_selected(console: Console, options: RowOptions) -> SelectedRows:
    """Return the rows of a command, checked; the task is said aloud."""
    named = options.named()
    if options.time_column is not None and options.groups is not None:
        raise UsageFailure("--time-column and --groups are two splits: use one of them.")
    for option, name in [*named.items(), *(("--offset", one) for one in options.offset)]:
        if option != "--target" and name == options.target:
            raise UsageFailure(f"{option} {name} is also the target. Use another column.")
    loaded = read_table(console, options.data, form=options.form)
    names = loaded.table.column_names
    for option, name in named.items():
        require_columns([name], names, option)
    require_columns(options.offset, names, "--offset")
    left_out = set(resolve_names(options.ignore, names, "--ignore"))
    if options.target in left_out:
        raise UsageFailure(f"--ignore {options.target} is also the target. Leave it out.")
    left_out |= {name for option, name in named.items() if option != "--target"}
    table = loaded.table
    if options.drop_missing_target:
        table = with_target(console, table, options.target)
    if options.time_column is not None:
        table = in_time_order(console, table, options.time_column)
    kept = [name for name in names if name not in left_out]
    if not set(kept) - {options.target, *options.offset}:
        raise DataFailure(f"{loaded.label} has no column but the target. Add features.")
    task = find_task(table.column(options.target), options.target, options.task)
    console.say(f"task: {task.name} ({task.reason})")
    say_keys(
        console, table, [name for name in kept if name not in (options.target, *options.offset)]
    )
    return SelectedRows(
        X=table.select(kept),
        target=options.target,
        weight=None if options.weight is None else _numbers(table, options.weight),
        groups=None if options.groups is None else table.column(options.groups).to_numpy(),
        task=task,
        loaded=loaded,
    )


def _numbers(table: Any, name: str) -> Any:
    from pyarrow import types

    column = table.column(name)
    if not (types.is_integer(column.type) or types.is_floating(column.type)):
        raise DataFailure(
            f"--weight {name} holds values of type {column.type}, but weights are numbers. Choose "
            "another column."
        )
    return column.to_numpy()
