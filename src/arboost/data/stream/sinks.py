"""Codes of parts of a table -> codes of all rows: in memory, or in a file without a name.

A file without a name goes with the last object that reads it, even after the process was killed.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from arboost.backend import core
from arboost.data.stream.memory import shown_bytes

__all__ = ["FileSink", "MemorySink", "check_room", "naming_folder", "scratch_folder", "sink_like"]

_OTHER = "choose another folder by the environment variable TMPDIR, or raise memory_limit"
_WINDOW = 8 << 20  # bytes of the rows that are in memory at once


class MemorySink:
    """Codes in memory."""

    rows_only: ClassVar[bool] = False

    def __init__(self, n_rows: int, n_threads: int) -> None:
        self._parts, self._n_threads = core.CodesParts(n_rows), n_threads

    def append(self, codes: core.Codes) -> None:
        """Add the codes of the next rows."""
        self._parts.append(codes, self._n_threads)

    def finish(self) -> core.Codes:
        """Return the codes of all rows."""
        return self._parts.finish()


class FileSink:
    """Codes in a file without a name, in the folder for scratch files.

    Parameters
    ----------
    n_rows, window_rows : int
        Number of all rows, and of those that are in memory at once later.
    n_bytes : int
        Size of the file, an upper bound.
    """

    rows_only: ClassVar[bool] = True

    def __init__(self, n_rows: int, window_rows: int, n_bytes: int) -> None:
        self._n_rows, self._n_bytes = n_rows, n_bytes
        self._folder = scratch_folder()
        with naming_folder(self._folder, n_rows, n_bytes):
            check_room(self._folder, n_bytes)
            with tempfile.TemporaryFile(dir=self._folder) as file:
                self._writer = core.CodesWriter(file.fileno(), window_rows)

    def append(self, codes: core.Codes) -> None:
        """Add the codes of the next rows."""
        with naming_folder(self._folder, self._n_rows, self._n_bytes):
            self._writer.append(codes)

    def finish(self) -> core.Codes:
        """Return the codes of all rows, which stay in the file."""
        with naming_folder(self._folder, self._n_rows, self._n_bytes):
            return self._writer.finish()


def sink_like(codes: core.Codes, n_rows: int, n_threads: int) -> MemorySink | FileSink:
    """Return a sink in the place of other codes, for so many rows of their features."""
    if not codes.is_stored or n_rows == 0:
        return MemorySink(n_rows, n_threads)
    stride = (int(codes.n_features) * int(codes.width) + 7) // 8 * 8
    return FileSink(n_rows, max(64, _WINDOW // stride // 64 * 64), n_rows * stride + (1 << 20))


def check_room(folder: str, n_bytes: int) -> None:
    """Raise OSError where the disk of a folder has not so much room."""
    if shutil.disk_usage(folder).free < n_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def naming_folder(folder: str, n_rows: int, n_bytes: int, other: str = _OTHER) -> Iterator[None]:
    """Put the folder, the needed bytes and advice into errors of the file system."""
    try:
        yield
    except OSError as error:
        number = error.errno or errno.EIO
        message = (
            f"{os.strerror(number)}: the bins of {n_rows:,} rows need {shown_bytes(n_bytes)} in "
            f"the folder {folder!r}. Free disk space, {other}"
        )
        raise OSError(number, message) from error


def scratch_folder() -> str:
    """Return the folder for scratch files; not one in memory where there is another."""
    folder = tempfile.gettempdir()
    if "TMPDIR" not in os.environ and _is_in_memory(folder):
        others = [one for one in ("/var/tmp", os.getcwd()) if os.access(one, os.W_OK)]
        return next((one for one in others if not _is_in_memory(one)), folder)
    return folder


def _is_in_memory(folder: str) -> bool:
    """Whether a folder is on a file system in memory."""
    if sys.platform != "linux":
        return False
    found, real = "", os.path.realpath(folder)
    kinds = {}
    with suppress(OSError):
        for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
            _, mount, kind = line.split()[:3]
            kinds[mount] = kind
            if (real + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(found):
                found = mount
    return kinds.get(found) in ("tmpfs", "ramfs")
