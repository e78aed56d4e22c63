"""Two passes over a source: schema, target, edges and storage plan, then the codes of all rows.

    pass 1   batch ──▶ ColumnMerge, GatheredRows, core.TableSketch ──▶ schema, y, weights, edges
    pass 2   batch ──▶ core.encode_part ──▶ codes of all rows, in memory or in a file

Edges, levels and codes are those of the whole table in memory, whatever the batches; and whatever
the workers, each of which passes over the batches of its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import batch_rows, target_encoding
from arboost.data.batch_columns import ColumnHeader, ColumnMerge
from arboost.data.batch_rows import Batches, BinningSpec, CodesSink, RowValues, SketchedTable
from arboost.data.bins import AnyCodes, Binned, fixed_edges, warn_constant_columns
from arboost.data.feature_names import offset_names
from arboost.data.level_columns import level_column
from arboost.data.levels import Codes, Floats, Index
from arboost.data.memory import sink_like
from arboost.data.raw_table import missing_columns, number_column
from arboost.data.schema import Schema, calendar_part
from arboost.data.table import Table, ingest, read_columns
from arboost.data.target import check_any_weight, encode_labels, numeric_target, varying_weights
from arboost.data.target_encoding import TargetEncodedTable
from arboost.workers import Workers, even_ranges, run_collective

if TYPE_CHECKING:
    from arboost.data.source import Source


# ---- rows of all workers ----


@dataclass(frozen=True)
class ShareRows:
    """Rows of nonzero weight: those of this worker, and target and weights of all.

    Attributes
    ----------
    values : RowValues
        Of all rows.
    own_rows : range
        Positions of the rows of this worker among all.
    n_rows : int
        Number of all rows.
    header : ColumnHeader
        Columns of the first batch of all.
    """

    values: RowValues
    own_rows: range
    n_rows: int
    header: ColumnHeader


def gather_rows(
    source: Source, batches: Batches, spec: BinningSpec, targets: Batches | None
) -> ShareRows:
    """Rows of this worker among those of all, by a pass over target and weights.

    Parameters
    ----------
    source : Source
    batches : callable
    spec : BinningSpec
    targets : callable or None
        Batches with the columns of target, weights and groups alone.
    """
    assert spec.workers is not None
    work = partial(_gather_own, source, targets or batches, spec)
    values, header, n_own = run_collective(spec.workers, work)
    parts = spec.workers.gather((values, header, n_own))
    headers = [header for _, header, _ in parts if header is not None]
    if not headers:
        raise ValueError("X has no rows. Pass at least one row to train on.")
    sizes = [size for _, _, size in parts]
    first, n_rows = sum(sizes[: spec.workers.rank]), sum(sizes)
    joined = batch_rows.joined_values([values for values, _, _ in parts], n_rows)
    return ShareRows(joined, range(first, first + n_own), n_rows, headers[0])


def _gather_own(
    source: Source, batches: Batches, spec: BinningSpec
) -> tuple[RowValues, ColumnHeader | None, int]:
    """Target and weights of the rows of this worker, their columns, and their number.

    The columns are None where no row has been read.
    """
    header = None
    if source.arrow_schema is not None:  # columns are known before the first batch
        names = [name for name in source.arrow_schema.names if name not in spec.columns.names]
        header = ColumnHeader.of(read_columns(source.arrow_schema.empty_table().select(names)))
        if source.n_rows is not None and spec.columns.is_empty:
            return RowValues(), header if source.n_rows else None, source.n_rows
    gathered = batch_rows.GatheredRows(source.n_rows)
    for batch in batches("reading y"):
        with batch_rows.batch_errors(batch):
            rows = spec.columns.rows(batch)
            header = header or ColumnHeader.of(read_columns(rows.X))
        gathered.add(rows, batch)
    spec.columns.check_lengths(gathered.n_read)
    return gathered.values, header if gathered.n_read else None, gathered.n_rows


# ---- first pass ----


def sketch_batches(
    batches: Batches,
    spec: BinningSpec,
    n_rows: int | None,
    targets: Batches | None = None,
    share: ShareRows | None = None,
) -> SketchedTable:
    """Schema, target, edges and storage plan of all rows.

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
    training = _training_rows(targets or batches, spec, share)
    seen = run_collective(
        spec.workers, partial(_first_pass, batches, spec, n_rows, training, share)
    )
    values, sketch = seen.values, seen.sketch
    if spec.workers is None:
        merged = seen.merge.finish()
    else:
        merged = seen.merge.joined(spec.workers.gather(seen.merge.part()))
    merged.notes.warn()
    check_any_weight(values.weight)
    target = spec.columns.target if isinstance(spec.columns.target, str) else None
    schema = replace(merged.schema, target=target, offset=offset_names(spec.columns.offset))
    for feature, codes in merged.codes.items():
        sketch.replace_codes(feature, codes)
    for column, part in schema.parts:
        sketch.add_column(calendar_part(part, sketch.values(column).astype(np.float64)), column)
    encoded, n_classes = _target_encoded(batches, spec, schema, values)
    if encoded is not None:
        schema = encoded.schema
    chosen = None if training is None else np.flatnonzero(training).astype(np.uint32)
    sketched = _Sketch(sketch, schema, _encodings(encoded), spec, chosen, seen.n_rows)
    edges = sketched.edges(values)
    return SketchedTable(
        schema=schema,
        edges=tuple(edges),
        plan=sketched.plan(edges),
        rows=values,
        n_rows=seen.n_rows,
        encoded_table=encoded,
        level_classes=n_classes,
    )


def _training_rows(
    batches: Batches, spec: BinningSpec, share: ShareRows | None
) -> NDArray[np.bool_] | None:
    """Whether edges come from each row, by a pass over the targets; None: from all."""
    if spec.edge_rows is None or spec.edge_rows.training is None:
        return None
    if share is None:
        values = batch_rows.GatheredRows.of(batches("reading y"), spec.columns).values
    else:
        values = share.values
    if values.y is None:
        return None
    training = np.zeros(len(values.y), bool)
    training[spec.edge_rows.training(values.y, values.groups)] = True
    return training


class _FirstPass(NamedTuple):
    """Result of reading all batches once; rows of nonzero weight."""

    merge: ColumnMerge
    values: RowValues
    sketch: core.TableSketch
    n_rows: int  # of all workers


def _first_pass(
    batches: Batches,
    spec: BinningSpec,
    n_rows: int | None,
    training: NDArray[np.bool_] | None,
    share: ShareRows | None,
) -> _FirstPass:
    """Columns, target and sketch of the rows of this process; `training` is of all rows."""
    gathered, last = batch_rows.GatheredRows(n_rows), 0
    merge, sketch = None, None
    if share is not None:  # the sketch knows the positions of the rows of this worker
        merge, last = ColumnMerge(spec.options, share.header, is_part=True), share.own_rows.start
        position = last, share.n_rows
        if training is not None:
            position = int(training[:last].sum()), int(training.sum())
        sketch = core.TableSketch(share.header.n_columns, spec.max_bins, position)
    for batch in batches("reading"):
        with batch_rows.batch_errors(batch):
            rows = spec.columns.rows(batch)
            raw = read_columns(rows.X)
            merge = merge or ColumnMerge(spec.options, ColumnHeader.of(raw))
            columns = merge.add(raw, batch_rows.batch_name(batch))
            if share is None:
                gathered.add(rows, batch)
            sketch = sketch or core.TableSketch(columns.n_columns, spec.max_bins)
            first, last = last, last + rows.n_rows
            used = rows.kept
            if training is not None:
                used = np.flatnonzero(training[first:last]).astype(np.uint32)
                used = used if rows.kept is None else rows.kept[used]
            sketch.push(columns, used, spec.n_threads)
        batches.note_levels(merge.level_bytes, merge.n_encoded)
    if merge is None or sketch is None:
        raise ValueError("X has no rows. Pass at least one row to train on.")
    if share is None:
        spec.columns.check_lengths(gathered.n_read)
        return _FirstPass(merge, gathered.values, sketch, last)
    _check_n_rows(last, share.own_rows)
    return _FirstPass(merge, share.values, sketch, share.n_rows)


def _target_encoded(
    batches: Batches, spec: BinningSpec, schema: Schema, values: RowValues
) -> tuple[TargetEncodedTable | None, int | None]:
    """Categories of many levels, target-encoded, and the number of classes.

    Their level codes, by another pass, stay in memory: 4 bytes a row.
    """
    features = target_encoding.features_to_encode(schema)
    level_bytes = sum(0 if levels is None else levels.n_bytes for levels in schema.levels)
    batches.note_levels(level_bytes, len(features))
    if not features:
        return None, None
    y = values.y
    if y is None or spec.kind is None:
        target = target_encoding.label_target(y, schema)
    elif spec.kind == "classifier":
        classes, class_codes = encode_labels(y, spec.n_threads)
        target = class_codes, len(classes)
    else:
        target = numeric_target(y), None
    n_rows = len(target[0]) if spec.workers is None else None
    work = partial(_level_codes, batches, spec, schema, features, n_rows)
    codes = run_collective(spec.workers, work)
    columns = core.Columns(len(target[0]))
    for feature in range(schema.n_features):
        if feature in codes:
            level_codes = codes[feature]
            if spec.workers is not None:
                level_codes = spec.workers.concatenated(level_codes)
            columns.extend(level_column(level_codes))
        else:
            columns.add_missing()
    encoded = target_encoding.target_encode(
        Table(columns, schema),
        [target],
        encoding=spec.options.category_encoding,
        weight=values.weight,
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
    codes = {feature: batch_rows.GrowingArray(n_rows) for feature in features}
    for batch in batches("reading levels"):
        with batch_rows.batch_errors(batch):
            rows = spec.columns.rows(batch)
            table = ingest(rows.X, schema).columns
            for feature, column in codes.items():
                levels = np.nan_to_num(table.read(feature), nan=-1.0).astype(np.int32)
                column.add(levels if rows.kept is None else levels[rows.kept])
    return {feature: column.values.astype(np.int32) for feature, column in codes.items()}


def _encodings(table: TargetEncodedTable | None) -> dict[int, Floats]:
    """Values of the target-encoded categories."""
    if table is None:
        return {}
    return {source.feature: table.columns.read(source.feature) for source in table.sources}


# ---- edges and storage plan ----


@dataclass(frozen=True)
class _Sketch:
    """Sketch of the rows of this process, from which edges and storage plan come.

    Attributes
    ----------
    sketch : core.TableSketch
    schema : Schema
        With target encodings.
    encodings : dict of int to float64 array
        Target-encoded categories of all rows, of all workers.
    spec : BinningSpec
    chosen : uint32 array, or None for all
        Rows that edges come from.
    n_rows : int
        Number of rows of all workers.
    """

    sketch: core.TableSketch
    schema: Schema
    encodings: dict[int, Floats]
    spec: BinningSpec
    chosen: Index | None
    n_rows: int

    def edges(self, values: RowValues) -> list[Floats]:
        """Edges of all columns, as `arboost.data.bins.bin_table` has them."""
        schema, spec, weight = self.schema, self.spec, values.weight
        if spec.edge_rows is not None and spec.edge_rows.weights is not None:
            assert values.y is not None
            weight = spec.edge_rows.weights(values.y, weight)
        if weight is not None and self.chosen is not None:
            weight = weight[self.chosen]
        weight = varying_weights(weight)
        fixed = fixed_edges(schema, spec.max_bins)
        is_level = [
            i in fixed or (levels is not None and levels.ranks is None)
            for i, levels in enumerate(schema.levels or (None,) * schema.n_features)
        ]
        if spec.workers is None:
            edges = self.sketch.edges(weight, is_level, spec.n_threads)
        else:
            edges = self._shared_edges(weight, is_level, spec.workers)
        for i, feature_edges in fixed.items():
            edges[i] = feature_edges
        for feature, encoding in self.encodings.items():
            if schema.n_levels[feature] == 0:  # target means
                column = number_column(encoding)
                (edges[feature],) = core.quantiles(
                    column, self.chosen, weight, spec.max_bins, spec.n_threads
                )
        return edges

    def _shared_edges(
        self, weight: Floats | None, is_level: Sequence[bool], workers: Workers
    ) -> list[Floats]:
        """Edges of the columns of numbers, none for those of levels; each worker has some."""
        spec = self.spec
        numbers = [column for column in range(len(is_level)) if not is_level[column]]
        columns = [[numbers[k] for k in part] for part in even_ranges(len(numbers), workers.size)]
        parts = workers.exchange([_SampledColumns.of(self.sketch, part) for part in columns])
        places = np.concatenate([part.places for part in parts])
        sample = core.Columns(len(places))
        distinct = []
        for k in range(len(columns[workers.rank])):
            sample.add(np.concatenate([part.values[k] for part in parts]))
            distinct.append(_joined_values([part.distinct[k] for part in parts], spec.max_bins))
        n_chosen = self.n_rows if self.chosen is None else len(self.chosen)
        own_edges = core.sketch_edges(
            sample, places, n_chosen, weight, distinct, spec.max_bins, spec.n_threads
        )
        edges = [np.empty(0)] * len(is_level)
        for indices, edges_of_worker in zip(columns, workers.gather(own_edges), strict=True):
            for column, column_edges in zip(indices, edges_of_worker, strict=True):
                edges[column] = column_edges
        return edges

    def plan(self, edges: list[Floats]) -> core.StoragePlan:
        """Storage plan of all rows; warn where no column can be split."""
        sketch, spec, workers = self.sketch, self.spec, self.spec.workers
        encodings = {
            feature: values if self.chosen is None else values[self.chosen]
            for feature, values in self.encodings.items()
        }
        has_edges = any(map(len, edges))
        if workers is None:
            sample, places = sketch.sample(), sketch.places
        elif not has_edges:
            sample, places = _shared_sample(sketch, workers)
        if workers is None or not has_edges:
            for feature, values in encodings.items():
                sample.put(feature, number_column(values[places]))
            warn_constant_columns(Table(sample, self.schema), None, edges)
        if spec.tree_method == "approx":
            return core.StoragePlan()
        categorical = [n > 0 for n in self.schema.n_levels]
        if workers is not None:
            return self._shared_plan(edges, encodings, categorical, workers)
        has_missing = list(sketch.has_missing)
        for feature, values in self.encodings.items():
            has_missing[feature] = bool(np.isnan(values).any())
        return core.plan_sample(
            sample, self.n_rows, has_missing, edges, spec.n_threads, categorical, spec.bundling
        )

    def _shared_plan(
        self,
        edges: list[Floats],
        encodings: Mapping[int, Floats],
        categorical: list[bool],
        workers: Workers,
    ) -> core.StoragePlan:
        """Storage plan that the first worker makes; encodings of the rows that edges come from."""
        places, spec = self.sketch.places, self.spec
        shared = workers.gather((len(places), self.sketch.has_missing))
        has_missing = np.any([missing for _, missing in shared], axis=0)
        for feature, encoded in encodings.items():
            has_missing[feature] = np.isnan(encoded).any()
        sizes = [size for size, _ in shared]
        first = sum(sizes[: workers.rank])
        rows = core.plan_rows(sum(sizes), spec.n_threads).astype(np.int64) - first
        own_rows = rows[(rows >= 0) & (rows < len(places))]
        features = core.shareable(edges, self.n_rows, spec.bundling)
        values = [
            encodings[feature][places[own_rows]]
            if feature in encodings
            else self.sketch.values(feature)[own_rows]
            for feature in features
        ]
        parts = workers.exchange([values if rank == 0 else [] for rank in range(workers.size)])
        plan = None
        if workers.rank == 0:
            sample = core.Columns(len(rows))
            for feature in range(len(edges)):
                if feature in features:
                    position = features.index(feature)
                    sample.add(np.concatenate([part[position] for part in parts]))
                else:
                    sample.add_missing()
            plan = core.plan_sample(
                sample,
                self.n_rows,
                has_missing.tolist(),
                edges,
                spec.n_threads,
                categorical,
                spec.bundling,
                is_chosen=True,
            )
        joined: core.StoragePlan = workers.broadcast(plan)
        return joined


class _SampledColumns(NamedTuple):
    """Sampled rows of one worker in some columns: positions, values and distinct values."""

    places: Index
    values: list[NDArray[Any]]
    distinct: list[Floats | None]

    @classmethod
    def of(cls, sketch: core.TableSketch, columns: Sequence[int]) -> _SampledColumns:
        """Some columns of a sketch."""
        values = [sketch.values(column) for column in columns]
        return cls(sketch.places, values, [sketch.distinct(column) for column in columns])


def _joined_values(parts: Sequence[Floats | None], most: int) -> Floats | None:
    """Distinct values of all workers, None where they are too many."""
    known = [part for part in parts if part is not None]
    values = np.unique(np.concatenate(known)) if known else np.empty(0)
    return values if len(known) == len(parts) and len(values) <= most else None


def _shared_sample(sketch: core.TableSketch, workers: Workers) -> tuple[core.Columns, Index]:
    """Sampled rows of all workers, and their positions among all rows."""
    columns = range(len(sketch.has_missing))
    parts = workers.gather(_SampledColumns.of(sketch, columns))
    places = np.concatenate([part.places for part in parts])
    sample = core.Columns(len(places))
    for column in columns:
        sample.add(np.concatenate([part.values[column] for part in parts]))
    return sample, places


# ---- second pass ----


def encode_batches(
    batches: Batches,
    spec: BinningSpec,
    table: SketchedTable,
    sink: Callable[[], CodesSink],
    own_rows: range,
) -> Binned:
    """Codes of the rows of this process, in a sink that `sink` makes.

    A part that does not fit the storage plan changes it. Then the rest of the pass finds all other
    changes, and the next pass writes: two passes at most, where one process has all rows.
    `own_rows` are the positions of the rows in the table.
    """
    plan = table.plan
    assert plan is not None
    while True:
        parts = run_collective(spec.workers, sink)
        work = partial(_encode_pass, batches, spec, table, plan, parts, own_rows)
        fitting = _join_changes(plan, run_collective(spec.workers, work), spec.workers)
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
    encodings = _encodings(table.encoded_table)
    schema = target_encoding.without_target_encoding(table.schema)
    fitting, first, codes = plan, own_rows.start, None
    for batch in batches("binning"):
        with batch_rows.batch_errors(batch):
            rows = spec.columns.rows(batch)
            last = first + rows.n_rows
            rows.check_same(table.rows.y, first, own_rows)
            columns = ingest(rows.X, schema).columns
            for feature, encoding in encodings.items():
                values = encoding[first:last]
                if rows.kept is not None:
                    values = np.full(batch.n_rows, np.nan)
                    values[rows.kept] = encoding[first:last]
                columns.put(feature, number_column(values))
            codes, fitting = _encode(
                columns, rows.kept, spec, table, fitting, rows_only=parts.rows_only, spent=codes
            )
        first = last
        if fitting is plan:
            parts.append(codes)
    _check_n_rows(first, own_rows)
    if codes is None:  # a worker without rows
        nothing = missing_columns(0, schema.n_features)
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


def _check_n_rows(last: int, own_rows: range) -> None:
    """Raise ValueError where a pass over the rows of this process ends too early or too late."""
    if last != own_rows.stop:
        n_rows = last - own_rows.start
        raise batch_rows.changed_error(f"{n_rows:,} rows instead of {len(own_rows):,}")


def _join_changes(
    plan: core.StoragePlan, fitting: core.StoragePlan, workers: Workers | None
) -> core.StoragePlan:
    """Plan that fits the rows of all workers; the same one where none changed it."""
    if workers is None:
        return fitting
    changed = workers.gather(None if fitting is plan else fitting)
    if all(plan_of_worker is None for plan_of_worker in changed):
        return plan
    return core.join_plans(
        plan, [plan if plan_of_worker is None else plan_of_worker for plan_of_worker in changed]
    )


def shared_codes(own_codes: core.Codes, workers: Workers) -> core.SharedCodes:
    """Codes of all rows, of which each worker has its own."""
    parts = workers.gather((int(own_codes.n_rows), own_codes.has_missing))
    own_codes.add_missing(np.bitwise_or.reduce([missing for _, missing in parts]))
    sizes = [size for size, _ in parts]
    first, n_rows = sum(sizes[: workers.rank]), sum(sizes)
    return core.SharedCodes(own_codes, first, n_rows, workers.core, workers.n_votes)


# ---- target-encoded categories of rows that are known by their codes ----

_ROWS = 1 << 16  # that are decoded at once


@dataclass(frozen=True)
class SourceLevels(TargetEncodedTable):
    """Target-encoded categories in memory; other columns have no values.

    Attributes
    ----------
    workers : Workers or None
        Workers, each of which has the codes of its own rows; None: one process has all.
    """

    workers: Workers | None = None

    def held_out_codes(self, binned: Binned, fold: tuple[Index, Index], n_threads: int) -> AnyCodes:
        """Codes of held-out rows, their levels encoded from the training rows only.

        `fold` has the positions of the training rows and of the held-out rows, ascending.
        """
        trained, held_out = fold
        table = self.held_out(trained)
        encodings = {source.feature: table.columns.read(source.feature) for source in self.sources}
        values = _values_of_codes(binned)
        own_codes, first_row = binned.own_codes, 0
        if isinstance(binned.codes, core.SharedCodes):
            first_row = int(binned.codes.first_row)
            end = first_row + int(own_codes.n_rows)
            held_out = held_out[(held_out >= first_row) & (held_out < end)]
        sink = sink_like(own_codes, len(held_out), n_threads)
        for first in range(0, max(1, len(held_out)), _ROWS):
            rows = held_out[first : first + _ROWS]
            codes = own_codes.take((rows - first_row).astype(np.uint32), n_threads).to_numpy()
            columns = core.Columns(len(rows))
            for feature in range(codes.shape[1]):
                known = encodings.get(feature)
                columns.add(values[feature][codes[:, feature]] if known is None else known[rows])
            sink.append(binned.encode(Table(columns, self.schema), n_threads))
        all_codes = sink.finish()
        return all_codes if self.workers is None else shared_codes(all_codes, self.workers)


def _values_of_codes(binned: Binned) -> Sequence[Floats]:
    """A value of each bin of each feature: its upper edge, or the code of its level."""
    is_category = binned.codes.is_category.astype(bool).tolist() or [False] * len(binned.edges)
    return [
        np.append(np.arange(len(edges) + 1.0) if is_level else [*edges, np.inf], np.nan)
        for edges, is_level in zip(binned.edges, is_category, strict=True)
    ]
