"""Feature names or indices -> feature indices, for constraints, categories and explanations.

Target and offset by name -> the columns, and the table without them; an offset -> its numbers.

``params/`` has checked the values before; only here are the features of the table known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, cast

import numpy as np

from arboost.data.levels import Floats
from arboost.data.raw_table import is_sparse
from arboost.data.schema import Schema
from arboost.data.target import as_vector
from arboost.errors import InputError, ParameterError, listing
from arboost.params.suggestions import did_you_mean

_LARGEST_OFFSET = 1e100  # sums with scores and their squares stay finite


# ---- features by name or index ----


def feature_indices(
    features: Iterable[object],
    names: Sequence[str] | None,
    n_features: int,
    *,
    parameter: str,
    owner: str = "X",
) -> list[int]:
    """Index of each feature; the only look-up of features by name or index.

    Parameters
    ----------
    features : iterable of str or int
        Names or indices. Negative indices count from the end, as in Python; True and False are
        refused.
    names : sequence of str, or None where the features have none
    n_features : int
    parameter, owner : str
        In the message: what names the features, and what has them.

    Raises
    ------
    ValueError
        The owner does not have some of the features.

    Examples
    --------
    >>> feature_indices(["b", 0, -1], ("a", "b", "c"), 3, parameter="features")
    [1, 0, 2]
    """
    by_name = {} if names is None else {name: index for index, name in enumerate(names)}
    requested = list(features)
    indices = [_feature_index(feature, by_name, n_features) for feature in requested]
    unknown = [feature for feature, index in zip(requested, indices, strict=True) if index is None]
    if unknown:
        shown = listing(map(repr, unknown))
        has = f"no column names, only the indices 0 to {n_features - 1}"
        if names is not None:
            has = f"the indices 0 to {n_features - 1} and the names {listing(map(repr, names))}"
        advice = did_you_mean(str(unknown[0]), by_name).strip() or "Use those."
        raise ParameterError(
            f"{parameter} names features that {owner} does not have: {shown}; {owner} has {has}.",
            advice,
            parameter=parameter,
        )
    return [index for index in indices if index is not None]


def _feature_index(feature: object, by_name: Mapping[str, int], n_features: int) -> int | None:
    if isinstance(feature, str):
        return by_name.get(feature)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        index = int(feature)
        return index % n_features if -n_features <= index < n_features else None
    return None


def monotone_directions(
    constraints: list[Any] | None, schema: Schema, parameter: str = "monotone_constraints"
) -> list[int]:
    """Directions of the features, -1, 0 or 1; an empty list without constraints.

    Parameters
    ----------
    constraints : list of directions, list of [feature, direction], or None
        Value that the parameter's ``check`` returned.
    schema : Schema
        Features of the table.
    parameter : str
        Name of the constraints in messages, where `constraints` have none.

    Examples
    --------
    >>> monotone_directions([["b", -1]], Schema(names=("a", "b"), n_features=2))
    [0, -1]
    """
    if constraints is None:
        return []
    parameter = getattr(constraints, "parameter", parameter)  # as the user wrote it
    directions = [0] * schema.n_features
    if constraints and isinstance(constraints[0], list):
        features = [feature for feature, _ in constraints]
        indices = feature_indices(features, schema.names, schema.n_features, parameter=parameter)
        if len(set(indices)) < len(indices):
            twice = next(index for index in indices if indices.count(index) > 1)
            raise ParameterError(
                f"{parameter} names the feature {schema.label(twice)} twice. Give each "
                "feature once, by name or by index.",
                parameter=parameter,
            )
        for index, (_, direction) in zip(indices, constraints, strict=True):
            directions[index] = direction
    elif constraints:
        if len(constraints) != schema.n_columns:
            raise ParameterError(
                f"{parameter} has {len(constraints)} entries, but X has {schema.n_columns} "
                "features.",
                "Give one of -1, 0 and 1 for each feature, or a dict with the constrained ones.",
                parameter=parameter,
            )
        directions[: len(constraints)] = constraints
    for column, part in schema.parts:
        if directions[column]:
            raise ParameterError(
                f"{parameter} names the dates {schema.label(column)}, of which the {part} is a "
                "feature, too: predictions would not be monotone. Use calendar_parts=None, or "
                "leave the dates out.",
                parameter=parameter,
            )
    for index, direction in enumerate(directions):
        levels = schema.levels_of(index)
        if direction and levels is not None and levels.ranks is None:
            raise ParameterError(
                f"{parameter} names the feature {schema.label(index)}, but that is a category, "
                "whose levels have no order. Leave it out, or pass it as numbers or as an ordered "
                "category.",
                parameter=parameter,
            )
    return directions if any(directions) else []


def interaction_groups(constraints: str | list[Any] | None, schema: Schema) -> list[list[int]]:
    """Groups of features that may share a path; an empty list without constraints.

    A feature in no group becomes a group of its own: trees may use it, but with no other feature.
    Derived features are in the groups of their column.

    Examples
    --------
    >>> interaction_groups([["c", "a"]], Schema(names=("a", "b", "c"), n_features=3))
    [[0, 2], [1]]
    >>> interaction_groups("pairwise", Schema(names=None, n_features=3))
    [[0, 1], [0, 2], [1, 2]]
    """
    if constraints is None:
        return []
    features = range(schema.n_features)
    if isinstance(constraints, str):
        size = 2 if constraints == "pairwise" else 1
        return [list(group) for group in combinations(features, min(size, len(features)))]
    indices = [
        feature_indices(group, schema.names, schema.n_features, parameter="interaction_constraints")
        for group in constraints
    ]
    parts: dict[int, list[int]] = {}  # derived features of each column, and the column itself
    for feature, column in enumerate(schema.column_of):
        parts.setdefault(column, []).append(feature)
    groups = [
        sorted({feature for index in group for feature in (index, *parts.get(index, ()))})
        for group in indices
    ]
    grouped = {feature for group in groups for feature in group}
    rest = (
        [feature for feature in features_of_column if feature not in grouped]
        for features_of_column in parts.values()
    )
    return groups + [group for group in rest if group]


def feature_label(feature: int, schema: Schema) -> str | int:
    """Name of a feature, or its index where the table had no names."""
    return feature if schema.names is None else schema.names[feature]


# ---- target, offset and weights by name ----


def split_target(X: Any, y: object, argument: str = "y") -> tuple[Any, object, str | None]:
    """X, y and None; where y names a column of X: the rest of X, the column and its name.

    Tables without names are left to `arboost.data.target`, which says what y must be. `argument`
    is the name of y in messages.
    """
    if not isinstance(y, str):
        return X, y, None
    names, name = names_of(X), str(y)
    if names is None or names.count(name) > 1:  # two columns of one name: the reader of X says so
        return X, y, None
    if name not in names:
        raise no_column_error(name, names, argument)
    if isinstance(X, Mapping):
        return {key: column for key, column in X.items() if key != name}, X[name], name
    if isinstance(X, list | tuple):
        rest = [{key: value for key, value in row.items() if key != name} for row in X]
        return rest, [row.get(name) for row in X], name
    if hasattr(X, "iloc"):  # pandas
        return X.drop(columns=[name]), X[name], name
    others = [other for other in names if other != name]
    return X.select(others), X[name], name  # Polars and PyArrow


def offset_names(offset: object) -> tuple[str, ...] | None:
    """Columns that an offset names; empty for numbers, None without an offset."""
    if isinstance(offset, str):
        return (offset,)
    is_named = isinstance(offset, list | tuple) and all(isinstance(name, str) for name in offset)
    if is_named and offset:
        return tuple(map(str, cast(Any, offset)))
    return None if offset is None else ()


def split_offset(X: Any, offset: object, argument: str = "offset") -> tuple[Any, object]:
    """X without the columns that an offset names, and the offset as numbers.

    Parameters
    ----------
    X : table, dict or pandas Series of one row
    offset : str, list of str, numbers or None
    argument : str
        Name of the offset in messages.
    """
    names = offset_names(offset)
    if not names:
        return X, offset
    if hasattr(X, "iloc") and not hasattr(X, "columns"):  # a row of pandas
        X = dict(zip(X.index, X.tolist(), strict=True))
    columns = []
    for name in names:
        X, column, values = split_target(X, name, argument)
        if values is None:
            raise ValueError(
                f"{argument}={name!r} names a column, but X, a {type(X).__name__}, has no columns "
                f"of different names. Pass an array: one value for each row."
            )
        columns.append(column)
    return X, columns[0] if len(columns) == 1 else [as_vector(column) for column in columns]


def split_row_columns(
    X: Any, sample_weight: object, groups: object = None, groups_name: str = "groups"
) -> tuple[Any, object, tuple[str, ...]]:
    """X without the columns that weights and groups name, the weights, and these names.

    `groups_name` is the name of the groups in messages.
    """
    weight = sample_weight
    names: dict[str, None] = {}
    for argument, column_or_values in (("sample_weight", sample_weight), (groups_name, groups)):
        if isinstance(column_or_values, str) and column_or_values not in names:
            X, column = split_offset(X, column_or_values, argument)
            weight = column if argument == "sample_weight" else weight
            names[column_or_values] = None
    return X, weight, tuple(names)


def offset_values(
    offset: object, n_rows: int, names: tuple[str, ...] = (), argument: str = "offset"
) -> Floats:
    """Offset as float64 of shape (n_rows, n_columns), finite.

    Parameters
    ----------
    offset : numbers
        One for all rows, one for each row, or a row of them for each row; of several names the
        list of their columns.
    n_rows : int
    names : tuple of str
        Names of the columns.
    argument : str
        Name of the offset in messages.
    """
    try:
        if len(names) > 1:
            array = np.stack([_floats(column) for column in cast(Any, offset)], -1)
        else:
            array = _floats(offset)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{argument} must be numbers, one for each row, but {error}. Pass floats."
        ) from error
    if array.ndim == 0 or (array.shape == (len(names),) and len(names) > 1):
        array = np.broadcast_to(array.reshape(1, -1), (n_rows, array.size))
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or len(array) != n_rows:  # noqa: PLR2004 - rows and raw scores
        raise ValueError(
            f"{argument} has the shape {array.shape}, but X has {n_rows} rows. Pass one value for "
            "each row, or for K classes an array of shape (n_rows, K)."
        )
    bad = ~(np.abs(array) <= _LARGEST_OFFSET).all(axis=1)  # so is NaN
    if bad.any():
        row = int(bad.argmax())
        shown = f"{argument} {', '.join(map(repr, names))}" if names else argument
        raise ValueError(
            f"{shown} has {int(bad.sum())} rows that are NaN, infinite or beyond "
            f"{_LARGEST_OFFSET:g} in size, the first {array[row].tolist()} in row {row}. An offset "
            "is added to the raw scores: pass finite numbers, 0 for rows without one."
        )
    return np.ascontiguousarray(array)


def _floats(values: Any) -> Floats:
    """Numbers as float64, with NaN for masked ones."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    array = as_vector(values)
    if array.dtype.kind == "c":
        raise ValueError("complex numbers are not allowed")
    return np.asarray(array, np.float64)


def names_of(X: Any) -> list[Any] | None:
    """Names of the columns of a frame, dict or list of dicts; None for other tables."""
    if isinstance(X, Mapping) and not is_sparse(X):
        return list(X)
    if isinstance(X, list | tuple):
        has_names = bool(X) and all(isinstance(row, Mapping) for row in X)
        return list(dict.fromkeys(name for row in X for name in row)) if has_names else None
    if type(X).__name__ == "LazyFrame" or not (hasattr(X, "iloc") or hasattr(X, "select")):
        return None
    names = getattr(X, "column_names", getattr(X, "columns", None))  # of PyArrow, of all others
    if names is None:
        names = getattr(getattr(X, "schema", None), "names", None)  # of a record batch
    return None if names is None else list(names)


def no_column_error(name: str, names: Iterable[object], argument: str = "y") -> InputError:
    """Error of a y, or another argument, that names no column of X."""
    known = list(names)
    meant = did_you_mean(name, [other for other in known if isinstance(other, str)])
    column = "the column to predict" if argument == "y" else "a column"
    return InputError(
        f"{argument}={name!r} names no column of X, whose columns are "
        f"{listing(map(repr, known))}.{meant}",
        f"Pass the name of {column}, or one value for each row.",
        parameter=argument,
    )
