"""Rows of workers, each with a source: schema, edges and plan are those of all rows at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.batch_columns import ColumnHeader
from arboost.data.batch_rows import Batches, BinningSpec, GatheredRows, batch_errors
from arboost.data.bins import AnyCodes, Binned
from arboost.data.levels import Floats, Index
from arboost.data.memory import sink_like
from arboost.data.raw_table import number_column
from arboost.data.schema import Schema
from arboost.data.table import Table, read_columns
from arboost.data.target_encoding import TargetEncodedTable
from arboost.workers import Workers, even_ranges, run_collective

if TYPE_CHECKING:
    from arboost.data.source import Source


@dataclass(frozen=True)
class ShareRows:
    """Rows of nonzero weight: those of this worker, and target and weights of all.

    Attributes
    ----------
    gathered : GatheredRows
        Of all rows.
    first, n_own, n_rows : int
        Position of the first own row, number of own rows and of all rows.
    header : ColumnHeader
        Columns of the first batch of all.
    """

    gathered: GatheredRows
    first: int
    n_own: int
    n_rows: int
    header: ColumnHeader

    @property
    def own(self) -> range:
        """Positions of the own rows among all."""
        return range(self.first, self.first + self.n_own)


class _OwnRows(NamedTuple):
    """Rows of one worker: target and weights, header, numbers of rows kept and read."""

    arrays: dict[str, NDArray[Any]]
    header: ColumnHeader | None
    n_kept: int
    n_read: int


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
    own_rows = run_collective(spec.workers, partial(_own_rows, source, batches, spec, targets))
    parts: list[_OwnRows] = spec.workers.gather(own_rows)
    header = next((part.header for part in parts if part.n_read and part.header is not None), None)
    if header is None:
        raise ValueError("X has no rows. Pass at least one row to train on.")
    n_rows = sum(part.n_kept for part in parts)
    first = sum(part.n_kept for part in parts[: spec.workers.rank])
    gathered = GatheredRows.joined([part.arrays for part in parts], n_rows)
    return ShareRows(gathered, first, own_rows.n_kept, n_rows, header)


def _own_rows(
    source: Source, batches: Batches, spec: BinningSpec, targets: Batches | None
) -> _OwnRows:
    header = _arrow_header(source, spec)
    if source.n_rows is not None and spec.columns.is_empty:
        return _OwnRows({}, header, source.n_rows, source.n_rows)
    gathered, n_kept, n_read = GatheredRows(source.n_rows), 0, 0
    for batch in (targets or batches)("reading y"):
        with batch_errors(batch):
            rows = spec.columns.rows(batch)
            header = header or ColumnHeader.of(read_columns(rows.X))
        gathered.add(rows)
        n_kept += rows.n_rows(batch)
        n_read += batch.n_rows
    spec.columns.check_lengths(n_read)
    return _OwnRows(gathered.arrays, header, n_kept, n_read)


def _arrow_header(source: Source, spec: BinningSpec) -> ColumnHeader | None:
    """Columns of a source that knows them before its first batch."""
    if source.arrow_schema is None:
        return None
    names = [name for name in source.arrow_schema.names if name not in spec.columns.names]
    table = source.arrow_schema.empty_table().select(names)
    return ColumnHeader.of(read_columns(table))


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


def shared_edges(
    sketch: core.TableSketch,
    weight: Floats | None,
    is_level: Sequence[bool],
    spec: BinningSpec,
    n_rows: int,
) -> list[Floats]:
    """Edges of the columns of numbers, none for those of levels.

    Parameters
    ----------
    sketch : core.TableSketch
        Of this worker's rows.
    weight : float64 array of shape (n_rows,), or None
        Of the rows of all workers.
    is_level : sequence of bool
    spec : BinningSpec
    n_rows : int
        Number of rows that edges come from, of all workers.
    """
    workers = spec.workers
    assert workers is not None
    numbers = [column for column, is_one in enumerate(is_level) if not is_one]
    columns = [[numbers[k] for k in part] for part in even_ranges(len(numbers), workers.size)]
    parts = workers.exchange([_SampledColumns.of(sketch, one) for one in columns])
    places = np.concatenate([part.places for part in parts])
    sample = core.Columns(len(places))
    distinct = []
    for k in range(len(columns[workers.rank])):
        sample.add(np.concatenate([part.values[k] for part in parts]))
        distinct.append(_joined_values([part.distinct[k] for part in parts], spec.max_bins))
    own_edges = core.sketch_edges(
        sample, places, n_rows, weight, distinct, spec.max_bins, spec.n_threads
    )
    edges = [np.empty(0)] * len(is_level)
    for indices, edges_of_worker in zip(columns, workers.gather(own_edges), strict=True):
        for column, column_edges in zip(indices, edges_of_worker, strict=True):
            edges[column] = column_edges
    return edges


def _joined_values(parts: Sequence[Floats | None], most: int) -> Floats | None:
    """Distinct values of all workers, None where they are too many."""
    known = [part for part in parts if part is not None]
    values = np.unique(np.concatenate(known)) if known else np.empty(0)
    return values if len(known) == len(parts) and len(values) <= most else None


def shared_sample(sketch: core.TableSketch, workers: Workers) -> tuple[core.Columns, Index]:
    """Sampled rows of all workers, and their positions among all rows."""
    columns = range(len(sketch.has_missing))
    parts = workers.gather(_SampledColumns.of(sketch, columns))
    places = np.concatenate([part.places for part in parts])
    sample = core.Columns(len(places))
    for column in columns:
        sample.add(np.concatenate([part.values[column] for part in parts]))
    return sample, places


def shared_plan(
    sketch: core.TableSketch,
    edges: Sequence[Floats],
    encodings: Mapping[int, Floats],
    spec: BinningSpec,
    *,
    n_rows: int,
    categorical: Sequence[bool],
) -> core.StoragePlan:
    """Storage plan of all rows: the first worker makes it.

    Parameters
    ----------
    sketch : core.TableSketch
        Of this worker's rows.
    edges : sequence of float64 arrays
    encodings : mapping of int to float64 array
        Target-encoded categories of the rows that edges come from, of all workers.
    spec : BinningSpec
    n_rows : int
        Number of all rows.
    categorical : sequence of bool
    """
    workers = spec.workers
    assert workers is not None
    places = sketch.places
    shared = workers.gather((len(places), sketch.has_missing))
    has_missing = np.any([missing for _, missing in shared], axis=0)
    for feature, encoded in encodings.items():
        has_missing[feature] = np.isnan(encoded).any()
    sizes = [size for size, _ in shared]
    first = sum(sizes[: workers.rank])
    rows = core.plan_rows(sum(sizes), spec.n_threads).astype(np.int64) - first
    own_rows = rows[(rows >= 0) & (rows < len(places))]
    features = core.shareable(list(edges), n_rows, spec.bundling)
    values = [
        encodings[feature][places[own_rows]]
        if feature in encodings
        else sketch.values(feature)[own_rows]
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
            n_rows,
            has_missing.tolist(),
            list(edges),
            spec.n_threads,
            list(categorical),
            spec.bundling,
            is_chosen=True,
        )
    joined: core.StoragePlan = workers.broadcast(plan)
    return joined


def join_changes(
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


def encoded_values(table: TargetEncodedTable | None) -> dict[int, Floats]:
    """Values of the target-encoded categories."""
    if table is None:
        return {}
    return {source.feature: table.columns.read(source.feature) for source in table.sources}


def empty_columns(schema: Schema) -> core.Columns:
    """Columns of no rows: those of a worker without any."""
    columns = core.Columns(0)
    for _ in range(schema.n_features):
        columns.add_missing()
    return columns


def value_column(n_rows: int, values: Floats, kept_rows: Index | None) -> core.Columns:
    """Column of the values of the kept rows, NaN in all others; None: all rows are kept."""
    if kept_rows is None:
        return number_column(values)
    of_all = np.full(n_rows, np.nan)
    of_all[kept_rows] = values
    return number_column(of_all)


def _values_of_codes(binned: Binned) -> Sequence[Floats]:
    """A value of each bin of each feature: its upper edge, or the code of its level."""
    is_category = binned.codes.is_category.astype(bool).tolist() or [False] * len(binned.edges)
    return [
        np.append(np.arange(len(edges) + 1.0) if is_level else [*edges, np.inf], np.nan)
        for edges, is_level in zip(binned.edges, is_category, strict=True)
    ]
