"""Sparse matrices of scipy -> `RawTable` of sparse columns; nothing is densified.

CSC matrices are read in place; CSR matrices are transposed, with values in the smallest type that
holds them; scipy converts other formats to CSR. Values that are not stored are 0, duplicates are
summed.

Every format is checked before any method of scipy touches its arrays, which are public: a wrong
offset or index makes scipy read and write outside its memory. Cost: one pass over the offsets and
one over the indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import messages
from arboost.data.raw_columns import N_DIMENSIONS, RawTable, native

__all__ = ["checked_matrix", "from_scipy", "is_sparse"]

_LARGEST_EXACT = 2**53
_INDEX_TYPES = (np.int32, np.int64)  # of scipy


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


def checked_matrix(X: Any) -> Any:
    """Return X as a CSR or CSC matrix whose arrays are consistent.

    A consistent CSR or CSC matrix is returned itself; its arrays may be longer than the number of
    stored values. Other formats are converted to CSR.

    Raises
    ------
    ValueError
        X is corrupted, or has other than two dimensions.
    """
    shape = X.shape
    if len(shape) != N_DIMENSIONS:
        raise ValueError(messages.dimensions_message(X))
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in shape):
        _refuse(X, f"its shape is {shape!r}")
    convert = _FORMATS.get(X.format)
    return _compressed(X.tocsr()) if convert is None else convert(X)


def _refuse(X: Any, reason: str) -> NoReturn:
    raise ValueError(
        f"X is a corrupted sparse matrix of format {X.format!r}: {reason}. Make it again, for "
        "example with scipy.sparse.coo_array((values, (rows, columns)), shape=shape)."
    )


def _compressed(X: Any) -> Any:
    """Check a CSR or CSC matrix."""
    values = _array(X, "data", X.data, dimensions=1)
    major = 0 if X.format == "csr" else 1
    starts, indices = _check_compressed(X, X.shape[major], X.shape[1 - major], len(values))
    if starts is X.indptr and indices is X.indices:
        return X
    return _fresh(X, X.format, values, (indices, starts))


def _from_blocks(X: Any) -> Any:
    """Return the CSR matrix of a BSR matrix: a block of values for each index."""
    values = _array(X, "data", X.data, dimensions=3)
    n_rows, n_columns = X.shape
    height, width = values.shape[1:]
    if height == 0 or width == 0 or n_rows % height or n_columns % width:
        _refuse(X, f"blocks of {height} x {width} do not divide its shape {X.shape}")
    starts, indices = _check_compressed(X, n_rows // height, n_columns // width, len(values))
    stored = int(starts[-1])
    return _fresh(X, "bsr", values[:stored], (indices[:stored], starts)).tocsr()


def _from_coordinates(X: Any) -> Any:
    """Return the CSR matrix of a COO matrix."""
    coordinates = X.coords if hasattr(X, "coords") else (X.row, X.col)
    if not isinstance(coordinates, tuple) or len(coordinates) != N_DIMENSIONS:
        _refuse(X, "its coordinates are not two arrays")
    return _from_triplets(X, coordinates[0], coordinates[1], X.data)


def _from_keys(X: Any) -> Any:
    """Return the CSR matrix of a DOK matrix: a dictionary of values by coordinates."""
    places, numbers = list(X.keys()), list(X.values())
    wrong = next((one for one in places if not _is_place(one)), None)
    if wrong is not None:
        _refuse(X, f"a key is {wrong!r}, not (row, column)")
    pairs = np.array(places, dtype=np.int64).reshape(-1, N_DIMENSIONS)
    return _from_triplets(X, pairs[:, 0], pairs[:, 1], _numbers(X, numbers))


def _from_lists(X: Any) -> Any:
    """Return the CSR matrix of a LIL matrix: of each row, lists of its columns and values."""
    lists = [_array(X, "rows", X.rows, dimensions=1), _array(X, "data", X.data, dimensions=1)]
    for array in lists:
        if len(array) != X.shape[0] or not all(isinstance(row, list) for row in array):
            _refuse(X, f"its rows are not one list for each of {X.shape[0]} rows")
    lengths = [len(row) for row in lists[0]]
    if lengths != [len(row) for row in lists[1]]:
        _refuse(X, "a row has another number of columns than values")
    columns = list(chain.from_iterable(lists[0]))
    if not all(_is_index(column) for column in columns):
        _refuse(X, "a column is not an index")
    rows = np.repeat(np.arange(X.shape[0]), lengths)
    numbers = _numbers(X, list(chain.from_iterable(lists[1])))
    return _from_triplets(X, rows, np.array(columns, dtype=np.int64), numbers)


def _from_diagonals(X: Any) -> Any:
    """Return the CSR matrix of a DIA matrix: rows of values, each a diagonal with its offset."""
    values = _array(X, "data", X.data, dimensions=2)
    offsets = _indices(X, "offsets", X.offsets)
    if len(offsets) != len(values):
        _refuse(X, f"it has {len(values)} diagonals, but {len(offsets)} offsets")
    if len(np.unique(offsets)) != len(offsets):
        _refuse(X, "an offset occurs twice")
    # Diagonals outside the matrix are legal; scipy casts offsets down.
    inside = (offsets > -X.shape[0]) & (offsets < X.shape[1])
    return _fresh(X, "dia", values[inside], (offsets[inside],)).tocsr()


_FORMATS: dict[str, Callable[[Any], Any]] = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _from_blocks,
    "coo": _from_coordinates,
    "dok": _from_keys,
    "lil": _from_lists,
    "dia": _from_diagonals,
}


def _fresh(X: Any, kind: str, values: NDArray[Any], places: Sequence[Any]) -> Any:
    """Return a matrix of checked arrays, without the properties that scipy has cached of X."""
    from scipy import sparse

    values = values.astype(np.float32) if values.dtype == np.float16 else native(values)
    made = "matrix" if isinstance(X, sparse.spmatrix) else "array"
    return getattr(sparse, f"{kind}_{made}")((values, *places), shape=X.shape)


def _from_triplets(X: Any, rows: Any, columns: Any, values: Any) -> Any:
    """Return the CSR matrix of values by row and column."""
    values = _array(X, "data", values, dimensions=1)
    places = []
    for axis, (name, index) in enumerate((("row", rows), ("column", columns))):
        place = _indices(X, f"{name} index", index)
        if len(place) != len(values):
            _refuse(X, f"it has {len(values)} values, but {len(place)} {name} indices")
        _check_range(X, f"a {name} index", place, X.shape[axis])
        # Some estimators take 32 bits only, scipy's choice where they suffice.
        is_small = max(X.shape[axis], len(values)) <= np.iinfo(np.int32).max
        places.append(place.astype(np.int32, copy=False) if is_small else place)
    return _fresh(X, "coo", values, (tuple(places),)).tocsr()


def _check_compressed(
    X: Any, n_major: int, n_minor: int, n_values: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the offsets and the indices of a matrix of CSR, CSC or BSR format."""
    starts, indices = _indices(X, "indptr", X.indptr), _indices(X, "indices", X.indices)
    if len(starts) != n_major + 1:
        _refuse(X, f"indptr has length {len(starts)}, but the shape {X.shape} needs {n_major + 1}")
    if starts[0] != 0:
        _refuse(X, f"indptr starts with {starts[0]} instead of 0")
    if not (starts[:-1] <= starts[1:]).all():
        _refuse(X, f"indptr descends after {int((starts[:-1] > starts[1:]).argmax())} entries")
    stored = int(starts[-1])
    if stored > min(n_values, len(indices)):
        _refuse(
            X,
            f"indptr ends at {stored}, but there are {n_values} values and {len(indices)} indices",
        )
    _check_range(X, "an index", indices[:stored], n_minor)
    return starts, indices


def _check_range(X: Any, what: str, indices: NDArray[Any], size: int) -> None:
    if len(indices) == 0:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= size:
        _refuse(X, f"{what} is {low if low < 0 else high}, outside its shape {X.shape}")


def _array(X: Any, name: str, given: Any, *, dimensions: int) -> NDArray[Any]:
    if not isinstance(given, np.ndarray) or given.ndim != dimensions:
        _refuse(X, f"{name} is not an array of {dimensions} dimension{'s' * (dimensions > 1)}")
    return given


def _indices(X: Any, name: str, given: Any) -> NDArray[Any]:
    """Return an array of indices of one of scipy's types; never cast down."""
    array = _array(X, name, given, dimensions=1)
    if array.dtype in _INDEX_TYPES and array.dtype.isnative:
        return array
    if array.dtype.kind not in "iu":
        _refuse(X, f"{name} is of type {array.dtype}, not of integers")
    if array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        _refuse(X, f"{name} has a value of {array.max()}")
    return array.astype(np.int64)


def _numbers(X: Any, given: list[Any]) -> NDArray[Any]:
    try:
        return np.array(given, dtype=X.dtype).reshape(len(given))
    except (TypeError, ValueError, OverflowError) as error:
        _refuse(X, f"its values are not of type {X.dtype} ({error})")


def _is_index(value: object) -> bool:
    """Whether a value is an integer that 64 bits hold; others are outside of any shape."""
    return isinstance(value, int | np.integer) and -(2**63) <= int(value) < 2**63


def _is_place(key: object) -> bool:
    return isinstance(key, tuple) and len(key) == N_DIMENSIONS and all(map(_is_index, key))
