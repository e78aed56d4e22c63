"""Model -> one C99 header, without dependencies: tables of the trees and a short traversal.

A node is three small numbers, indices of distinct thresholds, level sets and leaves, each of which
is stored once. So 500 trees of depth 6 are one or two megabytes of source, and compile in about a
second. The templates are written for a model called "model", whose macros begin with MODEL_; parts
that depend on the model are marked by a $.

Names of features, labels and levels become C strings only, never comments or identifiers; the
metadata of the user is a comment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
from arboost.trees.forest import FOREST_DTYPES, N_CODES, Forest, distinct_rows

ABOUT = Template("""\
/* $what, written by arboost $version.
 *
 * Include this file wherever its functions are called, and in one source file once with
 *
 *     #define MODEL_IMPLEMENTATION
 *
 * before the #include. It is C99 (and C++), and needs <math.h>, <stddef.h> and <stdint.h>; link
 * with -lm. Nothing is allocated and nothing changes: any number of threads may call it.
 *
 * A row is MODEL_N_FEATURES doubles, one for each of model_feature_names. $missing
$rows *
 * Raw scores are those of predict_raw to the last bit, with any compiler that computes doubles as
 * doubles (on 32-bit x86: -msse2 -mfpmath=sse). There is nothing that -ffp-contract could change,
 * but -ffast-math would lose missing values, and is refused. Predictions that need exp() are as
 * exact as that of the C library.
 */
""")

OFFSET_ROWS = Template("""\
 * After these values a row has MODEL_N_OFFSETS more, its offset$names: one for
 * each raw score, which it is added to. Without an offset they are 0.
""")

REQUIREMENTS = """\
#define MODEL_IMPLEMENTED
#include <math.h>
#include <stdint.h>
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "this needs NAN and exact sums: compile without -ffast-math and -ffinite-math-only"
#endif
#ifdef __cplusplus
extern "C" {
#endif

"""

TIMES = {
    "datetime": "seconds since 1970 in UTC",
    "duration": "seconds",
    "time": "seconds since midnight",
}

VALUES = """
/* raw[MODEL_N_OUTPUTS]: the raw scores, before the link. */
void model_raw(const double *row, double *raw);
/* prediction[MODEL_N_OUTPUTS]: the predicted values. */
void model_predict(const double *row, double *prediction);
"""

CLASSES = """
/* raw[MODEL_N_OUTPUTS]: the raw scores, before the link. */
void model_raw(const double *row, double *raw);
/* prediction[MODEL_N_TARGETS]: the index of each target's most likely label in model_classes. */
void model_predict(const double *row, size_t *prediction);
/* probabilities[MODEL_N_CLASSES]: the probabilities of all labels in model_classes. */
void model_proba(const double *row, double *probabilities);
/* The labels, target after target, as text and, where they are numbers, as numbers. */
extern const char *const model_classes[MODEL_N_CLASSES];
"""

LEVEL_TABLES = """
/* The value of a row for a level, NAN where the level is unknown: of a category of strings, by its
 * text in UTF-8; of a category of numbers, by the number. It is the level's code, or for a category
 * of many levels its target encoding. */
double model_level(size_t feature, const char *text, size_t length);
double model_level_of_number(size_t feature, double number);

/* The levels of each feature in the order of their codes. model_levels are those of categories of
 * strings, model_level_numbers those of categories of numbers, and model_level_values the target
 * encodings of levels; NULL where there are none. */
typedef struct {
  const char *text; /* ends with a 0, and may hold other zeros */
  size_t length;
} model_text;
extern const size_t model_n_levels[MODEL_N_FEATURES];
extern const model_text *const model_levels[MODEL_N_FEATURES];
extern const double *const model_level_numbers[MODEL_N_FEATURES];
extern const double *const model_level_values[MODEL_N_FEATURES];
"""

LEVELS = """
static double model_of_code(size_t feature, size_t code) {
  const double *values = model_level_values[feature];
  return values == NULL ? (double)code : values[code];
}

static int model_compare(const model_text *level, const char *text, size_t length) {
  for (size_t i = 0; i < level->length && i < length; ++i) {
    const unsigned char known = (unsigned char)level->text[i], given = (unsigned char)text[i];
    if (known != given) return known < given ? -1 : 1;
  }
  return level->length == length ? 0 : level->length < length ? -1 : 1;
}

double model_level(size_t feature, const char *text, size_t length) {
  if (feature >= MODEL_N_FEATURES || model_levels[feature] == NULL) return NAN;
  size_t low = 0, high = model_n_levels[feature];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int order = model_compare(&model_levels[feature][middle], text, length);
    if (order == 0) return model_of_code(feature, middle);
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return NAN;
}
"""

LEVELS_OF_NUMBERS = Template("""
double model_level_of_number(size_t feature, double number) {
  if (feature >= MODEL_N_FEATURES || model_level_numbers[feature] == NULL) return NAN;
$missing  size_t low = 0, high = model_n_levels[feature];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const double known = model_level_numbers[feature][middle];
    if (known < number) low = middle + 1;
    else if (known > number) high = middle;
    else return known == number ? model_of_code(feature, middle) : NAN;
  }
  return NAN;
}
""")

WALK = Template("""
/* The nodes of a tree are contiguous, right children after left ones. model_left: index of the
 * left child in the tree, 0 for a leaf. model_split: twice the feature, and 1 more where missing
 * values go left. model_at: index of the node's threshold, level set or leaf. */
static size_t model_leaf(size_t tree, const double *row) {
  const size_t root = model_root[tree];
  size_t node = root;
  while (model_left[node] != 0) {
    const size_t split = model_split[node];
    const double x = row[split / 2];
    int left = (int)(split % 2);
$test    node = root + model_left[node] + (left ? 0u : 1u);
  }
  return model_at[node];
}

void model_raw(const double *row, double *raw) {
$combine}
""")

# Without a branch, because the direction of a row cannot be predicted.
BY_THRESHOLD = """\
    left = (x <= model_threshold[model_at[node]]) | (left & (x != x));
"""
BY_THRESHOLD_OF_PRESENT = Template("""\
    const int is_present = (x == x) & ($is_present);
    left = is_present ? x <= model_threshold[model_at[node]] : left;
""")

BY_SET = Template("""\
    const size_t n_codes = model_n_codes[split / 2];
    if (n_codes == 0) {
$by_threshold    } else if (x >= 0.0 && x < (double)n_codes) {
      const size_t code = (size_t)x, word = model_at[node] * MODEL_SET_WORDS + code / 32;
      if ((double)code == x) left = (int)(model_set[word] >> (code % 32) & 1u);
    }
""")

_ADD = """\
  for (size_t i = 0; i < MODEL_N_OUTPUTS; ++i) raw[i] = $start;
  for (size_t tree = 0; tree < MODEL_N_TREES; ++tree) {
    const size_t leaf = model_leaf(tree, row);
"""
ADD_TO_ONE = Template(_ADD + "    raw[$output] += model_value[leaf];\n  }\n")
ADD_TO_ALL = Template(
    _ADD
    + """\
    for (size_t i = 0; i < MODEL_N_OUTPUTS; ++i) raw[i] += model_value[leaf * MODEL_N_OUTPUTS + i];
  }
"""
)
DIVIDE = Template("""\
  for (size_t i = 0; i < MODEL_N_OUTPUTS; ++i) raw[i] = raw[i] / $rounds + model_base[i];
""")

ADD_OFFSET = """\
  for (size_t i = 0; i < MODEL_N_OFFSETS; ++i) raw[i] += row[MODEL_N_FEATURES + i];
"""

# The weighted median: trees are sorted by their values, ties by their numbers.
MEDIAN = """\
  double value[MODEL_N_TREES], total = 0.0, sum = 0.0;
  size_t order[MODEL_N_TREES], place = 0;
  for (size_t tree = 0; tree < MODEL_N_TREES; ++tree) {
    value[tree] = model_value[model_leaf(tree, row)];
    order[tree] = tree;
  }
  for (size_t gap = MODEL_N_TREES / 2; gap > 0; gap /= 2)
    for (size_t i = gap; i < MODEL_N_TREES; ++i) {
      const size_t moved = order[i];
      size_t to = i;
      for (; to >= gap; to -= gap) {
        const size_t other = order[to - gap];
        if (value[other] < value[moved] || (value[other] == value[moved] && other < moved)) break;
        order[to] = other;
      }
      order[to] = moved;
    }
  for (size_t i = 0; i < MODEL_N_TREES; ++i) total += model_weight[order[i]];
  for (; place + 1 < MODEL_N_TREES; ++place) {
    sum += model_weight[order[place]];
    if (sum >= 0.5 * total) break;
  }
  raw[0] = model_base[0] + value[order[place]];
"""

OUTPUT = Template("""
void model_$name(const double *row, $type *$out) {
  double raw[MODEL_N_OUTPUTS];
  model_raw(row, raw);
$body}
""")

# Functions that a link needs, itself included, each after those that it calls.
LINK_NEEDS = {
    "logistic_of_double": ("clip", "logistic", "logistic_of_double"),
    "share_of_two": ("clip", "share_of_two"),
    "shares": ("clip", "shares"),
}

# Functions of n raw scores: the links of `arboost.losses.links`, and their helpers.
LINKS = {
    "largest": """
static size_t model_largest(const double *raw, size_t n) {
  size_t place = 0;
  for (size_t i = 1; i < n; ++i) place = raw[i] > raw[place] ? i : place;
  return place;
}
""",
    "clip": """
static double model_clip(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}
""",
    "identity": """
static void model_identity(const double *raw, size_t n, double *prediction) {
  for (size_t i = 0; i < n; ++i) prediction[i] = raw[i];
}
""",
    "exp": """
static void model_exp(const double *raw, size_t n, double *prediction) {
  for (size_t i = 0; i < n; ++i)
    prediction[i] = exp(raw[i] < 709.782712893384 ? raw[i] : 709.782712893384);
}
""",
    "ordered": """
static void model_ordered(const double *raw, size_t n, double *prediction) {
  for (size_t i = 0; i < n; ++i) {
    size_t to = i;
    for (; to > 0 && prediction[to - 1] > raw[i]; --to) prediction[to] = prediction[to - 1];
    prediction[to] = raw[i];
  }
}
""",
    "logistic": """
static void model_logistic(const double *raw, size_t n, double *p) {
  for (size_t i = 0; i < n; ++i) {
    const double small = exp(raw[i] > 0.0 ? -raw[i] : raw[i]);
    const double likely = 1.0 / (1.0 + small), unlikely = small / (1.0 + small);
    p[2 * i] = raw[i] > 0.0 ? unlikely : likely;
    p[2 * i + 1] = raw[i] > 0.0 ? likely : unlikely;
  }
}
""",
    "logistic_of_double": """
static void model_logistic_of_double(const double *raw, size_t n, double *p) {
  for (size_t i = 0; i < n; ++i) {
    const double twice = 2.0 * model_clip(raw[i], -709.782712893384, 709.782712893384);
    model_logistic(&twice, 1, p + 2 * i);
  }
}
""",
    "softmax": """
static void model_softmax(const double *raw, size_t n, double *p) {
  double largest = raw[0], sum = 0.0;
  for (size_t i = 1; i < n; ++i) largest = raw[i] > largest ? raw[i] : largest;
  for (size_t i = 0; i < n; ++i) {
    p[i] = exp(raw[i] - largest);
    sum += p[i];
  }
  for (size_t i = 0; i < n; ++i) p[i] /= sum;
}
""",
    "share_of_two": """
static void model_share_of_two(const double *raw, size_t n, double *p) {
  for (size_t i = 0; i < n; ++i) {
    const double half = 0.5 * model_clip(raw[i], -1.0, 1.0);
    p[2 * i] = 0.5 - half;
    p[2 * i + 1] = 0.5 + half;
  }
}
""",
    "shares": """
static void model_shares(const double *raw, size_t n, double *p) {
  for (size_t i = 0; i < n; ++i) p[i] = model_clip(raw[i], 0.0, 1.0);
}
""",
}

_LINE = 98  # characters of a line in a table
_LONGEST_LITERAL = 4095  # bytes of a string literal that every C99 compiler supports
_LARGEST_INTEGER = 2**53  # doubles hold all integers up to it
_UNESCAPED = frozenset(range(32, 127)) - set(b'"?\\')  # bytes of a string literal


def c_header(model: Model, name: str = "model") -> str:
    """Return the source of a header whose functions run the model.

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
    header.code(REQUIREMENTS)
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
        """Return code with the model's own name."""
        return re.sub(r"\b(?:model|MODEL)_", lambda one: self._names[one[0]], text)

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

    def doubles(self, declared: str, numbers: NDArray[np.float64]) -> None:
        """Add a table of doubles."""
        self.array(declared, list(map(_double, numbers.ravel().tolist())))

    def text(self, name: str, data: bytes) -> str:
        """Return a C string; one that is too long for a literal becomes a table of this name."""
        if len(data) < _LONGEST_LITERAL:
            shown = (chr(one) if one in _UNESCAPED else f"\\{one:03o}" for one in data)
            return '"' + "".join(shown) + '"'
        self.array(f"static const char {name}[]", [f"'\\{one:03o}'" for one in data] + ["0"])
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
        f" * Feature {feature} (the first is 0) is a time: {TIMES[schema.unit_of(feature)]}.\n"
        for feature in schema.special
        if schema.unit_of(feature)
    )
    if schema.has_levels:
        rows += " * For a category, pass the result of model_level or model_level_of_number.\n"
    if schema.offset is not None:
        names = "".join(f" {one!a}" for one in schema.offset).replace("*/", "* /")
        rows += OFFSET_ROWS.substitute(names=f" (of the fit:{names})" if names else "")
    trees = "1 tree" if model.n_trees == 1 else f"{model.n_trees} trees"
    what = f"A {model.kind} of {trees}"
    return ABOUT.substitute(what=what, version=__version__, missing=missing, rows=rows)


def _metadata_comment(metadata: Mapping[str, Any]) -> str:
    """Return metadata as a comment of JSON in ASCII.

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
    header.code(CLASSES if model.kind == "classifier" else VALUES)
    if _class_numbers(model) is not None:
        header.code("extern const double model_class_numbers[MODEL_N_CLASSES];\n")
    if model.schema.has_levels:
        header.code(LEVEL_TABLES)
    header.code("\n#ifdef __cplusplus\n}\n#endif\n")


def _write_names(header: _Header, model: Model) -> None:
    """Write the names of features, labels and levels."""
    schema = model.schema
    names = schema.names or tuple(map(str, range(schema.n_features)))
    texts = [_bytes(one) for one in names]
    items = [header.text(f"model_feature_{i}", text) for i, text in enumerate(texts)]
    header.array("const char *const model_feature_names[MODEL_N_FEATURES]", items)
    if model.kind == "classifier":
        labels = [_bytes(str(one)) for part in target_parts(model) for one in part.labels.tolist()]
        items = [header.text(f"model_class_{i}", text) for i, text in enumerate(labels)]
        header.array("const char *const model_classes[MODEL_N_CLASSES]", items)
        numbers = _class_numbers(model)
        if numbers is not None:
            header.doubles("const double model_class_numbers[MODEL_N_CLASSES]", numbers)
    if schema.has_levels:
        _write_levels(header, schema)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _class_numbers(model: Model) -> NDArray[np.float64] | None:
    """Return the labels as numbers, if all are numbers that doubles hold exactly; else None."""
    if model.kind != "classifier":
        return None
    labels = [part.labels for part in target_parts(model)]
    if any(one.dtype.kind not in "biuf" for one in labels):
        return None
    numbers = np.concatenate([one.astype(np.float64) for one in labels])
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
    header.code(LEVELS + LEVELS_OF_NUMBERS.substitute(missing=missing))


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
        test = BY_SET.substitute(by_threshold=indent(test, "  "))
    combine = _combine(header, model, forest)
    if model.schema.offset is not None:
        combine += ADD_OFFSET
    header.code(WALK.substitute(test=test, combine=combine))


def _one_leaf(width: int) -> Forest:
    """Return a forest of one tree with one leaf of value 0."""
    arrays = {name: np.zeros(1, dtype) for name, dtype in FOREST_DTYPES.items()}
    return Forest(**arrays | {"tree_start": np.arange(2), "value": np.zeros((1, width))})


def _words(forest: Forest, schema: Schema) -> NDArray[np.uint32]:
    """Return the level sets as words of 32 bits, as many as the levels need."""
    low, high = forest.level_sets & np.uint64(0xFFFFFFFF), forest.level_sets >> np.uint64(32)
    words = np.stack([low, high], axis=2).reshape(len(low), -1).astype(np.uint32)
    return words[:, : -(-max(*schema.n_levels, 1) // 32)]


def _test(header: _Header, schema: Schema) -> str:
    """Return the code of a threshold test."""
    if math.isnan(schema.missing):
        return BY_THRESHOLD
    is_present = f"x != {_double(schema.missing)}"
    if schema.special:
        is_plain = ~np.isin(np.arange(schema.n_features), schema.special)
        header.integers("model_is_plain", is_plain.astype(np.uint8))
        is_present = f"!model_is_plain[split / 2] || {is_present}"
    return BY_THRESHOLD_OF_PRESENT.substitute(is_present=is_present)


def _combine(header: _Header, model: Model, forest: Forest) -> str:
    """Return the code that combines leaf values into raw scores."""
    if model.combine == "median":
        weights = model.tree_weights if model.n_trees else np.ones(1)
        header.doubles("static const double model_weight[]", weights)
        return MEDIAN
    mean = model.combine == "mean"
    start = "0.0" if mean else "model_base[i]"
    end = DIVIDE.substitute(rounds=_double(float(max(model.n_rounds, 1)))) if mean else ""
    if forest.width > 1:
        return ADD_TO_ALL.substitute(start=start) + end
    if model.n_outputs > 1:
        header.integers("model_output", forest.output)
    output = "model_output[tree]" if model.n_outputs > 1 else "0"
    return ADD_TO_ONE.substitute(start=start, output=output) + end


def _write_predictions(header: _Header, model: Model) -> None:
    """Write the functions of predictions and of class probabilities."""
    if model.kind != "classifier":
        header.code(LINKS[model.link])
        call = f"  model_{model.link}(raw, MODEL_N_OUTPUTS, prediction);\n"
        header.code(OUTPUT.substitute(name="predict", type="double", out="prediction", body=call))
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
        used += LINK_NEEDS.get(part.link, (part.link,))
        first += len(part.labels)
    for one in dict.fromkeys(used):
        header.code(LINKS[one])
    header.code(OUTPUT.substitute(name="predict", type="size_t", out="prediction", body=labels))
    header.code(OUTPUT.substitute(name="proba", type="double", out="p", body=probabilities))
