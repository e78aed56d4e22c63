"""The standard input as a temporary file, which is read like any other."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress

import click

from arboost.cli.errors import DataFailure, UsageFailure

__all__ = ["STANDARD_INPUT", "stored_input"]

STANDARD_INPUT = "-"
_META = "arboost.input"
_BLOCK_BYTES = 1 << 20
_COMPRESSED = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}


def stored_input(kind: str | None, progress: Callable[[int, int], None] | None) -> str:
    """Return the path of a file with the bytes of the standard input.

    A file can be read again: a fault is searched, and batches are read twice. A second call in the
    same command returns the same file; the end of the command deletes it.
    """
    ctx = click.get_current_context()
    if _META in ctx.meta:
        known: str = ctx.meta[_META]
        return known
    if kind is None:
        raise UsageFailure(
            "the kind of the standard input is unknown: add --format csv, or another kind."
        )
    stream = None if sys.stdin is None else sys.stdin.buffer
    if stream is None or sys.stdin.isatty():
        raise UsageFailure("- is the standard input, but nothing is piped into it.")
    first = stream.read(_BLOCK_BYTES)
    if not first:
        raise DataFailure("the standard input is empty. Pipe a table into it.")
    suffix = next((end for magic, end in _COMPRESSED.items() if first.startswith(magic)), "")
    handle, path = tempfile.mkstemp(suffix=f".{kind}{suffix}", prefix="arboost-input-")
    ctx.call_on_close(lambda: _remove(path))
    done = 0
    with open(handle, "wb") as file:
        while first:
            file.write(first)
            done += len(first)
            if progress is not None:
                progress(done, 0)
            first = stream.read(_BLOCK_BYTES)
    ctx.meta[_META] = path
    return path


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
