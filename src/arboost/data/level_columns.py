"""Columns of strings and levels -> level codes, ranks or dates, and warnings."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import raw_table
from arboost.data.levels import (
    MAX_SET_LEVELS,
    Codes,
    Floats,
    Index,
    Levels,
    Order,
    encoded_values,
    merged_order,
)
from arboost.data.raw_table import RawTable
from arboost.data.schema import Schema
from arboost.errors import SchemaError, listing, warn_once

# ---- dates in strings ----

FAMILIES = ("iso", "dayfirst", "monthfirst")
AMBIGUOUS = "ambiguous"  # day first or month first: no value tells

_TIME = (
    r"(?:(?:,? +|T)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)? ?(?:([AaPp])\.?[Mm]\.?)?"
    r" ?(Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + _TIME)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + _TIME)
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_NOON = 12
_MISSING = -(2**63)


class DateColumn(NamedTuple):
    """Dates of a column of strings.

    Attributes
    ----------
    format : str
        One of `FAMILIES`, or a format of `datetime.strptime`.
    seconds : float64 array of shape (n_levels,)
        Seconds from 1970 on, in UTC; NaN for blank strings.
    """

    format: str
    seconds: Floats


def recognise_dates(levels: Levels, wanted: str | None) -> DateColumn | str:
    """Dates of distinct strings; `AMBIGUOUS`, or "" where they are not dates.

    Parameters
    ----------
    levels : Levels
        Distinct strings of a column.
    wanted : str or None
        "auto", one format, or None for no dates.
    """
    codes = range(len(levels) if wanted else 0)
    first = next((text for code in codes if (text := levels.text(code)).strip()), None)
    if wanted is None or first is None:
        return ""
    formats: Sequence[str] = (wanted,)
    if wanted in ("auto", *FAMILIES):
        if _parts(first, _YEAR_FIRST):
            formats = ("iso",)
        elif not _parts(first, _YEAR_LAST):
            return ""
        elif wanted == "auto":
            formats = ("dayfirst", "monthfirst")
    read = ((date_format, _seconds(levels, date_format)) for date_format in formats)
    columns = [
        DateColumn(date_format, seconds) for date_format, seconds in read if seconds is not None
    ]
    if len(columns) > 1:
        return AMBIGUOUS
    return columns[0] if columns else ""


def read_dates(raw: RawTable, i: int, date_format: str) -> None:
    """Make times of a column of strings; raise SchemaError for any other string."""
    levels, codes = Levels.of_text(raw.texts.pop(i))
    seconds = _seconds(levels, date_format)
    if seconds is None:
        bad = next(text for text in levels.texts() if _ticks(text, date_format) is None)
        raise SchemaError(
            f"The column {raw.label(i)} of X holds {bad.decode('utf-8', 'replace')!r}, which is "
            f"not a date of the format {date_format!r}. Correct it, or pass another date_format to "
            "fit; missing values are None or empty."
        )
    raw.columns.put(i, raw_table.number_column(encoded_values(seconds, codes)))
    raw.units[i] = "datetime"


def _seconds(levels: Levels, date_format: str) -> Floats | None:
    """Seconds of each level; None unless all are dates of the format, or blank."""
    ticks = np.empty(len(levels), np.int64)
    for code, text in enumerate(levels.texts()):
        tick = _ticks(text, date_format)
        if tick is None:
            return None
        ticks[code] = tick
    column = core.Columns(len(ticks))
    column.add_times(ticks, 1, 10**6)
    seconds: Floats = column.read(0)
    return seconds


def _ticks(text: bytes, date_format: str) -> int | None:
    """Microseconds of a date since 1970, `_MISSING` for a blank; None: no such date."""
    try:
        shown = text.decode("ascii" if date_format in FAMILIES else "utf-8").strip()
        if not shown:
            return _MISSING
        if date_format not in FAMILIES:
            moment = datetime.datetime.strptime(shown, date_format)
            if moment.tzinfo is not None:
                moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
            return (moment - _EPOCH) // _MICROSECOND
        parts = _parts(text, _YEAR_FIRST if date_format == "iso" else _YEAR_LAST)
        return None if parts is None else _ticks_of_parts(parts, date_format)
    except (OverflowError, ValueError):  # a month of 13, bytes that are not text
        return None


def _parts(text: bytes, pattern: re.Pattern[str]) -> tuple[str | None, ...] | None:
    match = pattern.fullmatch(text.decode("utf-8", "replace").strip())
    return None if match is None else match.groups()


def _ticks_of_parts(parts: tuple[str | None, ...], date_format: str) -> int:
    """Microseconds of a date in one of `FAMILIES`; ValueError for impossible ones."""
    first, _, second, third, *time = parts
    year, month, day = {
        "iso": (first, second, third),
        "dayfirst": (third, second, first),
        "monthfirst": (third, first, second),
    }[date_format]
    hours, minutes, seconds, fraction, half, zone = time
    hour = int(hours or 0)
    if half is not None:
        if not 1 <= hour <= _NOON:
            raise ValueError(f"hour {hour} before or after noon")
        hour = hour % _NOON + (_NOON if half in "Pp" else 0)
    moment = datetime.datetime(
        int(year or 0), int(month or 0), int(day or 0), hour, int(minutes or 0), int(seconds or 0)
    )
    ticks = (moment - _EPOCH) // _MICROSECOND + int((fraction or "0").ljust(6, "0")[:6])
    if zone is not None and zone[0] in "+-":
        offset = 60 * int(zone[1:3]) + int(zone[-2:])
        ticks -= (offset if zone[0] == "+" else -offset) * 60 * 10**6
    return ticks


# ---- notes on columns that may surprise ----

# Shares of distinct values from which strings look like keys, and sentences like free text.
_KEY_SHARE = 0.9
_TEXT_SHARE = 0.5
_FEWEST_SPACES = 4  # per string of free text
_READ_LEVELS = 1000  # levels read to see whether all are numbers


def text_kind(levels: Levels, n_present: int) -> str:
    """Kind of a column of strings that no one has named a category.

    Parameters
    ----------
    levels : Levels
        Distinct strings.
    n_present : int
        Number of values that are not missing.

    Returns
    -------
    str
        "unique": more values than `MAX_SET_LEVELS`, each once; "text": sentences, mostly distinct;
        "key": nearly all distinct; "numbers": all strings are numbers; "" for any other category.
    """
    n_levels = len(levels)
    if n_levels > MAX_SET_LEVELS:
        if n_levels == n_present:
            return "unique"
        n_spaces = np.count_nonzero(levels.values == ord(" "))
        if n_levels > _TEXT_SHARE * n_present and n_spaces >= _FEWEST_SPACES * n_levels:
            return "text"
        if n_levels > _KEY_SHARE * n_present:
            return "key"
    shown = range(min(n_levels, _READ_LEVELS))
    return "numbers" if shown and all(_is_number(str(levels.label(i))) for i in shown) else ""


@dataclass(frozen=True)
class ColumnNotes:
    """Columns of a table to fit on whose use may surprise, for one warning.

    Attributes
    ----------
    names : tuple of str, or None
    categories : collection of int
        Columns in `categorical_features`.
    texts : dict of str to dict of int to str
        For each kind of `text_kind` its columns, each with its counts or an example.
    n_present : dict of int to int
        Number of values of each of these columns that are not missing.
    inexact : list of int
        Columns with values beyond the precision of float64.
    ambiguous_dates : dict of int to str
        Columns of strings that are dates, day first or month first, each with an example.
    unused_format : list of str
        The format of dates, if no column has it.
    """

    names: tuple[str, ...] | None
    categories: Collection[int] = ()
    texts: dict[str, dict[int, str]] = field(default_factory=dict)
    n_present: dict[int, int] = field(default_factory=dict)
    inexact: list[int] = field(default_factory=list)
    ambiguous_dates: dict[int, str] = field(default_factory=dict)
    unused_format: list[str] = field(default_factory=list)

    def learn(
        self, column: int, levels: Levels, n_present: int, date_format: str | None
    ) -> DateColumn | Levels:
        """Dates or levels of strings that `categorical_features` does not name; note surprises.

        Strings that never occur twice have no levels.
        """
        dates = recognise_dates(levels, date_format)
        if isinstance(dates, DateColumn):
            return dates
        if dates == AMBIGUOUS:
            self.ambiguous_dates[column] = next(
                label for code in range(len(levels)) if (label := str(levels.label(code))).strip()
            )
        kind = text_kind(levels, n_present)
        if kind:
            shown = f"{n_present:,} strings, {len(levels):,} distinct"
            if kind == "numbers":
                shown = f"such as {str(levels.label(0))!r}"
            self.texts.setdefault(kind, {})[column] = shown
            self.n_present[column] = n_present
        return Levels.none() if kind == "unique" else levels

    def check_date_format(self, date_format: str | None, formats: Mapping[int, str]) -> None:
        """Note a format that no column has."""
        if date_format not in (None, "auto", *formats.values()):
            self.unused_format.append(str(date_format))

    def warn(self) -> None:
        """Warn once of all noted columns."""
        if lines := self.lines():
            warn_once("\n".join(lines))

    def lines(self) -> list[str]:
        """Text of the warning: a line for each kind, and the lists to paste."""
        lines = []
        for kind, text in _NOTES.items():
            columns = self.texts.get(kind, {})
            if columns:
                shown = (f"{self._label(i)!r} ({counts})" for i, counts in columns.items())
                lines.append(text.format(listing(shown)))
        if self.texts:
            lines.append(self._advice())
        if self.ambiguous_dates:
            shown = (
                f"{self._label(i)!r} (such as {example!r})"
                for i, example in self.ambiguous_dates.items()
            )
            lines.append(_AMBIGUOUS_DATES.format(listing(shown)))
        if self.unused_format:
            lines.append(_UNUSED_FORMAT.format(*map(repr, self.unused_format)))
        if self.inexact:
            lines.append(_INEXACT.format(listing(repr(self._label(i)) for i in self.inexact)))
        return lines

    def _advice(self) -> str:
        """Lists to paste."""
        noted = {i for columns in self.texts.values() for i in columns}
        useless = sorted(noted - self.texts.get("numbers", {}).keys())
        drop = f"Drop {[self._label(i) for i in useless]}, or have" if useless else "Have"
        kept = [self._label(i) for i in sorted({*self.categories, *noted})]
        return f"{drop} categories without this warning: categorical_features={kept}."

    def _label(self, column: int) -> str | int:
        return column if self.names is None else self.names[column]


_NOTES = {
    "unique": "Keys or free text in X: {}. No string occurs twice, so these columns are ignored.",
    "key": "Keys in X: {}. Few strings occur twice; they become categories by target encoding.",
    "text": "Free text in X: {}. Whole texts become categories by target encoding; extract numbers "
    "from them to use their words.",
    "numbers": "Numbers as strings in X: {}. Strings are categories, whose levels have no order; "
    "convert them to numbers if their order matters.",
}
_AMBIGUOUS_DATES = (
    "Dates in X that may be day first or month first: {}. They remain strings: pass "
    'date_format="dayfirst" or date_format="monthfirst", or date_format=None for categories.'
)
_UNUSED_FORMAT = (
    "date_format={} is the format of no column of strings of X: no strings are read as dates."
)
_INEXACT = (
    "X has integers of 2**53 or beyond, or times finer than some 0.2 microseconds, in the columns "
    "{}. Values are compared as float64, which cannot tell such neighbours apart: subtract an "
    "offset, or split the digits over two columns."
)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- levels of categories ----

_FIRST_INEXACT = 2.0**53  # from here on float64 lacks integers


def level_column(codes: NDArray[Any]) -> core.Columns:
    """Level codes, -1 for missing, as one column of the core."""
    column = raw_table.number_column(
        codes.astype(np.min_scalar_type(-int(codes.max(initial=0)) - 1))
    )
    column.set_missing(-1.0)
    return column


class LearnedColumn(NamedTuple):
    """Column of strings or levels to fit on: its levels, or the format of its dates."""

    levels: Levels | str
    column: core.Columns


def learn_levels(
    raw: RawTable, i: int, notes: ColumnNotes, date_format: str | None
) -> LearnedColumn:
    """Levels of a category to fit on and its column; dates in strings become times."""
    n_rows = int(raw.columns.n_rows)
    if i in raw.orders and i not in notes.categories:
        levels = ordered_levels(raw.orders[i], raw.label(i))
        return LearnedColumn(levels, _code_column(levels, _codes(raw, i, levels)))
    if i in raw.texts:
        levels, codes = Levels.of_text(raw.texts[i])
        learned: DateColumn | Levels = levels
        if i not in raw.categories and i not in notes.categories:
            learned = notes.learn(i, levels, int(raw.texts[i].n_present), date_format)
        if isinstance(learned, DateColumn):
            dates = raw_table.number_column(encoded_values(learned.seconds, codes))
            return LearnedColumn(learned.format, dates)
        is_ignored = learned is not levels
        return LearnedColumn(
            learned, raw_table.missing_columns(n_rows) if is_ignored else level_column(codes)
        )
    stored = raw.columns.stored(i)
    if stored is None:
        levels, codes = number_levels(raw, i, raw.columns.read(i))
        return LearnedColumn(levels, level_column(codes))
    rows, values, fill = stored
    numbers = values if len(rows) == n_rows else np.append(values, fill)
    levels, _ = number_levels(raw, i, numbers)
    return LearnedColumn(levels, _sparse_levels(n_rows, levels, rows, values, fill))


def number_levels(raw: RawTable, i: int, values: Floats) -> tuple[Levels, Codes]:
    """Levels of a category of numbers, and the code of each value, -1 for missing.

    Raise ValueError for different integers that are equal in float64, which would become one level.
    Levels of categorical types count as integers; columns of floats are what they are.
    """
    levels, codes = Levels.of_numbers(values)
    largest = np.abs(levels.values[np.isfinite(levels.values)]).max(initial=0.0)
    if largest >= _FIRST_INEXACT and (
        i in raw.categories or i in raw.inexact or i in raw.columns.inexact_columns()
    ):
        raise ValueError(
            f"The category {raw.label(i)} of X holds integers of 2**53 or beyond, such as "
            f"{largest:.0f}, where float64 takes neighbours for one level. Convert the column to "
            "strings."
        )
    return levels, codes


def _sparse_levels(
    n_rows: int,
    levels: Levels,
    rows: Index,
    values: Floats,
    fill: float,
) -> core.Columns:
    codes = levels.codes_of_numbers(np.append(values, fill))
    column = core.Columns(n_rows)
    column.add_sparse(rows, codes[:-1].copy(), float(codes[-1]))
    column.set_missing(-1.0)
    return column


def apply_levels(raw: RawTable, i: int, levels: Levels, schema: Schema) -> core.Columns:
    """Column of a category with the levels of a fit."""
    n_rows = int(raw.columns.n_rows)
    stored = None if i in raw.texts else raw.columns.stored(i)
    if stored is not None and levels.numbers is None:
        return _sparse_levels(n_rows, levels, *stored)
    codes = _codes(raw, i, levels)
    if (codes < 0).all():
        if i in raw.texts:
            n_present = int(raw.texts[i].n_present)
        else:
            n_present = int(np.count_nonzero(~np.isnan(raw.columns.read(i))))
        if n_present > 1:  # a single value may well be new
            warn_once(
                f"None of the {n_present} values in the column {schema.label(i)} of X is among the "
                f"{len(levels)} levels of fit, so all of them count as missing. Check that it is "
                "the same column, written alike."
            )
    return _code_column(levels, codes)


def _codes(raw: RawTable, i: int, levels: Levels) -> Codes:
    """Level code of each row, -1 for missing and unknown values."""
    if i in raw.texts:
        return levels.codes_of_text(raw.texts[i])
    return levels.codes_of_numbers(raw.columns.read(i))


def _code_column(levels: Levels, codes: Codes) -> core.Columns:
    """A category as one column of the core: its level codes, or the numbers of these."""
    if levels.numbers is None:
        return level_column(codes)
    return raw_table.number_column(encoded_values(levels.numbers, codes))


def _shown_level(level: Any) -> str:
    return repr(level.decode("utf-8", "replace") if isinstance(level, bytes) else level)


def ordered_levels(
    orders: Collection[Order], label: str, values: Collection[object] = ()
) -> Levels:
    """Levels of an ordered category, whose dictionaries may be several.

    Raises SchemaError where they tell no single order of all levels, `values` among them.
    """
    order = merged_order(orders)
    if order is None or not set(values).issubset(order):
        several = [*orders, *([tuple(values)] if order is not None else [])][:2]
        shown = " and ".join(f"[{listing(map(_shown_level, levels))}]" for levels in several)
        raise SchemaError(
            f"The levels of the column {label} of X have no single order: its dictionaries are "
            f"{shown}.",
            "Use one dictionary of all levels, or name the column in categorical_features, for "
            "levels without an order.",
        )
    return Levels.ordered(order)
