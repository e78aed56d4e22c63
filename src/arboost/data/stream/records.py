"""Records of the passes over a source: their specification, and the result of the first one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.schema import Schema
from arboost.data.stream.memory import BOOSTING_STATE, RowState
from arboost.data.stream.rows import EdgeRows, RowColumns
from arboost.data.table import ColumnOptions
from arboost.data.target_encoding import TargetEncodedTable
from arboost.workers import Workers

if TYPE_CHECKING:
    from arboost.sources.source import Batch

__all__ = ["Batches", "CodesSink", "SketchedTable", "StreamSpec", "changed_message"]

Floats = NDArray[np.float64]


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
class StreamSpec:
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
    max_bins: int
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
    y : array of shape (n_rows,), or None
    weight : float64 array of shape (n_rows,), or None
    n_rows : int
        Number of rows of nonzero weight.
    encoded_table : TargetEncodedTable or None
        Target-encoded categories in memory; its other columns have no values.
    level_classes : int or None
        Number of classes that the target encoding was made for.
    groups : array of shape (n_rows,), or None
    offset : float64 array of shape (n_rows, n_columns), or None
    """

    schema: Schema
    edges: tuple[Floats, ...]
    plan: core.StoragePlan | None
    y: NDArray[Any] | None
    weight: Floats | None
    n_rows: int
    encoded_table: TargetEncodedTable | None = None
    level_classes: int | None = None
    groups: NDArray[Any] | None = None
    offset: Floats | None = None


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
        """Return the codes of all rows."""
        ...


def changed_message(found: str) -> str:
    """Return the message on a source that another pass finds other rows in."""
    return (
        f"X has changed between two passes over it: {found}. Leave the source unchanged until fit "
        "has read it; an iterable must give the same rows in the same order each time."
    )
