"""Reports of every model of the library: estimators, loaded models, ensembles of any members."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import arboost
from support.reported import (
    ENSEMBLES,
    TASKS,
    fitted,
    halves,
    numbers,
    other_members,
    report,
    same_parts,
    table,
)

ALWAYS = {"name", "kind", "scores", "importances", "dependence", "predictions", "segments", "flips"}
OF_TASK = {
    "binary": {"binary", "confusion", "classes"},
    "multiclass": {"multiclass", "confusion", "classes"},
    "regression": {"regression"},
}


def parts(payload):
    return {name for name, value in payload["models"][0].items() if value}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ENSEMBLES)
def test_every_ensemble_has_a_report(name, task):
    payload = report(name, task).payload
    json.dumps(payload, allow_nan=False)
    has = parts(payload)
    assert has >= ALWAYS | OF_TASK[task]
    others = set().union(*OF_TASK.values()) - OF_TASK[task]
    assert not has & others
    is_engine = name not in ("Bagging", "Stacking", "Voting")
    assert ("trees" in has) == is_engine
    assert (
        payload["models"][0]["kind"].split()[-1]
        == type(fitted(name, task))
        .__name__[-len(payload["models"][0]["kind"].split()[-1]) :]
        .lower()
    )


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ENSEMBLES)
def test_loaded_models_report_as_their_estimators(name, task, tmp_path):
    """The same numbers; only what the file does not keep is missing."""
    frame, targets = table()
    test = halves()[1]
    fitted(name, task).save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    found = loaded.report(frame[test], targets[task][test]).payload["models"][0]
    own = report(name, task).payload["models"][0]
    for part in ("confusion", "classes", "binary", "regression", "predictions", "trees", "hash"):
        assert found[part] == own[part], part
    values = [[one["value"], one["low"], one["high"]] for one in found["scores"]]
    assert values == [[one["value"], one["low"], one["high"]] for one in own["scores"]]
    assert [one["gain"] for one in found["importances"]] == [
        one["gain"] for one in own["importances"]
    ]


@pytest.mark.parametrize("task", TASKS)
def test_members_of_other_libraries(task):
    X, targets = numbers()
    test = halves()[1]
    payload = other_members(task).report(X[test], targets[task][test]).payload
    assert parts(payload) >= ALWAYS | OF_TASK[task]
    model = payload["models"][0]
    assert model["shap"] is None
    assert model["trees"] is None
    assert model["hash"] is None
    assert any("SHAP values are left out" in note for note in model["notes"])
    top = model["importances"][0]
    assert top["permutation"] > 0
    assert top["gain"] is None


def test_hard_votes_have_no_probabilities():
    X, targets = numbers()
    train, test = halves()
    members = [("tree", arboost.DecisionTreeClassifier()), ("line", LogisticRegression())]
    vote = arboost.VotingClassifier(members, voting="hard").fit(X[train], targets["binary"][train])
    model = vote.report(X[test], targets["binary"][test]).payload["models"][0]
    assert model["binary"] is None
    assert model["predictions"]["proba"] is None
    assert [one["name"] for one in model["scores"]] == ["accuracy", "balanced accuracy", "F1"]
    assert model["segments"]["metric"] == "share of wrong classes"
    assert any(model["flips"])


def test_adaboost_of_other_learners():
    X, targets = numbers()
    train, test = halves()
    boosted = arboost.AdaBoostClassifier(estimator=LogisticRegression(), n_estimators=3)
    boosted.fit(X[train], targets["binary"][train])
    model = boosted.report(X[test], targets["binary"][test]).payload["models"][0]
    assert model["theory"]["kind"] == "adaboost"
    assert model["trees"] is None


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_members_get_frames_of_the_type_of_fit(kind):
    """A pipeline that selects columns by name works on changed rows, too."""
    frame, targets = table()
    train, test = halves()
    small = frame[["age", "size"]].fillna(0.0).rename(columns={"size": "own size"})
    small["code"] = pd.Categorical(np.arange(len(small)) % 3)
    make = {
        "pandas": lambda rows: rows,
        "polars": lambda rows: pl.from_pandas(rows.drop(columns=["code"])),
        "pyarrow": lambda rows: pa.Table.from_pandas(
            rows.drop(columns=["code"]), preserve_index=False
        ),
    }[kind]
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    members = [("line", pipeline), ("tree", arboost.DecisionTreeClassifier(max_depth=3))]
    stack = arboost.StackingClassifier(members, cv=2)
    stack.fit(make(small[train]), targets["binary"][train])
    payload = stack.report(make(small[test]), targets["binary"][test]).payload
    assert parts(payload) >= ALWAYS


def test_sparse_tables(rng):
    dense = np.where(rng.random((300, 12)) < 0.2, rng.normal(size=(300, 12)), 0.0)
    y = (dense[:, 0] + dense[:, 1] > 0).astype(int)
    model = arboost.GradientBoostingClassifier(n_estimators=5).fit(csr_matrix(dense), y)
    one = model.report(csr_matrix(dense), y).payload
    two = model.report(dense, y).payload
    assert same_parts(one) == same_parts(two)
    bag = arboost.BaggingClassifier(LogisticRegression(), n_estimators=2, random_state=0)
    payload = bag.fit(csr_matrix(dense), y).report(csr_matrix(dense), y).payload
    assert parts(payload) >= ALWAYS


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_several_targets_need_an_index(task):
    X, targets = numbers()
    train, test = halves()
    kind = "Regressor" if task == "regression" else "Classifier"
    both_targets = np.stack(
        [targets[task], targets["regression" if task == "regression" else "binary"]], 1
    )
    model = getattr(arboost, "RandomForest" + kind)(6, random_state=0).fit(
        X[train], both_targets[train]
    )
    with pytest.raises(ValueError, match="target_index=None is not allowed: the model has 2"):
        model.report(X[test], both_targets[test])
    both = model.report(X[test], both_targets[test], target_index=0)
    one = model.report(X[test], both_targets[test, 0], target_index=0)
    assert same_parts(both.payload) == same_parts(one.payload)
    predicted = np.asarray(model.predict(X[test]))[:, 0]
    label = both.payload["models"][0]["predictions"]["label"]
    if task == "regression":
        assert label == pytest.approx(predicted, rel=1e-6)
    else:
        assert label == predicted.tolist()
    shap = both.payload["models"][0]["shap"]
    raw = model.predict_raw(X[test])
    total = shap["base"][0] + np.sum(shap["values"][0], axis=0) + shap["rest"][0]
    assert total == pytest.approx(raw[:, 0], abs=1e-3)


def test_several_targets_of_a_bagged_ensemble():
    X, targets = numbers()
    both_targets = np.stack([targets["regression"], X[:, 0]], axis=1)
    bag = arboost.BaggingRegressor(arboost.RandomForestRegressor(3), n_estimators=2).fit(
        X, both_targets
    )
    with pytest.raises(ValueError, match="target_index"):
        bag.report(X, both_targets)
    with pytest.raises(ValueError, match="target_index"):
        bag.report(X, both_targets[:, 0])
    found = bag.report(X, both_targets, target_index=1).payload["models"][0]["predictions"]["value"]
    assert found == pytest.approx(bag.predict(X)[:, 1], rel=1e-6)


def test_custom_losses():
    X, targets = numbers()
    loss = arboost.CustomLoss(
        name="square", gradients=lambda y, score, weight: (weight * (score - y), weight)
    )
    model = arboost.GradientBoostingRegressor(loss=loss, n_estimators=5)
    model.fit(X, targets["regression"])
    payload = model.report(X, targets["regression"]).payload
    assert parts(payload) >= ALWAYS
    assert model.model_.report(X, targets["regression"]).scores == {
        one["name"]: one["value"] for one in payload["models"][0]["scores"]
    }


def test_trees_that_are_a_part_of_the_model():
    """A first estimator next to the trees: no curve and no SHAP values of the trees alone."""
    from arboost.compat.sklearn import GradientBoostingRegressor

    X, targets = numbers()
    y = targets["regression"]
    whole = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y)
    part = GradientBoostingRegressor(n_estimators=5, init=LinearRegression(), random_state=0)
    model = part.fit(X, y).report(X, y).payload["models"][0]
    assert model["learning"] is None
    assert model["shap"] is None
    assert any("not those of the trees alone" in note for note in model["notes"])
    model = whole.report(X, y).payload["models"][0]
    assert model["learning"]["series"][0]["y"][-1] == model["scores"][0]["value"]
    assert model["shap"] is not None


@pytest.mark.parametrize("name", ["Bagging", "Voting", "Stacking"])
def test_unit_of_shap_values_of_ensembles(name):
    X, targets = numbers()
    members = [("a", arboost.RandomForestClassifier(4)), ("b", arboost.ExtraTreesClassifier(4))]
    ensemble = {
        "Bagging": lambda: arboost.BaggingClassifier(n_estimators=3),
        "Voting": lambda: arboost.VotingClassifier(members, voting="soft"),
        "Stacking": lambda: arboost.StackingClassifier(members),
    }[name]().fit(X, targets["multiclass"])
    shap = ensemble.report(X, targets["multiclass"]).payload["models"][0]["shap"]
    assert shap["unit"] == ("raw score" if name == "Stacking" else "probability")
