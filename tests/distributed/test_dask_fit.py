"""The public way to a fit on a cluster, with the program of training as it is."""

import subprocess
import sys
from types import SimpleNamespace

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from arboost.dask import DistributedFit
from support.cluster_programs import all_messages
from support.clusters import run

FRAME = pd.DataFrame({"a": np.arange(30.0), "y": np.arange(30) % 3, "w": np.ones(30)})


def fit(*arguments, **options):
    return DistributedFit(SimpleNamespace(), timeout=30).fit(*arguments, **options).n_rows_


def test_fit(client):
    data = dd.from_pandas(FRAME, npartitions=4)
    valid = da.ones((12, 1), chunks=(5, 1)), da.ones(12, chunks=5)
    called = []
    counts = fit(
        data,
        "y",
        weight="w",
        eval_set=[(data, "y"), (*valid, valid[1])],
        callbacks=(one for one in [called.append]),
    )
    assert counts == {"train": 30, "validation_0": 30, "validation_1": 12}
    assert called == [counts]
    assert fit(data, "y", eval_set=valid) == {"train": 30, "validation_0": 12}


def test_files(client, tmp_path):
    for i in range(4):
        FRAME.to_parquet(tmp_path / f"{i}.parquet")
    assert fit(tmp_path, "y") == {"train": 120}


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


def test_without_dask():
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "try:\n    import arboost.dask\n"
        "except ImportError as error:\n    print(error)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == (
        "arboost.dask needs the package distributed: pip install 'arboost[dask]'"
    )
