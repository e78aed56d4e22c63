"""Tables in device memory are binned there: the same edges, codes and models as from NumPy."""

import numpy as np
import pytest
from sklearn.base import clone

import arboost
from arboost import Dataset
from arboost.backend import core
from arboost.data.bins import storage_plan
from arboost.data.cuda import CudaArray
from support.cuda import emulated, has_device

if not has_device():
    pytest.skip("no CUDA device: no table is in its memory", allow_module_level=True)

TYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "bool")


def table(rng, dtype="float32", rows=900, columns=6):
    """Return numbers of one type: many and few values, missing and infinite ones."""
    X = rng.integers(-90, 90, (rows, columns)) * 0.75
    X[:, 1] = rng.integers(0, 3, rows)
    if np.dtype(dtype).kind in "ub":
        X = np.abs(X)
    if np.dtype(dtype).kind == "f":
        X[rng.random(X.shape) < 0.05] = np.nan
        X[:, 3] = rng.standard_normal(rows)
        X[5:9, 2] = np.inf, -np.inf, 0.0, -0.0
    return X.astype(dtype)


def columns_of(X):
    """Return a Dataset's parts that a fit reads."""
    codes = X.binned.codes
    return [*X.binned.edges, codes.by_row, codes.by_column, codes.has_missing, codes.first_slot]


def assert_same(host, device):
    assert host.binned.codes.shared_columns == device.binned.codes.shared_columns
    for one, other in zip(columns_of(host), columns_of(device), strict=True):
        np.testing.assert_array_equal(one, other)


def assert_same_tables(X, on_device=None, **params):
    assert_same(Dataset(X, **params), Dataset(on_device or CudaArray.of(X), **params))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
def test_types(rng, dtype, order):
    assert_same_tables(np.asarray(table(rng, dtype), order=order))


def view(array, rows, columns):
    """Return a strided view of an array on a device, as CuPy makes it."""
    steps = list(zip(array.strides, (rows, columns), strict=True))
    first = sum(step * (one.start or 0) for step, one in steps)
    strides = tuple(step * one.step for step, one in steps)
    shape = np.empty(array.shape, bool)[rows, columns].shape
    return CudaArray(array.address + first, shape, strides, array.dtype, 0, array)


@pytest.mark.parametrize(
    "part", [np.s_[::2, ::1], np.s_[3::5, 1::2], np.s_[899::-1, ::1], np.s_[::1, 4::-1]]
)
def test_strided_views(rng, part):
    X = table(rng)
    assert_same_tables(X[part], view(CudaArray.of(X), *part))


def test_more_columns_than_a_block_has_lanes(rng):
    assert_same_tables(rng.standard_normal((200, 70)).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("max_bins", [2, 17, 600, 3000])
def test_numbers_of_bins(rng, max_bins, dtype):
    X = rng.standard_normal((3500, 3)).astype(dtype)
    X[::7, 1] = np.nan
    assert_same_tables(X, max_bins=max_bins)


def test_edges_of_the_range():
    """Edges beyond the range of float32, and between its neighbours."""
    largest = np.finfo(np.float32).max
    X = np.array([[-np.inf, 1.0], [-largest, np.nextafter(np.float32(1), np.float32(2))]] * 3)
    X = np.vstack([X, [[largest, 0.0], [np.inf, np.nan]]]).astype(np.float32)
    assert_same_tables(X)


def test_number_that_means_missing(rng):
    assert_same_tables(table(rng, "int32"), missing=0.0)


def test_shared_columns(rng):
    """Exclusive features, and several of few values: all rows decide, not the sample alone."""
    X = (rng.integers(0, 25, 2000)[:, None] == np.arange(25)).astype(np.uint8)
    X = np.hstack([X, rng.integers(0, 3, (2000, 3)).astype(np.uint8)])
    assert Dataset(X).binned.codes.shared_columns
    assert_same_tables(X)
    assert_same_tables(X, bundling=False)


def test_features_that_leave_their_bundle(rng):
    """Rows outside the plan's sample in conflict, and with a missing value."""
    X = np.zeros((70_000, 4), np.float32)
    for column in range(4):
        X[column * 9000 : column * 9000 + 600, column] = rng.integers(1, 4, 600)
    X[60_000] = 2
    X[61_000, 1] = np.nan
    assert_same_tables(X)


def test_values_outside_of_the_sample(rng):
    """Columns of few values in the sample have all their values found, unless they are many."""
    X = np.empty((203_000, 3), np.float32)
    X[:, 0], X[:, 1] = rng.integers(0, 5, (2, len(X)))
    X[:, 2] = X[:, 0]
    X[77, 0], X[78, 0], X[79, 0] = 9.5, np.nan, -0.0
    X[:400, 2] = np.arange(400) / 8
    assert_same_tables(X, max_bins=16)


def test_weights_and_rows_of_weight_0(rng):
    X, weight = table(rng), rng.integers(0, 4, 900) / 2
    host = Dataset(X, sample_weight=weight)
    device = Dataset(CudaArray.of(X), sample_weight=CudaArray.of(weight))
    assert_same(host, device)
    np.testing.assert_array_equal(host.sample_weight, device.sample_weight)


def test_inexact_integers_are_warned_of():
    X = np.array([[2**60, 1], [3, 2**53 - 1]])
    with pytest.warns(UserWarning, match="beyond, or times finer than some.* in the columns\n?.*0"):
        Dataset(CudaArray.of(X))


def separate_columns(X, rng):
    """Return columns of several kinds: not the rows of a matrix."""
    columns = core.Columns(len(X))
    columns.add_matrix(np.asfortranarray(X[:, :3]))
    for i in range(3, 6):
        columns.add(X[:, i], rng.random(len(X)) < 0.1)
    return columns


def matrix_columns(X, rng):
    """Return the columns of a matrix in row-major order, some of them left out."""
    columns = core.Columns(len(X))
    columns.add_matrix(np.repeat(X, 2, axis=1)[:, 1:9])
    columns.set_missing(2.0)
    return columns.select([5, 0, 3, 2, 7])


@pytest.mark.parametrize("make", [separate_columns, matrix_columns])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_table_of_the_host_is_encoded_on_the_device(rng, dtype, make):
    """Columns of any kind, some rows only, features that share columns."""
    columns = make(table(rng, dtype), rng)
    rows = np.flatnonzero(rng.random(900) < 0.9).astype(np.uint32)
    for used in (None, rows):
        edges = core.quantiles(columns, used, None, 255, 1)
        plan = storage_plan(columns, used, edges)
        one = core.encode(columns, used, edges, 1, [], plan)
        other = core.encode_on(0, columns, used, edges, 1, [], plan)
        np.testing.assert_array_equal(one.by_row, other.by_row)
        np.testing.assert_array_equal(one.by_column, other.by_column)
        np.testing.assert_array_equal(one.has_missing, other.has_missing)


@pytest.mark.parametrize("order", ["C", "F"])
def test_table_of_the_host_is_sent_in_chunks(rng, order):
    X = rng.standard_normal((16_000, 300)).astype(np.float32, order=order)
    assert X.nbytes > 16 << 20
    edges = [np.array([-0.5, 0.0, 1.0])] * 300
    columns = core.Columns(len(X))
    columns.add_matrix(X)
    codes = core.encode_on(0, columns, None, edges, 2)
    np.testing.assert_array_equal(codes.by_column, np.searchsorted(edges[0], X))


def file_of(model, folder):
    path = folder / "model.arb"
    model.save(path)
    return path.read_bytes()


SMALL = {"n_estimators": 2, "max_depth": 3, "verbose": 0}
FITS = {
    "plain": {},
    "two-byte bins": {"max_bins": 300},
    "categories": {"categorical_features": [1]},
    "early stopping": {"n_estimators": 6, "n_iter_no_change": 2},
    "rows": {"subsample": 0.5},
    "GOSS": {"sampling_method": "goss", "learning_rate": 0.5},
}


@pytest.mark.parametrize("name", FITS)
def test_models(name, rng, tmp_path):
    X = table(rng)
    y = np.nan_to_num(X[:, 0], posinf=0, neginf=0) + X[:, 3].clip(-2, 2).round(2)
    y = np.nan_to_num(y) + rng.integers(0, 64, len(X)) / 16
    params = SMALL | {"device": "cuda"} | FITS[name]
    one = arboost.GradientBoostingRegressor(**params).fit(X, y)
    other = arboost.GradientBoostingRegressor(**params).fit(CudaArray.of(X), CudaArray.of(y))
    assert file_of(one, tmp_path) == file_of(other, tmp_path)


def test_fit_to_a_table_of_the_host_encodes_it_on_the_device(rng, tmp_path, monkeypatch):
    X, y = table(rng), rng.integers(0, 99, 900) / 4
    calls, encode_on = [], core.encode_on
    monkeypatch.setattr("arboost.data.bins._DEVICE_CELLS", 0)
    monkeypatch.setattr(core, "encode_on", lambda *args: calls.append(1) or encode_on(*args))
    files = {
        file_of(arboost.GradientBoostingRegressor(**SMALL, device=device).fit(X, y), tmp_path)
        for device in ("cpu", "cuda")
    }
    assert len(files) == len(calls) == 1


def test_classes_weights_and_an_evaluation_set(rng, tmp_path):
    X, weight = table(rng), rng.integers(0, 4, 900) / 2
    y = rng.integers(0, 3, 900)

    def fit(move):
        return arboost.GradientBoostingClassifier(
            n_estimators=5, max_depth=2, n_iter_no_change=2, verbose=0, device="cuda"
        ).fit(
            *map(move, (X[:600], y[:600], weight[:600])),
            X_val=move(X[600:]),
            y_val=move(y[600:]),
            sample_weight_val=move(weight[600:]),
        )

    one, other = fit(np.asarray), fit(CudaArray.of)
    assert file_of(one, tmp_path) == file_of(other, tmp_path)
    assert one.evals_result_ == other.evals_result_


@pytest.mark.parametrize(
    "estimator",
    [
        arboost.RandomForestRegressor(3, max_depth=3),
        arboost.ExtraTreesRegressor(2, max_depth=3),
        arboost.DecisionTreeRegressor(max_depth=3),
        arboost.AdaBoostRegressor(n_estimators=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_other_estimators(estimator, rng, tmp_path):
    X, y = table(rng, rows=400), rng.integers(0, 9, 400) / 4
    models = [
        clone(estimator).set_params(device="cuda").fit(move(X), move(y))
        for move in (np.asarray, CudaArray.of)
    ]
    assert len({file_of(model, tmp_path) for model in models}) == 1


def test_categories_of_many_levels(rng, tmp_path):
    X = np.column_stack([rng.integers(0, 300, 900), rng.integers(0, 9, 900)]).astype(np.int32)
    y = X[:, 0] % 7 + rng.integers(0, 16, 900) / 4
    files = {
        file_of(
            arboost.GradientBoostingRegressor(
                n_estimators=3, verbose=0, categorical_features=[0], device="cuda"
            ).fit(move(X), y),
            tmp_path,
        )
        for move in (np.asarray, CudaArray.of)
    }
    assert len(files) == 1


def test_continued_fit(rng, tmp_path):
    X, y = table(rng, "float64", 300), rng.integers(0, 99, 300) / 4

    def fit(move):
        model = arboost.GradientBoostingRegressor(
            n_estimators=1, max_depth=3, warm_start=True, verbose=0, device="cuda"
        ).fit(move(X), y)
        return model.set_params(n_estimators=2).fit(move(X), y)

    assert file_of(fit(np.asarray), tmp_path) == file_of(fit(CudaArray.of), tmp_path)


def test_folds(rng):
    X, y = table(rng, rows=300), rng.integers(0, 99, 300) / 4
    model = arboost.GradientBoostingRegressor(n_estimators=2, max_depth=2, verbose=0, device="cuda")
    one, other = (arboost.cv(model, move(X), y, folds=2) for move in (np.asarray, CudaArray.of))
    assert str(one) == str(other)


def test_dataset_of_a_device_array_trains_on_the_processor_too(rng, tmp_path):
    X, y = table(rng), rng.integers(0, 99, 900) / 4
    data = Dataset(CudaArray.of(X), CudaArray.of(y))
    models = [
        arboost.GradientBoostingRegressor(n_estimators=3, verbose=0, device=device).fit(given, y)
        for device, given in (("cuda", data), ("cpu", data), ("cpu", X))
    ]
    assert len({file_of(model, tmp_path) for model in models}) == 1


@pytest.mark.skipif(emulated() is None, reason="counts the memory of the emulator")
def test_memory_is_free_after_the_fit(rng):
    X, y = CudaArray.of(table(rng)), rng.integers(0, 99, 900) / 4
    model = arboost.GradientBoostingRegressor(n_estimators=2, verbose=0, device="cuda")
    model.fit(X, y)
    before = emulated().emulator_used_memory()
    model.fit(X, y)
    assert emulated().emulator_used_memory() == before
    data = Dataset(X)
    assert emulated().emulator_used_memory() >= before + 900 * (8 + 6)
    del data
    assert emulated().emulator_used_memory() == before


@pytest.mark.skipif(emulated() is None, reason="limits the memory of the emulator")
def test_table_that_does_not_fit_is_refused(rng):
    X = CudaArray.of(table(rng, rows=5000))
    emulated().emulator_set_memory(emulated().emulator_used_memory() + 50_000)
    try:
        with pytest.raises(arboost.DeviceError, match=r"memory|MiB"):
            Dataset(X)
    finally:
        emulated().emulator_set_memory(1 << 34)
    Dataset(X)


def booster(device="cuda"):
    return arboost.GradientBoostingRegressor(n_estimators=1, verbose=0, device=device)


def test_processor_refuses_a_device_array(rng):
    X = CudaArray.of(table(rng))
    with pytest.raises(TypeError, match=r'Use device="cuda".*X\.to_numpy'):
        booster("cpu").fit(X, np.zeros(900))


def test_array_on_another_device(rng):
    X = CudaArray.of(table(rng))
    elsewhere = CudaArray(X.address, X.shape, X.strides, X.dtype, 1, X)
    with pytest.raises(arboost.DeviceError, match='"cuda:1", but device="cuda"'):
        booster().fit(elsewhere, np.zeros(900))


@pytest.mark.parametrize(
    ("shape", "message"),
    [((0, 3), "Found array with 0 sample"), ((5, 0), "0 feature"), ((6,), "Expected 2D array")],
)
def test_wrong_shapes_have_the_messages_of_numpy(shape, message):
    X = np.zeros(shape, np.float32)
    for given in (X, CudaArray.of(X)):
        with pytest.raises(ValueError, match=message):
            booster().fit(given, np.zeros(len(X)))


def test_wrong_values_have_the_messages_of_numpy(rng):
    X, y = CudaArray.of(table(rng)), np.zeros(900)
    y[7] = np.nan
    with pytest.raises(ValueError, match="y contains 1 missing or infinite"):
        booster().fit(X, CudaArray.of(y))
    with pytest.raises(ValueError, match="X has 900 rows, but y has 5 values"):
        booster().fit(X, CudaArray.of(y[:5]))
    with pytest.raises(ValueError, match="array of 3 dimensions on a CUDA device"):
        booster().fit(CudaArray.of(np.zeros((3, 2, 2), np.float32)), y[:3])
    with pytest.raises(TypeError, match="array of complex64 on a CUDA device"):
        booster().fit(CudaArray.of(np.zeros((3, 2), np.complex64)), y[:3])


def test_columns_in_the_host_memory(rng):
    """The same values, read column by column, replaced, selected and copied."""
    X = table(rng, "int16")
    device = core.DeviceColumns(900, 0)
    array = CudaArray.of(X)
    device.add_matrix(array.address, 6, 12, 2, "i", 2, array)
    device.set_missing(3.0, [0])
    expected = X.astype(float)
    expected[:, 1:][X[:, 1:] == 3] = np.nan
    np.testing.assert_array_equal(device.read(1), expected[:, 1])
    copy = device.select([4, 0]).to_host()
    np.testing.assert_array_equal(copy.read(0), expected[:, 4])
    column = core.Columns(900)
    column.add(np.arange(900.0))
    device.put(2, column)
    np.testing.assert_array_equal(device.read(2), np.arange(900.0))
    with pytest.raises(ValueError, match="multiples of their size"):
        device.add_matrix(array.address + 1, 6, 12, 2, "i", 2, array)
