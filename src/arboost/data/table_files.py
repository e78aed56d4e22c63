"""Files of rows as a public object: their columns, and their rows as one table or in batches.

PyArrow reads a whole text file with all threads and finds the type of a column from all of its
values. Its messages have no line, so a file that it refuses is searched for the fault.
"""

from __future__ import annotations

import copy
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from arboost.data import files, text_files
from arboost.data.csv_faults import check_text, csv_fault, not_utf8
from arboost.data.source import FileFormat, FileSource, Part, open_files
from arboost.data.text_files import DELIMITERS, CsvFile, JsonLinesFile
from arboost.errors import ParameterError

if TYPE_CHECKING:
    from arboost.data.schema import Schema

Progress = Callable[[int, int], None]

_BLOCK_BYTES = 1 << 22
_BATCH_BYTES = 1 << 27  # of a batch, about
_MOST_ROWS, _FEWEST_ROWS = 1 << 20, 1 << 14  # of a batch
_TEXT_FACTOR = 1.5  # bytes in memory for a byte of text
_RATIO = 6.0  # of compressed text


class TableFiles:
    r"""Files of rows: names and types of their columns, and their rows as a table or in batches.

    Every function that takes paths of files takes this object as well, with its choice of
    delimiter and decimal mark. Needs the package pyarrow.

    Parameters
    ----------
    paths : str, path-like or list of them
        Parquet, Arrow, Feather, CSV, TSV or JSON lines files, patterns such as "data/*.parquet",
        or folders, whose hive partition keys are columns.
    columns : sequence of str, optional
        Columns to read, in this order; all by default.
    format : {"csv", "tsv", "parquet", "arrow", "jsonl"}, optional
        Format of the files, if their names do not show it.
    delimiter : str, optional
        Character between the columns of CSV and TSV files; found in the first line by default.
    decimal : {".", ","}, optional
        Decimal mark in CSV and TSV files. By default points are read, and columns of numbers with
        decimal commas are an error.
    like : Predictor or EnsemblePredictor, optional
        Columns of text files are read with the types of the columns of this model: a file of few
        rows cannot tell them.
    types : mapping of str to {"number", "string"}, optional
        Types of further columns of text files.

    Examples
    --------
    >>> import arboost, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "prices.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("size;price\n1,5;300\n2,0;410\n")
    >>> files = arboost.TableFiles(path, decimal=",")
    >>> files.read().to_pydict()
    {'size': [1.5, 2.0], 'price': [300, 410]}
    >>> folder.cleanup()
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        columns: Sequence[str] | None = None,
        *,
        format: str | None = None,  # noqa: A002  # as in the names of files
        delimiter: str | None = None,
        decimal: str | None = None,
        like: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        files.require_pyarrow("TableFiles")
        self._form = FileFormat(format, delimiter, decimal)
        self._is_typed = False
        for file in files.find_files(paths, format):
            _check_dialect(self._form, file.path)
            if self._form.kind_of(file.path) in files.TEXT_KINDS:
                with files.file_errors(file.path, files.DAMAGED):
                    files.file_stamp(file.path)
                    with files.open_bytes(file.path) as text:
                        check_text(text, file.path)
        with _located_faults(self._form):
            source = open_files(paths, columns, self._form)
        self.source = _LocatedSource(source, source.arrow_schema, self._form)
        self._set_types(like, types)

    @staticmethod
    def format_of(path: str | os.PathLike[str]) -> str:
        """Format of a file by its name; raise ValueError if the name does not show it."""
        return files.file_kind(os.fsdecode(path))[0]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def schema(self) -> Any:
        """Columns and their types; those of text files are the types of their first block."""
        return self.source.arrow_schema

    @property
    def paths(self) -> tuple[str, ...]:
        """Files, in the order of their rows."""
        return self.source.paths

    @property
    def n_bytes(self) -> int:
        """Size of the files."""
        return self.source.n_bytes or 0

    @property
    def table_bytes(self) -> float:
        """Size of the table in memory, an estimate."""
        if self.source.n_rows is not None:
            return float(self.source.n_rows * (self.source.row_bytes or 0))
        is_compressed = files.compression_of(self.paths[0]) is not None
        return self.n_bytes * _TEXT_FACTOR * (_RATIO if is_compressed else 1.0)

    @property
    def unusual_delimiters(self) -> dict[str, str]:
        """Delimiters that were found in first lines and are not those of the kind of file.

        They are texts for messages, by path.
        """
        if self._form.delimiter is not None:
            return {}
        return {
            file.path: text_files.delimiter_text(file.dialect.delimiter)
            for file in self.source.files
            if isinstance(file, CsvFile)
            and file.dialect.delimiter != DELIMITERS[self._form.kind_of(file.path)]
        }

    def select(
        self,
        columns: Sequence[str],
        *,
        like: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> TableFiles:
        """The same files with some of their columns, and types as those of a model."""
        import pyarrow

        source, chosen = self.source, copy.copy(self)
        names = files.selected(columns, self.names, source.label)
        schema = pyarrow.schema([self.schema.field(name) for name in names])
        chosen.source = _LocatedSource(source, schema, self._form)
        chosen._set_types(like, types)
        return chosen

    def read(self, progress: Progress | None = None) -> Any:
        """Read all rows as a table of PyArrow.

        `progress` is called with the bytes read so far and those of all files.

        Raises
        ------
        ValueError
            A file is malformed; the message has line and column of the fault.
        """
        import pyarrow

        progress = progress or (lambda n_read, n_bytes: None)
        if self._form.kind_of(self.paths[0]) in files.TEXT_KINDS:
            return self._read_text(progress)
        batches = []
        for batch in self.source.batches(self._batch_rows):
            progress(batch.bytes_read, self.n_bytes)
            batches.append(batch.table)
        return pyarrow.Table.from_batches(batches, self.schema)

    def batches(self, progress: Progress | None = None) -> Any:
        """Stream of record batches, a ``pyarrow.RecordBatchReader``, for one pass."""
        import pyarrow

        def tables() -> Iterator[Any]:
            for batch in self.source.batches(self._batch_rows):
                if progress is not None:
                    progress(batch.bytes_read, self.n_bytes)
                yield batch.table

        return pyarrow.RecordBatchReader.from_batches(self.schema, tables())

    @property
    def _batch_rows(self) -> int:
        """Rows of a batch, so that a batch of wide rows fits in memory, too."""
        n_bytes: int = max(self.source.row_bytes or 0, 1)
        return max(min(_BATCH_BYTES // n_bytes, _MOST_ROWS), _FEWEST_ROWS)

    def _set_types(self, like: Any, types: Mapping[str, str] | None) -> None:
        """Read columns of text files as those of a model, and with further types."""
        kinds = {} if like is None else _column_kinds(like)
        kinds |= types or {}
        first = self.source.files[0]
        if not kinds or isinstance(first, files.ParquetFile | files.ArrowFile):
            return
        if isinstance(first, JsonLinesFile):  # it tells strings from numbers itself
            texts = [field.name for field in self.schema if field.type == "string"]
            kinds = {
                name: kind for name, kind in kinds.items() if kind == "number" and name not in texts
            }
        import pyarrow

        fields = [
            (field.name, _typed(field.type, kinds.get(field.name, ""))) for field in self.schema
        ]
        self.source = _LocatedSource(self.source, pyarrow.schema(fields), self._form)
        self._is_typed = True

    def _read_text(self, progress: Progress) -> Any:
        """Rows of CSV, TSV or JSON lines files as one table."""
        import pyarrow

        source, tables, n_before = self.source, [], 0
        columns = [name for name in self.names if name not in source.keys[0]]
        types = {field.name: field.type for field in self.schema} if self._is_typed else {}
        for file, keys in zip(source.files, source.keys, strict=True):
            if isinstance(file, CsvFile):
                with _CountedFile(file.path, n_before, self.n_bytes, progress) as counted:
                    table = _read_csv(counted, file, columns, types)
            else:
                with (
                    files.file_errors(file.path, files.DAMAGED),
                    files.open_bytes(file.path) as opened,
                ):
                    table = text_files.json_table(opened.read(), None, file.path)
                table = table.select([name for name in columns if name in table.column_names])
            for name, key in keys.items():
                table = table.append_column(name, pyarrow.repeat(key, table.num_rows))
            tables.append(table)
            n_before += file.n_bytes
        if len(tables) == 1:
            return tables[0]
        schemas = [
            (file.path, table.schema) for file, table in zip(source.files, tables, strict=True)
        ]
        schema = files.common_schema(schemas, self.names, promotes=True)
        batches = [
            files.as_schema(batch, schema) for table in tables for batch in table.to_batches()
        ]
        return pyarrow.Table.from_batches(batches, schema)


class _LocatedSource(FileSource):
    """Rows of files; the fault of a CSV file that PyArrow refuses is located in it."""

    def __init__(self, source: FileSource, schema: Any, form: FileFormat) -> None:
        super().__init__(source.label, source.files, schema, source.keys)
        self.form = form

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        with _located_faults(self.form):
            yield from super()._parts(batch_rows)


@contextmanager
def _located_faults(form: FileFormat) -> Iterator[None]:
    """Find line and column of the fault of a CSV file that PyArrow refuses."""
    try:
        yield
    except files.UnreadableFileError as error:
        path = error.path
        kind = form.kind_of(path)
        if kind in DELIMITERS:
            dialect = text_files.find_dialect(path, kind, form.delimiter, form.decimal)
            fault = csv_fault(path, dialect, error.cause, {})
            if fault is not None:
                raise fault from error
        raise


def _check_dialect(form: FileFormat, path: str) -> None:
    """Raise ValueError for a dialect of a file that has none."""
    kind = form.kind_of(path)
    for name, value in (("delimiter", form.delimiter), ("decimal", form.decimal)):
        if value is not None and kind not in DELIMITERS:
            raise ParameterError(
                f"{name}={value!r} is for CSV and TSV files, but {path!r} is of kind {kind}.",
                "Leave it out.",
                parameter=name,
            )


def _column_kinds(model: Any) -> dict[str, str]:
    """Either "number" or "string" for the columns of a model; "" for times.

    An ensemble keeps the names of its columns, and its members the rest.
    """
    members: Mapping[str, Any] = getattr(model, "members", {})
    if members:
        return {
            name: kind
            for member in members.values()
            for name, kind in _column_kinds(member).items()
        }
    schema: Schema = model.schema
    kinds = {}
    for feature, name in enumerate(schema.names or ()):
        levels = schema.levels_of(feature)
        kind = "number" if levels is None else levels.kind
        kinds[name] = "" if schema.unit_of(feature) else kind
    return kinds | dict.fromkeys(schema.offset or (), "number")


def _typed(kind: Any, wanted_kind: str) -> Any:
    """Type of a column that a model has as numbers or strings.

    Numbers are decimals even if the first rows are integers; a category of strings holds strings
    even if all of them look like numbers.
    """
    import pyarrow

    # A string among numbers is then an error with its line, and no other kind of column.
    if wanted_kind == "number" and kind in (pyarrow.int64(), pyarrow.null(), pyarrow.string()):
        return pyarrow.float64()
    return pyarrow.string() if wanted_kind == "string" else kind


def _read_csv(stream: Any, file: CsvFile, columns: Sequence[str], types: dict[str, Any]) -> Any:
    """Table of an open CSV or TSV file, which is read again after an error."""
    import pyarrow
    from pyarrow import csv

    path, dialect = file.path, file.dialect

    def read(source: Any, *, newlines: bool) -> Any:
        return csv.read_csv(
            source,
            csv.ReadOptions(block_size=_BLOCK_BYTES),
            csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=newlines),
            text_files.conversion(dialect, types, columns),
        )

    try:
        table = read(files.decompressed(pyarrow.PythonFile(stream, "r"), path), newlines=False)
    except (pyarrow.ArrowException, OSError, EOFError, ValueError) as error:
        fault = csv_fault(path, dialect, str(error), types)
        if fault is not None:
            raise fault from error
        with files.open_bytes(
            path
        ) as source:  # quoted values with line breaks, which are rare and slower
            table = read(source, newlines=True)
    for column in table.columns:
        if pyarrow.types.is_binary(column.type) or pyarrow.types.is_large_binary(column.type):
            raise not_utf8(path, dialect)
    text_files.check_decimals(table, dialect, path)
    return table


class _CountedFile(io.RawIOBase):
    """A file that reports the number of bytes read so far."""

    def __init__(self, path: str, n_before: int, total: int, progress: Progress) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by `close`
        self._n_bytes, self._total = n_before, total
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_bytes = self._file.readinto(buffer) or 0
        self._n_bytes += n_bytes
        self._progress(self._n_bytes, self._total)
        return n_bytes

    def close(self) -> None:
        self._file.close()
        super().close()
