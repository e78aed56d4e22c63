"""Bins of files, kept in a folder: the next fit on the same files starts at once.

    folder/<key>.codes   codes of all rows, a file of the core
    folder/<key>.npz     schema, edges, target, weights, and stamps of the files
    folder/<key>.lock    locked by the process that reads or writes the two

The key is a digest of paths, columns and parameters. The stamps are the version of the library, and
size, times and inode of each file: where one differs the files are read again, and replace the
entry. Both files get their names when they are finished;
those of killed writers are removed by the next one, which holds the lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.batch_rows import BinningSpec, RowValues, SketchedTable
from arboost.data.bins import Binned
from arboost.data.feature_names import offset_names
from arboost.data.levels import Levels
from arboost.data.memory import OTHER_CACHE, FileSink, folder_errors
from arboost.data.passes import SourceLevels
from arboost.data.raw_table import missing_columns
from arboost.data.schema import Schema
from arboost.data.target import varying_weights
from arboost.data.target_encoding import EncodedFeature
from arboost.errors import InputTypeError, warn_caller
from arboost.write import file_lock

if TYPE_CHECKING:
    from arboost.data.source import Source


_VERSION = 4  # of the description


_SCHEMA_FIELDS = ("names", "units", "formats", "parts", "target", "offset")


@dataclass(frozen=True)
class SourceCache:
    """Entry of a source in a folder.

    Attributes
    ----------
    folder : Path
    key : str
        Digest of paths, columns and parameters.
    stamps : list
        Version of the library; path, size, time of the last change, time of the last change of
        the inode, and inode of each file.
    tree_method : str
    """

    folder: Path
    key: str
    stamps: list[Any]
    tree_method: str

    @classmethod
    def of(cls, folder: str | os.PathLike[str], source: Source, spec: BinningSpec) -> SourceCache:
        """Entry of a source; raise ValueError for one without files."""
        files = getattr(source, "files", None)
        columns = spec.columns.target, spec.columns.weight, spec.columns.groups
        offset = offset_names(spec.columns.offset)
        are_names = all(column is None or isinstance(column, str) for column in columns)
        if not files or not are_names or offset == ():
            raise ValueError(
                f"cache={os.fspath(folder)!r} is not allowed here: only bins of files are kept, "
                "whose y, weights and offset are columns. Pass paths and names of columns, or "
                "leave out cache."
            )
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        options = spec.options
        described = [
            _VERSION,
            [os.path.realpath(file.path) for file in files],
            source.arrow_schema.to_string(),
            [*columns, spec.kind, spec.max_bins, spec.bundling, spec.tree_method],
            "" if spec.edge_rows is None else spec.edge_rows.key,
            [repr(getattr(options, field.name)) for field in fields(options)],
            *([] if offset is None else [offset]),
        ]
        key = hashlib.blake2b(json.dumps(described).encode(), digest_size=12).hexdigest()
        stamps: list[Any] = [core.version()]
        for file in files:  # all that changes with a file, even where size and time are put back
            status = os.stat(file.path)
            inode = status.st_ctime_ns, status.st_ino
            stamps.append([os.path.realpath(file.path), *file.stamp, *inode])
        return cls(path, key, stamps, spec.tree_method)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock of the entry; another process waits until it is read or written."""
        return file_lock(str(self._path("lock")))

    def read(self, n_threads: int) -> tuple[SketchedTable, Binned] | None:
        """Entry; None where there is none, or files have changed.

        A damaged entry is None, too, with a warning.
        """
        if not self._path("npz").exists():
            return None
        try:
            with open(self._path("npz"), "rb") as file, np.load(file, allow_pickle=False) as parts:
                arrays = {name: parts[name] for name in parts.files}
            described = json.loads(arrays.pop("description").tobytes())
            if described["stamps"] != self.stamps:
                return None
            with open(self._path("codes"), "rb") as file:
                codes = core.open_codes(file.fileno(), n_threads)
            if codes.arrays[0].tolist() != described["checksum"]:
                raise ValueError("the bins are not those of the description")
            table = _read_table(described, arrays)
            _check_sizes(table, codes)
            binned = Binned(codes, table.edges, table.schema, tree_method=self.tree_method)
            return table, binned
        except (OSError, EOFError, LookupError, TypeError, ValueError, zipfile.BadZipFile) as error:
            warn_caller(
                f"The cache of X in the folder {str(self.folder)!r} is damaged "
                f"({type(error).__name__}: {error}). It is written again."
            )
            return None

    def writer(self, window_rows: int, n_rows: int, n_bytes: int) -> FileSink:
        """A sink that writes the codes; files of killed writers are removed before."""
        for left in self.folder.glob(f"{self.key}.*.tmp"):
            with contextlib.suppress(OSError):
                left.unlink()
        return FileSink(n_rows, window_rows, n_bytes, self._path("codes.tmp"))

    def write(self, table: SketchedTable, codes: core.Codes) -> None:
        """Give the finished files their names, the description last."""
        described, arrays = _describe_table(table)
        described |= {"stamps": self.stamps, "checksum": codes.arrays[0].tolist()}
        text = np.frombuffer(json.dumps(described).encode(), np.uint8)
        scratch, n_bytes = self._path("npz.tmp"), sum(array.nbytes for array in arrays.values())
        try:
            with folder_errors(str(self.folder), table.n_rows, n_bytes, OTHER_CACHE):
                with open(scratch, "wb") as file:
                    np.savez(file, description=text, **arrays)  # type: ignore[arg-type]
                    os.fsync(file.fileno())
                with contextlib.suppress(FileNotFoundError):
                    self._path("npz").unlink()  # never next to codes of another writer
                os.replace(self._path("codes.tmp"), self._path("codes"))
                os.replace(scratch, self._path("npz"))
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove unfinished files."""
        for name in ("codes.tmp", "npz.tmp"):
            with contextlib.suppress(OSError):
                self._path(name).unlink()

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self.key}.{suffix}"


def _describe_table(table: SketchedTable) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A table for the description: values, and arrays by name."""
    schema = table.schema
    arrays: dict[str, NDArray[Any]] = {f"edges {i}": edges for i, edges in enumerate(table.edges)}
    described: dict[str, Any] = {name: getattr(schema, name) for name in _SCHEMA_FIELDS} | {
        "n_rows": table.n_rows,
        "level_classes": table.level_classes,
        "missing": repr(schema.missing),
        "levels": [
            None if levels is None else levels.describe(f"levels {i}", arrays)
            for i, levels in enumerate(schema.levels)
        ],
        "encoded": [],
    }
    for name, values in table.rows._asdict().items():
        if values is not None and name in ("y", "groups"):
            arrays[name], described[f"{name} labels"] = _coded(values)
        elif values is not None:
            arrays[name] = values
    for source in () if table.encoded_table is None else table.encoded_table.sources:
        described["encoded"].append(source.feature)
        arrays[f"codes {source.feature}"] = source.codes
        arrays[f"target {source.feature}"] = source.target
    return described, arrays


def _coded(values: NDArray[Any]) -> tuple[NDArray[Any], list[str] | None]:
    """An array of numbers, and None; of strings, their codes and the strings."""
    if values.dtype.kind != "O":
        return values, None
    items = values.tolist()
    codes = {label: code for code, label in enumerate(dict.fromkeys(items))}
    if not all(isinstance(label, str) for label in codes):
        raise InputTypeError("cache needs y and groups of numbers or strings. Convert them.")
    return np.array([codes[label] for label in items], np.int32), list(codes)


def _read_table(described: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> SketchedTable:
    """Table of a description."""
    n_features = sum(name.startswith("edges ") for name in arrays)
    levels = [
        None if kind is None else Levels.read(kind, f"levels {i}", arrays)
        for i, kind in enumerate(described["levels"])
    ]
    texts: dict[str, Any] = {
        name: None if described[name] is None else tuple(described[name])
        for name in ("names", "offset")
    }
    schema = Schema(
        n_features=n_features,
        levels=tuple(levels),
        missing=float(described["missing"]),
        units=tuple(described["units"]),
        formats=tuple(described["formats"]),
        parts=tuple((column, part) for column, part in described["parts"]),
        target=described["target"],
        **texts,
    )
    schema.validate()
    for name in ("y", "groups"):
        if described.get(f"{name} labels") is not None:
            arrays[name] = np.array(described[f"{name} labels"], dtype=object)[arrays[name]]
    rows = RowValues(**{name: arrays.get(name) for name in RowValues._fields})
    encoded = None
    if described["encoded"]:
        columns = missing_columns(described["n_rows"], n_features)
        sources = [
            EncodedFeature(feature, arrays[f"codes {feature}"], arrays[f"target {feature}"])
            for feature in described["encoded"]
        ]
        encoded = SourceLevels(columns, schema, tuple(sources), varying_weights(rows.weight))
    return SketchedTable(
        schema=schema,
        edges=tuple(arrays[f"edges {i}"] for i in range(n_features)),
        plan=None,
        rows=rows,
        n_rows=described["n_rows"],
        encoded_table=encoded,
        level_classes=described["level_classes"],
    )


def _check_sizes(table: SketchedTable, codes: core.Codes) -> None:
    """Raise ValueError unless a table and codes are of the same rows, bins and levels."""
    encoded = () if table.encoded_table is None else table.encoded_table.sources
    rows = [*table.rows[:3], *(feature.codes for feature in encoded)]
    levels = table.schema.levels
    if (
        table.n_rows != int(codes.n_rows)
        or any(row is not None and row.shape != (table.n_rows,) for row in rows)
        or codes.n_bins.tolist() != [len(edges) + 1 for edges in table.edges]
        or any(feature.codes.dtype != np.int32 or feature.target.ndim != 1 for feature in encoded)
        or any(
            feature.codes.min(initial=-1) < -1
            or feature.codes.max(initial=-1) >= len(levels[feature.feature] or ())
            for feature in encoded
        )
    ):
        raise ValueError("the description is not that of the bins")
