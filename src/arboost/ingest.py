"""Any table -> `Table` (columns without copies) + `Schema`; the only file that knows dataframes.

    NumPy array -----------------> one view of the matrix
    pandas ----------------------> one view for each column
    Polars, PyArrow, Arrow stream -> the chunks as they are
    lists -----------------------> NumPy array

NaN, None, NA and masked values are missing. Nothing here imports a dataframe library: a user who
passes a dataframe has imported it already.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost import errors
from arboost.backend import core
from arboost.errors import DataWarning, SchemaError

__all__ = ["Schema", "Table", "ingest", "target", "weights"]

_NUMBERS = "biuf"  # kinds of NumPy dtypes that columns may have
_TABLE_DIMENSIONS = 2
_WIDEST = 8  # bytes of a value that the core can read
_SMALL = 100_000  # values that are faster copied than looked at column by column

# Arrow formats that users meet, as the message calls them.
_ARROW_TYPES = {
    "u": "string",
    "U": "string",
    "vu": "string",
    "z": "binary",
    "Z": "binary",
    "vz": "binary",
    "d": "decimal",
    "t": "date or time",
    "+": "nested",
    "dictionary": "categorical",
}


@dataclass(frozen=True)
class Schema:
    """Names (None where the table had none) and number of the columns of a fit."""

    names: tuple[str, ...] | None
    n_features: int


@dataclass(frozen=True)
class Table:
    """Columns that the core can read, and their schema."""

    columns: core.Columns
    schema: Schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.columns.n_rows)


def ingest(X: object, schema: Schema | None = None, *, caller: str = "Model") -> Table:
    """Return the columns of X; with a schema, in its order.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, or list of
        lists. Columns are numbers or booleans.
    schema : Schema, optional
        What the model was fitted on. Columns with names are matched by name, others by position.
        Without a schema the table is one to fit on, and must have a row.
    caller : str
        Who the messages say expects the features of the schema.

    Raises
    ------
    ValueError, TypeError
        Where X is no table of numbers.
    SchemaError
        Where X has other columns than the schema.
    """
    columns, names = _read(X)
    n_rows, n_columns = columns.n_rows, columns.n_columns
    if n_columns == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required."
        )
    if schema is not None:
        return Table(_match(columns, names, schema, caller), schema)
    if n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is "
            "required."
        )
    inexact = columns.inexact_columns()
    if inexact:
        shown = inexact if names is None else [names[i] for i in inexact]
        warnings.warn(errors.inexact_message(shown), DataWarning, stacklevel=2)
    return Table(columns, Schema(names, n_columns))


def target(y: object, n_rows: int) -> NDArray[Any]:
    """Return y as a 1-D array of n_rows values, none of them missing or infinite.

    Labels keep their type: what they mean is for the estimator to say.
    """
    if y is None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None. Pass one value for each row."
        )
    array = _vector(y)
    if array.shape[1:] == (1,):
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {array.shape} instead. Pass one value "
            "for each row."
        )
    _check_length("y", len(array), n_rows)
    _check_target_values(array)
    return array


def weights(sample_weight: object, n_rows: int) -> NDArray[np.float64] | None:
    """Return n_rows finite weights of at least 0, not all of them 0; None stays None."""
    if sample_weight is None:
        return None
    try:
        array = np.asarray(_vector(sample_weight), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"sample_weight must be numbers, one for each row, but {error}. Pass floats."
        ) from error
    if array.ndim == 0:
        array = np.full(n_rows, float(array))
    if array.ndim != 1:
        raise ValueError(
            f"sample_weight has the shape {array.shape}, but it must be 1-D: one weight for each "
            "row. Pass a 1-D array."
        )
    _check_length("sample_weight", len(array), n_rows)
    bad = ~((array >= 0) & np.isfinite(array))
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(
            f"sample_weight has {int(bad.sum())} values that are negative, NaN or infinite, the "
            f"first {array[first]} in row {first}. Weights must be finite and at least 0; give a "
            "row the weight 0 to leave it out."
        )
    if not array.any():
        raise ValueError(
            "All values of sample_weight are zero, so there is nothing to learn from. At least one "
            "weight must be above 0."
        )
    return np.ascontiguousarray(array)


def _read(X: object) -> tuple[core.Columns, tuple[str, ...] | None]:
    """Return the columns of any table, and their names where all are strings."""
    if isinstance(X, np.ndarray):
        return _from_numpy(X), None
    if _is_sparse(X):
        raise TypeError(
            f"X is a sparse table ({type(X).__name__}), but only dense ones are supported. Use "
            "X.toarray(), or a table of the columns that matter."
        )
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(X, pandas.DataFrame):
            return _from_pandas(X, pandas.arrays)
        if isinstance(X, pandas.Series):
            raise ValueError(errors.series_message(X))
    if hasattr(X, "__arrow_c_stream__"):
        return _from_arrow(X)
    return _from_numpy(_as_array(X)), None


def _from_numpy(X: NDArray[Any]) -> core.Columns:
    if X.ndim != _TABLE_DIMENSIONS:
        raise ValueError(errors.dimensions_message(X))
    columns = core.Columns(X.shape[0])
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(X)
        for i, column in enumerate(_native(X.data).T):
            columns.add(column, mask[:, i])
        return columns
    columns.add_matrix(_native(X))
    return columns


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself where the core can read it, else converted."""
    dtype = values.dtype
    if dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: columns must be real numbers. Pass X.real and X.imag as "
            "columns of their own."
        )
    if dtype.kind == "O":
        return _numbers_of_objects(values)
    if dtype.kind not in _NUMBERS:
        raise TypeError(
            f"X is an array of {dtype}, but columns must be numbers or booleans. Convert it, for "
            "example with X.astype(float)."
        )
    if dtype.itemsize > _WIDEST:
        return values.astype(np.float64)  # long double: the core works with float64
    if not dtype.isnative or any(stride % dtype.itemsize for stride in values.strides):
        return values.astype(dtype.newbyteorder("="))
    return values


def _numbers_of_objects(values: NDArray[Any]) -> NDArray[np.float64]:
    flat = values.ravel()
    for i, value in enumerate(flat):
        if isinstance(value, str | bytes):
            place = np.unravel_index(i, values.shape)
            raise TypeError(errors.string_message(map(int, place), value))
    try:
        return values.astype(np.float64)
    except TypeError:
        numbers = np.array([np.nan if _is_missing(value) else value for value in flat], object)
        return numbers.astype(np.float64).reshape(values.shape)


def _as_array(X: object) -> NDArray[Any]:
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"X is a {type(X).__name__} that is no table: {error}. Pass rows of equal length."
        ) from error


def _from_pandas(frame: Any, arrays: Any) -> tuple[core.Columns, tuple[str, ...] | None]:
    nullable = (arrays.IntegerArray, arrays.FloatingArray, arrays.BooleanArray)
    names = _names(list(frame.columns))
    dtypes = list(frame.dtypes)
    if frame.size <= _SMALL and len(set(dtypes)) == 1 and _is_number(dtypes[0]):
        return _from_numpy(frame.to_numpy()), names
    columns = core.Columns(len(frame))
    bad = []
    for (name, series), dtype in zip(frame.items(), dtypes, strict=True):
        if _is_number(dtype):
            columns.add(_native(series.to_numpy()))
        elif hasattr(dtype, "pyarrow_dtype"):
            stream = series.array.__arrow_array__().__arrow_c_stream__()
            part, *_ = core.Columns.from_arrow(stream)
            if part is None:
                bad.append((name, str(dtype)))
            else:
                columns.extend(part)
        elif isinstance(series.array, nullable):
            columns.add(*_nullable(series))
        else:
            bad.append((name, str(dtype)))
    if bad:
        raise TypeError(errors.not_numbers_message(bad))
    return columns, names


def _nullable(series: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values and the mask of a nullable pandas column."""
    array = series.array
    if hasattr(array, "_data") and hasattr(array, "_mask"):  # no public name; anything else copies
        return array._data, array._mask
    return series.to_numpy(dtype=series.dtype.numpy_dtype, na_value=0), series.isna().to_numpy()


def _from_arrow(X: Any) -> tuple[core.Columns, tuple[str, ...] | None]:
    columns, fields, unsupported, is_table = core.Columns.from_arrow(X.__arrow_c_stream__())
    if not is_table:
        raise ValueError(errors.series_message(X))
    if columns is None:
        bad = [(fields[i][0], _arrow_type(fields[i][1])) for i in unsupported]
        raise TypeError(errors.not_numbers_message(bad))
    return columns, _names([name for name, _ in fields])


def _arrow_type(given: str) -> str:
    return _ARROW_TYPES.get(given) or _ARROW_TYPES.get(given[:1], given)


def _names(given: Sequence[object]) -> tuple[str, ...] | None:
    """Return the names where all are strings, None where none is; names must be unique."""
    if len(set(given)) < len(given):
        raise ValueError(errors.twice_message(given))
    are_strings = [isinstance(name, str) for name in given]
    if given and all(are_strings):
        return tuple(str(name) for name in given)
    if any(are_strings):
        raise TypeError(errors.name_types_message(given))
    return None


def _match(
    columns: core.Columns, names: tuple[str, ...] | None, schema: Schema, caller: str
) -> core.Columns:
    """Return the columns in the order of the schema."""
    if names is not None and schema.names is not None:
        if names == schema.names:
            return columns
        place = {name: i for i, name in enumerate(names)}
        if place.keys() != set(schema.names):
            raise SchemaError(errors.names_message(names, schema.names))
        return columns.select([place[name] for name in schema.names])
    if columns.n_columns != schema.n_features:
        raise SchemaError(
            f"X has {columns.n_columns} features, but {caller} is expecting {schema.n_features} "
            "features as input. Pass a table with the columns of fit."
        )
    if schema.names is not None:
        message = f"X does not have valid feature names, but {caller} was fitted with feature names"
        warnings.warn(message, DataWarning, stacklevel=3)
    elif names is not None:
        message = f"X has feature names, but {caller} was fitted without feature names"
        warnings.warn(message, DataWarning, stacklevel=3)
    return columns


def _vector(values: Any) -> NDArray[Any]:
    """Return y or weights as an array, whatever held them."""
    dtype = getattr(getattr(values, "dtype", None), "numpy_dtype", None)
    if dtype is not None and hasattr(values, "isna") and not values.isna().any():
        return np.asarray(values.to_numpy(dtype=dtype))  # a nullable pandas column without NA
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            raise ValueError("y and sample_weight must be complete, but some values are masked.")
        return np.asarray(values.data)
    array = np.asarray(values)
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        # NumPy writes a NaN among strings as the text "nan".
        array = np.array(values, dtype=object)
    return array


def _check_target_values(y: NDArray[Any]) -> None:
    kind = y.dtype.kind
    if kind == "c":
        raise ValueError("Complex data not supported: y must be real numbers or labels.")
    if kind in "mMV":
        raise TypeError(f"y is an array of {y.dtype}, but it must be numbers or labels.")
    if kind == "f":
        bad = ~np.isfinite(y)
    elif kind == "O":
        bad = np.array([_is_missing(value) or _is_infinite(value) for value in y], dtype=bool)
    else:
        return
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(
            f"Input y contains {int(bad.sum())} missing or infinite values (NaN, None, inf), the "
            f"first in row {first}. y must be complete: drop those rows from X and y."
        )


def _check_length(name: str, length: int, n_rows: int) -> None:
    if length != n_rows:
        raise ValueError(
            f"X has {n_rows} rows, but {name} has {length} values. Pass one value for each row."
        )


def _is_number(dtype: object) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in _NUMBERS


def _is_sparse(X: object) -> bool:
    return hasattr(X, "nnz") and hasattr(X, "tocsr")


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _is_infinite(value: object) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isinf(value))
