"""Any object that stands for rows on disk, a query or an iterable -> `Source`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arboost.sources.iterables import IterableSource, is_iterable
from arboost.sources.paths import is_paths
from arboost.sources.source import Source

__all__ = ["is_source", "open_source"]


def is_source(X: object) -> bool:
    """Whether X stands for rows that need not be in memory, and `open_source` takes it.

    Tables, arrays and lists of rows are in memory, and no sources.
    """
    return is_paths(X) or is_iterable(X)


def open_source(X: Any, columns: Sequence[str] | None = None) -> Source:
    """Return the restartable batches of X, whose files are checked first.

    Parameters
    ----------
    X : str, path-like or list of them; or an iterable of batches that starts again
        Parquet files, patterns such as "data/*.parquet", or folders; or an object whose
        ``__iter__`` starts again, or a function without arguments that returns an iterator, of
        tables or of tuples (X, y) or (X, y, weight).
    columns : sequence of str, optional
        Columns to read, in this order; not for iterables, which select their own.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        A file cannot be read; as SchemaError, where files have different columns.
    TypeError
        X is no source.
    """
    if is_paths(X):
        from arboost.sources.file_source import open_files

        return open_files(X, columns)
    if is_iterable(X):
        if columns is not None:
            raise ValueError(
                f"columns={list(columns)!r} is not allowed with an iterable of batches. Select the "
                "columns in the iterable."
            )
        return IterableSource(X)
    raise TypeError(
        f"X is a {type(X).__name__}, which is no source of batches. Pass paths, a dataset or query "
        "of PyArrow, Polars or DuckDB, or an iterable of batches that starts again."
    )
