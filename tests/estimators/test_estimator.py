"""Methods of a fitted model on its estimator: the same results, one documentation; loading."""

import inspect
import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.utils.validation import check_is_fitted

import arboost
from arboost import CustomLoss, Predictor
from arboost.estimators.estimator import EngineEstimator

SMALL = {
    "GradientBoostingClassifier": {"n_estimators": 8},
    "GradientBoostingRegressor": {"n_estimators": 8},
    "GradientBoostingRanker": {"n_estimators": 8},
    "AdaBoostClassifier": {"n_estimators": 5},
    "AdaBoostRegressor": {"n_estimators": 5},
    "RandomForestClassifier": {"n_estimators": 5},
    "RandomForestRegressor": {"n_estimators": 5},
    "ExtraTreesClassifier": {"n_estimators": 5},
    "ExtraTreesRegressor": {"n_estimators": 5},
    "DecisionTreeClassifier": {"max_depth": 4},
    "DecisionTreeRegressor": {"max_depth": 4},
}
# Methods of models that estimators have in a form of their own, or not at all.
OTHER = {
    "fields",
    "from_json",
    "predict",
    "predict_proba",
    "predict_quantiles",
    "save",
    "staged_predict",
    "staged_predict_proba",
    "staged_raw",
    "to",
    "truncated",
    "validate",
    "with_provenance",
}
OTHER |= {"score", "decision_function"}  # of each kind of estimators
METHODS = [
    name
    for name, method in inspect.getmembers(Predictor, inspect.isfunction)
    if not name.startswith("_") and name not in OTHER
]
CALLS = {
    "summary": (),
    "importances": ("split",),
    "tree_text": (1,),
    "tree_svg": (),
    "tree_dot": (),
    "to_c": (),
    "to_json": (),
    "expected_value": (),
}


def data(name):
    of_classes = name.endswith("Classifier")
    X, y = (load_breast_cancer if of_classes else load_diabetes)(return_X_y=True)
    if name.endswith("Ranker"):
        y = y // 100  # relevance
    return X[:200, :5], y[:200]


def queries(name):
    """Return further arguments of `fit` and `score`."""
    return {"qid": np.arange(200) // 20} if name.endswith("Ranker") else {}


def fitted(name, **params):
    X, y = data(name)
    return getattr(arboost, name)(**SMALL[name] | params).fit(X, y, **queries(name))


@pytest.fixture(scope="module")
def booster():
    return fitted("GradientBoostingRegressor")


def test_every_estimator_is_here():
    public = [getattr(arboost, name) for name in arboost.__all__]
    engine = [one for one in public if isinstance(one, type) and issubclass(one, EngineEstimator)]
    assert {one.__name__ for one in engine} == set(SMALL)


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_models_are_methods_of_estimators(name):
    own, of_model = getattr(EngineEstimator, name), getattr(Predictor, name)
    assert inspect.getdoc(own) == inspect.getdoc(of_model)
    assert inspect.signature(own) == inspect.signature(of_model)


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_model(booster, name):
    own, of_model = (getattr(one, name)(*CALLS[name]) for one in (booster, booster.model_))
    assert str(own) == str(of_model)


def test_results_on_a_table_are_those_of_the_model(booster):
    X, y = data("GradientBoostingRegressor")
    model = booster.model_
    np.testing.assert_array_equal(booster.apply(X), model.apply(X))
    np.testing.assert_array_equal(booster.predict_raw(X), model.predict_raw(X))
    np.testing.assert_array_equal(
        booster.importances("permutation", X, y, n_repeats=2),
        model.importances("permutation", X, y, n_repeats=2),
    )
    np.testing.assert_array_equal(
        booster.partial_dependence(X, 0).average, model.partial_dependence(X, 0).average
    )
    assert booster.tree_table().keys() == model.tree_table().keys()
    assert booster.to_onnx().SerializeToString() == model.to_onnx().SerializeToString()


def test_threads_are_those_of_the_estimator(monkeypatch, booster):
    seen = []

    def shap_values(self, X, *, background=None, n_jobs=None):
        seen.append(n_jobs)

    monkeypatch.setattr(
        type(booster), "shap_values", arboost.estimators.estimator.predictor_method(shap_values)
    )
    X, _ = data("GradientBoostingRegressor")
    monkeypatch.setattr(booster, "n_jobs", 3)
    booster.shap_values(X)
    booster.shap_values(X, n_jobs=1)
    assert seen == [3, 1]


def test_refusals(booster):
    with pytest.raises(TypeError, match="Did you mean max_depth"):
        booster.tree_text(max_dept=3)
    X, y = data("AdaBoostClassifier")
    with pytest.raises(Exception, match="not fitted yet"):
        arboost.GradientBoostingRegressor().summary()
    other = arboost.AdaBoostClassifier(arboost.GradientBoostingClassifier(n_estimators=2))
    refused = "summary is not available for an ensemble of GradientBoosting"
    with pytest.raises(TypeError, match=refused):
        other.set_params(n_estimators=2).fit(X, y).summary()


@pytest.mark.parametrize("name", SMALL)
def test_first_rounds(name):
    X, _ = data(name)
    model = fitted(name)
    n_rounds = model.model_.n_rounds
    np.testing.assert_array_equal(model.predict(X, rounds=n_rounds), model.predict(X))
    few = model.model_.truncated(1)
    np.testing.assert_array_equal(model.predict(X, rounds=1), few.predict(X))
    np.testing.assert_array_equal(model.model_.predict(X, rounds=1), few.predict(X))
    np.testing.assert_array_equal(model.predict_raw(X, rounds=1), few.predict_raw(X))
    if model._KIND == "classifier":
        np.testing.assert_array_equal(model.predict_proba(X, rounds=1), few.predict_proba(X))
        np.testing.assert_array_equal(model.model_.predict_proba(X, rounds=1), few.predict_proba(X))
    for wrong in (n_rounds + 1, -1, 0.5, True, "1"):
        with pytest.raises(ValueError, match=rf"rounds={wrong!r} is not allowed: the model has"):
            model.predict(X, rounds=wrong)


def test_first_rounds_of_decisions():
    X, _ = data("GradientBoostingClassifier")
    model = fitted("GradientBoostingClassifier")
    staged = list(model.staged_decision_function(X))
    np.testing.assert_array_equal(model.decision_function(X, rounds=3), staged[2])


def test_first_rounds_of_other_learners():
    X, y = data("AdaBoostClassifier")
    model = arboost.AdaBoostClassifier(arboost.GradientBoostingClassifier(n_estimators=2))
    model.set_params(n_estimators=3).fit(X, y)
    staged = list(model.staged_predict_proba(X))
    np.testing.assert_array_equal(model.predict_proba(X, rounds=2), staged[1])


# ---- load ----


@pytest.mark.parametrize("name", SMALL)
def test_load(name, tmp_path):
    X, y = data(name)
    model = fitted(name)
    model.save(tmp_path / "model.arb")
    loaded = getattr(arboost, name).load(tmp_path / "model.arb")
    check_is_fitted(loaded)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.n_features_in_ == 5
    assert loaded.score(X, y, **queries(name)) == model.score(X, y, **queries(name))
    again = loaded.fit(X, y, **queries(name))  # its parameters are those of the fit
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_load_of_every_parameter(tmp_path):
    """Values that a file keeps in another form are those of the constructor again."""
    X, y = data("GradientBoostingClassifier")
    given = {
        "class_weight": {0: 1.0, 1: 2.0},
        "monotone_constraints": {0: 1},
        "missing": -999.0,
        "interaction_constraints": [[0, 1], [2]],
    }
    model = arboost.GradientBoostingClassifier(n_estimators=3, **given).fit(X, y)
    model.to_json(tmp_path / "model.json")
    loaded = arboost.GradientBoostingClassifier.load(tmp_path / "model.json")
    assert {name: getattr(loaded, name) for name in given} == given
    weights = [{0: 1.0, 1: 2.0}, {0: 3.0, 1: 1.0}]
    forest = arboost.RandomForestClassifier(n_estimators=2, class_weight=weights)
    forest.fit(X, np.column_stack([y, 1 - y])).save(tmp_path / "forest.arb")
    loaded = arboost.RandomForestClassifier.load(tmp_path / "forest.arb")
    assert loaded.class_weight == weights
    assert math.isnan(loaded.missing)
    assert loaded.n_classes_ == [2, 2]


def test_load_with_the_wrong_class(tmp_path):
    fitted("RandomForestClassifier").save(tmp_path / "model.arb")
    for name in ("GradientBoostingClassifier", "RandomForestRegressor"):
        with pytest.raises(ValueError, match=f"holds no {name}: it holds a classifier of 5 trees"):
            getattr(arboost, name).load(tmp_path / "model.arb")
    X, y = data("BaggingRegressor")
    arboost.BaggingRegressor(n_estimators=2).fit(X, y).save(tmp_path / "bags.arb")
    message = "The data holds no RandomForestRegressor: it holds a regressor of several members"
    with pytest.raises(ValueError, match=message):
        arboost.RandomForestRegressor.load((tmp_path / "bags.arb").read_bytes())


def test_load_of_bytes_and_open_files(tmp_path):
    X, _ = data("RandomForestClassifier")
    model = fitted("RandomForestClassifier")
    model.save(tmp_path / "model.arb")
    with (tmp_path / "model.arb").open("rb") as file:
        from_file = arboost.RandomForestClassifier.load(file)
    from_bytes = arboost.RandomForestClassifier.load((tmp_path / "model.arb").read_bytes())
    for loaded in (from_file, from_bytes):
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_loaded_estimators_refuse_to_forget(tmp_path):
    """A fit that needs what a file does not keep is refused, and not another fit."""
    X, y = data("RandomForestRegressor")
    fitted("RandomForestRegressor").save(tmp_path / "forest.arb")
    forest = arboost.RandomForestRegressor.load(tmp_path / "forest.arb")
    with pytest.raises(ValueError, match="does not keep the rows of each tree"):
        forest.set_params(warm_start=True, n_estimators=7).fit(X, y)
    fitted("AdaBoostRegressor").save(tmp_path / "ada.arb")
    ada = arboost.AdaBoostRegressor.load(tmp_path / "ada.arb")
    with pytest.raises(ValueError, match="does not keep the errors of the learners"):
        ada.set_params(warm_start=True, n_estimators=7).fit(X, y)
    loss = CustomLoss(name="mine", gradients=lambda y, score, weight: (score - y, np.ones_like(y)))
    model = arboost.GradientBoostingRegressor(n_estimators=2, loss=loss).fit(X, y)
    model.save(tmp_path / "model.arb")
    loaded = arboost.GradientBoostingRegressor.load(tmp_path / "model.arb")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(TypeError, match=r"loss=\{'custom': 'mine'\}"):
        loaded.fit(X, y)
