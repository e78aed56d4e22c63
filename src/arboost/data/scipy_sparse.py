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
from arboost.data.raw_columns import RawTable, native
from arboost.data.scipy_checks import checked_matrix

__all__ = ["from_scipy", "is_sparse"]

_LARGEST_EXACT = 2**53


def is_sparse(X: object) -> bool:
    """Whether X is a matrix or array of scipy.sparse."""
    # The class is asked: the number of stored values of a corrupted matrix may raise.
    return hasattr(type(X), "nnz") and hasattr(type(X), "tocsr")


def from_scipy(X: Any) -> RawTable:
    """Return the columns of a sparse matrix; raise ValueError for a corrupted one."""
    kind = getattr(getattr(X, "dtype", None), "kind", "f")  # without data there is none
    if kind == "c":
        raise ValueError("Complex data not supported: columns of a sparse table must be real.")
    if kind not in "biuf":
        raise TypeError(
            f"X is a sparse table of {X.dtype}, but it must be of numbers. Convert it, for example "
            "with X.astype(float)."
        )
    matrix = checked_matrix(X)
    n_rows, n_columns = matrix.shape
    if n_rows > core.most_rows:
        raise ValueError(messages.row_count_message(n_rows, core.most_rows))
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    # Arrays that a user has changed may be longer than the number of stored values.
    stored = int(matrix.indptr[-1])
    values, indices = native(matrix.data[:stored]), matrix.indices[:stored]
    raw = RawTable(core.Columns(n_rows))
    if matrix.format == "csc":
        rows = indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32)
        starts = np.ascontiguousarray(matrix.indptr)
        raw.columns.add_csc(starts, np.ascontiguousarray(rows), values, 0.0)
    else:
        index = np.result_type(matrix.indptr, indices)
        raw.columns.add_csr(
            np.ascontiguousarray(matrix.indptr, index),
            np.ascontiguousarray(indices, index),
            values,
            n_columns,
            0.0,
        )
        if values.dtype in (np.int64, np.uint64):
            large = (values >= _LARGEST_EXACT) | (values <= -_LARGEST_EXACT)
            raw.inexact.update(np.unique(indices[large]).tolist())
    return raw
