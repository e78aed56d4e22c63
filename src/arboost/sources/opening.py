"""Any object that stands for rows on disk, a query or an iterable -> `Source`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arboost.sources.datasets import DatasetSource, is_dataset
from arboost.sources.file_source import open_files
from arboost.sources.iterables import IterableSource, is_iterable
from arboost.sources.paths import is_paths
from arboost.sources.source import Source
from arboost.sources.streams import is_stream, open_stream
from arboost.workers import Share

__all__ = ["has_columns", "is_source", "open_source"]


def is_source(X: object) -> bool:
    """Whether X stands for rows that need not be in memory, and `open_source` takes it.

    Tables, arrays and lists of rows are in memory, and no sources. A `Share` is one: the rows of
    one worker.
    """
    return isinstance(X, Share) or has_columns(X) or is_iterable(X)


def has_columns(X: object) -> bool:
    """Whether X is a source with named columns, of which `open_source` reads a selection."""
    return is_paths(X) or is_dataset(X) or is_stream(X)


def open_source(
    X: Any,
    columns: Sequence[str] | None = None,
    *,
    scratch: str | None = None,
    once: bool = False,
) -> Source:
    """Return the restartable batches of X, whose files are checked first.

    Parameters
    ----------
    X : str, path-like or list of them
        Parquet, Arrow, Feather, CSV, TSV or JSON lines files, patterns such as "data/*.parquet",
        or folders, whose hive partition keys are columns.
    X : pyarrow.dataset.Dataset
    X : pyarrow.RecordBatchReader, polars.LazyFrame or DuckDB relation
        It is read once, into a temporary file.
    X : iterable
        Object whose ``__iter__`` starts again, or function without arguments that returns an
        iterator, of tables or of tuples (X, y) or (X, y, weight).
    columns : sequence of str, optional
        Columns to read, in this order; not for iterables, which select their own.
    scratch : str, optional
        Folder of the temporary file of a stream or query.
    once : bool, default=False
        Whether there is one pass only: a stream or query is then not stored, and generators are
        iterables like others.

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
        return open_files(X, columns)
    if is_dataset(X):
        return DatasetSource(X, columns)
    if is_stream(X):
        return open_stream(X, columns, scratch, once=once)
    if is_iterable(X):
        if columns is not None:
            raise ValueError(
                f"columns={list(columns)!r} is not allowed with an iterable of batches. Select the "
                "columns in the iterable."
            )
        return IterableSource(X, once=once)
    raise TypeError(
        f"X is a {type(X).__name__}, which is no source of batches. Pass paths, a dataset or query "
        "of PyArrow, Polars or DuckDB, or an iterable of batches that starts again."
    )
