"""Tables for members: X reaches the members of an ensemble in the type that the user passed.

So a member may be a pipeline that selects columns by name. Only lists and rare sparse formats,
which no estimator takes, are converted. The columns are described by a `Schema`, as for trees.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from arboost.data.dataset import Dataset
from arboost.data.feature_names import split_target
from arboost.data.raw_table import (
    checked_matrix,
    dimensions_error,
    frame_columns,
    frame_rows,
    is_arrow_frame,
    is_column,
    is_sparse,
    series_error,
)
from arboost.data.schema import Schema, column_positions, unique_names
from arboost.data.table import as_array, is_records, row_of_series, with_columns
from arboost.data.target import check_pairing
from arboost.errors import InputTypeError

_TABLE_DIMENSIONS = 2


@dataclass(frozen=True)
class MemberTable:
    """X in the form that members get, and its columns."""

    X: Any
    schema: Schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def take(self, rows: NDArray[Any]) -> MemberTable:
        """Some of the rows."""
        return MemberTable(take_rows(self.X, rows), self.schema)


def member_table(X: Any, schema: Schema | None = None, *, caller: str = "Model") -> MemberTable:
    """Return X in the form that members get; with a schema, in its order of columns.

    Parameters
    ----------
    X : table of shape (n_rows, n_features, ...)
        Any type that the members take, of two or more dimensions.
    schema : Schema, optional
        Columns of the fit. Columns with names are matched by name, others by position.
    caller : str
        Name of the estimator in messages.
    """
    if isinstance(X, Dataset):
        raise InputTypeError(
            "X is a Dataset, which holds bins instead of values, but estimators need the values. "
            "Pass the table it was made from, or train with estimator=None."
        )
    X = with_columns(X, schema)
    X = checked_matrix(X) if is_sparse(X) else to_frame(X, schema)  # a format of scipy is a dict
    if not hasattr(X, "shape"):
        X = as_array(X)
    if len(X.shape) < _TABLE_DIMENSIONS:
        if hasattr(X, "to_frame"):
            raise series_error(X)
        raise dimensions_error(X)
    n_rows, n_features = X.shape[:2]
    for count, what in ((n_rows, "sample"), (n_features, "feature")):
        if count == 0 and (schema is None or what == "feature"):
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={tuple(X.shape)}) while a minimum of 1 is "
                "required."
            )
    names = _column_names(X)
    if schema is None:
        return MemberTable(X, Schema(names, int(n_features)))
    return MemberTable(_match_columns(X, names, schema, caller), schema)


def training_table(
    X: object, y: object, schema: Schema | None = None, **values: object
) -> tuple[MemberTable, object]:
    """Return X in the form that members get, and y; y may name a column of X.

    `schema` has the columns of the model whose training is continued; `values` are other values of
    the rows, which are to be in the order of X.
    """
    check_pairing(X, y, **values)
    X, y, name = split_target(X, y)
    table = member_table(X, schema)
    if name is not None:
        table = replace(table, schema=replace(table.schema, target=name))
    return table, y


def to_frame(X: Any, schema: Schema | None = None) -> Any:
    """A dict, a list of dicts or a pandas row as a pandas frame, all others unchanged."""
    pandas = sys.modules.get("pandas")
    has_names = schema is not None and schema.names is not None
    if has_names and pandas is not None and isinstance(X, pandas.Series):
        X = row_of_series(X, schema)
    if not (isinstance(X, Mapping) or is_records(X)):
        return X
    if pandas is None:
        raise InputTypeError(
            f"X is a {type(X).__name__} of named values, and members of an ensemble need a data "
            "frame. Pass one, for example of pandas: pandas.DataFrame(X)."
        )
    is_row = isinstance(X, Mapping) and not all(map(is_column, X.values()))
    return pandas.DataFrame([X] if is_row else X)


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Some of the rows of a table, in the type of the table."""
    places = rows.astype(np.intp)
    return frame_rows(X, places) if is_arrow_frame(X) else _safe_indexing(X, places)


def take_columns(X: Any, features: NDArray[np.intp]) -> Any:
    """Some of the columns of a table, in the type of the table.

    Repeated columns get distinct names: a, a (2), a (3).
    """
    names = _column_names(X)
    if names is None and not hasattr(X, "iloc"):
        return X[:, features]
    if names is None:  # column names other than strings
        return X.iloc[:, features].set_axis(range(len(features)), axis="columns")
    seen: dict[int, int] = {}
    own = []
    for feature in features.tolist():
        seen[feature] = seen.get(feature, 0) + 1
        own.append(names[feature] + (f" ({seen[feature]})" if seen[feature] > 1 else ""))
    if hasattr(X, "iloc"):
        return X.iloc[:, features].set_axis(own, axis="columns")
    return frame_columns(X, features.tolist(), own)


def _column_names(X: Any) -> tuple[str, ...] | None:
    if is_arrow_frame(X):
        return unique_names(list(X.column_names if hasattr(X, "column_names") else X.columns))
    return unique_names(list(X.columns)) if hasattr(X, "iloc") else None


def _match_columns(X: Any, names: tuple[str, ...] | None, schema: Schema, caller: str) -> Any:
    """Return X with the columns in the order of the schema."""
    places = column_positions(names, X.shape[1], schema, caller)
    if places is None:
        return X
    if hasattr(X, "iloc"):
        return X.iloc[:, places]
    assert names is not None
    return frame_columns(X, places, [names[place] for place in places])
