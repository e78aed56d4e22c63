"""Columns that name the row: keys and row numbers, which tell nothing about new rows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from arboost.cli.console import Console
from arboost.data.levels import MAX_SET_LEVELS

__all__ = ["say_keys"]

_FIRST = 1_000  # rows that are looked at before all others


def say_keys(console: Console, table: Any, features: Sequence[str]) -> None:
    """Name the features that hold another whole number in each row; a fit uses them.

    Strings that never occur twice are left out by the fit itself, which says so.
    """
    kinds = {name: kind for name in features if (kind := _kind(table.column(name)))}
    if not kinds:
        return
    shown = " and ".join(
        f"{', '.join(names)} {text if len(names) > 1 else text_of_one}"
        for kind, text_of_one, text in (
            ("number", "is a row number", "are row numbers"),
            ("key", "has another whole number in each row", "have other whole numbers in each row"),
        )
        if (names := [name for name, found in kinds.items() if found == kind])
    )
    option = shlex.quote(",".join(kinds))
    console.warn(
        f"{shown}: key-like columns say nothing about new rows; --ignore {option} leaves "
        f"{'them' if len(kinds) > 1 else 'it'} out"
    )


def _kind(column: Any) -> str:
    """Return "number" for a row number, "key" for other distinct whole numbers, else nothing."""
    from pyarrow import compute, types

    kind = column.type
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if not is_number or len(column) - column.null_count <= MAX_SET_LEVELS:
        return ""
    for part in (column.slice(0, _FIRST), column):
        values = compute.drop_null(part).to_numpy()
        values = values[np.isfinite(values)]
        is_distinct = len(values) and len(np.unique(values)) == len(values)
        if not is_distinct or not (values == np.floor(values)).all():
            return ""
    steps = np.diff(values.astype(np.float64))
    return "number" if len(values) == len(column) and (np.abs(steps) == 1).all() else "key"
