"""Columns of any table for a report, samples of its rows, and numbers rounded for JSON.

A column is kept in two forms: numbers (seconds for times, codes for categories), which a report
computes with, and values as the user has them, which models and pages get.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import lazy_property
from arboost.data.levels import Levels
from arboost.data.raw_table import frame_like, is_sparse
from arboost.data.schema import Schema, calendar_part
from arboost.data.table import read_raw
from arboost.plots.drawing import boolean_names
from arboost.text import label_text, number_text, shortened, time_text

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

MORE_DIGITS = 7  # of values that users look up in their table
_TIME_DIGITS = 15
_DIGITS = 5
_LARGEST_POWER = 22  # of ten that a double holds exactly
_EXACT = 2.0**53

_TIMES = {"datetime": "M8[us]", "duration": "m8[us]"}
_MICROSECONDS = 1e6
_MIDNIGHT = datetime.datetime(1970, 1, 1)
_MOST_CHARACTERS = 200  # of a level on the page
_MOST_CACHED = 64  # columns of all rows in memory


def rounded(values: Any, digits: int = _DIGITS) -> Any:
    """Number, or array as nested lists, for JSON; null for None, NaN and infinities.

    Examples
    --------
    >>> rounded([1 / 3, 123456.7, float("nan"), -2.0]), rounded(2 / 3)
    ([0.33333, 123460, None, -2], 0.66667)
    """
    array = np.asarray(values, dtype=np.float64)
    flat = _with_digits(array.ravel(), digits)
    objects = flat.astype(object)
    whole = (flat == np.floor(flat)) & (np.abs(flat) < _EXACT)
    objects[whole] = flat[whole].astype(np.int64)
    objects[~np.isfinite(flat)] = None
    return objects.reshape(array.shape).tolist()


def rounded_counts(values: NDArray[Any]) -> list[Any]:
    """Counts for JSON: whole numbers, or rounded sums of weights."""
    counts: list[Any] = values.tolist()
    return counts if values.dtype.kind in "iu" else rounded(values, MORE_DIGITS)


def _with_digits(values: Floats, digits: int) -> Floats:
    """Nearest numbers of a number of significant digits."""
    nearest = values.copy()
    usual = np.isfinite(values) & (values != 0.0)
    numbers = values[usual]
    power = digits - 1 - np.floor(np.log10(np.abs(numbers)))
    is_exact = np.abs(power) <= _LARGEST_POWER
    # Multiples and quotients of a power of ten that is exact round to the shortest decimal.
    scale = 10.0 ** np.where(is_exact, np.abs(power), 0.0)
    near = np.where(
        power >= 0, np.round(numbers * scale) / scale, np.round(numbers / scale) * scale
    )
    for i in np.flatnonzero(~is_exact).tolist():
        near[i] = float(f"{numbers[i]:.{digits}g}")
    nearest[usual] = near
    return nearest


@dataclass(frozen=True, eq=False)
class Column:
    """One column, of all rows or of some.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "time", "bool"}
    numbers : float64 array of shape (n_rows,)
        Values; seconds for times; codes of `levels` for categories. NaN for missing values.
    levels : tuple of str or float
        Levels of a category or of truth values, by their codes; empty for other kinds.
    unit : {"", "datetime", "duration", "time"}
    """

    name: str
    kind: str
    numbers: Floats
    levels: tuple[str | float, ...] = ()
    unit: str = ""

    @property
    def has_levels(self) -> bool:
        """Whether the column has levels in place of ordered values."""
        return self.kind in ("category", "bool")

    @property
    def digits(self) -> int:
        """Significant digits of positions along the column."""
        return _TIME_DIGITS if self.kind == "time" else MORE_DIGITS

    @lazy_property
    def missing(self) -> Mask:
        """Mask of the missing values."""
        return np.isnan(self.numbers)

    def take(self, rows: Index) -> Column:
        """Column of some rows."""
        return replace(self, numbers=self.numbers[rows])

    def values(self, numbers: Floats) -> NDArray[Any]:
        """Numbers of this column as the user's table has them."""
        if self.kind not in ("category", "time"):
            return numbers
        missing = np.isnan(numbers)
        if self.kind == "category":
            codes = np.where(missing, -1, numbers).astype(np.intp)
            if self.levels and not isinstance(self.levels[0], str):
                return np.append(np.array(self.levels, np.float64), np.nan)[codes]
            return np.array([*self.levels, None], dtype=object)[codes]
        ticks = np.where(missing, 0.0, np.round(numbers * _MICROSECONDS)).astype(np.int64)
        times: NDArray[Any] = ticks.astype(_TIMES.get(self.unit, "m8[us]"))
        if self.unit == "time":
            clocks = [(_MIDNIGHT + time).time() for time in times.astype(object)]
            clock_times = np.array(clocks, dtype=object)
            clock_times[missing] = None
            return clock_times
        times[missing] = "NaT"
        return times

    def text(self, number: float) -> str:
        """One of the numbers of this column as text."""
        if np.isnan(number):
            return "missing"
        if self.has_levels:
            return shown_level(self.levels[int(number)])
        if self.kind == "time" and np.isfinite(number):
            return time_text(number, self.unit)
        return number_text(number, _DIGITS)

    def json_values(self) -> list[Any]:
        """Values for the page: numbers, or text for all other kinds."""
        if self.kind == "number":
            numbers: list[Any] = rounded(self.numbers, MORE_DIGITS)
            return numbers
        return [None if np.isnan(number) else self.text(number) for number in self.numbers.tolist()]


def level_text(label: str | float) -> str:
    """Level of a category as text."""
    return label_text(label, _DIGITS)


def shown_level(label: str | float) -> str:
    """Level of a category as text for the page, which carries no long ones."""
    return shortened(level_text(label), _MOST_CHARACTERS)


class ReportTable:
    """The columns of a user's table, in the order of a model's features.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
    schema : Schema
        Names and number of the features; levels where they are known.
    rows : int array, optional
        Rows of X that the report is about; None for all.
    caller : str
        Name of the model in messages.

    Attributes
    ----------
    offset : float64 array of shape (n_rows, n_columns), or None
        Offset of the rows, for a model that was fitted with one.
    """

    offset: Floats | None = None

    def __init__(
        self, X: Any, schema: Schema, rows: Index | None = None, caller: str = "the model"
    ) -> None:
        self.X = X
        self.rows = rows
        self.schema = schema
        self.names = schema.shown_names
        self._raw = read_raw(X, schema, caller)
        self._raw.set_missing(schema.missing)
        self._booleans = boolean_names(X)
        self._cache: dict[int, Column] = {}
        self.n_all_rows = int(self._raw.columns.n_rows)
        self.n_rows = self.n_all_rows if rows is None else len(rows)
        self.n_features = schema.n_features

    def column(self, feature: int) -> Column:
        """Column of all rows; those of a few features are kept in memory."""
        column = self._cache.get(feature) or self._read(feature)
        if len(self._cache) < _MOST_CACHED:
            self._cache[feature] = column
        return column

    def sample(self, rows: Index) -> Sample:
        """Some of the rows, with all columns."""
        columns = (self._cache.get(i) or self._read(i) for i in range(self.n_features))
        return Sample(self, rows, [column.take(rows) for column in columns])

    def _read(self, feature: int) -> Column:
        column = self._read_all(feature)
        return column if self.rows is None else column.take(self.rows)

    def _read_all(self, feature: int) -> Column:
        name, raw = self.names[feature], self._raw
        if feature in raw.texts:
            return _category(name, *Levels.of_text(raw.texts[feature]))
        numbers = raw.columns.read(feature)
        unit = raw.units.get(feature, "")
        if unit:
            return Column(name, "time", numbers, unit=unit)
        if self.schema.levels_of(feature) is not None or feature in raw.categories:
            return _category(name, *Levels.of_numbers(numbers))
        if name in self._booleans:
            return Column(name, "bool", numbers, ("False", "True"))
        return Column(name, "number", numbers)


def _category(name: str, levels: Levels, codes: NDArray[np.int32]) -> Column:
    numbers = np.where(codes < 0, np.nan, codes.astype(np.float64))
    labels = tuple(levels.label(code) for code in range(len(levels)))
    return Column(name, "category", numbers, labels)


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table.

    Attributes
    ----------
    table : ReportTable
    rows : int array of shape (n_rows,)
        Row numbers among those of the table.
    columns : list of Column
        All columns of these rows.
    """

    table: ReportTable
    rows: Index
    columns: list[Column]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def offset(self) -> Floats | None:
        """Offset of these rows; None without one."""
        return None if self.table.offset is None else self.table.offset[self.rows]

    def with_parts(self, changes: Mapping[int, Floats]) -> dict[int, Floats]:
        """Changes of columns with those of the derived features, which follow them."""
        parts = {
            feature: calendar_part(part, changes[column]).astype(np.float64)
            for column in changes
            for feature, part in self.table.schema.parts_of(column).items()
        }
        return parts | dict(changes)


def table_like(X: Any, names: Sequence[str] | None, columns: Sequence[NDArray[Any]]) -> Any:
    """Columns as a table of the type of X, as members of an ensemble were fitted on it."""
    if is_sparse(X):
        from scipy.sparse import csr_matrix

        return csr_matrix(np.column_stack(columns))
    if names is not None and hasattr(X, "iloc"):
        return _like_pandas(X, names, columns)
    if names is not None and hasattr(X, "__arrow_c_stream__"):
        return frame_like(X, dict(zip(names, columns, strict=True)))
    return plain_table(names, columns)


def plain_table(names: Sequence[str] | None, columns: Sequence[NDArray[Any]]) -> Any:
    """Columns as a dict of them, without names as a matrix."""
    if names is not None:
        return dict(zip(names, columns, strict=True))
    if all(column.dtype.kind == "f" for column in columns):
        return np.column_stack(columns)
    matrix = np.empty((len(columns[0]), len(columns)), dtype=object)
    for i, column in enumerate(columns):
        matrix[:, i] = column
    return matrix


def _like_pandas(X: Any, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> Any:
    import pandas

    columns_like = {}
    for name, values in zip(names, columns, strict=True):
        series = pandas.Series(values)
        dtype = X[name].dtype if name in X.columns else series.dtype
        # A numeric column may hold missing values that its own integer type cannot.
        is_possible = getattr(dtype, "kind", "O") not in "iub" or not series.isna().any()
        try:
            columns_like[name] = series.astype(dtype) if is_possible else series
        except (TypeError, ValueError):
            columns_like[name] = series
    return pandas.DataFrame(columns_like)
