"""Input of a command -> a table of PyArrow in memory, or a source that is read in batches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import DataFailure, OutputFailure, UsageFailure, reading_data
from arboost.cli.input.standard_input import STANDARD_INPUT, stored_input

if TYPE_CHECKING:
    from arboost.sources.file_source import FileSource

__all__ = [
    "MOST_ROWS",
    "STANDARD_INPUT",
    "Loaded",
    "open_rows",
    "read_table",
    "refuse_input",
    "require_columns",
    "resolve_names",
]

MOST_ROWS = 1 << 20  # of a batch: row groups of most Parquet files are then read whole
_FEWEST_ROWS = 1 << 14
_BATCH_BYTES = 1 << 27  # of a batch, about
Columns: TypeAlias = "Sequence[str] | Callable[[list[str]], list[str]] | None"
_MOST_NAMES = 10  # in a message


@dataclass(frozen=True)
class Loaded:
    """A table in memory.

    Attributes
    ----------
    table : pyarrow.Table
    label : str
        Name of the input in messages.
    seconds : float
        Time of reading.
    paths : tuple of str
    """

    table: Any
    label: str
    seconds: float
    paths: tuple[str, ...]


def read_table(
    console: Console,
    data: Sequence[str],
    *,
    kind: str | None = None,
    columns: Sequence[str] | None = None,
    like: Any = None,
) -> Loaded:
    """Read files, patterns, folders or the standard input into a table of at least one row.

    Parameters
    ----------
    console : Console
        Draws the progress, and says how long it took.
    data : sequence of str
        Paths, patterns and folders, or "-" alone.
    kind : str, optional
        Kind of the input where names do not tell it.
    columns : sequence of str, optional
        Columns to read; all by default.
    like : model or Schema, optional
        Columns of text files are read with the types of its columns.

    Raises
    ------
    DataFailure
    """
    label = input_label(data)
    with console.phase(f"reading {label}") as phase, reading_data(), _named_input([]) as names:
        data, kind = _stored(data, kind, names)
        source = _open(data, kind, columns, like)
        table = _read_files(source, kind, like, phase.update_bytes)
        _check(table, label)
        phase.result = (
            f"read {label}: {table.num_rows:,} rows x {table.num_columns:,} columns, "
            f"{size_text(source.n_bytes or 0)} in {seconds_text(phase.seconds)}"
        )
    return Loaded(table, label, phase.seconds, () if names else source.paths)


def open_rows(
    data: Sequence[str],
    *,
    kind: str | None = None,
    columns: Columns = None,
    like: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Any, tuple[str, ...]]:
    """Return a stream of record batches of the input, read when it is asked for, and its paths.

    `columns` may be a function of the names of all columns. `progress` is called with the bytes
    read so far and the size of all files. Other arguments are those of `read_table`.
    """
    import pyarrow

    with reading_data(), _named_input([]) as names:
        data, kind = _stored(data, kind, names)
        source = _open(data, kind, columns, like)

    def batches() -> Iterator[Any]:
        with _named_input(names), _explained(source.paths, kind):
            for batch in source.batches(_batch_rows(source)):
                if progress is not None:
                    progress(batch.bytes_read, source.n_bytes or 0)
                yield batch.table

    stream = pyarrow.RecordBatchReader.from_batches(source.arrow_schema, batches())
    return stream, () if names else source.paths


def _batch_rows(source: Any) -> int:
    """Return the number of rows of a batch, so that a batch of wide rows fits in memory, too."""
    n_bytes: int = max(source.row_bytes, 1)
    return max(min(_BATCH_BYTES // n_bytes, MOST_ROWS), _FEWEST_ROWS)


def _stored(
    data: Sequence[str], kind: str | None, names: list[str]
) -> tuple[Sequence[str], str | None]:
    """Return paths and kind; the standard input is stored, and its path added to `names`."""
    if STANDARD_INPUT not in data:
        return data, kind
    if len(data) > 1:
        raise UsageFailure("- is the standard input: it cannot be mixed with files.")
    path, kind = stored_input(kind, None)
    names.append(path)
    return [path], kind


@contextmanager
def _explained(paths: Sequence[str], kind: str | None) -> Iterator[None]:
    """Find line and column of the fault of a text file."""
    from arboost.cli.input.text_files import explain_fault
    from arboost.errors import SchemaError
    from arboost.sources.paths import file_kind

    try:
        yield
    except ValueError as error:
        if not isinstance(error, SchemaError) and "cannot be read" in str(error):
            kinds = [file_kind(path)[0] if kind is None else kind for path in paths]
            explain_fault(paths, kinds, str(error))
        raise


@contextmanager
def _named_input(names: list[str]) -> Iterator[list[str]]:
    """Call the stored standard input, of these paths, "-" in messages."""
    try:
        yield names
    except Exception as error:
        for name in names:
            if name in str(error):
                raise ValueError(str(error).replace(name, STANDARD_INPUT)) from error
        raise


def input_label(data: Sequence[str]) -> str:
    """Return the name of the input in messages."""
    if list(data) == [STANDARD_INPUT]:
        return "the standard input"
    first = os.path.basename(data[0].rstrip("/")) or data[0]
    return first if len(data) == 1 else f"{first} and {len(data) - 1} more"


def _open(data: Sequence[str], kind: str | None, columns: Columns, like: Any) -> FileSource:
    from arboost.cli.input.text_files import check_file
    from arboost.cli.input.text_types import source_like
    from arboost.sources.file_source import open_files
    from arboost.sources.paths import TEXT_KINDS, file_kind, find_files

    paths = [file.path for file in find_files(list(data), kind)]
    kinds = [file_kind(path)[0] if kind is None else kind for path in paths]
    for path, one in zip(paths, kinds, strict=True):
        if one in TEXT_KINDS:
            check_file(path)
    with _explained(paths, kind):
        if callable(columns):
            columns = columns(open_files(list(data), None, kind).arrow_schema.names)
        source = open_files(list(data), columns, kind)
    return source if like is None else source_like(source, like)


def _read_files(
    source: FileSource, kind: str | None, like: Any, progress: Callable[[int, int], None]
) -> Any:
    import pyarrow

    from arboost.cli.input.text_files import read_text_files
    from arboost.sources.paths import TEXT_KINDS, file_kind

    kind = file_kind(source.paths[0])[0] if kind is None else kind
    if kind in TEXT_KINDS:
        return read_text_files(source, kind, like, progress)
    batches = []
    for batch in source.batches(_batch_rows(source)):
        progress(batch.bytes_read, source.n_bytes or 0)
        batches.append(batch.table)
    return pyarrow.Table.from_batches(batches, source.arrow_schema)


def _check(table: Any, label: str) -> None:
    name, count = Counter(table.column_names or [""]).most_common(1)[0]
    if count > 1:
        raise DataFailure(f"{label} has {count} columns called {name!r}. Rename or remove one.")
    if not table.num_rows:
        raise DataFailure(f"{label} has columns but no rows. Give a table with rows.")


def resolve_names(given: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Return columns of an option; a value may be several names, separated by commas.

    Raises
    ------
    DataFailure
        With the nearest name.
    """
    found: list[str] = []
    for one in given:
        several = [one] if one in names else [part.strip() for part in one.split(",")]
        found += [name for name in several if name]
    require_columns(found, names, option)
    return list(dict.fromkeys(found))


def require_columns(given: Sequence[str], names: Sequence[str], option: str) -> None:
    """Raise DataFailure for a column that is not there, with the nearest name."""
    from arboost.sources.schemas import near_names

    for name in given:
        if name not in names:
            same = [one for one in names if one.lower() == name.lower()]
            meant = f" Did you mean {same[0]!r}?" if same else near_names(name, names)
            columns = ", ".join(names[:_MOST_NAMES])
            more = " and so on" if len(names) > _MOST_NAMES else ""
            if len(names) == 1 and ";" in columns:
                meant = " Its separator seems to be ';': write commas, or tabs in a .tsv file."
            raise DataFailure(
                f"{option} {name}: the table has no such column.{meant} Its columns are "
                f"{columns}{more}."
            )


def refuse_input(output: str, paths: Sequence[str]) -> None:
    """Raise OutputFailure for an output that is one of the input files."""
    if os.path.realpath(output) in map(os.path.realpath, paths):
        raise OutputFailure(
            f"{output!r} is one of the files to read, so it is not overwritten. Give another path."
        )
