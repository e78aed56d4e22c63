"""Any table -> `Table` (columns that the core reads) + `Schema`.

    NumPy array, list of lists ------> `columns`
    Polars, PyArrow, Arrow stream ---> `columns`       } RawTable -> numbers, and codes of levels
    pandas --------------------------> `frames`
    scipy.sparse --------------------> `sparse`

Numbers are not copied. Strings and whatever the user names are categories: columns of level codes,
whose levels the schema keeps. NaN, None, NA, masked values and the number `missing` are missing.
Only these files know dataframes, and none of them imports a dataframe library: a user who passes a
dataframe has imported it already.
"""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import messages
from arboost.data.feature_names import feature_indices
from arboost.data.levels import Levels
from arboost.data.pandas_frames import from_pandas
from arboost.data.raw_columns import RawTable, from_arrow, from_numpy
from arboost.data.schema import Schema
from arboost.data.scipy_sparse import from_scipy, is_sparse
from arboost.errors import DataWarning, SchemaError

__all__ = ["MAX_SET_LEVELS", "ColumnOptions", "Table", "as_array", "ingest", "level_column"]

# Categories of up to so many levels are split by sets of them; with more, numbers take their place.
# (Sets could have 255, but on tables of airports and airplanes numbers win from about here on.)
MAX_SET_LEVELS = 100

# A column of strings that nobody calls a category is free text, of no use to trees, where more of
# its values are distinct than both of these.
_FREE_TEXT_LEVELS = 1000
_FREE_TEXT_SHARE = 0.5


@dataclass(frozen=True)
class ColumnOptions:
    """What the user says of the columns of a fit.

    Attributes
    ----------
    categorical_features : "from_dtype", or list of names, of indices or of truth values
        Categories beside those whose type says so.
    missing : float
        A number that means missing, beside NaN.
    """

    categorical_features: Any = "from_dtype"
    missing: float = math.nan

    def categories(self, names: tuple[str, ...] | None, n_features: int) -> set[int]:
        """Return the features that `categorical_features` names."""
        given = self.categorical_features
        if isinstance(given, str):
            return set()
        if given and all(isinstance(one, bool) for one in given):
            if len(given) != n_features:
                raise ValueError(
                    f"categorical_features has {len(given)} truth values, but X has {n_features} "
                    "columns. Pass one for each column, or the names of the categories."
                )
            return {i for i, one in enumerate(given) if one}
        return set(feature_indices(given, names, n_features, parameter="categorical_features"))

    def check_follows(self, known: ColumnOptions, source: str) -> None:
        """Raise ValueError where this asks for something else than what a source was made with.

        What is left at its default follows the source.
        """
        for name in ("categorical_features", "missing"):
            asked, made = getattr(self, name), getattr(known, name)
            is_default = asked == "from_dtype" or (name == "missing" and math.isnan(asked))
            if not is_default and asked != made:
                raise ValueError(
                    f"{name}={asked!r} is not allowed: {source} was made with {name}={made!r}. "
                    "Make the two equal, or leave it at its default here."
                )


@dataclass(frozen=True)
class Table:
    """Columns that the core can read, and their schema."""

    columns: core.Columns
    schema: Schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.columns.n_rows)


def ingest(
    X: object,
    schema: Schema | None = None,
    *,
    options: ColumnOptions | None = None,
    caller: str = "Model",
) -> Table:
    """Return the columns of X; with a schema, in its order.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
        scipy.sparse, or list of lists. Columns are numbers, booleans, decimals, dates and times,
        or categories.
    schema : Schema, optional
        What the model was fitted on. Columns with names are matched by name, others by position;
        levels by value.
        Without a schema the table is one to fit on, and must have a row.
    options : ColumnOptions, optional
        What the user says of a table to fit on.
    caller : str
        Who the messages say expects the features of the schema.

    Raises
    ------
    ValueError, TypeError
        Where X is no table, or a column of a type that cannot be used.
    SchemaError
        Where X has other columns than the schema.
    """
    raw = _read(X)
    n_rows, n_columns = raw.columns.n_rows, raw.columns.n_columns
    if n_columns == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required."
        )
    if schema is not None:
        return Table(_apply(_match(raw, schema, caller), schema), schema)
    if n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is "
            "required."
        )
    return Table(raw.columns, _learn(raw, ColumnOptions() if options is None else options))


def level_column(n_rows: int, codes: NDArray[Any]) -> core.Columns:
    """Return the codes of levels, -1 for missing, as a table of one column."""
    narrow = np.min_scalar_type(-int(codes.max(initial=0)) - 1)
    column = core.Columns(n_rows)
    column.add(codes.astype(narrow))
    column.set_missing(-1.0)
    return column


def _read(X: object) -> RawTable:
    """Return the columns of any table."""
    if isinstance(X, np.ndarray):
        return from_numpy(X)
    if is_sparse(X):
        return from_scipy(X)
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(X, pandas.DataFrame):
            return from_pandas(X, pandas)
        if isinstance(X, pandas.Series):
            raise ValueError(messages.series_message(X))
    if hasattr(X, "__arrow_c_stream__"):
        return from_arrow(X)
    return from_numpy(as_array(X))


def as_array(X: Any) -> NDArray[Any]:
    """Return what has no columns of its own, such as a list of lists, as an array."""
    try:
        array = np.asarray(X)
        # NumPy would write the numbers beside strings as strings.
        return np.array(X, dtype=object) if array.dtype.kind in "US" else array
    except ValueError as error:
        raise ValueError(
            f"X is a {type(X).__name__} that is no table: {error}. Pass rows of equal length."
        ) from error


def _learn(raw: RawTable, options: ColumnOptions) -> Schema:
    """Return the schema of a table to fit on; its categories become columns of codes."""
    n_columns = int(raw.columns.n_columns)
    named = options.categories(raw.names, n_columns)
    _set_missing(raw, options.missing)
    inexact = sorted({*raw.columns.inexact_columns(), *raw.inexact})
    if inexact:
        message = messages.inexact_message([raw.label(i) for i in inexact])
        warnings.warn(message, DataWarning, stacklevel=3)
    levels: list[Levels | None] = [None] * n_columns
    for i in sorted({*raw.texts, *raw.categories, *named}):
        known, column = _learn_levels(raw, i)
        if i in raw.texts and i not in raw.categories and i not in named:
            _check_text(known, raw, i)
        levels[i] = known
        raw.columns.put(i, column)
    return Schema(
        names=raw.names,
        n_features=n_columns,
        levels=tuple(levels) if any(one is not None for one in levels) else (),
        missing=options.missing,
        units=tuple(raw.units.get(i, "") for i in range(n_columns)) if raw.units else (),
    )


def _learn_levels(raw: RawTable, i: int) -> tuple[Levels, core.Columns]:
    n_rows = int(raw.columns.n_rows)
    if i in raw.texts:
        levels, codes = Levels.of_text(raw.texts[i])
        return levels, level_column(n_rows, codes)
    stored = raw.columns.stored(i)
    if stored is None:
        levels, codes = Levels.of_numbers(raw.columns.read(i))
        return levels, level_column(n_rows, codes)
    rows, values, fill = stored
    levels, _ = Levels.of_numbers(values if len(rows) == n_rows else np.append(values, fill))
    return levels, _sparse_levels(n_rows, levels, rows, values, fill)


def _sparse_levels(
    n_rows: int,
    levels: Levels,
    rows: NDArray[np.uint32],
    values: NDArray[np.float64],
    fill: float,
) -> core.Columns:
    codes = levels.codes_of_numbers(np.append(values, fill))
    column = core.Columns(n_rows)
    column.add_sparse(rows, codes[:-1].copy(), float(codes[-1]))
    column.set_missing(-1.0)
    return column


def _check_text(levels: Levels, raw: RawTable, i: int) -> None:
    """Refuse free text, and doubt numbers, in a column of strings that nobody calls a category."""
    n_present = int(raw.texts[i].n_present)
    if len(levels) > max(_FREE_TEXT_LEVELS, _FREE_TEXT_SHARE * n_present):
        raise ValueError(messages.free_text_message(raw.label(i), len(levels), n_present))
    shown = range(min(len(levels), _FREE_TEXT_LEVELS))
    if shown and all(_is_number(str(levels.label(code))) for code in shown):
        message = messages.number_text_message(raw.label(i), str(levels.label(0)))
        warnings.warn(message, DataWarning, stacklevel=4)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _match(raw: RawTable, schema: Schema, caller: str) -> RawTable:
    """Return the columns in the order of the schema."""
    names = raw.names
    if names is not None and schema.names is not None:
        if names == schema.names:
            return raw
        place = {name: i for i, name in enumerate(names)}
        if place.keys() != set(schema.names):
            raise SchemaError(messages.names_message(names, schema.names))
        return raw.select([place[name] for name in schema.names])
    if raw.columns.n_columns != schema.n_features:
        raise SchemaError(
            f"X has {raw.columns.n_columns} features, but {caller} is expecting "
            f"{schema.n_features} features as input. Pass a table with the columns of fit."
        )
    if schema.names is not None:
        message = f"X does not have valid feature names, but {caller} was fitted with feature names"
        warnings.warn(message, DataWarning, stacklevel=3)
    elif names is not None:
        message = f"X has feature names, but {caller} was fitted without feature names"
        warnings.warn(message, DataWarning, stacklevel=3)
    return raw


def _apply(raw: RawTable, schema: Schema) -> core.Columns:
    """Return the columns as the fit saw its own: levels by value, times as times."""
    _set_missing(raw, schema.missing)
    for i in sorted({*schema.special, *raw.texts, *raw.units}):
        levels = schema.levels_of(i)
        fitted = schema.unit_of(i) or ("number" if levels is None else levels.kind)
        given = raw.units.get(i) or ("string" if i in raw.texts else "number")
        if fitted != given:
            if not _is_all_missing(raw, i):
                raise SchemaError(messages.other_type_message(schema.label(i), fitted, given))
            empty = core.Columns(raw.columns.n_rows)
            empty.add_missing()
            raw.columns.put(i, empty)
        elif levels is not None:
            raw.columns.put(i, _apply_levels(raw, i, levels, schema))
    return raw.columns


def _apply_levels(raw: RawTable, i: int, levels: Levels, schema: Schema) -> core.Columns:
    n_rows = int(raw.columns.n_rows)
    stored = None if i in raw.texts else raw.columns.stored(i)
    if stored is not None and levels.statistic is None:
        return _sparse_levels(n_rows, levels, *stored)
    if i in raw.texts:
        codes = levels.codes_of_text(raw.texts[i])
        n_present = int(raw.texts[i].n_present)
    else:
        numbers = raw.columns.read(i)
        codes = levels.codes_of_numbers(numbers)
        n_present = int(np.count_nonzero(~np.isnan(numbers)))
    if n_present and (codes < 0).all():
        message = messages.unseen_message(schema.label(i), n_present, len(levels))
        warnings.warn(message, DataWarning, stacklevel=4)
    if levels.statistic is None:
        return level_column(n_rows, codes)
    column = core.Columns(n_rows)
    column.add(np.append(levels.statistic, np.nan)[codes])  # the code -1 is the last place
    return column


def _is_all_missing(raw: RawTable, i: int) -> bool:
    if i in raw.texts:
        return int(raw.texts[i].n_present) == 0
    return bool(np.isnan(raw.columns.read(i)).all())


def _set_missing(raw: RawTable, missing: float) -> None:
    """Let a number mean missing in all columns of numbers; instants are no such numbers."""
    if not math.isnan(missing):
        raw.columns.set_missing(missing, sorted(raw.units))
