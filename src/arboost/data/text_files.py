"""CSV, TSV and JSON lines files, maybe compressed -> record batches."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arboost.data import files
from arboost.errors import InputError, warn_caller

# ---- dialects of CSV files ----

DELIMITERS = {"csv": ",", "tsv": "\t"}  # by kind of file
_USUAL = ",;\t|"
_HEAD_BYTES = 1 << 16
_QUOTED = re.compile(rb'"(?:[^"]|"")*"?')
_LINE_BREAKS = re.compile(rb"[\r\n]+")
_WITH_COMMA = r"^[+-]?([0-9]+|[0-9]{1,3}([.][0-9]{3})+)(,[0-9]+)?([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class CsvDialect:
    """Characters with a meaning in a CSV file.

    Attributes
    ----------
    delimiter : str
        Character between two columns.
    decimal : str or None
        Decimal mark, "." or ","; None where nobody chose it: points are then read, and columns of
        numbers with commas are an error.
    """

    delimiter: str = ","
    decimal: str | None = None

    @property
    def decimal_point(self) -> str:
        """Decimal mark of the values."""
        return "." if self.decimal is None else self.decimal


def find_dialect(
    path: str, kind: str, delimiter: str | None = None, decimal: str | None = None
) -> CsvDialect:
    """Dialect of a file of kind "csv" or "tsv"; a given delimiter is not questioned.

    Raises
    ------
    ValueError
        The file is in UTF-16 or UTF-32.
    """
    with files.open_bytes(path) as file:
        head: bytes = file.read(_HEAD_BYTES)
    files.check_encoding(head, path)
    # Line breaks and delimiters inside quotes belong to names.
    line = _LINE_BREAKS.split(_QUOTED.sub(b'"', head).lstrip(b"\r\n"), maxsplit=1)[0]
    present = [usual for usual in _USUAL if usual.encode() in line]
    expected = present[0] if len(present) == 1 else DELIMITERS[kind]
    return CsvDialect(delimiter or expected, decimal)


def delimiter_text(delimiter: str) -> str:
    """Name of a delimiter in messages.

    Examples
    --------
    >>> delimiter_text(";"), delimiter_text(" ")
    ("';'", 'spaces')
    """
    return {"\t": "tabs", " ": "spaces"}.get(delimiter, repr(delimiter))


def check_decimals(table: Any, dialect: CsvDialect, path: str) -> None:
    """Raise ValueError for a column of strings that are numbers with a decimal comma.

    With commas between columns such values are quoted, and strings. Thousands separators cannot
    be read: with a decimal comma that was asked for, they are a warning.
    """
    import pyarrow.compute as pc

    if dialect.decimal == "." or dialect.delimiter == ",":
        return
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if column.type != "string":
            continue
        is_number = pc.match_substring_regex(column, _WITH_COMMA)
        if not pc.all(is_number, min_count=1).as_py():
            continue
        values = column.filter(pc.match_substring_regex(column, "[.,]"))
        if not len(values):
            continue
        grouped = values.filter(pc.match_substring(values, "."))
        if len(grouped):
            text = (
                f"The column {name!r} of the file {path!r} holds numbers with thousands "
                f"separators, such as {grouped[0].as_py()!r}"
            )
            if dialect.decimal == ",":
                text += ": they are read as strings. Write them without separators."
                warn_caller(text)
                continue
            raise ValueError(f"{text}. Write them without separators.")
        raise InputError(
            f"The column {name!r} of the file {path!r} holds numbers with a decimal comma, such as "
            f"{values[0].as_py()!r}.",
            'Write decimal points, or pass arboost.TableFiles(path, decimal=",").',
            parameter="decimal",
        )


# ---- CSV and TSV files ----

# Two threads parse a file as fast in blocks of 1 MB as in larger ones, in less memory.
_CSV_BLOCK_BYTES = 1 << 20
_BLOCKS = 40
_CSV_TYPE_ADVICE = (
    "Types of CSV columns are those of the first block of each file, of 1 MB. Write the column in "
    "one form, convert the file to Parquet, or pass a pyarrow.dataset.Dataset with types of your "
    "own."
)


# Cells without a value, in columns of any type: those of pandas, so that a file has one reading.
_NAMES = "NA N/A n/a <NA> #NA #N/A NULL null None NaN nan -NaN -nan"
_ERRORS = "1.#IND 1.#QNAN -1.#IND -1.#QNAN"
_MISSING = ["", "#N/A N/A", *_NAMES.split(), *_ERRORS.split()]


def conversion(
    dialect: CsvDialect, types: Mapping[str, Any] | None = None, columns: Sequence[str] = ()
) -> Any:
    """PyArrow's options for the values of CSV files: types by name, and columns to read."""
    from pyarrow import csv

    return csv.ConvertOptions(
        column_types=dict(types or {}),
        include_columns=list(columns),
        null_values=_MISSING,
        strings_can_be_null=True,
        decimal_point=dialect.decimal_point,
    )


@dataclass(frozen=True)
class CsvFile(files.DataFile):
    """A CSV or TSV file; the types of its columns are those of its first block.

    Attributes
    ----------
    dialect : CsvDialect
    """

    dialect: CsvDialect

    @classmethod
    def open(
        cls, path: str, kind: str = "csv", delimiter: str | None = None, decimal: str | None = None
    ) -> CsvFile:
        """File, whose first block is read; `find_dialect` has the arguments."""
        import pyarrow

        stamp = files.file_stamp(path)
        with files.file_errors(path, files.DAMAGED), pyarrow.OSFile(path) as raw:
            dialect = find_dialect(path, kind, delimiter, decimal)
            with _stream(raw, path, dialect) as reader:
                reader.schema.names  # noqa: B018  # raises where names are not UTF-8
                for block in reader:
                    check_decimals(block, dialect, path)
                    break
                return cls(path, reader.schema, None, stamp, dialect)

    def reader_bytes(self, columns: Collection[str]) -> int:
        """Bytes of the blocks that are in memory, as text and parsed."""
        return min(_BLOCKS * _CSV_BLOCK_BYTES, 3 * self.n_bytes)

    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield record batches of about `batch_rows` rows, with the types of the schema."""
        types = {name: schema.field(name).type for name in columns}
        is_plain = files.compression_of(self.path) is None
        blocks: list[Any] = []
        n_rows = 0
        with files.file_errors(self.path, _CSV_TYPE_ADVICE, parameter="types"):
            # A block has few rows; consumers work better on larger batches.
            for block, n_bytes in self._scan(types) if is_plain else self._decompress(types):
                blocks.append(block)
                n_rows += block.num_rows
                if n_rows >= batch_rows:
                    yield _joined(blocks), n_bytes
                    blocks, n_rows = [], 0
            if n_rows:
                yield _joined(blocks), self.n_bytes

    def _scan(self, types: dict[str, Any]) -> Iterator[tuple[Any, int]]:
        """Yield blocks and the bytes read by now; all threads parse them."""
        import pyarrow
        from pyarrow import csv, dataset, fs

        form = dataset.CsvFileFormat(
            csv.ParseOptions(delimiter=self.dialect.delimiter),
            default_fragment_scan_options=dataset.CsvFragmentScanOptions(
                conversion(self.dialect), csv.ReadOptions(block_size=_CSV_BLOCK_BYTES)
            ),
        )
        fragment = form.make_fragment(os.path.abspath(self.path), fs.LocalFileSystem())
        # Columns that are not read need a type, too.
        every = [(field.name, types.get(field.name, field.type)) for field in self.schema]
        scanner = fragment.scanner(
            schema=pyarrow.schema(every),
            columns=list(types),
            batch_readahead=1,
            fragment_readahead=1,
        )
        for number, block in enumerate(scanner.to_batches(), 1):
            yield block, min(number * _CSV_BLOCK_BYTES, self.n_bytes)

    def _decompress(self, types: dict[str, Any]) -> Iterator[tuple[Any, int]]:
        """Yield blocks and the bytes read by now; the scanner knows only some compressions."""
        import pyarrow

        with (
            pyarrow.OSFile(self.path) as raw,
            _stream(raw, self.path, self.dialect, types) as reader,
        ):
            for block in reader:
                yield block, self.n_bytes if raw.closed else raw.tell()


def _stream(raw: Any, path: str, dialect: CsvDialect, types: dict[str, Any] | None = None) -> Any:
    """PyArrow's reader of blocks of a file that is open."""
    from pyarrow import csv

    return csv.open_csv(
        files.decompressed(raw, path),
        csv.ReadOptions(block_size=_CSV_BLOCK_BYTES),
        csv.ParseOptions(delimiter=dialect.delimiter),
        conversion(dialect, types, list(types or ())),
    )


def _joined(batches: list[Any]) -> Any:
    """Record batches as one."""
    import pyarrow

    return pyarrow.Table.from_batches(batches).combine_chunks().to_batches()[0]


# ---- JSON lines ----

_JSON_BLOCK_BYTES = 1 << 22
_PARSED_BYTES = 1 << 20  # by a thread
_LONGEST_LINE = 1 << 28
_JSON_TYPE_ADVICE = (
    "Each line must be one JSON object, and types are those of the first block of each file, of "
    "4 MB. Write the column in one form, or convert the file to Parquet."
)


class JsonLinesFile(files.DataFile):
    """A file with a JSON object in each line."""

    @classmethod
    def open(cls, path: str) -> JsonLinesFile:
        """File, whose first block is read."""
        stamp = files.file_stamp(path)
        with files.file_errors(path, files.DAMAGED), files.open_bytes(path) as stream:
            first = next(json_blocks(stream, None, path), None)
        if first is None:
            raise ValueError(f"The file {path!r} holds no JSON object. Write it again.")
        return cls(path, first.schema, None, stamp)

    def reader_bytes(self, columns: Collection[str]) -> int:
        """Bytes of a block, its lines, and what the parser makes of them."""
        return 4 * _JSON_BLOCK_BYTES

    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield record batches with the types of the schema."""
        import pyarrow

        types = pyarrow.schema([schema.field(name) for name in columns])
        with files.file_errors(self.path, _JSON_TYPE_ADVICE), pyarrow.OSFile(self.path) as raw:
            for table in json_blocks(files.decompressed(raw, self.path), types, self.path):
                for batch in table.combine_chunks().to_batches():
                    yield batch, min(raw.tell(), self.n_bytes)


def json_blocks(stream: Any, schema: Any, name: str) -> Iterator[Any]:
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
        data = stream.read(_JSON_BLOCK_BYTES)
        if not pieces:  # the first block
            files.check_encoding(data, name)
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
    """Table of JSON lines; raise ValueError with the line that cannot be read."""
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
    """Message for JSON lines that PyArrow refused: the line, where one is malformed."""
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
    return f"The file {name!r} cannot be read: {files.first_line(error)}. {_JSON_TYPE_ADVICE}"


_KINDS = {bool: "a truth value", int: "a number", float: "a number", str: "a string"}


def _mixed_types(data: bytes, first_line: int) -> str:
    """First key whose values are of two types, with their lines; "" for none."""
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
