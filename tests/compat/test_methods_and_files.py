"""Methods, files and messages that estimators with scikit-learn's names share with ours."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression

import arboost
from arboost.compat import sklearn as compat

IRIS = load_iris(return_X_y=True)
TWO = (IRIS[0][:100, :2], IRIS[1][:100])
DIABETES = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("rows", [IRIS, TWO], ids=["three classes", "two classes"])
def test_files_of_adaboost_have_its_probabilities(rows, tmp_path):
    X, y = rows
    model = compat.AdaBoostClassifier(n_estimators=5).fit(X, y)
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    vote = compat.VotingClassifier([("ada", model)], voting="soft").fit(X, y)
    vote.save(tmp_path / "vote.arb")
    loaded = arboost.load(tmp_path / "vote.arb")
    assert_allclose(loaded.predict_proba(X), vote.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("init", [None, LogisticRegression(max_iter=1000)], ids=["none", "model"])
def test_rounds(init):
    X, y = TWO
    model = compat.GradientBoostingClassifier(n_estimators=4, init=init).fit(X, y)
    for name in ("predict", "predict_proba", "decision_function"):
        staged = list(getattr(model, f"staged_{name}")(X))
        assert_array_equal(getattr(model, name)(X, rounds=2), staged[1])
    ada = compat.AdaBoostClassifier(n_estimators=4).fit(X, y)
    staged = list(ada.staged_predict_proba(X))
    assert_array_equal(ada.predict_proba(X, rounds=2), staged[1])


@pytest.mark.parametrize("asked", ["predict_raw", "to_json", "partial_dependence", "to_c"])
def test_trees_that_correct_a_model_are_no_whole_model(asked):
    X, y = DIABETES
    model = compat.GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X, y)
    argument = {"predict_raw": [X], "partial_dependence": [X, 0]}.get(asked, [])
    with pytest.raises(ValueError, match=f"{asked} is not available for trees that correct Linear"):
        getattr(model, asked)(*argument)
    bags = compat.BaggingRegressor(model, n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="save is not available for trees that correct Linear"):
        bags.save("never_written.arb")


@pytest.mark.parametrize(
    "name", ["RandomForestClassifier", "ExtraTreesRegressor", "DecisionTreeClassifier"]
)
def test_load(name, tmp_path):
    X, y = IRIS
    model = getattr(compat, name)(max_depth=3, random_state=0).fit(X, y)
    model.save(tmp_path / "model.arb")
    loaded = getattr(compat, name).load(tmp_path / "model.arb")
    assert loaded.get_params() == model.get_params()
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.fit(X, y).predict(X), model.predict(X))


@pytest.mark.parametrize(
    "name", ["GradientBoostingClassifier", "HistGradientBoostingRegressor", "AdaBoostClassifier"]
)
def test_load_says_where_files_keep_too_little(name):
    with pytest.raises(TypeError, match=rf"{name}\.load is not there: .* Use arboost\.load"):
        getattr(compat, name).load("model.arb")


def test_files_keep_one_name_of_monotone_constraints():
    X, y = DIABETES
    model = compat.HistGradientBoostingRegressor(max_iter=2, monotonic_cst={2: 1}).fit(X, y)
    assert "monotonic_cst" not in model.model_.params
    assert model.verify_monotone()[0].holds


@pytest.mark.parametrize(
    ("name", "given", "here"),
    [
        ("HistGradientBoostingClassifier", "n_estimators", "max_iter"),
        ("HistGradientBoostingClassifier", "reg_lambda", "l2_regularization"),
        ("RandomForestClassifier", "monotone_constraints", "monotonic_cst"),
        ("GradientBoostingRegressor", "max_iter", "n_estimators"),
    ],
)
def test_unknown_names_are_answered_with_scikit_learns(name, given, here):
    with pytest.raises(TypeError, match=f"{given} is called {here} here: use {name}"):
        getattr(compat, name)(**{given: 1})


def test_unknown_arguments_are_answered_without_private_names():
    X, y = TWO
    model = compat.GradientBoostingClassifier(n_estimators=2).fit(X, y)
    for call in (model.fit, compat.AdaBoostClassifier().fit, arboost.RandomForestClassifier().fit):
        with pytest.raises(TypeError, match=r"(Classifier|fit) has no argument .?sample_weigth"):
            call(X, y, sample_weigth=None)
    for name in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(
            TypeError, match=rf"^{name} has no argument 'round'\. Did you mean rounds"
        ):
            getattr(model, name)(X, round=1)


@pytest.mark.parametrize(
    "model",
    [
        compat.GradientBoostingRegressor(n_estimators=3, n_iter_no_change=2, random_state=0),
        compat.HistGradientBoostingRegressor(max_iter=3, early_stopping=True, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_tables_of_dicts_and_paths(model):
    columns = {"a": list(range(60)), "b": [i % 3 for i in range(60)]}
    rows = [{"a": a, "b": b} for a, b in zip(*columns.values(), strict=True)]
    y = np.arange(60.0)
    expected = model.fit(np.array([*columns.values()]).T, y).predict([[3, 0]])
    for X in (columns, rows):
        assert_array_equal(model.fit(X, y).predict({"a": 3, "b": 0}), expected)
    with pytest.raises(TypeError, match=r"X is the path 'table\.csv'"):
        model.fit("table.csv", y)


def test_init_model_is_a_whole_model(tmp_path):
    X, y = DIABETES
    given = compat.GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X, y)
    refused = "init_model is not available for trees that correct Linear"
    with pytest.raises(ValueError, match=refused):
        arboost.GradientBoostingRegressor(n_estimators=2).fit(X, y, init_model=given)
    bags = arboost.BaggingRegressor(n_estimators=2).fit(X, y)
    bags.save(tmp_path / "bags.arb")
    with pytest.raises(TypeError, match="is not allowed: the file holds an ensemble of several"):
        arboost.GradientBoostingRegressor().fit(X, y, init_model=tmp_path / "bags.arb")


def test_values_of_monotonic_cst_are_answered_with_its_name():
    with pytest.raises(TypeError, match="Use for example monotonic_cst="):
        compat.RandomForestRegressor(monotonic_cst=3).fit(*DIABETES)


def test_one_line_for_two_tables_of_one_fit():
    """One warning of a table with keys, whose held-out rows are a table of their own."""
    n_rows = 400
    keys = np.array([f"row {i:04}" for i in range(n_rows)], object)
    X = np.column_stack([np.arange(n_rows, dtype=object), keys])
    model = compat.GradientBoostingRegressor(n_estimators=2, n_iter_no_change=2)
    with pytest.warns(arboost.DataWarning) as caught:
        model.fit(X, np.arange(n_rows))
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "estimator",
    [
        compat.HistGradientBoostingRegressor,
        compat.RandomForestRegressor,
        compat.DecisionTreeRegressor,
        arboost.GradientBoostingRegressor,
        arboost.RandomForestRegressor,
    ],
)
def test_errors_of_constraints_name_the_parameter_of_the_user(estimator):
    for given, message in (([1, 0], "has 2 entries, but X has"), ({"a": 1}, "names features that")):
        with pytest.raises(ValueError, match=f"^monotonic_cst {message}"):
            estimator(monotonic_cst=given).fit(*DIABETES)
    if estimator.__module__.startswith("arboost.estimators"):
        with pytest.raises(ValueError, match=r"^monotone_constraints has 2 entries"):
            estimator(monotone_constraints=[1, 0]).fit(*DIABETES)
