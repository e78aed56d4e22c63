"""Input of a command -> a table of PyArrow in memory, or a source that is read in batches."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import DataFailure, OutputFailure, UsageFailure, reading_data
from arboost.cli.input.standard_input import STANDARD_INPUT, stored_input
from arboost.errors import needs_packages

if TYPE_CHECKING:
    from arboost.sources.file_source import FileFormat, FileSource

__all__ = [
    "MOST_ROWS",
    "STANDARD_INPUT",
    "Loaded",
    "format_options",
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
_TAB = "\t"


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
    form: FileFormat,
    columns: Columns = None,
    like: Any = None,
) -> Loaded:
    """Read files, patterns, folders or the standard input into a table of at least one row.

    Parameters
    ----------
    console : Console
        Draws the progress, and says how long it took and which delimiter was found.
    data : sequence of str
        Paths, patterns and folders, or "-" alone.
    form : FileFormat
        Kind and dialect of the input where names and first lines do not tell them.
    columns : sequence of str or callable, optional
        Columns to read, or a function of all names that returns them; all by default.
    like : model or Schema, optional
        Columns of text files are read with the types of its columns.

    Raises
    ------
    DataFailure
    """
    label = input_label(data)
    with console.phase(f"reading {label}") as phase, reading_data(), _named_input([]) as names:
        data = _stored(data, form, names)
        source = _open(data, form, columns, like)
        _say_delimiter(console, source, form, label)
        table = _read_files(source, form, like, phase.update_bytes)
        _check(table, label)
        phase.result = (
            f"read {label}: {table.num_rows:,} rows x {table.num_columns:,} columns, "
            f"{size_text(source.n_bytes or 0)} in {seconds_text(phase.seconds)}"
        )
    return Loaded(table, label, phase.seconds, () if names else source.paths)


def open_rows(
    console: Console,
    data: Sequence[str],
    *,
    form: FileFormat,
    columns: Columns = None,
    like: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Any, tuple[str, ...]]:
    """Return a stream of record batches of the input, read when it is asked for, and its paths.

    `progress` is called with the bytes
    read so far and the size of all files. Other arguments are those of `read_table`.
    """
    with needs_packages("cli", "The command line"):
        import pyarrow

    with reading_data(), _named_input([]) as names:
        label = input_label(data)
        data = _stored(data, form, names)
        source = _open(data, form, columns, like)
        _say_delimiter(console, source, form, label)

    def batches() -> Iterator[Any]:
        with _named_input(names), _explained(source.paths, form):
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


def _stored(data: Sequence[str], form: FileFormat, names: list[str]) -> Sequence[str]:
    """Return the paths; the standard input is stored, and its path added to `names`."""
    if STANDARD_INPUT not in data:
        return data
    if len(data) > 1:
        raise UsageFailure("- is the standard input: it cannot be mixed with files.")
    path = stored_input(form.kind, None)
    names.append(path)
    return [path]


def _say_delimiter(console: Console, source: FileSource, form: FileFormat, label: str) -> None:
    """Name a delimiter that was found, where it is not that of the kind of file."""
    from arboost.sources.text.csv_dialect import DELIMITERS, delimiter_text
    from arboost.sources.text.csv_files import CsvFile

    if form.delimiter is not None:
        return
    for file in source.files:
        if isinstance(file, CsvFile):
            delimiter = file.dialect.delimiter
            if delimiter != DELIMITERS[form.kind_of(file.path)]:
                name = label if len(source.files) == 1 else file.path
                console.say_once(
                    f"the columns of {name} are separated by {delimiter_text(delimiter)}"
                )


@contextmanager
def _explained(paths: Sequence[str], form: FileFormat) -> Iterator[None]:
    """Find line and column of the fault of a text file."""
    from arboost.cli.input.text_files import explain_fault
    from arboost.errors import SchemaError

    try:
        yield
    except ValueError as error:
        if not isinstance(error, SchemaError) and "cannot be read" in str(error):
            explain_fault(paths, form, str(error))
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


def format_options(form: FileFormat) -> str:
    """Return the options of a command line that give this format, to be written after paths."""
    given = {"format": form.kind, "delimiter": form.delimiter, "decimal": form.decimal}
    return "".join(
        f" --{option} {'tab' if value == _TAB else shlex.quote(value)}"
        for option, value in given.items()
        if value is not None
    )


def input_label(data: Sequence[str]) -> str:
    """Return the name of the input in messages."""
    if list(data) == [STANDARD_INPUT]:
        return "the standard input"
    first = os.path.basename(data[0].rstrip("/")) or data[0]
    return first if len(data) == 1 else f"{first} and {len(data) - 1} more"


def _open(data: Sequence[str], form: FileFormat, columns: Columns, like: Any) -> FileSource:
    with needs_packages("cli", "The command line"):
        import pyarrow  # noqa: F401
    from arboost.cli.input.text_files import check_file
    from arboost.cli.input.text_types import source_like
    from arboost.sources.file_source import open_files
    from arboost.sources.paths import TEXT_KINDS, find_files

    paths = [file.path for file in find_files(list(data), form.kind)]
    for path in paths:
        _check_form(form, path)
        if form.kind_of(path) in TEXT_KINDS:
            check_file(path)
    with _explained(paths, form):
        if callable(columns):
            columns = columns(open_files(list(data), None, form).arrow_schema.names)
        source = open_files(list(data), columns, form)
    return source if like is None else source_like(source, like)


def _check_form(form: FileFormat, path: str) -> None:
    """Raise UsageFailure for a dialect of a file that has none."""
    from arboost.sources.text.csv_dialect import DELIMITERS

    kind = form.kind_of(path)
    for option, value in (("--delimiter", form.delimiter), ("--decimal", form.decimal)):
        if value is not None and kind not in DELIMITERS:
            raise UsageFailure(
                f"{option} is for CSV and TSV files, but {path!r} is of kind {kind}. Leave it out."
            )


def _read_files(
    source: FileSource, form: FileFormat, like: Any, progress: Callable[[int, int], None]
) -> Any:
    import pyarrow

    from arboost.cli.input.text_files import read_text_files
    from arboost.sources.paths import TEXT_KINDS

    if form.kind_of(source.paths[0]) in TEXT_KINDS:
        return read_text_files(source, like, progress)
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
            columns = ", ".join(
                one if one.strip() == one else repr(one) for one in names[:_MOST_NAMES]
            )
            more = " and so on" if len(names) > _MOST_NAMES else ""
            if len(names) == 1 and not columns.isidentifier():
                meant = " It has one column only: --delimiter names the character between columns."
            raise DataFailure(
                f"{option} {name}: the table has no such column.{meant} Its columns are "
                f"{columns}{more}."
            )


def _same_file(one: str, other: str) -> bool:
    with suppress(OSError, ValueError):  # one of them is not there
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def refuse_input(output: str, paths: Sequence[str]) -> None:
    """Raise OutputFailure for an output that is one of the input files, by any of its names."""
    if any(_same_file(output, path) for path in paths):
        raise OutputFailure(
            f"{output!r} is one of the files to read, so it is not overwritten. Give another path."
        )
