"""Messages about tables and targets: the given value, the allowed values, and advice."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from arboost.params.suggestions import did_you_mean


def listing(items: Iterable[object], limit: int = 10) -> str:
    """Return the items with commas between them, and the number of items beyond ``limit``.

    Examples
    --------
    >>> listing(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = [str(item) for item in items]
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def dimensions_message(array: Any) -> str:
    """Return the message on an array of other than two dimensions, worded as in scikit-learn."""
    if array.ndim == 0:
        given = array.item()
        return (
            f"Expected 2D array, got scalar array instead: X is {reprlib.repr(given)} "
            f"({type(given).__name__}). Pass rows and columns: a NumPy array, a table of pandas, "
            "Polars or PyArrow, a sparse matrix, or a list of lists."
        )
    if array.ndim > 1:
        return (
            f"Found array with dim {array.ndim}, while dim <= 2 is required: X has the shape "
            f"{array.shape}. Pass rows and columns, for example X.reshape(len(X), -1)."
        )
    return (
        f"Expected 2D array, got 1D array instead, of shape {array.shape}. Reshape your data "
        "either using array.reshape(-1, 1) if your data has a single feature or "
        "array.reshape(1, -1) if it contains a single sample."
    )


def row_count_message(n_rows: int, most: int) -> str:
    """Return the message on a table of too many rows."""
    return (
        f"X has {n_rows:,} rows, but at most {most:,} are allowed. Pass a part of the rows, for "
        "example a random sample."
    )


def series_message(series: object) -> str:
    """Return the message on a series in place of a table, worded as in scikit-learn."""
    return (
        f"Expected a 2-dimensional container but got {type(series)} instead. Pass a DataFrame "
        "containing a single row (i.e. single sample) or a single column (i.e. single feature) "
        "instead. Reshape your data, for example with to_frame()."
    )


def path_message(path: str) -> str:
    """Return the message on a path in place of a table."""
    suffix = path.rpartition(".")[2].lower()
    reader = {"parquet": "read_parquet", "xlsx": "read_excel", "json": "read_json"}.get(suffix)
    return (
        f"X is the path {path!r}, but it must be a table. Read the file first: "
        f"X = pandas.{reader or 'read_csv'}({path!r}), or the same with polars. predict_files "
        "writes the predictions of files to a file."
    )


def lazy_message() -> str:
    """Return the message on a LazyFrame of Polars in place of a table."""
    return (
        "X is a LazyFrame of Polars, whose rows are not computed yet. Collect X and y together, so "
        "that their rows match, and pass a DataFrame: X.collect()."
    )


def column_name_message(name: str) -> str:
    """Return the message on the name of a column in place of y."""
    return (
        f"y is the string {name!r}, but it must be one value for each row; a column's name is for "
        "tables with named columns, such as data frames. Pass the values of the column."
    )


def no_column_message(name: str, names: Iterable[object], argument: str = "y") -> str:
    """Return the message on a y, or another argument, that names no column of X."""
    known = list(names)
    meant = did_you_mean(name, [other for other in known if isinstance(other, str)])
    column = "the column to predict" if argument == "y" else "a column"
    return (
        f"{argument}={name!r} names no column of X, whose columns are "
        f"{listing(map(repr, known))}.{meant} Pass the name of {column}, or one value for each row."
    )


def column_type_message(columns: Iterable[tuple[object, str]]) -> str:
    """Return the message on columns, given as (name, type), of unusable types."""
    shown = listing(f"{name!r} ({kind})" for name, kind in columns)
    return (
        f"X has columns of types that cannot be used: {shown}. Columns must be numbers, booleans, "
        "decimals, dates and times, or categories: strings, or what categorical_features names. "
        "Take nested values apart into columns of their own (in Polars by X.unnest), turn others "
        "into numbers or strings; or drop them."
    )


def mixed_message(column: object, one: object, other: object) -> str:
    """Return the message on a column with values of two kinds."""
    return (
        f"The column {column!r} of X holds values of several kinds, among them "
        f"{one!r} ({type(one).__name__}) and {other!r} ({type(other).__name__}), so that they "
        "cannot be compared. Turn all of them into strings, or all into numbers."
    )


def object_message(column: object, value: object, error: object) -> str:
    """Return the message on a column of objects other than numbers and strings, such as a value."""
    if isinstance(value, Mapping):
        return (
            f"The column {column!r} of X holds dicts, such as {reprlib.repr(value)}: {error}. Take "
            f"them apart into columns: X.drop(columns=[{column!r}]).join(pandas.json_normalize("
            f"X[{column!r}].tolist()).set_index(X.index)); or drop the column."
        )
    return (
        f"The column {column!r} of X holds objects that are neither numbers nor strings: {error}. "
        "Take nested values apart into columns of their own, turn others into numbers or strings; "
        "or drop the column."
    )


def other_type_message(column: str, fitted: str, given: str) -> str:
    """Return the message on a column of another type than in fit."""
    words = {
        "string": "strings",
        "number": "numbers",
        "datetime": "dates or datetimes",
        "duration": "durations",
        "time": "times of day",
    }
    return (
        f"The column {column} of X holds {words[given]}, but it held {words[fitted]} in fit. "
        f"Convert it to {words[fitted]}, as in fit."
    )


def unseen_message(column: str, n_values: int, n_levels: int) -> str:
    """Return the message on a category without any level of fit."""
    return (
        f"None of the {n_values} values in the column {column} of X is among the {n_levels} levels "
        "of fit, so all of them count as missing. Check that it is the same column, written alike."
    )


def order_message(column: str, orders: Collection[Collection[Any]]) -> str:
    """Return the message on dictionaries of an ordered category that tell no single order."""
    shown = " and ".join(f"[{listing(map(_text, order))}]" for order in list(orders)[:2])
    return (
        f"The levels of the column {column} of X have no single order: its dictionaries are "
        f"{shown}. Use one dictionary of all levels, or name the column in categorical_features, "
        "for levels without an order."
    )


def _text(level: Any) -> str:
    return repr(level.decode("utf-8", "replace") if isinstance(level, bytes) else level)


def unnamed_message(caller: str, *, is_named: bool) -> str:
    """Return the message on names in fit only (`is_named`) or in X only, worded as scikit-learn."""
    if is_named:
        return (
            f"X does not have valid feature names, but {caller} was fitted with feature names: "
            "columns are matched by their order. Pass a data frame with the names of fit."
        )
    return (
        f"X has feature names, but {caller} was fitted without feature names: columns are matched "
        "by their order. Fit on a data frame, or pass an array."
    )


def names_message(given: Collection[str], fitted: Collection[str]) -> str:
    """Return the message on missing and unknown columns, worded as in scikit-learn."""

    def bullets(names: Iterable[str], limit: int = 20) -> str:
        lines = [f"- {name}\n" for name in sorted(names)]
        return "".join(lines[:limit]) + ("- ...\n" if len(lines) > limit else "")

    message = "The feature names should match those that were passed during fit.\n"
    extra, missing = set(given) - set(fitted), set(fitted) - set(given)
    if extra:
        message += f"Feature names unseen at fit time:\n{bullets(extra)}"
    if missing:
        message += f"Feature names seen at fit time, yet now missing:\n{bullets(missing)}"
    return message + "Pass exactly the columns of fit; their order does not matter."


def twice_message(names: Iterable[object]) -> str:
    """Return the message on column names that occur twice."""
    seen: set[object] = set()
    twice: dict[object, None] = {}
    for name in names:
        if name in seen:
            twice[name] = None
        seen.add(name)
    return (
        f"X has several columns of the same name: {listing(map(repr, twice))}. Each column must "
        "have a name of its own: rename or drop columns."
    )


def name_types_message(names: Iterable[object]) -> str:
    """Return the message on column names of several types, worded as in scikit-learn."""
    types = sorted({type(name).__qualname__ for name in names})
    return (
        "Feature names are only supported if all input features have string names, but your input "
        f"has {types} as feature name / column name types. Convert them all to strings, for "
        "example with X.columns = X.columns.astype(str)."
    )
