"""Columns of any table for a report, samples of its rows, and numbers rounded for JSON."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import lazy_property
from arboost.data.levels import Levels
from arboost.data.raw_table import is_sparse
from arboost.data.schema import Schema, calendar_part
from arboost.data.table import read_raw
from arboost.plots.axes import boolean_names
from arboost.text import number_text, shortened, time_text

DIGITS = 5
MORE_DIGITS = 7  # of values that users look up in their table
_LARGEST_POWER = 22  # of ten that a double holds exactly
_EXACT = 2.0**53


def rounded(values: Any, digits: int = DIGITS) -> Any:
    """Return an array of numbers as nested lists for JSON.

    Examples
    --------
    >>> rounded([1 / 3, 123456.7, float("nan"), -2.0])
    [0.33333, 123460, None, -2]
    """
    array = np.asarray(values, dtype=np.float64)
    flat = _shortened(array.ravel(), digits)
    whole = (flat == np.floor(flat)) & (np.abs(flat) < _EXACT)
    shown: list[Any] = flat.tolist()
    for place in np.flatnonzero(whole).tolist():
        shown[place] = int(shown[place])
    for place in np.flatnonzero(~np.isfinite(flat)).tolist():
        shown[place] = None
    return _nested(shown, array.shape)


def rounded_number(value: float | None, digits: int = DIGITS) -> float | int | None:
    """Return one number for JSON; None stays None."""
    if value is None or not math.isfinite(value):
        return None
    found: float | int | None = rounded([float(value)], digits)[0]
    return found


def rounded_counts(values: NDArray[Any]) -> list[Any]:
    """Return counts for JSON: whole numbers, or rounded sums of weights."""
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        whole: list[Any] = array.astype(np.int64).tolist()
        return whole
    found: list[Any] = rounded(array, MORE_DIGITS)
    return found


def _shortened(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Return the nearest numbers of so many significant digits."""
    found = values.copy()
    usual = np.isfinite(values) & (values != 0.0)
    given = values[usual]
    magnitude = np.floor(np.log10(np.abs(given)))
    power = digits - 1 - magnitude
    is_exact = np.abs(power) <= _LARGEST_POWER
    # Multiples and quotients of a power of ten that is exact round to the shortest decimal.
    scale = 10.0 ** np.where(is_exact, np.abs(power), 0.0)
    small = np.round(given * scale) / scale
    large = np.round(given / scale) * scale
    near = np.where(power >= 0, small, large)
    for place in np.flatnonzero(~is_exact).tolist():
        near[place] = float(f"{given[place]:.{digits}g}")
    found[usual] = near
    return found


def _nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    for size in reversed(shape[1:]):
        if size == 0:
            return [[] for _ in range(shape[0])]
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat


Floats = NDArray[np.float64]
Index = NDArray[np.intp]

_TIMES = {"datetime": "M8[us]", "duration": "m8[us]"}
_MICROSECONDS = 1e6
_MIDNIGHT = datetime.datetime(1970, 1, 1)
_MOST_CHARACTERS = 200  # of a level on the page
_MOST_KEPT = 64  # columns of all rows in memory


@dataclass(frozen=True, eq=False)
class Column:
    """One column, of all rows or of some.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "time", "bool"}
    numbers : float64 array of shape (n_rows,)
        Values; seconds for times; codes of `labels` for categories. NaN for missing values.
    labels : tuple of str or float
        Levels of a category; empty for other kinds.
    unit : {"", "datetime", "duration", "time"}
    """

    name: str
    kind: str
    numbers: Floats
    labels: tuple[str | float, ...] = ()
    unit: str = ""

    def take(self, rows: Index) -> Column:
        """Return the column of some rows."""
        return Column(self.name, self.kind, self.numbers[rows], self.labels, self.unit)

    def given(self, numbers: Floats) -> NDArray[Any]:
        """Return numbers of this column as the user's table has them."""
        missing = np.isnan(numbers)
        if self.kind == "category":
            codes = np.where(missing, -1, numbers).astype(np.intp)
            if self.labels and not isinstance(self.labels[0], str):
                return np.append(np.array(self.labels, np.float64), np.nan)[codes]
            return np.array([*self.labels, None], dtype=object)[codes]
        if self.kind != "time":
            return numbers
        ticks = np.where(missing, 0.0, np.round(numbers * _MICROSECONDS)).astype(np.int64)
        times: NDArray[Any] = ticks.astype(_TIMES.get(self.unit, "m8[us]"))
        if self.unit == "time":
            clock = [(_MIDNIGHT + one).time() for one in times.astype(object)]
            found = np.array(clock, dtype=object)
            found[missing] = None
            return found
        times[missing] = "NaT"
        return times

    def text(self, number: float) -> str:
        """Return one of the numbers of this column as text."""
        if np.isnan(number):
            return "missing"
        if self.kind == "category":
            return shown_level(self.labels[int(number)])
        if self.kind == "bool":
            return str(bool(number))
        if self.kind == "time" and np.isfinite(number):
            return time_text(float(number), self.unit)
        return number_text(float(number), 5)

    def shown(self) -> list[Any]:
        """Return the values for the page: numbers, or text for all other kinds."""
        if self.kind == "number":
            found: list[Any] = rounded(self.numbers, MORE_DIGITS)
            return found
        return [None if np.isnan(one) else self.text(one) for one in self.numbers]


def level_text(label: str | float) -> str:
    """Return a level of a category as text."""
    return label if isinstance(label, str) else number_text(label, 5)


def shown_level(label: str | float) -> str:
    """Return a level of a category as text for the page, which carries no long ones."""
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
        self._kept: dict[int, Column] = {}
        self.n_given = int(self._raw.columns.n_rows)
        self.n_rows = self.n_given if rows is None else len(rows)
        self.n_features = schema.n_features

    def column(self, feature: int) -> Column:
        """Return a column of all rows; those of a few features are kept."""
        found = self._kept.get(feature)
        if found is None:
            found = self._read(feature)
            if len(self._kept) < _MOST_KEPT:
                self._kept[feature] = found
        return found

    def sample(self, rows: Index) -> Sample:
        """Return some of the rows, with all columns."""
        columns = []
        for feature in range(self.n_features):
            kept = self._kept.get(feature)
            columns.append((kept or self._read(feature)).take(rows))
        return Sample(self, rows, columns)

    def is_category(self, feature: int) -> bool:
        """Whether a column has levels, for the model or by its type."""
        known = self.schema.levels_of(feature) is not None
        return known or feature in self._raw.texts or feature in self._raw.categories

    def _read(self, feature: int) -> Column:
        found = self._read_all(feature)
        return found if self.rows is None else found.take(self.rows)

    def _read_all(self, feature: int) -> Column:
        name, raw = self.names[feature], self._raw
        if feature in raw.texts:
            levels, codes = Levels.of_text(raw.texts[feature])
            return _coded(name, levels, codes)
        numbers = raw.columns.read(feature)
        unit = raw.units.get(feature, "")
        if unit:
            return Column(name, "time", numbers, unit=unit)
        if self.is_category(feature):
            return _coded(name, *Levels.of_numbers(numbers))
        return Column(name, "bool" if name in self._booleans else "number", numbers)


def _coded(name: str, levels: Levels, codes: NDArray[np.int32]) -> Column:
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

    def take(self, places: Index) -> Sample:
        """Return some of the rows of the sample."""
        return Sample(self.table, self.rows[places], [one.take(places) for one in self.columns])

    def with_parts(self, changes: Mapping[int, Floats]) -> dict[int, Floats]:
        """Return changes of columns with those of the derived features, which follow them."""
        parts = {
            feature: calendar_part(part, changes[column]).astype(np.float64)
            for column in changes
            for feature, part in self.table.schema.parts_of(column).items()
        }
        return parts | dict(changes)

    def changed(self, places: Index, changes: Mapping[int, Floats]) -> list[NDArray[Any]]:
        """Return the values of rows of the sample, with other numbers in some columns."""
        return [
            column.given(changes[i] if i in changes else column.numbers[places])
            for i, column in enumerate(self.columns)
        ]

    @lazy_property
    def matrix(self) -> Floats | None:
        """All columns as one matrix; None unless all of them are numbers."""
        if any(column.kind not in ("number", "bool") for column in self.columns):
            return None
        return np.column_stack([column.numbers for column in self.columns])

    def changed_matrix(self, places: Index, changes: Mapping[int, Floats]) -> Floats | None:
        """Return the result of `changed` as a matrix; None unless all columns are numbers."""
        if self.matrix is None:
            return None
        found: Floats = self.matrix[places]
        for feature, numbers in changes.items():
            found[:, feature] = numbers
        return found


def table_like(
    X: Any, names: Sequence[str] | None, columns: Sequence[NDArray[Any]], matrix: Floats | None
) -> Any:
    """Return columns as a table of the type of X, as members of an ensemble were fitted on it.

    `matrix` holds the same columns, where all of them are numbers.
    """
    if is_sparse(X):
        from scipy.sparse import csr_matrix

        return csr_matrix(np.column_stack(columns) if matrix is None else matrix)
    if names is None or not (hasattr(X, "iloc") or hasattr(X, "__arrow_c_stream__")):
        return matrix if names is None and matrix is not None else plain_table(names, columns)
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not hasattr(frame, "schema"):
        return plain_table(names, columns)
    if hasattr(X, "iloc"):
        return _like_pandas(X, names, columns)
    made = nw.from_dict(dict(zip(names, columns, strict=True)), backend=frame.implementation)
    casts = [nw.col(name).cast(frame.schema[name]) for name in names if name in frame.schema]
    return made.with_columns(*casts).to_native()


def plain_table(names: Sequence[str] | None, columns: Sequence[NDArray[Any]]) -> Any:
    """Return columns as a dict of them, without names as a matrix."""
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

    made = {}
    for name, values in zip(names, columns, strict=True):
        series = pandas.Series(values)
        dtype = X[name].dtype if name in X.columns else series.dtype
        # A numeric column may hold missing values that its own integer type cannot.
        keeps = getattr(dtype, "kind", "O") not in "iub" or not series.isna().any()
        try:
            made[name] = series.astype(dtype) if keeps else series
        except (TypeError, ValueError):
            made[name] = series
    return pandas.DataFrame(made)
