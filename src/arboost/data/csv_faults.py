"""Fault of a CSV file that PyArrow refuses: an error with file, line and column."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from arboost.data.files import check_encoding, first_line, open_bytes
from arboost.data.text_files import CsvDialect, delimiter_text
from arboost.errors import InputError

_HEAD_BYTES = 1 << 16
_LONGEST = 40  # characters of a value in a message
_RENAME = "Rename it so that its name tells its kind."
# First bytes of files that are not text, whatever their names -> kind and advice.
_MAGIC = {
    b"PAR1": ("a Parquet file", _RENAME),
    b"ARROW1": ("an Arrow file", _RENAME),
    b"\x1f\x8b": ("a gzip file", "Rename it so that its name ends in .gz."),
    b"\x28\xb5\x2f\xfd": ("a zstd file", "Rename it so that its name ends in .zst."),
    b"PK\x03\x04": ("a zip or Excel file", "Unpack it, or save it as CSV."),
    b"\x91AR": ("a model file", "Use the path of a table."),
}
_PAGE = re.compile(rb"\s*<(!doctype html|html)", re.IGNORECASE)


def check_text(file: Any, path: str) -> None:
    """Raise InputError for a file that begins as no text does."""
    head = file.read(_HEAD_BYTES)
    for magic, (kind, advice) in _MAGIC.items():
        if head.startswith(magic):
            raise InputError(f"The file {path!r} is {kind}, not text.", advice)
    if _PAGE.match(head):
        raise InputError(f"The file {path!r} is an HTML page, not a table.", "Download it again.")
    check_encoding(head, path)
    position = head.find(b"\0")
    if position >= 0:
        line = head.count(b"\n", 0, position) + 1
        raise InputError(
            f"The file {path!r} has a NUL byte in line {line}: it is binary or damaged.",
            "Save it as UTF-8 text.",
        )


def csv_fault(
    path: str, dialect: CsvDialect, cause: str, types: dict[str, Any]
) -> InputError | None:
    """Error for a file that PyArrow refused; None where every line has its fields.

    Parameters
    ----------
    path : str
    dialect : CsvDialect
    cause : str
        Message of PyArrow.
    types : dict of str to pyarrow.DataType
        Types that columns were read with.
    """
    if "invalid UTF8" in cause:
        return not_utf8(path, dialect)
    try:
        fault = _locate(path, dialect, cause, types)
    except csv.Error as error:
        if "field limit" in str(error):  # PyArrow refuses lines longer than a block
            return InputError(
                f"The file {path!r} has a line too long to be read in batches.",
                "Convert the file to Parquet, or read it without a memory limit.",
            )
        return InputError(f"The file {path!r} is malformed: {error}.", "Write it again.")
    except (OSError, EOFError, ValueError) as error:
        problem = f"The file {path!r} cannot be read: {first_line(error)}."
        return InputError(problem, "It may be incomplete.")
    if fault is None and not any(word in cause for word in ("columns", "newline", "straddling")):
        return InputError(f"The file {path!r} cannot be read: {first_line(cause)}.")
    return fault


def _locate(path: str, dialect: CsvDialect, cause: str, types: dict[str, Any]) -> InputError | None:
    """Error for a value of another type, or a row of too few or too many values."""
    value = re.search(
        r"CSV conversion error to (\w+): invalid value '(.*?)('|\. Types of|$)", cause
    )
    rows = _rows(path, dialect.delimiter)
    _, header = next(rows, (1, []))
    if value is not None:
        return _conversion_fault(rows, header, path, value, types, dialect)
    for line, row in rows:
        if row and len(row) != len(header):
            return _ragged(path, line, row, header, dialect)
    return None


def not_utf8(path: str, dialect: CsvDialect) -> InputError:
    """Error for a file that is not UTF-8."""
    rows = _rows(path, dialect.delimiter)
    _, header = next(rows, (1, []))
    for line, row in chain([(1, header)], rows):
        for column, text in enumerate(row):
            raw = text.encode("latin-1")
            try:
                raw.decode("utf-8")
            except UnicodeDecodeError as bad:
                is_named = line > 1 and column < len(header)
                name = f" ({_decoded(header[column])!r})" if is_named else ""
                return InputError(
                    f"The file {path!r} is not UTF-8 in line {line}, column {column + 1}"
                    f"{name}: byte 0x{raw[bad.start]:02x}.",
                    "Save it as UTF-8, for example with iconv.",
                )
    return InputError(f"The file {path!r} is not UTF-8.", "Save it as UTF-8.")


def _conversion_fault(
    rows: Iterator[tuple[int, list[str]]],
    header: list[str],
    path: str,
    refusal: re.Match[str],
    types: dict[str, Any],
    dialect: CsvDialect,
) -> InputError:
    kind, value = refusal[1], refusal[2]
    kind = "number" if kind in ("double", "int64", "float") else kind
    sought = value.encode().decode("latin-1")
    is_cut = refusal[3] != "'"  # a value of several lines: messages end with the first of them
    parameter, advice = None, "Correct it, or leave it empty."
    other_mark = "." if dialect.decimal_point == "," else ","
    if re.fullmatch(rf"[+-]?\d+[{other_mark}]\d+", value) is not None:
        parameter = "decimal" if dialect.decimal is None else None
        advice = f"With decimal={other_mark!r} it is a number."
    names = [_decoded(name) for name in header]
    cells = (
        (line, column, text)
        for line, row in rows
        for column, (name, text) in enumerate(zip(names, row, strict=False), 1)
        if not types or name in types
    )
    position = ""
    for line, column, text in cells:
        if text.startswith(sought) if is_cut else text == sought:
            value = _decoded(text)
            position = f" in line {line}, column {column} ({names[column - 1]!r})"
            break
    return InputError(
        f"The file {path!r} has the value {_short(value)}{position}, which is not a {kind}.",
        advice,
        parameter=parameter,
    )


def _ragged(
    path: str, line: int, row: list[str], header: list[str], dialect: CsvDialect
) -> InputError:
    n_fields, n_columns = len(row), len(header)
    column = min(n_fields, n_columns) + 1
    if n_fields < n_columns:
        problem = f"column {column} ({_decoded(header[column - 1])!r}) is missing"
    else:
        problem = f"column {column} has no name ({_short(_decoded(row[column - 1]))})"
    parameter, advice = None, "Add or remove a delimiter, or quote the value that contains one."
    if header[0].lower() == "sep=":
        advice = "Delete its first line, which is for spreadsheets only."
    elif n_columns == 1:
        parameter = "delimiter"
        advice = (
            "The first line must hold the names of all columns, here with "
            f"{delimiter_text(dialect.delimiter)} between them: pass delimiter for another one."
        )
    return InputError(
        f"The file {path!r} is malformed in line {line}: it has {n_fields} "
        f"{'value' if n_fields == 1 else 'values'}, but the header has {n_columns} "
        f"{'column' if n_columns == 1 else 'columns'}; {problem}.",
        advice,
        parameter=parameter,
    )


def _rows(path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each row; bytes are read as characters 0 to 255."""
    with open_bytes(path) as file:
        text = io.TextIOWrapper(file, encoding="latin-1", newline="")
        reader = csv.reader(text, delimiter=delimiter)
        before = 0
        for row in reader:
            yield before + 1, row
            before = reader.line_num


def _decoded(text: str) -> str:
    """Characters of a text that was read byte by byte."""
    return text.encode("latin-1").decode("utf-8", "replace")


def _short(value: str) -> str:
    return repr(value if len(value) <= _LONGEST else value[:_LONGEST] + "...")
