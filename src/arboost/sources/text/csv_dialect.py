"""Delimiter and decimal mark of a CSV or TSV file: given, or found in its first line.

A file has the delimiter of its kind unless its first line has none of them and exactly one of the
other usual ones: read as its kind, it would be a table of a single column. The decimal mark is
never guessed: numbers with a decimal comma are an error that says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from arboost.errors import warn_caller
from arboost.sources.arrow import check_encoding, open_bytes

__all__ = ["DELIMITERS", "CsvDialect", "check_decimals", "delimiter_text", "find_dialect"]

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
    """Return the dialect of a file of kind "csv" or "tsv"; a given delimiter is not questioned.

    Raises
    ------
    ValueError
        The file is in UTF-16 or UTF-32.
    """
    with open_bytes(path) as file:
        head: bytes = file.read(_HEAD_BYTES)
    check_encoding(head, path)
    return CsvDialect(delimiter or _delimiter(head, DELIMITERS[kind]), decimal)


def _delimiter(head: bytes, expected: str) -> str:
    # Line breaks and delimiters inside quotes belong to names.
    line = _LINE_BREAKS.split(_QUOTED.sub(b'"', head).lstrip(b"\r\n"), maxsplit=1)[0]
    there = [one for one in _USUAL if one.encode() in line]
    return there[0] if len(there) == 1 else expected


def delimiter_text(delimiter: str) -> str:
    """Return the name of a delimiter in messages.

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
        if column.type != "string" or not _are_numbers(column):
            continue
        values = column.filter(pc.match_substring_regex(column, "[.,]"))
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
        raise ValueError(
            f"The column {name!r} of the file {path!r} holds numbers with a decimal comma, such as "
            f"{values[0].as_py()!r}. Write decimal points, or pass a pyarrow.dataset.Dataset with "
            "a decimal mark of your own."
        )


def _are_numbers(column: Any) -> bool:
    """Whether all strings are numbers in the notation of decimal commas, and some have a comma."""
    import pyarrow.compute as pc

    is_number = pc.match_substring_regex(column, _WITH_COMMA)
    if not pc.all(is_number, min_count=1).as_py():
        return False
    return bool(pc.any(pc.match_substring_regex(column, "[.,]")).as_py())
