"""Model <-> readable JSON: trees with names, thresholds and levels, exact to the bit.

    {
      "format": "arboost model", "version": 4,
      "kind": "regressor", "link": "identity", "combine": "sum", "params": {...}, ...
      "features": [{"name": "age"}, {"name": "city", "levels": {"kind": "string", ...}}],
      "base_score": [0.5],
      "trees": [
        {"output": 0, "nodes": [
          {"feature": "age", "at_most": 3.5, "missing": "left", "left": 1, "right": 2, ...},
          {"value": 0.25, "cover": 7.0},
          ...

Numbers have the shortest digits that identify them; nonfinite numbers are strings: "nan", "inf",
"-inf". Array entries without a meaning, such as the threshold of a leaf, are under "unused" where
they differ from their default. Reading checks as much as that of model files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from arboost.data.levels import Levels
from arboost.data.schema import Schema
from arboost.errors import ModelFormatError
from arboost.models.files import model_file
from arboost.models.files.container import DTYPES, Budget, naming_errors, typed, typed_tuple
from arboost.models.model import Model
from arboost.trees.forest import SET_WORDS, Forest, codes_in_sets
from arboost.trees.leaf_distributions import LeafDistributions

_NAME = "arboost model"
_UNUSED = {"feature": -1, "threshold": 0.0, "default_left": False, "gain": 0.0}
_WORD_BITS = 64
_LEVEL_PARTS: Mapping[str, DTypeLike] = {
    "statistic": np.float64,
    "groups": np.uint8,
    "group_means": np.float64,
    "shared_groups": np.uint8,
    "ranks": np.int32,
}


def to_json(model: Model) -> str:
    """Text of the model."""
    model.validate()
    header, arrays = model_file.describe(model)
    schema = header.pop("schema")
    document = {"format": _NAME, "version": model_file.format_version(model.schema), **header}
    document["classes"] = encode_classes(header["classes"], arrays)
    document["missing"] = encode_number(model.schema.missing)
    document["has_names"] = schema["names"] is not None
    for name in ("target", "offset", "row_columns"):
        if name in schema:
            document[name] = schema[name]
    document["base_score"] = encode_array(model.base_score)
    if model.combine == "median" or model.tree_weights.size:
        document["tree_weights"] = encode_array(model.tree_weights)
    document["width"] = model.forest.width
    of_leaves = model.forest.feature[~model.forest.is_split]
    document["leaf_feature"] = int(of_leaves[0]) if len(of_leaves) else -1  # the default of leaves
    if model.distributions is not None:
        parts = {
            name: getattr(model.distributions, name).tolist() for name in model_file.LEAF_DTYPES
        }
        document["distributions"] = parts
    features = [encode_feature(model.schema, feature) for feature in range(model.schema.n_features)]
    labels = {
        feature: encode_labels(levels)
        for feature, levels in enumerate(model.schema.levels)
        if levels is not None and not levels.is_encoded
    }
    defaults = _UNUSED | {"feature": document["leaf_feature"]}
    trees = [_tree(model, tree, labels, defaults) for tree in range(model.n_trees)]
    return _layout(document, {"features": features, "trees": trees})


def from_json(text: str | bytes, name: str = "the text") -> Model:
    """Model in a text; error messages call it `name`.

    Raises
    ------
    ModelFormatError
        The text is not a model, is damaged, or needs a newer version.
    """
    with naming_errors(model_file.FORMAT, name, "its content is not that of a model"):
        try:
            document = json.loads(text)
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ModelFormatError(
                f"it is not JSON ({error}). {model_file.FORMAT.remedy}"
            ) from None
        if not isinstance(document, dict) or document.get("format") != _NAME:
            raise ModelFormatError(f"it is not an arboost model. {model_file.FORMAT.source}")
        version = typed(document["version"], int)
        if version > model_file.FORMAT.version:
            raise ModelFormatError(
                f"it has format version {version}; this reader knows up to "
                f"{model_file.FORMAT.version}. Install a newer arboost."
            )
        return _read(document, Budget(len(text)))


def _layout(document: Mapping[str, Any], lists: Mapping[str, list[Any]]) -> str:
    """Text with one line for each field, feature and node."""
    lines = [f"{json.dumps(key)}: {_text(value)}" for key, value in document.items()]
    features = ",\n  ".join(map(_text, lists["features"]))
    lines.append(f'"features": [\n  {features}]')
    trees = []
    for tree in lists["trees"]:
        nodes = ",\n    ".join(map(_text, tree["nodes"]))
        trees.append(f'{{"output": {tree["output"]}, "nodes": [\n    {nodes}]}}')
    lines.append('"trees": [\n  ' + ",\n  ".join(trees) + "]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _text(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def _tree(
    model: Model, tree: int, labels: Mapping[int, list[Any]], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    forest = model.forest
    nodes_of_tree = slice(*forest.tree_start[tree : tree + 2].tolist())
    arrays = {
        name: getattr(forest, name)[nodes_of_tree].tolist()
        for name in ("feature", "threshold", "left", "default_left", "gain", "cover", "level_set")
    }
    values = forest.value[nodes_of_tree].tolist()
    nodes = []
    for i, left in enumerate(arrays["left"]):
        node = {name: column[i] for name, column in arrays.items()}
        value = values[i][0] if forest.width == 1 else values[i]
        tail = {"value": value, "cover": node["cover"]}
        if left:
            nodes.append(_split(node, model, labels) | tail | {"gain": node["gain"]})
        else:
            nodes.append(tail | _unused(node, defaults))
    return {"output": int(forest.output[tree]), "nodes": nodes}


def _split(
    node: Mapping[str, Any], model: Model, labels: Mapping[int, list[Any]]
) -> dict[str, Any]:
    feature, names = node["feature"], model.schema.names
    described: dict[str, Any] = {"feature": feature if names is None else names[feature]}
    if node["level_set"] < 0:
        described["at_most"] = encode_number(node["threshold"])
    else:
        levels = labels.get(feature, [])  # none where codes are those of groups
        is_left = codes_in_sets(model.forest.level_sets[node["level_set"]])
        codes = np.flatnonzero(is_left).tolist()
        described["levels"] = [levels[c] if c < len(levels) else {"code": c} for c in codes]
        described |= _unused(node, {"threshold": 0.0})
    described["missing"] = "left" if node["default_left"] else "right"
    return described | {"left": node["left"], "right": node["left"] + 1}


def _unused(node: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Entries without a meaning that differ from their default; -0 is not 0."""
    unused = {
        name: encode_number(node[name]) if type(node[name]) is float else node[name]
        for name, value in defaults.items()
        if repr(node[name]) != repr(value)
    }
    return {"unused": unused} if unused else {}


class _Reader:
    """Collector of the nodes of all trees, with names and levels resolved to indices."""

    def __init__(self, schema: Schema, leaf_feature: int) -> None:
        self._defaults = _UNUSED | {"feature": leaf_feature}
        names = schema.names
        self._features = {} if names is None else {name: i for i, name in enumerate(names)}
        self._schema = schema
        self._codes: dict[int, dict[Any, int]] = {}
        self.columns: dict[str, list[Any]] = {
            name: []
            for name in ("feature", "threshold", "left", "default_left", "gain", "cover", "value")
        }
        self.level_set: list[int] = []
        self.sets: list[list[int]] = []

    def add(self, node: Mapping[str, Any]) -> None:
        unused = node.get("unused", {})
        values: dict[str, Any] = {
            name: unused.get(name, default) for name, default in self._defaults.items()
        }
        values["left"] = 0
        by_set = False
        if "left" in node:
            by_set = "levels" in node
            values |= self._split(node)
            if by_set:
                self.sets.append(self._set(values["feature"], node["levels"]))
            else:
                values["threshold"] = node["at_most"]
        self.level_set.append(len(self.sets) - 1 if by_set else -1)
        leaf = node["value"] if isinstance(node["value"], list) else [node["value"]]
        values |= {"value": read_array(leaf), "cover": node["cover"]}
        for name in ("threshold", "gain", "cover"):
            values[name] = read_number(values[name])
        if type(values["default_left"]) is not bool:
            raise TypeError(f"default_left={values['default_left']!r}")
        for name, column in self.columns.items():
            column.append(values[name])

    def _split(self, node: Mapping[str, Any]) -> dict[str, Any]:
        left = typed(node["left"], int)
        if left < 1 or typed(node["right"], int) != left + 1:
            raise ValueError(f"the children {left} and {node['right']!r}, which are not neighbours")
        feature, missing = node["feature"], node["missing"]
        if self._schema.names is not None:
            feature = self._features[typed(feature, str)]
        if missing not in ("left", "right"):
            raise ValueError(f"missing values that go {missing!r}")
        return {
            "feature": typed(feature, int),
            "left": left,
            "default_left": missing == "left",
            "gain": node["gain"],
        }

    def _set(self, feature: int, described: object) -> list[int]:
        if feature not in self._codes:
            if not 0 <= feature < self._schema.n_features:
                raise ValueError(f"the feature {feature}")
            levels = self._schema.levels_of(feature)
            labels = [] if levels is None else encode_labels(levels)
            self._codes[feature] = {label: code for code, label in enumerate(labels)}
        words = [0] * SET_WORDS
        for level in typed(described, list):
            is_code = isinstance(level, dict)
            code = typed(level["code"], int) if is_code else self._codes[feature][level]
            if not 0 <= code < _WORD_BITS * SET_WORDS:
                raise ValueError(f"the level {code}")
            words[code // _WORD_BITS] |= 1 << code % _WORD_BITS
        return words


def _read_forest(document: Mapping[str, Any], schema: Schema) -> Forest:
    reader = _Reader(schema, typed(document["leaf_feature"], int))
    starts, outputs = [0], []
    for tree in typed(document["trees"], list):
        outputs.append(typed(tree["output"], int))
        for node in typed(tree["nodes"], list):
            reader.add(node)
        starts.append(len(reader.level_set))
    width = typed(document["width"], int)
    columns = reader.columns
    values = columns.pop("value")
    if not all(len(value) == width for value in values):
        raise ValueError(f"leaves that have not {width} values")
    integers = {name: read_array(columns.pop(name), np.int32) for name in ("feature", "left")}
    return Forest(
        tree_start=np.array(starts),
        output=read_array(outputs, np.int32),
        value=np.array(values, np.float64).reshape(len(values), width),
        level_set=np.array(reader.level_set, np.int32),
        level_sets=np.array(reader.sets, np.uint64).reshape(len(reader.sets), SET_WORDS),
        **integers,
        **{name: np.array(column) for name, column in columns.items()},
    )


def _read(document: dict[str, Any], budget: Budget) -> Model:
    features = typed(document["features"], list)
    described: dict[str, Any] = {
        name: document[name] for name in ("target", "offset", "row_columns") if name in document
    }
    described |= {
        "names": [feature["name"] for feature in features] if document["has_names"] else None,
        "n_features": len(features),
        "missing": read_number(document["missing"]),
        "parts": [feature["part"] for feature in features if "part" in feature],
    }
    for name, part in (("units", "unit"), ("formats", "format")):
        if any(part in feature for feature in features):
            described[name] = [feature.get(part, "") for feature in features]
    levels = [read_levels(feature.get("levels")) for feature in features]
    has_levels = any(entry is not None for entry in levels)
    schema = model_file.assemble_schema(described, levels if has_levels else [], budget)
    arrays = {"base_score": read_array(document["base_score"])}
    if "tree_weights" in document:
        arrays["tree_weights"] = read_array(document["tree_weights"])
    header = document | {"classes": read_json_classes(document["classes"], arrays)}
    forest = _read_forest(document, schema)
    distributions = None
    if "distributions" in document:
        parts = document["distributions"]
        distributions = LeafDistributions(
            tree_start=forest.tree_start,
            **{
                name: read_array(parts[name], kind) for name, kind in model_file.LEAF_DTYPES.items()
            },
        )
    return model_file.assemble(header, schema, arrays, forest, distributions, budget)


# ---- numbers, labels and columns ----


def encode_number(x: float) -> float | str:
    """Number for JSON, which has no nonfinite numbers: these become strings."""
    return float(x) if math.isfinite(x) else str(float(x))


def encode_array(array: NDArray[Any]) -> list[Any]:
    """Values of an array for JSON."""
    values = array.tolist()
    return [encode_number(x) for x in values] if array.dtype.kind == "f" else values


def read_number(value: object) -> float:
    """Number of a result of `encode_number`."""
    if type(value) is float or type(value) is int:
        return float(value)
    if value in ("nan", "inf", "-inf"):
        return float(str(value))
    raise TypeError(f"{value!r} instead of a number")


def read_array(values: object, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Array of a result of `encode_array`.

    Values of another kind raise TypeError, integers beyond the dtype OverflowError.
    """
    kind = np.dtype(dtype).kind
    if kind == "f":
        numbers = [read_number(x) for x in typed(values, list)]
        return np.array(numbers, np.float64).astype(dtype)
    return np.array(typed_tuple(values, bool if kind == "b" else int), dtype)


def encode_classes(described: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Labels of a file's header, with values in place of sections."""

    def full_labels(part: dict[str, Any], section: str) -> dict[str, Any]:
        if part:
            return part
        labels = arrays[section]
        return {"dtype": labels.dtype.newbyteorder("<").str, "values": encode_array(labels)}

    return model_file.for_each_target(described, full_labels)


def read_json_classes(described: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Labels for a file's header; numbers go to the arrays."""

    def read_labels(part: dict[str, Any], section: str) -> dict[str, Any]:
        dtype = typed(part["dtype"], str)
        if dtype.startswith(("<U", "|O")):
            return part
        if dtype not in DTYPES:
            raise ValueError(f"labels of type {dtype!r}")
        arrays[section] = read_array(part["values"], dtype)
        return {}

    return model_file.for_each_target(described, read_labels)


def encode_feature(schema: Schema, feature: int) -> dict[str, Any]:
    """Description of a column: name, unit and levels."""
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
        described["levels"] = {"kind": levels.kind, "values": encode_labels(levels)}
        parts = {part: getattr(levels, part) for part in _LEVEL_PARTS}
        described["levels"] |= {
            part: encode_array(array) for part, array in parts.items() if array is not None
        }
    return described


def encode_labels(levels: Levels) -> list[Any]:
    """Levels; bytes that are not UTF-8 become surrogates, so that none is lost."""
    if levels.offsets is None:
        return encode_array(levels.values)
    return [text.decode("utf-8", "surrogateescape") for text in levels.texts()]


def read_levels(described: Mapping[str, Any] | None) -> Levels | None:
    """Levels of a column, not yet validated by their schema."""
    if described is None:
        return None
    kind = described["kind"]
    encoding: dict[str, Any] = {
        part: read_array(described[part], dtype)
        for part, dtype in _LEVEL_PARTS.items()
        if part in described
    }
    if kind != "string":
        return Levels(kind, read_array(described["values"]), **encoding)
    texts = [
        text.encode("utf-8", "surrogateescape") for text in typed_tuple(described["values"], str)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)])
    joined = np.frombuffer(b"".join(texts), np.uint8)
    return Levels(kind, joined, offsets.astype(np.int64), **encoding)
