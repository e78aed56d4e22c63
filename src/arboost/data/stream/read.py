"""Source -> binned table with target and weights, by two passes in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from arboost.backend import core
from arboost.data.bins import Binned
from arboost.data.stream.passes import (
    SketchedTable,
    StreamSpec,
    encode_batches,
    sketch_batches,
)

if TYPE_CHECKING:
    from arboost.sources.source import Batch, Source

__all__ = ["read_source"]


def read_source(source: Source, spec: StreamSpec) -> tuple[SketchedTable, Binned]:
    """Return the binned rows of a source, and the result of the first pass."""
    batch_rows = 1 << 16

    def batches(label: str) -> Iterator[Batch]:
        return source.batches(batch_rows)

    table = sketch_batches(batches, spec, source.n_rows)
    binned = encode_batches(batches, spec, table, lambda: _MemorySink(table.n_rows, spec.n_threads))
    return table, binned


class _MemorySink:
    """Codes in memory."""

    def __init__(self, n_rows: int, n_threads: int) -> None:
        self._parts, self._n_threads = core.CodesParts(n_rows), n_threads

    def append(self, codes: core.Codes) -> None:
        """Add the codes of the next rows."""
        self._parts.append(codes, self._n_threads)

    def finish(self) -> core.Codes:
        """Return the codes of all rows."""
        return self._parts.finish()
