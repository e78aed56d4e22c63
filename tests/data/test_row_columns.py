"""Weights and groups by name: fit(df, "price", "weight") takes the columns out of the table."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arboost

FRAME = pd.DataFrame(
    {
        "size": np.arange(60.0) % 7,
        "weight": np.arange(60.0) % 3,
        "price": np.arange(60.0) % 7 * 3.0 + np.arange(60.0) % 2,
        "city": ["Bern", "Oslo", "Rome"] * 20,
        "household": np.arange(60) // 4,
    }
)
TABLE = FRAME.drop(columns="household")
REST = TABLE.drop(columns=["weight", "price"])

ESTIMATORS = [
    arboost.GradientBoostingRegressor(n_estimators=3),
    arboost.AdaBoostRegressor(n_estimators=3),
    arboost.AdaBoostRegressor(arboost.DecisionTreeRegressor(max_depth=2), n_estimators=3),
    arboost.AdaBoostRegressor(arboost.RandomForestRegressor(2), n_estimators=2),
    arboost.DecisionTreeRegressor(max_depth=2),
    arboost.RandomForestRegressor(3, random_state=0),
    arboost.ExtraTreesRegressor(3, random_state=0),
]
SPLIT = {"n_iter_no_change": 2, "validation_split": "group", "random_state": 0}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: repr(one)[:40])
def test_weights_of_every_estimator(estimator):
    expected = estimator.fit(REST, TABLE["price"], TABLE["weight"]).predict(REST)
    estimator.fit(TABLE, "price", "weight")
    assert list(estimator.feature_names_in_) == ["size", "city"]
    for table in (REST, TABLE, TABLE.drop(columns="price")):
        np.testing.assert_array_equal(estimator.predict(table), expected)
        np.testing.assert_array_equal(estimator.predict(table[:1]), expected[:1])
    np.testing.assert_array_equal(estimator.predict(TABLE.iloc[0]), expected[:1])


@pytest.mark.parametrize(
    "table",
    [pl.from_pandas(TABLE), pa.table(TABLE), TABLE.to_dict("list"), TABLE.to_dict("records")],
    ids=["polars", "pyarrow", "dict", "records"],
)
def test_every_table_with_names(table):
    model = arboost.DecisionTreeRegressor().fit(table, "price", "weight")
    expected = arboost.DecisionTreeRegressor().fit(REST, TABLE["price"], TABLE["weight"])
    np.testing.assert_array_equal(model.predict(table), expected.predict(REST))


@pytest.mark.parametrize("kind", [arboost.GradientBoostingRegressor, arboost.AdaBoostRegressor])
def test_groups(kind):
    model = kind(n_estimators=5, **SPLIT)
    X, groups = FRAME[["size", "city"]], FRAME["household"]
    expected = model.fit(X, FRAME["price"], FRAME["weight"], groups=groups).predict(X)
    curves = model.evals_result_
    model.fit(FRAME, "price", "weight", groups="household")
    assert model.evals_result_ == curves
    assert list(model.feature_names_in_) == ["size", "city"]
    for table in (FRAME, X):
        np.testing.assert_array_equal(model.predict(table), expected)


def test_one_column_of_weights_and_groups():
    frame = FRAME.assign(household=FRAME["household"] + 1.0)
    model = arboost.GradientBoostingRegressor(n_estimators=3, **SPLIT)
    model.fit(frame, "price", "household", groups="household")
    assert list(model.feature_names_in_) == ["size", "weight", "city"]


def test_evaluation_sets():
    model = arboost.GradientBoostingRegressor(n_estimators=3)
    held = TABLE[::2]
    model.fit(TABLE, "price", "weight", eval_set=[(TABLE, "price"), (held, "price", "weight")])
    scores = model.evals_result_
    assert list(scores) == ["train", "validation"]
    model.fit(
        REST,
        TABLE["price"],
        TABLE["weight"],
        eval_set=[
            (REST, TABLE["price"]),
            (REST[::2], held["price"], held["weight"]),
        ],
    )
    assert model.evals_result_ == scores
    model.fit(TABLE, "price", "weight", X_val=held, y_val="price", sample_weight_val="weight")
    assert model.evals_result_["validation"] == scores["validation"]


def test_datasets_and_folds():
    data = arboost.Dataset(TABLE, "price", sample_weight="weight")
    booster = arboost.GradientBoostingRegressor(n_estimators=3)
    expected = booster.fit(TABLE, "price", "weight").predict(TABLE)
    np.testing.assert_array_equal(booster.fit(data).predict(TABLE), expected)
    for name in ("sample_weight", "groups"):
        with pytest.raises(ValueError, match=f"{name}='weight' names a column, but X is a Dataset"):
            booster.fit(data, **{name: "weight"})
    by_name = arboost.cv(booster, FRAME, "price", sample_weight="weight", groups="household")
    by_value = arboost.cv(
        booster,
        FRAME[["size", "city"]],
        FRAME["price"],
        sample_weight=FRAME["weight"],
        groups=FRAME["household"],
    )
    assert by_name.best_score == by_value.best_score


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_the_model_of_files(tmp_path, n_jobs):
    """Apart from the names, which models of tables keep, the files are the same."""
    model = arboost.GradientBoostingRegressor(n_estimators=5, n_jobs=n_jobs, **SPLIT)
    path = tmp_path / "rows.parquet"
    FRAME.to_parquet(path)
    model.fit(FRAME, "price", "weight", groups="household")
    by_name = json.loads(model.to_json())
    assert by_name.pop("row_columns") == ["weight", "household"]
    assert json.loads(model.fit(path, "price", "weight", groups="household").to_json()) == by_name


@pytest.mark.parametrize("name", ["model.arb", "model.json"])
def test_files_keep_the_names(tmp_path, name):
    model = arboost.GradientBoostingRegressor(n_estimators=3).fit(TABLE, "price", "weight")
    model.save(tmp_path / name)
    loaded = arboost.load(tmp_path / name)
    assert loaded.schema.row_columns == ("weight",)
    np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(REST))


def test_continued_training():
    model = arboost.GradientBoostingRegressor(n_estimators=2, warm_start=True)
    model.fit(TABLE, "price", "weight").set_params(n_estimators=4).fit(TABLE, "price", "weight")
    assert model.n_iter_ == 4
    model.set_params(n_estimators=5).fit(REST, TABLE["price"], TABLE["weight"])
    np.testing.assert_array_equal(model.predict(TABLE), model.predict(REST))


def test_names_that_are_no_column():
    model = arboost.GradientBoostingRegressor(**SPLIT)
    message = "sample_weight='wait' names no column of X"
    with pytest.raises(ValueError, match=message):
        model.fit(FRAME, "price", "wait")
    with pytest.raises(ValueError, match=rf"eval_set\[0\]: {message}"):
        model.fit(FRAME, "price", eval_set=[(FRAME[::2], "price", "wait")])
    with pytest.raises(ValueError, match="groups='household_' names no column"):
        model.fit(FRAME, "price", groups="household_")
    with pytest.raises(ValueError, match="sample_weight='weight' names a column, but X, a ndarray"):
        model.fit(FRAME[["size"]].to_numpy(), FRAME["price"], "weight")
