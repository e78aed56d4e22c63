"""What is raised beside the built-in types, and how a message is worded.

A message says what was given, what is allowed and what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

__all__ = [
    "DataWarning",
    "DeviceError",
    "ModelFileError",
    "SchemaError",
    "dimensions_message",
    "inexact_message",
    "listing",
    "name_types_message",
    "names_message",
    "not_numbers_message",
    "series_message",
    "string_message",
    "twice_message",
]


class SchemaError(ValueError):
    """The columns of a table are not those that the model was fitted on."""


class ModelFileError(ValueError):
    """A model file is damaged, too new, or no model file at all."""


class DeviceError(RuntimeError):
    """The device that was asked for cannot be used."""


class DataWarning(UserWarning):
    """The data can be used, but probably not as the user thinks."""


def listing(items: Iterable[object], limit: int = 10) -> str:
    """Return the items with commas between them; after ``limit`` of them how many are left out.

    Examples
    --------
    >>> listing(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = [str(item) for item in items]
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def dimensions_message(array: Any) -> str:
    """Say that an array is no table, in the words of scikit-learn."""
    kind = {0: "scalar", 1: "1D"}.get(array.ndim)
    if kind is None:
        return (
            f"Found array with dim {array.ndim}, while dim <= 2 is required: X has the shape "
            f"{array.shape}. Pass rows and columns, for example X.reshape(len(X), -1)."
        )
    return (
        f"Expected 2D array, got {kind} array instead:\narray={array}.\nReshape your data either "
        "using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if "
        "it contains a single sample."
    )


def series_message(series: object) -> str:
    """Say that one column of a dataframe is no table, in the words of scikit-learn."""
    return (
        f"Expected a 2-dimensional container but got {type(series)} instead. Pass a DataFrame "
        "containing a single row (i.e. single sample) or a single column (i.e. single feature) "
        "instead. Reshape your data, for example with to_frame()."
    )


def not_numbers_message(columns: Iterable[tuple[object, str]]) -> str:
    """Say which columns, given as (name, type), are not of numbers, and what to do."""
    shown = listing(f"{name!r} ({kind})" for name, kind in columns)
    return (
        f"X has columns that are not numbers: {shown}. Columns must be numbers or booleans. "
        "Turn categories into numbers with sklearn.preprocessing.OrdinalEncoder, dates into "
        "numbers of days or seconds, numbers stored as text or objects into floats; or drop them."
    )


def names_message(given: Collection[str], fitted: Collection[str]) -> str:
    """Say which columns are missing and which are too many, in the words of scikit-learn."""

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
    """Say which names several columns have."""
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
    """Say that only some names are strings, in the words of scikit-learn."""
    types = sorted({type(name).__qualname__ for name in names})
    return (
        "Feature names are only supported if all input features have string names, but your input "
        f"has {types} as feature name / column name types. Convert them all to strings, for "
        "example with X.columns = X.columns.astype(str)."
    )


def inexact_message(columns: Iterable[object]) -> str:
    """Say which columns lose digits, and what to do."""
    return (
        f"X has integers of 2**53 or beyond in the columns {listing(map(repr, columns))}. Values "
        "are compared as float64, which cannot tell such neighbours apart: subtract an offset, or "
        "split the digits over two columns."
    )


def string_message(place: Iterable[int], value: object) -> str:
    """Say where among objects a string was found."""
    return (
        f"X[{', '.join(map(str, place))}] is {value!r}, but an argument must be numeric, not a "
        "string: turn it into a number, for example with sklearn.preprocessing.OrdinalEncoder."
    )
