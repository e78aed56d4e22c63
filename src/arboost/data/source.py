"""Source: rows that need not fit in memory, in batches, as often as a consumer asks.

    open_source(X) --> Source --batches(65536)--> Batch, Batch, Batch     pass 1
                              --batches(65536)--> Batch, Batch, Batch     pass 2, the same rows

X is paths, a dataset of PyArrow, a stream or query, or an iterable of batches. The next batch is
read in the background while the consumer works on the last one: two batches are in memory, and
the buffers of the reader of the files.
"""

from __future__ import annotations

import io
import sys
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any, ClassVar, NamedTuple, TypeVar, cast

from arboost.backend import lazy_property
from arboost.data import files, text_files
from arboost.data.files import DataFile
from arboost.errors import InputTypeError, SchemaError
from arboost.params.suggestions import did_you_mean
from arboost.workers import Share

_COLUMN_BYTES = 500_000  # that a reader holds for a column


def is_source(X: object) -> bool:
    """Whether X stands for rows that need not be in memory, and `open_source` takes it.

    Tables, arrays and lists of rows are in memory, and no sources. A `Share` is one: the rows of
    one worker.
    """
    return isinstance(X, Share) or has_columns(X) or is_iterable(X)


def has_columns(X: object) -> bool:
    """Whether X is a source with named columns, of which `open_source` reads a selection."""
    return files.is_paths(X) or is_table_files(X) or is_dataset(X) or is_stream(X)


def is_table_files(X: object) -> bool:
    """Whether X is an `arboost.TableFiles`."""
    return _is_of(X, "arboost.data.table_files", "TableFiles")


def open_source(
    X: Any,
    columns: Sequence[str] | None = None,
    *,
    scratch: str | None = None,
    once: bool = False,
) -> Source:
    """Restartable batches of X, whose files are checked first.

    Parameters
    ----------
    X : str, path-like or list of them
        Parquet, Arrow, Feather, CSV, TSV or JSON lines files, patterns such as "data/*.parquet",
        or folders, whose hive partition keys are columns.
    X : arboost.TableFiles
    X : pyarrow.dataset.Dataset
    X : pyarrow.RecordBatchReader, polars.LazyFrame or DuckDB relation
        It is read once, into a temporary file.
    X : iterable
        Object whose ``__iter__`` starts again, or function without arguments that returns an
        iterator, of tables or of tuples (X, y) or (X, y, weight).
    columns : sequence of str, optional
        Columns to read, in this order; not for iterables, which select their own.
    scratch : str, optional
        Folder of the temporary file of a stream or query.
    once : bool, default=False
        Whether there is one pass only: a stream or query is then not stored, and generators are
        iterables like others.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        A file cannot be read; as SchemaError, where files have different columns.
    TypeError
        X is not a source.
    """
    if files.is_paths(X):
        return open_files(X, columns)
    if is_table_files(X):
        source: Source = (X if columns is None else X.select(columns)).source
        return source
    if is_dataset(X):
        return DatasetSource(X, columns)
    if is_stream(X):
        return open_stream(X, columns, scratch, once=once)
    if is_iterable(X):
        if columns is not None:
            raise ValueError(
                f"columns={list(columns)!r} is not allowed with an iterable of batches. Select the "
                "columns in the iterable."
            )
        return IterableSource(X, once=once)
    raise InputTypeError(
        f"X is a {type(X).__name__}, which is not a source of batches. Pass paths, a dataset or "
        "query of PyArrow, Polars or DuckDB, or an iterable of batches that starts again."
    )


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a source.

    Attributes
    ----------
    table : pyarrow.RecordBatch, or the object that the user's iterable yields
    first_row, n_rows : int
        Position of the rows in the source.
    file : str
        Name of their file, or of the source, for messages.
    bytes_read : int
        Bytes of the source that have been read by now; 0 where the source has no size.
    """

    table: Any
    first_row: int
    n_rows: int
    file: str
    bytes_read: int


class Part(NamedTuple):
    """Rows as a kind of source reads them: a table, its file, and the bytes read by now."""

    table: Any
    file: str
    bytes_read: int


class Source(ABC):
    """Restartable batches of rows; made by `open_source`.

    Parameters
    ----------
    label : str
        Name of the source in messages.
    arrow_schema : pyarrow.Schema or None
        Columns of all batches; None for iterables, whose batches are of any type.
    n_rows, n_bytes : int or None
        Number of rows, and of bytes on disk, where they are known before the first pass. After a
        whole pass, the number of rows is known.

    Attributes
    ----------
    paths : tuple of str
        Paths of the files, in the order of their rows; empty where there are none.
    """

    _READS_AHEAD: ClassVar[bool] = True
    paths: tuple[str, ...] = ()

    def __init__(
        self, label: str, arrow_schema: Any, n_rows: int | None = None, n_bytes: int | None = None
    ) -> None:
        self.label = label
        self.arrow_schema = arrow_schema
        self.n_rows = n_rows
        self.n_bytes = n_bytes

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns; None for iterables."""
        return None if self.arrow_schema is None else tuple(self.arrow_schema.names)

    @property
    def row_bytes(self) -> int | None:
        """Bytes of a row in memory, about; None for iterables."""
        if self.arrow_schema is None:
            return None
        measured = self._text_bytes
        return sum(
            max(files.type_bytes(field.type), measured.get(field.name, 0))
            for field in self.arrow_schema
        )

    @property
    def reader_bytes(self) -> int:
        """Bytes that the reader holds next to batches, about; 0 for iterables."""
        return 0 if self.arrow_schema is None else _COLUMN_BYTES * len(self.arrow_schema)

    @property
    def _text_bytes(self) -> Mapping[str, int]:
        """Bytes of a value of columns of strings and lists, as far as they are measured."""
        return {}

    def batches(self, batch_rows: int) -> Iterator[Batch]:
        """Yield all rows from the first on, at most `batch_rows` of them at a time.

        Objects of a user's iterable are not divided. Empty ones are left out.

        Raises
        ------
        ValueError
            A file cannot be read, or the number of rows is not that of the pass before.
        """
        first = 0
        parts = self._parts(batch_rows)
        with closing(read_ahead(parts) if self._READS_AHEAD else parts) as tables:
            for part in tables:
                for table in self._slices(part.table, batch_rows):
                    n_rows = row_count(table)
                    yield Batch(table, first, n_rows, part.file, part.bytes_read)
                    first += n_rows
        if self.n_rows is not None and first != self.n_rows:
            raise ValueError(
                f"{self.label} had {self.n_rows:,} rows, but {first:,} when it was read again. "
                "Each pass must give the same rows in the same order."
            )
        self.n_rows = first

    @abstractmethod
    def _parts(self, batch_rows: int) -> Any:
        """A generator of parts, from the first row on."""

    def _slices(self, table: Any, batch_rows: int) -> Iterator[Any]:
        """Yield a table in parts of at most `batch_rows` rows, none of them empty."""
        for start in range(0, table.num_rows, batch_rows):
            whole = table.num_rows <= batch_rows
            yield table if whole else table.slice(start, batch_rows)


def row_count(table: Any) -> int:
    """Number of rows of a table; that of X for a tuple (X, y) or (X, y, weight)."""
    if isinstance(table, tuple):
        return row_count(table[0])
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    if hasattr(table, "shape"):
        return int(table.shape[0])
    if isinstance(table, dict):
        return len(next(iter(table.values()), ()))
    return len(table)


# ---- files ----


_READERS: dict[str, type[DataFile]] = {
    "parquet": files.ParquetFile,
    "arrow": files.ArrowFile,
    "jsonl": text_files.JsonLinesFile,
}


@dataclass(frozen=True)
class FileFormat:
    """Choices on how files are read whose names and first lines do not show it.

    Attributes
    ----------
    kind : str or None
        Kind of all files; None for those of their names.
    delimiter, decimal : str or None
        Delimiter and decimal mark of CSV and TSV files; see `CsvDialect`.
    """

    kind: str | None = None
    delimiter: str | None = None
    decimal: str | None = None

    def kind_of(self, path: str) -> str:
        """Kind of a file."""
        return files.file_kind(path)[0] if self.kind is None else self.kind

    def open(self, path: str, kind: str) -> DataFile:
        """A file of a kind."""
        if kind in text_files.DELIMITERS:
            return text_files.CsvFile.open(path, kind, self.delimiter, self.decimal)
        return _READERS[kind].open(path)


BY_NAME = FileFormat()


def open_files(X: Any, columns: Sequence[str] | None, form: FileFormat = BY_NAME) -> FileSource:
    """Source of a path, a pattern, a folder or a list of them; see `find_files`."""
    files.require_pyarrow("Reading files")
    import pyarrow

    paths = files.find_files(X, form.kind)
    kind = _one_kind(paths) if form.kind is None else form.kind
    opened = [form.open(file.path, kind) for file in paths]
    keys, schemas = [], []
    for file, keys_of_file in zip(opened, files.partition_keys(paths), strict=True):
        new_keys = {
            name: key for name, key in keys_of_file.items() if name not in file.schema.names
        }
        fields = [(name, key.type) for name, key in new_keys.items()]
        keys.append(new_keys)
        schemas.append((file.path, pyarrow.schema([*file.schema, *fields])))
    schema = files.common_schema(schemas, columns, promotes=kind in files.TEXT_KINDS)
    return FileSource(files.paths_label(X), opened, schema, keys)


def _one_kind(paths: Sequence[files.DataPath]) -> str:
    """Kind of all files; raise ValueError where there are several."""
    kinds = [files.file_kind(file.path)[0] for file in paths]
    for file, kind in zip(paths, kinds, strict=True):
        if kind != kinds[0]:
            raise ValueError(
                f"The files {paths[0].path!r} ({kinds[0]}) and {file.path!r} ({kind}) are of two "
                "kinds. Pass files of one kind."
            )
    return kinds[0]


def _add_keys(batch: Any, keys: dict[str, Any]) -> Any:
    """A record batch with its partition keys as the last columns."""
    if not keys:
        return batch
    import pyarrow

    columns = [pyarrow.repeat(key, batch.num_rows) for key in keys.values()]
    names = [*batch.schema.names, *keys]
    return pyarrow.RecordBatch.from_arrays([*batch.columns, *columns], names)


class FileSource(Source):
    """Rows of files.

    Parameters
    ----------
    label : str
    files : sequence of DataFile
    schema : pyarrow.Schema
        Columns of the batches, partition keys included.
    keys : sequence of dict of str to pyarrow.Scalar
        Partition keys of each file by name.
    """

    def __init__(
        self,
        label: str,
        files: Sequence[files.DataFile],
        schema: Any,
        keys: Sequence[dict[str, Any]],
    ) -> None:
        counts = [file.n_rows for file in files]
        n_rows = None if None in counts else sum(count for count in counts if count is not None)
        super().__init__(label, schema, n_rows, sum(file.n_bytes for file in files))
        self.files = tuple(files)
        self.keys = tuple(keys)
        self.paths = tuple(file.path for file in files)

    @property
    def reader_bytes(self) -> int:
        """Bytes that the reader of a file holds next to batches, those of the largest."""
        columns = self.arrow_schema.names
        return max((file.reader_bytes(columns) for file in self.files), default=0)

    @lazy_property
    def _text_bytes(self) -> Mapping[str, int]:
        """Bytes of a value of each column of no fixed size, in the first rows of three files."""
        import pyarrow

        sizes: dict[str, int] = {}
        if all(files.has_fixed_size(kind) for kind in self.arrow_schema.types):
            return sizes
        for number in {0, len(self.files) // 2, len(self.files) - 1}:
            file, keys = self.files[number], self.keys[number]
            fields = [field for field in self.arrow_schema if field.name not in keys]
            for name, size in file.text_bytes(pyarrow.schema(fields)).items():
                sizes[name] = max(size, sizes.get(name, 0))
        return sizes

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        before = 0
        for file, keys in zip(self.files, self.keys, strict=True):
            file.check_unchanged()
            columns = [name for name in self.arrow_schema.names if name not in keys]
            for batch, n_bytes in file.read(columns, self.arrow_schema, batch_rows):
                table = files.as_schema(_add_keys(batch, keys), self.arrow_schema)
                yield Part(table, file.path, before + n_bytes)
            before += file.n_bytes


# ---- datasets of PyArrow ----


def is_dataset(X: object) -> bool:
    """Whether X is a dataset of PyArrow."""
    return _is_of(X, "pyarrow.dataset", "Dataset")


class DatasetSource(Source):
    """Rows of a dataset; its filter and its types apply.

    PyArrow decodes row groups of Parquet files as a whole, about two of them at a time.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    columns : sequence of str, or None for all
    """

    def __init__(self, dataset: Any, columns: Sequence[str] | None) -> None:
        import pyarrow

        label = f"the {type(dataset).__name__}"
        names = files.selected(columns, dataset.schema.names, label)
        sizes: dict[str, int] = {}
        for part in _with_files(dataset):
            _check_columns(part, names)
            infos = part.filesystem.get_file_info(part.files)
            sizes |= {info.path: int(info.size or 0) for info in infos}
        schema = pyarrow.schema([dataset.schema.field(name) for name in names])
        super().__init__(label, schema, None, sum(sizes.values()) if sizes else None)
        self._dataset = dataset
        self._sizes = sizes
        self.paths = tuple(sizes)

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        scanner = self._dataset.scanner(
            columns=self.arrow_schema.names,
            batch_size=batch_rows,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=_scan_options(self._dataset),
        )
        done: set[str] = set()  # files that have been begun
        with files.file_errors(self.label, "Check its files."):
            for tagged in scanner.scan_batches():
                file = getattr(tagged.fragment, "path", self.label)
                done.add(file)
                n_bytes = sum(self._sizes.get(path, 0) for path in done)
                yield Part(tagged.record_batch, file, n_bytes)


def _with_files(dataset: Any) -> list[Any]:
    """Datasets of files in a dataset, which may be a union of several."""
    if hasattr(dataset, "children"):
        return [part for child in dataset.children for part in _with_files(child)]
    return [dataset] if hasattr(dataset, "files") else []


def _check_columns(dataset: Any, names: Sequence[str]) -> None:
    """Raise SchemaError for a file without a column, which PyArrow would fill with nulls."""
    partitioning = getattr(dataset, "partitioning", None)
    keys = [] if partitioning is None else partitioning.schema.names
    for path in dataset.files:
        with files.file_errors(path, files.DAMAGED):
            fragment = dataset.format.make_fragment(path, dataset.filesystem)
            file_names = fragment.physical_schema.names
        for name in names:
            if name not in file_names and name not in keys:
                raise SchemaError(
                    f"The file {path!r} has no column {name!r}, which the dataset has."
                    f"{did_you_mean(name, file_names)} All files must have the columns to read: "
                    "write it again, or leave it out."
                )


def _scan_options(dataset: Any) -> Any:
    """Options by which local Parquet files are read page by page; None for all others.

    Other file systems answer few large requests faster than many small ones.
    """
    from pyarrow import dataset as arrow_dataset
    from pyarrow import fs

    is_parquet = isinstance(getattr(dataset, "format", None), arrow_dataset.ParquetFileFormat)
    if not is_parquet or not isinstance(dataset.filesystem, fs.LocalFileSystem):
        return None
    return arrow_dataset.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=files.BUFFER_BYTES, pre_buffer=False
    )


# ---- streams and queries ----


_STORED_ROWS = 1 << 16  # of a record batch, which is read as a whole


def is_stream(X: object) -> bool:
    """Whether X is a RecordBatchReader of PyArrow, a LazyFrame of Polars or a DuckDB relation."""
    return _is_of(X, "pyarrow", "RecordBatchReader") or _is_query(X)


def open_stream(
    X: Any, columns: Sequence[str] | None, scratch: str | None, *, once: bool = False
) -> Source:
    """Source of a stream or query; for one pass only (`once`) nothing is stored."""
    files.require_pyarrow("Reading a query" if _is_query(X) else "Reading a stream")
    if _is_of(X, "polars", "LazyFrame"):
        label, schema, batches = _of_lazy_frame(X, columns)
    elif _is_of(X, "duckdb", "DuckDBPyRelation"):
        label, schema, batches = _of_relation(X, columns)
    else:
        import pyarrow

        label, batches = "the RecordBatchReader", X
        names = files.selected(columns, X.schema.names, label)
        schema = pyarrow.schema([X.schema.field(name) for name in names])
    schema = schema.remove_metadata()
    if once:
        return OnceSource(label, schema, batches)
    return StreamSource(label, schema, batches, scratch)


class OnceSource(Source):
    """Rows of a stream, for one pass.

    Parameters
    ----------
    label : str
    schema : pyarrow.Schema
        Columns to read.
    batches : iterable of pyarrow.RecordBatch
    """

    def __init__(self, label: str, schema: Any, batches: Iterable[Any]) -> None:
        super().__init__(label, schema)
        self._batches = batches

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        for batch in self._batches:
            yield Part(files.as_schema(batch, self.arrow_schema), self.label, 0)


class StreamSource(Source):
    """Rows of a stream, stored in a temporary file.

    The file has no name: the system deletes it with the source, and when the process is killed.

    Parameters
    ----------
    label : str
    schema : pyarrow.Schema
        Columns to store.
    batches : iterable of pyarrow.RecordBatch
    scratch : str or None
        Folder of the file; None is that of temporary files.
    """

    def __init__(
        self, label: str, schema: Any, batches: Iterable[Any], scratch: str | None
    ) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        try:
            n_rows, n_bytes = _store(batches, schema, self._file)
        except OSError as error:
            if error.errno is None:
                raise
            folder = tempfile.gettempdir() if scratch is None else scratch
            raise type(error)(
                error.errno,
                f"{label} cannot be stored in the folder {folder!r}: {error.strerror}. Choose a "
                "folder with more space",
            ) from error
        super().__init__(label, schema, n_rows, n_bytes)

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        import pyarrow

        reader = _FileView(self._file, self._lock)
        with pyarrow.ipc.open_stream(pyarrow.PythonFile(reader, "r")) as stream:
            for batch in stream:
                yield Part(batch, self.label, reader.tell())


def _store(batches: Iterable[Any], schema: Any, file: IO[bytes]) -> tuple[int, int]:
    """Write record batches in Arrow's stream format; return their number of rows and bytes."""
    import pyarrow

    n_rows = 0
    with pyarrow.ipc.new_stream(pyarrow.PythonFile(file, "w"), schema) as writer:
        for batch in batches:
            n_rows += batch.num_rows
            rows = files.as_schema(batch, schema)
            for start in range(0, rows.num_rows, _STORED_ROWS):
                writer.write_batch(rows.slice(start, _STORED_ROWS))
        n_bytes = file.tell()  # without the end of the stream, which no pass reads
    file.flush()
    return n_rows, n_bytes


class _FileView(io.RawIOBase):
    """A position of its own in a file that several passes share."""

    def __init__(self, file: IO[bytes], lock: threading.Lock) -> None:
        self._file = file
        self._lock = lock
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._lock:
            self._file.seek(self._position)
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position


def _of_lazy_frame(X: Any, columns: Sequence[str] | None) -> tuple[str, Any, Iterable[Any]]:
    if not hasattr(X, "collect_batches"):
        raise ImportError(
            "A LazyFrame is read in batches by Polars 1.34 or later, but an older version is "
            "installed. Install a newer one, or write the query to a file: X.sink_parquet(path)."
        )
    label = "the LazyFrame"
    names = files.selected(columns, X.collect_schema().names(), label)
    X = X.select(names)
    frames = X.collect_batches(chunk_size=_STORED_ROWS, maintain_order=True, engine="streaming")
    batches = (batch for frame in frames for batch in frame.to_arrow().to_batches())
    return label, X.collect_schema().to_frame().to_arrow().schema, batches


def _of_relation(X: Any, columns: Sequence[str] | None) -> tuple[str, Any, Iterable[Any]]:
    label = "the DuckDB relation"
    names = files.selected(columns, X.columns, label)
    if columns is not None:
        quoted = ('"' + name.replace('"', '""') + '"' for name in names)
        X = X.project(", ".join(quoted))
    read = getattr(X, "to_arrow_reader", None) or X.fetch_arrow_reader  # its name until DuckDB 1.3
    stream = read(_STORED_ROWS)
    return label, stream.schema, stream


def _is_query(X: object) -> bool:
    return _is_of(X, "polars", "LazyFrame") or _is_of(X, "duckdb", "DuckDBPyRelation")


def _is_of(X: object, module: str, name: str) -> bool:
    """Whether X is of a class of a package, which is not imported for it."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(X, kind)


# ---- iterables ----


# A table, array or series has one of these.
_OF_TABLES = (
    "__array__",
    "__array_interface__",
    "__arrow_c_array__",
    "__arrow_c_stream__",
    "__cuda_array_interface__",
    "__dataframe__",
    "__dlpack__",
    "__getitem__",
    "shape",
)


def is_iterable(X: Any) -> bool:
    """Whether X is an iterable or a function, but no table in memory."""
    if isinstance(X, type | str | bytes | Mapping | Sequence | Set):
        return False
    if any(hasattr(X, name) for name in _OF_TABLES):
        return False
    return hasattr(X, "__iter__") or callable(X)


class IterableSource(Source):
    """Batches of a user's iterable: tables of any type, or tuples (X, y) or (X, y, weight).

    They are computed in the thread of the caller, one at a time. A generator can be read only
    `once`.
    """

    _READS_AHEAD: ClassVar[bool] = False

    def __init__(
        self, X: Iterable[Any] | Callable[[], Iterable[Any]], *, once: bool = False
    ) -> None:
        if hasattr(X, "__next__") and not once:
            raise InputTypeError(
                f"X is a {type(X).__name__}, whose batches can be read only once, but training "
                "reads them twice. Pass the function that returns it, without calling it, or an "
                "object whose __iter__ starts again."
            )
        super().__init__(f"the {type(X).__name__}", None)
        self._start = X if not hasattr(X, "__iter__") else lambda: iter(X)

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        for number, table in enumerate(self._start()):
            yield Part(table, f"batch {number} of {self.label}", 0)

    def _slices(self, table: Any, batch_rows: int) -> Iterator[Any]:
        if row_count(table):
            yield table


# ---- reading ahead ----


T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield the items; a thread computes the next one while the caller works on the last one.

    One item at most waits for the caller, and the thread begins with the next one only when that
    is taken. Closing the generator, or an error of the caller, ends the thread before it returns;
    errors of `items` are raised in the caller. Ctrl-C may come between any two steps: the thread
    ends with the generator.
    """
    reader, end = ThreadPoolExecutor(1, "arboost-reader"), cast(Any, object())
    try:
        waiting = reader.submit(next, items, end)
        while (taken := [waiting.result()])[0] is not end:
            waiting = reader.submit(next, items, end)
            yield taken.pop()  # the caller has the only reference
    finally:
        if hasattr(items, "close"):  # a generator, closed in the thread that ran it
            reader.submit(items.close)
        reader.shutdown()
