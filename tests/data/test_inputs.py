"""Tables of a row, of names and of too many rows; inputs that are no table say what to type."""

import json
import pathlib

import numpy as np
import pandas as pd
import polars as pl
import pytest

import arboost
from arboost import GradientBoostingRegressor, SchemaError
from arboost.backend import core
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


sparse = pytest.importorskip("scipy.sparse")

TOO_MANY = core.most_rows + 1
MESSAGE = r"536,870,912 rows, but at most 536,870,911 are allowed"


def flat(n_rows, dtype=np.float32):
    return np.broadcast_to(np.zeros(1, dtype), (n_rows, 1))


def test_one_limit():
    assert core.most_rows == 2**29 - 1


@pytest.mark.parametrize(
    "estimator",
    [
        arboost.GradientBoostingRegressor(),
        arboost.RandomForestRegressor(),
        arboost.DecisionTreeRegressor(),
        arboost.AdaBoostRegressor(),
    ],
)
def test_fits_refuse_more_rows_at_once(estimator):
    with pytest.raises(ValueError, match=MESSAGE):
        estimator.fit(flat(TOO_MANY), flat(TOO_MANY)[:, 0])


@pytest.mark.parametrize("tree_method", ["hist", "exact"])
def test_datasets(tree_method):
    with pytest.raises(ValueError, match=MESSAGE):
        arboost.Dataset(flat(TOO_MANY), tree_method=tree_method)


def test_sparse_tables_of_fits_and_predictions():
    empty = sparse.csc_array((TOO_MANY, 1), dtype=np.float32)
    with pytest.raises(ValueError, match=MESSAGE):
        arboost.Dataset(empty)
    schema = ingest(np.zeros((2, 1))).schema
    with pytest.raises(ValueError, match=MESSAGE):
        ingest(empty, schema)


def test_dense_tables_of_predictions_have_no_limit():
    schema = ingest(np.zeros((2, 1))).schema
    assert ingest(flat(TOO_MANY), schema).n_rows == TOO_MANY


def wide(n_rows):
    columns = core.Columns(n_rows)
    columns.add_missing()
    return columns


@pytest.mark.parametrize(
    "use",
    [
        lambda: core.quantiles(wide(TOO_MANY), None, None, 255, 1),
        lambda: core.encode(wide(TOO_MANY), None, [np.zeros(0)], 1),
        lambda: core.rank(wide(TOO_MANY), None, 1),
        lambda: core.plan_storage(
            wide(TOO_MANY), None, [np.zeros(0)], 1, [], bundling=True, max_conflict_rate=0.0
        ),
        lambda: core.Gradients(TOO_MANY, 1, by_row=False),
        lambda: core.Sample().draw(TOO_MANY, 0.5, 1, 1, 1),
        lambda: core.Sample().draw_with_replacement(TOO_MANY, 5, 1, 1, 1),
        lambda: wide(TOO_MANY).add_sparse(np.zeros(0, np.uint32), np.zeros(0), 0.0),
    ],
)
def test_the_core_has_the_same_limit(use):
    with pytest.raises(ValueError, match="536870912 rows, but at most 536870911 are allowed"):
        use()
