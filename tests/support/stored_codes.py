"""Codes of all tables in files, as if no table fit in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from arboost.backend import core


@contextmanager
def codes_in_files(window_rows: int, sample_bytes: int = 0) -> Iterator[list[core.Codes]]:
    """Write the codes of tables of full columns to files that are read in windows; list them.

    Samples of up to `sample_bytes` are copied to memory.
    """
    made: list[core.Codes] = []
    encode, params = core.encode, core.TreeParams

    def encode_to_file(*args: Any, **kwargs: Any) -> core.Codes:
        codes = encode(*args, **kwargs)
        if codes.sparse_features or codes.width > 2:  # ranks
            return codes
        with tempfile.TemporaryFile() as file:
            writer = core.CodesWriter(file.fileno(), window_rows)
            writer.append(codes)
            made.append(writer.finish())
        return made[-1]

    def limited() -> core.TreeParams:
        found = params()
        found.sample_bytes = sample_bytes
        return found

    with mock.patch.multiple(core, encode=encode_to_file, TreeParams=limited):
        yield made
