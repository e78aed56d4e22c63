"""First of two passes over a source: schema, target, edges, storage plan; then `encode_batches`.

    pass 1   batch ──▶ ColumnMerge, GatheredRows, core.TableSketch ──▶ schema, y, weights, edges
    pass 2   batch ──▶ core.encode_part ──▶ codes of all rows, in memory or in a file

Edges, levels and codes are those of the whole table in memory, whatever the batches; and whatever
the workers, each of which passes over its own batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.batch_columns import ColumnMerge
from arboost.data.batch_rows import (
    Batches,
    BatchRows,
    BinningSpec,
    CodesSink,
    GatheredRows,
    GrowingArray,
    SketchedTable,
    batch_errors,
    batch_name,
    changed_message,
)
from arboost.data.bins import Binned, fixed_edges, warn_constant_columns
from arboost.data.feature_names import offset_names
from arboost.data.level_columns import level_column
from arboost.data.levels import Codes, Floats, Index
from arboost.data.raw_table import number_column
from arboost.data.schema import calendar_part
from arboost.data.shares import (
    ShareRows,
    SourceLevels,
    empty_columns,
    encoded_values,
    join_changes,
    shared_edges,
    shared_plan,
    shared_sample,
    value_column,
)
from arboost.data.table import Table, ingest
from arboost.data.target import encode_labels, numeric_target
from arboost.data.target_encoding import (
    TargetEncodedTable,
    features_to_encode,
    label_target,
    target_encode,
    without_target_encoding,
)
from arboost.workers import run_collective

if TYPE_CHECKING:
    from arboost.data.schema import Schema


def sketch_batches(
    batches: Batches,
    spec: BinningSpec,
    n_rows: int | None,
    targets: Batches | None = None,
    share: ShareRows | None = None,
) -> SketchedTable:
    """Return schema, target, edges and storage plan of all rows.

    Parameters
    ----------
    batches : callable
    spec : BinningSpec
    n_rows : int or None
        Number of rows of the source, where it is known.
    targets : callable, optional
        Batches with the columns of target, weights and groups at least.
    share : ShareRows, optional
        Rows of all workers, where the source has those of one.
    """
    if share is None:
        training = _training_rows(_gathered(targets or batches, spec), spec)
    else:
        training = _training_rows(share.gathered, spec)
    seen = run_collective(
        spec.workers, partial(_first_pass, batches, spec, n_rows, training, share)
    )
    gathered, sketch = seen.gathered, seen.sketch
    if spec.workers is None:
        merged = seen.merge.finish()
    else:
        merged = seen.merge.joined(spec.workers.gather(seen.merge.part()))
    merged.notes.warn()
    schema, weight = merged.schema, gathered.weight
    target = spec.columns.target if isinstance(spec.columns.target, str) else None
    schema = replace(schema, target=target, offset=offset_names(spec.columns.offset))
    for feature, codes in merged.codes.items():
        sketch.replace_codes(feature, codes)
    for column, part in schema.parts:
        sketch.add_column(calendar_part(part, sketch.values(column).astype(np.float64)), column)
    encoded, classes = _target_encoded(batches, spec, schema, gathered)
    if encoded is not None:
        schema = encoded.schema
    chosen = None if training is None else np.flatnonzero(training).astype(np.uint32)
    edges = _edges(sketch, schema, gathered, encoded, spec, chosen, seen.n_rows)
    return SketchedTable(
        schema=schema,
        edges=tuple(edges),
        plan=_plan(sketch, schema, edges, encoded_values(encoded), spec, chosen, seen.n_rows),
        y=gathered.y,
        weight=weight,
        n_rows=seen.n_rows,
        encoded_table=encoded,
        level_classes=classes,
        groups=gathered.groups,
        offset=gathered.offset,
    )


class _FirstPass(NamedTuple):
    """Result of reading all batches once; rows of nonzero weight."""

    merge: ColumnMerge
    gathered: GatheredRows
    sketch: core.TableSketch
    n_rows: int  # of all workers


def _first_pass(
    batches: Batches,
    spec: BinningSpec,
    n_rows: int | None,
    training: NDArray[np.bool_] | None,
    share: ShareRows | None,
) -> _FirstPass:
    """Return columns, target and sketch of the rows of this process; `training` is of all rows."""
    merge, gathered, sketch = ColumnMerge(spec.options), GatheredRows(n_rows), None
    n_read, first = 0, 0
    if share is not None:
        merge, first = ColumnMerge(spec.options, share.header), share.first
        sketch = _share_sketch(share, spec, training)
    n_kept = first
    for batch in batches("reading"):
        with batch_errors(batch):
            rows = spec.columns.rows(batch)
            columns = merge.add(rows.X, batch_name(batch))
            if share is None:
                gathered.add(rows)
            sketch = sketch or core.TableSketch(columns.n_columns, spec.max_bins)
            before, n_kept = n_kept, n_kept + rows.n_rows(batch)
            used = rows.kept
            if training is not None:
                used = _chosen(training[before:n_kept], rows.kept)
            sketch.push(columns, used, spec.n_threads)
        n_read += batch.n_rows
        batches.note_levels(merge.level_bytes, merge.n_encoded)
    if sketch is None:
        raise ValueError("X has no rows. Pass at least one row to train on.")
    if share is None:
        spec.columns.check_lengths(n_read)
        return _FirstPass(merge, gathered, sketch, n_kept)
    if n_kept != share.first + share.n_own:
        raise ValueError(changed_message(f"{n_kept - first:,} rows instead of {share.n_own:,}"))
    return _FirstPass(merge, share.gathered, sketch, share.n_rows)


def _share_sketch(
    share: ShareRows, spec: BinningSpec, training: NDArray[np.bool_] | None
) -> core.TableSketch:
    """Empty sketch of one worker, which knows the positions of its rows."""
    position = share.first, share.n_rows
    if training is not None:
        position = int(training[: share.first].sum()), int(training.sum())
    return core.TableSketch(share.header.n_columns, spec.max_bins, position)


def _plan(
    sketch: core.TableSketch,
    schema: Schema,
    edges: list[Floats],
    encodings: dict[int, Floats],
    spec: BinningSpec,
    chosen: Index | None,
    n_rows: int,
) -> core.StoragePlan:
    """Storage plan of all rows; warn where no column can be split.

    `chosen` are the rows that edges come from; None: all.
    """
    categorical = [n > 0 for n in schema.n_levels]
    of_edges = {
        feature: values if chosen is None else values[chosen]
        for feature, values in encodings.items()
    }
    if spec.workers is not None:
        if not any(map(len, edges)):
            sample, places = shared_sample(sketch, spec.workers)
            _complete_sample(sample, places, schema, edges, of_edges)
        if spec.tree_method == "approx":
            return core.StoragePlan()
        return shared_plan(sketch, edges, of_edges, spec, n_rows=n_rows, categorical=categorical)
    sample, has_missing = sketch.sample(), list(sketch.has_missing)
    for feature, values in encodings.items():
        has_missing[feature] = bool(np.isnan(values).any())
    _complete_sample(sample, sketch.places, schema, edges, of_edges)
    if spec.tree_method == "approx":
        return core.StoragePlan()
    return core.plan_sample(
        sample, n_rows, has_missing, edges, spec.n_threads, categorical, spec.bundling
    )


def _complete_sample(
    sample: core.Columns,
    places: Index,
    schema: Schema,
    edges: list[Floats],
    encodings: dict[int, Floats],
) -> None:
    """Put target-encoded categories into a sample; warn where no column of it can be split."""
    for feature, values in encodings.items():
        sample.put(feature, number_column(values[places]))
    warn_constant_columns(Table(sample, schema), None, edges)


def _edges(
    sketch: core.TableSketch,
    schema: Schema,
    gathered: GatheredRows,
    encoded: TargetEncodedTable | None,
    spec: BinningSpec,
    chosen: Index | None,
    n_rows: int,
) -> list[Floats]:
    """Edges of all columns, as `arboost.data.bins.bin_table` has them.

    `chosen` are the rows that they come from, of n_rows; None: all.
    """
    weight = gathered.weight
    if spec.edge_rows is not None and spec.edge_rows.weights is not None:
        assert gathered.y is not None
        weight = spec.edge_rows.weights(gathered.y, weight)
    if weight is not None and chosen is not None:
        weight = weight[chosen]
    if weight is not None and (weight == weight[0]).all():
        weight = None  # so that edges do not depend on the rounding of sums of equal weights
    fixed = fixed_edges(schema, spec.max_bins)
    is_level = [
        i in fixed or (levels is not None and levels.ranks is None)
        for i, levels in enumerate(schema.levels or (None,) * schema.n_features)
    ]
    if spec.workers is None:
        edges = sketch.edges(weight, is_level, spec.n_threads)
    else:
        n_chosen = n_rows if chosen is None else len(chosen)
        edges = shared_edges(sketch, weight, is_level, spec, n_chosen)
    for i, of_feature in fixed.items():
        edges[i] = of_feature
    for feature, values in encoded_values(encoded).items():
        if schema.n_levels[feature] == 0:  # target means
            column = number_column(values)
            (edges[feature],) = core.quantiles(
                column, chosen, weight, spec.max_bins, spec.n_threads
            )
    return edges


def _gathered(batches: Batches, spec: BinningSpec) -> GatheredRows | None:
    """Return targets by a pass over them, where the choice of rows for edges needs them."""
    if spec.edge_rows is None or spec.edge_rows.training is None:
        return None
    gathered = GatheredRows(None)
    for batch in batches("reading y"):
        with batch_errors(batch):
            gathered.add(spec.columns.rows(batch))
    return gathered


def _training_rows(gathered: GatheredRows | None, spec: BinningSpec) -> NDArray[np.bool_] | None:
    """Return which rows edges come from; None: all."""
    if spec.edge_rows is None or spec.edge_rows.training is None:
        return None
    if gathered is None or gathered.y is None:
        return None
    chosen = np.zeros(len(gathered.y), bool)
    chosen[spec.edge_rows.training(gathered.y, gathered.groups)] = True
    return chosen


def _chosen(is_chosen: NDArray[np.bool_], kept_rows: Index | None) -> Index:
    """Chosen rows of a batch, of all of them or of the kept ones."""
    rows = np.flatnonzero(is_chosen).astype(np.uint32)
    return rows if kept_rows is None else kept_rows[rows]


def _target_encoded(
    batches: Batches, spec: BinningSpec, schema: Schema, gathered: GatheredRows
) -> tuple[TargetEncodedTable | None, int | None]:
    """Categories of many levels, target-encoded, and the number of classes.

    Their level codes, by another pass, stay in memory: 4 bytes a row.
    """
    features = features_to_encode(schema)
    level_bytes = sum(0 if levels is None else levels.n_bytes for levels in schema.levels)
    batches.note_levels(level_bytes, len(features))
    if not features:
        return None, None
    y = gathered.y
    if y is None or spec.kind is None:
        target = label_target(y, schema)
    elif spec.kind == "classifier":
        classes, of_rows = encode_labels(y, spec.n_threads)
        target = of_rows, len(classes)
    else:
        target = numeric_target(y), None
    n_rows = len(target[0]) if spec.workers is None else None
    work = partial(_level_codes, batches, spec, schema, features, n_rows)
    codes = run_collective(spec.workers, work)
    columns = core.Columns(len(target[0]))
    for feature in range(schema.n_features):
        if feature in codes:
            values = codes[feature]
            if spec.workers is not None:
                values = spec.workers.concatenated(values)
            columns.extend(level_column(values))
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
    return SourceLevels(*parts, workers=spec.workers), target[1]


def _level_codes(
    batches: Batches,
    spec: BinningSpec,
    schema: Schema,
    features: list[int],
    n_rows: int | None,
) -> dict[int, Codes]:
    """Level codes of some categories, -1 for missing, by a pass over the batches."""
    codes = {feature: GrowingArray(n_rows) for feature in features}
    for batch in batches("reading levels"):
        with batch_errors(batch):
            rows = spec.columns.rows(batch)
            table = ingest(rows.X, schema).columns
            for feature, column in codes.items():
                levels = np.nan_to_num(table.read(feature), nan=-1.0).astype(np.int32)
                column.add(levels if rows.kept is None else levels[rows.kept])
    return {feature: column.values.astype(np.int32) for feature, column in codes.items()}


def encode_batches(
    batches: Batches,
    spec: BinningSpec,
    table: SketchedTable,
    sink: Callable[[], CodesSink],
    own_rows: range,
) -> Binned:
    """Codes of the rows of this process, in a sink that `sink` makes.

    A part that does not fit the storage plan changes it. Then the rest of the pass finds all other
    changes, and the next pass writes: two passes at most, where one process has all rows. `own` are
    the positions of the rows in the table.
    """
    plan = table.plan
    assert plan is not None
    while True:
        parts = run_collective(spec.workers, sink)
        work = partial(_encode_pass, batches, spec, table, plan, parts, own_rows)
        fitting = join_changes(plan, run_collective(spec.workers, work), spec.workers)
        if fitting is plan:
            codes = run_collective(spec.workers, parts.finish)
            return Binned(codes, table.edges, table.schema, tree_method=spec.tree_method)
        plan = fitting


def _encode_pass(
    batches: Batches,
    spec: BinningSpec,
    table: SketchedTable,
    plan: core.StoragePlan,
    parts: CodesSink,
    own_rows: range,
) -> core.StoragePlan:
    """Write the codes of all batches; return the plan, another one where they do not fit it."""
    encodings = encoded_values(table.encoded_table)
    fitting, first, codes = plan, own_rows.start, None
    for batch in batches("binning"):
        with batch_errors(batch):
            rows = spec.columns.rows(batch)
            last = first + rows.n_rows(batch)
            _check_same(rows, table, first, last, own_rows)
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
    if first != own_rows.stop:
        raise ValueError(
            changed_message(f"{first - own_rows.start:,} rows instead of {len(own_rows):,}")
        )
    if codes is None:  # a worker without rows
        nothing = empty_columns(table.schema)
        codes, _ = _encode(nothing, None, spec, table, plan, rows_only=False, spent=None)
        parts.append(codes)
    return fitting


def _encode(
    columns: core.Columns,
    kept_rows: Index | None,
    spec: BinningSpec,
    table: SketchedTable,
    plan: core.StoragePlan,
    *,
    rows_only: bool,
    spent: core.Codes | None,
) -> tuple[core.Codes, core.StoragePlan]:
    """Codes of a batch, and the plan: the same one where the batch fits it.

    The memory of `spent`, codes of an earlier batch, is used again.
    """
    categorical = [n > 0 for n in table.schema.n_levels]
    while True:
        codes, fitting = core.encode_part(
            columns,
            kept_rows,
            list(table.edges),
            spec.n_threads,
            categorical,
            plan,
            rows_only,
            spent,
        )
        if codes is not None:
            return codes, plan
        plan = fitting


def _check_same(
    rows: BatchRows, table: SketchedTable, first: int, last: int, own_rows: range
) -> None:
    """Raise ValueError where a batch is not that of the first pass."""
    if last > own_rows.stop:
        raise ValueError(changed_message("more rows"))
    known = None if table.y is None else table.y[first:last]
    if known is not None and rows.y is not None and not np.array_equal(rows.y, known):
        raise ValueError(changed_message("other values of y"))
