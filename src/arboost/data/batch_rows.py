"""Batches -> features, target, weights, offset; and the records of the passes over a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import feature_names
from arboost.data.levels import Floats, Index
from arboost.data.memory import BOOSTING_STATE, RowState
from arboost.data.schema import Schema
from arboost.data.table import ColumnOptions
from arboost.data.target import batch_weights, target, weights
from arboost.data.target_encoding import TargetEncodedTable
from arboost.errors import error_prefix
from arboost.params.records import USUAL_BINS
from arboost.workers import Workers

if TYPE_CHECKING:
    from arboost.data.source import Batch


class RowValues(NamedTuple):
    """Target, weights, groups and offset of rows of nonzero weight.

    Attributes
    ----------
    y : array of shape (n_rows,), or None
    weight : float64 array of shape (n_rows,), or None
    groups : array of shape (n_rows,), or None
    offset : float64 array of shape (n_rows, n_columns), or None
    """

    y: NDArray[Any] | None = None
    weight: Floats | None = None
    groups: NDArray[Any] | None = None
    offset: Floats | None = None


class BatchRows(NamedTuple):
    """Rows of one batch.

    Attributes
    ----------
    X : table
        Features of all rows.
    values : RowValues
        Of the rows of nonzero weight.
    kept : uint32 array, or None for all
        Rows of nonzero weight.
    n_rows : int
        Number of rows of nonzero weight.
    """

    X: object
    values: RowValues
    kept: Index | None
    n_rows: int

    def check_same(self, y: NDArray[Any] | None, first: int, own_rows: range) -> None:
        """Raise ValueError where another pass has found other rows.

        Parameters
        ----------
        y : array, or None
            Target of all rows, where it is known.
        first : int
            Position of the first row of the batch.
        own_rows : range
            Positions of the rows of this process.
        """
        last = first + self.n_rows
        if last > own_rows.stop:
            raise changed_error("more rows")
        if y is None or self.values.y is None:
            return
        if not np.array_equal(self.values.y, y[first:last]):
            raise changed_error("other values of y")


def changed_error(change: str) -> ValueError:
    """Error of a source that another pass finds other rows in."""
    return ValueError(
        f"X has changed between two passes over it: {change}. Leave the source unchanged until fit "
        "has read it; an iterable must give the same rows in the same order each time."
    )


def batch_name(batch: Batch) -> str:
    """File and the rows of a batch."""
    last = batch.first_row + batch.n_rows - 1
    return f"{batch.file}, rows {batch.first_row:,} to {last:,}"


def batch_errors(batch: Batch) -> AbstractContextManager[None]:
    """Put the file and the rows of a batch before messages."""
    return error_prefix(batch_name(batch))


@dataclass(frozen=True)
class RowColumns:
    """Target, weights, groups, offset of a source: its columns, arrays of all rows, or None."""

    target: object = None
    weight: object = None
    groups: object = None
    offset: object = None

    @property
    def names(self) -> list[str]:
        """Names of the columns of the source that are not features."""
        columns = self.target, self.weight, self.groups
        names = [name for name in columns if isinstance(name, str)]
        return [*names, *(feature_names.offset_names(self.offset) or ())]

    @property
    def is_empty(self) -> bool:
        """Whether none of them is given; tuples of a source may have them even so."""
        columns = self.target, self.weight, self.groups, self.offset
        return all(column is None for column in columns)

    def rows(self, batch: Batch) -> BatchRows:
        """Rows of a batch, checked."""
        X, y, weight = batch.table, None, None
        if isinstance(batch.table, tuple):
            X, y, weight = (*batch.table, None, None)[:3]
        X, y = self._part(X, y, self.target, batch)
        X, weight = self._part(X, weight, self.weight, batch)
        X, groups = self._part(X, None, self.groups, batch)
        X, offset = self._offset(X, batch)
        values = RowValues(
            None if y is None else target(y, batch.n_rows),
            None if weight is None else batch_weights(weight, batch.n_rows),
            None if groups is None else np.asarray(groups),
            offset,
        )
        if values.weight is None or values.weight.all():
            return BatchRows(X, values, None, batch.n_rows)
        kept_rows = np.flatnonzero(values.weight).astype(np.uint32)
        kept_values = (None if array is None else array[kept_rows] for array in values)
        return BatchRows(X, RowValues(*kept_values), kept_rows, len(kept_rows))

    def _part(
        self, X: object, values_of_batch: object, column: object, batch: Batch
    ) -> tuple[object, object]:
        """X without a column that is the target or the weights, and its values."""
        if column is None:
            return X, values_of_batch
        if isinstance(column, str):
            X, values, _ = feature_names.split_target(X, column)
            return X, values
        values = np.asarray(column)
        return X, values[batch.first_row : batch.first_row + batch.n_rows]

    def _offset(self, X: object, batch: Batch) -> tuple[object, Floats | None]:
        """X without the columns of the offset, and the offset."""
        names = feature_names.offset_names(self.offset)
        if names is None:
            return X, None
        X, values = feature_names.split_offset(X, self.offset)
        if not names and np.ndim(cast(Any, values)):
            values = np.asarray(values)[batch.first_row : batch.first_row + batch.n_rows]
        return X, feature_names.offset_values(values, batch.n_rows, names)

    def check_lengths(self, n_rows: int) -> None:
        """Raise ValueError for arrays that do not have a value for each row of the source."""
        if self.target is not None and not isinstance(self.target, str):
            target(self.target, n_rows)
        if self.weight is not None and not isinstance(self.weight, str):
            weights(self.weight, n_rows)
        if feature_names.offset_names(self.offset) == ():
            feature_names.offset_values(self.offset, n_rows)


@dataclass(frozen=True)
class EdgeRows:
    """Rows and weights that bin edges come from, where these are not all rows as they are.

    Attributes
    ----------
    training : callable or None
        Of y and groups, it returns the positions of the rows; None: all.
    weights : callable or None
        Of y and weights, it returns the weights of all rows; None: as they are.
    key : str
        Description, the same for equal choices.
    """

    training: Callable[[NDArray[Any], NDArray[Any] | None], Index] | None
    weights: Callable[[NDArray[Any], Floats | None], Floats | None] | None
    key: str


class GrowingArray:
    """Values of one column, batch after batch, in one array.

    Parameters
    ----------
    n_rows : int or None
        Largest number of values, where it is known.
    """

    def __init__(self, n_rows: int | None) -> None:
        self._n_rows = n_rows
        self._array: NDArray[Any] | None = None
        self._size = 0
        self._labels: dict[object, object] = {}

    def add(self, values: NDArray[Any]) -> None:
        """Append values; strings that occur again are kept once."""
        if values.dtype.kind == "O":
            shared = np.empty(len(values), object)
            shared[:] = [self._labels.setdefault(value, value) for value in values.tolist()]
            values = shared
        end = self._size + len(values)
        array = (
            np.empty((0, *values.shape[1:]), values.dtype) if self._array is None else self._array
        )
        dtype = np.result_type(array.dtype, values.dtype)
        if end > len(array) or dtype != array.dtype:
            capacity = max(end, self._n_rows or len(array) * 3 // 2)
            larger = np.empty((capacity, *values.shape[1:]), dtype)
            larger[: self._size] = array[: self._size]
            array = larger
        array[self._size : end] = values
        self._array, self._size = array, end

    @property
    def values(self) -> NDArray[Any]:
        """All values so far."""
        return np.empty(0) if self._array is None else self._array[: self._size]


class GatheredRows:
    """Values of the rows of nonzero weight, batch after batch.

    Parameters
    ----------
    n_expected : int or None
        Largest number of rows, where it is known.

    Attributes
    ----------
    n_rows, n_read : int
        Number of rows of nonzero weight, and of all rows.
    """

    def __init__(self, n_expected: int | None = None) -> None:
        self._n_expected = n_expected
        self._columns: dict[str, GrowingArray] = {}
        self.n_rows = self.n_read = 0

    @classmethod
    def of(cls, batches: Iterable[Batch], columns: RowColumns) -> Self:
        """Rows of all batches."""
        gathered = cls()
        for batch in batches:
            with batch_errors(batch):
                rows = columns.rows(batch)
            gathered.add(rows, batch)
        return gathered

    def add(self, rows: BatchRows, batch: Batch) -> None:
        """Add the rows of the next batch."""
        self.add_values(rows.values)
        self.n_rows += rows.n_rows
        self.n_read += batch.n_rows

    def add_values(self, values: RowValues) -> None:
        """Add the values of the next rows."""
        for name, array in values._asdict().items():
            if array is not None:
                self._columns.setdefault(name, GrowingArray(self._n_expected)).add(array)

    @property
    def values(self) -> RowValues:
        """Values of all rows so far."""
        return RowValues(**{name: column.values for name, column in self._columns.items()})


def joined_values(parts: Iterable[RowValues], n_rows: int) -> RowValues:
    """Values of the rows of several workers as one."""
    gathered = GatheredRows(n_rows)
    for values in parts:
        gathered.add_values(values)
    return gathered.values


# ---- records of the passes ----


class Batches(Protocol):
    """Batches of one pass after the other, each of which begins with the first row."""

    def __call__(self, label: str) -> Iterator[Batch]:
        """Yield the batches of a pass, whose name messages show."""
        ...

    def note_levels(self, n_bytes: int, n_encoded: int) -> None:
        """Take note of the bytes of all levels so far, and of the categories to encode.

        Raises ValueError where they take more than the memory limit.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class BinningSpec:
    """Parameters that the bins of a source depend on.

    Attributes
    ----------
    columns : RowColumns
        Target and weights.
    options : ColumnOptions
        With the encoding of categories of many levels: "groups" or "mean".
    max_bins : int
    tree_method : str
        "approx" stores every feature in a column of its own.
    tree_bytes : tuple of int
        Bytes of a cell that trees need next to codes in memory, and of a column in any case.
    bundling : bool
    kind : {"regressor", "classifier"} or None
        Task of the fit, by which levels are target-encoded; None: by the type of y.
    edge_rows : EdgeRows or None
        Choice of the rows that edges come from; None: all.
    needs_memory : str
        Parameter of the fit that needs the codes of all rows in memory; "" for none.
    row_state : RowState
        Bytes of a row in training.
    n_threads : int
    workers : Workers or None
        Workers, each of which has the source of its own rows; None: one process has all.
    """

    columns: RowColumns
    options: ColumnOptions
    max_bins: int = USUAL_BINS
    tree_method: str = "hist"
    tree_bytes: tuple[int, int] = (0, 0)
    bundling: bool
    kind: str | None = None
    edge_rows: EdgeRows | None = None
    needs_memory: str = ""
    row_state: RowState = BOOSTING_STATE
    n_threads: int
    workers: Workers | None = None


@dataclass(frozen=True, kw_only=True)
class SketchedTable:
    """Result of the first pass.

    Attributes
    ----------
    schema : Schema
        With target encodings.
    edges : tuple of float64 arrays
    plan : core.StoragePlan or None
        None for a table from a cache, whose codes are there.
    rows : RowValues
        Target, weights, groups and offset.
    n_rows : int
        Number of rows of nonzero weight.
    encoded_table : TargetEncodedTable or None
        Target-encoded categories in memory; its other columns have no values.
    level_classes : int or None
        Number of classes that the target encoding was made for.
    """

    schema: Schema
    edges: tuple[Floats, ...]
    plan: core.StoragePlan | None
    rows: RowValues
    n_rows: int
    encoded_table: TargetEncodedTable | None = None
    level_classes: int | None = None


class CodesSink(Protocol):
    """Place that takes the codes of one part of the rows after the other.

    Attributes
    ----------
    rows_only : bool
        Whether it needs no column-major codes.
    """

    rows_only: ClassVar[bool]

    def append(self, codes: core.Codes) -> None:
        """Add the codes of the next rows."""
        ...

    def finish(self) -> core.Codes:
        """Codes of all rows."""
        ...
