"""One Parquet or Arrow file -> record batches.

Of a Parquet file one batch is in memory: small row groups as a whole, or the pages of a part of a
large one. Of an Arrow file it is one of its record batches.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from arboost.sources.arrow import naming_file
from arboost.sources.source import has_fixed_size

__all__ = ["BUFFER_BYTES", "DAMAGED", "ArrowFile", "DataFile", "ParquetFile", "file_stamp"]

# Pages of a column are read through a buffer of this size: without one, PyArrow holds a whole row
# group. 28 columns of 10,000,000 rows take the same time with 64 kB and with 4 MB.
BUFFER_BYTES = 1 << 18
_PAGE_BYTES = 200_000  # of 20,000 rows, as PyArrow writes them
_DICTIONARY_BYTES = 1 << 20
_MEASURED_ROWS = 256  # whose strings are measured
_IPC_MAGIC = b"ARROW1"  # at the beginning of a file, but not of a stream
# Record batches above this size, of Polars for example, are mapped instead of read.
_MAPPED_BYTES = 1 << 25
DAMAGED = "It may be damaged or incomplete: write it again, or leave it out."


@dataclass(frozen=True)
class DataFile(ABC):
    """One file of a source, as it was when the source was opened.

    Attributes
    ----------
    path : str
    schema : pyarrow.Schema
        Columns in the file, without partition keys.
    n_rows : int or None
        Number of rows, where the file says it.
    stamp : tuple of int
        Size in bytes, and time of the last change.
    """

    path: str
    schema: Any
    n_rows: int | None
    stamp: tuple[int, int]

    @classmethod
    @abstractmethod
    def open(cls, path: str) -> DataFile:
        """Return the file, of which no more is read than its columns and number of rows."""

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.stamp[0]

    def reader_bytes(self, columns: Collection[str]) -> int:
        """Return the bytes that the reader holds next to batches of some columns, about."""
        return 0

    def text_bytes(self, schema: Any) -> dict[str, int]:
        """Return the bytes of a value of columns of no fixed size, those of the first rows."""
        names = [field.name for field in schema if not has_fixed_size(field.type)]
        if not names:
            return {}
        for batch, _ in self.read(names, schema, _MEASURED_ROWS):
            rows = batch.slice(0, _MEASURED_ROWS)
            return {name: rows.column(name).nbytes // max(1, rows.num_rows) for name in names}
        return {}

    def check_unchanged(self) -> None:
        """Raise ValueError where the file is another one than when the source was opened."""
        with naming_file(self.path, "It was there when the source was opened."):
            now = file_stamp(self.path)
        if now != self.stamp:
            raise ValueError(
                f"The file {self.path!r} has changed since the source was opened. Start again, and "
                "leave the files alone until the end."
            )

    @abstractmethod
    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield record batches of some columns, in any order, and the bytes read by now.

        Types are those of the file; a text file reads them as those of a schema.
        """


def file_stamp(path: str) -> tuple[int, int]:
    """Return size and time of the last change of a file; raise ValueError for an empty file."""
    status = os.stat(path)
    if status.st_size == 0:
        raise ValueError(
            f"The file {path!r} is empty: it has 0 bytes. Write it again, or delete it."
        )
    return status.st_size, status.st_mtime_ns


class ColumnPages(NamedTuple):
    """Sizes of a column of a Parquet file: of what its reader holds, and of a value."""

    held: int
    value: int

    @classmethod
    def of(cls, chunk: Any, n_rows: int) -> ColumnPages:
        """Return the sizes of one chunk: a buffer, a dictionary, stored and decoded, and a page."""
        raw, stored = chunk.total_uncompressed_size, chunk.total_compressed_size
        has_dictionary = chunk.has_dictionary_page or "RLE_DICTIONARY" in chunk.encodings
        held = min(BUFFER_BYTES, stored) + min(_PAGE_BYTES, raw)
        held += 2 * min(_DICTIONARY_BYTES, raw) if has_dictionary else 0
        return cls(held, raw // n_rows if n_rows >= _MEASURED_ROWS else 0)


@dataclass(frozen=True)
class ParquetFile(DataFile):
    """A Parquet file.

    Attributes
    ----------
    pages : dict of str to ColumnPages
        The largest sizes of each column, those of nested ones added up.
    """

    pages: dict[str, ColumnPages]

    @classmethod
    def open(cls, path: str) -> ParquetFile:
        """Return the file, whose footer is read."""
        from pyarrow import parquet

        stamp = file_stamp(path)
        with naming_file(path, DAMAGED), parquet.ParquetFile(path) as file:
            pages = _column_pages(file.metadata)
            return cls(path, file.schema_arrow, file.metadata.num_rows, stamp, pages)

    def reader_bytes(self, columns: Collection[str]) -> int:
        """Return the bytes of buffers, pages and dictionaries of some columns."""
        return sum(self.pages[name].held for name in columns if name in self.pages)

    def text_bytes(self, schema: Any) -> dict[str, int]:
        """Return the bytes of a value: the first rows', or those of the row group with the most."""
        first = super().text_bytes(schema)
        return {
            name: max(size, self.pages[name].value if name in self.pages else 0)
            for name, size in first.items()
        }

    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield record batches; threads decode the columns."""
        from pyarrow import parquet

        rows = 0
        with (
            naming_file(self.path, DAMAGED),
            parquet.ParquetFile(self.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file,
        ):
            for groups, n_rows in _whole_groups(file.metadata, batch_rows):
                if n_rows <= batch_rows:  # a third faster than parts of row groups
                    batches = iter(file.read_row_groups(groups, columns=columns).to_batches())
                else:
                    part_rows = -(-n_rows // -(-n_rows // batch_rows))
                    batches = file.iter_batches(part_rows, groups, columns)
                for batch in batches:
                    rows += batch.num_rows
                    yield batch, self.n_bytes * rows // max(self.n_rows or 0, 1)
                    del batch


def _column_pages(footer: Any) -> dict[str, ColumnPages]:
    """Return the sizes of each column, the largest of all row groups."""
    leaves: dict[str, ColumnPages] = {}
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            found = ColumnPages.of(chunk, group.num_rows)
            known = leaves.setdefault(chunk.path_in_schema, found)
            leaves[chunk.path_in_schema] = ColumnPages(*map(max, known, found))
    columns: dict[str, ColumnPages] = {}
    for path, pages in leaves.items():
        name = path.partition(".")[0]
        before = columns.get(path) or columns.get(name) or ColumnPages(0, 0)
        columns[name] = ColumnPages(before.held + pages.held, before.value + pages.value)
        columns.setdefault(path, pages)  # a name may have a point
    return columns


def _whole_groups(footer: Any, batch_rows: int) -> Iterator[tuple[list[int], int]]:
    """Yield consecutive row groups that fit a batch, or one that is larger, and their rows."""
    groups: list[int] = []
    n_rows = 0
    for group in range(footer.num_row_groups):
        size = footer.row_group(group).num_rows
        if groups and n_rows + size > batch_rows:
            yield groups, n_rows
            groups, n_rows = [], 0
        groups.append(group)
        n_rows += size
    if groups:
        yield groups, n_rows


class ArrowFile(DataFile):
    """A file in Arrow's IPC format, of which Feather is one; also a stream of record batches."""

    @classmethod
    def open(cls, path: str) -> ArrowFile:
        """Return the file, whose schema is read, and the headers of its record batches."""
        stamp = file_stamp(path)
        with naming_file(path, DAMAGED), _ipc_reader(path, stamp[0]) as reader:
            n_rows = reader.count_rows() if hasattr(reader, "count_rows") else None
            return cls(path, reader.schema, n_rows, stamp)

    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield the record batches of the file."""
        with naming_file(self.path, DAMAGED), _ipc_reader(self.path, self.n_bytes) as reader:
            if not hasattr(reader, "num_record_batches"):  # a stream
                for batch in reader:
                    yield batch.select(columns), 0
                return
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number).select(columns)
                yield batch, self.n_bytes * (number + 1) // reader.num_record_batches


def _ipc_reader(path: str, n_bytes: int) -> Any:
    """Return a reader of the record batches of an IPC file, or of one that holds a stream."""
    import pyarrow

    with open(path, "rb") as file:
        is_stream = file.read(len(_IPC_MAGIC)) != _IPC_MAGIC
    if is_stream:
        return pyarrow.ipc.open_stream(pyarrow.OSFile(path))
    reader = pyarrow.ipc.open_file(pyarrow.OSFile(path))
    if n_bytes // max(reader.num_record_batches, 1) <= _MAPPED_BYTES:
        return reader
    try:
        return pyarrow.ipc.open_file(pyarrow.memory_map(path))
    except OSError:  # no room in a limited address space
        return reader
