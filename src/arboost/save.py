"""Model <-> versioned bytes, as `container` lays them out. No pickle and nothing executable inside.

The same model gives the same bytes: there is no date, no path, and nothing of the fit that cannot
change the model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.answers import Labels
from arboost.compact import from_sections, to_sections
from arboost.container import Format, errors_named, pack, read_file, unpack, write_file
from arboost.levels import Levels
from arboost.model import ALL_DTYPES, FOREST_DTYPES, Forest, Model
from arboost.schema import Schema

__all__ = ["FORMAT", "from_bytes", "read_model", "to_bytes", "write_model"]

FORMAT = Format(
    what="model",
    magic=b"\x91ARB\r\n\x1a\n",
    version=3,
    oldest_reader=3,
    source="Give the path of a file that `save` wrote.",
    remedy="Save or copy it again.",
)
# Version 2 added sets of levels, and what a schema says of columns beside their names; version 3
# medians, means and several targets. A model has the lowest version that has all it needs, and is
# readable since then.
_OF_COLUMNS = replace(FORMAT, version=2, oldest_reader=2)
_PLAIN = replace(FORMAT, version=1, oldest_reader=1)
_PLAIN_SCHEMA = {"names", "n_features"}

_MODEL_FIELDS = ("kind", "link", "trees_per_round", "params")


def to_bytes(model: Model) -> bytes:
    """Return the model as the bytes of a model file."""
    header: dict[str, Any] = {name: getattr(model, name) for name in _MODEL_FIELDS}
    arrays: dict[str, NDArray[Any]]
    if model.combine == "mean":
        model.validate()  # what is broken has no compact form
        arrays = to_sections(model.forest)
        header["width"] = model.forest.width
    else:
        names = ALL_DTYPES if model.forest.has_sets else FOREST_DTYPES
        arrays = {name: getattr(model.forest, name) for name in names}
    arrays["base_score"] = model.base_score
    header["schema"] = _describe_schema(model.schema, arrays)
    header["classes"] = _describe_classes(model.classes, arrays)
    if model.combine != "sum":
        header["combine"] = model.combine
        if model.combine == "median":
            arrays["tree_weights"] = model.tree_weights
        if model.targets:
            header["targets"] = model.targets
        return pack(FORMAT, header, arrays)
    is_plain = not model.forest.has_sets and header["schema"].keys() == _PLAIN_SCHEMA
    return pack(_PLAIN if is_plain else _OF_COLUMNS, header, arrays)


def from_bytes(data: bytes, name: str = "the data") -> Model:
    """Return the model that the bytes hold; `name` is what errors call them.

    Raises
    ------
    ModelFileError
        The bytes are no model, are damaged, or need a newer version.
    """
    with errors_named(FORMAT, name):
        header, arrays = unpack(FORMAT, data)
        model = _assemble(header, arrays)
        model.validate()
    return model


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write the model to a file; a failure leaves the file that was there before."""
    write_file(path, to_bytes(model))


def read_model(path: str | os.PathLike[str]) -> Model:
    """Return the model in a file; raise ModelFileError where it holds none, or a damaged one."""
    return from_bytes(read_file(FORMAT, path), f"the model file {os.fsdecode(path)!r}")


def _describe_classes(
    classes: Labels | tuple[Labels, ...] | None, arrays: dict[str, NDArray[Any]]
) -> dict[str, Any] | list[dict[str, Any]] | None:
    """Return the labels for the header, of several targets in a list."""
    if classes is None:
        return None
    if isinstance(classes, tuple):
        return [_describe_labels(part, f"classes {i}", arrays) for i, part in enumerate(classes)]
    return _describe_labels(classes, "classes", arrays)


def _describe_labels(
    labels: Labels, section: str, arrays: dict[str, NDArray[Any]]
) -> dict[str, Any]:
    """Return the labels for the header; numbers go to a section, so that no bit is lost."""
    if labels.dtype.kind in "OU":
        return {"dtype": labels.dtype.newbyteorder("<").str, "values": labels.tolist()}
    arrays[section] = labels
    return {}


def _assemble(header: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    values = {name: header[name] for name in _MODEL_FIELDS}
    values["combine"] = header.get("combine", "sum")
    scores = ["base_score", *(["tree_weights"] if "tree_weights" in arrays else [])]
    for name in scores:
        if arrays[name].dtype != np.float64:
            raise ValueError(f"{name} of type {arrays[name].dtype}")
    for name, expected in (
        ("kind", str),
        ("link", str),
        ("trees_per_round", int),
        ("params", dict),
        ("combine", str),
    ):
        if type(values[name]) is not expected:
            raise TypeError(f"{name}={values[name]!r}")
    values |= {name: arrays[name] for name in scores}
    values["targets"] = _read_targets(header.get("targets", []))
    return Model(
        forest=_read_forest(header, arrays),
        schema=_read_schema(header["schema"], arrays),
        classes=_read_classes(header["classes"], arrays),
        **values,
    )


def _read_forest(header: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> Forest:
    if "width" in header:
        if type(header["width"]) is not int or header["width"] < 1:
            raise ValueError(f"leaves of width {header['width']!r}")
        return from_sections(arrays, header["width"])
    dtypes = ALL_DTYPES if "level_set" in arrays else FOREST_DTYPES
    for name, dtype in dtypes.items():
        if arrays[name].dtype != dtype:
            raise ValueError(f"{name} of type {arrays[name].dtype}")
    return Forest(**{name: arrays[name] for name in dtypes})


def _describe_schema(schema: Schema, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the schema for the header; what only some models have is left out in others."""
    described: dict[str, Any] = {"names": schema.names, "n_features": schema.n_features}
    if not math.isnan(schema.missing):
        described["missing"] = schema.missing
    if schema.units:
        described["units"] = schema.units
    if schema.levels:
        described["levels"] = [
            None if levels is None else levels.describe(f"levels {feature}", arrays)
            for feature, levels in enumerate(schema.levels)
        ]
    return described


def _read_schema(described: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> Schema:
    names, n_features = described["names"], described["n_features"]
    if type(n_features) is not int or n_features < 0:
        raise ValueError(f"{n_features!r} features")
    if names is not None and (
        not isinstance(names, list) or not all(type(name) is str for name in names)
    ):
        raise TypeError("feature names that are no list of strings")
    missing, units = described.get("missing", math.nan), described.get("units", [])
    if type(missing) is not float or not isinstance(units, list):
        raise TypeError(f"missing={missing!r} and units={units!r}")
    levels = [
        None if kind is None else Levels.read(kind, f"levels {feature}", arrays)
        for feature, kind in enumerate(described.get("levels", []))
    ]
    schema = Schema(
        names=None if names is None else tuple(names),
        n_features=n_features,
        levels=tuple(levels),
        missing=missing,
        units=tuple(units),
    )
    schema.validate()
    return schema


def _read_targets(described: object) -> tuple[int, ...]:
    if not isinstance(described, list) or not all(type(part) is int for part in described):
        raise TypeError(f"targets={described!r}")
    return tuple(described)


def _read_classes(
    described: Mapping[str, Any] | list[Mapping[str, Any]] | None,
    arrays: dict[str, NDArray[Any]],
) -> Labels | tuple[Labels, ...] | None:
    if described is None:
        return None
    if isinstance(described, list):
        parts = [_read_labels(part, f"classes {i}", arrays) for i, part in enumerate(described)]
        return tuple(parts)
    return _read_labels(described, "classes", arrays)


def _read_labels(
    described: Mapping[str, Any], section: str, arrays: dict[str, NDArray[Any]]
) -> Labels:
    if "values" not in described:
        return arrays[section]
    dtype, values = described["dtype"], described["values"]
    if not isinstance(values, list) or not all(type(value) is str for value in values):
        raise TypeError("class labels that are no list of strings")
    if dtype == "|O":
        return np.array(values, dtype=object)
    labels = np.array(values, dtype=str)
    # numpy's strings have a width, and predictions keep the one that the labels had in fit. The
    # bound keeps a hostile width from asking for memory.
    width = int(dtype.removeprefix("<U"))
    needed = labels.dtype.itemsize // np.dtype("U1").itemsize
    if not needed <= width <= needed + 2**16:
        raise ValueError(f"class labels of type {dtype!r}")
    return labels.astype(f"U{width}")
