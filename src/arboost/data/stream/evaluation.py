"""Evaluation sets that are read in batches: target and weights first, codes when bins are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import AnyCodes, Binned
from arboost.data.schema import Schema
from arboost.data.stream.levels import empty_columns
from arboost.data.stream.memory import MemoryPlan
from arboost.data.stream.records import changed_message
from arboost.data.stream.rows import GatheredRows, RowColumns, naming_batch
from arboost.data.stream.shares import shared_codes
from arboost.data.stream.sinks import sink_like
from arboost.data.stream.source_table import open_rows
from arboost.data.table import Table, ingest
from arboost.workers import Share, Workers, first_warns, together

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
    own : range
        Positions of the rows of the source among all rows, where workers have a source each.
    workers : Workers or None
        None: the source has all rows.
    """

    source: Source = field(kw_only=True)
    rows: RowColumns = field(kw_only=True)
    y: NDArray[Any] | None = field(kw_only=True)
    own: range = field(kw_only=True)
    workers: Workers | None = field(kw_only=True, default=None)

    def encode(self, binned: Binned, n_threads: int) -> AnyCodes:
        """Return the codes of all rows by the edges of a training table, in the same place."""
        with first_warns(self.workers):
            codes = together(self.workers, partial(self._encode_own, binned, n_threads))
        return codes if self.workers is None else shared_codes(codes, self.workers)

    def _encode_own(self, binned: Binned, n_threads: int) -> core.Codes:
        plan, first = MemoryPlan(1 << 30, self.schema.n_features), self.own.start
        sink = sink_like(binned.own_codes, len(self.own), n_threads)
        for batch in self.source.batches(plan.batch_rows):
            with naming_batch(batch):
                part = self.rows.rows(batch)
                codes = binned.encode(ingest(part.X, self.schema), n_threads, part.kept)
                last = first + int(codes.n_rows)
                known = None if self.y is None else self.y[first:last]
                if last > self.own.stop or not (
                    known is None or part.y is None or np.array_equal(part.y, known)
                ):
                    raise ValueError(changed_message("other rows"))
            sink.append(codes)
            first = last
        if first == self.own.start and self.workers is not None:  # a worker without rows
            sink.append(binned.encode(Table(empty_columns(self.schema), self.schema), n_threads))
        return sink.finish()


def read_evaluation(
    X: object, y: object, weight: object, schema: Schema, offset: object = None
) -> tuple[StreamedTable, GatheredRows]:
    """Return an evaluation set as a table of a schema, and its target, weights and offset.

    `y`, `weight` and `offset` are as `Dataset.from_files` takes them. X may be a `Share`.
    """
    X, workers = (X.X, X.workers) if isinstance(X, Share) else (X, None)
    rows = RowColumns(y, weight, None, offset)
    with first_warns(workers):
        gathered, n_own, source = together(workers, partial(_own_rows, X, rows, schema))
    first, n_rows = 0, n_own
    if workers is not None:
        parts = workers.gather((gathered.arrays, n_own))
        sizes = [size for _, size in parts]
        first, n_rows = sum(sizes[: workers.rank]), sum(sizes)
        gathered = GatheredRows.joined([arrays for arrays, _ in parts], n_rows)
    own = range(first, first + n_own)
    table = StreamedTable(
        core.Columns(n_rows),
        schema,
        source=source,
        rows=rows,
        y=gathered.y,
        own=own,
        workers=workers,
    )
    return table, gathered


def _own_rows(X: object, rows: RowColumns, schema: Schema) -> tuple[GatheredRows, int, Source]:
    """Return target and weights of a source, the number of its rows, and the source."""
    gathered, n_rows, n_read = GatheredRows(None), 0, 0
    for batch in _opened(X, rows, rows.names or None).batches(1 << 18):
        with naming_batch(batch):
            part = rows.rows(batch)
        gathered.add(part)
        n_rows += part.n_rows(batch)
        n_read += batch.n_rows
    rows.check_lengths(n_read)
    return gathered, n_rows, _opened(X, rows, schema.columns)


def _opened(X: object, rows: RowColumns, columns: Sequence[str] | None) -> Source:
    """Return the source with some columns; an iterable selects its own."""
    from arboost.sources.iterables import is_iterable

    return open_rows(X, rows, None if is_iterable(X) else columns)
