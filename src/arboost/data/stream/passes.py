"""Two passes over a source: sketch (schema, target, edges, storage plan), then encode.

    pass 1   batch ──▶ ColumnMerge, GatheredRows, core.TableSketch ──▶ schema, y, weights, edges
    pass 2   batch ──▶ core.encode_part ──▶ codes of all rows, in memory or in a file

Edges, levels and codes are those of the whole table in memory, whatever the batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import Binned
from arboost.data.stream.columns import ColumnMerge
from arboost.data.stream.levels import StreamedLevels
from arboost.data.stream.records import (
    Batches,
    CodesSink,
    SketchedTable,
    StreamSpec,
    changed_message,
)
from arboost.data.stream.rows import (
    BatchRows,
    GatheredRows,
    GrowingArray,
    naming_batch,
)
from arboost.data.table import Table, ingest, level_column
from arboost.data.target import encode_labels, numbers_of
from arboost.data.target_encoding import (
    TargetEncodedTable,
    features_to_encode,
    label_target,
    target_encode,
    without_target_encoding,
)
from arboost.data.unusual import warn_constant_columns

if TYPE_CHECKING:
    from arboost.data.schema import Schema

__all__ = ["encode_batches", "sketch_batches"]

Floats = NDArray[np.float64]


def sketch_batches(
    batches: Batches, spec: StreamSpec, n_rows: int | None, targets: Batches | None = None
) -> SketchedTable:
    """Return schema, target, edges and storage plan of all rows.

    Parameters
    ----------
    batches : callable
    spec : StreamSpec
    n_rows : int or None
        Number of rows, where it is known.
    targets : callable, optional
        Batches with the columns of target, weights and groups at least.
    """
    merge, gathered, sketch = ColumnMerge(spec.options), GatheredRows(n_rows), None
    training, n_read, n_kept = _training_rows(targets or batches, spec), 0, 0
    for batch in batches("reading"):
        with naming_batch(batch):
            rows = spec.columns.rows(batch)
            columns = merge.add(rows.X)
            gathered.add(rows)
            sketch = sketch or core.TableSketch(columns.n_columns, spec.max_bins)
            first, n_kept = n_kept, n_kept + rows.n_rows(batch)
            used = rows.kept
            if training is not None:
                used = _chosen(training[first:n_kept], rows.kept)
            sketch.push(columns, used, spec.n_threads)
        n_read += batch.n_rows
    if sketch is None:
        raise ValueError("X has no rows. Pass at least one row to train on.")
    spec.columns.check_lengths(n_read)
    merged = merge.finish()
    merged.notes.warn()
    schema, weight = merged.schema, gathered.weight
    if isinstance(spec.columns.target, str):
        schema = replace(schema, target=spec.columns.target)
    for feature, codes in merged.codes.items():
        sketch.replace_codes(feature, codes)
    encoded, classes = _target_encoded(batches, spec, schema, gathered)
    if encoded is not None:
        schema = encoded.schema
    chosen = None if training is None else np.flatnonzero(training).astype(np.uint32)
    edges = _edges(sketch, schema, gathered, encoded, spec, chosen)
    sample, has_missing = sketch.sample(), list(sketch.has_missing)
    for feature, values in _encodings(encoded).items():
        has_missing[feature] = bool(np.isnan(values).any())
        of_edges = values if chosen is None else values[chosen]
        sample.put(feature, _column(int(sample.n_rows), of_edges[sketch.places]))
    warn_constant_columns(Table(sample, schema), None, edges)
    plan = core.plan_sample(
        sample,
        n_kept,
        has_missing,
        edges,
        spec.n_threads,
        [n > 0 for n in schema.n_levels],
        spec.bundling,
    )
    return SketchedTable(
        schema=schema,
        edges=tuple(edges),
        plan=plan,
        y=gathered.y,
        weight=weight,
        n_rows=n_kept,
        encoded_table=encoded,
        level_classes=classes,
        groups=gathered.groups,
    )


def _edges(
    sketch: core.TableSketch,
    schema: Schema,
    gathered: GatheredRows,
    encoded: TargetEncodedTable | None,
    spec: StreamSpec,
    chosen: NDArray[np.uint32] | None,
) -> list[Floats]:
    """Return the edges of all columns, as `arboost.data.bins.bin_table` has them.

    `chosen` are the rows that they come from; None: all.
    """
    weight = gathered.weight
    if spec.edge_rows is not None and spec.edge_rows.weights is not None:
        assert gathered.y is not None
        weight = spec.edge_rows.weights(gathered.y, weight)
    if weight is not None and chosen is not None:
        weight = weight[chosen]
    if weight is not None and (weight == weight[0]).all():
        weight = None  # so that edges do not depend on the rounding of sums of equal weights
    is_level = [schema.levels_of(i) is not None for i in range(schema.n_features)]
    edges = sketch.edges(weight, is_level, spec.n_threads)
    for i, n_levels in enumerate(schema.n_levels):
        if n_levels > 0:
            edges[i] = np.arange(0.5, n_levels - 1)
    for feature, values in _encodings(encoded).items():
        if schema.n_levels[feature] == 0:  # target means
            column = _column(len(values), values)
            (edges[feature],) = core.quantiles(
                column, chosen, weight, spec.max_bins, spec.n_threads
            )
    return edges


def _training_rows(batches: Batches, spec: StreamSpec) -> NDArray[np.bool_] | None:
    """Return which rows edges come from, by a pass over their targets; None: all."""
    if spec.edge_rows is None or spec.edge_rows.training is None:
        return None
    gathered = GatheredRows(None)
    for batch in batches("reading y"):
        with naming_batch(batch):
            gathered.add(spec.columns.rows(batch))
    if gathered.y is None:
        return None
    chosen = np.zeros(len(gathered.y), bool)
    chosen[spec.edge_rows.training(gathered.y, gathered.groups)] = True
    return chosen


def _chosen(is_chosen: NDArray[np.bool_], kept: NDArray[np.uint32] | None) -> NDArray[np.uint32]:
    """Return the chosen rows of a batch, of all of them or of the kept ones."""
    rows = np.flatnonzero(is_chosen).astype(np.uint32)
    return rows if kept is None else kept[rows]


def _target_encoded(
    batches: Batches, spec: StreamSpec, schema: Schema, gathered: GatheredRows
) -> tuple[TargetEncodedTable | None, int | None]:
    """Return the categories of many levels, target-encoded, and the number of classes.

    Their level codes, by another pass, stay in memory: 4 bytes a row.
    """
    features = features_to_encode(schema)
    if not features:
        return None, None
    y = gathered.y
    if y is None or spec.kind is None:
        target = label_target(y, schema)
    elif spec.kind == "classifier":
        classes, of_rows = encode_labels(y, spec.n_threads)
        target = of_rows, len(classes)
    else:
        target = numbers_of(y), None
    codes = {feature: GrowingArray(len(target[0])) for feature in features}
    for batch in batches("reading levels"):
        with naming_batch(batch):
            rows = spec.columns.rows(batch)
            table = ingest(rows.X, schema).columns
            for feature, column in codes.items():
                levels = np.nan_to_num(table.read(feature), nan=-1.0).astype(np.int32)
                column.add(levels if rows.kept is None else levels[rows.kept])
    columns = core.Columns(len(target[0]))
    for feature in range(schema.n_features):
        if feature in codes:
            columns.extend(level_column(len(target[0]), codes[feature].values))
        else:
            columns.add_missing()
    encoded = target_encode(
        Table(columns, schema),
        [target],
        encoding=spec.options.category_encoding,
        weight=gathered.weight,
    )
    assert isinstance(encoded, TargetEncodedTable)
    parts = encoded.values, encoded.schema, encoded.sources, encoded.weight
    return StreamedLevels(*parts), target[1]


def encode_batches(
    batches: Batches, spec: StreamSpec, table: SketchedTable, sink: Callable[[], CodesSink]
) -> Binned:
    """Return the codes of all rows, in a sink that `sink` makes.

    A part that does not fit the storage plan changes it. Then the rest of the pass finds all other
    changes, and the next pass writes: two passes at most.
    """
    encodings = _encodings(table.encoded_table)
    assert table.plan is not None
    plan, is_fit, codes = table.plan, False, None
    while not is_fit:
        is_fit, parts, first = True, sink(), 0
        for batch in batches("binning"):
            with naming_batch(batch):
                rows = spec.columns.rows(batch)
                last = first + rows.n_rows(batch)
                _check_same(rows, table, first, last)
                columns = ingest(rows.X, without_target_encoding(table.schema)).columns
                for feature, values in encodings.items():
                    of_rows = _column(int(columns.n_rows), values[first:last], rows.kept)
                    columns.put(feature, of_rows)
                codes, fitting = _encode(
                    columns, rows.kept, spec, table, plan, rows_only=parts.rows_only, spent=codes
                )
            first, is_fit, plan = last, is_fit and fitting is plan, fitting
            if is_fit:
                parts.append(codes)
    if first != table.n_rows:
        raise ValueError(changed_message(f"{first:,} rows instead of {table.n_rows:,}"))
    return Binned(parts.finish(), table.edges, table.schema)


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


def _encodings(table: TargetEncodedTable | None) -> dict[int, Floats]:
    """Return the values of the target-encoded categories."""
    if table is None:
        return {}
    return {one.feature: table.columns.read(one.feature) for one in table.sources}


def _column(n_rows: int, values: Floats, kept: NDArray[np.uint32] | None = None) -> core.Columns:
    """Return values of all rows, or of the kept ones, as a column."""
    if kept is not None:
        of_all = np.full(n_rows, np.nan)
        of_all[kept] = values
        values = of_all
    column = core.Columns(n_rows)
    column.add(values)
    return column


def _check_same(rows: BatchRows, table: SketchedTable, first: int, last: int) -> None:
    """Raise ValueError where a batch is not that of the first pass."""
    if last > table.n_rows:
        raise ValueError(changed_message("more rows"))
    known = None if table.y is None else table.y[first:last]
    if known is not None and rows.y is not None and not np.array_equal(rows.y, known):
        raise ValueError(changed_message("other values of y"))
