"""Input of a command: files, patterns and folders, or the standard input, read with progress.

`RowSpec` has the files and the roles of their columns, `TableFormat` the kind of the files.
`open_table` opens them as an `InputTable`, which reads them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import click

from arboost.cli.console import Console, seconds_text
from arboost.cli.errors import DataFailure, OutputFailure, UsageFailure, failures_as
from arboost.text import counted, size_text

STANDARD_INPUT = "-"
TAB = "\t"
_META = "arboost.input"  # key of the context of a command
_BLOCK_BYTES = 1 << 20
_COMPRESSED = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_MOST_NAMES = 10  # in a message


@dataclass(frozen=True)
class TableFormat:
    """Arguments of `arboost.TableFiles`, for files whose names and first lines do not tell them."""

    format: str | None = None
    delimiter: str | None = None
    decimal: str | None = None

    @property
    def command_line(self) -> str:
        """Options that stand for this format, to be written after paths."""
        return "".join(
            f" --{option} {'tab' if value == TAB else shlex.quote(value)}"
            for option, value in vars(self).items()
            if value is not None
        )


@dataclass(frozen=True, kw_only=True)
class RowSpec:
    """Table of a command and the roles of its columns, under the names of the options.

    Attributes
    ----------
    data : tuple of str
    form : TableFormat
    target, task, weight, groups, qid, time_column : str or None
    offset, ignore : tuple of str
    drop_missing_target, held_out : bool
    """

    data: tuple[str, ...]
    form: TableFormat = field(default_factory=TableFormat)
    target: str = ""
    task: str | None = None
    weight: str | None = None
    groups: str | None = None
    qid: str | None = None
    time_column: str | None = None
    offset: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    drop_missing_target: bool = False
    held_out: bool = False

    @property
    def roles(self) -> list[tuple[str, str]]:
        """Options with the columns that they name, the target first; --ignore is none of them."""
        columns = {
            "--target": self.target,
            "--weight": self.weight,
            "--groups": self.groups,
            "--qid": self.qid,
            "--time-column": self.time_column,
        }
        named = [(option, name) for option, name in columns.items() if name is not None]
        return named + [("--offset", name) for name in self.offset]

    def check(self) -> None:
        """Raise UsageFailure for roles that do not fit together, before the table is read."""
        if self.time_column is not None and self.groups is not None:
            raise UsageFailure("--time-column and --groups are two splits: use one of them.")
        if self.qid is not None and (self.time_column or self.groups) is not None:
            other = "--groups" if self.time_column is None else "--time-column"
            raise UsageFailure(f"--qid holds out whole queries: leave {other} out.")
        for option, name in self.roles[1:]:
            if name == self.target:
                raise UsageFailure(f"{option} {name} is also the target. Use another column.")

    def features(self, source: InputTable) -> list[str]:
        """Columns of a table that are features."""
        names = source.files.names
        for option, name in self.roles:
            require_columns([name], names, option)
        ignored = resolve_names(self.ignore, names, "--ignore")
        if self.target in ignored:
            raise UsageFailure(f"--ignore {self.target} is also the target. Leave it out.")
        dropped = {name for _, name in self.roles} | set(ignored)
        features = [name for name in names if name not in dropped]
        if not features:
            raise DataFailure(f"{source.label} has no column but the target. Add features.")
        return features


@dataclass
class InputTable:
    """Files or the standard input of a command; made by `open_table`.

    Attributes
    ----------
    console : Console
        Draws the progress.
    label : str
        Name of the input in messages.
    files : arboost.TableFiles
    seconds : float
        Time of reading.
    """

    console: Console
    label: str
    files: Any
    seconds: float = 0.0

    def select(
        self,
        columns: Sequence[str],
        like: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> InputTable:
        """Input of some columns; those of text files with the types of a model's columns."""
        with failures_as(DataFailure):
            return replace(self, files=self.files.select(columns, like=like, types=types))

    def read(self) -> Any:
        """Read a table of at least one row."""
        with self.console.phase(f"reading {self.label}") as phase, failures_as(DataFailure):
            table = self.files.read(phase.update_bytes)
            if not table.num_rows:
                raise DataFailure(f"{self.label} has columns but no rows. Add rows.")
            self.seconds = phase.seconds
            phase.result = (
                f"read {self.label}: {counted(table.num_rows, 'row')} x "
                f"{counted(table.num_columns, 'column')}, {size_text(self.files.n_bytes)} in "
                f"{seconds_text(self.seconds)}"
            )
        return table


def open_table(console: Console, data: Sequence[str], form: TableFormat) -> InputTable:
    """Open files, patterns and folders, or "-" alone: the standard input.

    Raises
    ------
    DataFailure
    """
    import pyarrow  # noqa: F401  # the error names the extra of the command line

    from arboost import TableFiles

    label = "the standard input"
    if list(data) != [STANDARD_INPUT]:
        first = os.path.basename(data[0].rstrip("/")) or data[0]
        label = first if len(data) == 1 else f"{first} and {len(data) - 1} more"
    with failures_as(DataFailure):
        files = TableFiles(_stored(data, form), **vars(form))
    for path, delimiter in files.unusual_delimiters.items():
        name = label if len(files.paths) == 1 else path
        console.say_once(f"the columns of {name} are separated by {delimiter}")
    return InputTable(console, label, files)


# ---- standard input ----


class _StoredInput(str):
    """Path of the stored standard input, which messages call "-"."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(STANDARD_INPUT)


def _stored(data: Sequence[str], form: TableFormat) -> list[str]:
    """Paths to read; the standard input is stored.

    A file can be read again: a fault is searched, and batches are read twice. A second call in the
    same command returns the same file.
    """
    if STANDARD_INPUT not in data:
        return list(data)
    if len(data) > 1:
        raise UsageFailure("- is the standard input: it cannot be mixed with files.")
    ctx = click.get_current_context()
    if _META not in ctx.meta:
        ctx.meta[_META] = _store_input(ctx, form.format)
    return [ctx.meta[_META]]


def _store_input(ctx: click.Context, kind: str | None) -> str:
    """Copy the standard input to a file, which the end of the command deletes."""
    if kind is None:
        raise UsageFailure(
            "the kind of the standard input is unknown: add --format csv, or another kind."
        )
    stream = None if sys.stdin is None else sys.stdin.buffer
    if stream is None or sys.stdin.isatty():
        raise UsageFailure("- is the standard input, but nothing is piped into it.")
    block = stream.read(_BLOCK_BYTES)
    if not block:
        raise DataFailure("the standard input is empty. Pipe a table into it.")
    suffix = next((end for magic, end in _COMPRESSED.items() if block.startswith(magic)), "")
    folder = ctx.with_resource(
        tempfile.TemporaryDirectory(prefix="arboost-input-", ignore_cleanup_errors=True)
    )
    path = os.path.join(folder, f"table.{kind}{suffix}")
    with open(path, "wb") as file:
        file.write(block)
        shutil.copyfileobj(stream, file)
    return _StoredInput(path)


# ---- names of columns, and paths ----


def resolve_names(values: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Columns of an option; a value may be several names, separated by commas.

    Raises
    ------
    DataFailure
        With the nearest name.
    """
    columns: list[str] = []
    for value in values:
        parts = [value] if value in names else [part.strip() for part in value.split(",")]
        columns += [name for name in parts if name]
    require_columns(columns, names, option)
    return list(dict.fromkeys(columns))


def require_columns(columns: Sequence[str], names: Sequence[str], option: str) -> None:
    """Raise DataFailure for a column that the table lacks, with the nearest name."""
    from arboost.params.suggestions import did_you_mean

    for column in columns:
        if column not in names:
            meant = did_you_mean(column, names)
            listed = ", ".join(
                name if name.strip() == name else repr(name) for name in names[:_MOST_NAMES]
            )
            more = " and so on" if len(names) > _MOST_NAMES else ""
            if len(names) == 1 and not listed.isidentifier():
                meant = " It has one column only: --delimiter names the character between columns."
            raise DataFailure(
                f"{option} {column}: the table has no such column.{meant} Its columns are "
                f"{listed}{more}."
            )


def _same_file(path: str, output: str) -> bool:
    with suppress(OSError, ValueError):  # there may be no such file
        return os.path.samefile(path, output)
    return os.path.realpath(path) == os.path.realpath(output)


def refuse_input(output: str, paths: Sequence[str]) -> None:
    """Raise OutputFailure for an output that is one of the input files, by any of its names."""
    if any(_same_file(path, output) for path in paths):
        raise OutputFailure(
            f"{output!r} is one of the files to read, so it is not overwritten. Use another path."
        )
