"""Target-encoded categories of a table whose other columns are known by their codes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import AnyCodes, Binned
from arboost.data.schema import Schema
from arboost.data.stream.shares import shared_codes
from arboost.data.stream.sinks import sink_like
from arboost.data.table import Table
from arboost.data.target_encoding import TargetEncodedTable
from arboost.workers import Workers

__all__ = ["StreamedLevels", "empty_columns", "encoded_values", "value_column"]

Floats = NDArray[np.float64]

_ROWS = 1 << 16  # that are decoded at once


@dataclass(frozen=True)
class StreamedLevels(TargetEncodedTable):
    """Target-encoded categories in memory; other columns have no values.

    Attributes
    ----------
    workers : Workers or None
        Workers, each of which has the codes of its own rows; None: one process has all.
    """

    workers: Workers | None = None

    def held_out_codes(
        self, binned: Binned, fold: tuple[NDArray[np.uint32], NDArray[np.uint32]], n_threads: int
    ) -> AnyCodes:
        """Return the codes of held-out rows, their levels encoded from the training rows only.

        `fold` has the positions of the training rows and of the held-out rows, ascending.
        """
        trained, held_out = fold
        table = self.held_out(trained)
        encodings = {one.feature: table.columns.read(one.feature) for one in self.sources}
        values = _values_of_codes(binned)
        own, first_row = binned.own_codes, 0
        if isinstance(binned.codes, core.SharedCodes):
            first_row = int(binned.codes.first_row)
            end = first_row + int(own.n_rows)
            held_out = held_out[(held_out >= first_row) & (held_out < end)]
        sink = sink_like(own, len(held_out), n_threads)
        for first in range(0, max(1, len(held_out)), _ROWS):
            rows = held_out[first : first + _ROWS]
            codes = own.take((rows - first_row).astype(np.uint32), n_threads).to_numpy()
            columns = core.Columns(len(rows))
            for feature in range(codes.shape[1]):
                known = encodings.get(feature)
                columns.add(values[feature][codes[:, feature]] if known is None else known[rows])
            sink.append(binned.encode(Table(columns, self.schema), n_threads))
        found = sink.finish()
        return found if self.workers is None else shared_codes(found, self.workers)


def encoded_values(table: TargetEncodedTable | None) -> dict[int, Floats]:
    """Return the values of the target-encoded categories."""
    if table is None:
        return {}
    return {one.feature: table.columns.read(one.feature) for one in table.sources}


def empty_columns(schema: Schema) -> core.Columns:
    """Return the columns of no rows: those of a worker without any."""
    columns = core.Columns(0)
    for _ in range(schema.n_features):
        columns.add_missing()
    return columns


def value_column(
    n_rows: int, values: Floats, kept: NDArray[np.uint32] | None = None
) -> core.Columns:
    """Return values of all rows, or of the kept ones, as a column."""
    if kept is not None:
        of_all = np.full(n_rows, np.nan)
        of_all[kept] = values
        values = of_all
    column = core.Columns(n_rows)
    column.add(values)
    return column


def _values_of_codes(binned: Binned) -> Sequence[NDArray[np.float64]]:
    """Return a value of each bin of each feature: its upper edge, or the code of its level."""
    is_category = binned.codes.is_category.astype(bool).tolist() or [False] * len(binned.edges)
    return [
        np.append(np.arange(len(edges) + 1.0) if is_level else [*edges, np.inf], np.nan)
        for edges, is_level in zip(binned.edges, is_category, strict=True)
    ]
