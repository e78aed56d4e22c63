"""Columns of any table, before a schema defines their meaning: numbers, times and strings.

Numbers are views; times of any unit become seconds; strings become a `core.Text`: the distinct
strings, and for each row the index of its string. Python objects become one of these by their type,
and so do the columns of Arrow streams, whose numbers stay in their chunks.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.cuda.tables import columns_of, table_array
from arboost.data import messages
from arboost.data.features.column_names import unique_names
from arboost.data.levels import Order

__all__ = [
    "N_DIMENSIONS",
    "TICKS",
    "RawTable",
    "from_arrow",
    "from_device",
    "from_dicts",
    "from_numpy",
    "is_column",
    "is_missing",
    "missing_column",
]

# Kinds of NumPy dtypes.
_NUMBERS = "biuf"
_STRINGS = "OUST"
_TIMES = "mM"
N_DIMENSIONS = 2  # of a table
_WIDEST = 8  # largest number of bytes of a value in the core

# NumPy's units of time: seconds per tick, ticks per second.
TICKS = {
    "W": (7 * 24 * 3600, 1),
    "D": (24 * 3600, 1),
    "h": (3600, 1),
    "m": (60, 1),
    "s": (1, 1),
    "ms": (1, 10**3),
    "us": (1, 10**6),
    "ns": (1, 10**9),
    "ps": (1, 10**12),
    "fs": (1, 10**15),
    "as": (1, 10**18),
}
_EPOCH = datetime.datetime(1970, 1, 1)
_LARGEST = 2**63 - 1


@dataclass
class RawTable:
    """Columns of a table, before a schema defines their meaning.

    Attributes
    ----------
    columns : core.Columns
        All columns; columns of strings are empty here.
    names : tuple of str, or None
    texts : dict of int to core.Text
        Columns of strings.
    categories : set of int
        Columns of a categorical type.
    units : dict of int to str
        Units of the columns of times, which are in seconds.
    inexact : set of int
        Columns with values beyond the precision of float64.
    orders : dict of int to list of Order
        Orders of the levels of ordered categories, one of each dictionary.
    """

    columns: core.Columns
    names: tuple[str, ...] | None = None
    texts: dict[int, core.Text] = field(default_factory=dict)
    categories: set[int] = field(default_factory=set)
    units: dict[int, str] = field(default_factory=dict)
    inexact: set[int] = field(default_factory=set)
    orders: dict[int, list[Order]] = field(default_factory=dict)

    def select(self, indices: Sequence[int]) -> RawTable:
        """Return columns by their indices, without names and types."""
        pairs = list(enumerate(indices))
        return RawTable(
            self.columns.select(indices),
            texts={new: self.texts[old] for new, old in pairs if old in self.texts},
            units={new: self.units[old] for new, old in pairs if old in self.units},
            orders={new: self.orders[old] for new, old in pairs if old in self.orders},
        )

    def extend(self, other: RawTable) -> None:
        """Append the columns of another table, for predictions: without names and types."""
        first = int(self.columns.n_columns)
        self.columns.extend(other.columns)
        self.texts |= {first + i: text for i, text in other.texts.items()}
        self.units |= {first + i: unit for i, unit in other.units.items()}

    def label(self, column: int) -> str:
        """Return the name of a column in messages: its name, or its index."""
        return repr(column if self.names is None else self.names[column])

    def set_missing(self, missing: float, others: Iterable[int] = ()) -> None:
        """Set the number that means missing in all columns of numbers, but not times or others."""
        if not math.isnan(missing):
            self.columns.set_missing(missing, sorted({*self.units, *others}))

    def is_all_missing(self, column: int) -> bool:
        """Whether a column has no values."""
        if column in self.texts:
            return int(self.texts[column].n_present) == 0
        if isinstance(self.columns, core.Columns):
            return self.columns.is_all_missing(column)
        return bool(np.isnan(self.columns.read(column)).all())

    def add(self, values: NDArray[Any], label: object) -> None:
        """Append an array of numbers, times, strings or objects."""
        kind = values.dtype.kind
        if kind in _NUMBERS:
            self.columns.add(native(values))
        elif kind in _TIMES:
            self._add_times(values, label)
        elif kind in _STRINGS:
            self.add_objects(values.tolist(), label)
        else:
            raise TypeError(messages.column_type_message([(label, str(values.dtype))]))

    def add_text(self, text: core.Text, *, is_category: bool = False) -> None:
        """Append a column of strings."""
        index = int(self.columns.n_columns)
        self.columns.add_missing()
        self.texts[index] = text
        if is_category:
            self.categories.add(index)

    def add_objects(self, values: list[Any], label: object) -> None:
        """Append Python objects: strings, numbers, decimals or times, and missing values."""
        text, stop = core.Text.of_objects(values)
        if stop < len(values) and is_missing(values[stop]):  # a missing value unknown to the core
            values = [None if is_missing(value) else value for value in values]
            text, stop = core.Text.of_objects(values)
        if stop == len(values):
            self.add_text(text)  # a column without any value may hold strings in other rows
            return
        string = next((one for one in values if isinstance(one, str | bytes)), None)
        if string is not None:
            raise TypeError(messages.mixed_message(label, string, values[stop]))
        if _unit_of(values[stop]):
            self._add_time_objects(values, label)
        else:
            self.columns.add(_numbers_of(values, label))

    def add_arrow(self, stream: Any, label: object) -> None:
        """Append the only column of an Arrow stream."""
        part, fields, _ = core.columns_of_arrow(stream)
        if part is None:
            raise TypeError(messages.column_type_message([(label, _arrow_type(fields[0].format))]))
        index = int(self.columns.n_columns)
        self.columns.extend(part)
        self._add_metadata(index, fields[0])

    def _add_metadata(self, index: int, column: core.ArrowColumn) -> None:
        """Store the metadata of a column of an Arrow stream."""
        if column.is_text:
            self.texts[index] = column.text
        if column.is_dictionary:
            self.categories.add(index)
        if column.unit:
            self.units[index] = column.unit
        elif any(column.orders):
            self.orders[index] = [order for order in column.orders if order]
        if column.is_inexact:
            self.inexact.add(index)

    def _add_times(self, values: NDArray[Any], label: object) -> None:
        kind = values.dtype.kind
        unit, count = np.datetime_data(values.dtype)
        if unit in ("Y", "M") and kind == "M":
            values, unit, count = values.astype("M8[D]"), "D", 1
        if unit not in TICKS:
            raise TypeError(messages.column_type_message([(label, str(values.dtype))]))
        if count != 1 or not values.dtype.isnative:
            values = values.astype(f"{kind}8[{unit}]")
        ticks = np.ascontiguousarray(values).view(np.int64)
        self._add_ticks(ticks, TICKS[unit], "datetime" if kind == "M" else "duration")

    def _add_ticks(self, ticks: NDArray[np.int64], tick: tuple[int, int], unit: str) -> None:
        index = int(self.columns.n_columns)
        if self.columns.add_times(ticks, *tick):
            self.inexact.add(index)
        self.units[index] = unit

    def _add_time_objects(self, values: list[Any], label: object) -> None:
        present = [value for value in values if not is_missing(value)]
        units = {_unit_of(value) for value in present}
        if len(units) > 1:
            other = next(one for one in present if _unit_of(one) != _unit_of(present[0]))
            raise TypeError(messages.mixed_message(label, present[0], other))
        if isinstance(present[0], np.datetime64 | np.timedelta64):
            missing = type(present[0])("NaT")
            given = [missing if is_missing(value) else value for value in values]
            return self._add_times(np.array(given), label)
        ticks = [None if is_missing(value) else _nanoseconds(value) for value in values]
        per_second = 10**9
        while max(abs(tick) for tick in ticks if tick is not None) > _LARGEST:
            per_second //= 1000  # float64 has no nanoseconds so far from 1970
            ticks = [None if tick is None else tick // 1000 for tick in ticks]
        whole = np.array([-_LARGEST - 1 if tick is None else tick for tick in ticks], np.int64)
        return self._add_ticks(whole, (1, per_second), units.pop())


def from_numpy(X: NDArray[Any]) -> RawTable:
    """Return the columns of a matrix."""
    if X.ndim != N_DIMENSIONS:
        raise ValueError(messages.dimensions_message(X))
    raw = RawTable(core.Columns(X.shape[0]))
    if X.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: columns must be real numbers. Pass X.real and X.imag as "
            "columns of their own."
        )
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(X)
        if X.dtype.kind in _NUMBERS:
            for i, column in enumerate(native(X.data).T):
                raw.columns.add(column, mask[:, i])
            return raw
        X = X.data.astype(object)
        X[mask] = None
    if X.dtype.kind in _NUMBERS:
        raw.columns.add_matrix(native(X))
    else:
        for i in range(X.shape[1]):
            raw.add(X[:, i], i)
    return raw


def from_device(X: Any, device: str | None) -> RawTable:
    """Return the columns of a matrix or a data frame in the memory of a CUDA device.

    `device` is the device that reads it; None: any.
    """
    array = table_array(X, device)
    if array.ndim != N_DIMENSIONS:
        raise ValueError(messages.dimensions_message(array))
    names = getattr(X, "columns", None)  # of cuDF
    # The methods that tables are read by are those of core.Columns.
    columns = cast(core.Columns, columns_of(array))
    return RawTable(columns, None if names is None else unique_names(list(names)))


def from_dicts(X: Mapping[Any, Any] | Sequence[Mapping[Any, Any]]) -> RawTable:
    """Return the columns of a dict of columns, of a dict of one row, or of one dict per row.

    Keys that a row lacks are missing values.
    """
    if not isinstance(X, Mapping):
        rows = X
    elif not X or not all(map(is_column, X.values())):
        rows = [X]
    else:
        return _from_columns(X)
    labels = list(dict.fromkeys(label for row in rows for label in row))
    raw = RawTable(core.Columns(len(rows)), unique_names(labels))
    for name in labels:
        raw.add_objects([row.get(name) for row in rows], name)
    return raw


def _from_columns(X: Mapping[Any, Any]) -> RawTable:
    columns = {name: np.asarray(values) for name, values in X.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"X is a dict of columns of different lengths: {lengths}. Pass columns of equal length."
        )
    raw = RawTable(core.Columns(next(iter(lengths.values()))), unique_names(list(columns)))
    for name, values in columns.items():
        # NumPy turns numbers next to strings into strings.
        raw.add(np.array(X[name], dtype=object) if values.dtype.kind in "US" else values, name)
    return raw


def is_column(value: object) -> bool:
    """Whether a value of a dict is a column: a list, an array or a series."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def from_arrow(X: Any) -> RawTable:
    """Return the columns of anything with an Arrow C stream."""
    if "Object" in map(str, getattr(X, "dtypes", ())):
        return _from_objects(X)
    columns, fields, is_table = core.columns_of_arrow(X.__arrow_c_stream__())
    if not is_table:
        raise ValueError(messages.series_message(X))
    if columns is None:
        bad = [(one.name, _arrow_type(one.format)) for one in fields if not one.is_supported]
        raise TypeError(messages.column_type_message(bad))
    raw = RawTable(columns, unique_names([one.name for one in fields]))
    for index, one in enumerate(fields):
        raw._add_metadata(index, one)
    return raw


def _from_objects(X: Any) -> RawTable:
    """Return the columns of a Polars frame with objects, which it exports as their addresses."""
    raw = RawTable(core.Columns(X.height), unique_names(X.columns))
    for name, dtype in X.schema.items():
        if str(dtype) == "Object":
            raw.add_objects(X[name].to_list(), name)
        else:
            raw.add_arrow(X[name].__arrow_c_stream__(), name)
    return raw


def missing_column(n_rows: int) -> core.Columns:
    """Return a table of one column without values."""
    column = core.Columns(n_rows)
    column.add_missing()
    return column


def native(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array of numbers, converted where the core cannot read it."""
    dtype = values.dtype
    if dtype.itemsize > _WIDEST:
        return values.astype(np.float64)  # long double: the core works with float64
    if not dtype.isnative or any(stride % dtype.itemsize for stride in values.strides):
        return values.astype(dtype.newbyteorder("="))
    return values


def is_missing(value: object) -> bool:
    """Whether a Python object is a missing value: None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _numbers_of(values: list[Any], label: object) -> NDArray[np.float64]:
    """Return numbers, decimals and fractions as float64."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = [np.nan if is_missing(value) else value for value in values]
    try:
        return objects.astype(np.float64)
    except (TypeError, ValueError) as error:
        first = next((one for one in objects if not isinstance(one, Number)), None)
        raise TypeError(messages.object_message(label, first, error)) from error


def _unit_of(value: object) -> str:
    """Return the unit of a time, "" for other objects."""
    if isinstance(value, datetime.date | np.datetime64):  # a datetime is a date, too
        return "datetime"
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return "duration"
    return "time" if isinstance(value, datetime.time) else ""


def _nanoseconds(value: Any) -> int:
    """Return nanoseconds: since 1970 in UTC, of a duration, or since midnight."""
    if isinstance(value, datetime.time):
        value = datetime.datetime.combine(_EPOCH, value.replace(tzinfo=None))
    elif isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    elif isinstance(value, datetime.date):
        value = datetime.datetime(value.year, value.month, value.day)
    finer = getattr(value, "nanosecond", getattr(value, "nanoseconds", 0))  # of pandas
    span = value if isinstance(value, datetime.timedelta) else value - _EPOCH
    return int(span // datetime.timedelta(microseconds=1)) * 1000 + int(finer)


def _arrow_type(given: str) -> str:
    """Return the name of an unsupported Arrow format in messages."""
    if given.startswith("+r"):
        return "run-end encoded: decode it, for example by pyarrow.compute.run_end_decode"
    return "nested" if given.startswith("+") else f"Arrow type {given}"
