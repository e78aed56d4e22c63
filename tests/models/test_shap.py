"""SHAP values: against their definition and the package shap, and their sums."""

from __future__ import annotations

import numpy as np
import pytest
import shap

import arboost
from arboost import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from support import shapley

N_FEATURES = 5


def make_table(n=300):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, N_FEATURES))
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(X.shape) < 0.1] = np.nan
    score = np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 3] + 0.5 * X[:, 4] ** 2)
    return X, score + 0.3 * rng.normal(size=n)


X, TARGET = make_table()
TWO, THREE = (TARGET > 0.5).astype(int), np.digitize(TARGET, [-0.3, 1.0])
BOTH = np.stack([TARGET, np.nan_to_num(X[:, 0])], axis=1)
PAIRS = np.stack([TWO, X[:, 1] > 0.3], axis=1)

ESTIMATORS = {
    "booster": (GradientBoostingRegressor(n_estimators=6, max_depth=4), TARGET),
    "booster of two classes": (GradientBoostingClassifier(n_estimators=5, max_depth=5), TWO),
    "booster of three classes": (GradientBoostingClassifier(n_estimators=3, max_depth=3), THREE),
    "vector leaves": (
        GradientBoostingClassifier(n_estimators=4, max_depth=4, multi_strategy="multi_output_tree"),
        THREE,
    ),
    "quantiles": (
        GradientBoostingRegressor(n_estimators=4, max_depth=3, loss="quantile", alpha=[0.2, 0.8]),
        TARGET,
    ),
    "tree": (DecisionTreeRegressor(max_depth=6), TARGET),
    "tree of classes": (DecisionTreeClassifier(max_depth=4), THREE),
    "tree of two classes": (DecisionTreeClassifier(max_depth=4), TWO),
    "forest": (RandomForestRegressor(n_estimators=4, max_depth=7, random_state=0), TARGET),
    "forest of classes": (RandomForestClassifier(n_estimators=4, max_depth=4, random_state=0), TWO),
    "forest of two targets": (
        RandomForestRegressor(n_estimators=3, max_depth=4, random_state=0),
        BOTH,
    ),
    "forest of two targets of two classes": (
        RandomForestClassifier(n_estimators=3, max_depth=4, random_state=0),
        PAIRS,
    ),
    "extra trees": (ExtraTreesRegressor(n_estimators=4, max_depth=5, random_state=0), TARGET),
    "AdaBoost": (AdaBoostClassifier(n_estimators=8), TWO),
    "AdaBoost of three classes": (AdaBoostClassifier(n_estimators=5), THREE),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: model.fit(X, y) for name, (model, y) in ESTIMATORS.items()}


def by_output(values):
    """Return the values with an axis of outputs, also where there is one output."""
    return values if values.ndim == 3 else values[..., np.newaxis]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_definition(fitted, name):
    model = fitted[name].model_
    found = by_output(fitted[name].shap_values(X[:9]))
    expected = [shapley.values(model, row) for row in X[:9]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    nothing = shapley.game(model, X[0], frozenset())
    np.testing.assert_allclose(fitted[name].expected_value(), nothing, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_sums_to_scores(fitted, name):
    model = fitted[name].model_
    total = by_output(fitted[name].shap_values(X)).sum(axis=1) + model.expected_value()
    scores = shapley.explained(model, model.predict_raw(X))
    np.testing.assert_allclose(total, scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize("stored", ["fitted", "arb", "json"])
@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeClassifier(max_depth=4), RandomForestClassifier(5), ExtraTreesClassifier(5)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_trees_and_forests_sum_to_probabilities(estimator, stored, tmp_path):
    for y, n_classes in ((TWO, 2), (THREE, 3)):
        model = estimator.fit(X, y)
        if stored != "fitted":
            model.save(tmp_path / f"model.{stored}")
            model = arboost.load(tmp_path / f"model.{stored}")
        proba = model.predict_proba(X)
        scores = proba if n_classes == 3 else proba[:, 1:]
        values, pairs = model.shap_values(X), model.shap_interactions(X[:20])
        assert values.shape == (len(X), N_FEATURES) + (n_classes,) * (n_classes > 2)
        assert model.expected_value().shape == (scores.shape[1],)
        total = by_output(values).sum(axis=1) + model.expected_value()
        np.testing.assert_allclose(total, scores, rtol=0, atol=1e-12)
        np.testing.assert_allclose(pairs.sum(axis=2), values[:20], rtol=0, atol=1e-12)
        others = X[:30]
        against = by_output(model.shap_values(X[:5], background=others)).sum(axis=1)
        against += model.expected_value(background=others)
        np.testing.assert_allclose(against, scores[:5], rtol=0, atol=1e-12)
        importance = np.abs(by_output(values)).mean(axis=0).sum(axis=1)
        found = getattr(model, "model_", model).importances("shap", X)
        np.testing.assert_allclose(found, importance, rtol=1e-12)


def test_several_targets_of_two_classes_sum_to_probabilities(fitted):
    model = fitted["forest of two targets of two classes"]
    total = model.shap_values(X).sum(axis=1) + model.expected_value()
    scores = np.stack([proba[:, 1] for proba in model.predict_proba(X)], axis=1)
    np.testing.assert_allclose(total, scores, rtol=0, atol=1e-12)


def test_adaboost_sums_to_its_votes(fitted):
    for name in ("AdaBoost", "AdaBoost of three classes"):
        model = fitted[name]
        total = model.shap_values(X).sum(axis=1) + model.expected_value()
        np.testing.assert_allclose(total, model.decision_function(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_interactions(fitted, name):
    found = fitted[name].shap_interactions(X[:4])
    values = fitted[name].shap_values(X[:4])
    np.testing.assert_allclose(found.sum(axis=2), values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, np.swapaxes(found, 1, 2))
    found = found if found.ndim == 4 else found[..., np.newaxis]
    expected = [shapley.interactions(fitted[name].model_, row) for row in X[:4]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_others", [1, 2, 40])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_background(fitted, name, n_others):
    model, others = fitted[name].model_, X[100 : 100 + n_others]
    n_rows = 300 if n_others == 40 else 6  # many rows are computed by patterns, few by pairs
    found = by_output(fitted[name].shap_values(X[:n_rows], background=others))
    expected = [shapley.values(model, row, others) for row in X[:2]]
    np.testing.assert_allclose(found[:2], expected, rtol=0, atol=1e-12)
    base = fitted[name].expected_value(background=others)
    mean = shapley.explained(model, model.predict_raw(others)).mean(axis=0)
    np.testing.assert_allclose(base, mean, rtol=0, atol=1e-15)
    scores = shapley.explained(model, model.predict_raw(X[:n_rows]))
    np.testing.assert_allclose(found.sum(axis=1) + base, scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_agrees_with_shap(fitted, name):
    # shap 0.51 takes the mean of covers itself, where missing values do not follow the default.
    rows = X[~np.isnan(X).any(axis=1)][:50]
    model = fitted[name].model_
    explainer = shap.TreeExplainer(shapley.as_dict(model))
    theirs = explainer.shap_values(rows, check_additivity=False)
    np.testing.assert_allclose(fitted[name].shap_values(rows), theirs, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.expected_value(), explainer.expected_value, atol=1e-6)
    pairs = explainer.shap_interaction_values(rows[:5])
    np.testing.assert_allclose(model.shap_interactions(rows[:5]), pairs, rtol=0, atol=1e-6)
    others = rows[20:40]
    explainer = shap.TreeExplainer(shapley.as_dict(model), others)
    theirs = explainer.shap_values(rows, check_additivity=False)
    ours = model.shap_values(rows, background=others)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
