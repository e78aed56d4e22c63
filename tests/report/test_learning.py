"""Learning curves, AdaBoost's theory, out-of-bag curves."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss, root_mean_squared_error

import arboost
from arboost.models.metadata import without_history
from support.reported import fitted, halves, numbers, section, table


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
    assert found["note"] == "Recorded during the fit."


def saved_and_loaded(model, folder):
    model.save(folder / "model.arb")
    return arboost.load(folder / "model.arb")


def section_of(model, task, name):
    frame, targets = table()
    test = halves()[1]
    return model.report(frame[test], targets[task][test]).payload["models"][0][name]


def test_loaded_boosters_have_the_curves_of_the_fit(tmp_path):
    frame, targets = table()
    train, test = halves()
    y = targets["binary"]
    sets = [(frame[train], y[train]), (frame[test], y[test])]
    model = arboost.GradientBoostingClassifier(n_estimators=300, n_iter_no_change=20, verbose=0)
    model.fit(frame[train], y[train], eval_set=sets)
    found = section_of(saved_and_loaded(model, tmp_path), "binary", "learning")
    assert found == section_of(model, "binary", "learning")
    assert [series["name"] for series in found["series"]] == ["train", "validation"]
    assert found["best"] == model.n_iter_
    assert found["series"][1]["x"][-1] == model.n_iter_ + 20


def test_files_without_history_have_scores_by_round():
    model = fitted("AdaBoost", "binary").model_
    old = replace(model, provenance=without_history(model.provenance))
    assert "this report" in section_of(old, "binary", "learning")["note"]
    assert section_of(old, "binary", "theory") is None
    assert section_of(old, "binary", "forest") is None


def test_continued_training_is_told():
    frame, targets = table()
    train, test = halves()
    y = targets["regression"]
    first = arboost.GradientBoostingRegressor(n_estimators=5, verbose=0).fit(frame[train], y[train])
    model = arboost.GradientBoostingRegressor(n_estimators=7, verbose=0)
    model.fit(frame[train], y[train], init_model=first, eval_set=[(frame[test], y[test])])
    found = section_of(model, "regression", "learning")
    assert found["series"][0]["x"] == list(range(6, 13))
    assert found["note"].startswith("Recorded during the fit, which continued the training of 5 ")


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


@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("algorithm", ["discrete", "real"])
def test_theory_of_loaded_models(task, algorithm, tmp_path):
    frame, targets = table()
    train, test = halves()
    model = arboost.AdaBoostClassifier(n_estimators=150, algorithm=algorithm, verbose=0)
    model.fit(frame[train], targets[task][train])
    loaded = saved_and_loaded(model, tmp_path)
    found = section_of(loaded, task, "theory")
    assert found == section_of(model, task, "theory")
    assert found["rounds"][-1] == model.n_iter_
    margin = model.margins(frame[test], targets[task][test])
    assert found["margins"]["x"][0] == pytest.approx(margin.min(), rel=1e-4)
    assert found["margins"]["x"][-1] == pytest.approx(margin.max(), rel=1e-4)
    has_bound = algorithm == "discrete" or task == "binary"
    assert (found["bound"][-1] is not None) == has_bound
    # The votes of some of the rounds have another range.
    assert section_of(loaded.truncated(3), task, "theory") is None


def test_theory_of_other_learners():
    frame, targets = numbers()
    train, test = halves()
    learner = arboost.DecisionTreeClassifier(max_depth=1)
    model = arboost.AdaBoostClassifier(learner, n_estimators=10, verbose=0)
    model.fit(frame[train], targets["binary"][train])
    found = model.report(frame[test], targets["binary"][test]).payload["models"][0]["theory"]
    assert found["train_error"] == pytest.approx(model.training_error_, abs=1e-5)


def test_only_adaboost_has_a_theory():
    assert section("binary", "theory") is None
    assert section("regression", "theory", "AdaBoost") is None


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_out_of_bag_curve_ends_at_the_out_of_bag_predictions(task, tmp_path):
    frame, targets = table()
    train, _ = halves()
    kind = "Regressor" if task == "regression" else "Classifier"
    forest = getattr(arboost, "RandomForest" + kind)(70, oob_score=True, random_state=0)
    y = targets[task][train]
    forest.fit(frame[train], y)
    loaded = saved_and_loaded(forest, tmp_path)
    found = section_of(loaded, task, "forest")
    assert found == section_of(forest, task, "forest")
    curve = found["oob"]
    assert curve["x"][-1] == 70
    if task == "regression":
        expected = root_mean_squared_error(y, forest.oob_prediction_)
    else:
        expected = 1 - forest.oob_score_
    assert curve["metric"] == ("RMSE" if task == "regression" else "error rate")
    assert curve["y"][-1] == pytest.approx(expected, rel=1e-4)
    few = section_of(loaded.truncated(20), task, "forest")["oob"]
    assert few["x"][-1] <= 20
    assert few["y"] == curve["y"][: len(few["x"])]


def test_out_of_bag_curve_of_a_target():
    frame, targets = numbers()
    train, test = halves()
    both = np.column_stack([targets["regression"], -2 * targets["regression"]])
    forest = arboost.RandomForestRegressor(60, oob_score=True, random_state=0)
    forest.fit(frame[train], both[train])
    curves = [
        forest.report(frame[test], both[test, i], target_index=i).payload["models"][0]["forest"]
        for i in range(2)
    ]
    first, second = (np.array(one["oob"]["y"]) for one in curves)
    np.testing.assert_allclose(second, 2 * first, rtol=1e-4)


def test_forests_without_out_of_bag_errors_say_so():
    model = fitted("RandomForest", "regression")
    assert section_of(model, "regression", "forest") is None
    notes = section_of(model, "regression", "notes")
    assert any("oob_score=True" in note for note in notes)
    assert section("regression", "forest", "ExtraTrees") is None  # without bootstrap
