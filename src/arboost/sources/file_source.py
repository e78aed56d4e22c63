"""Paths, patterns and folders -> `FileSource`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arboost.lazy import lazy_property
from arboost.sources.arrow import require_pyarrow
from arboost.sources.files import ArrowFile, DataFile, ParquetFile
from arboost.sources.paths import (
    TEXT_KINDS,
    Found,
    file_kind,
    find_files,
    partition_keys,
    paths_label,
)
from arboost.sources.schemas import as_schema, common_schema
from arboost.sources.source import Part, Source, has_fixed_size
from arboost.sources.text.csv_dialect import DELIMITERS
from arboost.sources.text.csv_files import CsvFile
from arboost.sources.text.json_files import JsonLinesFile

__all__ = ["BY_NAME", "FileFormat", "FileSource", "open_files"]

_READERS: dict[str, type[DataFile]] = {
    "parquet": ParquetFile,
    "arrow": ArrowFile,
    "jsonl": JsonLinesFile,
}


@dataclass(frozen=True)
class FileFormat:
    """Choices on how files are read, where their names and first lines do not tell it.

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
        """Return the kind of a file."""
        return file_kind(path)[0] if self.kind is None else self.kind

    def open(self, path: str, kind: str) -> DataFile:
        """Return a file of a kind."""
        if kind in DELIMITERS:
            return CsvFile.open(path, kind, self.delimiter, self.decimal)
        return _READERS[kind].open(path)


BY_NAME = FileFormat()


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
        self, label: str, files: Sequence[DataFile], schema: Any, keys: Sequence[dict[str, Any]]
    ) -> None:
        counts = [file.n_rows for file in files]
        n_rows = None if None in counts else sum(count for count in counts if count is not None)
        super().__init__(label, schema, n_rows, sum(file.n_bytes for file in files))
        self.files = tuple(files)
        self.keys = tuple(keys)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files, in the order of their rows."""
        return tuple(file.path for file in self.files)

    @property
    def reader_bytes(self) -> int:
        """Bytes that the reader of a file holds next to batches, those of the largest."""
        columns = self.arrow_schema.names
        return max((file.reader_bytes(columns) for file in self.files), default=0)

    @lazy_property
    def _text_bytes(self) -> Mapping[str, int]:
        """Bytes of a value of each column of no fixed size, in the first rows of three files."""
        found: dict[str, int] = {}
        if all(has_fixed_size(kind) for kind in self.arrow_schema.types):
            return found
        for number in {0, len(self.files) // 2, len(self.files) - 1}:
            file, keys = self.files[number], self.keys[number]
            fields = [field for field in self.arrow_schema if field.name not in keys]
            for name, size in file.text_bytes(_schema(fields)).items():
                found[name] = max(size, found.get(name, 0))
        return found

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        before = 0
        for file, keys in zip(self.files, self.keys, strict=True):
            file.check_unchanged()
            columns = [name for name in self.arrow_schema.names if name not in keys]
            for batch, n_bytes in file.read(columns, self.arrow_schema, batch_rows):
                table = as_schema(_add_keys(batch, keys), self.arrow_schema)
                yield Part(table, file.path, before + n_bytes)
            before += file.n_bytes


def _schema(fields: list[Any]) -> Any:
    import pyarrow

    return pyarrow.schema(fields)


def open_files(X: Any, columns: Sequence[str] | None, form: FileFormat = BY_NAME) -> FileSource:
    """Return the source of a path, a pattern, a folder or a list of them; see `find_files`."""
    require_pyarrow("Reading files")
    found = find_files(X, form.kind)
    kind = _one_kind(found) if form.kind is None else form.kind
    files = [form.open(file.path, kind) for file in found]
    keys = [
        {name: key for name, key in of_file.items() if name not in file.schema.names}
        for file, of_file in zip(files, partition_keys(found), strict=True)
    ]
    schema = common_schema(
        [(file.path, _with_keys(file, of_file)) for file, of_file in zip(files, keys, strict=True)],
        columns,
        promotes=kind in TEXT_KINDS,
    )
    return FileSource(paths_label(X), files, schema, keys)


def _one_kind(found: Sequence[Found]) -> str:
    """Return the kind of all files; raise ValueError where there are several."""
    first, _ = file_kind(found[0].path)
    for file in found:
        kind, _ = file_kind(file.path)
        if kind != first:
            raise ValueError(
                f"The files {found[0].path!r} ({first}) and {file.path!r} ({kind}) are of two "
                "kinds. Pass files of one kind."
            )
    return first


def _with_keys(file: DataFile, keys: dict[str, Any]) -> Any:
    """Return the schema of a file with its partition keys as the last columns."""
    import pyarrow

    return pyarrow.schema([*file.schema, *((name, key.type) for name, key in keys.items())])


def _add_keys(batch: Any, keys: dict[str, Any]) -> Any:
    """Return a record batch with its partition keys as the last columns."""
    if not keys:
        return batch
    import pyarrow

    columns = [pyarrow.repeat(key, batch.num_rows) for key in keys.values()]
    names = [*batch.schema.names, *keys]
    return pyarrow.RecordBatch.from_arrays([*batch.columns, *columns], names)
