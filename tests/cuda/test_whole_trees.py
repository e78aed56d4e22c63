"""Trees that grow on a CUDA device as a whole: nodes of all sizes, memory, interruption."""

import numpy as np
import pytest

import arboost
from arboost import _core
from support.core_trees import TREE_ARRAYS, core_params, encode, gradients_of
from support.cuda import emulated, has_device
from support.reference import Settings

if not has_device():
    pytest.skip("no CUDA device: its trees are not compared", allow_module_level=True)

CART = {"allow_zero_gain": True, "reg_lambda": 0.0, "min_child_weight": 0.0}


def trees(codes, n_bins, g, h, device, sample=None, **params):
    grower = _core.Grower(
        encode(codes, n_bins), g.shape[1], core_params(Settings(), device=device, **(CART | params))
    )
    gradients = gradients_of(g, h)
    for number in range(2):
        grower.grow(gradients, 0, seed=3, tree=number, rate=1.0, sample=sample, n_threads=1)
    return grower


def assert_same(codes, n_bins, g, h, **params):
    one, other = (trees(codes, n_bins, g, h, device, **params) for device in (-1, 0))
    for name in TREE_ARRAYS:
        assert np.array_equal(one.trees()[name], other.trees()[name]), name
    assert np.array_equal(one.leaf_of_row(), other.leaf_of_row())


def problem(rows, features=6, outputs=1, values=40, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, values, (rows, features))
    codes[rng.random(codes.shape) < 0.05] = -1
    g = -rng.integers(0, 4, (rows, outputs)).astype(float)
    return codes, [values] * features, g, np.ones_like(g)


@pytest.mark.parametrize("seed", range(20))
def test_random_settings(seed):
    rng = np.random.default_rng(100 + seed)
    outputs = int(rng.integers(1, 4))
    codes, n_bins, g, h = problem(
        int(rng.choice([2, 5, 31, 33, 70, 150])),
        int(rng.choice([1, 3, 9, 40])),
        outputs,
        int(rng.choice([2, 3, 12, 200])),
        seed,
    )
    if rng.random() < 0.4:  # rows of several weights, some of them 0
        h = rng.integers(0, 4, len(g))[:, None] * np.ones_like(g)
        g = g * h
    criterion = str(rng.choice(["quadratic", "poisson", "entropy"]))
    if criterion == "entropy":  # classes; with one output -1 and 1
        label = rng.integers(0, max(2, outputs), len(g))
        of_class = label[:, None] == np.arange(outputs) if outputs > 1 else label[:, None] * 2 - 1
        g = -h * of_class
    assert_same(
        codes,
        n_bins,
        g,
        h,
        criterion=criterion,
        random_cuts=bool(rng.random() < 0.4),
        max_depth=None if rng.random() < 0.5 else int(rng.integers(1, 6)),
        min_samples_leaf=int(rng.choice([1, 1, 2, 5])),
        min_samples_split=int(rng.choice([2, 2, 6])),
        colsample_bynode=float(rng.choice([0.01, 0.4, 1.0])),
        min_gain_share=float(rng.choice([0.0, 0.0, 0.05])),
    )


@pytest.mark.parametrize("histogram_bytes", [1, 1 << 29])
def test_large_nodes(histogram_bytes):
    codes, n_bins, g, h = problem(9000, features=6, values=30)
    codes[:4500, 0] = np.maximum(codes[:4500, 0] - 20, 0)
    assert_same(
        codes, n_bins, g, h, max_depth=2, colsample_bynode=0.5, histogram_bytes=histogram_bytes
    )


def test_large_node_of_constant_features():
    codes, n_bins, g, h = problem(4500, features=30, values=5)
    codes[:, :28] = 1
    assert_same(codes, n_bins, g, h, max_depth=2, colsample_bynode=0.1)


def test_pure_root():
    codes, n_bins, g, h = problem(500)
    assert_same(codes, n_bins, np.ones_like(g), h, max_depth=None)


def test_device_memory_is_free_after_a_fit():
    if emulated() is None:
        pytest.skip("other processes may use the device")
    codes, n_bins, g, h = problem(400)
    before = emulated().emulator_used_memory()
    grower = trees(codes, n_bins, g, h, 0)
    assert emulated().emulator_used_memory() > before
    del grower
    assert emulated().emulator_used_memory() == before


def test_fit_after_one_that_ran_out_of_memory():
    if emulated() is None:
        pytest.skip("needs a device of little memory")
    X = np.random.default_rng(0).random((1500, 4))
    y = (X[:, 0] > 0.5).astype(int)
    forest = arboost.RandomForestClassifier(n_estimators=2, max_depth=3, n_jobs=2, device="cuda")
    used = emulated().emulator_used_memory()
    try:
        emulated().emulator_set_memory(used + 80_000)
        with pytest.raises(arboost.DeviceError, match=r"out of memory|rows would fit"):
            forest.fit(X, y)
    finally:
        emulated().emulator_set_memory(1 << 34)
    assert emulated().emulator_used_memory() == used
    assert forest.fit(X, y).score(X, y) > 0.9


def test_workers_fit_into_memory():
    if emulated() is None:
        pytest.skip("needs a device of known memory")
    codes = encode(*problem(1000)[:2])
    used = emulated().emulator_used_memory()
    try:
        emulated().emulator_set_memory(used + (1 << 20))
        few = _core.cuda_growers_that_fit(codes, 1000, 1, 0)
        emulated().emulator_set_memory(used + (1 << 24))
        assert 1 <= few < _core.cuda_growers_that_fit(codes, 1000, 1, 0)
    finally:
        emulated().emulator_set_memory(1 << 34)


def test_stopped_grower():
    if emulated() is None:
        pytest.skip("a device is faster than the look for an interruption")
    codes, n_bins, g, h = problem(4000, values=200)
    params = core_params(Settings(), device=0, **(CART | {"max_depth": None}))
    grower = _core.Grower(encode(codes, n_bins), 1, params)
    grower.stop()
    with pytest.raises(RuntimeError, match="the grower was stopped"):
        grower.grow(gradients_of(g, h), 0, seed=3, tree=0, rate=1.0, n_threads=1)
    assert grower.n_trees == 0
