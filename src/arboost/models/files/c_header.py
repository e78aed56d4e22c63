"""Model -> one C99 header, without dependencies: tables of the trees and a short traversal.

A node is three small numbers, indices of distinct thresholds, level sets and leaves, each of which
is stored once. So 500 trees of depth 6 are one or two megabytes of source, and compile in about a
second. ``c_code.txt`` has the C code, in parts.

Names of features, labels and levels become C strings only, never comments or identifiers; the
metadata of the user is a comment.
"""

from __future__ import annotations

import math
import pkgutil
import re
from collections.abc import Mapping, Sequence
from functools import cache
from string import Template
from textwrap import indent
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost import __version__
from arboost.data.levels import Levels
from arboost.data.schema import Schema
from arboost.errors import InputTypeError
from arboost.losses.links import ALL_CLASS_LINKS, target_parts
from arboost.models.metadata import metadata_text
from arboost.models.model import Model
from arboost.trees.forest import FOREST_DTYPES, N_CODES, Floats, Forest, distinct_rows

_TIMES = {
    "datetime": "seconds since 1970 in UTC",
    "duration": "seconds",
    "time": "seconds since midnight",
}
# Functions that a link needs, itself included, each after those that it calls.
_LINK_NEEDS = {
    "logistic_of_double": ("clip", "logistic", "logistic_of_double"),
    "share_of_two": ("clip", "share_of_two"),
    "shares": ("clip", "shares"),
}
_LINE = 98  # characters of a line in a table
_LONGEST_LITERAL = 4095  # bytes of a string literal that every C99 compiler supports
_LARGEST_INTEGER = 2**53  # doubles hold all integers up to it
_UNESCAPED = frozenset(range(32, 127)) - set(b'"?\\')  # bytes of a string literal


@cache
def _parts() -> dict[str, str]:
    """Parts of ``c_code.txt`` by name."""
    content = pkgutil.get_data("arboost.models.files", "c_code.txt") or b""
    parts, name = dict[str, str](), ""
    for line in content.decode().splitlines(keepends=True):
        if line.startswith("//// part "):
            name = line.removeprefix("//// part ").rstrip()
            parts[name] = ""
        elif name and not line.startswith("////"):
            parts[name] += line
    return parts


def _part(part: str, /, **values: str) -> str:
    """Part of the C code, with the values of the model."""
    return Template(_parts()[part]).substitute(values)


def c_header(model: Model, name: str = "model") -> str:
    """Source of a header whose functions run the model.

    Parameters
    ----------
    model : Model
    name : str
        Prefix of functions and macros; characters that C names cannot have become underscores.
    """
    header = _Header(_identifier(name))
    header.code("#ifndef MODEL_ARBOOST_H\n#define MODEL_ARBOOST_H\n")
    header.code(_about(model))
    if model.metadata:
        header.parts.append(_metadata_comment(model.metadata))
    _declare(header, model)
    header.code("#endif\n\n#if defined(MODEL_IMPLEMENTATION) && !defined(MODEL_IMPLEMENTED)\n")
    header.code(_part("REQUIREMENTS"))
    _write_names(header, model)
    _write_trees(header, model)
    _write_predictions(header, model)
    header.code("\n#ifdef __cplusplus\n}\n#endif\n#endif\n")
    return "".join(header.parts)


class _Header:
    """A header that grows part by part, from code for a model called "model"."""

    def __init__(self, name: str) -> None:
        self.parts: list[str] = []
        self._names = {"model_": f"{name}_", "MODEL_": f"{name.upper()}_"}

    def renamed(self, text: str) -> str:
        """Code with the name of the model."""
        return re.sub(r"\b(?:model|MODEL)_", lambda match: self._names[match[0]], text)

    def code(self, text: str) -> None:
        """Add code."""
        self.parts.append(self.renamed(text))

    def array(self, declared: str, items: Sequence[str]) -> None:
        """Add a table; an empty one gets a zero, as C has no empty arrays."""
        items = items or ["0"]
        step = max(_LINE // (max(map(len, items)) + 1), 1)
        lines = (",".join(items[i : i + step]) for i in range(0, len(items), step))
        self.parts += self.renamed(f"{declared} = {{\n"), ",\n".join(lines), "};\n"

    def integers(self, name: str, numbers: NDArray[Any]) -> None:
        """Add a table of nonnegative integers, in the smallest type."""
        bits = 8 * np.min_scalar_type(int(numbers.max(initial=0))).itemsize
        self.array(f"static const uint{bits}_t {name}[]", list(map(str, numbers.tolist())))

    def doubles(self, declared: str, numbers: Floats) -> None:
        """Add a table of doubles."""
        self.array(declared, list(map(_double, numbers.ravel().tolist())))

    def text(self, name: str, data: bytes) -> str:
        """C expression of a string; one too long for a literal becomes a table of this name."""
        if len(data) < _LONGEST_LITERAL:
            escaped = (chr(byte) if byte in _UNESCAPED else f"\\{byte:03o}" for byte in data)
            return '"' + "".join(escaped) + '"'
        self.array(f"static const char {name}[]", [f"'\\{byte:03o}'" for byte in data] + ["0"])
        return self.renamed(name)


def _identifier(name: object) -> str:
    if not isinstance(name, str):
        raise InputTypeError(
            f"name={name!r} is not allowed: functions in C begin with it. Pass a string, such as "
            '"model".'
        )
    safe = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "model"
    return f"model_{safe}" if safe[0].isdigit() else safe


def _double(number: float) -> str:
    if math.isfinite(number):
        return repr(number)
    return "NAN" if math.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"


def _about(model: Model) -> str:
    schema = model.schema
    missing = "NAN is missing."
    if not math.isnan(schema.missing):
        missing += f"\n * {_double(schema.missing)} is missing in columns of plain numbers, too."
    rows = "".join(
        f" * Feature {feature} (the first is 0) is a time: {_TIMES[schema.unit_of(feature)]}.\n"
        for feature in schema.special
        if schema.unit_of(feature)
    )
    if schema.has_levels:
        rows += " * For a category, pass the result of model_level or model_level_of_number.\n"
    if schema.offset is not None:
        names = "".join(f" {name!a}" for name in schema.offset).replace("*/", "* /")
        rows += _part("OFFSET_ROWS", names=f" (of the fit:{names})" if names else "")
    trees = "1 tree" if model.n_trees == 1 else f"{model.n_trees} trees"
    title = f"A {model.kind} of {trees}"
    return _part("ABOUT", what=title, version=__version__, missing=missing, rows=rows)


def _metadata_comment(metadata: Mapping[str, Any]) -> str:
    """Comment of the metadata as JSON in ASCII.

    JSON has a star in texts only: as an escape, it can neither end the comment nor begin another.
    Lines end in JSON's punctuation, never in a backslash or its trigraph.
    """
    text = metadata_text(metadata, indent=2).replace("*", r"\u002a")
    return "/* Metadata of the model, as JSON:\n" + indent(text, " * ") + "\n */\n"


def _declare(header: _Header, model: Model) -> None:
    header.code('\n#include <stddef.h>\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n')
    sizes = {"FEATURES": model.schema.n_features, "OUTPUTS": model.n_outputs}
    if model.schema.offset is not None:
        sizes["OFFSETS"] = model.n_outputs
    if model.kind == "classifier":
        parts = target_parts(model)
        sizes |= {"TARGETS": len(parts), "CLASSES": sum(len(part.labels) for part in parts)}
    header.code("".join(f"#define MODEL_N_{name} {size}\n" for name, size in sizes.items()))
    header.code("\nextern const char *const model_feature_names[MODEL_N_FEATURES];\n")
    header.code(_part("CLASSES") if model.kind == "classifier" else _part("VALUES"))
    if _class_numbers(model) is not None:
        header.code("extern const double model_class_numbers[MODEL_N_CLASSES];\n")
    if model.schema.has_levels:
        header.code(_part("LEVEL_TABLES"))
    header.code("\n#ifdef __cplusplus\n}\n#endif\n")


def _write_names(header: _Header, model: Model) -> None:
    """Write the names of features, labels and levels."""
    schema = model.schema
    names = schema.names or tuple(map(str, range(schema.n_features)))
    items = [header.text(f"model_feature_{i}", _bytes(name)) for i, name in enumerate(names)]
    header.array("const char *const model_feature_names[MODEL_N_FEATURES]", items)
    if model.kind == "classifier":
        labels = [label for part in target_parts(model) for label in part.labels.tolist()]
        items = [header.text(f"model_class_{i}", _bytes(str(x))) for i, x in enumerate(labels)]
        header.array("const char *const model_classes[MODEL_N_CLASSES]", items)
        numbers = _class_numbers(model)
        if numbers is not None:
            header.doubles("const double model_class_numbers[MODEL_N_CLASSES]", numbers)
    if schema.has_levels:
        _write_levels(header, schema)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _class_numbers(model: Model) -> Floats | None:
    """Labels as numbers if all are numbers that doubles hold exactly; else None."""
    if model.kind != "classifier":
        return None
    labels = [part.labels for part in target_parts(model)]
    if any(part.dtype.kind not in "biuf" for part in labels):
        return None
    numbers = np.concatenate([part.astype(np.float64) for part in labels])
    return numbers if (np.abs(numbers) <= _LARGEST_INTEGER).all() else None


def _write_levels(header: _Header, schema: Schema) -> None:
    columns: dict[str, list[str]] = {
        "model_levels": [],
        "model_level_numbers": [],
        "model_level_values": [],
    }
    for feature, levels in enumerate(schema.levels):
        tables = {} if levels is None or not len(levels) else _level_tables(header, feature, levels)
        for table, items in columns.items():
            items.append(tables.get(table, "NULL"))
    sizes = ["0" if levels is None else str(len(levels)) for levels in schema.levels]
    header.array("const size_t model_n_levels[MODEL_N_FEATURES]", sizes)
    for table, items in columns.items():
        kind = "model_text" if table == "model_levels" else "double"
        header.array(f"const {kind} *const {table}[MODEL_N_FEATURES]", items)
    missing = f"  if (number == {_double(schema.missing)}) return NAN;\n"
    if math.isnan(schema.missing):
        missing = ""
    header.code(_part("LEVELS") + _part("LEVELS_OF_NUMBERS", missing=missing))


def _level_tables(header: _Header, feature: int, levels: Levels) -> dict[str, str]:
    """Write the tables of one categorical feature; return their names by content."""
    tables = {}
    if levels.offsets is None:
        tables["model_level_numbers"] = f"model_numbers_{feature}"
        header.doubles(f"static const double model_numbers_{feature}[]", levels.values)
    else:
        tables["model_levels"] = f"model_texts_{feature}"
        items = [
            f"{{{header.text(f'model_text_{feature}_{code}', text)},{len(text)}}}"
            for code, text in enumerate(levels.texts())
        ]
        header.array(f"static const model_text model_texts_{feature}[]", items)
    if levels.numbers is not None:
        tables["model_level_values"] = f"model_values_{feature}"
        header.doubles(f"static const double model_values_{feature}[]", levels.numbers)
    return {table: header.renamed(name) for table, name in tables.items()}


def _write_trees(header: _Header, model: Model) -> None:
    """Write the tables of the nodes, and the function of the raw scores."""
    forest = model.forest if model.n_trees else _one_leaf(model.forest.width)
    split, by_set = forest.is_split, forest.level_set >= 0
    at = np.zeros(forest.n_nodes, np.int64)
    thresholds, at[split & ~by_set] = np.unique(
        forest.threshold[split & ~by_set], return_inverse=True
    )
    leaves, at[~split] = distinct_rows(forest.value[~split])
    header.code(f"#define MODEL_N_TREES {forest.n_trees}\n")
    header.doubles("static const double model_base[]", model.base_score)
    header.doubles("static const double model_threshold[]", thresholds)
    header.doubles("static const double model_value[]", leaves)
    if forest.has_sets:
        sets, at[by_set] = distinct_rows(_words(forest, model.schema))
        header.code(f"#define MODEL_SET_WORDS {sets.shape[1]}\n")
        header.integers("model_set", sets.ravel())
        n_codes = np.minimum(model.schema.n_levels, N_CODES)
        header.integers("model_n_codes", np.where(model.schema.categorical, n_codes.clip(1), 0))
    header.integers("model_root", forest.tree_start[:-1])
    header.integers("model_left", forest.left)
    header.integers(
        "model_split", np.where(split, 2 * forest.feature.astype(np.int64) + forest.default_left, 0)
    )
    header.integers("model_at", at)
    test = _test(header, model.schema)
    if forest.has_sets:
        test = _part("BY_SET", by_threshold=indent(test, "  "))
    combine = _combine(header, model, forest)
    if model.schema.offset is not None:
        combine += _part("ADD_OFFSET")
    header.code(_part("WALK", test=test, combine=combine))


def _one_leaf(width: int) -> Forest:
    """Forest of one tree with one leaf of value 0."""
    arrays = {name: np.zeros(1, dtype) for name, dtype in FOREST_DTYPES.items()}
    return Forest(**arrays | {"tree_start": np.arange(2), "value": np.zeros((1, width))})


def _words(forest: Forest, schema: Schema) -> NDArray[np.uint32]:
    """Level sets as words of 32 bits, as many as the levels need."""
    low, high = forest.level_sets & np.uint64(0xFFFFFFFF), forest.level_sets >> np.uint64(32)
    words = np.stack([low, high], axis=2).reshape(len(low), -1).astype(np.uint32)
    return words[:, : -(-max(*schema.n_levels, 1) // 32)]


def _test(header: _Header, schema: Schema) -> str:
    """Code of a threshold test."""
    if math.isnan(schema.missing):
        return _part("BY_THRESHOLD")
    is_present = f"x != {_double(schema.missing)}"
    if schema.special:
        is_plain = ~np.isin(np.arange(schema.n_features), schema.special)
        header.integers("model_is_plain", is_plain.astype(np.uint8))
        is_present = f"!model_is_plain[split / 2] || {is_present}"
    return _part("BY_THRESHOLD_OF_PRESENT", is_present=is_present)


def _combine(header: _Header, model: Model, forest: Forest) -> str:
    """Code that combines leaf values into raw scores."""
    if model.combine == "median":
        weights = model.tree_weights if model.n_trees else np.ones(1)
        header.doubles("static const double model_weight[]", weights)
        return _part("MEDIAN")
    mean = model.combine == "mean"
    start = "0.0" if mean else "model_base[i]"
    end = _part("DIVIDE", rounds=_double(float(max(model.n_rounds, 1)))) if mean else ""
    if forest.width > 1:
        return _part("ADD", start=start) + _part("ADD_TO_ALL") + end
    if model.n_outputs > 1:
        header.integers("model_output", forest.output)
    output = "model_output[tree]" if model.n_outputs > 1 else "0"
    return _part("ADD", start=start) + _part("ADD_TO_ONE", output=output) + end


def _write_predictions(header: _Header, model: Model) -> None:
    """Write the functions of predictions and of class probabilities."""
    if model.kind != "classifier":
        header.code(_part(model.link))
        call = f"  model_{model.link}(raw, MODEL_N_OUTPUTS, prediction);\n"
        header.code(_part("OUTPUT", name="predict", type="double", out="prediction", body=call))
        return
    labels, probabilities, used, first = "", "", [], 0
    for target, part in enumerate(target_parts(model)):
        raw = f"raw + {part.first}"
        index = f"(raw[{part.first}] > 0.0 ? 1u : 0u)"
        if part.link in ALL_CLASS_LINKS:
            index = f"model_largest({raw}, {part.n_outputs})"
            used.append("largest")
        labels += f"  prediction[{target}] = {first}u + {index};\n"
        probabilities += f"  model_{part.link}({raw}, {part.n_outputs}, p + {first});\n"
        used += _LINK_NEEDS.get(part.link, (part.link,))
        first += len(part.labels)
    for name in dict.fromkeys(used):
        header.code(_part(name))
    header.code(_part("OUTPUT", name="predict", type="size_t", out="prediction", body=labels))
    header.code(_part("OUTPUT", name="proba", type="double", out="p", body=probabilities))
