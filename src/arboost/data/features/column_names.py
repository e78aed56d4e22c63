"""Names of columns: those of a table, and their places where a schema has them in another order."""

from __future__ import annotations

from collections.abc import Sequence

from arboost.data import messages
from arboost.data.schema import Schema
from arboost.errors import SchemaError, warn_caller

__all__ = ["other_places", "unique_names"]


def unique_names(given: Sequence[object]) -> tuple[str, ...] | None:
    """Return the names as strings; None for the numbers of the columns, as frames have by default.

    Raise if names are not unique, or some of them strings and others not.
    """
    are_strings = [isinstance(name, str) for name in given]
    names = tuple(map(str, given))
    if any(are_strings) and not all(are_strings):
        raise TypeError(messages.name_types_message(given))
    if len(set(names)) < len(names):
        raise ValueError(messages.twice_message(names))
    return None if not any(are_strings) and names == _numbers(len(names)) else names


def other_places(
    names: tuple[str, ...] | None, n_features: int, schema: Schema, caller: str
) -> list[int] | None:
    """Return the column of each feature of a schema; None where all are in their places.

    Raise SchemaError for columns that the schema does not have; warn where only one has names, and
    columns are matched by their order.
    """
    fitted, columns = schema.names, schema.columns
    if fitted is None and names is not None and set(names) == set(_numbers(schema.n_columns)):
        fitted = columns = _numbers(schema.n_columns)  # of a frame without names, in another order
    if names is not None and fitted is not None:
        assert columns is not None
        if names in (fitted, columns):
            return None
        known = set(names) - schema.other_columns
        if known not in (set(fitted), set(columns)):
            features = tuple(name for name in names if name not in schema.other_columns)
            raise SchemaError(messages.names_message(features, columns))
        places = {name: place for place, name in enumerate(names)}
        # Derived features are read from a table that has all of them.
        return [places[name] for name in (fitted if known == set(fitted) else columns)]
    if n_features not in (schema.n_columns, schema.n_features):
        raise SchemaError(
            f"X has {n_features} features, but {caller} is expecting {schema.n_columns} features "
            "as input. Pass a table with the columns of fit."
        )
    if names is not None or fitted is not None:
        warn_caller(messages.unnamed_message(caller, is_named=fitted is not None))
    return None


def _numbers(n_columns: int) -> tuple[str, ...]:
    """Return the names of columns that have numbers only."""
    return tuple(map(str, range(n_columns)))
