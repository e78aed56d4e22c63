"""Single rows of frames, dicts and series: the bits of whole tables, without `ingest`."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import arboost
from arboost import SchemaError
from arboost.models.single_row import encoded_row

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
MODELS = {
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


@pytest.mark.parametrize("name", MODELS)
def test_same_bits_as_in_a_table(name):
    estimator, y = MODELS[name]
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
    schema = MODELS["booster"][0].fit(FRAME, SCORE).model_.schema
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
