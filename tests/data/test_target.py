"""Targets: labels of any type become classes; y by name takes the column out of the table."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arboost
from arboost.backend import core
from arboost.data.feature_names import split_target
from arboost.data.target import Task, encode_labels

TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?", ">i4", ">f8")


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", TYPES)
def test_classes_of_every_type(rng, dtype, n_threads):
    y = rng.choice([0, 1, 3, 90, 119], 150_000).astype(dtype)
    classes, codes = encode_labels(y, n_threads)
    expected, index = np.unique(y, return_inverse=True)
    assert classes.dtype == y.dtype.newbyteorder("=")
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, index)


@pytest.mark.parametrize(
    "y",
    [
        np.array([-(2**63), -(2**63) + 3]),
        np.array([2**64 - 1, 2**64 - 5], np.uint64),
        np.array([0, 10**6, -(10**6)]),
        np.array([-(2.0**60), 2.0**60]),
        np.array([7, 7]),
    ],
)
def test_labels_far_apart_and_at_the_ends_of_their_type(y):
    classes, codes = encode_labels(y)
    np.testing.assert_array_equal(classes, np.unique(y))
    np.testing.assert_array_equal(classes[codes.astype(int)], y)


def test_strided_labels():
    classes, codes = encode_labels(np.array([5, 0, 2, 0, 5, 0])[::2])
    assert classes.tolist() == [2, 5]
    assert codes.tolist() == [1.0, 0.0, 1.0]


def test_zero_keeps_the_sign_of_its_last_row():
    assert np.signbit(encode_labels(np.array([0.0, 1.0, -0.0]))[0]).tolist() == [True, False]
    assert np.signbit(encode_labels(np.array([-0.0, 1.0, 0.0]))[0]).tolist() == [False, False]


@pytest.mark.parametrize("y", [np.array([0.5, 1.0]), np.array([0.0, np.inf]), np.array([np.nan])])
def test_no_whole_numbers(y):
    assert core.index_labels(y, 2.0**16, np.empty(len(y)), 1) is None


def test_rows_of_each_class(rng):
    y = rng.integers(0, 5, 200_000)
    task = Task.of("classifier", y)
    for n_threads in (1, 3):
        assert task.class_counts(n_threads).tolist() == np.bincount(y).tolist()
    with pytest.raises(ValueError, match="no class"):
        core.class_counts(np.array([0.0, 2.0]), 2, 1)


FRAME = pd.DataFrame(
    {
        "size": np.arange(60.0) % 7,
        "price": np.arange(60.0) % 7 * 3.0 + 1.0,
        "city": ["Bern", "Oslo", "Rome"] * 20,
    }
)
REST, PRICE = FRAME.drop(columns="price"), FRAME["price"]
LABELLED = FRAME.assign(price=np.where(PRICE > 9, "high", "low"))
TREE = {"max_depth": 2}

REGRESSORS = [
    arboost.GradientBoostingRegressor(n_estimators=3),
    arboost.AdaBoostRegressor(n_estimators=3),
    arboost.AdaBoostRegressor(arboost.DecisionTreeRegressor(**TREE), n_estimators=3),
    arboost.AdaBoostRegressor(arboost.RandomForestRegressor(2), n_estimators=2),
    arboost.DecisionTreeRegressor(**TREE),
    arboost.RandomForestRegressor(3, random_state=0),
    arboost.ExtraTreesRegressor(3, random_state=0),
    arboost.BaggingRegressor(n_estimators=2, random_state=0),
    arboost.VotingRegressor([("tree", arboost.DecisionTreeRegressor(**TREE))]),
    arboost.StackingRegressor([("tree", arboost.DecisionTreeRegressor(**TREE))]),
]


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda one: repr(one)[:40])
def test_every_regressor(estimator):
    by_name = estimator.fit(FRAME, "price").predict(REST)
    assert estimator.n_features_in_ == 2
    assert list(estimator.feature_names_in_) == ["size", "city"]
    np.testing.assert_array_equal(estimator.predict(FRAME), by_name)
    np.testing.assert_array_equal(estimator.predict(FRAME[:1]), by_name[:1])
    np.testing.assert_array_equal(estimator.predict(FRAME.iloc[0]), by_name[:1])
    assert estimator.score(FRAME, "price") == estimator.score(REST, PRICE)
    np.testing.assert_array_equal(estimator.fit(REST, PRICE).predict(REST), by_name)


@pytest.mark.parametrize(
    "estimator",
    [
        arboost.GradientBoostingClassifier(n_estimators=3),
        arboost.AdaBoostClassifier(n_estimators=3),
        arboost.RandomForestClassifier(3, random_state=0),
        arboost.BaggingClassifier(n_estimators=2, random_state=0),
        arboost.VotingClassifier([("tree", arboost.DecisionTreeClassifier(**TREE))]),
        arboost.StackingClassifier([("tree", arboost.DecisionTreeClassifier(**TREE))]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_classifier(estimator):
    estimator.fit(LABELLED, "price")
    assert estimator.classes_.tolist() == ["high", "low"]
    assert estimator.score(LABELLED, "price") == estimator.score(LABELLED, LABELLED["price"]) > 0.9


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME),
        pa.RecordBatch.from_pandas(FRAME),
        FRAME.to_dict("list"),
        FRAME.to_dict("records"),
    ],
    ids=["pandas", "polars", "pyarrow", "record batch", "dict", "records"],
)
def test_every_table_with_names(table):
    model = arboost.DecisionTreeRegressor().fit(table, "price")
    np.testing.assert_allclose(model.predict(table), PRICE)
    assert list(model.feature_names_in_) == ["size", "city"]


def test_evaluation_sets():
    model = arboost.GradientBoostingRegressor(n_estimators=3)
    model.fit(FRAME, "price", eval_set=[(FRAME, "price"), (FRAME[::2], "price")])
    assert list(model.evals_result_) == ["train", "validation"]
    model.fit(FRAME, "price", X_val=FRAME[::2], y_val="price")
    assert list(model.evals_result_) == ["validation"]
    model.fit(REST, PRICE, eval_set=[(FRAME[::2], "price")])
    with pytest.raises(ValueError, match=r"eval_set\[0\]: y='size' names no column"):
        model.fit(REST, PRICE, eval_set=[(FRAME[["price", "city"]], "size")])


def test_datasets_and_folds():
    data = arboost.Dataset(FRAME, "price")
    assert data.n_features == 2
    assert data.y.tolist() == PRICE.tolist()
    booster = arboost.GradientBoostingRegressor(n_estimators=3)
    np.testing.assert_array_equal(
        booster.fit(data).predict(FRAME), booster.fit(FRAME, "price").predict(FRAME)
    )
    by_name, by_value = arboost.cv(booster, FRAME, "price"), arboost.cv(booster, REST, PRICE)
    assert by_name.best_score == by_value.best_score


@pytest.mark.parametrize("kind", ["compact", "json", "bagging"])
def test_files_keep_the_name(tmp_path, kind):
    path = tmp_path / ("model.json" if kind == "json" else "model.arb")
    model = arboost.GradientBoostingRegressor(n_estimators=3)
    if kind == "bagging":
        model = arboost.BaggingRegressor(model, n_estimators=2, random_state=0)
    model.fit(FRAME, "price").save(path)
    loaded = arboost.load(path)
    np.testing.assert_allclose(loaded.predict(FRAME), model.predict(REST))
    assert loaded.schema.target == "price"


def test_explanations():
    model = arboost.RandomForestRegressor(3, random_state=0).fit(FRAME, "price")
    np.testing.assert_array_equal(
        model.importances("permutation", FRAME, "price"),
        model.importances("permutation", REST, PRICE),
    )
    assert model.shap_values(FRAME).shape == (60, 2)


def test_warm_start():
    model = arboost.GradientBoostingRegressor(n_estimators=2, warm_start=True).fit(FRAME, "price")
    model.set_params(n_estimators=4).fit(FRAME, "price")
    assert model.n_iter_ == 4
    np.testing.assert_array_equal(model.predict(FRAME), model.predict(REST))


def test_other_extra_columns_stay_errors():
    model = arboost.DecisionTreeRegressor().fit(FRAME, "price")
    with pytest.raises(arboost.SchemaError, match=r"unseen at fit time:\n- more"):
        model.predict(FRAME.assign(more=1.0))
    plain = arboost.DecisionTreeRegressor().fit(REST, PRICE)
    with pytest.raises(arboost.SchemaError, match=r"unseen at fit time:\n- price"):
        plain.predict(FRAME)


def test_names_that_are_no_column():
    model = arboost.DecisionTreeRegressor()
    with pytest.raises(ValueError, match=r"y='prize' names no column .* Did you mean 'price'\?"):
        model.fit(FRAME, "prize")
    with pytest.raises(TypeError, match="is for tables with named columns"):
        model.fit(REST[["size"]].to_numpy(), "price")
    with pytest.raises(TypeError, match=r"X is the path .train\.csv."):
        arboost.Dataset("train.csv", "price")
    with pytest.raises(TypeError, match="LazyFrame of Polars"):
        arboost.Dataset(pl.from_pandas(FRAME).lazy(), "price")
    with pytest.raises(ValueError, match="price"):  # twice
        model.fit(pd.concat([FRAME, FRAME[["price"]]], axis=1), "price")
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(FRAME[["price"]], "price")


def test_other_targets_are_left_alone():
    X, y = io.StringIO(), np.zeros(2)
    assert split_target(X, y) == (X, y, None)
