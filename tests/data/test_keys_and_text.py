"""Keys, free text and numbers in strings: never refused, one warning with the lists to paste."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import arboost
from arboost import Dataset, DataWarning, GradientBoostingRegressor
from arboost.data.table import ColumnOptions, ingest

N_ROWS = 240
RNG = np.random.default_rng(0)
WORDS = np.array(["a", "tree", "of", "leaves", "and", "rows", "by", "splits", "in", "the", "sum"])
NUMBERS = RNG.normal(size=N_ROWS)
KEYS = [f"k{i}" for i in range(N_ROWS)]
SENTENCES = [" ".join(RNG.choice(WORDS, 9)) for _ in range(N_ROWS - 20)]
TABLE = pd.DataFrame(
    {
        "x": NUMBERS,
        "key": KEYS,
        "code": [*KEYS[:-5], *KEYS[:5]],
        "note": [*SENTENCES, *SENTENCES[:20]],
        "zip": [f"{i % 60:05}" for i in range(N_ROWS)],
        "city": ["Rome", "Oslo", None] * 80,
    }
)
ESTIMATORS = [name for name in arboost.__all__ if name.endswith(("Classifier", "Regressor"))]


def estimator(name):
    cls = getattr(arboost, name)
    kind = "Classifier" if name.endswith("Classifier") else "Regressor"
    tree = getattr(arboost, f"DecisionTree{kind}")
    if name.startswith(("Stacking", "Voting")):
        piped = make_pipeline(FunctionTransformer(), tree())
        final = {"final_estimator": tree(), "passthrough": True}
        more = final if name.startswith("Stacking") else {}
        return cls([("one", tree(max_depth=2)), ("two", tree()), ("three", piped)], **more)
    return cls() if name.startswith("DecisionTree") else cls(n_estimators=3)


def caught(fit, *args):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit(*args)
    return found


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_warning_of_each_fit_at_the_line_of_the_user(name):
    y = NUMBERS > 0 if name.endswith("Classifier") else NUMBERS
    (warning,) = caught(estimator(name).fit, TABLE, y)
    assert warning.category is DataWarning
    assert warning.filename == __file__


@pytest.mark.parametrize("read", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_the_warning_names_columns_and_lists_to_paste(read):
    (warning,) = caught(ingest, read(TABLE))
    lines = str(warning.message).splitlines()
    assert lines[0].startswith("Keys or free text in X: 'key' (240 strings, 240 distinct).")
    assert "ignored" in lines[0]
    assert lines[1].startswith("Keys in X: 'code' (240 strings, 235 distinct).")
    assert lines[2].startswith("Free text in X: 'note' (240 strings, 220 distinct).")
    assert lines[3].startswith("Numbers as strings in X: 'zip' (such as '00000').")
    assert lines[4] == (
        "Drop ['key', 'code', 'note'], or have categories without this warning: "
        "categorical_features=['key', 'code', 'note', 'zip']."
    )
    pasted = ["key", "code", "note", "zip"]
    assert not caught(lambda: ingest(read(TABLE), options=ColumnOptions(pasted)))


def test_the_list_to_paste_keeps_given_categories():
    X = np.array([["1", 7], ["2", 8]] * 10, dtype=object)
    (warning,) = caught(lambda: ingest(X, options=ColumnOptions([1])))
    assert str(warning.message).endswith("categorical_features=[0, 1].")


def test_strings_that_never_come_again_are_ignored():
    X = TABLE[["x", "key"]]
    with pytest.warns(DataWarning, match="ignored"):
        model = GradientBoostingRegressor(n_estimators=5).fit(X, NUMBERS).model_
    plain = GradientBoostingRegressor(n_estimators=5).fit(X[["x"]], NUMBERS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(X), plain.predict(X[["x"]]))
        model.predict(X.assign(key="new"))
    assert len(model.schema.levels[1]) == 0
    again = arboost.Predictor.from_json(model.to_json())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    named = GradientBoostingRegressor(n_estimators=5, categorical_features=["key"]).fit(X, NUMBERS)
    assert len(named.model_.schema.levels[1]) == N_ROWS


def test_samples_are_not_refused_where_all_rows_are_not():
    """Codes of which a sample has more distinct values than half of its rows."""
    codes = RNG.integers(0, 7000, 15_000)
    X = pd.DataFrame({"x": RNG.normal(size=15_000), "shop": [f"s{i}" for i in codes]})
    for n_rows in (15_000, 7500, 1500, 150):
        part = X.sample(n_rows, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            model = GradientBoostingRegressor(n_estimators=2).fit(part, part["x"])
            assert np.isfinite(model.predict(X)).all()
            Dataset(part, part["x"])


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_a_sample_without_values_in_a_column(dtype):
    X = pd.DataFrame({"x": NUMBERS, "pool": pd.Series([None] * N_ROWS, dtype=dtype)})
    model = GradientBoostingRegressor(n_estimators=3).fit(X, NUMBERS)
    for values in ("good", 1.5, pd.Timestamp("2024-01-01")):
        np.testing.assert_array_equal(model.predict(X.assign(pool=values)), model.predict(X))
