"""Table -> edges -> codes: the only form in which training sees the features.

Code of x = number of edges strictly below x, so that ``x <= edges[b]`` exactly where code <= b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core, threads
from arboost.ingest import Schema, Table, ingest, target
from arboost.ingest import weights as checked_weights
from arboost.params import PARAMS

__all__ = ["Binned", "Dataset", "bin_table"]


@dataclass(frozen=True)
class Binned:
    """Codes of a table, the edges they were made with, and the schema of its columns."""

    codes: core.Codes
    edges: tuple[NDArray[np.float64], ...]
    schema: Schema


def bin_table(
    table: Table,
    *,
    max_bins: int,
    rows: NDArray[np.uint32] | None,
    weights: NDArray[np.float64] | None,
    n_threads: int,
) -> Binned:
    """Return the binned rows of a table.

    Parameters
    ----------
    table : Table
    max_bins : int
        Largest number of bins of a feature, from 2 to 65535, missing values apart.
    rows : uint32 array, or None for all
        Rows to use, ascending.
    weights : float64 array, or None
        One weight above 0 for each row that is used; bins hold about the same weight.
    n_threads : int
        The answer does not depend on it.
    """
    if weights is not None and (weights == weights[0]).all():
        weights = None  # so that edges do not depend on the rounding of sums of one same weight
    edges = core.quantiles(table.columns, rows, weights, max_bins, n_threads)
    codes = core.encode(table.columns, rows, edges, n_threads)
    return Binned(codes, tuple(edges), table.schema)


class Dataset:
    """A table that is binned once and accepted by every ``fit``.

    Rows of weight 0 are left out before anything else, so they change nothing.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, or list of
        lists. NaN and None are missing values.
    y : array of shape (n_rows,), optional
        Target: numbers or labels.
    sample_weight : array of shape (n_rows,), or float, optional
        Weights of at least 0.
    max_bins : int, default=255
        Largest number of bins of a feature, missing values apart; above 255 a bin code takes two
        bytes.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use.

    Attributes
    ----------
    binned : Binned
        Codes, edges and schema.
    y : array of shape (n_kept,), or None
    sample_weight : float64 array of shape (n_kept,), or None
    max_bins : int
    n_rows, n_features : int
        Rows that were kept, and columns.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import Dataset
    >>> data = Dataset(np.array([[1.0, 0.0], [2.0, np.nan], [4.0, 1.0]]), y=[0, 1, 1])
    >>> data.n_rows, data.n_features
    (3, 2)
    >>> [edges.tolist() for edges in data.binned.edges]
    [[1.5, 3.0], [0.5]]
    >>> data.binned.codes.to_numpy().tolist()
    [[0, 0], [1, 2], [2, 1]]
    """

    def __init__(
        self,
        X: object,
        y: object = None,
        *,
        sample_weight: object = None,
        max_bins: int = 255,
        n_jobs: int | None = None,
    ) -> None:
        PARAMS["max_bins"].check(max_bins)
        PARAMS["n_jobs"].check(n_jobs)
        table = ingest(X)
        labels = None if y is None else target(y, table.n_rows)
        weight = checked_weights(sample_weight, table.n_rows)
        rows = None
        if weight is not None and not weight.all():
            rows = np.flatnonzero(weight).astype(np.uint32)
            weight = weight[rows]
            labels = None if labels is None else labels[rows]
        self.binned: Binned = bin_table(
            table, max_bins=max_bins, rows=rows, weights=weight, n_threads=threads(n_jobs)
        )
        self.y: NDArray[Any] | None = labels
        self.sample_weight: NDArray[np.float64] | None = weight
        self.max_bins: int = max_bins

    @property
    def n_rows(self) -> int:
        """Rows that were kept."""
        return int(self.binned.codes.n_rows)

    @property
    def n_features(self) -> int:
        """Columns of the table."""
        return int(self.binned.codes.n_features)

    def __repr__(self) -> str:
        return f"Dataset({self.n_rows} rows, {self.n_features} features, max_bins={self.max_bins})"
