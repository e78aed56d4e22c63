"""Data of a report: kinds, missing values, distributions, drift, and the rounding of numbers."""

import json

import numpy as np
import pytest

import arboost
from arboost.report.data import drift
from arboost.report.table import Column, rounded, rounded_counts
from support.reported import N_ROWS, halves, report, table


def columns(task="binary"):
    return {column["name"]: column for column in report(task=task).payload["data"]["columns"]}


def test_kinds_and_missing_values():
    frame, _ = table()
    test = frame[halves()[1]]
    found = columns()
    assert [name for name in found if "." not in name] == list(frame.columns)
    kinds = {name: column["kind"] for name, column in found.items() if "." not in name}
    assert kinds == {
        "size": "number",
        "age": "number",
        "city": "category",
        "member": "bool",
        "since": "time",
        "noise": "number",
    }
    for name in frame.columns:
        column = found[name]
        assert column["missing"] == pytest.approx(test[name].isna().mean(), abs=1e-5)
        assert column["n_distinct"] == test[name].nunique()
        train = frame[halves()[0]][name].isna().mean()
        assert column["missing_train"] == pytest.approx(train, abs=1e-5)


def test_histograms_hold_every_value():
    frame, _ = table()
    train, test = halves()
    for name in ("size", "age", "since", "noise"):
        bins = columns()[name]["bins"]
        assert sum(bins["test"]) == frame[test][name].notna().sum()
        assert sum(bins["train"]) == frame[train][name].notna().sum()
        assert (np.diff(bins["edges"]) > 0).all()
    inner = columns()["age"]["bins"]
    expected, _ = np.histogram(frame[test]["age"], inner["edges"][1:-1])
    assert inner["test"][2:-2] == expected[1:-1].tolist()


def test_levels_are_counted():
    frame, _ = table()
    train, test = halves()
    levels = columns()["city"]["levels"]
    own, other = frame[test]["city"].value_counts(), frame[train]["city"].value_counts()
    assert levels["test"] == [own[name] for name in levels["names"]]
    assert levels["train"] == [other[name] for name in levels["names"]]
    flags = columns()["member"]["levels"]
    assert set(flags["names"]) == {"True", "False"}
    assert (
        dict(zip(flags["names"], flags["test"], strict=True))["True"] == frame[test]["member"].sum()
    )


def test_rare_levels_are_counted_together():
    X = {"code": [f"c{i % 30}" for i in range(300)] + ["c0"] * 100}
    y = np.arange(400) % 2
    model = arboost.GradientBoostingClassifier(n_estimators=2).fit(X, y)
    (column,) = model.report(X, y).payload["data"]["columns"]
    assert column["levels"]["names"][0] == "c0"
    assert column["levels"]["n_other"] == 18
    assert sum(column["levels"]["test"]) + column["levels"]["other_test"] == 400
    assert column["summary"] == "30 levels, most often c0 (27.5%)"


def test_target_is_described():
    data = report(task="regression").payload["data"]
    assert data["target"]["kind"] == "number"
    assert data["n_rows"] == N_ROWS // 2
    assert data["n_train_rows"] == N_ROWS // 2
    labels = report().payload["data"]["target"]["levels"]
    assert dict(zip(labels["names"], labels["test"], strict=True))["yes"] > 0


def test_drift_is_the_population_stability_index():
    """Two levels: (p - q) ln(p / q), half a row added to each."""
    one_side = Column("a", "category", np.repeat([0.0, 1.0], [80, 20]), ("x", "y"))
    other = Column("a", "category", np.repeat([0.0, 1.0], [50, 50]), ("x", "y"))
    p, q = np.array([80.5, 20.5]) / 101, np.array([50.5, 50.5]) / 101
    assert drift(one_side, other) == pytest.approx(((p - q) * np.log(p / q)).sum())
    assert drift(other, other) == 0.0


def test_drift_of_numbers_and_of_missing_values(rng):
    same = Column("a", "number", rng.normal(size=4000))
    again = Column("a", "number", rng.normal(size=4000))
    moved = Column("a", "number", rng.normal(1.0, size=4000))
    holes = Column("a", "number", np.where(rng.random(4000) < 0.5, np.nan, again.numbers))
    assert drift(again, same) < 0.02
    assert drift(moved, same) > 0.5
    assert drift(holes, same) > 0.5


@pytest.mark.parametrize(
    "numbers", [[], [np.nan], [3.0], [np.inf, -np.inf], [1.0, np.inf], [1e308, -1e308]]
)
def test_drift_of_unusual_columns_is_finite(numbers):
    one_side = Column("a", "number", np.array(numbers, float))
    other = Column("a", "number", np.arange(10.0))
    assert np.isfinite(drift(one_side, other))
    assert np.isfinite(drift(other, one_side))


def test_rounding():
    assert rounded([1 / 3, 2 / 3e9, 123456.7, -0.0, 5.0]) == [0.33333, 6.6667e-10, 123460, 0, 5]
    assert rounded([np.nan, np.inf, -np.inf]) == [None] * 3
    assert rounded(np.array([[0.123456789, 1e300], [1e-300, 5e-324]])) == [
        [0.12346, 1e300],
        [1e-300, 5e-324],
    ]
    assert json.dumps(rounded(np.linspace(0, 1, 7))) == (
        "[0, 0.16667, 0.33333, 0.5, 0.66667, 0.83333, 1]"
    )
    assert rounded(np.empty((2, 0))) == [[], []]
    assert rounded(None) is None
    assert rounded(float("nan")) is None
    assert rounded(1234567.0, 7) == 1234567
    assert rounded_counts(np.array([1, 2])) == [1, 2]


def test_rounding_is_that_of_python():
    values = np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-250, 250)
    assert rounded(values) == [float(f"{value:.5g}") for value in values]
