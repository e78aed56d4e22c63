"""Checks of the metadata that users add to models: JSON values by name, of bounded size."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping
from typing import Any

__all__ = ["check_metadata", "metadata_text"]

_MOST_CHARACTERS = 2**20
_MOST_LEVELS = 20
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # integers


def check_metadata(metadata: object) -> None:
    """Raise TypeError or ValueError unless the value is a dict of JSON values by name.

    Texts, and the numbers of values and keys, are bounded together, so that a file that holds them
    stays readable. The message has the key of a refused value.
    """
    if not isinstance(metadata, dict):
        raise TypeError(f"metadata={reprlib.repr(metadata)} is not allowed: it must be a dict.")
    size, pending = 0, list[tuple[str, Any, int]]([("metadata", metadata, 0)])
    while pending:
        where, value, level = pending.pop()
        if isinstance(value, str):
            _check_text(where, value)
            size += len(value)
        elif isinstance(value, dict | list):
            size += len(value)
            if level > _MOST_LEVELS:
                raise ValueError(
                    f"{where} is not allowed: metadata has at most {_MOST_LEVELS} levels of lists "
                    "and dicts. Use fewer, or a text."
                )
        elif not _is_scalar(value):
            raise TypeError(
                f"{where}={_shown(value)} is not allowed: metadata is saved as JSON. Use "
                "None, True, False, a finite number (integers of 64 bits), a string, a list or a "
                "dict."
            )
        if size > _MOST_CHARACTERS:
            raise ValueError(
                f"{where} is not allowed: metadata has at most {_MOST_CHARACTERS:,} characters and "
                "values in all. Save larger data in a file, and its name here."
            )
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise TypeError(
                        f"the key {reprlib.repr(key)} in {where} is not allowed: keys of metadata "
                        "are strings."
                    )
                _check_text(f"a key in {where}", key)
                size += len(key)
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            pending += [(f"{where}[{reprlib.repr(key)}]", one, level + 1) for key, one in items]


def metadata_text(metadata: Mapping[str, Any], indent: int | None = None) -> str:
    """Return metadata as JSON in ASCII, keys sorted, after `check_metadata`."""
    check_metadata(metadata)
    return json.dumps(metadata, sort_keys=True, allow_nan=False, indent=indent)


def _check_text(where: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{where} is not allowed: {reprlib.repr(text)} has a surrogate, half a character. "
            "Decode the text before."
        ) from None


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # of an integer with more digits than Python writes
        return f"a long {type(value).__name__}"


def _is_scalar(value: object) -> bool:
    if isinstance(value, int):
        return _SMALLEST <= value <= _LARGEST
    return value is None or (isinstance(value, float) and math.isfinite(value))
