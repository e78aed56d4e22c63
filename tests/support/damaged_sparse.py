"""Sparse matrices of scipy whose arrays have been damaged, and a plain reading of their arrays."""

from __future__ import annotations

import numpy as np
from scipy import sparse

N_ROWS, N_COLUMNS = 6, 4
_WRONG_INDICES = (-1, -7, 4, 6, 24, 10**7, 2**31 - 1, -(2**31), 2**32 + 2, 2**40, -(2**32))
_WRONG_ARRAYS = (
    lambda array: array[:-1],
    lambda array: array[:0],
    lambda array: np.append(array, array[-1:]),
    lambda array: array[::-1],
    lambda array: array.astype(float),
    lambda array: array.reshape(1, -1),
    lambda array: array.astype(str),
    lambda array: array.astype(np.int8),
    lambda array: array.astype(np.uint64),
    lambda array: array.astype(">i4"),
    lambda array: array[0],
    lambda array: array.tolist(),
    lambda array: None,
)
_WRONG_SHAPES = ((7, 4), (5, 4), (6, 3), (6, 2), (12, 8), (-6, 4), (6,), (6.0, 4), (6, 4, 1))


def plain_matrix(kind, make="array"):
    rng = np.random.default_rng(3)
    dense = rng.integers(1, 9, (N_ROWS, N_COLUMNS)) * (rng.random((N_ROWS, N_COLUMNS)) < 0.6)
    return getattr(sparse, f"{kind}_{make}")(dense.astype(float))


def damaged(kind, make="array"):
    """Yield (description, matrix) for one of the formats that consist of arrays."""
    names = {"coo": ("row", "col"), "dia": ("offsets",)}.get(kind, ("indptr", "indices"))
    for name in names:
        for place in range(len(getattr(plain_matrix(kind), name))):
            for wrong in _WRONG_INDICES:
                for index in (np.int32, np.int64):
                    if abs(wrong) >= 2**31 and index == np.int32:
                        continue
                    matrix = plain_matrix(kind, make)
                    array = getattr(matrix, name).astype(index)
                    array[place] = wrong
                    _put(matrix, name, array)
                    yield f"{name}[{place}] = {wrong} ({index.__name__})", matrix
    for name in (*names, "data"):
        for number, change in enumerate(_WRONG_ARRAYS):
            matrix = plain_matrix(kind, make)
            _put(matrix, name, change(getattr(matrix, name)))
            yield f"{name}, change {number}", matrix
    for shape in _WRONG_SHAPES:
        matrix = plain_matrix(kind, make)
        matrix._shape = shape
        yield f"shape {shape}", matrix


def _put(matrix, name, array):
    if name in ("row", "col") and hasattr(matrix, "coords"):
        place = ("row", "col").index(name)
        matrix.coords = tuple(array if i == place else one for i, one in enumerate(matrix.coords))
    else:
        setattr(matrix, name, array)


def _is_index_array(array):
    is_array = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu"
    return is_array and (len(array) == 0 or int(array.max()) < 2**63)


def reading(matrix):
    """Return the dense array of a matrix, by plain loops; None if its arrays are inconsistent."""
    shape = matrix.shape
    if len(shape) != 2 or not all(isinstance(n, int) and n >= 0 for n in shape):
        return None
    if not isinstance(matrix.data, np.ndarray) or matrix.data.dtype.kind not in "iuf":
        return None
    return _READINGS[matrix.format](matrix, np.zeros(shape))


def _read_triplets(matrix, dense):
    row, column = matrix.coords
    if not (_is_index_array(row) and _is_index_array(column) and matrix.data.ndim == 1):
        return None
    if not len(row) == len(column) == len(matrix.data):
        return None
    for i, j, value in zip(row.tolist(), column.tolist(), matrix.data.tolist(), strict=True):
        if not (0 <= i < dense.shape[0] and 0 <= j < dense.shape[1]):
            return None
        dense[i, j] += value
    return dense


def _read_diagonals(matrix, dense):
    offsets = matrix.offsets
    if not _is_index_array(offsets) or matrix.data.ndim != 2:
        return None
    if len(offsets) != len(matrix.data) or len(set(offsets.tolist())) != len(offsets):
        return None
    for offset, values in zip(offsets.tolist(), matrix.data.tolist(), strict=True):
        for j, value in enumerate(values[: dense.shape[1]]):
            if 0 <= j - offset < dense.shape[0]:
                dense[j - offset, j] += value
    return dense


def _read_compressed(matrix, dense):
    data = matrix.data if matrix.format == "bsr" else matrix.data[..., None, None]
    arrays = (matrix.indptr, matrix.indices)
    if data.ndim != 3 or 0 in data.shape[1:] or not all(map(_is_index_array, arrays)):
        return None
    height, width = data.shape[1:]
    by_major = dense.T if matrix.format == "csc" else dense  # a view
    if dense.shape[0] % height or dense.shape[1] % width:
        return None
    n_major, n_minor = by_major.shape[0] // height, by_major.shape[1] // width
    starts, indices = matrix.indptr.tolist(), matrix.indices.tolist()
    if len(starts) != n_major + 1 or starts[0] != 0 or sorted(starts) != starts:
        return None
    stored = starts[-1]
    if stored > min(len(indices), len(data)) or not set(indices[:stored]) <= {*range(n_minor)}:
        return None
    for i in range(n_major):
        for k in range(starts[i], starts[i + 1]):
            j = indices[k]
            block = by_major[i * height : (i + 1) * height, j * width : (j + 1) * width]
            block += data[k]
    return dense


_READINGS = {
    "csr": _read_compressed,
    "csc": _read_compressed,
    "bsr": _read_compressed,
    "coo": _read_triplets,
    "dia": _read_diagonals,
}
