"""Paths, patterns, folders and lists of them -> files in one order, and their partition keys.

Files of a folder or pattern are in the natural order of their paths: part2 comes before part10. A
list keeps its own order. Rows are in the order of the files, then in that of each file.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "FORMATS",
    "TEXT_KINDS",
    "Found",
    "compression_of",
    "file_kind",
    "find_files",
    "is_path",
    "is_paths",
    "partition_keys",
    "paths_label",
]

# Suffix -> kind of file; those of text may also be compressed.
FORMATS = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
TEXT_KINDS = ("csv", "tsv", "jsonl")
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}

_SHOWN_PATHS = 3


@dataclass(frozen=True)
class Found:
    """A file, and the folder below which the names of its folders are partition keys."""

    path: str
    base: str


def is_path(X: object) -> bool:
    """Whether X is the path of a file or folder, or a pattern."""
    return isinstance(X, str | os.PathLike)


def is_paths(X: object) -> bool:
    """Whether X is a path or a list of paths."""
    return is_path(X) or (isinstance(X, list | tuple) and bool(X) and all(map(is_path, X)))


def paths_label(X: Any) -> str:
    """Return the name of paths in messages."""
    if is_path(X):
        return repr(os.fsdecode(X))
    shown = [repr(os.fsdecode(one)) for one in X[:_SHOWN_PATHS]]
    more = f" and {len(X) - _SHOWN_PATHS} more" if len(X) > _SHOWN_PATHS else ""
    return ", ".join(shown) + more


def find_files(X: Any, kind: str | None = None) -> list[Found]:
    """Return the files of a path, pattern, folder or list of them, in the order of their rows.

    With a kind, the names of the files need not tell it.

    Raises
    ------
    FileNotFoundError
        No file has the path, matches the pattern, or is in the folder.
    ValueError
        The suffix of a file is unknown, or a file is there twice.
    """
    given = [os.fsdecode(one) for one in ([X] if is_path(X) else X)]
    found = [file for one in given for file in _expand(os.path.expanduser(one), kind)]
    if len(given) > 1:
        base = os.path.commonpath([os.path.dirname(os.path.abspath(file.path)) for file in found])
        found = [Found(file.path, base) for file in found]
    _refuse_twice(found)
    return found


def file_kind(path: str) -> tuple[str, str | None]:
    """Return the kind of a file, and its compression or None; raise ValueError if unknown."""
    stem, suffix = os.path.splitext(path.lower())
    compression = COMPRESSED.get(suffix)
    if compression is not None:
        suffix = os.path.splitext(stem)[1]
    kind = FORMATS.get(suffix)
    if kind is None or (compression is not None and kind not in TEXT_KINDS):
        raise ValueError(
            f"The file {path!r} is of an unknown kind: its name must end in one of "
            f"{', '.join(FORMATS)}, or for text also in {' or '.join(COMPRESSED)} after "
            "that. Rename the file, or pass a pyarrow.dataset.Dataset."
        )
    return kind, compression


def compression_of(path: str) -> str | None:
    """Return the compression of a file by its name, or None."""
    return COMPRESSED.get(os.path.splitext(path.lower())[1])


def partition_keys(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Return the hive partition keys of each file by name, as scalars of PyArrow.

    They are in the names of folders, such as year=2024. Keys are integers where all of them can
    be, and strings otherwise.
    """
    below = [os.path.relpath(os.path.dirname(file.path) or ".", file.base or ".") for file in found]
    names = [
        [folder.partition("=")[0] for folder in folders.split(os.sep) if "=" in folder]
        for folders in below
    ]
    known = dict.fromkeys(name for of_file in names for name in of_file)
    if not known:
        return [{} for _ in found]
    import pyarrow
    from pyarrow import dataset  # takes a tenth of a second: it imports pandas

    reader = dataset.HivePartitioning(pyarrow.schema([(name, pyarrow.string()) for name in known]))
    keys = [
        dataset.get_partition_keys(reader.parse(folders.replace(os.sep, "/") + "/"))
        for folders in below
    ]
    typed = {name: _key_column([of_file.get(name) for of_file in keys]) for name in known}
    return [{name: typed[name][i] for name in of_file} for i, of_file in enumerate(names)]


def _key_column(keys: Sequence[str | None]) -> Any:
    """Return partition keys as an array of the first type that takes all of them."""
    import pyarrow

    column = pyarrow.array(keys, pyarrow.string())
    for kind in (pyarrow.int32(), pyarrow.int64()):
        with contextlib.suppress(pyarrow.ArrowInvalid):
            return column.cast(kind)
    return column


def _expand(path: str, kind: str | None) -> list[Found]:
    """Return the files of one path, pattern or folder."""
    if os.path.isdir(path):
        return _in_folder(path, path)
    if os.path.exists(path):
        if kind is None:
            file_kind(path)
        return [Found(path, os.path.dirname(path))]
    if "://" in path:
        raise ValueError(
            f"{path!r} is an address, but only local files are read by path. Pass a "
            "pyarrow.dataset.Dataset, which reads from file systems of other machines."
        )
    if not glob.has_magic(path):
        raise FileNotFoundError(f"There is no file or folder {path!r}. Check the path.")
    matches = sorted(glob.glob(path, recursive=True), key=_natural)
    base = _fixed_folder(path)
    found: list[Found] = []
    for match in matches:
        if os.path.isdir(match):
            # "**" matches a folder and also the files in it.
            found += [] if "**" in path else _in_folder(match, base)
        else:
            if kind is None:
                file_kind(match)
            found.append(Found(match, base))
    if not found:
        raise FileNotFoundError(f"No file matches the pattern {path!r}. Check the pattern.")
    return found


def _in_folder(folder: str, base: str) -> list[Found]:
    """Return the files of known kinds in a folder, and in the folders below it."""
    paths = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        paths += [os.path.join(parent, name) for name in names if _is_data(name)]
    if not paths:
        raise FileNotFoundError(
            f"The folder {folder!r} has no file whose name ends in one of {', '.join(FORMATS)}. "
            "Check the path; names that begin with a dot or an underscore are left out."
        )
    return [Found(path, base) for path in sorted(paths, key=_natural)]


def _is_data(name: str) -> bool:
    stem, suffix = os.path.splitext(name.lower())
    if suffix in COMPRESSED:
        suffix = os.path.splitext(stem)[1]
    return suffix in FORMATS and not name.startswith((".", "_"))


def _fixed_folder(pattern: str) -> str:
    """Return the folder of a pattern before its first wildcard."""
    folder = os.path.dirname(pattern)
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)
    return folder


def _natural(path: str) -> list[tuple[Any, ...]]:
    """Return a sort key by which part2 comes before part10, folder by folder."""
    return [
        tuple((1, int(piece), piece) if piece.isdecimal() else (0, 0, piece) for piece in pieces)
        for pieces in (re.split(r"(\d+)", name) for name in path.split(os.sep))
    ]


def _refuse_twice(found: Sequence[Found]) -> None:
    paths: Iterable[str] = (os.path.realpath(file.path) for file in found)
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise ValueError(
                f"The file {path!r} is there twice, so its rows would be, too. Pass each file once."
            )
        seen.add(path)
