"""Any table -> `Table`: columns of the core, and their `Schema`.

    any table --raw_table--> RawTable --level_columns--> numbers and level codes

Numbers are not copied. Columns of strings, and those in ``categorical_features``, are categories:
columns of level codes, whose levels the schema keeps. NaN, None, NA, masked values and the number
`missing` are missing. No dataframe library is imported: a user who passes a dataframe has imported
it already.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core, lazy_property
from arboost.data import raw_table
from arboost.data.cuda import host_columns, is_device_array
from arboost.data.feature_names import feature_indices
from arboost.data.level_columns import ColumnNotes, apply_levels, learn_levels, read_dates
from arboost.data.levels import Levels
from arboost.data.raw_table import RawTable
from arboost.data.schema import (
    CalendarStats,
    Schema,
    by_feature,
    calendar_part,
    column_positions,
    select_calendar_parts,
    unique_names,
)
from arboost.errors import InputTypeError, ParameterError, SchemaError
from arboost.params.records import ParamRecord

_KIND_WORDS = {
    "string": "strings",
    "number": "numbers",
    "datetime": "dates or datetimes",
    "duration": "durations",
    "time": "times of day",
}


@dataclass(frozen=True)
class ColumnOptions(ParamRecord):
    """The user's parameters on the columns of a fit.

    Attributes
    ----------
    categorical_features : "from_dtype", or list of names, of indices or of truth values
        Categories in addition to columns of categorical types.
    missing : float
        Number that means missing, in addition to NaN.
    category_encoding : {"auto", "groups", "mean"}
        Encoding of categories of many levels; "auto" is that of the algorithm.
    date_format : str, list of [column, format], or None
        Format of dates in strings.
    calendar_parts : "auto", list of str, or None
        Calendar parts of dates that are features.
    """

    categorical_features: Any = "from_dtype"
    missing: float = math.nan
    category_encoding: str = "auto"
    date_format: Any = "auto"
    calendar_parts: Any = None

    def categories(self, names: tuple[str, ...] | None, n_features: int) -> set[int]:
        """Indices of the features in `categorical_features`."""
        features = self.categorical_features
        if isinstance(features, str):
            return set()
        if features and all(isinstance(feature, bool) for feature in features):
            if len(features) != n_features:
                raise ParameterError(
                    f"categorical_features has {len(features)} truth values, but X has "
                    f"{n_features} columns.",
                    "Pass one for each column, or the names of the categories.",
                    parameter="categorical_features",
                )
            return {i for i, feature in enumerate(features) if feature}
        return set(feature_indices(features, names, n_features, parameter="categorical_features"))

    @property
    def any_date_format(self) -> str | None:
        """Format of dates that is not that of one column."""
        return "auto" if isinstance(self.date_format, list) else self.date_format

    def date_formats(self, names: tuple[str, ...] | None, n_features: int) -> dict[int, str]:
        """Formats of the columns that `date_format` names."""
        if not isinstance(self.date_format, list):
            return {}
        columns = [column for column, _ in self.date_format]
        indices = feature_indices(columns, names, n_features, parameter="date_format")
        return {
            i: date_format for i, (_, date_format) in zip(indices, self.date_format, strict=True)
        }

    def schema(
        self,
        names: tuple[str, ...] | None,
        levels: Mapping[int, Levels],
        units: Mapping[int, str],
        formats: Mapping[int, str],
        n_columns: int,
        stats_of: Callable[[int], CalendarStats | None],
    ) -> Schema:
        """Schema of columns, with the calendar parts of their dates.

        `stats_of` gives the dates of a column, which calendar_parts="auto" chooses parts by.
        """
        schema = Schema(
            names=names,
            n_features=n_columns,
            levels=by_feature(levels, n_columns, None),
            missing=self.missing,
            units=by_feature(units, n_columns, ""),
            formats=by_feature({i: formats[i] for i in formats if i in units}, n_columns, ""),
        )
        dates = [i for i, unit in units.items() if unit == "datetime" and i not in levels]
        stats = {i: stats_of(i) if self.calendar_parts == "auto" else None for i in dates}
        return schema.with_parts(select_calendar_parts(stats, self.calendar_parts, names))

    def check_follows(self, known: ColumnOptions, source: str) -> None:
        """Raise ValueError for an option that differs from that of a source.

        Default values follow the source.
        """
        for name, usual in _USUAL_OPTIONS.items():
            value, known_value = getattr(self, name), getattr(known, name)
            is_default = value == usual or (name == "missing" and math.isnan(value))
            if not is_default and value != known_value:
                raise ValueError(
                    f"{name}={value!r} is not allowed: {source} was made with "
                    f"{name}={known_value!r}. Make the two equal, or leave it at its default here."
                )


_USUAL_OPTIONS = {field.name: field.default for field in fields(ColumnOptions)} | {
    "calendar_parts": "auto"  # of estimators
}


@dataclass(frozen=True)
class Table:
    """Columns of the core, which may be in the memory of a CUDA device, and their schema."""

    values: core.Columns | core.DeviceColumns
    schema: Schema

    @lazy_property
    def columns(self) -> core.Columns:
        """Columns in the memory of the host, copied there at first use."""
        return host_columns(self.values)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.n_rows)


def ingest(
    X: object,
    schema: Schema | None = None,
    *,
    options: ColumnOptions | None = None,
    caller: str = "Model",
    device: str | None = "cpu",
) -> Table:
    """Table of X: a new schema to fit on, or the columns of a given schema.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
        scipy.sparse, list of lists or of dicts, dict of columns. Columns are numbers, booleans,
        decimals, dates and times, or categories. With a schema also one row: a dict, or a pandas
        series.
    schema : Schema, optional
        Schema of a fitted model. Columns with names are matched by name, others by index; levels
        by value. Without a schema the table is one to fit on, and must have a row.
    options : ColumnOptions, optional
        Options of a table to fit on.
    caller : str
        Name of the model in messages.
    device : str or None
        Device that reads the table: arrays in its memory are not copied. None: that of the array.

    Raises
    ------
    ValueError, TypeError
        X is not a table, or a column is of an unusable type; the CPU cannot read X.
    SchemaError
        X has other columns than the schema.
    """
    if schema is not None:
        return apply_raw(_match(read_columns(X, schema, device), schema, caller), schema)
    table, notes = learn_table(X, ColumnOptions() if options is None else options, device)
    notes.warn()
    return table


def learn_table(
    X: object, options: ColumnOptions, device: str | None = "cpu"
) -> tuple[Table, ColumnNotes]:
    """Table of X with a new schema, and the notes that `ingest` warns of."""
    raw = read_columns(X, None, device)
    n_rows, n_columns = int(raw.columns.n_rows), int(raw.columns.n_columns)
    if n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is "
            "required."
        )
    raw_table.check_row_count(n_rows)
    named = options.categories(raw.names, n_columns)
    raw.set_missing(options.missing)
    notes = ColumnNotes(raw.names, named)
    notes.inexact.extend(sorted({*raw.columns.inexact_columns(), *raw.inexact}))
    formats = options.date_formats(raw.names, n_columns)
    for i in formats.keys() & raw.texts.keys():
        read_dates(raw, i, formats[i])
    levels: dict[int, Levels] = {}
    for i in sorted({*raw.texts, *raw.categories, *named}):
        learned = learn_levels(raw, i, notes, options.any_date_format)
        raw.columns.put(i, learned.column)
        if isinstance(learned.levels, Levels):
            levels[i] = learned.levels
        else:
            formats[i], raw.units[i] = learned.levels, "datetime"
    notes.check_date_format(options.any_date_format, formats)
    schema = options.schema(
        raw.names,
        levels,
        raw.units,
        formats,
        n_columns,
        lambda i: CalendarStats.of(raw.columns.read(i)),
    )
    add_parts(raw, schema)
    return Table(raw.columns, schema), notes


def read_raw(X: object, schema: Schema, caller: str = "Model") -> RawTable:
    """Columns of a table in the order of a schema, with the values of the user."""
    raw = _match(read_columns(X, schema), schema, caller)
    _complete(raw, schema)
    return raw


def read_columns(X: object, schema: Schema | None = None, device: str | None = "cpu") -> RawTable:
    """Columns of any table, at least one."""
    raw = raw_table.from_device(X, device) if is_device_array(X) else _read(X, schema)
    if raw.columns.n_columns == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({raw.columns.n_rows}, 0)) while a minimum of 1 "
            "is required."
        )
    return raw


def _read(X: object, schema: Schema | None) -> RawTable:
    """Columns of any table; a series with the names of a schema is one row."""
    X = with_columns(X, schema)
    if isinstance(X, np.ndarray):
        return raw_table.from_numpy(X)
    if raw_table.is_sparse(X):
        return raw_table.from_scipy(X)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return raw_table.from_pandas(X, pandas)
    if pandas is not None and isinstance(X, pandas.Series):
        X = row_of_series(X, schema)
    if isinstance(X, Mapping) or is_records(X):
        if schema is not None and not isinstance(X, Mapping):
            _check_keys(X, schema)
        return raw_table.from_dicts(X)
    if hasattr(X, "__arrow_c_stream__"):
        return raw_table.from_arrow(X)
    return raw_table.from_numpy(as_array(X))


def with_columns(X: Any, schema: Schema | None) -> Any:
    """An empty list as a table of the columns of a schema, all others unchanged."""
    if schema is None or not isinstance(X, list | tuple) or X:
        return X
    if schema.columns is None:
        return np.empty((0, schema.n_columns))
    return {name: [] for name in schema.columns}


def _check_keys(rows: Sequence[Mapping[Any, Any]], schema: Schema) -> None:
    """Raise SchemaError where one of several dicts lacks a key of fit that others have."""
    keys = [set(map(str, row)) for row in rows]
    lacking = set(schema.columns or ()) & set().union(*keys) - keys[0].intersection(*keys)
    if lacking:
        name = min(lacking)
        at = next(index for index, names in enumerate(keys) if name not in names)
        raise SchemaError(
            f"The dict at position {at} of X has no key {name!r}, which others have. Give each the "
            "keys of fit, None for a missing value; or pass pandas.DataFrame(X), which fills them."
        )


def is_records(X: object) -> TypeGuard[Sequence[Mapping[Any, Any]]]:
    """Whether X is a list of dicts, one for each row."""
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(row, Mapping) for row in X)


def row_of_series(series: Any, schema: Schema | None) -> dict[str, Any]:
    """Values of a pandas row by name; raise ValueError for any other series."""
    row = dict(zip(series.index, series.tolist(), strict=True))
    names = None if schema is None else schema.columns
    row = dict(zip(unique_names(list(row)) or (), row.values(), strict=False))
    if schema is None or names is None or row.keys() - schema.other_columns != set(names):
        raise raw_table.series_error(series)
    return row


def as_array(X: Any) -> NDArray[Any]:
    """A list of lists, or another object without columns, as an array."""
    if isinstance(X, str | os.PathLike):
        path = os.fspath(X)
        suffix = path.rpartition(".")[2].lower()
        reader = {"parquet": "read_parquet", "xlsx": "read_excel", "json": "read_json"}.get(suffix)
        raise InputTypeError(
            f"X is the path {path!r}, but it must be a table.",
            f"Read the file first: X = pandas.{reader or 'read_csv'}({path!r}), or the same with "
            "polars. predict_files writes the predictions of files to a file.",
        )
    if type(X).__name__ == "LazyFrame":
        raise InputTypeError(
            "X is a LazyFrame of Polars, whose rows are not computed yet.",
            "Collect X and y together, so that their rows match, and pass a DataFrame: "
            "X.collect().",
        )
    try:
        array = np.asarray(X)
        # NumPy turns numbers next to strings into strings.
        return np.array(X, dtype=object) if array.dtype.kind in "US" else array
    except ValueError as error:
        raise ValueError(
            f"X is a {type(X).__name__} that is not a table: {error}. Pass rows of equal length."
        ) from error


def _match(raw: RawTable, schema: Schema, caller: str) -> RawTable:
    """Columns in the order of the schema."""
    places = column_positions(raw.names, raw.columns.n_columns, schema, caller)
    return raw if places is None else raw.select(places)


def _complete(raw: RawTable, schema: Schema) -> None:
    """Make times of dates in strings, and add derived features that the table does not have."""
    for i in [i for i in raw.texts if schema.unit_of(i) == "datetime"]:
        if not raw.is_all_missing(i):
            read_dates(raw, i, schema.format_of(i) or "iso")
    if schema.parts and raw.columns.n_columns < schema.n_features:
        add_parts(raw, schema)


def add_parts(raw: RawTable, schema: Schema) -> None:
    """Append the derived features to the columns of a table."""
    for column, part in schema.parts:
        if raw.units.get(column) == "datetime":
            raw.columns.add(calendar_part(part, raw.columns.read(column)))
        else:
            raw.columns.add_missing()


def apply_raw(raw: RawTable, schema: Schema) -> Table:
    """Table of columns that are in the order of a schema; they are encoded in place.

    Level codes are matched by value, times become seconds.
    """
    _complete(raw, schema)
    raw.set_missing(schema.missing, range(schema.n_columns, schema.n_features))
    for i in sorted({*schema.special, *raw.texts, *raw.units}):
        levels = schema.levels_of(i)
        if levels is not None and len(levels) == 0:  # ignored, or without a value in fit
            raw.columns.put(i, raw_table.missing_columns(raw.columns.n_rows))
            continue
        fitted = schema.unit_of(i) or ("number" if levels is None else levels.kind)
        kind = raw.units.get(i) or ("string" if i in raw.texts else "number")
        if fitted != kind:
            if not raw.is_all_missing(i):
                raise SchemaError(
                    f"The column {schema.label(i)} of X holds {_KIND_WORDS[kind]}, but it held "
                    f"{_KIND_WORDS[fitted]} in fit.",
                    f"Convert it to {_KIND_WORDS[fitted]}, as in fit.",
                )
            raw.columns.put(i, raw_table.missing_columns(raw.columns.n_rows))
        elif levels is not None:
            raw.columns.put(i, apply_levels(raw, i, levels, schema))
    return Table(raw.columns, schema)
