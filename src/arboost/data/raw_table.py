"""Any table -> `RawTable`: columns, before a schema defines their meaning."""

from __future__ import annotations

import datetime
import math
import numbers
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.cuda import columns_of, table_array
from arboost.data.levels import Floats, Order
from arboost.data.schema import unique_names
from arboost.errors import InputError, InputTypeError, listing

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
        """Columns by their indices, without names and types."""
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
        """Name of a column in messages: its name, or its index."""
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
            raise column_type_error([(label, str(values.dtype))])

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
        string = next((value for value in values if isinstance(value, str | bytes)), None)
        if string is not None:
            raise mixed_error(label, string, values[stop])
        if _unit_of(values[stop]):
            self._add_time_objects(values, label)
        else:
            self.columns.add(_numbers_of(values, label))

    def add_arrow(self, stream: Any, label: object) -> None:
        """Append the only column of an Arrow stream."""
        part, fields, _ = core.columns_of_arrow(stream)
        if part is None:
            raise column_type_error([(label, _arrow_type(fields[0].format))])
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
            raise column_type_error([(label, str(values.dtype))])
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
            other = next(value for value in present if _unit_of(value) != _unit_of(present[0]))
            raise mixed_error(label, present[0], other)
        if isinstance(present[0], np.datetime64 | np.timedelta64):
            missing = type(present[0])("NaT")
            times = [missing if is_missing(value) else value for value in values]
            return self._add_times(np.array(times), label)
        ticks = [None if is_missing(value) else _nanoseconds(value) for value in values]
        per_second = 10**9
        while max(abs(tick) for tick in ticks if tick is not None) > _LARGEST:
            per_second //= 1000  # float64 has no nanoseconds so far from 1970
            ticks = [None if tick is None else tick // 1000 for tick in ticks]
        whole = np.array([-_LARGEST - 1 if tick is None else tick for tick in ticks], np.int64)
        return self._add_ticks(whole, (1, per_second), units.pop())


def from_numpy(X: NDArray[Any]) -> RawTable:
    """Columns of a matrix."""
    if X.ndim != N_DIMENSIONS:
        raise dimensions_error(X)
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
    """Columns of a matrix or a data frame in the memory of a CUDA device.

    `device` is the device that reads it; None: any.
    """
    array = table_array(X, device)
    if array.ndim != N_DIMENSIONS:
        raise dimensions_error(array)
    names = getattr(X, "columns", None)  # of cuDF
    # The methods that tables are read by are those of core.Columns.
    columns = cast(core.Columns, columns_of(array))
    return RawTable(columns, None if names is None else unique_names(list(names)))


def from_dicts(X: Mapping[Any, Any] | Sequence[Mapping[Any, Any]]) -> RawTable:
    """Columns of a dict of columns, of a dict of one row, or of one dict per row.

    Keys that a row lacks are missing values.
    """
    if isinstance(X, Mapping) and X and all(map(is_column, X.values())):
        return _from_columns(X)
    rows = [X] if isinstance(X, Mapping) else X
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
    """Columns of anything with an Arrow C stream."""
    if "Object" in map(str, getattr(X, "dtypes", ())):
        return _from_objects(X)
    columns, fields, is_table = core.columns_of_arrow(X.__arrow_c_stream__())
    if not is_table:
        raise series_error(X)
    if columns is None:
        bad = [
            (entry.name, _arrow_type(entry.format)) for entry in fields if not entry.is_supported
        ]
        raise column_type_error(bad)
    raw = RawTable(columns, unique_names([entry.name for entry in fields]))
    for index, arrow_field in enumerate(fields):
        raw._add_metadata(index, arrow_field)
    return raw


def _from_objects(X: Any) -> RawTable:
    """Columns of a Polars frame with objects, which it exports as their addresses."""
    raw = RawTable(core.Columns(X.height), unique_names(X.columns))
    for name, dtype in X.schema.items():
        if str(dtype) == "Object":
            raw.add_objects(X[name].to_list(), name)
        else:
            raw.add_arrow(X[name].__arrow_c_stream__(), name)
    return raw


def missing_columns(n_rows: int, n_columns: int = 1) -> core.Columns:
    """Columns without values."""
    columns = core.Columns(n_rows)
    for _ in range(n_columns):
        columns.add_missing()
    return columns


def number_column(values: NDArray[Any]) -> core.Columns:
    """One column of numbers."""
    column = core.Columns(len(values))
    column.add(values)
    return column


def native(values: NDArray[Any]) -> NDArray[Any]:
    """An array of numbers, converted where the core cannot read it."""
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


def _numbers_of(values: list[Any], label: object) -> Floats:
    """Numbers, decimals and fractions as float64."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = [np.nan if is_missing(value) else value for value in values]
    try:
        return objects.astype(np.float64)
    except (TypeError, ValueError) as error:
        first = next((number for number in objects if not isinstance(number, numbers.Number)), None)
        raise _object_error(label, first, error) from error


def _unit_of(value: object) -> str:
    """Unit of a time, "" for other objects."""
    if isinstance(value, datetime.date | np.datetime64):  # a datetime is a date, too
        return "datetime"
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return "duration"
    return "time" if isinstance(value, datetime.time) else ""


def _nanoseconds(value: Any) -> int:
    """Nanoseconds: since 1970 in UTC, of a duration, or since midnight."""
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


def _arrow_type(form: str) -> str:
    """Name of an unsupported Arrow format in messages."""
    if form.startswith("+r"):
        return "run-end encoded: decode it, for example by pyarrow.compute.run_end_decode"
    return "nested" if form.startswith("+") else f"Arrow type {form}"


# ---- frames of Polars and PyArrow, in their own type ----


def is_arrow_frame(X: Any) -> bool:
    """Whether X is a frame of Polars or PyArrow; pandas frames have an Arrow stream, too."""
    return hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc")


def arrow_frame(X: Any) -> Any:
    """A frame of Polars as it is; a table of PyArrow of all other Arrow streams."""
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(X, polars.DataFrame):
        return X
    import pyarrow

    return X if isinstance(X, pyarrow.Table) else pyarrow.table(X)


def frame_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a frame of Polars or PyArrow."""
    frame = arrow_frame(X)
    return frame.take(rows) if hasattr(frame, "column_names") else frame[rows]


def frame_columns(X: Any, positions: Sequence[int], names: Sequence[str]) -> Any:
    """Some columns of a frame of Polars or PyArrow, with new names."""
    frame = arrow_frame(X)
    if hasattr(frame, "column_names"):
        return frame.select(list(positions)).rename_columns(list(names))
    pairs = zip(positions, names, strict=True)
    return type(frame)([frame.to_series(i).alias(name) for i, name in pairs])


def frame_like(X: Any, columns: Mapping[str, NDArray[Any]]) -> Any:
    """Columns as a frame of the package of X, a frame of Polars or PyArrow.

    Columns that X has, too, get the types of X.
    """
    frame = arrow_frame(X)
    if not hasattr(frame, "column_names"):
        types = {name: dtype for name, dtype in frame.schema.items() if name in columns}
        return type(frame)(dict(columns)).cast(types)
    import pyarrow

    table = pyarrow.table(dict(columns))
    known = dict(zip(frame.schema.names, frame.schema.types, strict=True))
    return table.cast(
        pyarrow.schema([(field.name, known.get(field.name, field.type)) for field in table.schema])
    )


def append_columns(frame: Any, X: Any) -> Any:
    """A frame of Polars or PyArrow, followed by the columns of another one of its package."""
    other = arrow_frame(X)
    if not hasattr(other, "column_names"):
        return frame.hstack(other.get_columns())
    for name, column in zip(other.column_names, other.columns, strict=True):
        frame = frame.append_column(name, column)
    return frame


# ---- pandas ----

_SMALL = 100_000  # values up to which a copy is faster than reading column by column


def from_pandas(frame: Any, pandas: Any) -> RawTable:
    """Columns of a dataframe."""
    names = unique_names(frame.columns.tolist())
    dtypes = list(frame.dtypes)
    if frame.size <= _SMALL and len(set(dtypes)) == 1 and _is_number(dtypes[0]):
        raw = from_numpy(frame.to_numpy())
        raw.names = names
        return raw
    raw = RawTable(core.Columns(len(frame)), names)
    for (name, series), dtype in zip(frame.items(), dtypes, strict=True):
        if _is_number(dtype):
            raw.columns.add(native(series.to_numpy()))
        else:
            _add(raw, series, name, pandas)
    return raw


def _add(raw: RawTable, series: Any, label: object, pandas: Any) -> None:
    """Append a column of any type but NumPy numbers."""
    dtype, arrays = series.dtype, pandas.arrays
    if isinstance(dtype, np.dtype):
        raw.add(series.to_numpy(), label)
    elif isinstance(dtype, pandas.CategoricalDtype):
        _add_categorical(raw, series.cat, label)
    elif _is_arrow(dtype):
        raw.add_arrow(_stream(series.array), label)
    elif isinstance(series.array, arrays.IntegerArray | arrays.FloatingArray | arrays.BooleanArray):
        raw.columns.add(*_nullable(series))
    elif isinstance(dtype, pandas.StringDtype):
        raw.add_objects(series.tolist(), label)
    elif isinstance(dtype, pandas.SparseDtype):
        _add_sparse(raw, series.array, label)
    elif isinstance(dtype, pandas.DatetimeTZDtype):
        raw.add(series.to_numpy(dtype=f"M8[{dtype.unit}]"), label)  # in UTC
    elif isinstance(dtype, pandas.PeriodDtype):
        raw.add(series.dt.to_timestamp().to_numpy(), label)
    else:
        raise column_type_error([(label, str(dtype))])


def _add_categorical(raw: RawTable, column: Any, label: object) -> None:
    column_index = int(raw.columns.n_columns)
    codes, categories = column.codes.to_numpy(), column.categories
    if not column.ordered:
        codes, categories = _used(codes, categories)
    if _is_arrow(categories.dtype):
        entries = RawTable(core.Columns(len(categories)))
        entries.add_arrow(_stream(categories.array), label)
        if 0 in entries.texts:
            raw.add_text(entries.texts[0].take(codes.astype(np.int64)), is_category=True)
            if column.ordered:
                raw.orders[column_index] = [_texts(categories.tolist())]
            return
        values = entries.columns.read(0)
    else:
        values = categories.to_numpy()
    if values.dtype.kind in "mM":
        taken = np.append(values, values.dtype.type("NaT"))[codes]
        raw.add(taken, label)
        order = ()  # times have theirs
    elif values.dtype.kind in "biuf" or all(isinstance(value, numbers.Real) for value in values):
        numbers_of = values.astype(np.float64)
        raw.columns.add(np.append(numbers_of, np.nan)[codes])
        order = tuple(numbers_of.tolist())
    else:
        strings = _as_strings(list(categories), label)
        text, _ = core.Text.of_objects(strings)
        raw.add_text(text.take(codes.astype(np.int64)))
        order = _texts(strings)
    raw.categories.add(column_index)
    if column.ordered and order:
        raw.orders[column_index] = [order]


def _used(codes: NDArray[Any], categories: Any) -> tuple[NDArray[Any], Any]:
    """Codes and categories without unused ones, if there are more categories than rows."""
    if len(categories) <= len(codes):
        return codes, categories
    used, indices = np.unique(codes, return_inverse=True)
    n_missing = int(np.searchsorted(used, 0))  # 1 if -1 comes first, else 0
    return indices - n_missing, categories[used[n_missing:]]


def _as_strings(categories: list[Any], label: object) -> list[Any]:
    """Strings unchanged, and all other categories, such as intervals, as strings."""
    texts = [
        category if isinstance(category, str | bytes) else str(category) for category in categories
    ]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        alike = [
            category for category, text in zip(categories, texts, strict=True) if text == twice
        ]
        raise mixed_error(label, alike[0], alike[1])
    return texts


def _texts(strings: list[Any]) -> Order:
    """Strings in UTF-8, as the core stores them."""
    return tuple(
        string if isinstance(string, bytes) else string.encode("utf-8", "surrogatepass")
        for string in strings
    )


def _add_sparse(raw: RawTable, array: Any, label: object) -> None:
    values = array.sp_values
    if values.dtype.kind not in "biuf":
        raise column_type_error([(label, str(array.dtype))])
    rows = array.sp_index.to_int_index().indices.astype(np.uint32)
    fill = array.fill_value
    raw.columns.add_sparse(rows, native(values), np.nan if is_missing(fill) else float(fill))


def _nullable(series: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values and the mask of a nullable pandas column."""
    array = series.array
    if hasattr(array, "_data") and hasattr(array, "_mask"):  # the public ways copy
        return array._data, array._mask
    return series.to_numpy(dtype=series.dtype.numpy_dtype, na_value=0), series.isna().to_numpy()


def _is_arrow(dtype: Any) -> bool:
    """Whether values are in Arrow's layout: ArrowDtype, and strings with PyArrow."""
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"


def _stream(array: Any) -> object:
    return array.__arrow_array__().__arrow_c_stream__()


def _is_number(dtype: object) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


# ---- matrices of scipy ----

_LARGEST_EXACT = 2**53
_INDEX_TYPES = (np.int32, np.int64)  # of scipy


def is_sparse(X: object) -> bool:
    """Whether X is a matrix or array of scipy.sparse."""
    # The class is asked: the number of stored values of a corrupted matrix may raise.
    return hasattr(type(X), "nnz") and hasattr(type(X), "tocsr")


def from_scipy(X: Any) -> RawTable:
    """Columns of a sparse matrix; raise ValueError for a corrupted one."""
    kind = getattr(getattr(X, "dtype", None), "kind", "f")  # without data there is none
    if kind == "c":
        raise ValueError("Complex data not supported: columns of a sparse table must be real.")
    if kind not in "biuf":
        raise InputTypeError(
            f"X is a sparse table of {X.dtype}, but it must be of numbers. Convert it, for example "
            "with X.astype(float)."
        )
    matrix = checked_matrix(X)
    n_rows, n_columns = matrix.shape
    check_row_count(n_rows)
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    # Arrays that a user has changed may be longer than the number of stored values.
    stored = int(matrix.indptr[-1])
    values, indices = native(matrix.data[:stored]), matrix.indices[:stored]
    raw = RawTable(core.Columns(n_rows))
    if matrix.format == "csc":
        rows = indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32)
        starts = np.ascontiguousarray(matrix.indptr)
        raw.columns.add_csc(starts, np.ascontiguousarray(rows), values, 0.0)
    else:
        index = np.result_type(matrix.indptr, indices)
        raw.columns.add_csr(
            np.ascontiguousarray(matrix.indptr, index),
            np.ascontiguousarray(indices, index),
            values,
            n_columns,
            0.0,
        )
        if values.dtype in (np.int64, np.uint64):
            large = (values >= _LARGEST_EXACT) | (values <= -_LARGEST_EXACT)
            raw.inexact.update(np.unique(indices[large]).tolist())
    return raw


def checked_matrix(X: Any) -> Any:
    """X as a CSR or CSC matrix whose arrays are consistent.

    A consistent CSR or CSC matrix is returned itself; its arrays may be longer than the number of
    stored values. Other formats are converted to CSR.

    Raises
    ------
    ValueError
        X is corrupted, or has other than two dimensions.
    """
    shape = X.shape
    if len(shape) != N_DIMENSIONS:
        raise dimensions_error(X)
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in shape):
        _refuse(X, f"its shape is {shape!r}")
    convert = _FORMATS.get(X.format)
    return _compressed(X.tocsr()) if convert is None else convert(X)


def _refuse(X: Any, reason: str) -> NoReturn:
    raise ValueError(
        f"X is a corrupted sparse matrix of format {X.format!r}: {reason}. Make it again, for "
        "example with scipy.sparse.coo_array((values, (rows, columns)), shape=shape)."
    )


def _compressed(X: Any) -> Any:
    """Check a CSR or CSC matrix."""
    values = _array(X, "data", X.data, dimensions=1)
    major = 0 if X.format == "csr" else 1
    starts, indices = _check_compressed(X, X.shape[major], X.shape[1 - major], len(values))
    if starts is X.indptr and indices is X.indices:
        return X
    return _fresh(X, X.format, values, (indices, starts))


def _from_blocks(X: Any) -> Any:
    """CSR matrix of a BSR matrix: a block of values for each index."""
    values = _array(X, "data", X.data, dimensions=3)
    n_rows, n_columns = X.shape
    height, width = values.shape[1:]
    if height == 0 or width == 0 or n_rows % height or n_columns % width:
        _refuse(X, f"blocks of {height} x {width} do not divide its shape {X.shape}")
    starts, indices = _check_compressed(X, n_rows // height, n_columns // width, len(values))
    stored = int(starts[-1])
    return _fresh(X, "bsr", values[:stored], (indices[:stored], starts)).tocsr()


def _from_coordinates(X: Any) -> Any:
    """CSR matrix of a COO matrix."""
    coordinates = X.coords if hasattr(X, "coords") else (X.row, X.col)
    if not isinstance(coordinates, tuple) or len(coordinates) != N_DIMENSIONS:
        _refuse(X, "its coordinates are not two arrays")
    return _from_triplets(X, coordinates[0], coordinates[1], X.data)


def _from_keys(X: Any) -> Any:
    """CSR matrix of a DOK matrix: a dictionary of values by coordinates."""
    places, numbers = list(X.keys()), list(X.values())
    wrong = next((position for position in places if not _is_place(position)), None)
    if wrong is not None:
        _refuse(X, f"a key is {wrong!r}, not (row, column)")
    pairs = np.array(places, dtype=np.int64).reshape(-1, N_DIMENSIONS)
    return _from_triplets(X, pairs[:, 0], pairs[:, 1], _numbers(X, numbers))


def _from_lists(X: Any) -> Any:
    """CSR matrix of a LIL matrix: of each row, lists of its columns and values."""
    lists = [_array(X, "rows", X.rows, dimensions=1), _array(X, "data", X.data, dimensions=1)]
    for array in lists:
        if len(array) != X.shape[0] or not all(isinstance(row, list) for row in array):
            _refuse(X, f"its rows are not one list for each of {X.shape[0]} rows")
    lengths = [len(row) for row in lists[0]]
    if lengths != [len(row) for row in lists[1]]:
        _refuse(X, "a row has another number of columns than values")
    columns = list(chain.from_iterable(lists[0]))
    if not all(_is_index(column) for column in columns):
        _refuse(X, "a column is not an index")
    rows = np.repeat(np.arange(X.shape[0]), lengths)
    numbers = _numbers(X, list(chain.from_iterable(lists[1])))
    return _from_triplets(X, rows, np.array(columns, dtype=np.int64), numbers)


def _from_diagonals(X: Any) -> Any:
    """CSR matrix of a DIA matrix: rows of values, each a diagonal with its offset."""
    values = _array(X, "data", X.data, dimensions=2)
    offsets = _indices(X, "offsets", X.offsets)
    if len(offsets) != len(values):
        _refuse(X, f"it has {len(values)} diagonals, but {len(offsets)} offsets")
    if len(np.unique(offsets)) != len(offsets):
        _refuse(X, "an offset occurs twice")
    # Diagonals outside the matrix are legal; scipy casts offsets down.
    inside = (offsets > -X.shape[0]) & (offsets < X.shape[1])
    return _fresh(X, "dia", values[inside], (offsets[inside],)).tocsr()


_FORMATS: dict[str, Callable[[Any], Any]] = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _from_blocks,
    "coo": _from_coordinates,
    "dok": _from_keys,
    "lil": _from_lists,
    "dia": _from_diagonals,
}


def _fresh(X: Any, kind: str, values: NDArray[Any], places: Sequence[Any]) -> Any:
    """A matrix of checked arrays, without the properties that scipy has cached of X."""
    from scipy import sparse

    values = values.astype(np.float32) if values.dtype == np.float16 else native(values)
    container = "matrix" if isinstance(X, sparse.spmatrix) else "array"
    return getattr(sparse, f"{kind}_{container}")((values, *places), shape=X.shape)


def _from_triplets(X: Any, rows: Any, columns: Any, values: Any) -> Any:
    """CSR matrix of values by row and column."""
    values = _array(X, "data", values, dimensions=1)
    places = []
    for axis, (name, index) in enumerate((("row", rows), ("column", columns))):
        indices = _indices(X, f"{name} index", index)
        if len(indices) != len(values):
            _refuse(X, f"it has {len(values)} values, but {len(indices)} {name} indices")
        _check_range(X, f"a {name} index", indices, X.shape[axis])
        # Some estimators take 32 bits only, scipy's choice where they suffice.
        is_small = max(X.shape[axis], len(values)) <= np.iinfo(np.int32).max
        places.append(indices.astype(np.int32, copy=False) if is_small else indices)
    return _fresh(X, "coo", values, (tuple(places),)).tocsr()


def _check_compressed(
    X: Any, n_major: int, n_minor: int, n_values: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Offsets and the indices of a matrix of CSR, CSC or BSR format."""
    starts, indices = _indices(X, "indptr", X.indptr), _indices(X, "indices", X.indices)
    if len(starts) != n_major + 1:
        _refuse(X, f"indptr has length {len(starts)}, but the shape {X.shape} needs {n_major + 1}")
    if starts[0] != 0:
        _refuse(X, f"indptr starts with {starts[0]} instead of 0")
    if not (starts[:-1] <= starts[1:]).all():
        _refuse(X, f"indptr descends after {int((starts[:-1] > starts[1:]).argmax())} entries")
    stored = int(starts[-1])
    if stored > min(n_values, len(indices)):
        _refuse(
            X,
            f"indptr ends at {stored}, but there are {n_values} values and {len(indices)} indices",
        )
    _check_range(X, "an index", indices[:stored], n_minor)
    return starts, indices


def _check_range(X: Any, what: str, indices: NDArray[Any], size: int) -> None:
    if len(indices) == 0:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= size:
        _refuse(X, f"{what} is {low if low < 0 else high}, outside its shape {X.shape}")


def _array(X: Any, name: str, array: Any, *, dimensions: int) -> NDArray[Any]:
    if not isinstance(array, np.ndarray) or array.ndim != dimensions:
        _refuse(X, f"{name} is not an array of {dimensions} dimension{'s' * (dimensions > 1)}")
    return array


def _indices(X: Any, name: str, indices: Any) -> NDArray[Any]:
    """An array of indices of one of scipy's types; never cast down."""
    array = _array(X, name, indices, dimensions=1)
    if array.dtype in _INDEX_TYPES and array.dtype.isnative:
        return array
    if array.dtype.kind not in "iu":
        _refuse(X, f"{name} is of type {array.dtype}, not of integers")
    if array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        _refuse(X, f"{name} has a value of {array.max()}")
    return array.astype(np.int64)


def _numbers(X: Any, numbers: list[Any]) -> NDArray[Any]:
    try:
        return np.array(numbers, dtype=X.dtype).reshape(len(numbers))
    except (TypeError, ValueError, OverflowError) as error:
        _refuse(X, f"its values are not of type {X.dtype} ({error})")


def _is_index(value: object) -> bool:
    """Whether a value is an integer that 64 bits hold; others are outside of any shape."""
    return isinstance(value, int | np.integer) and -(2**63) <= int(value) < 2**63


def _is_place(key: object) -> bool:
    return isinstance(key, tuple) and len(key) == N_DIMENSIONS and all(map(_is_index, key))


# ---- Errors, the first words as in scikit-learn


def dimensions_error(array: Any) -> InputError:
    """Error of an array of other than two dimensions."""
    if array.ndim == 0:
        value = array.item()
        return InputError(
            f"Expected 2D array, got scalar array instead: X is {reprlib.repr(value)} "
            f"({type(value).__name__}).",
            "Pass rows and columns: a NumPy array, a table of pandas, Polars or PyArrow, a sparse "
            "matrix, or a list of lists.",
        )
    if array.ndim > 1:
        return InputError(
            f"Found array with dim {array.ndim}, while dim <= 2 is required: X has the shape "
            f"{array.shape}.",
            "Pass rows and columns, for example X.reshape(len(X), -1).",
        )
    return InputError(
        f"Expected 2D array, got 1D array instead, of shape {array.shape}.",
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
        "array.reshape(1, -1) if it contains a single sample.",
    )


def series_error(series: object) -> InputError:
    """Error of a series in place of a table."""
    return InputError(
        f"Expected a 2-dimensional container but got {type(series)} instead.",
        "Pass a DataFrame containing a single row (i.e. single sample) or a single column (i.e. "
        "single feature) instead. Reshape your data, for example with to_frame().",
    )


def check_row_count(n_rows: int) -> None:
    """Raise InputError for a table of too many rows."""
    if n_rows > core.most_rows:
        raise InputError(
            f"X has {n_rows:,} rows, but at most {core.most_rows:,} are allowed.",
            "Pass a part of the rows, for example a random sample.",
        )


def column_type_error(columns: Iterable[tuple[object, str]]) -> InputTypeError:
    """Error of columns, as pairs of name and type, of unusable types."""
    shown = listing(f"{name!r} ({kind})" for name, kind in columns)
    return InputTypeError(
        f"X has columns of types that cannot be used: {shown}. Columns must be numbers, booleans, "
        "decimals, dates and times, or categories: strings, or what categorical_features names.",
        "Take nested values apart into columns of their own (in Polars by X.unnest), turn others "
        "into numbers or strings; or drop them.",
        parameter="X",
    )


def mixed_error(column: object, value: object, other: object) -> InputTypeError:
    """Error of a column with values of two kinds."""
    return InputTypeError(
        f"The column {column!r} of X holds values of several kinds, among them "
        f"{value!r} ({type(value).__name__}) and {other!r} ({type(other).__name__}), so that they "
        "cannot be compared.",
        "Turn all of them into strings, or all into numbers.",
    )


def _object_error(column: object, value: object, error: object) -> InputTypeError:
    """Error of a column of objects other than numbers and strings, such as a value."""
    if isinstance(value, Mapping):
        return InputTypeError(
            f"The column {column!r} of X holds dicts, such as {reprlib.repr(value)}: {error}.",
            f"Take them apart into columns: X.drop(columns=[{column!r}]).join("
            f"pandas.json_normalize(X[{column!r}].tolist()).set_index(X.index)); or drop the "
            "column.",
        )
    return InputTypeError(
        f"The column {column!r} of X holds objects that are neither numbers nor strings: {error}.",
        "Take nested values apart into columns of their own, turn others into numbers or strings; "
        "or drop the column.",
    )
