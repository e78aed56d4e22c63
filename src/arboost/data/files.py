"""Paths -> files in one order, and their record batches of one schema."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from arboost.errors import InputError, SchemaError, listing, needs_packages
from arboost.params.suggestions import did_you_mean

# ---- paths ----

# Suffix -> kind of file; those of text may also be compressed.
FORMATS = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
TEXT_KINDS = ("csv", "tsv", "jsonl")
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}

_SHOWN_PATHS = 3


@dataclass(frozen=True)
class DataPath:
    """A file, and the folder below which the names of its folders are partition keys."""

    path: str
    base: str


def is_path(X: object) -> bool:
    """Whether X is the path of a file or folder, or a pattern."""
    return isinstance(X, str | os.PathLike)


def is_paths(X: object) -> bool:
    """Whether X is a path or a list of paths."""
    return is_path(X) or (isinstance(X, list | tuple) and bool(X) and all(map(is_path, X)))


def paths_label(X: Any) -> str:
    """Name of paths in messages."""
    if is_path(X):
        return repr(os.fsdecode(X))
    shown = [repr(os.fsdecode(path)) for path in X[:_SHOWN_PATHS]]
    more = f" and {len(X) - _SHOWN_PATHS} more" if len(X) > _SHOWN_PATHS else ""
    return ", ".join(shown) + more


def find_files(X: Any, kind: str | None = None) -> list[DataPath]:
    """Files of a path, pattern, folder or list of them, in the order of their rows.

    With a kind, the names of the files need not tell it.

    Raises
    ------
    FileNotFoundError
        No file has the path, matches the pattern, or is in the folder.
    ValueError
        The suffix of a file is unknown, or a file is there twice.
    """
    paths = [os.fsdecode(path) for path in ([X] if is_path(X) else X)]
    files = [file for path in paths for file in _expand(os.path.expanduser(path), kind)]
    if len(paths) > 1:
        base = os.path.commonpath([os.path.dirname(os.path.abspath(file.path)) for file in files])
        files = [DataPath(file.path, base) for file in files]
    counts = Counter(os.path.realpath(file.path) for file in files)
    for path, count in counts.items():
        if count > 1:
            raise ValueError(
                f"The file {path!r} is there twice, so its rows would be, too. Pass each file once."
            )
    return files


def file_kind(path: str) -> tuple[str, str | None]:
    """Kind of a file, and its compression or None; raise ValueError if unknown."""
    kind, compression = FORMATS.get(_suffix(path)), compression_of(path)
    if kind is None or (compression is not None and kind not in TEXT_KINDS):
        raise InputError(
            f"The file {path!r} is of an unknown kind: its name must end in one of "
            f"{', '.join(FORMATS)}, or for text also in {' or '.join(COMPRESSED)} after that.",
            "Rename the file, or pass a pyarrow.dataset.Dataset.",
            parameter="format",
        )
    return kind, compression


def _suffix(path: str) -> str:
    """Suffix of a name that tells the kind of the file, before that of a compression."""
    stem, suffix = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if suffix in COMPRESSED else suffix


def compression_of(path: str) -> str | None:
    """Compression of a file by its name, or None."""
    return COMPRESSED.get(os.path.splitext(path.lower())[1])


def partition_keys(files: Sequence[DataPath]) -> list[dict[str, Any]]:
    """Hive partition keys of each file by name, as scalars of PyArrow.

    They are in the names of folders, such as year=2024. Keys are integers where all of them can
    be, and strings otherwise.
    """
    below = [os.path.relpath(os.path.dirname(file.path) or ".", file.base or ".") for file in files]
    names = [
        [folder.partition("=")[0] for folder in folders.split(os.sep) if "=" in folder]
        for folders in below
    ]
    known = dict.fromkeys(name for file_keys in names for name in file_keys)
    if not known:
        return [{} for _ in files]
    import pyarrow
    from pyarrow import dataset  # takes a tenth of a second: it imports pandas

    reader = dataset.HivePartitioning(pyarrow.schema([(name, pyarrow.string()) for name in known]))
    keys = [
        dataset.get_partition_keys(reader.parse(folders.replace(os.sep, "/") + "/"))
        for folders in below
    ]
    typed = {name: _key_column([file_keys.get(name) for file_keys in keys]) for name in known}
    return [{name: typed[name][i] for name in file_keys} for i, file_keys in enumerate(names)]


def _key_column(keys: Sequence[str | None]) -> Any:
    """Partition keys as an array of the first type that takes all of them."""
    import pyarrow

    column = pyarrow.array(keys, pyarrow.string())
    for kind in (pyarrow.int32(), pyarrow.int64()):
        with contextlib.suppress(pyarrow.ArrowInvalid):
            return column.cast(kind)
    return column


def _expand(path: str, kind: str | None) -> list[DataPath]:
    """Files of one path, pattern or folder."""
    if os.path.isdir(path):
        return _in_folder(path, path)
    if os.path.exists(path):
        if kind is None:
            file_kind(path)
        return [DataPath(path, os.path.dirname(path))]
    if "://" in path:
        raise InputError(
            f"{path!r} is an address, but only local files are read by path.",
            "Pass a pyarrow.dataset.Dataset, which reads from file systems of other machines.",
            parameter="path",
        )
    if not glob.has_magic(path):
        raise FileNotFoundError(f"There is no file or folder {path!r}. Check the path.")
    matches = sorted(glob.glob(path, recursive=True), key=_natural)
    base = os.path.dirname(path)
    while glob.has_magic(base):  # the folder before the first wildcard
        base = os.path.dirname(base)
    files: list[DataPath] = []
    for match in matches:
        if os.path.isdir(match):
            # "**" matches a folder and also the files in it.
            files += [] if "**" in path else _in_folder(match, base)
        else:
            if kind is None:
                file_kind(match)
            files.append(DataPath(match, base))
    if not files:
        raise FileNotFoundError(f"No file matches the pattern {path!r}. Check the pattern.")
    return files


def _in_folder(folder: str, base: str) -> list[DataPath]:
    """Files of known kinds in a folder, and in the folders below it."""
    paths = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        paths += [
            os.path.join(parent, name)
            for name in names
            if _suffix(name) in FORMATS and not name.startswith((".", "_"))
        ]
    if not paths:
        raise FileNotFoundError(
            f"The folder {folder!r} has no file whose name ends in one of {', '.join(FORMATS)}. "
            "Check the path; names that begin with a dot or an underscore are left out."
        )
    return [DataPath(path, base) for path in sorted(paths, key=_natural)]


def _natural(path: str) -> list[tuple[Any, ...]]:
    """A sort key by which part2 comes before part10, folder by folder."""
    return [
        tuple((1, int(piece), piece) if piece.isdecimal() else (0, 0, piece) for piece in pieces)
        for pieces in (re.split(r"(\d+)", name) for name in path.split(os.sep))
    ]


# ---- errors and encodings ----

# Byte order marks; UTF-32 before UTF-16, whose mark is the begin of its own.
_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_UTF16_WITHOUT_MARK = re.compile(rb"(?:[^\0]\0){2}|(?:\0[^\0]){2}")


def require_pyarrow(asked: str) -> None:
    """Raise MissingPackageError where PyArrow is not installed."""
    with needs_packages("files", asked):
        import pyarrow  # noqa: F401


class UnreadableFileError(InputError):
    """A file that PyArrow refuses, with its path and the cause in the words of PyArrow."""

    path = cause = ""

    @classmethod
    def of(cls, path: str, cause: str, advice: str, parameter: str | None = None) -> Self:
        """Error of a file."""
        error = cls(f"The file {path!r} cannot be read: {cause}.", advice, parameter=parameter)
        error.path, error.cause = path, cause
        return error


@contextmanager
def file_errors(path: str, advice: str, *, parameter: str | None = None) -> Iterator[None]:
    """Raise errors of PyArrow as InputError with the name of the file and advice.

    Errors of the operating system keep their type, and memory errors are not of the file.
    """
    import pyarrow

    try:
        yield
    except MemoryError:
        raise
    except UnicodeDecodeError as error:
        raise UnreadableFileError.of(path, "invalid UTF8 data", "Save it as UTF-8.") from error
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        cause = first_line(error)
        if isinstance(error, OSError) and error.errno is not None:
            raised = type(error)(f"The file {path!r} cannot be read: {cause}.")
            vars(raised)["category"] = "data"
            raise raised from error
        raise UnreadableFileError.of(path, cause, advice, parameter) from error


def first_line(error: object) -> str:
    """First line of a message of PyArrow, without its full stop."""
    return str(error).partition("\n")[0].rstrip(".")


def open_bytes(path: str) -> Any:
    """A binary file object of a file, decompressed by its name."""
    import pyarrow

    return pyarrow.input_stream(path, compression=compression_of(path))


def decompressed(raw: Any, path: str) -> Any:
    """A file object of PyArrow, decompressed by the name of the file."""
    import pyarrow

    compression = compression_of(path)
    return raw if compression is None else pyarrow.CompressedInputStream(raw, compression)


def check_encoding(head: bytes, path: str) -> None:
    """Raise ValueError for a text file whose first bytes are those of UTF-16 or UTF-32."""
    name = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if name is None and _UTF16_WITHOUT_MARK.match(head):
        name = "UTF-16LE" if head[0] else "UTF-16BE"
    if name is not None:
        raise ValueError(
            f"The file {path!r} is in {name}, but text files are read as UTF-8. Convert it, for "
            f"example with iconv -f {name} -t UTF-8, or save it as CSV UTF-8 in a spreadsheet."
        )


# ---- schemas of several files ----


def common_schema(
    files: Iterable[tuple[str, Any]], columns: Sequence[str] | None, *, promotes: bool = False
) -> Any:
    """Columns that all files have, with their types.

    Names and their order are those of `columns`, or of the first file. Columns without a value
    (type null) take the type of other files. Strings and dictionaries of different layouts have
    one type: the values are the same.

    Parameters
    ----------
    files : iterable of (name, pyarrow.Schema)
    columns : sequence of str, or None for all
    promotes : bool
        Whether int64 and double become double: types of text files are guessed.

    Raises
    ------
    SchemaError
        A file has not the columns of the first one, or has one of another type.
    """
    import pyarrow

    types: dict[str, Any] = {}
    origin: dict[str, str] = {}
    first = ""
    for name, schema in files:
        if not types:
            first = name
            names = selected(columns, schema.names, f"the file {name!r}")
            types = {column: schema.field(column).type for column in names}
            origin = dict.fromkeys(types, name)
            continue
        _check_names(name, schema.names, first, types, columns)
        for column, known in types.items():
            file_type = schema.field(column).type
            joined = _joined(known, file_type, promotes=promotes)
            if joined is None:
                raise SchemaError(
                    f"The column {column!r} is of type {file_type} in the file {name!r}, but of "
                    f"type {known} in {origin[column]!r}.",
                    "Write it with one type in all files, or leave it out by `columns`.",
                    parameter="columns",
                )
            if not joined.equals(known):
                types[column], origin[column] = joined, name
    return pyarrow.schema(list(types.items()))


def selected(columns: Sequence[str] | None, names: Sequence[str], owner: str) -> list[str]:
    """Names of the columns to read; raise SchemaError for those that are not there."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise SchemaError(
            f"Several columns of {owner} have the name {twice[0]!r}. Each column must have a name "
            "of its own: rename or drop columns."
        )
    if columns is None:
        return list(names)
    for column in columns:
        if column not in names:
            raise SchemaError(
                f"There is no column {column!r} in {owner}, whose columns are "
                f"{listing(map(repr, names))}.{did_you_mean(column, names)}"
            )
    return list(dict.fromkeys(columns))


def as_schema(batch: Any, schema: Any) -> Any:
    """Columns of a record batch in the order and with the types of a schema."""
    if batch.schema.equals(schema):
        return batch
    import pyarrow

    columns = [batch.column(batch.schema.get_field_index(name)) for name in schema.names]
    arrays = [
        column if column.type.equals(kind) else column.cast(kind)
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _check_names(
    name: str, names: Sequence[str], first: str, known: Iterable[str], columns: object
) -> None:
    known = list(known)
    missing = [column for column in known if column not in names]
    extra = [column for column in names if column not in known] if columns is None else []
    if missing:
        raise SchemaError(
            f"The file {name!r} has no column {missing[0]!r}, which {first!r} has."
            f"{did_you_mean(missing[0], names)} All files must have the same columns.",
            "Write it again, or name the columns that all have in `columns`.",
            parameter="columns",
        )
    if extra:
        raise SchemaError(
            f"The file {name!r} has the column {extra[0]!r}, which {first!r} has not. All files "
            "must have the same columns.",
            "Write it again, or name the columns to read in `columns`.",
            parameter="columns",
        )


def _joined(known: Any, other: Any, *, promotes: bool) -> Any:
    """Type for the values of two, or None where they are of different kinds."""
    import pyarrow
    from pyarrow import types

    if other.equals(known) or types.is_null(other):
        return known
    if types.is_null(known):
        return other
    if types.is_dictionary(known) and types.is_dictionary(other):
        values = _joined(known.value_type, other.value_type, promotes=False)
        return None if values is None else pyarrow.dictionary(pyarrow.int32(), values)
    if _is_text(known) and _is_text(other):
        return pyarrow.large_string()
    numbers = (pyarrow.int64(), pyarrow.float64())
    if promotes and known in numbers and other in numbers:
        return pyarrow.float64()
    return None


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or getattr(types, "is_string_view", types.is_string)(kind)
    )


# ---- one file ----

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
        """File, of which no more is read than its columns and number of rows."""

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.stamp[0]

    def reader_bytes(self, columns: Collection[str]) -> int:
        """Bytes that the reader holds next to batches of some columns, about."""
        return 0

    def text_bytes(self, schema: Any) -> dict[str, int]:
        """Bytes of a value of columns of no fixed size, those of the first rows."""
        names = [field.name for field in schema if not has_fixed_size(field.type)]
        if not names:
            return {}
        for batch, _ in self.read(names, schema, _MEASURED_ROWS):
            rows = batch.slice(0, _MEASURED_ROWS)
            return {name: rows.column(name).nbytes // max(1, rows.num_rows) for name in names}
        return {}

    def check_unchanged(self) -> None:
        """Raise ValueError where the file is another one than when the source was opened."""
        with file_errors(self.path, "It was there when the source was opened."):
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
    """Size and time of the last change of a file; raise ValueError for an empty file."""
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
        """Sizes of one chunk: a buffer, a dictionary, stored and decoded, and a page."""
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
        """File, whose footer is read."""
        from pyarrow import parquet

        stamp = file_stamp(path)
        with file_errors(path, DAMAGED), parquet.ParquetFile(path) as file:
            pages = _column_pages(file.metadata)
            return cls(path, file.schema_arrow, file.metadata.num_rows, stamp, pages)

    def reader_bytes(self, columns: Collection[str]) -> int:
        """Bytes of buffers, pages and dictionaries of some columns."""
        return sum(self.pages[name].held for name in columns if name in self.pages)

    def text_bytes(self, schema: Any) -> dict[str, int]:
        """Bytes of a value: the first rows', or those of the row group with the most."""
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
            file_errors(self.path, DAMAGED),
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
    """Sizes of each column, the largest of all row groups."""
    leaves: dict[str, ColumnPages] = {}
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            pages_of_chunk = ColumnPages.of(chunk, group.num_rows)
            known = leaves.setdefault(chunk.path_in_schema, pages_of_chunk)
            leaves[chunk.path_in_schema] = ColumnPages(*map(max, known, pages_of_chunk))
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
        """File, whose schema is read, and the headers of its record batches."""
        stamp = file_stamp(path)
        with file_errors(path, DAMAGED), _ipc_reader(path, stamp[0]) as reader:
            n_rows = reader.count_rows() if hasattr(reader, "count_rows") else None
            return cls(path, reader.schema, n_rows, stamp)

    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield the record batches of the file."""
        with file_errors(self.path, DAMAGED), _ipc_reader(self.path, self.n_bytes) as reader:
            if not hasattr(reader, "num_record_batches"):  # a stream
                for batch in reader:
                    yield batch.select(columns), 0
                return
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number).select(columns)
                yield batch, self.n_bytes * (number + 1) // reader.num_record_batches


def _ipc_reader(path: str, n_bytes: int) -> Any:
    """A reader of the record batches of an IPC file, or of one that holds a stream."""
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


_STRING_BYTES = 16  # at least


def has_fixed_size(kind: Any) -> bool:
    """Whether all values of a type of PyArrow have the same size."""
    try:
        return bool(kind.bit_width)
    except ValueError:
        return False


def type_bytes(kind: Any) -> int:
    """Bytes of a value, of strings and lists the least."""
    return max(1, int(kind.bit_width) // 8) if has_fixed_size(kind) else _STRING_BYTES
