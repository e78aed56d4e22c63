"""Source -> binned table with target and weights, by two passes in bounded memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import batch_rows
from arboost.data.batch_rows import BinningSpec, CodesSink, RowColumns, RowValues, SketchedTable
from arboost.data.bins import MOST_BINS, AnyCodes, Binned, GrowMemory, bin_for_purity
from arboost.data.cache import SourceCache
from arboost.data.feature_names import no_column_error, offset_names
from arboost.data.levels import Index
from arboost.data.memory import (
    FileSink,
    MemoryPlan,
    MemorySink,
    bytes_text,
    limit_bytes,
    scratch_folder,
    sink_like,
)
from arboost.data.passes import encode_batches, gather_rows, shared_codes, sketch_batches
from arboost.data.raw_table import missing_columns
from arboost.data.schema import Schema
from arboost.data.source import FileSource, is_iterable, open_source
from arboost.data.table import Table, ingest
from arboost.data.target import check_any_weight, encode_labels
from arboost.errors import ParameterError
from arboost.progress import Bar
from arboost.workers import Share, Workers, run_collective, warn_on_first_worker

if TYPE_CHECKING:
    from arboost.data.source import Batch, Source

_MEGA = 10**6


def bin_source(
    X: object,
    spec: BinningSpec,
    *,
    max_bins: int | str,
    memory_limit: object,
    columns: Sequence[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> tuple[SketchedTable, Binned]:
    """Binned rows of a source, and the result of the first pass.

    Parameters
    ----------
    X, columns, memory_limit, cache, verbose
        As `Dataset.from_files` takes them; X may be a `Share`, whose result is that of all rows,
        with the codes of each worker's own.
    spec : BinningSpec
    max_bins : int or "auto"
        For the tree method "hist". "auto" may read the source again, with a bin for each value.
    """
    X, workers = (X.X, X.workers) if isinstance(X, Share) else (X, None)
    if workers is not None and cache is not None:
        raise ParameterError(
            f"cache={os.fspath(cache)!r} is not allowed with a Share: bins of workers are not "
            "kept.",
            "Leave out cache.",
            parameter="cache",
        )
    limit = limit_bytes(memory_limit)
    open_sources = partial(_sources, X, spec.columns, columns, needs_y=spec.kind is not None)
    source, targets = run_collective(workers, open_sources)
    if spec.tree_method == "approx":
        max_bins = MOST_BINS
    visible = verbose > 0 and (workers is None or workers.rank == 0)
    progress = partial(_progress_bar, source, visible=visible)
    tables: list[SketchedTable] = []

    def binned(most: int) -> Binned:
        bin_spec = replace(spec, max_bins=most, workers=workers)
        entry = None if cache is None else SourceCache.of(cache, source, bin_spec)
        table, bins = bin_batches(source, bin_spec, limit, progress, entry, targets)
        tables.append(table)
        return replace(bins, max_bins=most)

    def truth() -> tuple[NDArray[Any] | None, Index | None]:
        values, choice = tables[0].rows, None if spec.edge_rows is None else spec.edge_rows.training
        if values.y is None or choice is None:
            return values.y, None
        return values.y, choice(values.y, values.groups)

    with warn_on_first_worker(workers):
        bins = bin_for_purity(binned, truth) if isinstance(max_bins, str) else binned(max_bins)
    return tables[0], bins


def _sources(
    X: object, rows: RowColumns, columns: Sequence[str] | None, *, needs_y: bool
) -> tuple[Source, Source | None]:
    """Source, and one of the columns of target, weights and groups alone, or None."""
    source = open_rows(X, rows, columns)
    if needs_y and rows.target is None and source.arrow_schema is not None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None. Pass the name of a column."
        )
    # Files give some columns without reading the others; a query would run again.
    has_files = isinstance(source, FileSource) and bool(rows.names)
    return source, open_rows(X, rows, rows.names) if has_files else None


def open_rows(X: object, rows: RowColumns, columns: Sequence[str] | None) -> Source:
    """Source of features, target and weights; raise ValueError for unknown names."""
    if columns is not None:
        columns = [*(name for name in columns if name not in rows.names), *rows.names]
    source = open_source(X, columns, scratch=scratch_folder())
    arguments = [("y", rows.target), ("weight", rows.weight), ("groups", rows.groups)]
    arguments += [("offset", name) for name in offset_names(rows.offset) or ()]
    for argument, name in arguments:
        if isinstance(name, str) and source.names is not None and name not in source.names:
            raise no_column_error(name, source.names, argument)
    return source


@contextmanager
def _progress_bar(
    source: Source, label: str, *, visible: bool
) -> Iterator[Callable[[Batch], None]]:
    """Give the function that shows a batch of a pass as done: rows, or bytes, and the speed."""
    started, total, by_bytes = monotonic(), source.n_rows or 0, False
    if source.n_rows is None and source.n_bytes:
        total, label, by_bytes = source.n_bytes // _MEGA, f"{label} MB", True
    with Bar(total, label, visible=visible and total > 0) as bar:

        def show(batch: Batch) -> None:
            done, seconds = batch.first_row + batch.n_rows, max(monotonic() - started, 1e-9)
            speed = {"M rows/s": round(done / _MEGA / seconds, 2)}
            if batch.bytes_read:
                speed["MB/s"] = float(round(batch.bytes_read / _MEGA / seconds))
            bar.show(batch.bytes_read // _MEGA if by_bytes else done, {"speed": speed})

        yield show


# Called with the label of a pass, it gives a function that takes each batch when it is done.
Progress = Callable[[str], AbstractContextManager[Callable[["Batch"], None]]]

_USUAL_FEATURES = 32  # of an iterable, whose batches are not divided
_MOST_BYTE_BINS = 255
_TWO_CLASSES = 2
_UNRELEASED = 24  # part of the limit; memory that is returned has to be cleared by the kernel
_IN_FLIGHT = 4  # batches of a reader, of which the memory plan knows


def bin_batches(
    source: Source,
    spec: BinningSpec,
    limit: int,
    progress: Progress,
    cache: SourceCache | None,
    targets: Source | None,
) -> tuple[SketchedTable, Binned]:
    """Binned rows of a source, and the result of the first pass.

    Parameters
    ----------
    source : Source
    spec : BinningSpec
    limit : int
        Bytes that the fit may use. The codes are the same for all limits.
    progress : callable
        Called with the label of each pass.
    cache : SourceCache or None
        Entry that is read, or written.
    targets : Source or None
        The same rows with the columns of target, weights and groups alone.
    """
    workers = spec.workers
    plan = run_collective(workers, partial(_memory_plan, source, spec, limit))
    with nullcontext() if cache is None else cache.locked():
        entry = None if cache is None else cache.read(spec.n_threads)
        if entry is None:
            batches = _CachedBatches(source, plan, progress)
            target_batches = None if targets is None else _CachedBatches(targets, plan, progress)
            share = None if workers is None else gather_rows(source, batches, spec, target_batches)
            if share is not None:
                batches.plan = replace(plan, other_rows=share.n_rows - len(share.own_rows))
            table = sketch_batches(batches, spec, source.n_rows, target_batches, share)
            plan = batches.plan
            own_rows = range(table.n_rows) if share is None else share.own_rows
            placement = run_collective(workers, partial(_place, plan, spec, table, len(own_rows)))
            binned = _encoded(batches, spec, table, placement, cache, own_rows)
            batches.clear()
        else:
            table, binned = entry
            placement = _place(plan, spec, table, table.n_rows)
    _release_memory()
    if binned.codes.is_stored and not placement.stored:
        binned = replace(binned, codes=binned.own_codes.take(None, spec.n_threads))
    if workers is not None:
        binned = replace(binned, codes=shared_codes(binned.own_codes, workers))
    return table, replace(binned, memory=placement.memory)


def _memory_plan(source: Source, spec: BinningSpec, limit: int) -> MemoryPlan:
    """Memory plan of a source; raise ValueError before any reading."""
    n_features = _USUAL_FEATURES
    if source.names is not None:
        n_features = max(1, len(source.names) - len(spec.columns.names))
    width = 1 if spec.max_bins <= _MOST_BYTE_BINS else 2
    plan = MemoryPlan(
        limit,
        n_features,
        width,
        source.row_bytes,
        tree_bytes=spec.tree_bytes,
        row_state=spec.row_state,
        reader=source.reader_bytes,
    )
    if source.n_rows is not None:
        _stores(plan, spec, plan.state(source.n_rows), source.n_rows)
    return plan


class _Placement(NamedTuple):
    """Place of the codes: whether in a file, its windows and size; bytes left for the trees."""

    stored: bool
    window_rows: int
    file_bytes: int
    memory: GrowMemory


def _place(plan: MemoryPlan, spec: BinningSpec, table: SketchedTable, n_own: int) -> _Placement:
    """Where the codes of `n_own` rows are stored; raise ValueError where the limit is too low.

    Target, weights and scores are those of all rows.
    """
    plan = replace(plan, n_features=table.schema.n_features)
    row_bytes, n_outputs = _row_bytes(table), 1
    if table.rows.y is not None and spec.kind == "classifier":
        n_classes = len(encode_labels(table.rows.y)[0])
        n_outputs = 1 if n_classes <= _TWO_CLASSES else n_classes
    state = plan.state(n_own, n_outputs=n_outputs, row_bytes=row_bytes)
    stored = _stores(plan, spec, state, n_own, row_bytes) and n_own > 0
    memory = GrowMemory(
        plan.histograms(state, n_own, stored=stored),
        plan.samples(state, n_own) if stored else 0,
        holds_all=plan.in_memory(state, n_own) + plan.codes(table.n_rows) <= plan.limit,
    )
    return _Placement(stored, plan.block_rows, plan.file(n_own), memory)


def _encoded(
    batches: _CachedBatches,
    spec: BinningSpec,
    table: SketchedTable,
    placement: _Placement,
    cache: SourceCache | None,
    own_rows: range,
) -> Binned:
    """Binned rows of this process, in their place or in the cache."""
    sinks: Callable[[], CodesSink] = partial(MemorySink, len(own_rows), spec.n_threads)
    if cache is not None:
        sinks = partial(cache.writer, placement.window_rows, len(own_rows), placement.file_bytes)
    elif placement.stored:
        sinks = partial(FileSink, len(own_rows), placement.window_rows, placement.file_bytes)
    try:
        binned = encode_batches(batches, spec, table, sinks, own_rows)
    except BaseException:
        if cache is not None:
            cache.discard()
        raise
    if cache is not None:
        cache.write(table, binned.own_codes)
    return binned


def _stores(
    plan: MemoryPlan, spec: BinningSpec, state: int, n_rows: int, row_bytes: int = 8
) -> bool:
    """Whether codes have to be in a file; raise ValueError for a fit that needs them in memory."""
    if not plan.stores(state, n_rows, row_bytes):
        return False
    if spec.needs_memory:
        needed = bytes_text(plan.in_memory(state, n_rows))
        raise ValueError(
            f"{spec.needs_memory} needs the bins of all rows in memory, but those of {n_rows:,} "
            f"rows take more than memory_limit={bytes_text(plan.limit)!r} leaves. Raise "
            f"memory_limit to {needed!r}, or change that parameter."
        )
    return True


def _row_bytes(table: SketchedTable) -> int:
    """Bytes of a row's target and weight; labels become float64 in the fit."""
    y, weight, groups, offset = table.rows
    total = 0 if weight is None else 8
    if y is not None:
        total += 8 if y.dtype == np.float64 else 8 + y.dtype.itemsize
    if groups is not None:
        total += groups.dtype.itemsize
    if offset is not None:
        total += 8 * offset.shape[1]
    if table.encoded_table is not None:  # level codes, target, encoding
        total += 20 * len(table.encoded_table.sources)
    return total


def _release_memory() -> None:
    """Have PyArrow return the memory of batches that are done to the system."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()


class _CachedBatches:
    """Batches of a source, kept in memory from the first pass on while all of them fit.

    Batches of a user's iterable are not kept: it may use one array for all of them. `plan` is the
    memory plan; it learns what is measured: the largest batch, the memory of the reader, levels.
    """

    def __init__(self, source: Source, plan: MemoryPlan, progress: Progress) -> None:
        self._source, self.plan, self._progress = source, plan, progress
        self._kept: list[Batch] | None = None if source.arrow_schema is None else []
        self._kept_bytes = self._n_read = 0
        self._is_complete = False

    def clear(self) -> None:
        """Keep no batch any longer."""
        self._kept = None

    def __call__(self, label: str) -> Iterator[Batch]:
        """Yield the batches from the first on."""
        with self._progress(label) as show:
            if self._is_complete and self._kept is not None:
                batches = iter(self._kept)
            else:
                batches = self._source.batches(self.plan.batch_rows)
            before, unreleased = _arrow_bytes(), 0
            for batch in batches:
                size = self._measure(batch, before)
                yield batch
                show(batch)
                del batch
                unreleased += size
                if unreleased >= self.plan.limit // _UNRELEASED:
                    _release_memory()
                    unreleased = 0
            _release_memory()
        self._is_complete = True

    def note_levels(self, n_bytes: int, n_encoded: int) -> None:
        """Take note of levels so far; raise ValueError where they take more than the limit."""
        self.plan = replace(self.plan, levels=n_bytes, n_encoded=n_encoded)
        self._check()

    def _measure(self, batch: Batch, before: int) -> int:
        """Take note of the size of a batch, and return it; keep the batch where it fits."""
        if self._source.arrow_schema is None or self._is_complete:
            return 0
        size = int(batch.table.nbytes)
        largest = max(size, self.plan.largest_batch)
        held = _arrow_bytes() - before - self._kept_bytes - _IN_FLIGHT * largest
        self.plan = replace(self.plan, largest_batch=largest, reader=max(self.plan.reader, held))
        self._n_read = batch.first_row + batch.n_rows
        if self._kept is not None:
            self._kept.append(batch)
            self._kept_bytes += size
        self._check()
        return size

    def _check(self) -> None:
        if self._source.arrow_schema is None:
            return
        n_rows = max(self._source.n_rows or 0, self._n_read)
        if self._kept is not None and self._n_read:
            # Keeping a part of the batches until the limit would only raise the peak.
            all_bytes = self._kept_bytes * n_rows // self._n_read
            if not self.plan.keeps(all_bytes, n_rows):
                self._kept, self._kept_bytes = None, 0
        self.plan.check_passes(n_rows, self._n_read)


def _arrow_bytes() -> int:
    """Bytes that PyArrow has allocated."""
    pyarrow = sys.modules.get("pyarrow")
    return 0 if pyarrow is None else int(pyarrow.total_allocated_bytes())


@dataclass(frozen=True)
class SourceTable(Table):
    """Rows of nonzero weight of a source; `values` has none of their columns.

    Attributes
    ----------
    source : Source
    rows : RowColumns
        Target and weights.
    y : array of shape (n_rows,), or None
    own_rows : range
        Positions of the rows of the source among all rows, where workers have a source each.
    workers : Workers or None
        None: the source has all rows.
    """

    source: Source = field(kw_only=True)
    rows: RowColumns = field(kw_only=True)
    y: NDArray[Any] | None = field(kw_only=True)
    own_rows: range = field(kw_only=True)
    workers: Workers | None = field(kw_only=True, default=None)

    def encode(self, binned: Binned, n_threads: int) -> AnyCodes:
        """Codes of all rows by the edges of a training table, in the same place."""
        with warn_on_first_worker(self.workers):
            codes = run_collective(self.workers, partial(self._encode_own, binned, n_threads))
        return codes if self.workers is None else shared_codes(codes, self.workers)

    def _encode_own(self, binned: Binned, n_threads: int) -> core.Codes:
        plan, first = MemoryPlan(1 << 30, self.schema.n_features), self.own_rows.start
        sink = sink_like(binned.own_codes, len(self.own_rows), n_threads)
        for batch in self.source.batches(plan.batch_rows):
            with batch_rows.batch_errors(batch):
                rows = self.rows.rows(batch)
                rows.check_same(self.y, first, self.own_rows)
                codes = binned.encode(ingest(rows.X, self.schema), n_threads, rows.kept)
            sink.append(codes)
            first += rows.n_rows
        if first == self.own_rows.start and self.workers is not None:  # a worker without rows
            sink.append(
                binned.encode(
                    Table(missing_columns(0, self.schema.n_features), self.schema), n_threads
                )
            )
        return sink.finish()


def read_evaluation(X: object, rows: RowColumns, schema: Schema) -> tuple[SourceTable, RowValues]:
    """An evaluation set as a table of a schema, and its target, weights, groups and offset.

    X may be a `Share`.
    """
    X, workers = (X.X, X.workers) if isinstance(X, Share) else (X, None)
    with warn_on_first_worker(workers):
        values, n_own, source = run_collective(workers, partial(_own_rows, X, rows, schema))
    first, n_rows = 0, n_own
    if workers is not None:
        parts = workers.gather((values, n_own))
        sizes = [size for _, size in parts]
        first, n_rows = sum(sizes[: workers.rank]), sum(sizes)
        values = batch_rows.joined_values(
            (values_of_worker for values_of_worker, _ in parts), n_rows
        )
    check_any_weight(values.weight)
    table = SourceTable(
        core.Columns(n_rows),
        schema,
        source=source,
        rows=rows,
        y=values.y,
        own_rows=range(first, first + n_own),
        workers=workers,
    )
    return table, values


def _own_rows(X: object, rows: RowColumns, schema: Schema) -> tuple[RowValues, int, Source]:
    """Target and weights of a source, the number of its rows, and the source."""
    gathered = batch_rows.GatheredRows.of(
        _opened(X, rows, rows.names or None).batches(1 << 18), rows
    )
    rows.check_lengths(gathered.n_read)
    return gathered.values, gathered.n_rows, _opened(X, rows, schema.columns)


def _opened(X: object, rows: RowColumns, columns: Sequence[str] | None) -> Source:
    """Source with some columns; an iterable selects its own."""
    return open_rows(X, rows, None if is_iterable(X) else columns)
