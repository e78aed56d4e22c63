"""Models as C headers: compiled without a warning, and the same scores to the last bit."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from arboost import AdaBoostRegressor
from support.export_models import (
    CASES,
    HOSTILE,
    WORDS,
    hostile_names,
    model_of,
    random_median,
    random_model,
    rows_of,
    times,
    without_levels,
)
from support.paths import DOCS

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or ["cc"]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
FLAGS = ["-std=c99", "-O1", "-ffp-contract=off", *STRICT]

pytestmark = pytest.mark.skipif(
    shutil.which(COMPILERS[0]) is None or sys.platform == "win32",
    reason="no C compiler (gcc, clang or cc) is there",
)


@pytest.fixture(scope="module", autouse=True)
def forget_models():
    """Let go of all models before the core is gone."""
    yield
    model_of.cache_clear()


DRIVER = """
#define {upper}_IMPLEMENTATION
#include "{name}.h"
static const size_t width = {upper}_N_FEATURES;
void raw_of(const double *rows, size_t n, double *raw) {{
  for (size_t i = 0; i < n; ++i) {name}_raw(rows + i * width, raw + i * {upper}_N_OUTPUTS);
}}
void prediction_of(const double *rows, size_t n, {type} *prediction) {{
  for (size_t i = 0; i < n; ++i) {name}_predict(rows + i * width, prediction + i * {n_predictions});
}}
"""
PROBABILITIES = """
void proba_of(const double *rows, size_t n, double *p) {{
  for (size_t i = 0; i < n; ++i) {name}_proba(rows + i * width, p + i * {upper}_N_CLASSES);
}}
"""


class Compiled:
    """A shared library of a model's header."""

    def __init__(self, model, folder, compiler=COMPILERS[0], flags=FLAGS, name="model"):
        self.model, self.name = model, name
        is_classifier = model.kind == "classifier"
        driver = DRIVER + (PROBABILITIES if is_classifier else "")
        words = {
            "name": name,
            "upper": name.upper(),
            "type": "size_t" if is_classifier else "double",
            "n_predictions": max(len(model.targets), 1) if is_classifier else model.n_outputs,
        }
        model.to_c(folder / f"{name}.h", name=name)
        (folder / "driver.c").write_text(driver.format(**words))
        library = folder / f"{compiler}.so"
        compile_with(compiler, flags, folder, "driver.c", "-shared", "-fPIC", "-o", library, "-lm")
        self.library = ctypes.CDLL(str(library))
        self.library[f"{name}_feature_names"]  # is there

    def rows(self, X):
        """Rows for C: levels as values of the header's own functions."""
        schema = self.model.schema
        rows = np.empty((len(X), schema.n_features))
        for feature in range(schema.n_features):
            levels = schema.levels_of(feature)
            column = X[:, feature]
            if levels is not None:
                column = [self.level(feature, levels.kind, value) for value in column]
            rows[:, feature] = [np.nan if value is None else value for value in column]
        return rows

    def level(self, feature, kind, value):
        if value is None:
            return np.nan
        if kind == "number":
            find = self.library[f"{self.name}_level_of_number"]
            find.restype = ctypes.c_double
            return find(ctypes.c_size_t(feature), ctypes.c_double(value))
        find = self.library[f"{self.name}_level"]
        find.restype = ctypes.c_double
        text = value.encode()
        return find(ctypes.c_size_t(feature), text, ctypes.c_size_t(len(text)))

    def run(self, function, X, width, dtype=np.float64):
        rows = np.ascontiguousarray(self.rows(X))
        out = np.full((len(X), width), 7, dtype)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (rows, out)]
        self.library[function](pointers[0], ctypes.c_size_t(len(X)), pointers[1])
        return out

    def texts(self, table, n):
        return [one.decode() for one in (ctypes.c_char_p * n).in_dll(self.library, table)]


def compile_with(compiler, flags, folder, *arguments):
    command = [compiler, *flags, *map(str, arguments)]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def check_raw(compiled, X):
    expected = compiled.model.predict_raw(X)
    actual = compiled.run("raw_of", X, compiled.model.n_outputs)
    np.testing.assert_array_equal(actual, expected)


def check_predictions(compiled, X):
    model = compiled.model
    if model.kind == "regressor":
        actual = compiled.run("prediction_of", X, model.n_outputs)
        expected = model.predict(X).reshape(actual.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=0)
        if model.link != "exp":
            np.testing.assert_array_equal(actual, expected)
        return
    labels = model.classes if model.targets else [model.classes]
    every = [str(one) for part in labels for one in part.tolist()]
    names = compiled.texts("model_classes", len(every))
    assert names == every
    places = compiled.run("prediction_of", X, len(labels), np.uintp)
    expected = model.predict(X).reshape(places.shape)
    assert np.array(names, object)[places].tolist() == expected.astype(object).astype(str).tolist()
    probabilities = model.predict_proba(X)
    expected = np.concatenate(probabilities if model.targets else [probabilities], axis=1)
    actual = compiled.run("proba_of", X, len(every))
    np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("case", CASES)
def test_same_predictions(case, rng, tmp_path):
    model = model_of(case)
    X = rows_of(model, rng)
    compiled = Compiled(model, tmp_path)
    check_raw(compiled, X)
    check_predictions(compiled, X)


@pytest.mark.parametrize(
    ("n_outputs", "width", "categories"),
    [(1, 1, ()), (3, 1, ()), (3, 3, ()), (1, 1, (1, 3)), (3, 3, (0, 1, 2, 3, 4))],
)
def test_random_trees(n_outputs, width, categories, rng, tmp_path):
    model = random_model(rng, n_outputs=n_outputs, width=width, categories=categories)
    compiled = Compiled(model, tmp_path)
    check_raw(compiled, rows_of(model, rng, 500).astype(float))


def test_random_medians(rng, tmp_path):
    model = random_median(rng)
    check_raw(Compiled(model, tmp_path), rows_of(model, rng, 500))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("optimisation", ["-O0", "-O3 -ffp-contract=fast"])
@pytest.mark.parametrize("case", ["many_levels", "forest_of_classes", "r2", "class_targets"])
def test_compilers_agree(compiler, optimisation, case, rng, tmp_path):
    """Floating-point contraction changes nothing, too."""
    flags = ["-std=c99", *STRICT, *optimisation.split()]
    model = model_of(case)
    check_raw(Compiled(model, tmp_path, compiler, flags), rows_of(model, rng))


def test_the_median_of_one_tree(rng, tmp_path):
    X = rng.normal(size=(50, 2))
    check_raw(Compiled(AdaBoostRegressor(n_estimators=1).fit(X, X[:, 0]).model_, tmp_path), X)


def test_what_is_no_code_is_missing(rng, tmp_path):
    model = random_model(rng, categories=(0, 1, 2, 3, 4))
    compiled = Compiled(model, tmp_path)
    codes = np.array([-1.0, -0.5, 0.5, 254.5, 255.0, 256.0, 1e30, -1e30, np.inf, -np.inf, np.nan])
    X = np.repeat(codes[:, None], 5, axis=1)
    compiled.rows = lambda X: X
    missing = model.predict_raw(np.full((1, 5), np.nan))
    np.testing.assert_array_equal(
        compiled.run("raw_of", X, 1), np.repeat(missing, len(codes), axis=0)
    )


@pytest.mark.parametrize("name", ["prices", "MODEL", "model_model", "int"])
def test_strings_of_any_content(name, rng, tmp_path):
    """Quotes, comments, trigraphs, zeros, long strings, and names of functions."""
    plain = model_of("levels_of_forest")
    model = hostile_names(plain)
    compiled = Compiled(model, tmp_path, name=name, flags=[*FLAGS, "-trigraphs"])
    n = model.schema.n_features
    assert compiled.texts(f"{name}_feature_names", n) == list(HOSTILE[:n])
    levels = model.schema.levels_of(1)
    known = {levels.label(code) for code in range(len(levels))}
    assert set(WORDS) >= known
    codes = {word: compiled.level(1, "string", word) for word in WORDS}
    for word, code in codes.items():
        assert levels.label(int(code)) == word if word in known else np.isnan(code)
    assert np.isnan(compiled.level(1, "string", "b\0"))
    assert np.isnan(compiled.level(0, "string", "b"))  # no category
    assert np.isnan(compiled.level(99, "string", "b"))
    assert np.isnan(compiled.level(1, "number", 1.0))
    X = rows_of(model, rng)
    np.testing.assert_array_equal(compiled.run("raw_of", X, 1), plain.predict_raw(X))


def test_all_names_of_features(rng, tmp_path):
    model = random_model(rng)
    names = HOSTILE[3:]
    hostile = hostile_names(model)
    object.__setattr__(hostile.schema, "names", names)
    assert Compiled(hostile, tmp_path).texts("model_feature_names", 5) == list(names)


@pytest.mark.parametrize(
    ("given", "used"),
    [("a-b c", "a_b_c"), ("3d", "model_3d"), ("", "model"), ("_X", "X"), ("é*/", "model")],
)
def test_names_are_made_safe(given, used):
    text = model_of("one_leaf").to_c(name=given)
    assert f"void {used}_raw(" in text
    assert f"#define {used.upper()}_N_FEATURES 5" in text


def test_name_must_be_a_string():
    with pytest.raises(TypeError, match="name=3 is not allowed"):
        model_of("one_leaf").to_c(name=3)


def test_several_files_and_models_in_one_program(tmp_path):
    """Included from several source files, as C and as C++, and in one twice."""
    for name, case in (("one", "binary"), ("two", "levels")):
        model_of(case).to_c(tmp_path / f"{name}.h", name=name)
    both = '#include "one.h"\n#include "two.h"\n'
    define = "#define ONE_IMPLEMENTATION\n#define TWO_IMPLEMENTATION\n"
    (tmp_path / "models.c").write_text(define + both + both)
    (tmp_path / "main.c").write_text(
        both + "#include <stdio.h>\nint main(void) {\n"
        "  const double row[ONE_N_FEATURES] = {0};\n  double p[ONE_N_CLASSES];\n"
        "  one_proba(row, p);\n"
        '  printf("%.17g %s\\n", p[1], two_level_numbers[2] ? "yes" : "no");\n'
        "  return 0;\n}\n"
    )
    compile_with(COMPILERS[0], FLAGS, tmp_path, "models.c", "main.c", "-o", "program", "-lm")
    printed = subprocess.check_output([tmp_path / "program"], text=True).split()
    assert printed[1] == "yes"
    expected = model_of("binary").predict_proba(np.zeros((1, 5)))[0, 1]
    assert float(printed[0]) == pytest.approx(expected, rel=1e-13)
    compile_with(COMPILERS[0], ["-x", "c++", *STRICT], tmp_path, "-c", "models.c", "-o", "cpp.o")


def test_example_of_the_docs(tmp_path, monkeypatch):
    """The example prints Python's prediction of the same row."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "tasks" / "export.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)print", page, re.DOTALL)[1]
    exec(compile(code, "docs/tasks/export.md", "exec"), names := {})
    (tmp_path / "main.c").write_text(re.search(r"```c\n(.*?)```", page, re.DOTALL)[1])
    compile_with(COMPILERS[0], FLAGS, tmp_path, "main.c", "-o", "program", "-lm")
    row = pytest.importorskip("pandas").DataFrame({"age": [30.0], "city": ["Oslo"]})
    expected = f"{names['model'].predict(row)[0]} {names['model'].predict_proba(row).max():.3f}\n"
    assert subprocess.check_output([tmp_path / "program"], text=True) == expected


def test_fast_math_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="compile without -ffast-math"):
        Compiled(model_of("squared"), tmp_path, flags=[*FLAGS, "-ffast-math"])


def test_times(rng, tmp_path):
    model, table, seconds = times(rng)
    actual = Compiled(model, tmp_path).run("raw_of", seconds, 1)
    np.testing.assert_array_equal(actual, model.predict_raw(table))
    text = model.to_c()
    assert "Feature 0 (the first is 0) is a time: seconds since 1970 in UTC." in text
    assert "86400.0 is missing in columns of plain numbers, too." in text


def test_categories_without_levels(rng, tmp_path):
    model, table = without_levels(rng)
    compiled = Compiled(model, tmp_path)
    check_raw(compiled, table)
    assert np.isnan(compiled.level(1, "string", ""))
    assert np.isnan(compiled.level(2, "number", 0.0))


def test_nothing_else_is_loaded(tmp_path):
    model_of("levels").save(tmp_path / "model.arb")
    code = (
        "import sys, arboost\n"
        "assert arboost.load(sys.argv[1]).to_c()\n"
        "print([name for name in ('sklearn', 'pandas', 'onnx') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "model.arb"]
    assert subprocess.check_output(command, text=True).strip() == "[]"


def test_lines_are_short_and_ascii():
    for case in CASES:
        text = model_of(case).to_c()
        assert text.isascii()
        code = [line for line in text.splitlines() if not re.match(r'["{]', line)]
        assert max(map(len, code)) <= 100, case
