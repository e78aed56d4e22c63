"""Data of Dask in all its kinds: the right rows, in the right order."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from arboost.distributed.dask_data import table_input
from support.cluster_programs import items
from support.clusters import run

FRAME = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) ** 2, "y": np.arange(30) % 3})
X, Y = FRAME[["a", "b"]].to_numpy(), FRAME["y"].to_numpy()


def parts_of(client, *arguments, weight=None):
    """Return the parts of a table after their way through the workers, and its columns."""
    table = table_input(client, *arguments, weight)
    found = run(client, items, tables={"train": table.rows})["train"]
    return found, (table.target, table.weight)


def stacked(parts, member):
    return np.concatenate([np.asarray(part[member]) for part in parts])


def test_frame_with_names_of_columns(client):
    found, columns = parts_of(client, dd.from_pandas(FRAME, npartitions=4), "y", weight="b")
    pd.testing.assert_frame_equal(pd.concat(found), FRAME)
    assert columns == ("y", "b")


@pytest.mark.parametrize("kind", ["series", "array", "unlike"])
def test_frame_and_target(client, kind):
    data = dd.from_pandas(FRAME, npartitions=4)
    target = data["y"]
    if kind == "array":
        target = target.to_dask_array(lengths=True)
    elif kind == "unlike":
        target = target.reset_index(drop=True)  # the index does not matter
    found, columns = parts_of(client, data[["a", "b"]], target)
    assert columns == (None, None)
    assert len(found) == 4
    np.testing.assert_array_equal(stacked(found, 0), X)
    np.testing.assert_array_equal(stacked(found, 1), Y)


def test_frame_with_a_name_and_a_collection(client):
    data = dd.from_pandas(FRAME, npartitions=2)
    found, _ = parts_of(client, data, "y", weight=data["a"] + 1)
    assert list(found[0][0].columns) == ["a", "b"]
    np.testing.assert_array_equal(stacked(found, 1), Y)
    np.testing.assert_array_equal(stacked(found, 2), FRAME["a"] + 1)


@pytest.mark.parametrize("chunks", [(7, 2), (7, 1)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_arrays(client, chunks, is_sparse):
    data = da.from_array(X, chunks=chunks)
    if is_sparse:
        data = data.map_blocks(sparse.csr_matrix)
    found, _ = parts_of(client, data, da.from_array(Y, chunks=7), weight=da.ones(30, chunks=7))
    np.testing.assert_array_equal(stacked(found, 0), X)  # sparse chunks are dense by now
    np.testing.assert_array_equal(stacked(found, 1), Y)
    assert len(found[0]) == 3


def test_unknown_lengths(client):
    data = da.from_array(FRAME.to_numpy(), chunks=(7, 3))
    data = data[data[:, 0] >= 10]
    found, _ = parts_of(client, data[:, :2], data[:, 2])
    np.testing.assert_array_equal(stacked(found, 0), X[10:])


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_delayed_tables(client, convert):
    pieces = [FRAME[:10], FRAME[10:11], FRAME[11:]]
    found, columns = parts_of(client, [dask.delayed(convert)(piece) for piece in pieces], "y")
    assert [len(part) for part in found] == [10, 1, 19]
    assert type(found[0]) is type(convert(FRAME))
    assert columns == ("y", None)


def test_delayed_pairs_and_futures(client):
    pieces = [slice(0, 10), slice(10, 30)]
    pairs = [dask.delayed(tuple)([X[piece], Y[piece]]) for piece in pieces]
    found, _ = parts_of(client, pairs, None)
    np.testing.assert_array_equal(stacked(found, 1), Y)
    futures = client.scatter([X[piece] for piece in pieces])
    found, _ = parts_of(client, futures, client.scatter([Y[piece] for piece in pieces]))
    np.testing.assert_array_equal(stacked(found, 0), X)
    np.testing.assert_array_equal(stacked(found, 1), Y)


def test_paths(client, tmp_path, monkeypatch):
    for i in (0, 2, 10):
        FRAME.to_parquet(tmp_path / f"part{i}.parquet")
    expected = [str(tmp_path / f"part{i}.parquet") for i in (0, 2, 10)]
    assert parts_of(client, tmp_path, "y") == (expected, ("y", None))
    assert parts_of(client, str(tmp_path / "*.parquet"), "y")[0] == expected
    assert parts_of(client, expected[::-1], "y")[0] == expected[::-1]
    monkeypatch.chdir(tmp_path)
    assert parts_of(client, "part*.parquet", "y")[0] == expected
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        table_input(client, "/nowhere/at/all.parquet", "y", None)


def test_partition_keys_are_refused(client, tmp_path):
    FRAME.to_parquet(tmp_path / "data", partition_cols=["y"])
    with pytest.raises(ValueError, match="partition keys"):
        table_input(client, tmp_path / "data", "a", None)


def data_and_parts(n_parts=3):
    data = dd.from_pandas(FRAME, npartitions=n_parts)
    return data, data.repartition(npartitions=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda d, _: (d, "z", None), ValueError, r"target='z' names no column of X.*'a', 'b'"),
        (lambda d, _: (d, "y", "yy"), ValueError, "weight='yy' names no column"),
        (lambda d, _: (d, None, None), TypeError, "target=None"),
        (lambda d, o: (d[["a"]], o["y"], None), ValueError, "3 partitions, but target has 2"),
        (lambda d, o: (d, "y", o["a"]), ValueError, "3 partitions, but weight has 2"),
        (lambda d, _: (d, Y, None), TypeError, "target is a ndarray"),
        (lambda d, _: (FRAME, "y", None), TypeError, "data is a DataFrame.*from_pandas"),
        (lambda d, _: (d.to_delayed(), Y, None), TypeError, "target is a ndarray"),
        (lambda d, _: ("x.csv", Y, None), TypeError, "must be the name of a column"),
        (lambda d, _: (da.ones((4, 1)), None, None), TypeError, "an array of Dask needs one"),
        (lambda d, _: (da.ones((4, 1)), None, da.ones(4)), TypeError, "no target"),
        (
            lambda d, _: (da.ones((4, 1), chunks=2), da.ones(4, chunks=(1, 3)), None),
            ValueError,
            "rechunk",
        ),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        table_input(None, *arguments(*data_and_parts()))
