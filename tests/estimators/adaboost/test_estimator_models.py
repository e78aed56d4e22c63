"""Models whose members are estimators: accepted tables, predictions and pickles."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import arboost
from arboost.errors import DataWarning, SchemaError
from arboost.estimators.member_fits import member_table
from support.member_cases import CLASSES, REGRESSION, boosted, classes_data, learners_of, model_of

# ---- tables ----


@pytest.mark.parametrize("fmt", ["csr", "csc", "coo", "dok", "lil", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_sparse_tables_of_all_formats(fmt, kind):
    X, y = classes_data(3, 60)
    X[np.abs(X) < 1] = 0
    sparse = getattr(scipy.sparse, f"csr_{kind}")(X).asformat(fmt)
    table = member_table(sparse).X
    assert table.format == (fmt if fmt in ("csr", "csc") else "csr")
    model = boosted(sparse, y, 3)
    np.testing.assert_array_equal(model.predict_raw(sparse), boosted(X, y, 3).predict_raw(X))


def test_tables_of_more_dimensions():
    X = np.zeros((20, 3, 2))
    y = np.repeat([0.0, 1.0], 10)
    model = boosted(X, y, 2, estimator=DummyClassifier(strategy="stratified"))
    assert model.schema.n_features == 3
    assert model.predict(X).shape == (20,)
    with pytest.raises(SchemaError, match="X has 4 features, but Model is expecting 3"):
        model.predict(np.zeros((20, 4, 2)))


def test_lists_become_arrays():
    X, y = classes_data(2)
    model = boosted(X.tolist(), y, 2)
    np.testing.assert_array_equal(model.predict(X.tolist()), boosted(X, y, 2).predict(X))
    mixed = member_table([["a", 1], ["b", 2]]).X
    assert mixed.dtype == object
    assert mixed[0, 1] == 1


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], "Expected 2D array, got 1D array"),
        (np.float64(3), "Expected 2D array, got scalar array"),
        (pd.Series([1.0]), "Expected a 2-dimensional container"),
        (np.empty((0, 2)), r"Found array with 0 sample\(s\)"),
        (np.empty((2, 0)), r"Found array with 0 feature\(s\)"),
        ([[1], [1, 2]], "not a table"),
    ],
)
def test_what_is_no_table_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        member_table(X)


def test_datasets_are_refused():
    with pytest.raises(TypeError, match="holds bins instead of values"):
        member_table(arboost.Dataset([[0.0], [1.0]]))


def frame_data():
    X, y = classes_data(2)
    frame = pd.DataFrame(X[:, :2], columns=["x", "z"], index=np.arange(len(y)) % 7)
    frame["colour"] = pd.Categorical(np.where(X[:, 2] > 0, "red", "blue"))
    return frame, y


def by_name():
    columns = make_column_transformer(
        (OneHotEncoder(), ["colour"]), (StandardScaler(), ["x", "z"]), remainder="drop"
    )
    return make_pipeline(columns, DecisionTreeClassifier(max_depth=2))


def test_frames_stay_frames():
    frame, y = frame_data()
    model = boosted(frame, y, 2, estimator=by_name())
    assert model.schema.names == ("x", "z", "colour")
    raw = model.predict_raw(frame)
    assert (model.predict(frame) == CLASSES[2][y.astype(int)]).mean() > 0.7
    np.testing.assert_array_equal(model.predict_raw(frame[["colour", "x", "z"]]), raw)
    with pytest.raises(SchemaError, match="Feature names seen at fit time, yet now missing:\n- z"):
        model.predict(frame.drop(columns="z"))
    with pytest.raises(SchemaError, match="Feature names unseen at fit time:\n- more"):
        model.predict(frame.assign(more=1))
    with pytest.raises(ValueError, match="several columns of the same name: 'x'"):
        member_table(frame.rename(columns={"z": "x"}))


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_other_frames(convert):
    frame, y = frame_data()
    numbers = frame[["x", "z"]].reset_index(drop=True)
    expected = boosted(numbers, y, 2).predict_raw(numbers)
    table = convert(numbers)
    model = boosted(table, y, 2)
    assert model.schema.names == ("x", "z")
    np.testing.assert_array_equal(model.predict_raw(table), expected)
    np.testing.assert_array_equal(model.predict_raw(convert(numbers[["z", "x"]])), expected)


def test_missing_names_are_warned_of():
    X, y = classes_data(2)
    frame = pd.DataFrame(X).add_prefix("x")
    model = boosted(X, y, 2)
    with pytest.warns(DataWarning, match="X has feature names, but Model was fitted without"):
        member_table(frame, model.schema)
    with pytest.warns(DataWarning, match="X does not have valid feature names, but Model was"):
        member_table(X, boosted(frame, y, 2).schema)


# ---- models ----


@pytest.mark.parametrize("n_classes", [2, 3])
def test_models_predict_and_pickle(n_classes):
    X, y = classes_data(n_classes)
    model = boosted(X, y, n_classes)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), CLASSES[n_classes][p.argmax(axis=1)])
    assert (model.n_rounds, model.kind, model.n_outputs) == (
        8,
        "classifier",
        1 if n_classes == 2 else 3,
    )
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict_raw(X), model.predict_raw(X))
    staged = list(model.staged_raw(X))
    for rounds in range(1, 9):
        np.testing.assert_array_equal(model.truncated(rounds).predict_raw(X), staged[rounds - 1])
    with pytest.raises(ValueError, match="rounds=9 is not allowed: the model has 8 rounds"):
        model.truncated(9)
    assert repr(model) == "EstimatorModel(classifier, 6 features, 8 x DecisionTreeClassifier)"


def test_models_of_python_objects_have_no_file(tmp_path):
    X, y = classes_data(2)
    model = boosted(X, y, 2)
    with pytest.raises(TypeError, match=r"Python objects \(DecisionTreeClassifier\).*joblib"):
        model.save(tmp_path / "model.arb")
    assert not (tmp_path / "model.arb").exists()
    with pytest.raises(TypeError, match="verify_monotone reads trees of the engine"):
        model.verify_monotone({0: 1})


def test_the_number_of_threads_is_checked():
    X, y = classes_data(2)
    with pytest.raises(ValueError, match="n_jobs"):
        boosted(X, y, 2).predict(X, n_jobs=0)


def test_regressors_have_no_probabilities():
    learners = learners_of(DummyRegressor(), np.zeros((3, 1)), np.arange(3.0), REGRESSION)
    learners.learn(None, None, 0)
    learners.keep(1.0)
    model = model_of(learners, [1.0], REGRESSION, np.zeros((3, 1)), 3)
    np.testing.assert_array_equal(model.predict(np.zeros((2, 1))), [1.0, 1.0])
    with pytest.raises(TypeError, match="predict_proba is not available for a regressor"):
        model.predict_proba(np.zeros((3, 1)))
