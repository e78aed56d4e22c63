"""Columns of strings that are dates -> times in seconds; one format for all values of a column.

Formats are "iso" (year first), "dayfirst", "monthfirst", or those of `datetime.strptime`. The first
three may have a time of day after the date, and a time zone; without one, times are read as UTC.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.levels import Levels
from arboost.data.raw_columns import RawTable
from arboost.errors import SchemaError

__all__ = ["AMBIGUOUS", "FAMILIES", "ReadDates", "is_date_format", "read_dates", "recognised"]

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


class ReadDates(NamedTuple):
    """Dates of a column of strings.

    Attributes
    ----------
    format : str
        One of `FAMILIES`, or a format of `datetime.strptime`.
    seconds : float64 array of shape (n_levels,)
        Seconds from 1970 on, in UTC; NaN for blank strings.
    """

    format: str
    seconds: NDArray[np.float64]


def is_date_format(text: str) -> bool:
    """Whether a text is a format of dates, as files keep it."""
    return text in FAMILIES or "%" in text


def recognised(levels: Levels, wanted: str | None) -> ReadDates | str:
    """Return the dates of distinct strings; `AMBIGUOUS`, or "" where they are not dates.

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
    read = ((one, _seconds(levels, one)) for one in formats)
    found = [ReadDates(one, seconds) for one, seconds in read if seconds is not None]
    if len(found) > 1:
        return AMBIGUOUS
    return found[0] if found else ""


def read_dates(raw: RawTable, i: int, date_format: str) -> None:
    """Make times of a column of strings; raise SchemaError for any other string."""
    levels, codes = Levels.of_text(raw.texts.pop(i))
    seconds = _seconds(levels, date_format)
    if seconds is None:
        bad = next(text for text in levels.texts() if _ticks(text, date_format) is None)
        raise SchemaError(
            f"The column {raw.label(i)} of X holds {bad.decode('utf-8', 'replace')!r}, which is no "
            f"date of the format {date_format!r}. Correct it, or pass another date_format to fit; "
            "missing values are None or empty."
        )
    column = core.Columns(int(raw.columns.n_rows))
    column.add(np.append(seconds, np.nan)[codes])
    raw.columns.put(i, column)
    raw.units[i] = "datetime"


def _seconds(levels: Levels, date_format: str) -> NDArray[np.float64] | None:
    """Return the seconds of each level; None unless all are dates of the format, or blank."""
    ticks = np.empty(len(levels), np.int64)
    for code, text in enumerate(levels.texts()):
        tick = _ticks(text, date_format)
        if tick is None:
            return None
        ticks[code] = tick
    column = core.Columns(len(ticks))
    column.add_times(ticks, 1, 10**6)
    seconds: NDArray[np.float64] = column.read(0)
    return seconds


def _ticks(text: bytes, date_format: str) -> int | None:
    """Return the microseconds of a date since 1970, `_MISSING` for a blank; None: no such date."""
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
    """Return the microseconds of a date in one of `FAMILIES`; ValueError for impossible ones."""
    first, _, second, third, *time = parts
    year, month, day = first, second, third
    if date_format != "iso":
        year, day, month = third, first, second
        if date_format == "monthfirst":
            day, month = month, day
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
