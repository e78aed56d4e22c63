"""Input of a command -> a table of PyArrow in memory, or a stream of record batches."""

from __future__ import annotations

import io
import os
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.csv_faults import check_text, csv_fault, not_utf8
from arboost.cli.errors import DataFailure, OutputFailure, UsageFailure, reading_data
from arboost.errors import needs_packages

if TYPE_CHECKING:
    from arboost.data.schema import Schema
    from arboost.data.source import FileFormat, FileSource
    from arboost.data.text_files import CsvFile

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
    read so far and the size of all files. Other arguments are those of `bin_source`.
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
    from arboost.data.text_files import DELIMITERS, CsvFile, delimiter_text

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
    from arboost.data.files import TEXT_KINDS, find_files
    from arboost.data.source import open_files

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
    from arboost.data.text_files import DELIMITERS

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

    from arboost.data.files import TEXT_KINDS

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
    from arboost.params.suggestions import did_you_mean

    for name in given:
        if name not in names:
            same = [one for one in names if one.lower() == name.lower()]
            meant = f" Did you mean {same[0]!r}?" if same else did_you_mean(name, names)
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


_BLOCK_BYTES = 1 << 22


def read_text_files(source: FileSource, like: Any, progress: Callable[[int, int], None]) -> Any:
    """Return the rows of CSV, TSV or JSON lines files as one table."""
    import pyarrow

    from arboost.data.files import as_schema, common_schema
    from arboost.data.text_files import CsvFile

    tables, before = [], 0
    columns = [name for name in source.arrow_schema.names if name not in source.keys[0]]
    types = {} if like is None else {field.name: field.type for field in source.arrow_schema}
    for file, keys in zip(source.files, source.keys, strict=True):
        if isinstance(file, CsvFile):
            with _Counted(file.path, before, source.n_bytes or 0, progress) as counted:
                table = _read_csv(counted, file, columns, types)
        else:
            table = _read_json(file.path, columns)
        for name, key in keys.items():
            table = table.append_column(name, pyarrow.repeat(key, table.num_rows))
        tables.append(table)
        before += file.n_bytes
    if len(tables) == 1:
        return tables[0]
    found = [(file.path, table.schema) for file, table in zip(source.files, tables, strict=True)]
    schema = common_schema(found, source.arrow_schema.names, promotes=True)
    batches = [as_schema(batch, schema) for table in tables for batch in table.to_batches()]
    return pyarrow.Table.from_batches(batches, schema)


def _read_json(path: str, columns: list[str]) -> Any:
    from arboost.data.files import DAMAGED, file_errors, open_bytes
    from arboost.data.text_files import json_table

    with file_errors(path, DAMAGED), open_bytes(path) as file:
        data = file.read()
    table = json_table(data, None, path)
    return table.select([name for name in columns if name in table.column_names])


def check_file(path: str) -> None:
    """Raise ValueError for a file that is no text."""
    from arboost.data.files import DAMAGED, file_errors, file_stamp, open_bytes

    with file_errors(path, DAMAGED):
        file_stamp(path)
        with open_bytes(path) as text:
            check_text(text, path)


def explain_fault(paths: Sequence[str], form: FileFormat, cause: str) -> None:
    """Raise DataFailure with line and column of the fault of the file that `cause` names."""
    from arboost.data.files import open_bytes
    from arboost.data.text_files import DELIMITERS, find_dialect

    for path in paths:
        kind = form.kind_of(path)
        if kind in DELIMITERS and repr(path) in cause:
            reason = cause.partition("cannot be read: ")[2] or cause
            dialect = find_dialect(path, kind, form.delimiter, form.decimal)
            fault = csv_fault(partial(open_bytes, path), path, dialect, reason, {})
            if fault is not None:
                raise DataFailure(fault)


def _read_csv(stream: Any, file: CsvFile, columns: Sequence[str], types: dict[str, Any]) -> Any:
    """Return the table of an open CSV or TSV file, which is read again after an error."""
    import pyarrow
    from pyarrow import csv

    from arboost.data.files import compression_of, open_bytes
    from arboost.data.text_files import check_decimals, conversion

    path, dialect, again = file.path, file.dialect, partial(open_bytes, file.path)
    raw = pyarrow.PythonFile(stream, "r")
    if compression_of(path) is not None:
        raw = pyarrow.CompressedInputStream(raw, compression_of(path))

    def read(source: Any, *, newlines: bool) -> Any:
        return csv.read_csv(
            source,
            csv.ReadOptions(block_size=_BLOCK_BYTES),
            csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=newlines),
            conversion(dialect, types, columns),
        )

    try:
        table = read(raw, newlines=False)
    except (pyarrow.ArrowException, OSError, EOFError, ValueError) as error:
        fault = csv_fault(again, path, dialect, str(error), types)
        if fault is not None:
            raise DataFailure(fault) from error
        with again() as source:  # quoted values with line breaks, which are rare and slower
            table = read(source, newlines=True)
    for column in table.columns:
        if pyarrow.types.is_binary(column.type) or pyarrow.types.is_large_binary(column.type):
            raise DataFailure(not_utf8(again, path, dialect))
    check_decimals(table, dialect, path)
    return table


class _Counted(io.RawIOBase):
    """A file that tells how far it has been read."""

    def __init__(
        self, path: str, before: int, total: int, progress: Callable[[int, int], None]
    ) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by `close`
        self._done = before
        self._total = total
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_bytes = self._file.readinto(buffer) or 0
        self._done += n_bytes
        self._progress(self._done, self._total)
        return n_bytes

    def close(self) -> None:
        self._file.close()
        super().close()


def source_like(source: FileSource, like: Any) -> FileSource:
    """Return the source with the types of a model's columns; other kinds than text unchanged.

    `like` is a model, a schema, or a dict of kinds as `column_kinds` returns it.
    """
    from arboost.data.files import ArrowFile, ParquetFile
    from arboost.data.source import FileSource
    from arboost.data.text_files import JsonLinesFile

    if isinstance(source.files[0], ParquetFile | ArrowFile):
        return source
    kinds = column_kinds(like)
    if isinstance(source.files[0], JsonLinesFile):  # it tells strings from numbers itself
        texts = [one.name for one in source.arrow_schema if one.type == "string"]
        kinds = {
            name: kind for name, kind in kinds.items() if kind == "number" and name not in texts
        }
    return FileSource(
        source.label, source.files, typed_like(source.arrow_schema, kinds), source.keys
    )


def typed_like(found: Any, like: Any) -> Any:
    """Return the types of text columns that were found, corrected by those of a model.

    A column that the model knows as numbers holds decimals, even if its first rows are integers;
    a category of strings holds strings, even if all of them look like numbers.
    """
    import pyarrow

    kinds = column_kinds(like)
    return pyarrow.schema([(one.name, _type(one.type, kinds.get(one.name, ""))) for one in found])


def _type(found: Any, wanted: str) -> Any:
    import pyarrow

    # A string among numbers is then an error with its line, and no other kind of column.
    if wanted == "number" and found in (pyarrow.int64(), pyarrow.null(), pyarrow.string()):
        return pyarrow.float64()
    return pyarrow.string() if wanted == "string" else found


def column_kinds(like: Any) -> dict[str, str]:
    """Return "number" or "string" for the columns of a model or schema; "" for times.

    An ensemble keeps the names of its columns, and its members the rest.
    """
    if isinstance(like, Mapping):
        return dict(like)
    members: Mapping[str, Any] = getattr(like, "members", {})
    if members:
        return {name: kind for one in members.values() for name, kind in column_kinds(one).items()}
    schema: Schema = getattr(like, "schema", like)
    found = {}
    for feature, name in enumerate(schema.names or ()):
        levels = schema.levels_of(feature)
        kind = "number" if levels is None else levels.kind
        found[name] = "" if schema.unit_of(feature) else kind
    return found | dict.fromkeys(schema.offset or (), "number")


STANDARD_INPUT = "-"
_META = "arboost.input"
_INPUT_BLOCK_BYTES = 1 << 20
_COMPRESSED = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}


def stored_input(kind: str | None, progress: Callable[[int, int], None] | None) -> str:
    """Return the path of a file with the bytes of the standard input.

    A file can be read again: a fault is searched, and batches are read twice. A second call in the
    same command returns the same file; the end of the command deletes it.
    """
    ctx = click.get_current_context()
    if _META in ctx.meta:
        known: str = ctx.meta[_META]
        return known
    if kind is None:
        raise UsageFailure(
            "the kind of the standard input is unknown: add --format csv, or another kind."
        )
    stream = None if sys.stdin is None else sys.stdin.buffer
    if stream is None or sys.stdin.isatty():
        raise UsageFailure("- is the standard input, but nothing is piped into it.")
    first = stream.read(_INPUT_BLOCK_BYTES)
    if not first:
        raise DataFailure("the standard input is empty. Pipe a table into it.")
    suffix = next((end for magic, end in _COMPRESSED.items() if first.startswith(magic)), "")
    handle, path = tempfile.mkstemp(suffix=f".{kind}{suffix}", prefix="arboost-input-")
    ctx.call_on_close(lambda: _remove(path))
    done = 0
    with open(handle, "wb") as file:
        while first:
            file.write(first)
            done += len(first)
            if progress is not None:
                progress(done, 0)
            first = stream.read(_INPUT_BLOCK_BYTES)
    ctx.meta[_META] = path
    return path


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
