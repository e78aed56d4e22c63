"""Model <-> versioned bytes, as `container` lays them out. No pickle and nothing executable inside.

The same model gives the same bytes: there is no date, no path, and nothing of the fit that cannot
change the model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.container import Format, errors_named, pack, read_file, unpack, write_file
from arboost.ingest import Schema
from arboost.model import ALL_DTYPES, FOREST_DTYPES, SET_DTYPES, Forest, Model

__all__ = ["FORMAT", "from_bytes", "read_model", "to_bytes", "write_model"]

FORMAT = Format(
    what="model",
    magic=b"\x91ARB\r\n\x1a\n",
    version=2,
    oldest_reader=2,
    source="Give the path of a file that `save` wrote.",
    remedy="Save or copy it again.",
)
# Version 2 added sets of levels. A model without them is as it was, and readable by all.
_WITHOUT_LEVELS = replace(FORMAT, version=1, oldest_reader=1)

_MODEL_FIELDS = ("kind", "link", "trees_per_round", "params")


def to_bytes(model: Model) -> bytes:
    """Return the model as the bytes of a model file."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(model.forest, name) for name in FOREST_DTYPES}
    arrays["base_score"] = model.base_score
    has_levels = model.forest.has_sets
    if has_levels:
        arrays |= {name: getattr(model.forest, name) for name in SET_DTYPES}
    header = {name: getattr(model, name) for name in _MODEL_FIELDS}
    header["schema"] = {"names": model.schema.names, "n_features": model.schema.n_features}
    header["classes"] = _describe_classes(model.classes, arrays)
    return pack(FORMAT if has_levels else _WITHOUT_LEVELS, header, arrays)


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
    classes: NDArray[Any] | None, arrays: dict[str, NDArray[Any]]
) -> dict[str, Any] | None:
    """Return the labels for the header; numbers go to a section, so that no bit is lost."""
    if classes is None:
        return None
    if classes.dtype.kind in "OU":
        return {"dtype": classes.dtype.newbyteorder("<").str, "values": classes.tolist()}
    arrays["classes"] = classes
    return {}


def _assemble(header: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    dtypes = ALL_DTYPES if "level_set" in arrays else FOREST_DTYPES
    for name, dtype in dtypes.items():
        if arrays[name].dtype != dtype:
            raise ValueError(f"{name} of type {arrays[name].dtype}")
    if arrays["base_score"].dtype != np.float64:
        raise ValueError(f"base_score of type {arrays['base_score'].dtype}")
    values = {name: header[name] for name in _MODEL_FIELDS}
    for name, expected in (
        ("kind", str),
        ("link", str),
        ("trees_per_round", int),
        ("params", dict),
    ):
        if type(values[name]) is not expected:
            raise TypeError(f"{name}={values[name]!r}")
    return Model(
        forest=Forest(**{name: arrays[name] for name in dtypes}),
        schema=_read_schema(header["schema"]),
        base_score=arrays["base_score"],
        classes=_read_classes(header["classes"], arrays),
        **values,
    )


def _read_schema(described: Mapping[str, Any]) -> Schema:
    names, n_features = described["names"], described["n_features"]
    if type(n_features) is not int or n_features < 0:
        raise ValueError(f"{n_features!r} features")
    if names is None:
        return Schema(names=None, n_features=n_features)
    if not isinstance(names, list) or not all(type(name) is str for name in names):
        raise TypeError("feature names that are no list of strings")
    return Schema(names=tuple(names), n_features=n_features)


def _read_classes(
    described: Mapping[str, Any] | None, arrays: dict[str, NDArray[Any]]
) -> NDArray[Any] | None:
    if described is None:
        return None
    if "values" not in described:
        return arrays["classes"]
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
