"""Importances, SHAP values, partial dependence and sampled rows of a report."""

import numpy as np
import pytest

import arboost
from support.reported import fitted, halves, report, section, table


def rows():
    frame, targets = table()
    test = halves()[1]
    return frame[test], targets


def test_gain_and_shap_importances():
    X, _ = rows()
    model = fitted("GradientBoosting", "binary")
    names = list(X.columns)
    found = {one["feature"]: one for one in section("binary", "importances")}
    gain = model.model_.importances("gain")
    shap = model.model_.importances("shap", X)
    for i, name in enumerate(names):
        assert found[name]["gain"] == pytest.approx(gain[i] / gain.sum(), rel=1e-4)
        assert found[name]["shap"] == pytest.approx(shap[i], rel=1e-4)
    order = [one["shap"] for one in section("binary", "importances")]
    assert order == sorted(order, reverse=True)


def test_permutation_importances_are_increases_of_the_loss():
    """Shuffles by the same hash as `permutation_importances`: the same numbers."""
    X, targets = rows()
    model = fitted("GradientBoosting", "binary")
    y = targets["binary"][halves()[1]]
    expected = arboost.permutation_importances(model, X, y, n_repeats=5)
    found = {one["feature"]: one for one in section("binary", "importances")}
    for i, name in enumerate(X.columns):
        assert found[name]["permutation"] == pytest.approx(expected[:, i].mean(), abs=1e-5)
        assert found[name]["permutation_sd"] == pytest.approx(expected[:, i].std(), abs=1e-5)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_shap_values_sum_to_the_raw_scores(task):
    X, _ = rows()
    model = fitted("GradientBoosting", task).model_
    raw = model.predict_raw(X)
    found = section(task, "shap")
    for k in range(raw.shape[1]):
        total = found["base"][k] + np.sum(found["values"][k], axis=0) + found["rest"][k]
        assert total == pytest.approx(raw[:, k], abs=1e-3)
    assert found["unit"] == {"binary": "log-odds", "multiclass": "raw score"}.get(
        task, "prediction"
    )


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_shap_values_of_a_forest_sum_to_probabilities(task):
    X, _ = rows()
    proba = fitted("RandomForest", task).predict_proba(X)
    found = section(task, "shap", "RandomForest")
    assert found["unit"] == "probability"
    for k, of_class in enumerate(proba[:, 1:].T if task == "binary" else proba.T):
        total = found["base"][k] + np.sum(found["values"][k], axis=0) + found["rest"][k]
        assert total == pytest.approx(of_class, abs=1e-3)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_partial_dependence_is_that_of_the_model(task):
    X, _ = rows()
    model = fitted("GradientBoosting", task)
    for one in section(task, "dependence"):
        if one["kind"] not in ("number", "category"):
            continue
        grid = arboost.Grid(values={one["feature"]: one["grid"]})
        expected = model.partial_dependence(X, one["feature"], grid=grid).average
        mean = np.asarray(one["mean"])
        assert mean == pytest.approx(expected.reshape(len(one["grid"]), -1).T, abs=1e-4)
        assert (np.asarray(one["low"]) <= np.asarray(one["high"])).all()
    assert len(section(task, "outputs")) == (3 if task == "multiclass" else 1)


def test_dependence_has_the_distribution_of_the_data():
    X, _ = rows()
    by_name = {one["feature"]: one for one in section("binary", "dependence")}
    assert sum(by_name["age"]["bins"]["test"]) == len(X)
    assert sum(by_name["city"]["levels"]["test"]) == X["city"].notna().sum()
    assert by_name["member"]["grid"] in (["True", "False"], ["False", "True"])
    assert by_name["since"]["unit"] == "datetime"


def test_rows_are_those_of_the_table():
    X, targets = rows()
    found = report().payload["rows"]
    assert found["index"] == list(range(len(X)))
    assert found["truth"] == targets["binary"][halves()[1]].tolist()
    age = found["columns"]["age"]
    assert age == X["age"].tolist()
    assert found["columns"]["city"] == [one if isinstance(one, str) else None for one in X["city"]]
    assert found["columns"]["since"][0] == str(X["since"].iloc[0].date())
    assert set(found["columns"]["member"]) == {"True", "False"}


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_predictions_of_the_rows(task):
    X, targets = rows()
    model, y = fitted("GradientBoosting", task), targets[task][halves()[1]]
    found = section(task, "predictions")
    if task == "regression":
        assert found["value"] == pytest.approx(model.predict(X), rel=1e-6)
        assert found["error"] == pytest.approx(model.predict(X) - y, rel=1e-4)
        return
    assert found["label"] == model.predict(X).tolist()
    assert found["correct"] == (model.predict(X) == y).tolist()
    assert np.asarray(found["proba"]) == pytest.approx(model.predict_proba(X), abs=1e-5)


def test_samples_are_small_and_refer_to_the_given_rows(rng):
    X = rng.normal(size=(3000, 2))
    y = X[:, 0] + rng.normal(size=3000)
    y[5] = np.nan
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X[10:], y[10:])
    found = model.report(X, y).payload
    assert found["data"]["n_rows"] == 2999
    index = found["rows"]["index"]
    assert len(index) == 400
    assert 5 not in index
    assert found["rows"]["columns"]["x0"] == pytest.approx(X[index, 0], rel=1e-6)
    assert found["rows"]["truth"] == pytest.approx(y[index], rel=1e-6)
    assert found["models"][0]["predictions"]["value"] == pytest.approx(
        model.predict(X[index]), rel=1e-6
    )
