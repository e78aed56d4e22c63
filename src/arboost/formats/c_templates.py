"""C code templates of `c_header`, which adds the numbers and names of a model.

They are written for a model called "model", whose macros begin with MODEL_. Parts that depend on
the model are marked by a $.
"""

from __future__ import annotations

from string import Template

__all__ = [
    "ABOUT",
    "ADD_OFFSET",
    "ADD_TO_ALL",
    "ADD_TO_ONE",
    "BY_SET",
    "BY_THRESHOLD",
    "BY_THRESHOLD_OF_PRESENT",
    "CLASSES",
    "DIVIDE",
    "LEVELS",
    "LEVELS_OF_NUMBERS",
    "LEVEL_TABLES",
    "LINKS",
    "LINK_NEEDS",
    "MEDIAN",
    "OFFSET_ROWS",
    "OUTPUT",
    "REQUIREMENTS",
    "TIMES",
    "VALUES",
    "WALK",
]

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

# Functions of n raw scores: the links of `arboost.model.links`, and their helpers.
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
