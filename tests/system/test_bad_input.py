"""Bad input: an error with a helpful message before any work, or a defined result."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from arboost import (
    Dataset,
    DataWarning,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    SchemaError,
)

N_ROWS = 40


@pytest.fixture(params=[GradientBoostingRegressor, GradientBoostingClassifier])
def model(request):
    return request.param(n_estimators=5)


@pytest.fixture
def X(rng):
    return rng.normal(size=(N_ROWS, 3))


@pytest.fixture
def y(X):
    return (X[:, 0] > 0).astype(int)


def refused(model, X, y, error, *words, **fit_params):
    """Assert that fit raises, that the message has all the words, and that nothing was fitted."""
    with pytest.raises(error) as caught:
        model.fit(X, y, **fit_params)
    for word in words:
        assert re.search(word, str(caught.value)), f"{word!r} not in {caught.value}"
    assert not hasattr(model, "model_")


# ---- tables ----


TABLES = {
    "no rows": (np.empty((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\)", "minimum of 1"),
    "no columns": (np.empty((40, 0)), ValueError, r"0 feature\(s\) \(shape=\(40, 0\)\)", "minimum"),
    "no rows in pandas": (pd.DataFrame({"a": []}, dtype=float), ValueError, r"0 sample\(s\)"),
    "no columns in pandas": (pd.DataFrame(index=range(40)), ValueError, r"0 feature\(s\)"),
    "empty list": ([], ValueError, "2D array"),
    "one axis": (np.zeros(40), ValueError, "Expected 2D array, got 1D", "reshape"),
    "three axes": (np.zeros((40, 2, 2)), ValueError, "3", "2"),
    "a number": (3.0, ValueError, "Expected 2D array"),
    "nothing": (None, (TypeError, ValueError), "."),
    "a series": (pd.Series(np.zeros(40)), ValueError, "Expected a 2-dimensional container"),
    "ragged lists": ([[1, 2], [3]], ValueError, "rows of equal length"),
    "text among numbers": (np.array([[1], ["a"]] * 20, object), TypeError, "'a'", "numbers"),
    "complex": (np.zeros((40, 2), complex), ValueError, "Complex data not supported", "X.real"),
    "nested lists": (
        pd.DataFrame({"a": np.zeros(40), "b": [[1, 2]] * 40}),
        TypeError,
        "'b'",
        "of their own",
    ),
    "nested in Polars": (
        pl.DataFrame({"a": np.zeros(40), "b": [[1, 2]] * 40}),
        TypeError,
        r"'b' \(nested\)",
        "of their own",
    ),
    "equal names": (
        pd.DataFrame(np.zeros((40, 3)), columns=["a", "b", "a"]),
        ValueError,
        "several columns of the same name: 'a'",
        "rename",
    ),
    "some names": (
        pd.DataFrame(np.zeros((40, 2)), columns=["a", 1]),
        TypeError,
        "all input features have string names",
    ),
}


@pytest.mark.parametrize("case", TABLES.values(), ids=TABLES)
def test_tables(model, case):
    table, error, *words = case
    refused(model, table, np.arange(40) % 2, error, *words)


def test_sparse_targets(model, y):
    sparse = pytest.importorskip("scipy.sparse")
    target = sparse.csr_array(y.astype(float).reshape(-1, 1))
    refused(model, np.eye(N_ROWS), target, TypeError, "Sparse data was passed", "toarray")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint64, bool, np.longdouble])
def test_types_that_work(model, X, y, dtype):
    model.fit(np.round(np.abs(X) * 10).astype(dtype), y)
    assert np.isfinite(np.asarray(model.predict(X), dtype=float)).all()


def test_float16_is_exact(y):
    """Values that are exact in float16 give the same model as in float64."""
    X = np.arange(N_ROWS, dtype=np.float16).reshape(-1, 1) / 8
    models = [GradientBoostingRegressor().fit(X.astype(dtype), y) for dtype in ("f2", "f8")]
    np.testing.assert_array_equal(*(model.predict(X) for model in models))


def test_other_byte_order(model, X, y):
    expected = model.fit(X, y).predict(X)
    swapped = X.astype(X.dtype.newbyteorder())
    np.testing.assert_array_equal(model.fit(swapped, y).predict(swapped), expected)


def test_masked_values_are_missing(model, X, y):
    holes = np.arange(X.size).reshape(X.shape) % 7 == 0
    with_nan = np.where(holes, np.nan, X)
    expected = model.fit(with_nan, y).predict(with_nan)
    masked = np.ma.array(X, mask=holes)
    np.testing.assert_array_equal(model.fit(masked, y).predict(masked), expected)


def test_constant_column(model, X, y):
    expected = model.fit(X, y).predict(X)
    wider = np.column_stack([X, np.full(N_ROWS, 7.0)])
    np.testing.assert_array_equal(model.fit(wider, y).predict(wider), expected)
    assert model.feature_importances_[3] == 0


@pytest.mark.filterwarnings("ignore:all columns of X are constant")
def test_only_constant_columns(y):
    model = GradientBoostingRegressor().fit(np.ones((N_ROWS, 2)), y)
    np.testing.assert_allclose(model.predict(np.zeros((3, 2))), y.mean())


def test_missing_column(model, X, y):
    expected = model.fit(X, y).predict(X)
    wider = np.column_stack([X, np.full(N_ROWS, np.nan)])
    np.testing.assert_array_equal(model.fit(wider, y).predict(wider), expected)


@pytest.mark.filterwarnings("ignore:all values of X are missing")
def test_only_missing_values(y):
    model = GradientBoostingRegressor().fit(np.full((N_ROWS, 2), np.nan), y)
    np.testing.assert_allclose(model.predict(np.zeros((3, 2))), y.mean())


def test_infinity_is_the_largest_value(y):
    """Infinity is not a missing value, and is split off like any other value."""
    X = np.where(y == 1, np.inf, -np.inf).reshape(-1, 1)
    model = GradientBoostingClassifier(min_child_weight=0).fit(X, y)
    np.testing.assert_array_equal(model.predict([[np.inf], [-np.inf]]), [1, 0])
    finite = np.where(y == 1, np.inf, 1e308).reshape(-1, 1)
    model = GradientBoostingClassifier(min_child_weight=0).fit(finite, y)
    np.testing.assert_array_equal(model.predict([[np.inf], [1e308], [0.0]]), [1, 0, 0])


@pytest.mark.parametrize("values", [(1e300, 1.0000001e300), (1e-300, 2e-300), (2**24, 2**24 + 1)])
def test_values_are_compared_as_float64(y, values):
    X = np.where(y == 1, *values).reshape(-1, 1)
    model = GradientBoostingClassifier(min_child_weight=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.filterwarnings("ignore:all columns of X are constant")
def test_integers_beyond_float64(model, y):
    X = np.where(y == 1, 2**53, 2**53 + 1).reshape(-1, 1)
    with pytest.warns(DataWarning, match=r"2\*\*53"):
        model.fit(X, y)


def test_one_row(model):
    model.fit([[1.0, 2.0]], [3])
    np.testing.assert_array_equal(model.predict([[0.0, 0.0]]), [3])


# ---- targets ----


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_target_with_nan_or_inf(model, X, y, bad):
    y = y.astype(float)
    y[7] = bad
    refused(model, X, y, ValueError, "Input y contains 1 .*(NaN|inf)", "row 7", "drop those rows")


def test_target_with_none(model, X, y):
    labels = y.astype(object)
    labels[3] = None
    refused(model, X, labels, ValueError, "Input y contains 1 missing", "row 3")


def test_no_target(model, X):
    refused(model, X, None, ValueError, "requires y to be passed, but the target y is None")


@pytest.mark.parametrize("length", [0, N_ROWS - 1, N_ROWS + 1])
def test_target_of_other_length(model, X, length):
    refused(model, X, np.zeros(length), ValueError, f"{N_ROWS} rows", f"y has {length} values")


@pytest.mark.parametrize("shape", [(N_ROWS, 2), (N_ROWS, 1, 1)])
def test_target_of_other_shape(model, X, shape):
    refused(model, X, np.zeros(shape), ValueError, "y should be a 1d array", re.escape(str(shape)))


def test_scalar_target(model, X):
    refused(model, X, 1.0, ValueError, "y should be a 1d array")


def test_complex_target(model, X, y):
    refused(model, X, y * 1j, ValueError, "Complex data not supported")


def test_dates_as_target(model, X):
    refused(model, X, np.zeros(N_ROWS, "M8[s]"), TypeError, "y .*datetime64")


@pytest.mark.parametrize("labels", [["a", "b"] * 20, np.array(["1", "2"] * 20), [{}] * N_ROWS])
def test_regressor_needs_numbers(X, labels):
    model = GradientBoostingRegressor()
    refused(model, X, labels, TypeError, "y holds .*, but a regressor needs numbers", "classifier")


def test_number_too_large_for_a_double(X):
    refused(GradientBoostingRegressor(), X, [10**400] * N_ROWS, ValueError, "y", "float64|infinite")


def test_range_too_large_for_a_double(X, y):
    target = (2 * y - 1) * 1.7e308
    refused(
        GradientBoostingRegressor(), X, target, ValueError, "y goes from -1.7e", "smaller scale"
    )


CONTINUOUS = [np.linspace(0, 1, N_ROWS), np.linspace(0, 1, N_ROWS).astype(np.float32)]


@pytest.mark.parametrize("labels", CONTINUOUS, ids=["float64", "float32"])
def test_classifier_needs_classes(X, labels):
    model = GradientBoostingClassifier()
    refused(model, X, labels, ValueError, "Unknown label type: continuous", "y holds 0.02", "regre")


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (np.array([1, "b"] * 20, dtype=object), r"one of them 1 \(int\)"),
        ([1, "b"] * 20, r"one of them 1 \(int\)"),
        (np.array([b"a", b"b"] * 20), "S1"),
        ([(1, 2)] * N_ROWS, "1d array"),
    ],
)
def test_labels_of_other_types(X, labels, found):
    refused(GradientBoostingClassifier(), X, labels, ValueError, found)


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_one_class(X):
    model = GradientBoostingClassifier().fit(X, ["only"] * N_ROWS)
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((N_ROWS, 1)))


# ---- weights ----


WEIGHTS = {
    "negative": (
        np.where(np.arange(N_ROWS) == 5, -1.0, 1.0),
        ValueError,
        "1 values",
        "-1.0.*row 5",
    ),
    "nan": (np.where(np.arange(N_ROWS) == 5, np.nan, 1.0), ValueError, "NaN", "row 5"),
    "inf": (np.where(np.arange(N_ROWS) == 5, np.inf, 1.0), ValueError, "inf", "row 5"),
    "zero": (np.zeros(N_ROWS), ValueError, "sample_weight are zero", "above 0"),
    "short": (np.ones(N_ROWS - 1), ValueError, f"{N_ROWS} rows", f"{N_ROWS - 1} values"),
    "empty": (np.ones(0), ValueError, f"{N_ROWS} rows", "0 values"),
    "two axes": (np.ones((N_ROWS, 2)), ValueError, "must be 1-D", r"\(40, 2\)"),
    "text": (["heavy"] * N_ROWS, (TypeError, ValueError), "sample_weight must be numbers"),
    "too large": (np.full(N_ROWS, 1e308), ValueError, r"at most 3e\+299", "scale"),
}


@pytest.mark.parametrize("case", WEIGHTS.values(), ids=WEIGHTS)
def test_weights(model, X, y, case):
    weight, error, *words = case
    refused(model, X, y, error, *words, sample_weight=weight)


def test_large_weights(X, y):
    """Sums of weights beyond the precision of float32."""
    light = GradientBoostingClassifier(reg_lambda=0, min_child_weight=0).fit(X, y, np.ones(N_ROWS))
    heavy = GradientBoostingClassifier(reg_lambda=0, min_child_weight=0)
    heavy.fit(X, y, np.full(N_ROWS, 2.0**130))
    np.testing.assert_allclose(light.predict_proba(X), heavy.predict_proba(X), rtol=1e-6)


def test_zero_weight_rows_are_absent(model, X, y):
    weight = (np.arange(N_ROWS) % 4 > 0).astype(float)
    kept = weight > 0
    odd = np.where(kept, y, 99)
    expected = model.fit(X[kept], y[kept], sample_weight=weight[kept]).predict(X)
    np.testing.assert_array_equal(model.fit(X, odd, sample_weight=weight).predict(X), expected)


# ---- the columns at predict ----


@pytest.fixture
def frame(X):
    return pd.DataFrame(X, columns=["a", "b", "c"])


def test_reordered_columns(model, frame, y):
    expected = model.fit(frame, y).predict(frame)
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    np.testing.assert_array_equal(model.predict(frame[["c", "a", "b"]]), expected)
    np.testing.assert_array_equal(model.predict(pl.from_pandas(frame[["b", "a", "c"]])), expected)


def test_missing_and_extra_columns(model, frame, y):
    model.fit(frame, y)
    with pytest.raises(SchemaError, match="now missing:\n- c"):
        model.predict(frame[["a", "b"]])
    with pytest.raises(SchemaError, match="unseen at fit time:\n- d"):
        model.predict(frame.assign(d=0.0))
    with pytest.raises(SchemaError, match=r"unseen at fit time:\n- z\n.*now missing:\n- c"):
        model.predict(frame.rename(columns={"c": "z"}))


@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_wrong_number_of_columns(model, X, y, n_columns):
    model.fit(X, y)
    match = f"X has {n_columns} features, but .* is expecting 3 features"
    with pytest.raises(SchemaError, match=match):
        model.predict(np.zeros((5, n_columns)))


def test_names_only_on_one_side(model, X, frame, y):
    model.fit(frame, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names"):
        model.predict(frame)


def test_no_rows_at_predict(model, X, y):
    model.fit(X, y)
    assert model.predict(X[:0]).shape == (0,)
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X[:0]).shape == (0, 2)


def test_dataset_at_predict(model, X, y):
    model.fit(X, y)
    with pytest.raises(TypeError, match=r"X is a Dataset.*Pass the table"):
        model.predict(Dataset(X))


# ---- Dataset ----


def test_dataset_without_target(model, X):
    refused(model, Dataset(X), None, ValueError, "requires y to be passed")


def test_dataset_and_another_max_bins(X, y):
    model = GradientBoostingRegressor(max_bins=16)
    refused(model, Dataset(X, y), None, ValueError, "max_bins=16", "max_bins=255", "equal")


def test_dataset_and_zero_weights(model, X, y):
    weight = np.arange(N_ROWS) % 2
    refused(model, Dataset(X, y), None, ValueError, "0 in 20 rows", "Dataset", sample_weight=weight)


def test_dataset_and_target_of_other_length(model, X, y):
    refused(model, Dataset(X), y[1:], ValueError, "40 rows", "39 values")


@pytest.mark.filterwarnings("error")
def test_no_warnings_on_good_data(model, X, y):
    model.fit(X, y).predict(X)
