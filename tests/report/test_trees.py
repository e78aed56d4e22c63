"""Trees of a report: a walk by the conditions of the page ends in the page's leaves."""

import base64

import numpy as np
import pytest

import arboost
from support.reported import fitted, halves, report, section, table


def leaves_of(trees, n_rows):
    found = np.frombuffer(base64.b64decode(trees["leaves"]), "<u2")
    return found.reshape(n_rows, trees["shown"])


@pytest.mark.parametrize("name", ["GradientBoosting", "RandomForest", "DecisionTree", "AdaBoost"])
def test_leaves_are_those_of_apply(name):
    frame, _ = table()
    X = frame[halves()[1]]
    trees = section("binary", "trees", name)
    assert trees["n"] == trees["shown"] == fitted(name, "binary").model_.n_trees
    assert trees["reason"] is None
    expected = fitted(name, "binary").model_.apply(X)
    assert leaves_of(trees, len(X)).tolist() == expected.tolist()


def goes_left(condition, value, missing):
    if value is None:
        return missing == 0
    if condition.startswith("<= "):
        return value <= float(condition[3:].replace(",", ""))
    levels = condition.removeprefix("in {").removesuffix("}").removeprefix("is ").split(", ")
    return value in levels


def test_conditions_lead_to_the_leaves(rng):
    columns = {
        "a": np.where(rng.random(300) < 0.1, np.nan, np.round(rng.normal(size=300), 2)),
        "city": np.array(["Rome", "Oslo", "Bonn", None], object)[rng.integers(0, 4, 300)],
    }
    y = np.nan_to_num(columns["a"]) + (columns["city"] == "Oslo")
    model = arboost.GradientBoostingRegressor(n_estimators=4, max_depth=3).fit(columns, y)
    payload = model.report(columns, y).payload
    trees, rows = payload["models"][0]["trees"], payload["rows"]["columns"]
    leaves = leaves_of(trees, 300)
    for tree, start in enumerate(trees["start"]):
        for row in range(0, 300, 11):
            node = start
            while trees["feature"][node] >= 0:
                value = rows[trees["names"][trees["feature"][node]]][row]
                left = goes_left(trees["condition"][node], value, trees["missing"][node])
                node = start + trees["left" if left else "right"][node]
            assert node - start == leaves[row, tree]
            assert trees["condition"][node] == ""


def test_values_sum_to_the_prediction():
    trees = section("regression", "trees")
    leaves = leaves_of(trees, len(report(task="regression").payload["rows"]["index"]))
    value = np.asarray(trees["value"])
    total = value[np.asarray(trees["start"]) + leaves].sum(axis=1)
    base = fitted("GradientBoosting", "regression").model_.base_score[0]
    predicted = section("regression", "predictions")["value"]
    assert total + base == pytest.approx(predicted, abs=1e-3)
    assert trees["unit"] == "part of the raw score"


def test_forests_show_probabilities():
    trees = section("binary", "trees", "RandomForest")
    assert trees["unit"] == "probability of yes in the tree"
    assert 0 <= min(trees["value"]) <= max(trees["value"]) <= 1


def test_large_models_carry_their_first_trees(rng):
    X = rng.normal(size=(2000, 4))
    y = rng.normal(size=2000)
    model = arboost.RandomForestRegressor(30, random_state=0).fit(X, y)
    trees = model.report(X, y).payload["models"][0]["trees"]
    assert 0 < trees["shown"] < trees["n"] == 30
    assert len(trees["feature"]) <= 30_000
    assert trees["reason"].startswith(f"The page carries {trees['shown']} of 30 trees")


def test_levels_by_their_means():
    """A category of many levels is split by target means."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 300, 3000)
    X = {"code": np.array([f"c{k}" for k in code], object)}
    y = code / 300 + 0.01 * rng.normal(size=3000)
    model = arboost.GradientBoostingRegressor(n_estimators=2, category_encoding="mean").fit(X, y)
    conditions = model.report(X, y).payload["models"][0]["trees"]["condition"]
    assert any(one.startswith("has a target mean <= ") for one in conditions)
