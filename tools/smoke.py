"""Smoke test of an installed wheel, in about a second: fit, save, load, predict."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import arboost

LEAST_ACCURACY = 0.97  # on the training rows; a broken core stays far below

X, y = load_breast_cancer(return_X_y=True)
model = arboost.GradientBoostingClassifier(n_estimators=20).fit(X, y)
accuracy = model.score(X, y)
if accuracy < LEAST_ACCURACY:
    raise SystemExit(f"accuracy on the training rows is {accuracy}, below {LEAST_ACCURACY}")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "smoke.arb"
    model.save(path)
    loaded = arboost.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
print(f"arboost {arboost.__version__}: fit, save, load and predict work")
