"""Second pass over a source: codes of all rows, by the edges and the plan of the first pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import Binned
from arboost.data.stream.levels import empty_columns, encoded_values, value_column
from arboost.data.stream.records import (
    Batches,
    CodesSink,
    SketchedTable,
    StreamSpec,
    changed_message,
)
from arboost.data.stream.rows import BatchRows, naming_batch
from arboost.data.stream.shares import join_changes
from arboost.data.table import ingest
from arboost.data.target_encoding import without_target_encoding
from arboost.workers import together

__all__ = ["encode_batches"]


def encode_batches(
    batches: Batches,
    spec: StreamSpec,
    table: SketchedTable,
    sink: Callable[[], CodesSink],
    own: range,
) -> Binned:
    """Return the codes of the rows of this process, in a sink that `sink` makes.

    A part that does not fit the storage plan changes it. Then the rest of the pass finds all other
    changes, and the next pass writes: two passes at most, where one process has all rows. `own` are
    the positions of the rows in the table.
    """
    plan = table.plan
    assert plan is not None
    while True:
        parts = together(spec.workers, sink)
        work = partial(_encode_pass, batches, spec, table, plan, parts, own)
        fitting = join_changes(plan, together(spec.workers, work), spec.workers)
        if fitting is plan:
            codes = together(spec.workers, parts.finish)
            return Binned(codes, table.edges, table.schema, tree_method=spec.tree_method)
        plan = fitting


def _encode_pass(
    batches: Batches,
    spec: StreamSpec,
    table: SketchedTable,
    plan: core.StoragePlan,
    parts: CodesSink,
    own: range,
) -> core.StoragePlan:
    """Write the codes of all batches; return the plan, another one where they do not fit it."""
    encodings = encoded_values(table.encoded_table)
    fitting, first, codes = plan, own.start, None
    for batch in batches("binning"):
        with naming_batch(batch):
            rows = spec.columns.rows(batch)
            last = first + rows.n_rows(batch)
            _check_same(rows, table, first, last, own)
            columns = ingest(rows.X, without_target_encoding(table.schema)).columns
            for feature, values in encodings.items():
                of_rows = value_column(int(columns.n_rows), values[first:last], rows.kept)
                columns.put(feature, of_rows)
            codes, fitting = _encode(
                columns, rows.kept, spec, table, fitting, rows_only=parts.rows_only, spent=codes
            )
        first = last
        if fitting is plan:
            parts.append(codes)
    if first != own.stop:
        raise ValueError(changed_message(f"{first - own.start:,} rows instead of {len(own):,}"))
    if codes is None:  # a worker without rows
        nothing = empty_columns(table.schema)
        codes, _ = _encode(nothing, None, spec, table, plan, rows_only=False, spent=None)
        parts.append(codes)
    return fitting


def _encode(
    columns: core.Columns,
    kept: NDArray[np.uint32] | None,
    spec: StreamSpec,
    table: SketchedTable,
    plan: core.StoragePlan,
    *,
    rows_only: bool,
    spent: core.Codes | None,
) -> tuple[core.Codes, core.StoragePlan]:
    """Return the codes of a batch, and the plan: the same one where the batch fits it.

    The memory of `spent`, codes of an earlier batch, is used again.
    """
    categorical = [n > 0 for n in table.schema.n_levels]
    while True:
        codes, fitting = core.encode_part(
            columns, kept, list(table.edges), spec.n_threads, categorical, plan, rows_only, spent
        )
        if codes is not None:
            return codes, plan
        plan = fitting


def _check_same(rows: BatchRows, table: SketchedTable, first: int, last: int, own: range) -> None:
    """Raise ValueError where a batch is not that of the first pass."""
    if last > own.stop:
        raise ValueError(changed_message("more rows"))
    known = None if table.y is None else table.y[first:last]
    if known is not None and rows.y is not None and not np.array_equal(rows.y, known):
        raise ValueError(changed_message("other values of y"))
