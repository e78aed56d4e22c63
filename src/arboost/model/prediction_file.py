"""Record batches -> a file of any kind: Parquet, Arrow, CSV, TSV or JSON lines."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Iterable
from typing import Any, BinaryIO

from arboost.sources.paths import file_kind
from arboost.sources.schemas import as_schema
from arboost.write import remove_orphans, replaced_file, write_errors

__all__ = ["write_batches"]


def write_batches(
    batches: Iterable[Any],
    schema: Any,
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    escape_formulas: bool = False,
) -> int:
    """Write record batches to a file; return the number of rows.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    schema : pyarrow.Schema
    path : str or path-like
        File to write; a failure leaves the file that was there before.
    kind : str, optional
        Kind of the file; that of its name by default.
    escape_formulas : bool
        Whether texts and names of CSV and TSV files are kept from being formulas of spreadsheets.
    """
    if escape_formulas:
        batches = map(_without_formulas, batches)
        schema = _without_formulas(schema.empty_table()).schema
    remove_orphans(path)
    name = os.fsdecode(path)
    n_rows = 0
    with replaced_file(path) as file:
        sink = _Sink(file, path)
        writer = _Writer(sink, schema, *(file_kind(name) if kind is None else (kind, None)))
        try:
            for batch in batches:
                writer.write(as_schema(batch, schema))
                n_rows += batch.num_rows
        except BaseException:
            sink.is_dropped = True
            raise
        finally:
            writer.close()
    return n_rows


def _without_formulas(batch: Any) -> Any:
    """Return a batch with an apostrophe before texts and names that begin like formulas."""
    import pyarrow.compute as pc
    from pyarrow import types

    columns = [
        pc.replace_substring_regex(column, r"\A([=+\-@\t\r])", r"'\1")
        if types.is_string(column.type) or types.is_large_string(column.type)
        else column
        for column in batch.columns
    ]
    names = [re.sub(r"\A([=+\-@\t\r])", r"'\1", name) for name in batch.schema.names]
    return type(batch).from_arrays(columns, names)


class _Sink(io.RawIOBase):
    """A file that PyArrow writes to, but does not close."""

    def __init__(self, file: BinaryIO, path: str | os.PathLike[str]) -> None:
        self._file = file
        self._path = path
        self.is_dropped = False  # whether the rest, such as a footer, need not be written

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.is_dropped:
            with write_errors(self._path):
                self._file.write(data)
        return len(data)


class _Writer:
    """Writer of record batches: Parquet, Arrow, CSV, TSV or JSON lines."""

    def __init__(self, sink: _Sink, schema: Any, kind: str, compression: str | None) -> None:
        import pyarrow
        from pyarrow import csv, parquet, types

        self._stream = pyarrow.PythonFile(sink, "w")
        if compression is not None:
            self._stream = pyarrow.CompressedOutputStream(self._stream, compression)
        if kind == "parquet":
            # Floats hardly ever repeat: a dictionary of them would take most of the time.
            texts = [field.name for field in schema if not types.is_floating(field.type)]
            self._writer = parquet.ParquetWriter(self._stream, schema, use_dictionary=texts)
        elif kind == "arrow":
            lz4 = "lz4" if pyarrow.Codec.is_available("lz4") else None
            options = pyarrow.ipc.IpcWriteOptions(compression=lz4)
            self._writer = pyarrow.ipc.new_file(self._stream, schema, options=options)
        elif kind == "jsonl":
            self._writer = _JsonLines(self._stream)
        else:
            delimiter = "\t" if kind == "tsv" else ","
            options = csv.WriteOptions(delimiter=delimiter)
            self._writer = csv.CSVWriter(self._stream, schema, write_options=options)

    def write(self, batch: Any) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Write the rest of the file."""
        self._writer.close()
        self._stream.close()


class _JsonLines:
    """Writer of one JSON object a row; numbers that are not finite are null."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write_batch(self, batch: Any) -> None:
        lines = [
            json.dumps({name: _json_value(one) for name, one in row.items()}, ensure_ascii=False)
            for row in batch.to_pylist()
        ]
        self._stream.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Nothing is left to write."""


def _json_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
