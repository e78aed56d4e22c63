"""Streams and queries -> `StreamSource`: read once into a file without a name, then from there.

A stream can be read only once. A query could run again, but a parallel one may then return the same
rows in another order, so it runs once, too.
"""

from __future__ import annotations

import io
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from arboost.sources.arrow import require_pyarrow
from arboost.sources.schemas import as_schema, selected
from arboost.sources.source import Part, Source

__all__ = ["OnceSource", "StreamSource", "is_stream", "open_stream"]

_STORED_ROWS = 1 << 16  # of a record batch, which is read as a whole


def is_stream(X: object) -> bool:
    """Whether X is a RecordBatchReader of PyArrow, a LazyFrame of Polars or a DuckDB relation."""
    return _is_of(X, "pyarrow", "RecordBatchReader") or _is_query(X)


def open_stream(
    X: Any, columns: Sequence[str] | None, scratch: str | None, *, once: bool = False
) -> Source:
    """Return the source of a stream or query; for one pass only (`once`) nothing is stored."""
    require_pyarrow("Reading a query" if _is_query(X) else "Reading a stream")
    label, schema, batches = _batches(X, columns)
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
            yield Part(as_schema(batch, self.arrow_schema), self.label, 0)


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

        reader = _Reader(self._file, self._lock)
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
            rows = as_schema(batch, schema)
            for start in range(0, rows.num_rows, _STORED_ROWS):
                writer.write_batch(rows.slice(start, _STORED_ROWS))
        n_bytes = file.tell()  # without the end of the stream, which no pass reads
    file.flush()
    return n_rows, n_bytes


class _Reader(io.RawIOBase):
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


def _batches(X: Any, columns: Sequence[str] | None) -> tuple[str, Any, Iterable[Any]]:
    """Return label, columns and record batches of a stream or query."""
    if _is_of(X, "polars", "LazyFrame"):
        return _of_lazy_frame(X, columns)
    if _is_of(X, "duckdb", "DuckDBPyRelation"):
        return _of_relation(X, columns)
    import pyarrow

    label = "the RecordBatchReader"
    names = selected(columns, X.schema.names, label)
    return label, pyarrow.schema([X.schema.field(name) for name in names]), X


def _of_lazy_frame(X: Any, columns: Sequence[str] | None) -> tuple[str, Any, Iterable[Any]]:
    if not hasattr(X, "collect_batches"):
        raise ImportError(
            "A LazyFrame is read in batches by Polars 1.34 or later, but an older version is "
            "installed. Install a newer one, or write the query to a file: X.sink_parquet(path)."
        )
    label = "the LazyFrame"
    names = selected(columns, X.collect_schema().names(), label)
    X = X.select(names)
    frames = X.collect_batches(chunk_size=_STORED_ROWS, maintain_order=True, engine="streaming")
    batches = (batch for frame in frames for batch in frame.to_arrow().to_batches())
    return label, X.collect_schema().to_frame().to_arrow().schema, batches


def _of_relation(X: Any, columns: Sequence[str] | None) -> tuple[str, Any, Iterable[Any]]:
    label = "the DuckDB relation"
    names = selected(columns, X.columns, label)
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
