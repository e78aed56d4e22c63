"""Loaded models have the attributes and methods of the estimators that they come from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import arboost

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=120), "b": RNG.choice(list("xyz"), 120)})
Y = X["a"].to_numpy() + (X["b"] == "x")
TWO = np.where(Y > 0.3, "high", "low")
THREE = np.array(["low", "mid", "high"])[np.digitize(Y, [0, 1])]
WEIGHT = RNG.random(120)


def members(kind):
    return [(name, getattr(arboost, f"{name}{kind}")(n_estimators=4)) for name in NAMES[:2]]


NAMES = ("GradientBoosting", "RandomForest", "AdaBoost")
CASES = [(name, kind, y) for name in NAMES for kind, y in (("Regressor", Y), ("Classifier", TWO))]
CASES += [(name, "Classifier", THREE) for name in NAMES]
CASES += [
    (f"{name}", kind, y)
    for name in ("Voting", "Stacking")
    for kind, y in (("Regressor", Y), ("Classifier", TWO), ("Classifier", THREE))
]


@pytest.mark.parametrize(("name", "kind", "y"), CASES)
def test_loaded_models_answer_as_estimators(name, kind, y, tmp_path):
    cls = getattr(arboost, f"{name}{kind}")
    is_ensemble = name in ("Voting", "Stacking")
    estimator = cls(members(kind)) if is_ensemble else cls(n_estimators=4)
    estimator.fit(X, y)
    estimator.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    assert loaded.n_features_in_ == estimator.n_features_in_ == 2
    assert loaded.feature_names_in_.tolist() == ["a", "b"]
    for weight in (None, WEIGHT):
        assert loaded.score(X, y, weight) == pytest.approx(estimator.score(X, y, weight), rel=1e-12)
    assert loaded.score(X.assign(y=y), "y") == pytest.approx(estimator.score(X, y), rel=1e-12)
    if kind == "Classifier":
        np.testing.assert_array_equal(loaded.classes_, estimator.classes_)
    else:
        assert not hasattr(loaded, "classes_")
    if hasattr(estimator, "decision_function"):
        actual = loaded.decision_function(X)
        np.testing.assert_allclose(actual, estimator.decision_function(X), rtol=1e-12)
    else:
        with pytest.raises(TypeError, match="decision_function is there for"):
            loaded.decision_function(X)


def test_tables_without_names_and_several_targets():
    rows = RNG.normal(size=(60, 3))
    model = arboost.RandomForestRegressor(n_estimators=2).fit(rows, rows[:, :2])
    assert model.model_.n_features_in_ == 3
    assert not hasattr(model.model_, "feature_names_in_")
    score = model.model_.score(rows, rows[:, :2])
    assert score == pytest.approx(model.score(rows, rows[:, :2]), rel=1e-12)
    constant = model.model_.score(rows, np.zeros((60, 2)))
    assert constant == pytest.approx(model.score(rows, np.zeros((60, 2))))
