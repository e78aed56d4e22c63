"""Arguments of users -> source, specification and memory limit -> binned table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.bins import MOST_BINS, Binned, bin_for_purity
from arboost.data.feature_names import offset_names
from arboost.data.messages import no_column_message
from arboost.data.stream.cache import SourceCache
from arboost.data.stream.memory import BOOSTING_STATE, RowState, limit_bytes
from arboost.data.stream.read import read_source
from arboost.data.stream.records import SketchedTable, StreamSpec
from arboost.data.stream.rows import EdgeRows, RowColumns
from arboost.data.stream.sinks import scratch_folder
from arboost.data.table import ColumnOptions
from arboost.params.auto import AUTO
from arboost.params.records import USUAL_BINS
from arboost.progress import Bar
from arboost.sources.file_source import FileSource
from arboost.sources.opening import open_source
from arboost.workers import Share, first_warns, together

if TYPE_CHECKING:
    from arboost.sources.source import Batch, Source

__all__ = ["open_rows", "read_table"]

_MEGA = 10**6


def read_table(
    X: object,
    rows: RowColumns,
    *,
    columns: Sequence[str] | None = None,
    options: ColumnOptions,
    max_bins: int | str,
    tree_method: str = "hist",
    tree_bytes: tuple[int, int] = (0, 0),
    bundling: bool,
    n_threads: int,
    memory_limit: object,
    cache: str | os.PathLike[str] | None = None,
    kind: str | None = None,
    edge_rows: EdgeRows | None = None,
    needs_memory: str = "",
    row_state: RowState = BOOSTING_STATE,
    verbose: int = 0,
) -> tuple[SketchedTable, Binned]:
    """Return the binned rows of a source, and the result of the first pass.

    Parameters
    ----------
    X, columns, memory_limit, cache, verbose
        As `Dataset.from_files` takes them; X may be a `Share`, whose result is that of all rows,
        with the codes of each worker's own.
    rows : RowColumns
        Target, weights, groups and offset.
    max_bins : int or "auto"
        For the tree method "hist". "auto" may read the source again, with a bin for each value.
    options, tree_method, bundling, kind, edge_rows, needs_memory, row_state, n_threads, ...
        As `StreamSpec` has them.
    """
    X, workers = (X.X, X.workers) if isinstance(X, Share) else (X, None)
    if workers is not None and cache is not None:
        raise ValueError(
            f"cache={os.fspath(cache)!r} is not allowed with a Share: bins of workers are not "
            "kept. Leave out cache."
        )
    limit = limit_bytes(memory_limit)
    open_sources = partial(_sources, X, rows, columns, needs_y=kind is not None)
    source, targets = together(workers, open_sources)
    max_bins = MOST_BINS if tree_method == "approx" else max_bins
    spec = StreamSpec(
        columns=rows,
        options=options,
        max_bins=USUAL_BINS if isinstance(max_bins, str) else max_bins,
        tree_method=tree_method,
        tree_bytes=tree_bytes,
        bundling=bundling,
        kind=kind,
        edge_rows=edge_rows,
        needs_memory=needs_memory,
        row_state=row_state,
        n_threads=n_threads,
        workers=workers,
    )
    bars = _Bars(source, visible=verbose > 0 and (workers is None or workers.rank == 0))
    tables: list[SketchedTable] = []

    def binned(most: int) -> Binned:
        of_bins = replace(spec, max_bins=most)
        entry = None if cache is None else SourceCache.of(cache, source, of_bins)
        table, found = read_source(source, of_bins, limit, bars, entry, targets)
        tables.append(table)
        return replace(found, max_bins=most)

    def truth() -> tuple[NDArray[Any] | None, NDArray[np.uint32] | None]:
        y, choice = tables[0].y, None if edge_rows is None else edge_rows.training
        return y, None if y is None or choice is None else choice(y, tables[0].groups)

    with first_warns(workers):
        found = bin_for_purity(binned, truth) if max_bins == AUTO else binned(spec.max_bins)
    return tables[0], found


def _sources(
    X: object, rows: RowColumns, columns: Sequence[str] | None, *, needs_y: bool
) -> tuple[Source, Source | None]:
    """Return the source, and one of the columns of target, weights and groups alone, or None."""
    source = open_rows(X, rows, columns)
    if needs_y and rows.target is None and source.arrow_schema is not None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None. Pass the name of a column."
        )
    # Files give some columns without reading the others; a query would run again.
    has_files = isinstance(source, FileSource) and bool(rows.names)
    return source, open_rows(X, rows, rows.names) if has_files else None


def open_rows(X: object, rows: RowColumns, columns: Sequence[str] | None) -> Source:
    """Return the source of features, target and weights; raise ValueError for unknown names."""
    if columns is not None:
        columns = [*(name for name in columns if name not in rows.names), *rows.names]
    source = open_source(X, columns, scratch=scratch_folder())
    given: list[tuple[str, object]]
    given = [("y", rows.target), ("weight", rows.weight), ("groups", rows.group)]
    for argument, name in (*given, *(("offset", one) for one in offset_names(rows.offset) or ())):
        if isinstance(name, str) and source.names is not None and name not in source.names:
            raise ValueError(no_column_message(name, source.names, argument))
    return source


class _Bars:
    """Progress bars of the passes over a source: rows, or bytes, with those of a second."""

    def __init__(self, source: Source, *, visible: bool) -> None:
        self._source, self._visible = source, visible

    @contextmanager
    def __call__(self, label: str) -> Iterator[Callable[[Batch], None]]:
        """Give the function that shows a batch as done."""
        n_rows, n_bytes, started = self._source.n_rows, self._source.n_bytes, monotonic()
        total, by_bytes = n_rows or 0, n_rows is None and bool(n_bytes)
        if by_bytes and n_bytes is not None:
            total, label = n_bytes // _MEGA, f"{label} MB"
        with Bar(total, label, visible=self._visible and total > 0) as bar:

            def show(batch: Batch) -> None:
                done, seconds = batch.first_row + batch.n_rows, max(monotonic() - started, 1e-9)
                speed = {"M rows/s": round(done / _MEGA / seconds, 2)}
                if batch.bytes_read:
                    speed["MB/s"] = float(round(batch.bytes_read / _MEGA / seconds))
                bar.show(batch.bytes_read // _MEGA if by_bytes else done, {"speed": speed})

            yield show
