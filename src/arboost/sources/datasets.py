"""Datasets of PyArrow -> `DatasetSource`, scanned in their own order of files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from arboost.errors import SchemaError
from arboost.sources.arrow import naming_file
from arboost.sources.files import BUFFER_BYTES, DAMAGED
from arboost.sources.schemas import near_names, selected
from arboost.sources.source import Part, Source

__all__ = ["DatasetSource", "is_dataset"]


def is_dataset(X: object) -> bool:
    """Whether X is a dataset of PyArrow."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(X, module.Dataset)


class DatasetSource(Source):
    """Rows of a dataset; its filter and its types apply.

    PyArrow decodes row groups of Parquet files as a whole, about two of them at a time.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    columns : sequence of str, or None for all
    """

    def __init__(self, dataset: Any, columns: Sequence[str] | None) -> None:
        import pyarrow

        label = f"the {type(dataset).__name__}"
        names = selected(columns, dataset.schema.names, label)
        sizes: dict[str, int] = {}
        for part in _with_files(dataset):
            _check_columns(part, names)
            sizes |= _file_sizes(part)
        schema = pyarrow.schema([dataset.schema.field(name) for name in names])
        super().__init__(label, schema, None, sum(sizes.values()) if sizes else None)
        self._dataset = dataset
        self._sizes = sizes

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files, in their own file system."""
        return tuple(self._sizes)

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        scanner = self._dataset.scanner(
            columns=self.arrow_schema.names,
            batch_size=batch_rows,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=_scan_options(self._dataset),
        )
        done: set[str] = set()  # files that have been begun
        with naming_file(self.label, "Check its files."):
            for tagged in scanner.scan_batches():
                file = getattr(tagged.fragment, "path", self.label)
                done.add(file)
                n_bytes = sum(self._sizes.get(path, 0) for path in done)
                yield Part(tagged.record_batch, file, n_bytes)


def _with_files(dataset: Any) -> list[Any]:
    """Return the datasets of files in a dataset, which may be a union of several."""
    if hasattr(dataset, "children"):
        return [one for child in dataset.children for one in _with_files(child)]
    return [dataset] if hasattr(dataset, "files") else []


def _check_columns(dataset: Any, names: Sequence[str]) -> None:
    """Raise SchemaError for a file without a column, which PyArrow would fill with nulls."""
    partitioning = getattr(dataset, "partitioning", None)
    keys = [] if partitioning is None else partitioning.schema.names
    for path in dataset.files:
        with naming_file(path, DAMAGED):
            fragment = dataset.format.make_fragment(path, dataset.filesystem)
            given = fragment.physical_schema.names
        for name in names:
            if name not in given and name not in keys:
                raise SchemaError(
                    f"The file {path!r} has no column {name!r}, which the dataset has."
                    f"{near_names(name, given)} All files must have the columns to read: write it "
                    "again, or leave it out."
                )


def _file_sizes(dataset: Any) -> dict[str, int]:
    """Return the sizes of the files of a dataset by path."""
    infos = dataset.filesystem.get_file_info(dataset.files)
    return {info.path: int(info.size or 0) for info in infos}


def _scan_options(dataset: Any) -> Any:
    """Return options by which local Parquet files are read page by page; None for all others.

    Other file systems answer few large requests faster than many small ones.
    """
    from pyarrow import dataset as arrow_dataset
    from pyarrow import fs

    is_parquet = isinstance(getattr(dataset, "format", None), arrow_dataset.ParquetFileFormat)
    if not is_parquet or not isinstance(dataset.filesystem, fs.LocalFileSystem):
        return None
    return arrow_dataset.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=BUFFER_BYTES, pre_buffer=False
    )
