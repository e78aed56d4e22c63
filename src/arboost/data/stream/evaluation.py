"""Evaluation sets that are read in batches: target and weights first, codes when bins are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import Binned
from arboost.data.schema import Schema
from arboost.data.stream.memory import MemoryPlan
from arboost.data.stream.records import changed_message
from arboost.data.stream.rows import GatheredRows, RowColumns, naming_batch
from arboost.data.stream.sinks import sink_like
from arboost.data.stream.source_table import open_rows
from arboost.data.table import Table, ingest

if TYPE_CHECKING:
    from arboost.sources.source import Source

__all__ = ["StreamedTable", "read_evaluation"]


@dataclass(frozen=True)
class StreamedTable(Table):
    """Rows of nonzero weight of a source; `values` has none of their columns.

    Attributes
    ----------
    source : Source
    rows : RowColumns
        Target and weights.
    y : array of shape (n_rows,), or None
    """

    source: Source = field(kw_only=True)
    rows: RowColumns = field(kw_only=True)
    y: NDArray[Any] | None = field(kw_only=True)

    def encode(self, binned: Binned, n_threads: int) -> core.Codes:
        """Return the codes of all rows by the edges of a training table, in the same place."""
        plan, first = MemoryPlan(1 << 30, self.schema.n_features), 0
        sink = sink_like(binned.codes, self.n_rows, n_threads)
        for batch in self.source.batches(plan.batch_rows):
            with naming_batch(batch):
                part = self.rows.rows(batch)
                codes = binned.encode(ingest(part.X, self.schema), n_threads, part.kept)
                last = first + int(codes.n_rows)
                known = None if self.y is None else self.y[first:last]
                if last > self.n_rows or not (
                    known is None or part.y is None or np.array_equal(part.y, known)
                ):
                    raise ValueError(changed_message("other rows"))
            sink.append(codes)
            first = last
        return sink.finish()


def read_evaluation(
    X: object, y: object, weight: object, schema: Schema
) -> tuple[StreamedTable, NDArray[Any] | None, NDArray[np.float64] | None]:
    """Return an evaluation set as a table of a schema, and its target and weights.

    `y` and `weight` are as `Dataset.from_files` takes them.
    """
    rows = RowColumns(y, weight)
    gathered, n_rows, n_read = GatheredRows(None), 0, 0
    for batch in _opened(X, rows, rows.names or None).batches(1 << 18):
        with naming_batch(batch):
            part = rows.rows(batch)
        gathered.add(part)
        n_rows += part.n_rows(batch)
        n_read += batch.n_rows
    rows.check_lengths(n_read)
    source = _opened(X, rows, schema.names)
    table = StreamedTable(core.Columns(n_rows), schema, source=source, rows=rows, y=gathered.y)
    return table, gathered.y, gathered.weight


def _opened(X: object, rows: RowColumns, columns: Sequence[str] | None) -> Source:
    """Return the source with some columns; an iterable selects its own."""
    from arboost.sources.iterables import is_iterable

    return open_rows(X, rows, None if is_iterable(X) else columns)
