"""Fits with an offset on a CUDA device equal those of the CPU, byte for byte."""

import numpy as np
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.data.cuda import CudaArray
from arboost.models.files.model_file import to_bytes
from support.cuda import has_device

if not has_device():
    pytest.skip("no CUDA device: its models are not compared", allow_module_level=True)

ROWS = 1500
RNG = np.random.default_rng(3)
X = RNG.integers(-200, 200, (ROWS, 5)) / 4
START = RNG.integers(-40, 40, (ROWS, 3)) / 32
COUNTS = np.floor(np.exp(START[:, 0] + (X[:, 0] > 10)))

FITS = {
    "poisson": ({"loss": "poisson"}, False),
    "steps": ({"loss": "poisson", "boosting": "gradient"}, False),
    "absolute error": ({"loss": "absolute_error"}, False),
    "dropout": ({"rate_drop": 0.5}, False),
    "gradient-based": ({"sampling_method": "gradient_based", "subsample": 0.3}, False),
    "watched": ({"loss": "poisson"}, True),
    "early stopping": ({"loss": "poisson", "n_estimators": 30, "n_iter_no_change": 3}, False),
}


@pytest.mark.parametrize("case", FITS)
def test_regressor(case):
    params, watched = FITS[case]
    files, curves = set(), []
    for device in ("cpu", "cuda"):
        model = GradientBoostingRegressor(**{"n_estimators": 4, **params}, device=device)
        sets = {"X_val": X[:300], "y_val": COUNTS[:300], "offset_val": START[:300, 0]}
        model.fit(X, COUNTS, offset=START[:, 0], **(sets if watched else {}))
        files.add(to_bytes(model.model_))
        curves.append(model.evals_result_)
    assert len(files) == 1
    assert curves[0] == curves[1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifier(n_classes):
    y = COUNTS.astype(int) % n_classes
    offset = START if n_classes > 2 else START[:, 0]
    models = [
        GradientBoostingClassifier(n_estimators=3, device=device).fit(X, y, offset=offset).model_
        for device in ("cpu", "cuda")
    ]
    assert to_bytes(models[0]) == to_bytes(models[1])
    model, there = models[0], CudaArray.of(X)
    known = model.predict_proba(X, offset=offset)
    for found in (
        model.to("cuda").predict_proba(X, offset=offset),
        model.predict_proba(there, offset=offset).to_numpy(),
        model.predict_proba(there, offset=CudaArray.of(offset)).to_numpy(),
    ):
        np.testing.assert_array_equal(found, known)
    raw = model.predict_raw(there, offset=offset).to_numpy()
    np.testing.assert_array_equal(raw, model.predict_raw(X, offset=offset))
    labels = model.predict(there, offset=offset).to_numpy()
    np.testing.assert_array_equal(labels, model.predict(X, offset=offset))
    with pytest.raises(ValueError, match="offset=0 for predictions without it"):
        model.predict(there)


def test_table_in_device_memory():
    known = GradientBoostingRegressor(n_estimators=3).fit(X, COUNTS, offset=START[:, 0])
    model = GradientBoostingRegressor(n_estimators=3, device="cuda")
    model.fit(CudaArray.of(X), CudaArray.of(COUNTS), offset=CudaArray.of(START[:, 0].copy()))
    assert to_bytes(model.model_) == to_bytes(known.model_)
    one = model.predict(CudaArray.of(X), offset=CudaArray.of(START[:, 0].copy())).to_numpy()
    np.testing.assert_array_equal(one, known.predict(X, offset=START[:, 0]))
