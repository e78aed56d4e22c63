"""One file of JSON lines, maybe compressed -> record batches.

Blocks of whole lines are parsed one after the other, each by all threads. Types of the columns are
those of the first block; a key that a line lacks is a missing value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import IO, Any

from arboost.sources.arrow import check_encoding, naming_file
from arboost.sources.files import DAMAGED, DataFile, file_stamp
from arboost.sources.paths import compression_of

__all__ = ["JsonLinesFile", "json_blocks", "json_table"]

_BLOCK_BYTES = 1 << 22
_PARSED_BYTES = 1 << 20  # by a thread
_LONGEST_LINE = 1 << 28
_OTHER_TYPE = (
    "Each line must be one JSON object, and types are those of the first block of each file, of "
    "4 MB. Write the column in one form, or convert the file to Parquet."
)


class JsonLinesFile(DataFile):
    """A file with a JSON object in each line."""

    @classmethod
    def open(cls, path: str) -> JsonLinesFile:
        """Return the file, whose first block is read."""
        stamp = file_stamp(path)
        with naming_file(path, DAMAGED), _Opened(path) as stream:
            first = next(json_blocks(stream, None, path), None)
        if first is None:
            raise ValueError(f"The file {path!r} holds no JSON object. Write it again.")
        return cls(path, first.schema, None, stamp)

    def reader_bytes(self, columns: Collection[str]) -> int:
        """Return the bytes of a block, its lines, and what the parser makes of them."""
        return 4 * _BLOCK_BYTES

    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield record batches with the types of the schema."""
        import pyarrow

        types = pyarrow.schema([schema.field(name) for name in columns])
        with naming_file(self.path, _OTHER_TYPE), _Opened(self.path) as stream:
            for table in json_blocks(stream, types, self.path):
                for batch in table.combine_chunks().to_batches():
                    yield batch, min(stream.read_bytes, self.n_bytes)


class _Opened:
    """A binary stream of a file, decompressed, that counts the bytes of the file."""

    def __init__(self, path: str) -> None:
        import pyarrow

        self._raw = pyarrow.OSFile(path)
        compression = compression_of(path)
        self._stream: Any = self._raw
        if compression is not None:
            self._stream = pyarrow.CompressedInputStream(self._raw, compression)
        self.read_bytes = 0

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, n_bytes: int) -> bytes:
        """Return the next bytes; none at the end."""
        data: bytes = self._stream.read(n_bytes)
        self.read_bytes = self._raw.tell()
        return data


def json_blocks(stream: IO[bytes] | _Opened, schema: Any, name: str) -> Iterator[Any]:
    """Yield tables of the JSON objects of a stream, one for each block of lines.

    Parameters
    ----------
    stream : binary file
    schema : pyarrow.Schema or None
        Columns to read and their types; None for those of the first block.
    name : str
        Name of the file in messages.
    """
    pieces: list[bytes] = []  # of a line that has not ended
    line = 1
    while True:
        data = stream.read(_BLOCK_BYTES)
        if not pieces:  # the first block
            check_encoding(data, name)
        end = data.rfind(b"\n") + 1
        if data and not end:
            pieces.append(data)
            _check_line(pieces, name, line)
            continue
        block = b"".join([*pieces, data[:end]])
        pieces = [data[end:]]
        if block.strip():
            table = json_table(block, schema, name, first_line=line)
            schema = table.schema if schema is None else schema
            yield table
        line += block.count(b"\n")
        if not data:
            return


def _check_line(pieces: list[bytes], name: str, line: int) -> None:
    """Raise ValueError for a line without an end that is an array, or too long."""
    if b"".join(piece[:64] for piece in pieces[:2]).lstrip().startswith(b"["):
        raise ValueError(
            f"The file {name!r} has a list in line {line}. Each line must be one JSON object: "
            "convert the file, for example with jq -c '.[]'."
        )
    if sum(map(len, pieces)) > _LONGEST_LINE:
        raise ValueError(
            f"The file {name!r} has more than {_LONGEST_LINE >> 20} MiB in line {line}. Each line "
            "must be one JSON object, of one row: convert the file, for example with jq -c."
        )


def json_table(data: bytes, schema: Any, name: str, *, first_line: int = 1) -> Any:
    """Return the table of JSON lines; raise ValueError with the line that cannot be read."""
    import pyarrow
    from pyarrow import json

    parse = None
    if schema is not None:
        parse = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    size = _PARSED_BYTES
    while True:
        read = json.ReadOptions(block_size=size)
        try:
            table = json.read_json(pyarrow.BufferReader(data), read, parse)
        except pyarrow.ArrowInvalid as error:
            if "straddl" in str(error) and size < len(data):  # a line longer than a block
                size = min(16 * size, len(data))
                continue
            raise ValueError(_json_message(data, name, first_line, error)) from error
        return table if schema is None else table.select(schema.names)


def _json_message(data: bytes, name: str, first_line: int, error: Exception) -> str:
    """Return the message for JSON lines that PyArrow refused: the line, where one is malformed."""
    import json

    for number, line in enumerate(data.split(b"\n"), first_line):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except UnicodeDecodeError as bad:
            return (
                f"The file {name!r} is not UTF-8 in line {number}, column {bad.start + 1}. Save it "
                "as UTF-8."
            )
        except ValueError as bad:
            column = getattr(bad, "colno", 1)
            reason = getattr(bad, "msg", str(bad))
            return (
                f"The file {name!r} is malformed in line {number}, column {column}: {reason}. Each "
                "line must be one JSON object."
            )
        if not isinstance(value, dict):
            kind = type(value).__name__
            return (
                f"The file {name!r} has a {kind} in line {number}. Each line must be one JSON "
                "object."
            )
    mixed = _mixed_types(data, first_line)
    if mixed:
        return f"The file {name!r} has {mixed}. Write the values of a key with one type."
    cause = str(error).partition("\n")[0].rstrip(".")
    return f"The file {name!r} cannot be read: {cause}. {_OTHER_TYPE}"


_KINDS = {bool: "a truth value", int: "a number", float: "a number", str: "a string"}


def _mixed_types(data: bytes, first_line: int) -> str:
    """Return the first key whose values are of two types, with their lines; "" for none."""
    import json

    seen: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(data.split(b"\n"), first_line):
        row = json.loads(line) if line.strip() else {}
        for key, value in row.items():
            if value is None:
                continue
            kind = _KINDS.get(type(value), "an object or list")
            known, first = seen.setdefault(key, (kind, number))
            if kind != known:
                return f"{kind} in line {number}, key {key!r}, but {known} in line {first}"
    return ""
