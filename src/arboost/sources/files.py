"""Files of one kind -> batches, in the order of the files; checked before the first pass.

| kind | reader | in memory at a time |
|---|---|---|
| Parquet | `pyarrow.parquet.ParquetFile.iter_batches` | pages of one batch, never a row group |
| Arrow | `pyarrow.ipc` | one record batch of the file |
| CSV, TSV | `pyarrow.csv.open_csv` | a few blocks |
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arboost.sources.arrow import naming_file

__all__ = ["DataFile", "ParquetData"]

# Pages of a column are read through a buffer of this size: without one, PyArrow holds a whole row
# group. 28 columns of 10,000,000 rows take the same time with 64 kB and with 4 MB.
_BUFFER_BYTES = 1 << 18
_DAMAGED = "It may be damaged or incomplete: write it again, or leave it out."


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


class ParquetData(DataFile):
    """A Parquet file."""

    @classmethod
    def open(cls, path: str) -> ParquetData:
        """Return the file, whose footer is read."""
        from pyarrow.parquet import ParquetFile

        stamp = file_stamp(path)
        with naming_file(path, _DAMAGED), ParquetFile(path) as file:
            return cls(path, file.schema_arrow, file.metadata.num_rows, stamp)

    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield record batches; threads decode the columns."""
        from pyarrow.parquet import ParquetFile

        rows = 0
        with (
            naming_file(self.path, _DAMAGED),
            ParquetFile(self.path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file,
        ):
            for batch in file.iter_batches(batch_rows, columns=columns, use_threads=True):
                rows += batch.num_rows
                yield batch, self.n_bytes * rows // max(self.n_rows or 0, 1)
