"""Numbers, labels and columns <-> values of the readable JSON in `json_model`, with checks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.levels import Levels
from arboost.data.schema import Schema

__all__ = [
    "as_integer",
    "as_integers",
    "as_list",
    "as_string",
    "classes_of",
    "feature_of",
    "labels_of",
    "number",
    "numbers",
    "read_classes",
    "read_levels",
    "read_number",
    "read_numbers",
]

_LABEL_TYPES = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
)


def number(x: float) -> float | str:
    """Return a number for JSON, which has no nonfinite numbers: these become strings."""
    return float(x) if math.isfinite(x) else str(float(x))


def numbers(array: NDArray[Any]) -> list[float | str]:
    """Return numbers for JSON."""
    return [number(x) for x in array.tolist()]


def read_number(given: object) -> float:
    """Return the number of a result of `number`."""
    if type(given) is float or type(given) is int:
        return float(given)
    if given in ("nan", "inf", "-inf"):
        return float(str(given))
    raise TypeError(f"{given!r} where a number is due")


def read_numbers(given: object) -> NDArray[np.float64]:
    """Return the array of a result of `numbers`."""
    return np.array([read_number(x) for x in as_list(given)], np.float64)


def as_integer(given: object) -> int:
    """Return an integer; raise TypeError for any other type."""
    if type(given) is not int:
        raise TypeError(f"{given!r} where an integer is due")
    return given


def as_list(given: object) -> list[Any]:
    """Return a list; raise TypeError for any other type."""
    if not isinstance(given, list):
        raise TypeError(f"{given!r} where a list is due")
    return given


def as_integers(given: object, dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """Return an array of integers; raise TypeError for others, OverflowError beyond the dtype."""
    return np.array([as_integer(x) for x in as_list(given)], dtype)


def classes_of(described: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the labels of a file's header, with values in place of sections."""

    def full(part: dict[str, Any], section: str) -> dict[str, Any]:
        if part:
            return part
        labels = arrays[section]
        values = numbers(labels) if labels.dtype.kind == "f" else labels.tolist()
        return {"dtype": labels.dtype.newbyteorder("<").str, "values": values}

    if isinstance(described, list):
        return [full(part, f"classes {i}") for i, part in enumerate(described)]
    return None if described is None else full(described, "classes")


def read_classes(described: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return the labels for a file's header; numbers go to the arrays."""

    def stored(part: dict[str, Any], section: str) -> dict[str, Any]:
        dtype, values = part["dtype"], as_list(part["values"])
        if type(dtype) is not str:
            raise TypeError(f"labels of type {dtype!r}")
        if dtype.startswith(("<U", "|O")):
            return part
        if dtype not in _LABEL_TYPES:
            raise ValueError(f"labels of type {dtype!r}")
        kind = np.dtype(dtype).kind
        if kind == "f":
            arrays[section] = read_numbers(values).astype(dtype)
        else:
            expected = bool if kind == "b" else int
            if not all(type(value) is expected for value in values):
                raise TypeError(f"labels that are not of type {dtype!r}")
            arrays[section] = np.array(values, dtype)
        return {}

    if isinstance(described, list):
        return [stored(part, f"classes {i}") for i, part in enumerate(described)]
    return None if described is None else stored(described, "classes")


def feature_of(schema: Schema, feature: int) -> dict[str, Any]:
    """Return the description of a column: name, unit and levels."""
    described: dict[str, Any] = {}
    if schema.names is not None:
        described["name"] = schema.names[feature]
    if schema.unit_of(feature):
        described["unit"] = schema.unit_of(feature)
    if schema.format_of(feature):
        described["format"] = schema.format_of(feature)
    if feature >= schema.n_columns:
        described["part"] = list(schema.parts[feature - schema.n_columns])
    levels = schema.levels_of(feature)
    if levels is not None:
        described["levels"] = {"kind": levels.kind, "values": labels_of(levels)}
        if levels.statistic is not None:
            described["levels"]["statistic"] = numbers(levels.statistic)
        if levels.groups is not None:
            assert levels.group_means is not None
            assert levels.shared_groups is not None
            described["levels"] |= {
                "groups": levels.groups.tolist(),
                "group_means": numbers(levels.group_means),
                "shared_groups": levels.shared_groups.tolist(),
            }
        if levels.ranks is not None:
            described["levels"]["ranks"] = levels.ranks.tolist()
    return described


def labels_of(levels: Levels) -> list[Any]:
    """Return the levels; bytes that are not UTF-8 become surrogates, so that none is lost."""
    if levels.offsets is None:
        return numbers(levels.values)
    data, ends = levels.values.tobytes(), levels.offsets.tolist()
    return [
        data[begin:end].decode("utf-8", "surrogateescape")
        for begin, end in itertools.pairwise(ends)
    ]


def read_levels(described: Mapping[str, Any] | None) -> Levels | None:
    """Return the levels of a column, not yet validated by their schema."""
    if described is None:
        return None
    kind = described["kind"]
    encoding: dict[str, Any] = {
        part: read_numbers(described[part])
        for part in ("statistic", "group_means")
        if part in described
    }
    integers: dict[str, Any] = {"groups": np.uint8, "shared_groups": np.uint8, "ranks": np.int32}
    for part, dtype in integers.items():
        if part in described:
            encoding[part] = as_integers(described[part], dtype)
    if kind != "string":
        return Levels(kind, read_numbers(described["values"]), **encoding)
    texts = [
        as_string(text).encode("utf-8", "surrogateescape") for text in as_list(described["values"])
    ]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)])
    joined = np.frombuffer(b"".join(texts), np.uint8)
    return Levels(kind, joined, offsets.astype(np.int64), **encoding)


def as_string(given: object) -> str:
    """Return a string; raise TypeError for any other type."""
    if type(given) is not str:
        raise TypeError(f"{given!r} where a string is due")
    return given
