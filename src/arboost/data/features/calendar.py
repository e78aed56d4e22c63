"""Calendar parts of dates, derived features of a schema: hour, weekday, month, day of the year.

Dates are seconds since 1970 in UTC, so hours are those of UTC where a column has a time zone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["PARTS", "CalendarStats", "calendar_part", "chosen_parts", "part_edges", "part_number"]

Floats = NDArray[np.float64]

_DAY = 24 * 3600
_LATEST = 1e14  # seconds; far beyond, days overflow int64
_DAYS_OF_400_YEARS = 146_097
_TO_MARCH = 719_468  # days from 1 March of the year 0 to 1970
_JANUARY = 306  # days from 1 March to 1 January
_BEFORE_MARCH = 59  # days before 1 March in a year of 365 days


class _Part(NamedTuple):
    """Range of the values of a part, and the time in seconds after which they repeat."""

    low: int
    high: int
    period: int


PARTS: dict[str, _Part] = {
    "hour": _Part(0, 23, _DAY),
    "weekday": _Part(0, 6, 7 * _DAY),  # Monday is 0
    "month": _Part(1, 12, 366 * _DAY),
    "dayofyear": _Part(1, 366, 366 * _DAY),
}


def calendar_part(part: str, seconds: Floats) -> NDArray[np.float32]:
    """Return a part of each date, NaN where it is missing.

    Examples
    --------
    >>> times = np.array(["2024-02-29T17:30", "2023-12-31", "NaT"], "M8[s]")
    >>> seconds = np.where(np.isnat(times), np.nan, times.astype(np.int64))
    >>> {part: calendar_part(part, seconds)[:2].astype(int).tolist() for part in PARTS}
    {'hour': [17, 0], 'weekday': [3, 6], 'month': [2, 12], 'dayofyear': [60, 365]}
    """
    known = np.abs(seconds) < _LATEST
    whole = np.floor(np.where(known, seconds, 0.0)).astype(np.int64)
    return np.where(known, _part_of(part, whole), np.nan).astype(np.float32)


def part_number(part: str, seconds: float) -> float:
    """Return a part of one date, as `calendar_part` does."""
    known = abs(seconds) < _LATEST
    return float(_part_of(part, math.floor(seconds))) if known else math.nan


def _part_of(part: str, seconds: Any) -> Any:
    """Return a part of whole seconds, an int or an array of integers."""
    if part == "hour":
        return seconds % _DAY // 3600
    days = seconds // _DAY
    if part == "weekday":
        return (days + 3) % 7
    # Years from March to February end with their leap day.
    days = days + _TO_MARCH
    day = days % _DAYS_OF_400_YEARS
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day = day - (365 * year + year // 4 - year // 100)
    if part == "month":
        return ((5 * day + 2) // 153 + 2) % 12 + 1
    year = year + 400 * (days // _DAYS_OF_400_YEARS)
    is_leap = (year % 4 == 0) & (year % 100 != 0) | (year % 400 == 0)
    is_january_on = day >= _JANUARY
    return (
        is_january_on * (day - _JANUARY) + (1 - is_january_on) * (day + _BEFORE_MARCH + is_leap) + 1
    )


def part_edges(part: str, max_bins: int) -> Floats:
    """Return bin edges between the values of a part, evenly spaced where they are too many."""
    low, high, _ = PARTS[part]
    step = -(-(high - low + 1) // max_bins)
    return np.arange(low + step - 0.5, high, step)


@dataclass
class CalendarStats:
    """Range and parts of the dates of a column, over all batches and workers.

    Attributes
    ----------
    low, high : float
        First and last date, in seconds.
    values : dict of str to set of int
        Distinct values of each part.
    """

    low: float
    high: float
    values: dict[str, set[int]]

    @classmethod
    def of(cls, seconds: Floats) -> CalendarStats:
        """Return the statistics of dates; missing ones are left out."""
        present = seconds[np.abs(seconds) < _LATEST]
        if not len(present):
            return cls(math.inf, -math.inf, {part: set() for part in PARTS})
        values = {
            part: set(np.unique(calendar_part(part, present)).astype(int).tolist())
            for part in PARTS
        }
        return cls(float(present.min()), float(present.max()), values)

    def add(self, other: CalendarStats) -> None:
        """Add the dates of other rows."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        for part, values in other.values.items():
            self.values[part] |= values

    def parts(self) -> list[str]:
        """Return the parts that repeat, and differ between the dates."""
        span = self.high - self.low
        return [
            part
            for part, (_, _, period) in PARTS.items()
            if span > period and len(self.values[part]) > 1
        ]


def chosen_parts(
    dates: Mapping[int, CalendarStats | None],
    wanted: str | Sequence[str] | None,
    names: Iterable[str] | None,
) -> tuple[tuple[int, str], ...]:
    """Return the derived features of a table: columns of dates, each with a part.

    Parameters
    ----------
    dates : mapping of int to CalendarStats
        Columns of dates.
    wanted : "auto", list of parts, or None
        "auto": the parts that repeat.
    names : iterable of str, or None
        Names of the columns. A part whose name a column has already is not derived.
    """
    known = list(names or ())
    chosen = []
    for column, stats in sorted(dates.items()):
        parts = wanted or ()
        if isinstance(wanted, str):
            parts = [] if stats is None else stats.parts()
        name = known[column] if known else ""
        free = (part for part in PARTS if part in parts and f"{name}.{part}" not in known)
        chosen += [(column, part) for part in free]
    return tuple(chosen)
