"""Whole text files -> a table; a malformed file is an error with its line and column.

PyArrow reads a whole file with all threads and finds the type of a column from all of its values.
Its messages have no line, so a file that it refuses is searched for the fault.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from arboost.cli.errors import DataFailure
from arboost.cli.input.csv_faults import check_text, csv_fault, not_utf8

if TYPE_CHECKING:
    from arboost.sources.file_source import FileFormat, FileSource
    from arboost.sources.text.csv_files import CsvFile

__all__ = ["check_file", "explain_fault", "read_text_files"]

_BLOCK_BYTES = 1 << 22


def read_text_files(source: FileSource, like: Any, progress: Callable[[int, int], None]) -> Any:
    """Return the rows of CSV, TSV or JSON lines files as one table."""
    import pyarrow

    from arboost.sources.schemas import as_schema, common_schema
    from arboost.sources.text.csv_files import CsvFile

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
    from arboost.sources.arrow import naming_file, open_bytes
    from arboost.sources.files import DAMAGED
    from arboost.sources.text.json_files import json_table

    with naming_file(path, DAMAGED), open_bytes(path) as file:
        data = file.read()
    table = json_table(data, None, path)
    return table.select([name for name in columns if name in table.column_names])


def check_file(path: str) -> None:
    """Raise ValueError for a file that is no text."""
    from arboost.sources.arrow import naming_file, open_bytes
    from arboost.sources.files import DAMAGED, file_stamp

    with naming_file(path, DAMAGED):
        file_stamp(path)
        with open_bytes(path) as text:
            check_text(text, path)


def explain_fault(paths: Sequence[str], form: FileFormat, cause: str) -> None:
    """Raise DataFailure with line and column of the fault of the file that `cause` names."""
    from arboost.sources.arrow import open_bytes
    from arboost.sources.text.csv_dialect import DELIMITERS, find_dialect

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

    from arboost.sources.arrow import open_bytes
    from arboost.sources.paths import compression_of
    from arboost.sources.text.csv_dialect import check_decimals
    from arboost.sources.text.csv_files import conversion

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
