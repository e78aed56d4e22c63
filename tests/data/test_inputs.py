"""Dicts and pandas rows as tables; inputs that are no table say what to type."""

import json
import pathlib

import numpy as np
import pandas as pd
import polars as pl
import pytest

import arboost
from arboost import GradientBoostingRegressor, SchemaError
from arboost.data.table import ingest

N_ROWS = 60
COLUMNS = {
    "x": list(np.arange(N_ROWS) * 1.5),
    "city": ["Rome", "Oslo", None] * 20,
    "day": list(pd.date_range("2024-01-01", periods=N_ROWS)),
}
TABLE = pd.DataFrame(COLUMNS)
ROWS = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]
Y = np.arange(N_ROWS) % 7
TREE = arboost.DecisionTreeRegressor()
ESTIMATORS = {
    "booster": GradientBoostingRegressor(n_estimators=5),
    "forest": arboost.RandomForestRegressor(n_estimators=3, random_state=0),
    "bagging": arboost.BaggingRegressor(n_estimators=3, random_state=0),
    "voting": arboost.VotingRegressor([("one", TREE), ("two", TREE)]),
    "stacking": arboost.StackingRegressor([("one", TREE), ("two", TREE)], TREE, cv=2),
}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_dicts_and_pandas_rows_are_tables(estimator):
    expected = estimator.fit(TABLE, Y).predict(TABLE)
    np.testing.assert_array_equal(estimator.predict(COLUMNS), expected)
    np.testing.assert_array_equal(estimator.predict(ROWS), expected)
    for i in (0, 2, 7):
        backwards = dict(reversed(ROWS[i].items()))
        for row in (ROWS[i], [ROWS[i]], backwards, TABLE.iloc[i]):
            np.testing.assert_array_equal(estimator.predict(row), expected[i : i + 1])
    for table in (COLUMNS, ROWS):
        np.testing.assert_array_equal(estimator.fit(table, Y).predict(TABLE), expected)


def test_dicts_have_the_schema_of_frames():
    frame = ingest(TABLE)
    for table in (COLUMNS, ROWS):
        read = ingest(table)
        assert read.schema == frame.schema
        for i in range(3):
            np.testing.assert_array_equal(read.columns.read(i), frame.columns.read(i))


def test_keys_that_a_row_lacks():
    read = ingest([{"a": 1}, {"b": "x"}])
    assert read.schema.names == ("a", "b")
    np.testing.assert_array_equal(read.columns.read(0), [1, np.nan])
    with pytest.raises(SchemaError, match="yet now missing:\n- city\n- day"):
        ingest({"x": 1.0}, ingest(TABLE).schema)
    with pytest.raises(ValueError, match=r"different lengths: \{'a': 2, 'b': 1\}"):
        ingest({"a": [1, 2], "b": [3]})
    with pytest.raises(ValueError, match="2-dimensional container"):
        ingest(TABLE["x"], ingest(TABLE).schema)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_inputs_that_say_what_to_type(estimator):
    estimator.fit(TABLE, Y)
    with pytest.raises(TypeError, match=r"X = pandas.read_csv\('train.csv'\)"):
        estimator.predict("train.csv")
    with pytest.raises(TypeError, match=r"X = pandas.read_parquet\('train.parquet'\)"):
        estimator.predict(pathlib.Path("train.parquet"))
    with pytest.raises(TypeError, match=r"LazyFrame.* X.collect\(\)"):
        estimator.predict(pl.LazyFrame(TABLE))
    # Ensembles of other estimators read tables only.
    with pytest.raises((FileNotFoundError, TypeError), match=r"'train\.csv'"):
        estimator.fit("train.csv", Y)
    with pytest.raises(ValueError, match="y='z' names no column of X, whose columns are 'x'"):
        estimator.fit(TABLE, "z")


def test_columns_of_dicts():
    table = pd.DataFrame({"a": [1, 2], "b": [{"c": 1, "d": 2}, {"c": 3, "d": 4}]}, index=[7, 9])
    with pytest.raises(TypeError, match="'b' of X holds dicts, such as") as caught:
        ingest(table)
    typed = str(caught.value).partition("columns: ")[2].partition("; or")[0]
    flat = eval(typed, {"X": table, "pandas": pd})
    assert json.loads(flat.to_json(orient="values")) == [[1, 1, 2], [2, 3, 4]]
    with pytest.raises(TypeError, match=r"'b' \(nested\).*X.unnest"):
        ingest(pl.DataFrame({"b": [{"c": 1}]}))
