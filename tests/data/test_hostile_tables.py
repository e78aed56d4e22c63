"""Tables that could be read wrongly without an error: names, objects, keys and orders."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arboost as ab
from arboost import DecisionTreeRegressor, GradientBoostingRegressor, SchemaError
from arboost.data.table import ingest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = 3 * X[:, 0] + X[:, 1]
FRAME = pd.DataFrame(X, columns=list("abc"))
HUGE = 2**53 + RNG.integers(0, 3, 60)


@pytest.mark.parametrize(
    "names",
    [
        [10, 20, 30],
        [2, 0, 1],
        [("a", 1), ("b", 2), ("c", 3)],
        [dt.date(2020, 1, day) for day in (1, 2, 3)],
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]),
    ],
    ids=["integers", "other integers", "tuples", "dates", "levels"],
)
def test_columns_are_matched_by_any_names(names):
    frame = pd.DataFrame(X)
    frame.columns = names
    turned = frame.iloc[:, ::-1]
    for estimator in (DecisionTreeRegressor(), ab.BaggingRegressor(n_estimators=2)):
        model = estimator.fit(frame, Y)
        expected = model.predict(frame)
        np.testing.assert_array_equal(model.predict(turned), expected)
        with pytest.raises(SchemaError, match="feature names should match"):
            model.predict(frame.rename(columns=str).set_axis(["x", "y", "z"], axis="columns"))
    row = DecisionTreeRegressor().fit(frame, Y).predict(turned.iloc[0])
    np.testing.assert_array_equal(row, DecisionTreeRegressor().fit(X, Y).predict(X[:1]))


def test_default_numbers_are_no_names():
    frame = pd.DataFrame(X)
    model = DecisionTreeRegressor().fit(frame, Y)
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(frame.iloc[:, [2, 0, 1]]), model.predict(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)


def test_names_of_one_text_are_refused():
    frame = FRAME.set_axis([dt.date(2020, 1, 1), pd.Period("2020-01-01"), 3], axis="columns")
    with pytest.raises(ValueError, match="several columns of the same name: '2020-01-01'"):
        DecisionTreeRegressor().fit(frame, Y)


def test_keys_that_are_integers():
    rows = [{7: a, 5: b} for a, b in X[:, :2].tolist()]
    model = DecisionTreeRegressor().fit(rows, Y)
    np.testing.assert_array_equal(
        model.predict([{5: b, 7: a} for a, b in X[:, :2].tolist()]),
        DecisionTreeRegressor().fit(X[:, :2], Y).predict(X[:, :2]),
    )


def test_a_key_that_one_of_several_dicts_lacks():
    rows = FRAME.to_dict("records")
    model = DecisionTreeRegressor().fit(rows, Y)
    del rows[3]["b"]
    with pytest.raises(SchemaError, match=r"position 3 of X has no key 'b'.*None for a missing"):
        model.predict(rows)
    rows[3]["b"] = None
    assert model.predict(rows).shape == (60,)
    del rows[3]["b"]
    assert DecisionTreeRegressor().fit(rows, Y).n_features_in_ == 3


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"id": pd.Categorical(HUGE)}),
        pa.table({"id": pa.array(HUGE).dictionary_encode()}),
    ],
    ids=["pandas", "pyarrow"],
)
def test_categories_that_float64_merges_are_refused(table):
    with pytest.raises(ValueError, match=r"category 'id' of X holds integers of 2\*\*53 or beyond"):
        DecisionTreeRegressor().fit(table, Y)


def test_named_categories_that_float64_merges_are_refused():
    tree = DecisionTreeRegressor(categorical_features=[0])
    with pytest.raises(ValueError, match=r"category 0 of X holds integers of 2\*\*53"):
        tree.fit(HUGE[:, np.newaxis], Y)
    tree.fit(HUGE[:, np.newaxis] - 2**53, Y)


def test_objects_of_polars():
    """Polars exports objects as their addresses."""
    ids = pl.Series("id", [uuid.uuid4() for _ in range(60)], dtype=pl.Object)
    with pytest.raises(TypeError, match="column 'id' of X holds objects that are neither numbers"):
        DecisionTreeRegressor().fit(pl.DataFrame([pl.Series("a", X[:, 0]), ids]), Y)
    values = [decimal.Decimal(str(number)) for number in X[:, 0]]
    words = ["x", None, "y"] * 20
    objects = pl.DataFrame(
        {
            "b": X[:, 1],
            "n": pl.Series(values, dtype=pl.Object),
            "w": pl.Series(words, dtype=pl.Object),
        }
    )
    plain = pl.DataFrame({"b": X[:, 1], "n": X[:, 0], "w": words})
    model, other = (
        GradientBoostingRegressor(n_estimators=3).fit(one, Y) for one in (objects, plain)
    )
    np.testing.assert_array_equal(model.predict(plain), other.predict(objects))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.RunEndEncodedArray.from_arrays([30, 60], [1.0, 2.0]), "run-end encoded"),
        (pa.array([[1.0]] * 60), "nested"),
        (pa.array([pa.MonthDayNano((1, 2, 3))] * 60), "Arrow type tin"),
    ],
    ids=["runs", "lists", "intervals"],
)
def test_arrow_types_that_are_refused(column, kind):
    with pytest.raises(TypeError, match=rf"types that cannot be used: 'x' \({kind}"):
        ingest(pa.table({"x": column}))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"0" * 16] * 60, pa.uuid()),
        pa.array([1, 0] * 30, pa.bool8()),
        pa.array(["{}"] * 60, pa.json_()),
        pa.array([b"a"] * 60, pa.binary_view()),
        pa.array([decimal.Decimal(1)] * 60, pa.decimal32(5)),
    ],
    ids=["uuid", "bool8", "json", "binary view", "decimal32"],
)
@pytest.mark.filterwarnings("ignore:Numbers as strings")
def test_arrow_types_that_are_read_by_their_storage(column):
    assert ingest(pa.table({"x": column})).n_rows == 60


@pytest.mark.filterwarnings("ignore:X has integers of 2")
def test_the_longest_durations():
    spans = [dt.timedelta.max, None, dt.timedelta.min, dt.timedelta(days=1)]
    values = ingest({"x": spans}).columns.read(0)
    np.testing.assert_allclose(values, [86400 * 1e9, np.nan, -86400 * 999999999, 86400])


def weights(order):
    return pd.Series(np.arange(1.0, 61.0)).iloc[order]


@pytest.mark.parametrize("name", ["sample_weight", "groups", "offset"])
def test_values_in_another_order_than_the_rows_are_refused(name):
    model = GradientBoostingRegressor(
        n_estimators=2, validation_split="group" if name == "groups" else "random"
    )
    if name == "groups":
        model.set_params(n_iter_no_change=1)
    with pytest.raises(ValueError, match=rf"X and {name} have the same index in different orders"):
        model.fit(FRAME, Y, **{name: weights(RNG.permutation(60))})
    model.fit(FRAME, Y, **{name: weights(slice(None))})
    model.fit(FRAME, Y, **{name: weights(slice(None)).set_axis(range(100, 160))})  # other labels


@pytest.mark.parametrize(
    "fit",
    [
        lambda w: ab.RandomForestRegressor(n_estimators=2).fit(FRAME, Y, sample_weight=w),
        lambda w: ab.AdaBoostRegressor(n_estimators=2).fit(FRAME, Y, sample_weight=w),
        lambda w: ab.BaggingRegressor(n_estimators=2).fit(FRAME, Y, sample_weight=w),
        lambda w: ab.VotingRegressor([("a", DecisionTreeRegressor())]).fit(FRAME, Y, w),
        lambda w: ab.StackingRegressor([("a", DecisionTreeRegressor())]).fit(FRAME, Y, w),
        lambda w: ab.Dataset(FRAME, Y, sample_weight=w),
        lambda w: ab.cv(GradientBoostingRegressor(n_estimators=2), FRAME, Y, groups=w),
        lambda w: ab.compare(FRAME, Y, groups=w),
        lambda w: GradientBoostingRegressor().fit(FRAME, Y, eval_set=[(FRAME, Y, w)]),
    ],
    ids=[
        "forest",
        "adaboost",
        "bagging",
        "voting",
        "stacking",
        "dataset",
        "cv",
        "compare",
        "eval_set",
    ],
)
def test_all_fits_check_the_order(fit):
    with pytest.raises(ValueError, match="have the same index in different orders"):
        fit(weights(slice(None, None, -1)))


def test_targets_of_decimals():
    y = [decimal.Decimal(str(value)) for value in Y]
    expected = GradientBoostingRegressor(n_estimators=3).fit(X, Y).predict(X)
    for given in (y, pd.Series(y), pl.Series(Y).cast(pl.Decimal(38, 20)), np.array(y)):
        model = GradientBoostingRegressor(n_estimators=3).fit(X, given)
        np.testing.assert_allclose(model.predict(X), expected)
    for bad in ("NaN", "Infinity"):
        with pytest.raises(ValueError, match=r"1 missing or infinite values.*row 1"):
            DecisionTreeRegressor().fit(X[:2], [decimal.Decimal(1), decimal.Decimal(bad)])


def test_weights_beyond_all_sums():
    with pytest.raises(ValueError, match=r"sample_weight is 1e\+300 in row 0, but at most 3e\+299"):
        GradientBoostingRegressor().fit(X, Y, sample_weight=np.r_[1e300, np.ones(59)])
