"""The nearest change that flips a prediction: it flips, and no smaller one of the data does."""

import numpy as np
import pytest

import arboost
from support.reported import fitted, halves, section, table


def changed_row(X, i, changes):
    row = X.iloc[[i]].copy()
    for one in changes:
        value = one["to"]
        if one["feature"] == "member":
            value = value == "True"
        if one["feature"] == "since":
            value = np.datetime64(value)
        row[one["feature"]] = value
    return row


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_changes_flip_the_answer(task):
    frame, targets = table()
    X = frame[halves()[1]]
    model = fitted("GradientBoosting", task)
    start = model.predict(X)
    flips = section(task, "flips")
    assert len(flips) == len(X)
    found = [(i, one) for i, one in enumerate(flips) if one is not None]
    assert len(found) > len(X) // 2
    for i, one in found[::5]:
        new = model.predict(changed_row(X, i, one["changes"]))[0]
        own = section(task, "predictions")
        if task == "regression":
            spread = (targets[task][halves()[1]] - start).std()
            assert abs(new - start[i]) >= spread * (1 - 1e-6)
            assert one["value"] == pytest.approx(new, rel=1e-5)
        else:
            assert new != own["label"][i]
            assert one["label"] == new
    rule = section(task, "flip_rule")
    assert rule.startswith("A flip is a change of the predict")


def test_change_is_the_smallest_of_the_data():
    """One feature and a step at 0: the nearest value of the data beyond it."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 2)), 2)
    y = (X[:, 0] > 0).astype(int)
    model = arboost.DecisionTreeClassifier(max_depth=1).fit(X, y)
    payload = model.report(X, y).payload
    values = np.unique(X[:, 0])
    up, down = values[values > 0].min(), values[values <= 0].max()
    for i, one in enumerate(payload["models"][0]["flips"]):
        (change,) = one["changes"]
        assert change["feature"] == "x0"
        assert change["from"] == pytest.approx(X[i, 0])
        assert change["to"] == pytest.approx(up if X[i, 0] <= 0 else down)


def test_pairs_flip_where_no_single_feature_does():
    """Two flags that must both be on: rows with neither need two changes."""
    X = np.array([[i // 2 % 2, i % 2] for i in range(200)], float)
    y = (X.sum(axis=1) == 2).astype(int)
    model = arboost.DecisionTreeClassifier().fit(X, y)
    flips = model.report(X, y).payload["models"][0]["flips"]
    for row, one in zip(X, flips, strict=True):
        assert len(one["changes"]) == (2 if row.sum() == 0 else 1)
        for change in one["changes"]:
            assert change["to"] == 1 - change["from"]


def test_pairs_move_no_further_than_needed():
    """Both numbers must pass 0.5: they end at the first values of the data beyond it."""
    rng = np.random.default_rng(0)
    X = np.round(rng.random((300, 2)), 2)
    y = ((X[:, 0] > 0.5) & (X[:, 1] > 0.5)).astype(int)
    model = arboost.DecisionTreeClassifier().fit(X, y)
    flips = model.report(X, y).payload["models"][0]["flips"]
    beyond = [values[values > 0.5].min() for values in map(np.unique, X.T)]
    low = np.flatnonzero((X < 0.5).all(axis=1))
    assert len(low) > 20
    for row in low:
        ends = {one["feature"]: one["to"] for one in flips[row]["changes"]}
        assert ends == {"x0": pytest.approx(beyond[0]), "x1": pytest.approx(beyond[1])}


def test_levels_and_missing_values_can_change():
    X = {"city": ["a", "b", None] * 50}
    y = np.array([0, 1, 0] * 50)
    model = arboost.DecisionTreeClassifier().fit(X, y)
    flips = model.report(X, y).payload["models"][0]["flips"]
    ways = {(one["changes"][0]["from"], one["changes"][0]["to"]) for one in flips}
    assert ways == {("a", "b"), ("b", "a"), (None, "b")}
    assert {one["distance"] for one in flips} == {1}


def test_no_flips_of_a_constant():
    X = np.arange(20.0)[:, None]
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit(X, np.ones(20))
    found = model.report(X, np.arange(20.0)).payload["models"][0]
    assert found["flips"] is None
    assert found["flip_rule"] is None
