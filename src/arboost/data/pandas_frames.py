"""pandas dataframes -> `RawTable`; pandas itself is an argument, and never imported here."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import messages
from arboost.data.features.column_names import unique_names
from arboost.data.levels import Order
from arboost.data.raw_columns import RawTable, from_numpy, is_missing, native

__all__ = ["from_pandas"]

_SMALL = 100_000  # values up to which a copy is faster than reading column by column


def from_pandas(frame: Any, pandas: Any) -> RawTable:
    """Return the columns of a dataframe."""
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
        raise TypeError(messages.column_type_message([(label, str(dtype))]))


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
    elif values.dtype.kind in "biuf" or all(isinstance(one, numbers.Real) for one in values):
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
    """Return codes and categories without unused ones, if there are more categories than rows."""
    if len(categories) <= len(codes):
        return codes, categories
    used, indices = np.unique(codes, return_inverse=True)
    n_missing = int(np.searchsorted(used, 0))  # 1 if -1 comes first, else 0
    return indices - n_missing, categories[used[n_missing:]]


def _as_strings(categories: list[Any], label: object) -> list[Any]:
    """Return strings unchanged, and all other categories, such as intervals, as strings."""
    texts = [one if isinstance(one, str | bytes) else str(one) for one in categories]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        alike = [one for one, text in zip(categories, texts, strict=True) if text == twice]
        raise TypeError(messages.mixed_message(label, alike[0], alike[1]))
    return texts


def _texts(strings: list[Any]) -> Order:
    """Return strings in UTF-8, as the core stores them."""
    return tuple(
        one if isinstance(one, bytes) else one.encode("utf-8", "surrogatepass") for one in strings
    )


def _add_sparse(raw: RawTable, array: Any, label: object) -> None:
    values = array.sp_values
    if values.dtype.kind not in "biuf":
        raise TypeError(messages.column_type_message([(label, str(array.dtype))]))
    rows = array.sp_index.to_int_index().indices.astype(np.uint32)
    fill = array.fill_value
    raw.columns.add_sparse(rows, native(values), np.nan if is_missing(fill) else float(fill))


def _nullable(series: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values and the mask of a nullable pandas column."""
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
