"""Workers on devices: the model of one process on the CPU, byte for byte."""

import numpy as np
import pytest

import arboost
from arboost.data.memory import MemoryPlan
from arboost.distributed.training import (
    TrainingListener,
    TrainingProgram,
    finish_fit,
    worker_device,
)
from arboost.estimators import forest_growth
from arboost.workers import Share
from support.cluster_fits import FITS, PARTITIONS, estimator_of, expected_bytes, fitted, table_of
from support.core_trees import encode, gradients_of, wide_problem
from support.cuda import emulated, has_device
from support.local_programs import Parts, run_program
from support.local_workers import run_workers
from support.shared_trees import assert_same, grown, grown_by_workers, sample_of
from support.streamed import model_bytes

if not has_device():
    pytest.skip("no CUDA device: workers on it are not compared", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::arboost.DataWarning")


@pytest.mark.parametrize("partition", ["two", "five, some empty"])
@pytest.mark.parametrize("name", FITS)
def test_same_model(name, partition, tmp_path):
    model = fitted(name, PARTITIONS[partition], device="cuda")
    assert model_bytes(model, tmp_path) == expected_bytes(name, tmp_path)


@pytest.mark.parametrize("n_jobs", [2, 4])
@pytest.mark.parametrize(
    "name", ["weights", "three classes", "vector leaves", "best first", "rows drawn", "goss"]
)
def test_threads_make_no_difference(name, n_jobs, tmp_path):
    model = fitted(name, PARTITIONS["three"], device="cuda", n_jobs=n_jobs)
    assert model_bytes(model, tmp_path) == expected_bytes(name, tmp_path)


@pytest.mark.parametrize("losses", [[(0, 0.8)], [(2, 0.1), (1, 0.6)]], ids=str)
@pytest.mark.parametrize("name", ["evaluation set", "held-out rows", "goss", "decision tree"])
def test_lost_workers(name, losses, tmp_path):
    model = fitted(name, PARTITIONS["three"], losses, device="cuda")
    assert model_bytes(model, tmp_path) == expected_bytes(name, tmp_path)


@pytest.mark.parametrize("name", ["random forest", "forest with weights", "extra trees"])
def test_trees_of_a_forest_that_workers_grow_together(name, tmp_path, monkeypatch):
    monkeypatch.setattr(forest_growth, "_each_worker_holds_all_rows", lambda *_: False)
    model = fitted(name, PARTITIONS["five, some empty"], device="cuda")
    assert model_bytes(model, tmp_path) == expected_bytes(name, tmp_path)


# From 32,768 rows on, gradients are rounded at random, by the position of a row among all rows.
@pytest.mark.parametrize("sample", ["none", "by gradient"])
@pytest.mark.parametrize(
    "params",
    [
        {"max_depth": None, "max_leaves": 20, "best_first": True},
        {"max_depth": 4, "min_samples_leaf": 50, "colsample_bynode": 0.5},
        {"max_depth": 4, "random_cuts": True, "allow_zero_gain": True},
    ],
    ids=["best first", "leaf size", "random cuts"],
)
def test_many_rows(sample, params):
    codes, n_bins, g, h = wide_problem(n=33_000)
    table, gradients = encode(codes, n_bins), gradients_of(g, h)
    drawn = sample_of(sample, gradients)
    expected = grown(table, gradients, 1, sample=drawn, **params)
    parts = [3.0, 0.0, 7.0]
    for actual in grown_by_workers(table, gradients, 1, parts, sample=drawn, device=0, **params):
        assert_same(expected, actual)


def test_vector_leaves_and_little_memory():
    codes, n_bins, g, h = wide_problem(n=3000, outputs=3)
    table, gradients = encode(codes, n_bins), gradients_of(g, h)
    params = {"max_depth": None, "max_leaves": 60, "histogram_bytes": 1}
    expected = grown(table, gradients, 3, **params)
    for actual in grown_by_workers(table, gradients, 3, [1.0, 1.0], device=0, **params):
        assert_same(expected, actual)


def test_samples_without_rows_of_a_worker(tmp_path):
    """A round that draws from its own rows: few of 40, and no row of some workers."""
    X = np.arange(80.0).reshape(40, 2)
    params = {"n_estimators": 6, "subsample": 0.05, "min_child_weight": 0, "verbose": 0}
    expected = arboost.GradientBoostingRegressor(**params).fit(X, X[:, 0] % 7)

    def program(workers):
        rows = slice(10 * workers.rank, 10 * workers.rank + 10)
        model = arboost.GradientBoostingRegressor(**params, device="cuda")
        return model.fit(Share(Parts([(X[rows], X[rows, 0] % 7)]), workers))

    for model in run_workers(4, program):
        assert model_bytes(model, tmp_path) == model_bytes(expected, tmp_path)


def test_voting(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 40))
    y = X[:, 7] + 2 * X[:, 30] * (X[:, 3] > 0)
    parts, models = [[(X[:400], y[:400])], [(X[400:], y[400:])]], []
    for device in ("cpu", "cuda"):
        model = arboost.GradientBoostingRegressor(n_estimators=3, verbose=0, device=device)
        program = TrainingProgram(model, {"train": (None, None)}, {}, n_votes=2)
        results = run_program(program, {"train": parts}, TrainingListener((), 0))
        models.append(model_bytes(finish_fit(model, results[0]), tmp_path))
    assert models[0] == models[1]


def test_batches_of_one_process(tmp_path):
    table, target, *_ = table_of("two classes")
    model = estimator_of("two classes", device="cuda").fit(Parts([table]), target)
    assert model_bytes(model, tmp_path) == expected_bytes("two classes", tmp_path)


def test_codes_in_a_file_are_refused(monkeypatch):
    monkeypatch.setattr(MemoryPlan, "stores", lambda *_: True)
    table, target, *_ = table_of("regression")
    with pytest.raises(ValueError, match="device='cuda' needs the bins of all rows in memory"):
        estimator_of("regression", device="cuda").fit(Parts([table]), target)


def test_devices_of_a_host_are_given_in_turn(monkeypatch):
    monkeypatch.setattr(arboost.backend.core, "cuda_devices", lambda: ["one", "two"])
    assert run_workers(3, worker_device) == ["cuda:0", "cuda:1", "cuda:0"]


class Processes:
    """Workers of several processes, of which each sees other devices first."""

    def __init__(self, rank, visible):
        self.rank, self.size, self._visible = rank, len(visible), visible

    def gather(self, value):
        if value is None:  # no error
            return [None] * self.size
        host, _, n_devices = value
        return [(host, visible, n_devices) for visible in self._visible]


def test_each_value_of_visible_devices_has_its_own_turns(monkeypatch):
    monkeypatch.setattr(arboost.backend.core, "cuda_devices", lambda: ["one", "two"])
    visible, devices = ["0,1", "1,0", "0,1", "1,0"], []
    for rank, of_process in enumerate(visible):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", of_process)
        devices.append(worker_device(Processes(rank, visible)))
    assert devices == ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]


@pytest.mark.skipif(emulated() is None, reason="the emulator has two devices")
def test_a_device_by_name(tmp_path):
    model = fitted("regression", PARTITIONS["two"], device="cuda:1")
    assert model_bytes(model, tmp_path) == expected_bytes("regression", tmp_path)
    with pytest.raises(arboost.DeviceError, match="is not there"):
        fitted("regression", PARTITIONS["two"], device="cuda:7")


def test_workers_of_dask(tmp_path):
    distributed = pytest.importorskip("distributed")
    dataframe = pytest.importorskip("dask.dataframe")
    from arboost.dask import DistributedFit

    table, target, *_ = table_of("three classes")
    data = dataframe.from_pandas(table, npartitions=4)
    model = estimator_of("three classes", device="cuda")
    with distributed.Client(n_workers=2, processes=False, dashboard_address=":0") as client:
        DistributedFit(model, client).fit(data, target)
    assert model.device == "cuda"
    assert model_bytes(model, tmp_path) == expected_bytes("three classes", tmp_path)
