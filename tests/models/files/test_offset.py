"""Exports of models with an offset: it is a further input of C headers and ONNX graphs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor

N = 300
RNG = np.random.default_rng(9)
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "offset"])
START = RNG.normal(size=(N, 3))
SCORE = X["a"].to_numpy() + START[:, 0]

FITS = {
    "one": lambda: GradientBoostingRegressor(loss="poisson", n_estimators=4).fit(
        X, np.floor(np.exp(SCORE)), offset=START[:, 0]
    ),
    "quantiles": lambda: GradientBoostingRegressor(
        loss="quantile", alpha=[0.2, 0.8], n_estimators=3
    ).fit(X.assign(start=START[:, 0]), SCORE, offset="start"),
    "two classes": lambda: GradientBoostingClassifier(n_estimators=4).fit(
        X.assign(**{"a */ b": START[:, 0]}), SCORE > 0, offset="a */ b"
    ),
    "three classes": lambda: GradientBoostingClassifier(n_estimators=3).fit(
        X, np.digitize(SCORE, [-0.5, 0.5]), offset=START
    ),
    "no rounds": lambda: (
        GradientBoostingRegressor(n_estimators=3)
        .fit(X, SCORE, offset=START[:, 0])
        .model_.truncated(0)
    ),
}


def fitted(case):
    """Return the model, the offsets of the rows, and the raw scores."""
    model = FITS[case]()
    model = getattr(model, "model_", model)
    offset = START if case == "three classes" else np.repeat(START[:, :1], model.n_outputs, axis=1)
    return model, offset, model.predict_raw(X, offset=offset)


@pytest.mark.parametrize("case", FITS)
@pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform == "win32", reason="no gcc is there"
)
def test_rows_in_c_end_with_the_offset(case, tmp_path):
    model, offset, raw = fitted(case)
    model.to_c(tmp_path / "model.h")
    (tmp_path / "m.c").write_text('#define MODEL_IMPLEMENTATION\n#include "model.h"\n')
    flags = ["-std=c99", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
    command = ["gcc", *flags, "-shared", "-fPIC", tmp_path / "m.c", "-o", tmp_path / "m.so", "-lm"]
    subprocess.run(command, check=True)
    raw_of = ctypes.CDLL(str(tmp_path / "m.so")).model_raw
    actual = np.empty_like(raw)
    pointer = ctypes.POINTER(ctypes.c_double)
    rows = np.ascontiguousarray(np.hstack([X.to_numpy(), offset]))
    for row, out in zip(rows, actual, strict=True):
        raw_of(row.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
    np.testing.assert_array_equal(actual, raw)
    text = (tmp_path / "model.h").read_text()
    assert f"#define MODEL_N_OFFSETS {model.n_outputs}\n" in text
    assert "more, its offset" in text


@pytest.mark.parametrize("case", FITS)
def test_offset_is_an_input_of_onnx(case):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model, offset, _ = fitted(case)
    session = runtime.InferenceSession(
        model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    inputs = [one.name for one in session.get_inputs()]
    assert inputs == ["X", "offset"]
    actual = session.run(None, {"X": X.to_numpy(), "offset": offset})
    if model.kind == "classifier":
        np.testing.assert_array_equal(actual[0], model.predict(X, offset=offset))
        np.testing.assert_allclose(actual[1], model.predict_proba(X, offset=offset), atol=1e-12)
    else:
        expected = model.predict(X, offset=offset).reshape(N, -1)
        np.testing.assert_allclose(np.reshape(actual[0], (N, -1)), expected, rtol=1e-9)


def test_models_without_offset_have_no_such_input():
    model = GradientBoostingRegressor(n_estimators=2).fit(X, SCORE)
    assert "N_OFFSETS" not in model.to_c()
