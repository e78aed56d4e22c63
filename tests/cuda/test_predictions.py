"""Predictions on a CUDA device equal those of the CPU, byte for byte."""

import copy
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import arboost
from arboost.backend import core
from arboost.data.cuda import CudaArray
from support.cuda import emulated, has_device

if not has_device():
    pytest.skip("no CUDA device: its predictions are not compared", allow_module_level=True)

ROWS = 700
GRADIENT = {"n_estimators": 7, "verbose": 0}


def table(n_rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-200, 200, (n_rows, 6)) / 4
    X[:, 1], X[:, 2] = rng.integers(0, 4, n_rows), rng.integers(0, 150, n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


def target(X):
    return 1 + (np.nan_to_num(X[:, 0]) > 10) * 3 + np.nan_to_num(X[:, 2]) % 7


def regressor(**params):
    X = table()
    return arboost.GradientBoostingRegressor(**GRADIENT | params).fit(X, target(X)).model_


def classifier(n_classes, make=arboost.GradientBoostingClassifier, labels=None, **params):
    X = table()
    y = target(X).astype(int) % n_classes
    y = y if labels is None else np.asarray(labels)[y]
    return make(**params).fit(X, y).model_


def forest(make, **params):
    X = table()
    return make(n_estimators=5, **params).fit(X, target(X)).model_


def forest_of_pairs():
    X = table()
    y = np.stack([target(X) > 4, target(X) % 2 > 0], axis=1)
    return arboost.RandomForestClassifier(n_estimators=5).fit(X, y).model_


MODELS = {
    "depth 3": lambda: regressor(max_depth=3),
    "depth 8": lambda: regressor(max_depth=8, min_child_weight=0),
    "deep": lambda: regressor(max_depth=None, max_leaves=60, grow_policy="leafwise"),
    "many bins": lambda: regressor(max_bins=2000, tree_method="exact"),
    "level sets": lambda: regressor(categorical_features=[1]),
    "groups": lambda: regressor(categorical_features=[1, 2], category_encoding="groups"),
    "means": lambda: regressor(categorical_features=[2], category_encoding="mean"),
    "missing number": lambda: regressor(missing=3.0),
    "poisson": lambda: regressor(loss="poisson"),
    "two quantiles": lambda: regressor(loss="quantile", alpha=[0.4, 0.6]),
    "no round": lambda: regressor().truncated(0),
    "two classes": lambda: classifier(2, **GRADIENT),
    "labels": lambda: classifier(2, labels=["no", "yes"], **GRADIENT),
    "three classes": lambda: classifier(3, labels=[5.0, 2.0, -1.0], **GRADIENT),
    "vector leaves": lambda: classifier(
        5, multi_strategy="multi_output_tree", max_depth=4, **GRADIENT
    ),
    "AdaBoost": lambda: classifier(3, arboost.AdaBoostClassifier, n_estimators=6),
    "median": lambda: forest(arboost.AdaBoostRegressor),
    "weighted mean": lambda: forest(arboost.AdaBoostRegressor, aggregation="mean"),
    "forest": lambda: forest(arboost.RandomForestRegressor),
    "forest of classes": lambda: classifier(4, arboost.RandomForestClassifier, n_estimators=5),
    "forest of two classes": lambda: classifier(2, arboost.ExtraTreesClassifier, n_estimators=5),
    "tree": lambda: classifier(3, arboost.DecisionTreeClassifier),
    "two targets of two classes": forest_of_pairs,
}


def same(one, other):
    """Assert that two results are the same bytes; device arrays are copied."""
    if isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
        return
    other = np.asarray(other)
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)
    if one.dtype != object:
        assert one.tobytes() == other.tobytes()


@pytest.fixture
def emulator():
    """Return the emulator, with memory and a device again at the end."""
    library = emulated()
    if library is None:
        pytest.skip("memory and failures of a real device cannot be set")
    yield library
    library.emulator_set_memory(4 << 30)
    library.emulator_lose_device_after(-1)


METHODS = ["predict", "predict_raw", "apply"]


@pytest.mark.parametrize("name", list(MODELS))
def test_tables_of_the_host_and_of_the_device(name):
    model = MODELS[name]()
    X = table(ROWS, 1)
    there = model.to("cuda")
    on_device = CudaArray.of(X)
    for method in METHODS + ["predict_proba"] * (model.kind == "classifier"):
        expected = getattr(model, method)(X)
        same(expected, getattr(there, method)(X))
        same(expected, getattr(there, method)(on_device))
        same(expected, getattr(model, method)(on_device))  # rows are predicted where they are


@pytest.mark.parametrize("name", [name for name in MODELS if name != "median"])
def test_shap_values(name):
    model = MODELS[name]()
    X = table(150, 1)
    expected = model.shap_values(X)
    same(expected, model.to("cuda").shap_values(X))
    same(expected, model.shap_values(CudaArray.of(X)))


def test_shap_values_of_wide_tables_and_deep_trees():
    rng = np.random.default_rng(0)
    X = rng.random((120, 400))
    y = X[:, ::2].sum(axis=1)
    wide = arboost.GradientBoostingRegressor(n_estimators=300, max_depth=2, colsample_bytree=0.1)
    deep = arboost.DecisionTreeRegressor(max_features=5, random_state=0)
    for estimator in (wide, deep):
        model = estimator.fit(X, y).model_
        same(model.shap_values(X), model.shap_values(CudaArray.of(X)))
        same(model.predict(X), model.predict(CudaArray.of(X)))


def test_shap_values_that_need_the_processor():
    X = table()
    model = regressor().to("cuda")
    with pytest.raises(arboost.DeviceError, match="shap_interactions does not run"):
        model.shap_interactions(X)
    with pytest.raises(arboost.DeviceError, match="background does not run"):
        model.shap_values(X, background=X)
    with pytest.raises(arboost.DeviceError, match="background do not run"):
        model.shap_values(CudaArray.of(X), background=X)
    with pytest.raises(TypeError, match="weighted median"):
        MODELS["median"]().shap_values(CudaArray.of(X))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_types_of_numbers(dtype):
    X = np.nan_to_num(np.abs(table())).astype(dtype)
    model = arboost.GradientBoostingRegressor(**GRADIENT).fit(X, target(table())).model_
    same(model.predict(X), model.predict(CudaArray.of(X)))
    same(model.predict(X), model.to("cuda").predict(X))


def test_order_of_the_array_does_not_matter():
    model, X = regressor(), table()
    whole = CudaArray.of(np.asfortranarray(X).T.copy())  # columns one after the other
    turned = CudaArray(whole.address, X.shape, whole.strides[::-1], whole.dtype, 0, whole)
    same(model.predict(X), model.predict(turned))
    wide = CudaArray.of(np.repeat(X, 2, axis=1))
    last = wide.address + (len(X) - 1) * wide.strides[0]
    some = (-wide.strides[0], 2 * wide.strides[1])
    backwards = CudaArray(last, X.shape, some, wide.dtype, 0, wide)
    same(model.predict(X[::-1]), model.predict(backwards))
    for turned in (np.asfortranarray(X), X[::-1], X.astype("f2"), np.repeat(X, 2, axis=1)[:, ::2]):
        same(model.predict(turned), model.to("cuda").predict(turned))


def test_several_targets():
    X = table()
    y = target(X).astype(int)
    labels = np.column_stack([y % 3, y % 2])
    forest = arboost.RandomForestClassifier(n_estimators=4).fit(X, labels).model_
    for method in ("predict", "predict_proba"):
        same(getattr(forest, method)(X), getattr(forest, method)(CudaArray.of(X)))
        same(getattr(forest, method)(X), getattr(forest.to("cuda"), method)(X))


def test_rows_in_chunks(emulator):
    model, X = regressor(), table(3000)
    there = model.to("cuda")
    there.predict(X[:5])
    emulator.emulator_set_memory(emulator.emulator_used_memory() + (200 << 10))
    same(model.predict(X), there.predict(X))


def test_frames_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table(), columns=list("abcdef"))
    frame["b"] = frame["b"].map({0.0: "x", 1.0: "y", 2.0: "z"})
    model = arboost.GradientBoostingRegressor(**GRADIENT).fit(frame, target(table())).model_
    same(model.predict(frame), model.to("cuda").predict(frame[list("fedcba")]))
    with pytest.warns(UserWarning, match="names"), pytest.raises(arboost.SchemaError, match="'b'"):
        model.predict(CudaArray.of(table()))  # numbers in place of strings


def test_wrong_arrays_are_refused():
    model = regressor()
    with pytest.raises(arboost.SchemaError, match="X has 2 features"):
        model.predict(CudaArray.of(np.zeros((3, 2))))
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict(CudaArray.of(np.zeros(6)))
    with pytest.raises(TypeError, match="predict_proba is not available for a regressor"):
        model.predict_proba(CudaArray.of(table()))
    with pytest.raises(TypeError, match=r"in the memory of a CUDA device.*X.to_numpy\(\)"):
        arboost.GradientBoostingRegressor(**GRADIENT).fit(CudaArray.of(table()), target(table()))


@pytest.mark.skipif(len(core.cuda_devices()) == 1, reason="only one CUDA device")
def test_array_of_another_device():
    model = regressor().to("cuda:1")
    with pytest.raises(arboost.DeviceError, match=r'X is in the memory of the device "cuda:0"'):
        model.predict(CudaArray.of(table()))


def test_no_rows():
    model = regressor()
    assert model.predict(CudaArray.of(np.zeros((0, 6)))).shape == (0,)
    assert model.to("cuda").predict(np.zeros((0, 6))).shape == (0,)


def test_copies_and_pickles_keep_the_device(tmp_path):
    X, model = table(), regressor()
    there = model.to("cuda:0")
    assert repr(there).endswith("trees, on cuda:0)")
    for other in (pickle.loads(pickle.dumps(there)), copy.deepcopy(there), there.truncated(3)):
        assert other.device == "cuda:0"
    same(model.predict(X), pickle.loads(pickle.dumps(there)).predict(X))
    same(model.predict(X, rounds=3), there.predict(X, rounds=3))
    assert there.to("cpu").device == "cpu"
    there.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb", device="cuda")
    assert (loaded.device, arboost.load(tmp_path / "model.arb").device) == ("cuda", "cpu")
    same(model.predict(X), loaded.predict(X))


def test_ensembles(tmp_path):
    X = table()
    bagging = arboost.BaggingRegressor(
        arboost.DecisionTreeRegressor(max_depth=3), n_estimators=3, random_state=0
    ).fit(X, target(X))
    bagging.save(tmp_path / "bag.arb")
    here, there = (arboost.load(tmp_path / "bag.arb", device=device) for device in ("cpu", "cuda"))
    same(here.predict(X), there.predict(X))


def test_methods_that_need_the_processor_name_themselves():
    model = regressor().to("cuda")
    with pytest.raises(arboost.DeviceError, match=r'staged_raw does not run .*model.to\("cpu"\)'):
        next(model.staged_raw(table()))
    X = table()
    forest = arboost.RandomForestRegressor(n_estimators=3, quantiles=True).fit(X, target(X))
    with pytest.raises(arboost.DeviceError, match="predict_quantiles does not run"):
        forest.model_.to("cuda").predict_quantiles(X)


def test_estimators_predict_where_the_rows_are():
    X = table()
    y = target(X).astype(int) % 2
    model = arboost.GradientBoostingClassifier(**GRADIENT).fit(X, y)
    on_device = CudaArray.of(X)
    for method in ("predict", "predict_proba", "decision_function", "shap_values", "apply"):
        same(getattr(model, method)(X), getattr(model, method)(on_device))
    with pytest.raises(TypeError, match="Take the logarithm of predict_proba"):
        model.predict_log_proba(on_device)
    with pytest.raises(TypeError, match="in the memory of a CUDA device"):
        model.partial_dependence(on_device, 0)


def test_device_without_memory_is_an_error_and_stays_usable(emulator):
    model, X = regressor(), table()
    there = model.to("cuda")
    emulator.emulator_set_memory(emulator.emulator_used_memory())
    with pytest.raises(arboost.DeviceError, match="out of memory"):
        there.predict(X)
    emulator.emulator_set_memory(4 << 30)
    same(model.predict(X), there.predict(X))


def test_memory_is_free_again(emulator):
    before = emulator.emulator_used_memory()
    there = regressor().to("cuda")
    there.shap_values(table()[:20])
    assert emulator.emulator_used_memory() > before
    del there
    gc.collect()
    assert emulator.emulator_used_memory() == before


def test_device_that_disappears(emulator):
    model, X = regressor(), table()
    there = model.to("cuda")
    there.predict(X)
    emulator.emulator_lose_device_after(3)
    with pytest.raises(arboost.DeviceError, match="failed on the CUDA device"):
        there.predict(X)
    emulator.emulator_lose_device_after(-1)
    same(model.predict(X), there.predict(X))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_process_says_what_to_do():
    there, X = regressor().to("cuda"), table()
    there.predict(X)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            there.predict(X)
            os.write(writer, b"no error")
        except arboost.DeviceError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"before this process was forked" in os.read(reader, 1000)
    os.close(reader)
    os.close(writer)


def test_unknown_devices():
    model = regressor()
    with pytest.raises(ValueError, match="device must be"):
        model.to("gpu")
    with pytest.raises(arboost.DeviceError, match="is not there"):
        model.to("cuda:999")


def test_threads_share_a_model():
    model, X = regressor(), table()
    there = model.to("cuda")
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda i: (i, there.predict(X[i:])), range(8)):
            same(model.predict(X[found[0] :]), found[1])
