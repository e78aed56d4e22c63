"""Sparse matrices of scipy -> `RawTable` of sparse columns; nothing is densified.

CSC matrices are read in place; CSR matrices are transposed, with values in the smallest type that
holds them; scipy converts other formats to CSR. Values that are not stored are 0, duplicates are
summed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arboost.backend import core
from arboost.data import messages
from arboost.data.raw_columns import N_DIMENSIONS, RawTable, native

__all__ = ["from_scipy", "is_sparse"]

_LARGEST_EXACT = 2**53


def is_sparse(X: object) -> bool:
    """Whether X is a matrix or array of scipy.sparse."""
    return hasattr(X, "nnz") and hasattr(X, "tocsr")


def from_scipy(X: Any) -> RawTable:
    """Return the columns of a sparse matrix."""
    if X.ndim != N_DIMENSIONS:
        raise ValueError(messages.dimensions_message(X))
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: columns of a sparse table must be real.")
    if X.dtype.kind not in "biuf":
        raise TypeError(
            f"X is a sparse table of {X.dtype}, but it must be of numbers. Convert it, for example "
            "with X.astype(float)."
        )
    matrix = X if X.format in ("csr", "csc") else X.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    values, starts, indices = native(matrix.data), matrix.indptr, matrix.indices
    # Arrays that a user has changed may be longer than the number of stored values.
    stored = int(starts[-1])
    values, indices = values[:stored], indices[:stored]
    raw = RawTable(core.Columns(matrix.shape[0]))
    if matrix.format == "csc":
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < matrix.shape[0]:
            raise ValueError("X is a sparse table with a value outside its rows. Make it again.")
        rows = indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32)
        raw.columns.add_csc(starts, np.ascontiguousarray(rows), values, 0.0)
    else:
        raw.columns.add_csr(
            np.ascontiguousarray(starts),
            np.ascontiguousarray(indices, starts.dtype),
            values,
            matrix.shape[1],
            0.0,
        )
        if values.dtype in (np.int64, np.uint64):
            large = (values >= _LARGEST_EXACT) | (values <= -_LARGEST_EXACT)
            raw.inexact.update(np.unique(indices[large]).tolist())
    return raw
