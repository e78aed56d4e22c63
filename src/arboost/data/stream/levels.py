"""Target-encoded categories of a table whose other columns are known by their codes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import Binned
from arboost.data.stream.sinks import sink_like
from arboost.data.table import Table
from arboost.data.target_encoding import TargetEncodedTable

__all__ = ["StreamedLevels"]

_ROWS = 1 << 16  # that are decoded at once


@dataclass(frozen=True)
class StreamedLevels(TargetEncodedTable):
    """Target-encoded categories in memory; other columns have no values."""

    def held_out_codes(
        self, binned: Binned, fold: tuple[NDArray[np.uint32], NDArray[np.uint32]], n_threads: int
    ) -> core.Codes:
        """Return the codes of held-out rows, their levels encoded from the training rows only.

        `fold` has the positions of the training rows and of the held-out rows, ascending.
        """
        trained, held_out = fold
        table = self.held_out(trained)
        encodings = {one.feature: table.columns.read(one.feature) for one in self.sources}
        values = _values_of_codes(binned)
        sink = sink_like(binned.codes, len(held_out), n_threads)
        for first in range(0, len(held_out), _ROWS):
            rows = held_out[first : first + _ROWS]
            codes = binned.codes.take(rows, n_threads).to_numpy()
            columns = core.Columns(len(rows))
            for feature in range(codes.shape[1]):
                known = encodings.get(feature)
                columns.add(values[feature][codes[:, feature]] if known is None else known[rows])
            sink.append(binned.encode(Table(columns, self.schema), n_threads))
        return sink.finish()


def _values_of_codes(binned: Binned) -> Sequence[NDArray[np.float64]]:
    """Return a value of each bin of each feature: its upper edge, or the code of its level."""
    is_category = binned.codes.is_category.astype(bool).tolist() or [False] * len(binned.edges)
    return [
        np.append(np.arange(len(edges) + 1.0) if is_level else [*edges, np.inf], np.nan)
        for edges, is_level in zip(binned.edges, is_category, strict=True)
    ]
