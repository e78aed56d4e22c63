"""Predictions of single rows: the same bytes as in a table, for every type of input."""

from __future__ import annotations

import datetime as dt
import decimal
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import arboost
from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    Dataset,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    SchemaError,
)
from arboost.data.schema import Schema
from arboost.models.prediction import raw_scores
from arboost.models.single_row import encoded_row
from support.random_models import ODD_CODES, make_model, random_forest, random_table, walk

N_FEATURES = 5


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = random_table(rng, 400, N_FEATURES, 0.1).astype(np.float32)
    near = np.nan_to_num(np.clip(X, -3, 3))
    score = near[:, 0] * near[:, 1] + rng.normal(size=len(X))
    return X, score


MODELS = {
    "numbers": GradientBoostingRegressor(n_estimators=20),
    "uneven": GradientBoostingRegressor(
        n_estimators=20, grow_policy="leafwise", max_leaves=40, max_depth=None
    ),
    "counts": GradientBoostingRegressor(n_estimators=10, loss="poisson"),
    "quantiles": GradientBoostingRegressor(n_estimators=10, loss="quantile", alpha=[0.1, 0.9]),
    "two classes": GradientBoostingClassifier(n_estimators=20),
    "three classes": GradientBoostingClassifier(n_estimators=10),
    "vector leaves": GradientBoostingClassifier(
        n_estimators=10, multi_strategy="multi_output_tree"
    ),
    "votes": AdaBoostClassifier(n_estimators=10),
    "median": AdaBoostRegressor(n_estimators=10),
    "forest": RandomForestRegressor(n_estimators=10),
    "forest of classes": RandomForestClassifier(n_estimators=10),
    "missing number": GradientBoostingRegressor(n_estimators=10, missing=0.25),
}


def fitted(name, table):
    X, score = table
    y = score
    if name == "counts":
        y = np.floor(np.abs(score))
    elif name == "two classes":
        y = np.where(score > 0, "yes", "no")
    elif "class" in name or name in ("vector leaves", "votes"):
        y = np.digitize(score, [-1, 1])
    return clone(MODELS[name]).fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_same_bytes_as_among_others(name, table):
    X, _ = table
    estimator = fitted(name, table)
    model = estimator.model_
    is_classifier = model.kind == "classifier"
    raw, predictions = model.predict_raw(X), model.predict(X)
    shares = model.predict_proba(X) if is_classifier else predictions
    for i in range(60):
        row = X[i : i + 1]
        forms = [row, row.astype(np.float64), row.tolist(), np.asfortranarray(X)[i : i + 1]]
        forms.append(np.repeat(row, 2, axis=1)[:, ::2])
        for form in forms:
            one = model.predict_raw(form)
            assert one.dtype == np.float64
            assert one.shape == raw[i : i + 1].shape
            assert one.tobytes() == raw[i : i + 1].tobytes()
            one = model.predict(form)
            assert (one.dtype, one.shape) == (predictions.dtype, predictions[i : i + 1].shape)
            assert one.tolist() == predictions[i : i + 1].tolist()
            if is_classifier:
                assert model.predict_proba(form).tobytes() == shares[i : i + 1].tobytes()
        assert estimator.predict(row).tolist() == predictions[i : i + 1].tolist()
        if is_classifier:
            assert estimator.predict_proba(row).tobytes() == shares[i : i + 1].tobytes()


def test_predictions_are_arrays_of_their_own(table):
    X, _ = table
    model = fitted("two classes", table).model_
    for ask in (model.predict, model.predict_raw, model.predict_proba):
        first = ask(X[:1])
        first[:] = first[::-1] if first.dtype.kind == "U" else 7
        assert ask(X[:1]).tolist() != [7]
        assert ask(X[:1]) is not first
        first.sort()  # is writeable
    model.predict(X[:1])[0] = "maybe"
    assert set(model.classes) == {"no", "yes"}


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("categories", [(), (1, 3)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_random_forests(rng, width, categories, missing):
    """The core called directly, with level codes and with invalid codes."""
    forest = random_forest(rng, 40, 5, 3, width, n_splits=30, categories=categories)
    model = make_model(forest, 5, 3, categories=categories)
    X = random_table(rng, 40, 5, missing)
    for feature in categories:
        X[:, feature] = rng.choice([*range(255), *ODD_CODES], len(X))
    plain = replace(model, schema=Schema(names=None, n_features=5))
    expected = walk(model, X)
    for i in range(len(X)):
        np.testing.assert_array_equal(plain.row.raw(X[i : i + 1]), expected[i : i + 1])


def test_deep_trees_and_many_tests(rng):
    deep = random_forest(rng, 20, 4, 1, 1, n_splits=1500)
    many = random_forest(rng, 400, 300, 1, 1, n_splits=200)
    many = replace(many, threshold=rng.normal(size=many.n_nodes))
    for forest, n_features in ((deep, 4), (many, 300)):
        model = make_model(forest, n_features, 1)
        X = random_table(rng, 12, n_features)
        for i in range(len(X)):
            np.testing.assert_array_equal(model.row.raw(X[i : i + 1]), walk(model, X[i : i + 1]))


@pytest.mark.parametrize(
    "row",
    [
        [[1, 2]],
        [[1.0, 2.0]],
        [(1, 2.0)],
        [[True, 2]],
        [[1, None]],
        [["1", 2]],
        [[10**30, 2]],
        [[2**53 + 1, 2]],
        [np.array([1.0, 2.0])],
        ((1.0, 2.0),),
        np.array([[1, 2]], np.int32),
        np.array([[1, 2]], ">f8"),
        np.array([[1, 2]], np.float16),
        np.array([[1, 2]], object),
        np.ma.array([[1.0, 2.0]], mask=[[False, True]]),
        np.matrix([[1.0, 2.0]]),
        pd.DataFrame([[1.0, 2.0]]),
    ],
)
def test_other_kinds_of_rows_are_read_as_always(rng, row):
    model = make_model(random_forest(rng, 20, 2, 1, 1), 2, 1)
    try:
        expected = raw_scores(model, row, n_threads=1)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            model.predict_raw(row)
    else:
        np.testing.assert_array_equal(model.predict_raw(row), expected)


def test_masked_values_are_missing(rng):
    model = make_model(random_forest(rng, 20, 2, 1, 1), 2, 1)
    masked = np.ma.array([[1.0, 2.0]], mask=[[False, True]])
    np.testing.assert_array_equal(model.predict(masked), model.predict([[1.0, np.nan]]))


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ([[1.0]], SchemaError, "X has 1 features"),
        ([[1.0, 2.0, 3.0]], SchemaError, "X has 3 features"),
        (np.zeros((1, 3)), SchemaError, "X has 3 features"),
        (np.zeros((0, 3)), SchemaError, "X has 3 features"),
        (np.zeros(2), ValueError, "1D array|dimension"),
        ([1.0, 2.0], ValueError, "1D array|dimension"),
        ([[]], ValueError, "0 feature"),
        (np.zeros((1, 2), complex), ValueError, "Complex"),
        (None, ValueError, "dimension|scalar|0D"),
    ],
)
def test_wrong_rows(rng, row, error, message):
    model = make_model(random_forest(rng, 20, 2, 1, 1), 2, 1)
    for ask in (model.predict, model.predict_raw):
        with pytest.raises(error, match=message):
            ask(row)


def test_no_rows(rng):
    model = make_model(random_forest(rng, 20, 2, 3, 1), 2, 3)
    nothing = np.zeros((0, 2))
    for table in (nothing, []):
        assert model.predict_raw(table).shape == (0, 3)
        assert model.predict_proba(table).shape == (0, 3)
        assert model.predict(table).shape == (0,)
        assert model.apply(table).shape == (0, 20)
    assert [stage.shape for stage in model.staged_predict_proba(nothing)] == [(0, 3)] * 20


def test_names_are_still_missed(table):
    """A row without names gives the usual warning where the model has names."""
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = GradientBoostingRegressor(n_estimators=5).fit(frame, y).model_
    with pytest.warns(UserWarning, match="feature names"):
        one = model.predict(X[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(frame[:1]), one)


def test_apply_and_stages(rng):
    model = make_model(random_forest(rng, 12, 4, 3, 1), 4, 3, trees_per_round=3)
    X = random_table(rng, 700, 4)
    leaves = model.apply(X)
    assert (leaves.dtype, leaves.shape) == (np.int32, (700, 12))
    forest = model.forest
    values = forest.value[forest.tree_start[:-1] + leaves, 0]
    sums = np.tile(model.base_score, (len(X), 1))
    for tree in range(12):
        sums[:, forest.output[tree]] += values[:, tree]
    np.testing.assert_array_equal(sums, model.predict_raw(X))
    np.testing.assert_array_equal(model.apply(X[:5]), leaves[:5])
    for number, (labels, shares) in enumerate(
        zip(model.staged_predict(X), model.staged_predict_proba(X), strict=True), start=1
    ):
        shorter = model.truncated(number)
        np.testing.assert_array_equal(labels, shorter.predict(X))
        np.testing.assert_array_equal(shares, shorter.predict_proba(X))
    bins = Dataset(X, np.zeros(len(X)))
    with pytest.raises(TypeError, match="Dataset"):
        model.apply(bins)


N_ROWS = 150
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "x": np.where(RNG.random(N_ROWS) < 0.2, np.nan, RNG.normal(size=N_ROWS)),
        "small": RNG.normal(size=N_ROWS).astype(np.float32),
        "count": RNG.integers(0, 9, N_ROWS),
        "flag": RNG.random(N_ROWS) < 0.5,
        "nullable": pd.Series(RNG.integers(0, 5, N_ROWS), dtype="Int64").replace(4, pd.NA),
        "city": RNG.choice(["Rome", "Oslo", "Zürich"], N_ROWS),
        "object": pd.Series(RNG.choice(["a", "b", None], N_ROWS), dtype=object),
        "level": pd.Categorical(RNG.choice(["low", "high"], N_ROWS)),
        "number level": pd.Categorical(RNG.integers(0, 4, N_ROWS)),
        "shop": [f"s{i}" for i in RNG.integers(0, 120, N_ROWS)],
        "day": pd.date_range("2024-01-01", periods=N_ROWS, freq="37h"),
        "zone": pd.date_range("2024-01-01", periods=N_ROWS, freq="5h", tz="Europe/Rome"),
        "span": pd.to_timedelta(RNG.integers(0, 10**6, N_ROWS), unit="s"),
        "empty": None,
    }
)
SCORE = RNG.normal(size=N_ROWS) + FRAME["count"] + FRAME["city"].eq("Rome")
FRAME_MODELS = {
    "booster": (arboost.GradientBoostingRegressor(n_estimators=20, max_depth=5), SCORE),
    "missing": (arboost.GradientBoostingRegressor(n_estimators=20, missing=3.0), SCORE),
    "classes": (arboost.GradientBoostingClassifier(n_estimators=10), SCORE.astype(int).clip(0, 3)),
    "forest": (arboost.RandomForestClassifier(n_estimators=10, random_state=0), SCORE > 4),
    "median": (arboost.AdaBoostRegressor(n_estimators=5), SCORE),
}


def forms(i):
    """Yield one row in every form that names its columns."""
    yield FRAME.iloc[[i]]
    yield FRAME.iloc[[i], ::-1]
    yield FRAME.convert_dtypes(dtype_backend="pyarrow").iloc[[i]]
    yield pl.from_pandas(FRAME)[i : i + 1]
    yield pl.from_pandas(FRAME).to_arrow()[i : i + 1]
    row = {name: FRAME[name].iloc[i] for name in FRAME}
    yield row
    yield [dict(reversed(row.items()))]
    yield pd.Series(row, dtype=object)


@pytest.mark.parametrize("name", FRAME_MODELS)
def test_same_bits_as_in_a_table(name):
    estimator, y = FRAME_MODELS[name]
    estimator.fit(FRAME, y)
    model = estimator.model_
    raw, predicted = model.predict_raw(FRAME), estimator.predict(FRAME)
    shares = model.predict_proba(FRAME) if model.kind == "classifier" else None
    for i in (0, 1, 2, 17, 149):
        for form in forms(i):
            assert model.predict_raw(form).tobytes() == raw[i : i + 1].tobytes()
            assert estimator.predict(form).tolist() == predicted[i : i + 1].tolist()
            if shares is not None:
                assert model.predict_proba(form).tobytes() == shares[i : i + 1].tobytes()


def test_rows_that_need_no_ingest():
    schema = FRAME_MODELS["booster"][0].fit(FRAME, SCORE).model_.schema
    short = [form for form in forms(3) if encoded_row(form, schema) is not None]
    assert len(short) == len(list(forms(3))) - 1  # all but the table of PyArrow


@pytest.fixture(scope="module")
def small():
    frame = FRAME[["x", "count", "city", "day"]]
    return arboost.GradientBoostingRegressor(n_estimators=5).fit(frame, SCORE), frame


@pytest.mark.filterwarnings("ignore:None of the 2 values")
def test_unusual_rows_are_those_of_ingest(small):
    model, frame = small
    for changes in (
        {"x": None},
        {"x": decimal.Decimal("0.25")},
        {"count": 10**400},
        {"count": np.int8(3)},
        {"city": "Paris"},
        {"city": None},
        {"city": b"Rome"},
        {"day": dt.date(2024, 2, 3)},
        {"day": np.datetime64("2024-02-03")},
        {"day": np.datetime64("2024-02")},
        {"day": np.datetime64(171_000_000, "10s")},
        {"day": np.timedelta64(5, "s")},
        {"day": pd.NaT},
    ):
        row = frame.iloc[0].to_dict() | changes
        try:
            expected = model.predict([row, row])[:1]
        except (OverflowError, TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                model.predict(row)
        else:
            np.testing.assert_array_equal(model.predict(row), expected)


def test_nanoseconds_are_not_lost():
    times = pd.date_range("2024-01-01", periods=40, freq="500ns", unit="ns")
    frame = pd.DataFrame({"t": times - times[0]})
    model = arboost.DecisionTreeRegressor().fit(frame, np.arange(40))
    polars = pl.from_pandas(frame)
    expected = model.predict(frame)
    for i in (1, 7, 8):
        np.testing.assert_array_equal(model.predict(polars[i : i + 1]), expected[i : i + 1])
        np.testing.assert_array_equal(model.predict(frame.iloc[[i]]), expected[i : i + 1])


def test_other_columns_and_types_are_refused(small):
    model, frame = small
    row = frame.iloc[0].to_dict()
    with pytest.raises(SchemaError, match="unseen at fit time:\n- price"):
        model.predict(row | {"price": 1})
    with pytest.raises(SchemaError, match="'city' of X holds numbers"):
        model.predict(row | {"city": 1})
    with pytest.raises(SchemaError, match="'x' of X holds strings"):
        model.predict(row | {"x": "1.5"})
    with pytest.raises(SchemaError, match="'day' of X holds numbers"):
        model.predict(row | {"day": 5})
    with pytest.raises(SchemaError, match="'day' of X holds durations"):
        model.predict(row | {"day": dt.timedelta(1)})
