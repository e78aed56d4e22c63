"""Schema of a fit's columns: names, levels of categories, units of times, calendar parts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from arboost.backend import lazy_property
from arboost.data.levels import Floats, Levels
from arboost.errors import InputError, InputTypeError, SchemaError, listing, warn_caller

T = TypeVar("T")

# Columns of times, always in seconds: since 1970 in UTC, of a duration, or since midnight.
UNITS = ("datetime", "duration", "time")
TIME_DTYPES = {"datetime": "M8[us]", "duration": "m8[us]", "time": "m8[us]"}
MICROSECONDS = 1e6


@dataclass(frozen=True, eq=False)
class Schema:
    """Names, levels, units and missing number of the columns of a fit.

    Attributes
    ----------
    names : tuple of str, or None for a table without names
    n_features : int
    levels : tuple of Levels or None, one for each feature; empty where there are no categories
    missing : float
        Number that means missing, in addition to NaN.
    units : tuple of str, one for each feature; empty where there are no times
        One of `UNITS`, or "" for plain numbers.
    formats : tuple of str, one for each feature; empty where no strings are dates
        Format of the dates of a column that held them as strings, or "".
    parts : tuple of pairs of int and str
        The last features, which are derived: a column of dates, and its calendar part.
    target : str, or None
        Column of the training table that was y. It is not a feature; tables to predict may have it.
    offset : tuple of str, or None
        Columns of the training table that were the offset, one for each raw score or one for all;
        empty where the offset was an array. None: the fit had no offset.
    row_columns : tuple of str
        Columns of the training table in memory that were the weights or the groups of the rows.
    """

    names: tuple[str, ...] | None
    n_features: int
    levels: tuple[Levels | None, ...] = ()
    missing: float = math.nan
    units: tuple[str, ...] = ()
    target: str | None = None
    offset: tuple[str, ...] | None = None
    formats: tuple[str, ...] = ()
    parts: tuple[tuple[int, str], ...] = ()
    row_columns: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        same_missing = self.missing == other.missing or (
            math.isnan(self.missing) and math.isnan(other.missing)
        )
        return same_missing and self._rest() == other._rest()

    def __hash__(self) -> int:
        return hash((self.names, self.n_features))

    @property
    def n_columns(self) -> int:
        """Number of columns of a table to predict: features that are not derived."""
        return self.n_features - len(self.parts)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns of a table to predict; None for a table without names."""
        return None if self.names is None else self.names[: self.n_columns]

    @property
    def column_of(self) -> tuple[int, ...]:
        """Column of each feature: the column of dates where it is derived."""
        return (*range(self.n_columns), *(column for column, _ in self.parts))

    def parts_of(self, column: int) -> dict[int, str]:
        """Derived features of a column: the calendar part of each."""
        return {i: part for i, (of, part) in enumerate(self.parts, self.n_columns) if of == column}

    @property
    def other_columns(self) -> frozenset[str]:
        """Columns that are not features, which tables to predict may have."""
        target = () if self.target is None else (self.target,)
        return frozenset((*target, *(self.offset or ()), *self.row_columns))

    @property
    def categorical(self) -> tuple[bool, ...]:
        """Whether each feature is split by sets: a category without target means or an order."""
        return tuple(self.is_category(feature) for feature in range(self.n_features))

    @property
    def has_levels(self) -> bool:
        """Whether any feature is a category, target-encoded or not."""
        return any(levels is not None for levels in self.levels)

    def is_category(self, feature: int) -> bool:
        """Whether the feature is split by sets of levels."""
        levels = self.levels_of(feature)
        return levels is not None and levels.by_sets

    @lazy_property
    def special(self) -> tuple[int, ...]:
        """Indices of the categories, columns of times and derived features."""
        directly = tuple(
            feature
            for feature in (range(self.n_columns) if self.levels or self.units else ())
            if self.levels_of(feature) is not None or self.unit_of(feature)
        )
        return (*directly, *range(self.n_columns, self.n_features))

    @property
    def n_levels(self) -> tuple[int, ...]:
        """Number of levels, or groups, of each feature that is split by sets; 0 for all others."""
        return tuple(
            0 if levels is None else levels.n_set_codes
            for levels in self.levels or (None,) * self.n_features
        )

    def levels_of(self, feature: int) -> Levels | None:
        """Levels of a category; None for a column of numbers."""
        return self.levels[feature] if self.levels else None

    def unit_of(self, feature: int) -> str:
        """Unit of a column of times, "" for plain numbers."""
        return self.units[feature] if self.units else ""

    def format_of(self, feature: int) -> str:
        """Format of dates in strings, "" for all other columns."""
        return self.formats[feature] if self.formats else ""

    @lazy_property
    def shown_names(self) -> tuple[str, ...]:
        """Names of the features; x0, x1 and so on for a table without names."""
        if self.names is not None:
            return self.names
        columns = [f"x{column}" for column in range(self.n_columns)]
        return (*columns, *(f"x{column}.{part}" for column, part in self.parts))

    def with_parts(self, parts: tuple[tuple[int, str], ...]) -> Schema:
        """Schema of columns with derived features."""
        if not parts:
            return self
        n_features = self.n_columns + len(parts)

        def longer(known: tuple[Any, ...], default: object) -> tuple[Any, ...]:
            return known and known + (default,) * len(parts)

        names = None
        if self.names is not None:
            names = self.names + tuple(f"{self.names[i]}.{part}" for i, part in parts)
        return replace(
            self,
            names=names,
            n_features=n_features,
            levels=longer(self.levels, None),
            units=longer(self.units, ""),
            formats=longer(self.formats, ""),
            parts=parts,
        )

    def label(self, feature: int) -> str:
        """Name of a column in messages: its name, or its index."""
        is_index = self.names is None and feature < self.n_columns
        return repr(feature if is_index else self.shown_names[feature])

    def validate(self) -> None:
        """Raise ValueError unless the parts are consistent; for a schema from a file."""
        of_features = {"levels": self.levels, "units": self.units, "formats": self.formats}
        for name, parts in of_features.items():
            if parts and len(parts) != self.n_features:
                raise ValueError(f"{name} of {len(parts)} features, not of {self.n_features}")
        for levels in self.levels:
            if levels is not None:
                levels.validate()
        if not all(unit == "" or unit in UNITS for unit in self.units):
            raise ValueError(f"units {self.units!r}")
        if any(
            date_format and self.unit_of(i) != "datetime"
            for i, date_format in enumerate(self.formats)
        ):
            raise ValueError(f"formats {self.formats!r} of columns that are not dates")
        n_columns = self.n_columns
        for column, part in self.parts:
            if part not in PARTS or not 0 <= column < n_columns:
                raise ValueError(f"the part {part!r} of the column {column}")
            if self.unit_of(column) != "datetime":
                raise ValueError(f"a part of the column {column}, which holds no dates")
        if math.isinf(self.missing):
            raise ValueError(f"missing={self.missing}")

    def _rest(self) -> tuple[object, ...]:
        return self.names, self.n_features, self.levels, self.units, self.formats, self.parts


def as_times(seconds: Floats, unit: str) -> NDArray[Any]:
    """A column of times as datetime64 or timedelta64; NaN becomes NaT."""
    is_missing = np.isnan(seconds)
    ticks = np.where(is_missing, 0.0, np.round(seconds * MICROSECONDS)).astype(np.int64)
    times = ticks.astype(TIME_DTYPES[unit])
    times[is_missing] = "NaT"
    return times


def by_feature(parts: Mapping[int, T], n_features: int, default: T) -> tuple[T, ...]:
    """A part of each feature, as a schema has them; () where all are the default."""
    if all(part == default for part in parts.values()):
        return ()
    return tuple(parts.get(feature, default) for feature in range(n_features))


# ---- names of columns ----


def unique_names(labels: Sequence[object]) -> tuple[str, ...] | None:
    """Names as strings; None for the numbers of the columns, as frames have by default.

    Raise if names are not unique, or some of them strings and others not.
    """
    are_strings = [isinstance(name, str) for name in labels]
    names = tuple(map(str, labels))
    if any(are_strings) and not all(are_strings):
        types = sorted({type(name).__qualname__ for name in labels})
        raise InputTypeError(  # the first words are those of scikit-learn
            "Feature names are only supported if all input features have string names, but your "
            f"input has {types} as feature name / column name types.",
            "Convert them all to strings, for example with X.columns = X.columns.astype(str).",
        )
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise InputError(
            f"X has several columns of the same name: {listing(map(repr, twice))}.",
            "Each column must have a name of its own: rename or drop columns.",
        )
    return None if not any(are_strings) and names == _numbers(len(names)) else names


def column_positions(
    names: tuple[str, ...] | None, n_features: int, schema: Schema, caller: str
) -> list[int] | None:
    """Column of each feature of a schema; None where all are in their places.

    Raise SchemaError for columns that the schema does not have; warn where only one has names, and
    columns are matched by their order.
    """
    fitted, columns = schema.names, schema.columns
    if fitted is None and names is not None and set(names) == set(_numbers(schema.n_columns)):
        fitted = columns = _numbers(schema.n_columns)  # of a frame without names, in another order
    if names is not None and fitted is not None:
        assert columns is not None
        if names in (fitted, columns):
            return None
        known = set(names) - schema.other_columns
        if known not in (set(fitted), set(columns)):
            features = tuple(name for name in names if name not in schema.other_columns)
            raise _names_error(features, columns)
        places = {name: place for place, name in enumerate(names)}
        # Derived features are read from a table that has all of them.
        return [places[name] for name in (fitted if known == set(fitted) else columns)]
    if n_features not in (schema.n_columns, schema.n_features):
        raise SchemaError(
            f"X has {n_features} features, but {caller} is expecting {schema.n_columns} features "
            "as input. Pass a table with the columns of fit."
        )
    if names is not None or fitted is not None:
        warn_caller(
            f"X does not have valid feature names, but {caller} was fitted with feature names: "
            "columns are matched by their order. Pass a data frame with the names of fit."
            if names is None
            else f"X has feature names, but {caller} was fitted without feature names: columns are "
            "matched by their order. Fit on a data frame, or pass an array."
        )
    return None


def _names_error(names: Collection[str], fitted: Collection[str]) -> SchemaError:
    """Error of missing and unknown columns, worded as in scikit-learn."""

    def bullets(names: Iterable[str], limit: int = 20) -> str:
        lines = [f"- {name}\n" for name in sorted(names)]
        return "".join(lines[:limit]) + ("- ...\n" if len(lines) > limit else "")

    message = "The feature names should match those that were passed during fit.\n"
    extra, missing = set(names) - set(fitted), set(fitted) - set(names)
    if extra:
        message += f"Feature names unseen at fit time:\n{bullets(extra)}"
    if missing:
        message += f"Feature names seen at fit time, yet now missing:\n{bullets(missing)}"
    return SchemaError(message + "Pass exactly the columns of fit; their order does not matter.")


def _numbers(n_columns: int) -> tuple[str, ...]:
    """Names of columns that have numbers only."""
    return tuple(map(str, range(n_columns)))


# ---- calendar parts of dates ----

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
    """A part of each date, NaN where it is missing.

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
    """A part of one date, as `calendar_part` does."""
    known = abs(seconds) < _LATEST
    return float(_part_of(part, math.floor(seconds))) if known else math.nan


def _part_of(part: str, seconds: Any) -> Any:
    """A part of whole seconds, an int or an array of integers."""
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
    """Bin edges between the values of a part, evenly spaced where they are too many."""
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
        """Statistics of dates; missing ones are left out."""
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
        """Parts that repeat, and differ between the dates."""
        span = self.high - self.low
        return [
            part
            for part, (_, _, period) in PARTS.items()
            if span > period and len(self.values[part]) > 1
        ]


def select_calendar_parts(
    dates: Mapping[int, CalendarStats | None],
    requested: str | Sequence[str] | None,
    names: Iterable[str] | None,
) -> tuple[tuple[int, str], ...]:
    """Derived features of a table: columns of dates, each with a part.

    Parameters
    ----------
    dates : mapping of int to CalendarStats
        Columns of dates.
    requested : "auto", list of parts, or None
        "auto": the parts that repeat.
    names : iterable of str, or None
        Names of the columns. A part whose name a column has already is not derived.
    """
    known = list(names or ())
    chosen = []
    for column, stats in sorted(dates.items()):
        parts = requested or ()
        if isinstance(requested, str):
            parts = [] if stats is None else stats.parts()
        name = known[column] if known else ""
        free = (part for part in PARTS if part in parts and f"{name}.{part}" not in known)
        chosen += [(column, part) for part in free]
    return tuple(chosen)
