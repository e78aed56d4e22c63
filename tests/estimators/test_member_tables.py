"""Rows and columns of every type of table; the type is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from arboost.estimators.member_fits import member_table, take_columns, take_rows
from arboost.estimators.stacking import append_table

COLUMNS = {"a": [1, 2, 3], "b": ["x", "y", None], "c": [1.5, 2.5, 3.5]}
ROWS = np.array([2, 0, 0], dtype=np.uint32)

FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns, index=[7, 7, 1]),
    "Polars": pl.DataFrame,
    "PyArrow": pa.table,
}


@pytest.fixture(params=FRAMES)
def make(request):
    return FRAMES[request.param]


def columns_of(frame):
    """Columns in their order, as lists, with None for missing values."""
    if isinstance(frame, pd.DataFrame):
        frame = pa.Table.from_pandas(frame, preserve_index=False)
    elif isinstance(frame, pl.DataFrame):
        frame = frame.to_arrow()
    return list(frame.to_pydict().items())


def test_rows(make):
    frame = make(COLUMNS)
    taken = take_rows(frame, ROWS)
    assert type(taken) is type(frame)
    assert columns_of(taken) == [("a", [3, 1, 1]), ("b", [None, "x", "x"]), ("c", [3.5, 1.5, 1.5])]


def test_no_rows(make):
    taken = take_rows(make(COLUMNS), ROWS[:0])
    assert taken.shape == (0, 3)


def test_rows_keep_types():
    frame = pl.DataFrame(COLUMNS, schema_overrides={"a": pl.UInt8, "b": pl.Categorical})
    assert take_rows(frame, ROWS).schema == frame.schema
    table = pa.table({"a": pa.chunked_array([[1], [2, 3]], pa.int8())})
    assert take_rows(table, ROWS).schema == table.schema
    assert take_rows(table, ROWS).to_pydict() == {"a": [3, 1, 1]}


def test_rows_keep_the_index():
    frame = pd.DataFrame(COLUMNS, index=[7, 7, 1])
    assert take_rows(frame, ROWS).index.tolist() == [1, 7, 7]


def test_rows_of_a_frame_with_repeated_names():
    frame = pd.DataFrame([[1, 2], [3, 4], [5, 6]], columns=["a", "a"])
    taken = take_rows(frame, ROWS)
    assert taken.to_numpy().tolist() == [[5, 6], [1, 2], [1, 2]]
    assert taken.columns.tolist() == ["a", "a"]


def test_rows_of_a_record_batch():
    batch = pa.RecordBatch.from_pydict(COLUMNS)
    assert columns_of(take_rows(batch, ROWS))[0] == ("a", [3, 1, 1])
    assert columns_of(take_columns(batch, np.array([2, 0])))[1] == ("a", [1, 2, 3])


def test_columns(make):
    frame = make(COLUMNS)
    taken = take_columns(frame, np.array([2, 0]))
    assert type(taken) is type(frame)
    assert columns_of(taken) == [("c", COLUMNS["c"]), ("a", COLUMNS["a"])]


def test_repeated_columns(make):
    taken = take_columns(make(COLUMNS), np.array([2, 0, 2, 2]))
    assert [name for name, _ in columns_of(taken)] == ["c", "a", "c (2)", "c (3)"]
    assert [values for _, values in columns_of(taken)] == [COLUMNS[name] for name in "cacc"]


def test_columns_with_names_other_than_strings():
    frame = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=[10, 20, 30], index=[1, 1])
    taken = take_columns(frame, np.array([2, 0, 2]))
    assert taken.to_numpy().tolist() == [[3, 1, 3], [6, 4, 6]]
    assert taken.columns.tolist() == ["30", "10", "30 (2)"]


def test_columns_in_the_order_of_fit(make):
    schema = member_table(make(COLUMNS)).schema
    given = make({name: COLUMNS[name] for name in "cab"})
    matched = member_table(given, schema).X
    assert type(matched) is type(given)
    assert columns_of(matched) == list(COLUMNS.items())


def test_columns_after_those_of_members(make):
    joined = append_table([np.array([[0.5], [0.25], [0.0]])], make(COLUMNS), ["member"])
    assert type(joined) is type(make(COLUMNS))
    assert columns_of(joined) == [("member", [0.5, 0.25, 0.0]), *COLUMNS.items()]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_arrays(kind):
    dense = np.arange(6.0).reshape(3, 2)
    rows = take_rows(kind(dense), ROWS)
    columns = take_columns(kind(dense), np.array([1, 1]))
    assert type(rows) is type(columns) is type(kind(dense))
    as_dense = np.asarray if kind is np.asarray else lambda table: table.toarray()
    assert np.array_equal(as_dense(rows), dense[[2, 0, 0]])
    assert np.array_equal(as_dense(columns), dense[:, [1, 1]])
