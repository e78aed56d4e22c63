"""Source -> binned table with target and weights, by two passes in bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from arboost.data.bins import Binned, GrowMemory
from arboost.data.stream.encode import encode_batches
from arboost.data.stream.memory import MemoryPlan, shown_bytes
from arboost.data.stream.passes import sketch_batches
from arboost.data.stream.records import CodesSink, SketchedTable, StreamSpec
from arboost.data.stream.shares import gather_rows, shared_codes
from arboost.data.stream.sinks import FileSink, MemorySink
from arboost.data.target import encode_labels
from arboost.workers import together

if TYPE_CHECKING:
    from arboost.data.stream.cache import SourceCache
    from arboost.sources.source import Batch, Source

__all__ = ["Progress", "read_source"]

# Called with the label of a pass, it gives a function that takes each batch when it is done.
Progress = Callable[[str], AbstractContextManager[Callable[["Batch"], None]]]

_USUAL_FEATURES = 32  # of an iterable, whose batches are not divided
_MOST_BYTE_BINS = 255
_TWO_CLASSES = 2
_UNRELEASED = 24  # part of the limit; memory that is returned has to be cleared by the kernel
_IN_FLIGHT = 4  # batches of a reader, of which the memory plan knows


def _silent(label: str) -> AbstractContextManager[Callable[[Batch], None]]:
    return nullcontext(lambda batch: None)


def read_source(
    source: Source,
    spec: StreamSpec,
    limit: int,
    progress: Progress = _silent,
    cache: SourceCache | None = None,
    targets: Source | None = None,
) -> tuple[SketchedTable, Binned]:
    """Return the binned rows of a source, and the result of the first pass.

    Parameters
    ----------
    source : Source
    spec : StreamSpec
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
    plan = together(workers, partial(_memory_plan, source, spec, limit))
    with nullcontext() if cache is None else cache.locked():
        found = None if cache is None else cache.read(spec.n_threads)
        if found is None:
            batches = _KeptBatches(source, plan, progress)
            of_y = None if targets is None else _KeptBatches(targets, plan, progress)
            share = None if workers is None else gather_rows(source, batches, spec, of_y)
            if share is not None:
                plan = batches.plan = replace(plan, other_rows=share.n_rows - share.n_own)
            table = sketch_batches(batches, spec, source.n_rows, of_y, share)
            plan = batches.plan
            own = range(table.n_rows) if share is None else share.own
            place = together(workers, partial(_place, plan, spec, table, len(own)))
            binned = _encoded(batches, spec, table, place, cache, own)
            batches.clear()
        else:
            table, binned = found
            place = _place(plan, spec, table, table.n_rows)
    _release_memory()
    if binned.codes.is_stored and not place.stored:
        binned = replace(binned, codes=binned.own_codes.take(None, spec.n_threads))
    if workers is not None:
        binned = replace(binned, codes=shared_codes(binned.own_codes, workers))
    return table, replace(binned, memory=place.memory)


def _memory_plan(source: Source, spec: StreamSpec, limit: int) -> MemoryPlan:
    """Return the memory plan of a source; raise ValueError before any reading."""
    n_features = _USUAL_FEATURES
    if source.names is not None:
        n_features = max(1, len(source.names) - len(spec.columns.names))
    width = 1 if spec.max_bins <= _MOST_BYTE_BINS else 2
    plan = MemoryPlan(
        limit,
        n_features,
        width,
        source.row_bytes,
        cell_bytes=spec.tree_bytes[0],
        column_bytes=spec.tree_bytes[1],
        row_state=spec.row_state,
        reader=source.reader_bytes,
    )
    if source.n_rows is not None:
        _stores(plan, spec, plan.state(source.n_rows), source.n_rows)
    return plan


class _Place(NamedTuple):
    """Place of the codes: whether in a file, its windows and size; bytes left for the trees."""

    stored: bool
    window_rows: int
    file_bytes: int
    memory: GrowMemory


def _place(plan: MemoryPlan, spec: StreamSpec, table: SketchedTable, n_own: int) -> _Place:
    """Return the place of the codes of so many rows; raise ValueError where the limit is too low.

    Target, weights and scores are those of all rows.
    """
    plan = replace(plan, n_features=table.schema.n_features)
    row_bytes = _row_bytes(table)
    state = plan.state(n_own, n_outputs=_n_outputs(table, spec.kind), row_bytes=row_bytes)
    stored = _stores(plan, spec, state, n_own, row_bytes) and n_own > 0
    memory = GrowMemory(
        plan.histograms(state, n_own, stored=stored),
        plan.samples(state, n_own) if stored else 0,
        holds_all=plan.in_memory(state, n_own) + plan.codes(table.n_rows) <= plan.limit,
    )
    return _Place(stored, plan.block_rows, plan.file(n_own), memory)


def _encoded(
    batches: _KeptBatches,
    spec: StreamSpec,
    table: SketchedTable,
    place: _Place,
    cache: SourceCache | None,
    own: range,
) -> Binned:
    """Return the binned rows of this process, in their place or in the cache."""
    sinks: Callable[[], CodesSink] = partial(MemorySink, len(own), spec.n_threads)
    if cache is not None:
        sinks = partial(cache.writer, place.window_rows, len(own), place.file_bytes)
    elif place.stored:
        sinks = partial(FileSink, len(own), place.window_rows, place.file_bytes)
    try:
        binned = encode_batches(batches, spec, table, sinks, own)
    except BaseException:
        if cache is not None:
            cache.discard()
        raise
    if cache is not None:
        cache.write(table, binned.own_codes)
    return binned


def _stores(
    plan: MemoryPlan, spec: StreamSpec, state: int, n_rows: int, row_bytes: int = 8
) -> bool:
    """Whether codes have to be in a file; raise ValueError for a fit that needs them in memory."""
    if not plan.stores(state, n_rows, row_bytes):
        return False
    if spec.needs_memory:
        needed = shown_bytes(plan.in_memory(state, n_rows))
        raise ValueError(
            f"{spec.needs_memory} needs the bins of all rows in memory, but those of {n_rows:,} "
            f"rows take more than memory_limit={shown_bytes(plan.limit)!r} leaves. Raise "
            f"memory_limit to {needed!r}, or change that parameter."
        )
    return True


def _row_bytes(table: SketchedTable) -> int:
    """Return the bytes of a row's target and weight; labels become float64 in the fit."""
    total = 0 if table.weight is None else 8
    if table.y is not None:
        total += 8 if table.y.dtype == np.float64 else 8 + table.y.dtype.itemsize
    if table.groups is not None:
        total += table.groups.dtype.itemsize
    if table.offset is not None:
        total += 8 * table.offset.shape[1]
    if table.encoded_table is not None:  # level codes, target, encoding
        total += 20 * len(table.encoded_table.sources)
    return total


def _n_outputs(table: SketchedTable, kind: str | None) -> int:
    if table.y is None or kind != "classifier":
        return 1
    n_classes = len(encode_labels(table.y)[0])
    return 1 if n_classes <= _TWO_CLASSES else n_classes


def _release_memory() -> None:
    """Have PyArrow return the memory of batches that are done to the system."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()


class _KeptBatches:
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
                if self._kept is None and unreleased >= self.plan.limit // _UNRELEASED:
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
        if self._kept is not None and not self.plan.keeps(self._kept_bytes, n_rows):
            self._kept, self._kept_bytes = None, 0
        self.plan.check_passes(n_rows, self._n_read)


def _arrow_bytes() -> int:
    """Return the bytes that PyArrow has allocated."""
    pyarrow = sys.modules.get("pyarrow")
    return 0 if pyarrow is None else int(pyarrow.total_allocated_bytes())
