"""Fits on clusters of Dask through the public class."""

import os
import signal
from itertools import pairwise
from types import SimpleNamespace

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from dask import delayed
from distributed import Client, LocalCluster

import arboost
import arboost.dask
from arboost.dask import DistributedFit
from support.cluster_fits import estimator_of, expected_bytes, options_of, table_of
from support.cluster_programs import all_messages
from support.clusters import run
from support.streamed import model_bytes

FRAME = pd.DataFrame({"a": np.arange(30.0), "y": np.arange(30) % 3, "w": np.ones(30)})
# Bounds of the partitions, as shares of the rows.
PARTITIONS = {1: [0.0, 1.0], 2: [0.0, 0.3, 0.3, 1.0], 3: [0.0, 0.1, 0.5, 0.9, 1.0]}


def fit(*arguments, **options):
    booster = arboost.GradientBoostingClassifier(n_estimators=2, verbose=0)
    return DistributedFit(booster, timeout=30).fit(*arguments, **options)


def collection(table, bounds):
    """Return a Dask DataFrame with these partitions."""
    n = len(table)
    parts = [table.iloc[int(n * a) : int(n * b)] for a, b in pairwise(bounds)]
    return dd.from_delayed([delayed(part) for part in parts], meta=table.iloc[:0])


@pytest.mark.parametrize("n_workers", PARTITIONS)
@pytest.mark.parametrize(
    "name", ["three classes", "evaluation set", "goss", "ranking, evaluation set", "random forest"]
)
def test_same_model(client, name, n_workers, tmp_path):
    """Other settings and partitions are tested in threads (test_training.py)."""
    table, target, weight, validates = table_of(name)
    bounds = PARTITIONS[n_workers]
    options = options_of(name)
    if validates:
        options["eval_set"] = [(collection(table.iloc[::3], bounds), target, weight)]
    workers = list(client.scheduler_info(n_workers=-1)["workers"])[:n_workers]
    estimator = estimator_of(name)
    model = DistributedFit(estimator, client, workers=workers, timeout=30).fit(
        collection(table, bounds), target, weight=weight, **options
    )
    assert model is estimator
    assert model_bytes(model, tmp_path) == expected_bytes(name, tmp_path)


def test_arrays(client, tmp_path):
    """Sparse and dense chunks, of rows and columns, give the model of the whole array."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 6)) < 0.6, 0.0, rng.normal(size=(300, 6)))
    y = (X[:, 0] + X[:, 1] > 0.2).astype(float)
    expected = arboost.GradientBoostingClassifier(n_estimators=3, verbose=0).fit(X, y)
    dense = da.from_array(X, chunks=(70, 4))
    sparse = da.from_array(X, chunks=(70, 6)).map_blocks(scipy.sparse.csr_matrix)
    for data in (dense, sparse):
        model = DistributedFit(
            arboost.GradientBoostingClassifier(n_estimators=3, verbose=0), timeout=30
        ).fit(data, da.from_array(y, chunks=70))
        assert model_bytes(model, tmp_path) == model_bytes(expected, tmp_path)


def test_validation_and_callbacks(client):
    data = dd.from_pandas(FRAME, npartitions=4)
    rounds = []
    model = fit(data, "y", weight="w", eval_set=[(data, "y", "w")], callbacks=[rounds.append])
    assert [done.index for done in rounds] == [0, 1]
    assert list(model.evals_result_) == ["train"]
    other = dd.from_pandas(FRAME.iloc[::2], npartitions=2)
    model = fit(data, "y", eval_set=(other, "y"))
    assert list(model.evals_result_) == ["validation"]


def test_files(client, tmp_path):
    frame = FRAME.drop(columns="w")
    for i in range(4):
        frame.to_parquet(tmp_path / f"{i}.parquet")
    model = fit(tmp_path, "y", memory_limit="200MB")
    expected = arboost.GradientBoostingClassifier(n_estimators=2, verbose=0)
    expected.fit(tmp_path, "y")
    assert model_bytes(model, tmp_path) == model_bytes(expected, tmp_path)


def test_errors_of_training(client):
    data = dd.from_pandas(FRAME, npartitions=3)
    for bad in ("many", -1):
        with pytest.raises((TypeError, ValueError), match="n_estimators"):
            DistributedFit(arboost.GradientBoostingRegressor(n_estimators=bad)).fit(data, "y")
    text = FRAME.assign(y=["one"] * 29 + [None])
    with pytest.raises(ValueError, match="missing"):
        fit(dd.from_pandas(text, npartitions=3), "y")


def test_estimators_that_do_not_train_on_clusters(client):
    data = dd.from_pandas(FRAME, npartitions=2)
    with pytest.raises(TypeError, match="does not train on a cluster"):
        DistributedFit(arboost.BaggingClassifier()).fit(data, "y")
    with pytest.raises(TypeError, match="callbacks is not allowed"):
        DistributedFit(arboost.RandomForestClassifier()).fit(data, "y", callbacks=[print])
    with pytest.raises(ValueError, match="voting=5 is not allowed with a RandomForest"):
        DistributedFit(arboost.RandomForestClassifier(), voting=5).fit(data, "y")


def test_a_lost_worker(client, tmp_path):
    """A worker is killed in the middle of the rounds: the model is that of one process."""
    name = "three classes"
    table, target, weight, _ = table_of(name)
    workers = list(client.nthreads())[:2]
    pids = list(client.run(os.getpid, workers=workers).values())

    def kill(done):
        if done.index == 2 and len(pids) == 2:  # it may be asked again after the loss
            os.kill(pids.pop(), signal.SIGKILL)

    fit = DistributedFit(estimator_of(name), client, workers=workers, timeout=30, patience=0)
    model = fit.fit(collection(table, PARTITIONS[3]), target, weight=weight, callbacks=[kill])
    assert len(pids) == 1
    assert model_bytes(model, tmp_path) == expected_bytes(name, tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"workers": "tcp://one"}, TypeError, "one string"),
        ({"timeout": 0}, ValueError, "timeout=0"),
        ({"patience": -1}, ValueError, "patience=-1"),
        ({"retries": -1}, ValueError, "retries=-1"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        DistributedFit(SimpleNamespace(), **options)


def test_bad_eval_set(client):
    data = dd.from_pandas(FRAME, npartitions=2)
    for bad in ([data], (data,), [(data, "y", "w", "x")]):
        with pytest.raises(TypeError, match="list of tuples"):
            fit(data, "y", eval_set=bad)


def test_workers_in_one_process():
    options = {"processes": False, "threads_per_worker": 2, "dashboard_address": ":0"}
    with LocalCluster(n_workers=3, **options) as cluster, Client(cluster) as client:
        assert run(client, all_messages, 3)


def with_offset():
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "start"])
    return table.assign(y=rng.poisson(np.exp(0.5 * table["a"] + table["start"])).astype(float))


def test_offset_is_a_column(client, tmp_path):
    table, booster = with_offset(), {"loss": "poisson", "n_estimators": 4, "verbose": 0}
    val = table.iloc[::5]
    known = arboost.GradientBoostingRegressor(**booster)
    known.fit(table, "y", offset="start", X_val=val[["a", "b", "start"]], y_val=val["y"])
    bounds = PARTITIONS[3]
    model = DistributedFit(arboost.GradientBoostingRegressor(**booster), client, timeout=30).fit(
        collection(table, bounds),
        "y",
        offset="start",
        eval_set=[(collection(val, bounds), "y")],
        eval_names=["validation"],
    )
    assert model_bytes(model, tmp_path) == model_bytes(known, tmp_path)
    assert model.evals_result_ == known.evals_result_
    found = arboost.dask.predict(model, collection(table.drop(columns="y"), bounds))
    expected = known.predict(table.drop(columns="y"))
    np.testing.assert_array_equal(client.compute(found).result(30), expected)
    values = arboost.dask.shap_values(model, collection(table.drop(columns="y"), bounds))
    total = client.compute(values).result(30).sum(axis=1) + model.expected_value()[0]
    raw = known.predict_raw(table.drop(columns="y"))[:, 0]
    np.testing.assert_allclose(total + table["start"], raw)


def test_offset_of_a_cluster_is_a_name(client):
    table = collection(with_offset(), PARTITIONS[2])
    booster = arboost.GradientBoostingRegressor(n_estimators=2, verbose=0)
    with pytest.raises(TypeError, match="on a cluster it is the name of a column"):
        DistributedFit(booster, client, timeout=30).fit(table, "y", offset=np.zeros(400))
    with pytest.raises(TypeError, match=r"offset is not allowed: RandomForestRegressor"):
        DistributedFit(arboost.RandomForestRegressor(), client).fit(table, "y", offset="start")
    by_array = arboost.GradientBoostingRegressor(n_estimators=2, verbose=0)
    by_array.fit(with_offset()[["a", "b"]], with_offset()["y"], offset=1.0)
    with pytest.raises(ValueError, match="fitted with an array of offsets"):
        arboost.dask.predict(by_array, table[["a", "b"]])
