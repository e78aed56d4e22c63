"""SHAP values: against their definition and the package shap, and their sums."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import textwrap
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import shap
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier as OtherTree

import arboost
from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    Dataset,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from arboost.data.schema import Schema
from arboost.data.table import ingest
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
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
    actual = by_output(fitted[name].shap_values(X[:9]))
    expected = [shapley.values(model, row) for row in X[:9]]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)
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
        actual = getattr(model, "model_", model).importances("shap", X)
        np.testing.assert_allclose(actual, importance, rtol=1e-12)


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
    actual = fitted[name].shap_interactions(X[:4])
    values = fitted[name].shap_values(X[:4])
    np.testing.assert_allclose(actual.sum(axis=2), values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(actual, np.swapaxes(actual, 1, 2))
    actual = actual if actual.ndim == 4 else actual[..., np.newaxis]
    expected = [shapley.interactions(fitted[name].model_, row) for row in X[:4]]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_others", [1, 2, 40])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_background(fitted, name, n_others):
    model, others = fitted[name].model_, X[100 : 100 + n_others]
    n_rows = 300 if n_others == 40 else 6  # many rows are computed by patterns, few by pairs
    actual = by_output(fitted[name].shap_values(X[:n_rows], background=others))
    expected = [shapley.values(model, row, others) for row in X[:2]]
    np.testing.assert_allclose(actual[:2], expected, rtol=0, atol=1e-12)
    base = fitted[name].expected_value(background=others)
    mean = shapley.explained(model, model.predict_raw(others)).mean(axis=0)
    np.testing.assert_allclose(base, mean, rtol=0, atol=1e-15)
    scores = shapley.explained(model, model.predict_raw(X[:n_rows]))
    np.testing.assert_allclose(actual.sum(axis=1) + base, scores, rtol=0, atol=1e-12)


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


def model_of(arrays, n_features):
    n_nodes = len(arrays["left"])
    forest = Forest(
        tree_start=np.array([0, n_nodes]),
        gain=np.zeros(n_nodes),
        default_left=np.zeros(n_nodes, bool),
        output=np.zeros(1),
        **arrays,
    )
    forest.validate(n_features, 1)
    return Predictor(
        forest=forest,
        schema=Schema(None, n_features),
        base_score=np.zeros(1),
        link="identity",
        classes=None,
        trees_per_round=1,
        params={},
        kind="regressor",
    )


def chain(features, shares, rng):
    """Return one tree whose splits have a leaf on the left and the other nodes on the right."""
    n = len(features)
    left, cover = np.zeros(2 * n + 1, int), np.ones(2 * n + 1)
    feature = np.zeros(2 * n + 1, int)
    for i, share in enumerate(shares):
        node = 2 * i
        left[node], feature[node] = node + 1, features[i]
        cover[node + 1], cover[node + 2] = cover[node] * (1 - share), cover[node] * share
    value = rng.normal(size=(2 * n + 1, 1))
    threshold = np.where(left > 0, 0.25 * rng.normal(size=2 * n + 1), 0)
    arrays = {"left": left, "feature": feature, "threshold": threshold}
    return model_of(arrays | {"value": value, "cover": cover}, max(features) + 1)


def exact_values(model, row):
    """Return the SHAP values of a chain by rational integrals of each leaf's polynomial."""
    forest = model.forest
    phi = [Fraction(0)] * model.schema.n_features
    shares, met = {}, {}  # of the features on the path
    for node in range(0, len(forest.left) - 1, 2):
        feature = int(forest.feature[node])
        total = forest.cover[node + 1] + forest.cover[node + 2]
        to_left = Fraction(float(forest.cover[node + 1] / total))
        goes_left = row[feature] <= forest.threshold[node]
        before = shares.get(feature, Fraction(1)), met.get(feature, True)
        shares[feature], met[feature] = before[0] * to_left, before[1] and goes_left
        add_leaf(phi, Fraction(float(forest.value[node + 1, 0])), shares, met)
        shares[feature], met[feature] = before[0] * (1 - to_left), before[1] and not goes_left
    add_leaf(phi, Fraction(float(forest.value[-1, 0])), shares, met)
    return [float(one) for one in phi]


def add_leaf(phi, value, shares, met):
    for feature in shares:
        polynomial, unit = [1], 1  # integers, over one denominator
        for other in shares:
            if other != feature:
                start, whole = shares[other].as_integer_ratio()
                slope = int(met[other]) * whole - start
                longer = [start * c for c in polynomial] + [0]
                for power, c in enumerate(polynomial):
                    longer[power + 1] += slope * c
                polynomial, unit = longer, unit * whole
        integral = sum(Fraction(c, power + 1) for power, c in enumerate(polynomial)) / unit
        phi[feature] += value * (int(met[feature]) - shares[feature]) * integral


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 8, 12, 17, 24])
def test_paths_of_many_features(rng, n_features):
    features = [*range(n_features), *rng.integers(n_features, size=n_features // 2)]
    model = chain(features, rng.uniform(0.2, 0.95, len(features)), rng)
    rows = rng.normal(size=(5, n_features)) + 0.7
    expected = [exact_values(model, row) for row in rows]
    np.testing.assert_allclose(model.shap_values(rows), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n_features", [40, 110, 400, 1500])
def test_very_deep_trees(rng, n_features):
    model = chain(range(n_features), 1 - 3 * rng.random(n_features) / n_features, rng)
    rows = np.where(rng.random((9, n_features)) < 0.01, -5.0, 5.0)
    rows[0] = 5
    values = model.shap_values(rows)
    total = values.sum(axis=1) + model.expected_value()
    np.testing.assert_allclose(total, model.predict_raw(rows)[:, 0], rtol=0, atol=1e-11)
    others = rng.normal(size=(3, n_features))
    total = model.shap_values(rows, background=others).sum(axis=1)
    total += model.expected_value(background=others)
    np.testing.assert_allclose(total, model.predict_raw(rows)[:, 0], rtol=0, atol=1e-11)
    if n_features <= 400:
        pairs = model.shap_interactions(rows[:2])
        np.testing.assert_allclose(pairs.sum(axis=2), values[:2], rtol=0, atol=1e-11)


def test_covers_of_zero(rng):
    # No training row went right at the first split, so none reached the second.
    arrays = {
        "left": np.array([1, 0, 3, 0, 0]),
        "feature": np.array([0, 0, 1, 0, 0]),
        "threshold": np.zeros(5),
        "value": rng.normal(size=(5, 1)),
        "cover": np.array([4.0, 4.0, 0.0, 0.0, 0.0]),
    }
    model = model_of(arrays, 2)
    rows = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0]])
    expected = [shapley.values(model, row)[:, 0] for row in rows]
    np.testing.assert_allclose(model.shap_values(rows), expected, rtol=0, atol=1e-15)


def test_large_trees():
    """Trees whose values are processed in several parts, and rows in several blocks."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 12))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.1 * rng.normal(size=3000)
    model = RandomForestRegressor(n_estimators=2, random_state=0).fit(X, y).model_
    assert model.forest.n_nodes > 6000
    values = model.shap_values(X[:50])
    explainer = shap.TreeExplainer(shapley.as_dict(model))
    np.testing.assert_allclose(
        values, explainer.shap_values(X[:50], check_additivity=False), rtol=0, atol=1e-6
    )
    total = model.shap_values(X).sum(axis=1) + model.expected_value()
    np.testing.assert_allclose(total, model.predict_raw(X)[:, 0], rtol=0, atol=1e-12)
    pairs = model.shap_interactions(X[:10])
    np.testing.assert_allclose(pairs.sum(axis=2), values[:10], rtol=0, atol=1e-12)
    against = model.shap_values(X[:10], background=X[100:130])
    total = against.sum(axis=1) + model.expected_value(background=X[100:130])
    np.testing.assert_allclose(total, model.predict_raw(X[:10])[:, 0], rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def mixed():
    """Return a table with categories of few and of many levels, numbers, and missing values."""
    rng = np.random.default_rng(2)
    n = 600
    table = pd.DataFrame(
        {
            "color": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
            "place": [f"p{i}" for i in rng.integers(150, size=n)],
            "size": rng.normal(size=n),
        }
    )
    y = (table["color"] == "red") * table["size"] + rng.normal(size=n) * 0.1
    y += table["place"].str.slice(1).astype(int) / 100
    table.loc[rng.random(n) < 0.1, "color"] = np.nan
    table.loc[rng.random(n) < 0.1, "size"] = np.nan
    return table, GradientBoostingRegressor(n_estimators=10, max_depth=4).fit(table, y)


def test_categories(mixed):
    table, model = mixed
    forest = model.model_.forest
    assert forest.has_sets
    assert set(forest.feature[forest.is_split]) == {0, 1, 2}
    columns = ingest(table, model.model_.schema).columns
    rows = np.stack([columns.read(i) for i in range(3)], axis=1)[:12]
    actual = model.shap_values(table[:12])
    expected = [shapley.values(model.model_, row)[:, 0] for row in rows]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)
    actual = model.shap_values(table[:3], background=table[20:24])
    others = np.stack([columns.read(i) for i in range(3)], axis=1)[20:24]
    expected = [shapley.values(model.model_, row, others)[:, 0] for row in rows[:3]]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)
    many = model.shap_values(table, background=table[20:24])  # by patterns
    np.testing.assert_allclose(many[:3], expected, rtol=0, atol=1e-12)
    pairs = model.shap_interactions(table[:2])
    expected = [shapley.interactions(model.model_, row)[..., 0] for row in rows[:2]]
    np.testing.assert_allclose(pairs, expected, rtol=0, atol=1e-12)


def test_columns_by_name(mixed):
    table, model = mixed
    swapped = table[["size", "color", "place"]]
    np.testing.assert_array_equal(model.shap_values(swapped), model.shap_values(table))


def test_missing_number():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] - X[:, 1]
    X[::7, 0] = np.nan
    plain = GradientBoostingRegressor(n_estimators=5).fit(X, y)
    coded = GradientBoostingRegressor(n_estimators=5, missing=-99.0)
    coded.fit(np.nan_to_num(X, nan=-99.0), y)
    actual = coded.shap_values(np.nan_to_num(X, nan=-99.0))
    np.testing.assert_array_equal(actual, plain.shap_values(X))


def test_explanation(mixed):
    table, model = mixed
    actual = model.shap_explanation(table[:5])
    assert isinstance(actual, shap.Explanation)
    np.testing.assert_array_equal(actual.values, model.shap_values(table[:5]))
    np.testing.assert_array_equal(actual.base_values, np.repeat(model.expected_value(), 5))
    assert actual.feature_names == ["color", "place", "size"]
    labels = table["color"][:5].astype(object)
    assert actual.data[:, 0].tolist() == [None if pd.isna(one) else one for one in labels]


def test_explanations_show_values_of_the_user():
    """Never level codes, target means or seconds; also of levels that fit did not see."""
    n_rows = 200
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "shop": [f"s{i}" for i in rng.integers(0, 150, n_rows)],
            "city": rng.choice(["Rome", "Oslo"], n_rows),
            "level": pd.Categorical(rng.integers(0, 3, n_rows)),
            "day": pd.date_range("2024-01-01", periods=n_rows),
            "span": pd.to_timedelta(np.arange(n_rows), unit="min"),
            "clock": [dt.time(i % 24, 30) for i in range(n_rows)],
            "x": rng.normal(size=n_rows),
        }
    )
    model = GradientBoostingRegressor(n_estimators=3).fit(table, table["x"].to_numpy())
    new = table[:4].copy()
    new["city"] = ["Paris", "Rome", None, "Oslo"]
    new.loc[1, "day"] = pd.NaT
    shown = model.shap_explanation(new[new.columns[::-1]]).data
    assert shown[:, 0].tolist() == new["shop"].tolist()
    assert shown[:, 1].tolist() == ["Paris", "Rome", None, "Oslo"]
    assert shown[:, 2].tolist() == new["level"].tolist()
    assert shown[:, 3].tolist() == [
        None if pd.isna(one) else one.to_pydatetime() for one in new["day"]
    ]
    assert shown[:, 4].tolist() == [one.to_pytimedelta() for one in new["span"]]
    assert shown[:, 5].tolist() == new["clock"].tolist()
    assert shown[:, 6].tolist() == new["x"].tolist()


def test_explanation_of_classes():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 2))
    model = GradientBoostingClassifier(n_estimators=2).fit(
        X, np.array(["a", "b", "c"])[:, None].repeat(30, 1).ravel()
    )
    actual = model.model_.shap_explanation(X[:4], background=X[:10])
    assert actual.values.shape == (4, 2, 3)
    assert actual.base_values.shape == (4, 3)
    assert list(actual.output_names) == ["a", "b", "c"]
    np.testing.assert_array_equal(actual.data, X[:4])


def test_models_without_splits():
    model = GradientBoostingRegressor(n_estimators=3).fit([[0.0], [1.0]], [2.0, 2.0])
    assert model.shap_values([[0.0], [5.0]]).tolist() == [[0.0], [0.0]]
    assert model.shap_interactions([[0.0]]).tolist() == [[[0.0]]]
    assert model.expected_value().tolist() == [2.0]
    assert model.shap_values([[0.0]], background=[[1.0]]).tolist() == [[0.0]]
    assert model.model_.truncated(0).shap_values([[0.0]]).tolist() == [[0.0]]


def test_no_rows():
    model = DecisionTreeRegressor().fit([[0.0, 1.0], [1.0, 1.0]], [2.0, 3.0])
    assert model.shap_values(np.empty((0, 2))).shape == (0, 2)
    assert model.shap_interactions(np.empty((0, 2))).shape == (0, 2, 2)
    assert model.shap_values(np.empty((0, 2)), background=[[0, 0]]).shape == (0, 2)


def test_refusals():
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20.0)
    model = DecisionTreeRegressor().fit(X, y)
    median = AdaBoostRegressor(n_estimators=3).fit(X, y)
    for ask in (median.shap_values, median.shap_interactions, median.model_.shap_explanation):
        with pytest.raises(TypeError, match="weighted median"):
            ask(X)
    with pytest.raises(TypeError, match="weighted median"):
        median.expected_value()
    members = AdaBoostClassifier(OtherTree(max_depth=1), n_estimators=2).fit(X, y > 9)
    with pytest.raises(TypeError, match="trees of arboost"):
        members.shap_values(X)
    with pytest.raises(NotFittedError):
        GradientBoostingRegressor().shap_values(X)
    with pytest.raises(TypeError, match="X is a Dataset"):
        model.shap_values(Dataset(X, y))
    with pytest.raises(TypeError, match="background is a Dataset"):
        model.shap_values(X, background=Dataset(X, y))
    with pytest.raises(ValueError, match="background has no rows"):
        model.shap_values(X, background=X[:0])
    with pytest.raises(arboost.SchemaError):
        model.shap_values(X, background=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="n_jobs"):
        model.model_.shap_values(X, n_jobs=0)


PROGRAM = """
    import hashlib, sys
    import numpy as np
    from arboost import GradientBoostingClassifier, RandomForestRegressor
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 9))
    X[:, 8] = rng.integers(6, size=700)
    y = X[:, 0] * X[:, 1] + X[:, 2] + (X[:, 8] % 2)
    X[rng.random(X.shape) < 0.05] = np.nan
    names = dict(categorical_features=[8])
    models = [
        GradientBoostingClassifier(n_estimators=6, **names).fit(X, np.digitize(y, [0, 1])),
        RandomForestRegressor(n_estimators=3, random_state=0, **names).fit(X, y),
    ]
    found = []
    for model in models:
        for n_jobs in (1, 2, 5):
            one = model.model_
            parts = [one.shap_values(X, n_jobs=n_jobs)]
            parts += [one.shap_interactions(X[:40], n_jobs=n_jobs)]
            parts += [one.shap_values(X, background=X[:30], n_jobs=n_jobs), one.expected_value()]
            found.append(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
        rows = np.concatenate([one.shap_values(X[:333]), one.shap_values(X[333:])])
        assert rows.tobytes() == parts[0].tobytes()
    assert len(set(found)) == 2, found
    print(*sorted(set(found)))
"""


def test_same_bytes(instruction_sets):
    """Any number of threads, rows at once and instruction set."""
    printed = {isa: instruction_sets.run(isa, PROGRAM) for isa in ("baseline", "avx2", "avx512")}
    assert len(set(printed.values())) == 1, printed


def test_what_gets_loaded(tmp_path):
    path = tmp_path / "model.arb"
    DecisionTreeRegressor().fit([[0], [1]], [0, 1]).save(path)
    code = f"""
    import sys
    import arboost
    model = arboost.load({str(path)!r})
    print(model.shap_values([[1]]), model.expected_value())
    print([name for name in ("sklearn", "pandas", "shap", "scipy") if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[[0.5]] [0.5]", "[]"]
