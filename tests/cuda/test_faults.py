"""Faults of a device in the middle of a fit, and machines without a usable one."""

import threading

import numpy as np
import pytest

import arboost
from support.cuda import emulated, has_device
from support.processes import run

if not has_device():
    pytest.skip("no CUDA device: its faults are not tested", allow_module_level=True)

needs_emulator = pytest.mark.skipif(emulated() is None, reason="faults of the emulator")

rng = np.random.default_rng(0)
X = rng.integers(0, 50, (400, 4)) / 2
y = X[:, 0] + rng.integers(0, 8, 400) / 4

MODELS = {
    "booster": lambda **p: arboost.GradientBoostingRegressor(n_estimators=3, verbose=0, **p),
    "sampled": lambda **p: arboost.GradientBoostingRegressor(
        n_estimators=3, verbose=0, sampling_method="goss", learning_rate=0.5, **p
    ),
    "forest": lambda **p: arboost.RandomForestRegressor(n_estimators=2, n_jobs=1, **p),
    "AdaBoost": lambda **p: arboost.AdaBoostRegressor(n_estimators=3, max_depth=2, **p),
}


@needs_emulator
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("n_calls", [1, 5, 20, 60])
def test_lost_device_is_an_error_and_the_process_goes_on(name, n_calls):
    expected = MODELS[name]().fit(X, y).predict(X)
    model = MODELS[name](device="cuda")
    model.fit(X, y)
    before = emulated().emulator_used_memory()
    emulated().emulator_lose_device_after(n_calls)
    try:
        with pytest.raises(arboost.DeviceError, match="failed on the CUDA device"):
            model.fit(X, y)
    finally:
        emulated().emulator_lose_device_after(-1)
    assert emulated().emulator_used_memory() == before
    np.testing.assert_array_equal(model.fit(X, y).predict(X), expected)


@needs_emulator
@pytest.mark.parametrize("name", list(MODELS))
def test_out_of_memory_is_an_error_and_frees_all_of_it(name):
    model = MODELS[name](device="cuda").fit(X, y)
    before = emulated().emulator_used_memory()
    messages = []
    try:
        for more in (10_000, 50_000, 100_000, 1_000_000, 10_000_000, 100_000_000):
            emulated().emulator_set_memory(before + more)
            try:
                model.fit(X, y)
            except arboost.DeviceError as error:
                messages.append(str(error))
            assert emulated().emulator_used_memory() == before
    finally:
        emulated().emulator_set_memory(1 << 34)
    assert messages
    assert all("MiB" in message for message in messages)
    model.fit(X, y)


def test_fits_in_threads():
    expected = [MODELS[name]().fit(X, y).predict(X) for name in MODELS]
    found = [None] * len(MODELS)

    def fit(i, name):
        for _ in range(2):
            found[i] = MODELS[name](device="cuda").fit(X, y).predict(X)

    threads = [threading.Thread(target=fit, args=given) for given in enumerate(MODELS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found, expected)


@needs_emulator
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('CUDA_VISIBLE_DEVICES=""', "no CUDA-capable device"),
        ('EMULATOR_DRIVER="11040"', "is for CUDA 11.4, but 12.0 or later is needed"),
        ('EMULATOR_DEVICES="0"', "shows 0 devices"),
    ],
)
def test_unusable_driver_says_why(setting, message):
    name, value = setting.split("=")
    run(
        f"""
        import os, ctypes, sys
        os.environ["{name}"] = {value}
        ctypes.CDLL(sys.argv[1])
        import arboost
        try:
            arboost.GradientBoostingRegressor(device="cuda").fit([[0.0], [1.0]], [0.0, 1.0])
        except arboost.DeviceError as error:
            assert "{message}" in str(error), error
            assert 'device="cpu"' in str(error), error
        else:
            raise AssertionError("no error")
        """,
        emulated()._name,
    )


def test_loss_of_python_functions_says_that_it_runs_on_the_host():
    loss = arboost.CustomLoss(
        name="squares", gradients=lambda y, score, weight: (score - y, np.ones_like(y))
    )
    with pytest.warns(UserWarning, match="computed on the host"):
        model = arboost.GradientBoostingRegressor(
            n_estimators=3, verbose=0, loss=loss, device="cuda"
        ).fit(X, y)
    other = arboost.GradientBoostingRegressor(n_estimators=3, verbose=0, loss=loss).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
