"""Data as a user of Ray has it -> blocks or files of a table, in the order of its rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray
from ray.data import Dataset

from arboost.data.messages import no_column_message
from arboost.distributed.files import files_found, refuse_other_than_names, try_to_find
from arboost.distributed.on_ray.orders import TableBlocks
from arboost.sources.paths import Found, is_paths

__all__ = ["TableInput", "table_input"]


@dataclass(frozen=True)
class TableInput:
    """Blocks or files of a table, and the names of the columns that are no features.

    Attributes
    ----------
    blocks : TableBlocks
    target : str
    weight : str or None
    data : Dataset or None
        Its owner: blocks live as long as it.
    """

    blocks: TableBlocks
    target: str
    weight: str | None
    data: Dataset | None = None


def table_input(timeout: float, data: Any, target: Any, weight: Any) -> TableInput:
    """Return the blocks or files of a table, its target and its weights.

    Parameters
    ----------
    timeout : float
        Seconds that a node may take to find files that this machine does not see.
    data : Dataset, or paths
    target, weight : Any

    Raises
    ------
    TypeError
        The data are no Ray Dataset and no paths, or the columns are no names.
    ValueError
        A column does not exist, or there are no rows.
    """
    if is_paths(data):
        refuse_other_than_names("paths", target=target, weight=weight)
        paths = _files(timeout, data)
        sizes = [os.path.getsize(path) if os.path.exists(path) else 1 for path in paths]
        return TableInput(TableBlocks(tuple(paths), tuple(sizes), are_paths=True), target, weight)
    if not isinstance(data, Dataset):
        raise TypeError(
            f"data is a {type(data).__name__}, but must be a Ray Dataset or paths of files. A "
            "table in memory becomes a Ray Dataset by ray.data.from_pandas or from_arrow, or is "
            "trained on without a cluster by fit of the estimator."
        )
    refuse_other_than_names("a Ray Dataset", target=target, weight=weight)
    return _of_dataset(data, target, weight)


def _of_dataset(data: Dataset, target: str, weight: str | None) -> TableInput:
    with _order_kept(data):
        computed = data.materialize()
    columns = computed.columns() or []
    for argument, column in (("target", target), ("weight", weight)):
        if column is not None and columns and column not in columns:
            raise ValueError(no_column_message(column, columns, argument))
    parts, sizes = [], []
    for bundle in computed.iter_internal_ref_bundles():
        for reference, metadata in zip(bundle.block_refs, bundle.metadata, strict=True):
            # Blocks without rows may be without columns, too.
            if metadata.num_rows != 0:
                parts.append(reference)
                sizes.append(metadata.size_bytes or 1)
    if not parts:
        raise ValueError("data is a Ray Dataset without rows, but training needs some.")
    blocks = TableBlocks(tuple(parts), tuple(sizes), are_paths=False)
    return TableInput(blocks, target, weight, computed)


@contextmanager
def _order_kept(data: Dataset) -> Iterator[None]:
    """Have Ray keep the order of the rows, which it does not by default."""
    options = data.context.execution_options
    before = options.preserve_order
    options.preserve_order = True
    try:
        yield
    finally:
        options.preserve_order = before


def _files(timeout: float, data: Any) -> list[str]:
    def ask_worker(given: list[Any]) -> list[Found] | Exception:
        found: list[Found] | Exception = ray.get(
            ray.remote(try_to_find).remote(given), timeout=timeout
        )
        return found

    return files_found(data, ask_worker, "Pass the Ray Dataset of ray.data.read_parquet.")
