"""Atomic writes of files: a crash, a kill or a full disk leaves the previous file.

The bytes go to a scratch file in the same folder, reach the disk, and only then take the name:

    model.arb.3f9c01b2d4e5.tmp  ──rename──▶  model.arb

A file that is replaced keeps its permissions, and its owner where the system allows; a new one has
those of the process's umask.

A writer holds a lock, model.arb.3f9c01b2d4e5.tmp.lock, from before to after. The system releases it
when the process ends: a scratch file whose lock is free is an orphan of a killed writer.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO

_TOKEN_BYTES = 6


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file; a failure leaves the file that was there before.

    Raises
    ------
    OSError
        The file cannot be written; the message has the path, the cause and advice.
    """
    with replaced_file(path) as file, write_errors(path):
        file.write(data)


@contextlib.contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a scratch file, which takes the name of a file at the end of the block.

    An error in the block, Ctrl-C included, leaves the file that was there before, and no other.

    Raises
    ------
    OSError
        As `write_file`; the block itself has to use `write_errors`.
    """
    name = os.fsdecode(path)
    target = os.path.realpath(name)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"cannot write {name!r}: the folder {folder!r} does not exist. Make the folder first."
        )
    if os.path.isdir(target):
        raise IsADirectoryError(f"cannot write {name!r}: it is a folder. Give the path of a file.")
    if os.path.exists(target) and not os.path.isfile(target):
        # The rename would put a file in the place of a device or a pipe.
        raise OSError(
            f"cannot write {name!r}: it is a device or a pipe, and the file would take its place. "
            "Give the path of a file."
        )
    scratch = f"{target}.{secrets.token_hex(_TOKEN_BYTES)}.tmp"
    with file_lock(f"{scratch}.lock", removes=True):
        with write_errors(path):
            file = open(scratch, "xb")  # noqa: SIM115  # closed before the rename
        try:
            _copy_permissions(target, file)
            yield file
            with write_errors(path):
                file.flush()
                os.fsync(file.fileno())
                file.close()  # Windows renames no open file
                os.replace(scratch, target)
        except BaseException:
            with contextlib.suppress(OSError):  # of a buffer that cannot be written, too
                file.close()
            with contextlib.suppress(OSError):
                os.unlink(scratch)
            raise
    _sync_folder(folder)


@contextlib.contextmanager
def file_lock(path: str, *, removes: bool = False) -> Iterator[None]:
    """Hold the lock of a path, and wait for it; a file system without locks grants it to all.

    `removes` deletes the file of the lock at the end: nobody else is to wait for it.
    """
    from filelock import FileLock

    lock = FileLock(path)
    with contextlib.suppress(OSError, NotImplementedError):
        lock.acquire()
    try:
        yield
    finally:
        if removes:
            with contextlib.suppress(OSError):  # Windows deletes it on release
                os.unlink(path)
        lock.release()


@contextlib.contextmanager
def write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Give errors of the operating system the path that the user knows, and advice."""
    try:
        yield
    except OSError as error:
        error.filename = os.fsdecode(path)
        error.strerror = (
            f"{error.strerror} (an existing file is unchanged; free disk space, or write to "
            "another path)"
        )
        raise


def remove_orphans(path: str | os.PathLike[str]) -> None:
    """Delete the scratch files of killed writers of a path; those of live writers stay."""
    folder, name = os.path.split(os.path.realpath(os.fsdecode(path)))
    pattern = re.compile(rf"({re.escape(name)}\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.tmp)(\.lock)?")
    with contextlib.suppress(OSError):  # a tidy folder is not worth an error
        scratch_names = {match[1] for match in map(pattern.fullmatch, os.listdir(folder)) if match}
        for scratch in scratch_names:
            _remove_orphan(os.path.join(folder, scratch))


def _remove_orphan(scratch: str) -> None:
    from filelock import FileLock

    with (
        contextlib.suppress(OSError, NotImplementedError),  # none, or a writer has it
        FileLock(f"{scratch}.lock", timeout=0),
    ):
        for path in (scratch, f"{scratch}.lock"):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _copy_permissions(target: str, file: BinaryIO) -> None:
    """Give an empty scratch file the owner and the permissions of the file that it replaces."""
    if sys.platform == "win32" or not os.path.exists(target):
        return
    status = os.stat(target)
    with contextlib.suppress(OSError):  # only root gives files to other users
        os.fchown(file.fileno(), status.st_uid, status.st_gid)
    with contextlib.suppress(OSError):  # a file system without permissions
        os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))


def _sync_folder(folder: str) -> None:
    # Without this a power failure can restore the old file. Not every system can open a folder.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
