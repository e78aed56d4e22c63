"""Model <-> versioned bytes of a `container`. No pickle and nothing executable inside.

The same model gives the same bytes: there is no date, no path, and no setting of the fit that
changes neither the model nor its metadata.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.levels import Levels
from arboost.data.schema import Schema
from arboost.losses.links import Labels
from arboost.models.files import container, packed_trees
from arboost.models.model import Model
from arboost.trees.forest import ALL_DTYPES, FOREST_DTYPES, Forest
from arboost.trees.leaf_distributions import DTYPES, LeafDistributions
from arboost.write import remove_orphans, write_file

# Version 2 added level sets, and levels, units and missing values of the schema; version 3 medians,
# packed means and several targets; version 4 packed trees of all kinds, leaf distributions, and
# metadata of the fit; version 5 groups of levels; version 6 ordered levels, derived features and
# offsets, which older readers would leave out of the scores. All versions are read, and the oldest
# that holds a model is written.
FORMAT = container.Format(
    what="model",
    magic=b"\x91ARB\r\n\x1a\n",
    version=6,
    source="Give the path of a file that `save` wrote.",
    remedy="Save or copy it again.",
)
# Ensembles of models, which `arboost.models.ensemble` reads and writes.
ENSEMBLE = replace(FORMAT, what="ensemble", magic=b"\x91ARE\r\n\x1a\n", version=1)
LAYOUTS = ("compact", "arrays")
_OLDEST_VERSION, _WITH_GROUPS = 4, 5  # format versions that are written

_MODEL_FIELDS: Mapping[str, type] = {
    "kind": str,
    "link": str,
    "trees_per_round": int,
    "params": dict,
    "combine": str,
    "provenance": dict,
}
_SCHEMA_FIELDS = ("units", "formats", "parts", "target", "offset", "row_columns")
LEAF_DTYPES = {name: dtype for name, dtype in DTYPES.items() if name != "tree_start"}


def to_bytes(model: Model, layout: str = "compact") -> bytes:
    """Bytes of a file of the model; `layout` is one of `LAYOUTS`."""
    if layout not in LAYOUTS:
        raise ValueError(
            f"layout={layout!r} is not allowed: it must be one of {', '.join(map(repr, LAYOUTS))}. "
            "Use 'compact' for a small file, 'arrays' for one that can be mapped."
        )
    model.validate()  # a broken model has no compact form, and belongs in no file
    header, arrays = describe(model)
    if model.schema.names is None and model.schema.n_features > container.FREE_FEATURES:
        # A reader takes no more columns than that from a file without a byte for each.
        n_bytes = model.schema.n_features - container.FREE_FEATURES
        arrays["unnamed features"] = np.zeros(n_bytes, np.uint8)
    if layout == "compact":
        header["width"] = model.forest.width
        arrays |= packed_trees.to_sections(model.forest)
        if model.distributions is not None:
            arrays |= packed_trees.pack_distributions(model.distributions)
    else:
        arrays |= {name: getattr(model.forest, name) for name in ALL_DTYPES}
        if model.distributions is not None:
            arrays |= {f"y {name}": getattr(model.distributions, name) for name in LEAF_DTYPES}
    kind = replace(FORMAT, version=format_version(model.schema))
    return container.pack(kind, header, arrays)


def format_version(schema: Schema) -> int:
    """Oldest format version that can hold a schema."""
    levels = [entry for entry in schema.levels if entry is not None]
    if (
        schema.offset is not None
        or schema.parts
        or any(entry.ranks is not None for entry in levels)
    ):
        return FORMAT.version
    return _WITH_GROUPS if any(entry.groups is not None for entry in levels) else _OLDEST_VERSION


def from_bytes(
    data: container.Data, name: str = "the data", budget: container.Budget | None = None
) -> Model:
    """Model in the bytes; error messages call them `name`.

    Without a memory budget, that of a larger file, it is the one of a file of these bytes.

    Raises
    ------
    ModelFormatError
        The bytes are not a model, are damaged, or need a newer version.
    """
    return _read(data, name, budget)[0]


def _read(
    data: container.Data, name: str, budget: container.Budget | None = None
) -> tuple[Model, bool]:
    """Model, and whether its trees are packed."""
    with container.naming_errors(FORMAT, name):
        header, arrays = container.unpack(FORMAT, data)
        budget = container.Budget(len(data)) if budget is None else budget
        forest = _read_forest(header, arrays, budget)
        distributions = _read_distributions(arrays, forest, budget)
        schema = read_schema(header["schema"], arrays, budget)
        model = assemble(header, schema, arrays, forest, distributions, budget)
    return model, "width" in header


def write_model(model: Model, path: str | os.PathLike[str], layout: str = "compact") -> None:
    """Write the model to a file; a failure leaves an existing file unchanged."""
    data = to_bytes(model, layout)
    remove_orphans(path)
    write_file(path, data)


def map_model(path: str | os.PathLike[str]) -> Model:
    """Model in a file, whose arrays of trees are pages of the file."""
    name = f"the model file {os.fsdecode(path)!r}"
    model, is_packed = _read(container.map_file(FORMAT, path), name)
    if is_packed:
        raise ValueError(
            f"mmap=True is not allowed with {name}, whose trees are packed. Save the model with "
            "layout='arrays', or load it without mmap."
        )
    return model


def describe(model: Model) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Model without its trees: a header for JSON, and the arrays that it refers to."""
    header: dict[str, Any] = {name: getattr(model, name) for name in _MODEL_FIELDS}
    arrays: dict[str, NDArray[Any]] = {"base_score": model.base_score}
    if model.metadata:
        header["metadata"] = model.metadata
    header["schema"] = describe_schema(model.schema, arrays)
    header["classes"] = describe_classes(model.classes, arrays)
    if model.combine == "median" or model.tree_weights.size:
        arrays["tree_weights"] = model.tree_weights
    if model.targets:
        header["targets"] = model.targets
    return header, arrays


def assemble(
    header: Mapping[str, Any],
    schema: Schema,
    arrays: dict[str, NDArray[Any]],
    forest: Forest,
    distributions: LeafDistributions | None,
    budget: container.Budget,
) -> Model:
    """Model of a header and arrays of `describe`, with its schema and trees, after all checks."""
    values = container.typed_fields(
        {"combine": "sum", "provenance": {}, "metadata": {}, **header},
        {**_MODEL_FIELDS, "metadata": dict},
    )
    scores = ["base_score", *(["tree_weights"] if "tree_weights" in arrays else [])]
    values |= _typed_sections(arrays, dict.fromkeys(scores, np.dtype(np.float64)))
    model = Model(
        forest=forest,
        schema=schema,
        classes=read_classes(header["classes"], arrays, budget),
        targets=container.typed_tuple(header.get("targets", []), int, "targets"),
        distributions=distributions,
        **values,
    )
    model.validate()
    return model


def _typed_sections(
    arrays: Mapping[str, NDArray[Any]], dtypes: Mapping[str, np.dtype[Any]], prefix: str = ""
) -> dict[str, NDArray[Any]]:
    """Sections by name; raise ValueError for one of another type."""
    sections = {name: arrays[prefix + name] for name in dtypes}
    for name, section in sections.items():
        if section.dtype != dtypes[name]:
            raise ValueError(f"{prefix}{name} of type {section.dtype}")
    return sections


# ---- trees ----


def _read_forest(
    header: Mapping[str, Any], arrays: dict[str, NDArray[Any]], budget: container.Budget
) -> Forest:
    if "width" in header:
        if type(header["width"]) is not int or header["width"] < 1:
            raise ValueError(f"leaves of width {header['width']!r}")
        return packed_trees.from_sections(arrays, header["width"], budget)
    dtypes = ALL_DTYPES if "level_set" in arrays else FOREST_DTYPES
    return Forest(**_typed_sections(arrays, dtypes))


def _read_distributions(
    arrays: dict[str, NDArray[Any]], forest: Forest, budget: container.Budget
) -> LeafDistributions | None:
    if "y values" not in arrays:
        return None
    if "y counts" in arrays:
        return packed_trees.unpack_distributions(arrays, forest.tree_start, forest.is_split, budget)
    parts = _typed_sections(arrays, LEAF_DTYPES, "y ")
    return LeafDistributions(tree_start=forest.tree_start, **parts)


# ---- schema ----


def describe_schema(schema: Schema, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Schema for the header, without fields that have their default."""
    described: dict[str, Any] = {"names": schema.names, "n_features": schema.n_features}
    if not math.isnan(schema.missing):
        described["missing"] = schema.missing
    for name in _SCHEMA_FIELDS:
        if getattr(schema, name) != getattr(Schema, name):
            described[name] = getattr(schema, name)
    if schema.levels:
        described["levels"] = [
            None if levels is None else levels.describe(f"levels {feature}", arrays)
            for feature, levels in enumerate(schema.levels)
        ]
    return described


def read_schema(
    described: Mapping[str, Any], arrays: dict[str, NDArray[Any]], budget: container.Budget
) -> Schema:
    """Schema of a header, validated."""
    levels = [
        None if kind is None else Levels.read(kind, f"levels {feature}", arrays)
        for feature, kind in enumerate(described.get("levels", []))
    ]
    return assemble_schema(described, levels, budget)


def assemble_schema(
    described: Mapping[str, Any], levels: Sequence[Levels | None], budget: container.Budget
) -> Schema:
    """Schema of a description in the form of `describe_schema`, with its levels, validated."""
    values = container.typed_fields(
        {"missing": math.nan, "target": "", **described},
        {"n_features": int, "missing": float, "target": str},
    )
    if values["n_features"] < 0:
        raise ValueError(f"{values['n_features']} features")
    budget.check_features(values["n_features"])

    def optional(name: str) -> tuple[str, ...] | None:
        names = described.get(name)
        return None if names is None else container.typed_tuple(names, str, name)

    schema = Schema(
        names=optional("names"),
        n_features=values["n_features"],
        levels=tuple(levels),
        missing=values["missing"],
        units=optional("units") or (),
        formats=optional("formats") or (),
        parts=tuple(
            (container.typed(column, int), container.typed(part, str))
            for column, part in container.typed_tuple(described.get("parts", []), list, "parts")
        ),
        target=values["target"] if "target" in described else None,
        offset=optional("offset"),
        row_columns=optional("row_columns") or (),
    )
    schema.validate()
    return schema


# ---- classes ----


def for_each_target(classes: Any, convert: Callable[[Any, str], Any]) -> Any:
    """Result of `convert` for class labels and their section; a list for several targets."""
    if isinstance(classes, list | tuple):
        return [convert(labels, f"classes {i}") for i, labels in enumerate(classes)]
    return None if classes is None else convert(classes, "classes")


def describe_classes(
    classes: Labels | tuple[Labels, ...] | None, arrays: dict[str, NDArray[Any]]
) -> Any:
    """Labels for the header, a list for several targets.

    Numbers go to sections, to keep all bits.
    """

    def describe_labels(labels: Labels, section: str) -> dict[str, Any]:
        if labels.dtype.kind in "OU":
            return {"dtype": labels.dtype.newbyteorder("<").str, "values": labels.tolist()}
        arrays[section] = labels
        return {}

    return for_each_target(classes, describe_labels)


def read_classes(
    described: Any, arrays: dict[str, NDArray[Any]], budget: container.Budget
) -> Labels | tuple[Labels, ...] | None:
    """Labels of a header; a tuple for several targets."""

    def read_labels(labels: Mapping[str, Any], section: str) -> Labels:
        if "values" not in labels:
            return arrays[section]
        dtype, values = labels["dtype"], container.typed_tuple(labels["values"], str)
        if dtype == "|O":
            return np.array(values, dtype=object)
        # NumPy's strings have a width, and predictions keep that of the labels in fit.
        width = int(dtype.removeprefix("<U"))
        if width < max(map(len, values), default=1) or width < 1:
            raise ValueError(f"class labels of type {dtype!r}")
        budget.take(len(values) * width * np.dtype("U1").itemsize, "class labels")
        return np.array(values, dtype=f"U{width}")

    classes = for_each_target(described, read_labels)
    return tuple(classes) if isinstance(classes, list) else classes
