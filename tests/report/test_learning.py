"""Learning curves, AdaBoost's theory, out-of-bag curves."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, root_mean_squared_error

import arboost
from support.reported import fitted, halves, section, table


def test_recorded_curves():
    frame, targets = table()
    train, test = halves()
    y = targets["regression"]
    model = arboost.GradientBoostingRegressor(n_estimators=12)
    model.fit(frame[train], y[train], eval_set=[(frame[test], y[test])])
    found = model.report(frame[test], y[test]).payload["models"][0]["learning"]
    (metric,) = next(iter(model.evals_result_.values()))
    assert found["y"] == metric
    curve = next(iter(model.evals_result_.values()))[metric]
    assert found["series"][0]["x"] == list(range(1, 13))
    assert found["series"][0]["y"] == pytest.approx(curve, rel=1e-4)


def test_search_for_rounds_is_told():
    frame, targets = table()
    train, test = halves()
    model = arboost.GradientBoostingRegressor().fit(frame[train], targets["regression"][train])
    found = model.report(frame[test], targets["regression"][test]).payload["models"][0]["learning"]
    assert found["best"] is not None
    if model.n_iter_ != found["best"]:
        assert f"the model has {model.n_iter_:,} rounds" in found["note"]


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("name", ["GradientBoosting", "RandomForest", "AdaBoost"])
def test_loaded_models_have_scores_by_round(name, task):
    frame, targets = table()
    test = halves()[1]
    X, y = frame[test], targets[task][test]
    model = fitted(name, task).model_
    found = model.report(X, y).payload["models"][0]["learning"]
    assert found["x"] == ("trees" if name == "RandomForest" else "rounds")
    (series,) = found["series"]
    assert series["x"][-1] == model.n_rounds
    for rounds in (1, model.n_rounds):
        own = series["y"][series["x"].index(rounds)]
        if task == "regression":
            expected = root_mean_squared_error(y, model.predict(X, rounds=rounds))
        else:
            proba = model.predict_proba(X, rounds=rounds)
            expected = log_loss(y, proba, labels=model.classes)
        assert own == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_theory_of_adaboost(task):
    model = fitted("AdaBoost", task)
    found = section(task, "theory", "AdaBoost")
    assert found["rounds"] == list(range(1, model.n_iter_ + 1))
    assert found["train_error"] == pytest.approx(model.training_error_, abs=1e-5)
    assert found["bound"] == pytest.approx(model.training_error_bound_, rel=1e-4)
    errors = np.asarray(found["train_error"])
    assert (errors <= np.asarray(found["bound"]) + 1e-5).all()
    margin = np.asarray(found["margins"]["x"])
    share = np.asarray(found["margins"]["cumulative"])
    assert (np.diff(margin) > 0).all()
    assert share[-1] == 1
    # The share of margins below 0 is the error of the rows.
    wrong = 1 - np.mean(section(task, "predictions", "AdaBoost")["correct"])
    below = share[margin < 0].max(initial=0.0)
    assert below <= wrong + 1e-5 <= share[margin <= 0].max(initial=0.0) + 2e-5


def test_only_adaboost_has_a_theory():
    assert section("binary", "theory") is None
    assert section("regression", "theory", "AdaBoost") is None


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_out_of_bag_curve_ends_at_the_out_of_bag_predictions(task):
    frame, targets = table()
    train, test = halves()
    kind = "Regressor" if task == "regression" else "Classifier"
    forest = getattr(arboost, "RandomForest" + kind)(40, oob_score=True, random_state=0)
    X, y = frame[train], targets[task][train]
    forest.fit(X, y)
    found = forest.report(frame[test], targets[task][test], X_train=X, y_train=y)
    curve = found.payload["models"][0]["forest"]["oob"]
    assert curve["x"][-1] == 40
    if task == "regression":
        expected = root_mean_squared_error(y, forest.oob_prediction_)
    else:
        expected = log_loss(y, forest.oob_decision_function_, labels=forest.classes_)
    assert curve["y"][-1] == pytest.approx(expected, rel=1e-4)


def test_no_out_of_bag_curve_of_other_rows():
    frame, targets = table()
    train, test = halves()
    y = targets["regression"]
    forest = arboost.RandomForestRegressor(30, random_state=0).fit(frame[train], y[train])
    some = np.flatnonzero(train)[:-5]
    found = forest.report(frame[test], y[test], X_train=frame.iloc[some], y_train=y[some])
    assert found.payload["models"][0]["forest"] is None
    assert section("regression", "forest", "ExtraTrees") is None  # without bootstrap
