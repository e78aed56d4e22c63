"""Learning curves, theory of AdaBoost, out-of-bag curves, and trees that lead to their leaves."""

import base64
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss, root_mean_squared_error

import arboost
from arboost.models.metadata import without_history
from support.reported import fitted, halves, numbers, report, section, table


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


def test_groups_of_levels_are_cut_at_a_target_mean():
    """As `tree_text` writes them: the levels of a group share its mean."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 300, 3000)
    X = {"code": np.array([f"c{k}" for k in code], object)}
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit(X, code / 300)
    condition = model.report(X, code / 300).payload["models"][0]["trees"]["condition"][0]
    assert condition.startswith("has a target mean <= ")
    cut = condition.removeprefix("has a target mean ")
    assert f"target mean of code {cut}" in model.model_.tree_text(0, precision=5)


def test_trees_of_several_targets_show_the_target_of_the_report():
    X, targets = numbers()
    both = np.column_stack([targets["binary"], targets["multiclass"]])
    forest = arboost.RandomForestClassifier(3, random_state=0).fit(X, both)
    shown = [
        forest.report(X, both[:, i], target_index=i).payload["models"][0]["trees"] for i in range(2)
    ]
    assert shown[0]["unit"] == "probability of yes in the tree"
    assert shown[1]["unit"] == "class probabilities of the tree"
    np.testing.assert_allclose(np.sum(shown[1]["value"], axis=1), 1, atol=1e-4)
