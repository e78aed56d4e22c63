"""Segments: levels, ranges and missing values, the worst first, none too small."""

import numpy as np
import pytest

import arboost
from support.reported import fitted, halves, section, table


def test_segments_are_means_of_losses():
    frame, targets = table()
    test = halves()[1]
    X, y = frame[test], targets["regression"][test]
    losses = np.abs(fitted("GradientBoosting", "regression").predict(X) - y)
    found = section("regression", "segments")
    assert found["metric"] == "mean absolute error"
    assert found["overall"] == pytest.approx(losses.mean(), rel=1e-4)
    by_name = {(one["feature"], one["segment"]): one for one in found["list"]}
    for level in ("Rome", "Oslo"):
        rows = (X["city"] == level).to_numpy()
        one = by_name["city", level]
        assert one["n"] == rows.sum()
        assert one["score"] == pytest.approx(losses[rows].mean(), rel=1e-4)
        assert one["observed"] == pytest.approx(y[rows].mean(), rel=1e-4)
        assert one["low"] < one["score"] < one["high"]
        assert one["difference"] == pytest.approx(one["score"] - found["overall"], abs=1e-4)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_worst_come_first_and_none_is_tiny(task):
    found = section(task, "segments")
    scores = [one["score"] for one in found["list"]]
    assert scores == sorted(scores, reverse=True)
    assert found["fewest_rows"] == 30
    assert all(one["n"] >= 30 for one in found["list"])
    assert found["n_segments"] >= len(found["list"])


def test_a_bad_segment_is_found(rng):
    """Rows of one level have labels at random: it leads the list."""
    n = 2000
    X = rng.normal(size=(n, 3))
    group = rng.choice(["a", "b", "c", "d"], n)
    y = np.where(group == "c", rng.random(n) < 0.5, X[:, 0] > 0).astype(int)
    columns = {"x": X[:, 0], "u": X[:, 1], "v": X[:, 2], "group": group.astype(object)}
    half = n // 2
    train = {name: values[:half] for name, values in columns.items()}
    test = {name: values[half:] for name, values in columns.items()}
    model = arboost.GradientBoostingClassifier(n_estimators=30).fit(train, y[:half])
    worst = model.report(test, y[half:]).payload["models"][0]["segments"]["list"][0]
    assert (worst["feature"], worst["segment"]) == ("group", "c")
    assert worst["low"] > 0.3


def test_ranges_and_missing_values_divide_the_rows(rng):
    X = rng.normal(size=(400, 1))
    X[:80] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1.0, X[:, 0])
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    found = model.report(X, y).payload["models"][0]["segments"]["list"]
    sizes = {one["segment"]: one["n"] for one in found}
    assert sizes["missing"] == 80
    assert sum(sizes.values()) == 400
    assert len(sizes) == 5


def test_chosen_features_are_always_shown():
    """Sixteen more features fill the list; the one that is asked for is in it all the same."""
    frame, targets = table()
    train, test = halves()
    y = targets["regression"]
    many = frame.assign(**{f"n{i}": np.arange(len(frame)) % (i + 2) for i in range(16)})
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(many[train], y[train])
    plain = model.report(many[test], y[test]).payload["models"][0]["segments"]
    shown = {one["feature"] for one in plain["list"]}
    absent = next(name for name in ("n0", "n1", "n2", "n3") if name not in shown)
    found = model.report(many[test], y[test], segments=[absent]).payload["models"][0]["segments"]
    assert absent in {one["feature"] for one in found["list"]}
    with pytest.raises(ValueError, match="segments names features that the model does not have"):
        model.report(many[test], y[test], segments=["nothing"])


def test_segments_of_a_second_model_go_by_name():
    """The columns of the two models are in another order."""
    frame, targets = table()
    train, test = halves()
    y = targets["regression"]
    first = fitted("GradientBoosting", "regression")
    other = arboost.GradientBoostingRegressor(n_estimators=5)
    other.fit(frame[frame.columns[::-1]][train], y[train])
    found = first.report(frame[test], y[test], compare=other, segments=["city"]).payload
    sizes = [
        {one["segment"]: one["n"] for one in model["segments"]["list"] if one["feature"] == "city"}
        for model in found["models"]
    ]
    assert sizes[0] == sizes[1]
    assert sizes[0]["Rome"] == (frame[test]["city"] == "Rome").sum()
