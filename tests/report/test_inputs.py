"""Arguments of a report: rows left out, odd tables, and errors that say what to do."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import arboost
from support.reported import fitted, halves, numbers, same_parts, table


@pytest.fixture(scope="module")
def model():
    X, targets = numbers()
    return arboost.GradientBoostingClassifier(n_estimators=5).fit(X, targets["binary"])


@pytest.fixture(scope="module")
def regressor():
    X, targets = numbers()
    return arboost.GradientBoostingRegressor(n_estimators=5).fit(X, targets["regression"])


def checked(report):
    json.dumps(report.payload, allow_nan=False)
    assert report.to_html().startswith("<!")
    return report.payload


def test_target_by_name():
    frame, targets = table()
    train, test = halves()
    named = frame.assign(price=targets["regression"])
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(named[train], "price")
    named_report = model.report(named[test], "price", X_train=named[train])
    payload = checked(named_report)
    assert payload["target"] == "price"
    assert payload["title"] == "Report: price"
    assert payload["data"]["target"]["name"] == "price"
    given = model.report(
        frame[test],
        targets["regression"][test],
        X_train=frame[train],
        y_train=targets["regression"][train],
    )
    models = [dict(one.payload["models"][0]) for one in (named_report, given)]
    for one in models:
        for part in ("repeat", "timings"):
            one.pop(part)
    assert models[0] == models[1]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_rows_without_a_target_are_left_out(model, missing):
    X, targets = numbers()
    labels = targets["binary"].astype(object)
    labels[[3, 7]] = missing
    payload = checked(model.report(X, labels))
    assert payload["data"]["n_rows"] == len(X) - 2
    assert payload["data"]["notes"] == ["2 rows without a known target are left out."]
    kept = np.delete(np.arange(len(X)), [3, 7])
    assert payload["rows"]["index"] == kept.tolist()
    expected = model.report(X[kept], targets["binary"][kept])
    scores = [one["value"] for one in payload["models"][0]["scores"]]
    assert scores == list(expected.scores.values())
    as_list = model.report(X, labels.tolist())
    assert same_parts(as_list.payload) == same_parts(payload)


def test_rows_of_weight_zero_are_left_out(regressor):
    X, targets = numbers()
    y = targets["regression"].copy()
    weight = np.ones(len(y))
    weight[:100] = 0
    y[150] = np.nan
    payload = checked(regressor.report(X, y, sample_weight=weight))
    kept = np.delete(np.arange(100, len(y)), 50)
    assert payload["rows"]["index"] == kept.tolist()
    assert len(payload["data"]["notes"]) == 2
    expected = regressor.report(X[kept], targets["regression"][kept], sample_weight=weight[kept])
    assert [one["value"] for one in payload["models"][0]["scores"]] == list(
        expected.scores.values()
    )


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_tables_of_few_rows(n_rows, model, regressor):
    X, targets = numbers()
    checked(model.report(X[:n_rows], targets["binary"][:n_rows]))
    checked(regressor.report(X[:n_rows], targets["regression"][:n_rows]))


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_rows_of_one_class(task):
    frame, targets = table()
    rows = targets[task] == targets[task][0]
    payload = checked(fitted("GradientBoosting", task).report(frame[rows], targets[task][rows]))
    names = [one["name"] for one in payload["models"][0]["scores"]]
    assert "ROC AUC" not in names
    assert "log loss" in names
    if task == "binary":
        assert payload["models"][0]["binary"]["roc"] is None


def test_model_of_one_class():
    with pytest.warns(UserWarning, match="class"):
        model = arboost.GradientBoostingClassifier(n_estimators=2).fit([[0], [1]], [1, 1])
    checked(model.report([[0.0], [1.0]], [1, 1]))


def test_constant_predictions():
    X, targets = numbers()
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit(X, np.ones(len(X)))
    payload = checked(model.report(X, targets["regression"]))
    assert payload["models"][0]["flips"] is None
    exact = checked(model.report(X, np.ones(len(X))))
    names = [one["name"] for one in exact["models"][0]["scores"]]
    assert names == ["RMSE", "MAE"]  # R² is not defined


def test_two_hundred_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 200, 1500)
    X = y[:, None] + rng.normal(size=(1500, 3))
    model = arboost.RandomForestClassifier(5, max_depth=6, random_state=0).fit(X, y)
    report = model.report(X, y)
    payload = checked(report)
    assert len(payload["models"][0]["classes"]) == 200
    assert len(payload["models"][0]["shap"]["outputs"]) == 10
    assert len(payload["models"][0]["outputs"]) == 10
    assert len(report.to_html()) < 5e6


def test_many_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2000)).astype(np.float32)
    y = (X[:, 3] + X[:, 5] > 0).astype(int)
    model = arboost.GradientBoostingClassifier(n_estimators=5).fit(X, y)
    report = model.report(X, y, X_train=X, y_train=y)
    payload = checked(report)
    assert len(payload["data"]["columns"]) == 500
    assert payload["data"]["n_features"] == 2000
    assert len(payload["rows"]["columns"]) == 200
    assert "x3" in payload["rows"]["columns"]
    assert payload["data"]["notes"][0].startswith("500 of 2,000 columns are shown")
    assert len(report.to_html()) < 5e6


def test_extreme_values(regressor):
    X, targets = numbers()
    wild = X.copy()
    wild[:40, 0] = [1e308, -1e308, np.inf, -np.inf] * 10
    wild[40:60, 1] = np.nan
    checked(regressor.report(wild, targets["regression"], X_train=X))
    checked(regressor.report(X, targets["regression"], X_train=wild))
    checked(regressor.report(np.full_like(X, np.nan), targets["regression"]))


def test_constant_and_empty_columns():
    columns = {"one": [1.0] * 40, "none": [None] * 40, "x": list(range(40)), "text": ["a"] * 40}
    y = np.arange(40) % 2
    model = arboost.GradientBoostingClassifier(n_estimators=2).fit(columns, y)
    payload = checked(model.report(columns, y))
    assert [one["summary"] for one in payload["data"]["columns"]] == [
        "constant: 1",
        "no values",
        "0 to 39, median 19.5",
        "1 level, most often a (100%)",
    ]


def errors():
    X, targets = numbers()
    y = targets["binary"]
    yield {"y": None}, ValueError, "y is None. Pass one value for each row, or the name"
    yield {"y": y[:5]}, ValueError, f"X has {len(y)} rows, but y has 5 values"
    yield {"y": np.full(len(y), "maybe")}, ValueError, "labels that the model does not have"
    yield {"y": np.full(len(y), None)}, ValueError, "all of them are missing"
    mixed = np.array([*y[:-2].tolist(), None, 3], object)
    yield {"y": mixed}, ValueError, "Unknown label type"
    yield {"y": np.stack([y, y], 1)}, ValueError, "y has 2 columns"
    yield {"y": "price"}, TypeError, "y is the string 'price'"
    yield {"X_train": X, "y_train": "price"}, TypeError, "y_train: y is the string 'price'"
    yield {"X": X[:, :2]}, arboost.SchemaError, "expecting 3 features"
    yield {"X": X[:0], "y": y[:0]}, ValueError, "X has no rows"
    yield {"sample_weight": np.zeros(len(y))}, ValueError, "zero"
    yield {"sample_weight": -np.ones(len(y))}, ValueError, "negative"
    yield {"title": 3}, TypeError, "title=3"
    yield {"segments": ["zz"]}, ValueError, "'zz'"
    yield {"target_index": 1}, ValueError, "the model has one target"
    yield {"n_jobs": 0}, ValueError, "n_jobs=0"
    yield {"y_train": y}, ValueError, "y_train was passed without X_train"
    yield {"X_train": X, "y_train": y[:4]}, ValueError, "y_train: X has"
    yield {"X_train": X[:0], "y_train": y[:0]}, ValueError, "X_train has no rows"
    yield {"X_train": X[:, :1]}, arboost.SchemaError, "3 features"
    yield {"path": "no/such/folder/report.html"}, FileNotFoundError, "does not exist"


@pytest.mark.parametrize(
    ("arguments", "error", "text"), list(errors()), ids=[text for *_, text in errors()]
)
def test_bad_arguments(arguments, error, text, model):
    X, targets = numbers()
    given = {"X": X, "y": targets["binary"]} | arguments
    with pytest.raises(error, match=text):
        model.report(given.pop("X"), given.pop("y"), **given)


def test_bad_comparisons(model, regressor):
    X, targets = numbers()
    with pytest.raises(ValueError, match="compare is a regressor, but the model is a classifier"):
        model.report(X, targets["binary"], compare=regressor)
    other = arboost.DecisionTreeClassifier().fit(X, targets["multiclass"])
    with pytest.raises(ValueError, match="compare has the classes"):
        model.report(X, targets["binary"], compare=other)

    with pytest.raises(TypeError, match="compare=3 is not allowed: it must be a fitted model"):
        model.report(X, targets["binary"], compare=3)


def test_comparison_with_a_model_of_another_library(model):
    X, targets = numbers()
    line = LogisticRegression().fit(X, targets["binary"])
    payload = checked(model.report(X, targets["binary"], compare=line))
    assert payload["comparison"]["names"] == ["GradientBoostingClassifier", "LogisticRegression"]
    accuracy = line.score(X, targets["binary"])
    second = {one["name"]: one["value"] for one in payload["models"][1]["scores"]}
    assert second["accuracy"] == pytest.approx(accuracy, rel=1e-4)


def test_unfitted_estimators():
    with pytest.raises(NotFittedError):
        arboost.GradientBoostingClassifier().report([[0.0]], [1])
