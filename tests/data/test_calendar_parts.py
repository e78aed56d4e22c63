"""Calendar parts of dates: derived features of the model, computed wherever it reads a table."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import arboost
from arboost import Dataset, GradientBoostingRegressor, RandomForestRegressor, SchemaError
from arboost.data.schema import PARTS, Schema, calendar_part, part_edges, part_number
from arboost.data.table import ColumnOptions, ingest
from arboost.models.files.model_file import to_bytes
from support.command_line import run

N_ROWS = 1200
ALL = tuple(f"when.{part}" for part in PARTS)


def table(hours=17, n_rows=N_ROWS):
    when = pd.date_range("2022-02-27 00:30", periods=n_rows, freq=f"{hours}h")
    frame = pd.DataFrame({"when": when, "x": np.arange(n_rows) % 7, "city": ["a", "b", "c"] * 400})
    frame.loc[::50, "when"] = pd.NaT
    return frame


X = table()
Y = np.where(X["when"].dt.hour > 12, 3.0, 0.0) + (X["when"].dt.day_of_week > 4) + 0.1 * X["x"]


def fit(X=X, y=Y, **params):
    return GradientBoostingRegressor(n_estimators=6, **params).fit(X, y)


def test_parts_of_every_day():
    days = np.arange("1895-01-01", "2405-01-01", dtype="M8[D]").astype("M8[s]")
    seconds = days.astype(np.int64) + 3600.0 * (np.arange(len(days)) % 24) + 0.25
    dates = pd.DatetimeIndex(days)
    expected = {
        "hour": np.arange(len(days)) % 24,
        "weekday": dates.day_of_week,
        "month": dates.month,
        "dayofyear": dates.day_of_year,
    }
    for part, values in expected.items():
        np.testing.assert_array_equal(calendar_part(part, seconds), values)
        for place in range(0, len(days), 997):
            assert part_number(part, float(seconds[place])) == values[place]
    odd = np.array([np.nan, np.inf, -np.inf, 1e300])
    assert np.isnan(calendar_part("month", odd)).all()
    assert np.isnan([part_number("hour", value) for value in odd]).all()


@pytest.mark.parametrize("part", PARTS)
def test_edges_lie_between_the_values(part):
    low, high, _ = PARTS[part]
    assert part_edges(part, 1000).tolist() == [value + 0.5 for value in range(low, high)]
    for max_bins in (2, 5, 20, 255):
        edges = part_edges(part, max_bins)
        assert 1 <= len(edges) < max_bins
        assert low < edges[0] <= edges[-1] < high
        assert (edges % 1 == 0.5).all()


class TestWhichParts:
    def parts(self, dates, given="auto"):
        options = ColumnOptions(calendar_parts=given)
        return [
            part for _, part in ingest(pd.DataFrame({"d": dates}), options=options).schema.parts
        ]

    def test_those_that_repeat(self):
        start = dt.datetime(2023, 1, 1)
        for hours, count, expected in (
            (1, 24, []),
            (1, 26, ["hour"]),
            (1, 170, ["hour", "weekday"]),
            (24, 100, ["weekday"]),
            (24, 366, ["weekday"]),
            (24, 369, ["weekday", "month", "dayofyear"]),
            (17, 1200, [*PARTS]),
            (24 * 7, 30, []),
        ):
            dates = [start + i * dt.timedelta(hours=hours) for i in range(count)]
            assert self.parts(dates) == expected, (hours, count)
        assert self.parts([None, None, np.datetime64("NaT")]) == []

    def test_those_that_are_named(self):
        dates = [dt.date(2024, 1, day) for day in (1, 2, 3)]
        assert self.parts(dates, ["weekday", "hour"]) == ["hour", "weekday"]
        assert self.parts(dates, None) == []

    def test_not_of_durations_categories_and_known_names(self):
        spans = X["when"] - X["when"].min()
        assert fit(X.assign(when=spans)).model_.schema.parts == ()
        assert fit(X, categorical_features=["when"]).model_.schema.parts == ()
        named = fit(X.assign(**{"when.hour": 0.0})).model_
        assert named.feature_names == ("when", "x", "city", "when.hour", *ALL[1:])

    @pytest.mark.parametrize("wrong", ["hours", [], ["minute"], 3])
    def test_wrong_values(self, wrong):
        with pytest.raises((TypeError, ValueError), match="calendar_parts must be"):
            fit(calendar_parts=wrong)


def test_names_shapes_and_importances():
    for model in (fit(), RandomForestRegressor(n_estimators=3).fit(X, Y)):
        assert model.feature_names_in_.tolist() == ["when", "x", "city"]
        assert model.n_features_in_ == len(model.feature_importances_) == 3
        assert model.model_.feature_names == ("when", "x", "city", *ALL)
        gains = dict(zip(model.model_.feature_names, model.model_.importances(), strict=True))
        assert gains["when.hour"] > gains["when.weekday"] > gains["when"]
        values = model.shap_values(X)
        assert values.shape == (N_ROWS, 7)
        total = values.sum(axis=1) + model.expected_value()
        np.testing.assert_allclose(total, model.predict(X), rtol=1e-9, atol=1e-12)
    assert "when.hour <= 12.5" in fit().tree_text(0)
    assert fit(calendar_parts=None).model_.feature_names == ("when", "x", "city")


def test_same_bytes_and_predictions_everywhere(tmp_path):
    expected = to_bytes(fit(X.assign(y=Y), "y").model_)
    frame = X.assign(y=Y)
    assert to_bytes(fit(pl.from_pandas(frame), "y").model_) == expected
    for first in (0, 500):
        frame.iloc[first : first + 700 if first else 500].to_parquet(tmp_path / f"{first}.parquet")
    pattern = f"{tmp_path}/*.parquet"
    for n_jobs in (1, 2, 4):
        assert to_bytes(fit(pattern, "y", n_jobs=n_jobs).model_) == expected
        assert to_bytes(fit(frame, "y", n_jobs=n_jobs).model_) == expected
    assert to_bytes(fit(Dataset.from_files(pattern, "y"), None).model_) == expected
    strings = frame.assign(when=frame["when"].dt.strftime("%d/%m/%Y %H:%M").astype(object))
    in_strings = fit(strings, "y")
    assert in_strings.model_.schema.parts == fit().model_.schema.parts
    np.testing.assert_array_equal(in_strings.predict(X), fit().predict(X))


def test_loaded_models_and_single_rows(tmp_path):
    model = fit()
    expected = model.predict(X)
    model.save(tmp_path / "model.arb")
    model.model_.save(tmp_path / "model.json")
    row = X.iloc[[7]]
    as_dict = row.to_dict("records")[0]
    for known in (model, *(arboost.load(tmp_path / f"model.{end}") for end in ("arb", "json"))):
        np.testing.assert_array_equal(known.predict(X[["city", "when", "x"]]), expected)
        iso = as_dict | {"when": as_dict["when"].isoformat()}
        for one in (row, as_dict, [as_dict], row.iloc[0], pl.from_pandas(row), iso):
            assert known.predict(one) == expected[7]
        assert known.predict(X.iloc[0].to_dict()) == expected[0]  # a missing date
    with pytest.raises(SchemaError, match="when"):
        model.predict(X.drop(columns="when"))


def test_tables_without_names():
    values = np.stack([X["when"].to_numpy("M8[s]")] * 2, axis=1)
    model = fit(values)
    assert model.n_features_in_ == 2
    assert model.model_.feature_names[2:4] == ("x0.hour", "x0.weekday")
    np.testing.assert_array_equal(model.predict(values[:5]), model.predict(values)[:5])


def test_derived_features_may_be_given():
    model = fit()
    given = X.assign(
        **{
            name: getattr(
                X["when"].dt,
                name[5:].replace("weekday", "day_of_week").replace("dayofyear", "day_of_year"),
            )
            for name in ALL
        }
    )
    np.testing.assert_array_equal(model.predict(given), model.predict(X))
    night = model.predict(given.assign(**{"when.hour": 3}))
    assert night.mean() < model.predict(X).mean()


def test_a_missing_number_is_no_hour():
    X = table().drop(columns="city").astype({"x": float})
    model = fit(X, missing=0.0)
    hours = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=24, freq="h"), "x": 1.0})
    assert len(set(model.predict(hours)[[0, 23]])) == 2
    rows = hours.to_dict("records")
    np.testing.assert_array_equal([model.predict(row)[0] for row in rows], model.predict(hours))


class TestConstraints:
    def test_monotone_dates_have_no_parts(self):
        with pytest.raises(ValueError, match="names the dates 'when', of which the hour is a feat"):
            fit(monotone_constraints={"when": 1})
        fit(monotone_constraints={"when": 1}, calendar_parts=None)
        assert fit(monotone_constraints=[0, 1, 0]).model_.n_trees == 6
        assert fit(monotone_constraints={"when.hour": 1}).model_.n_trees == 6

    def test_parts_share_the_groups_of_their_column(self):
        model = fit(interaction_constraints=[["when", "x"]]).model_
        paths = model.tree_text(0)
        assert "when.hour" in paths
        assert "x <=" in paths


def test_explanations_of_the_column_and_of_the_part():
    model = fit()
    hours = model.partial_dependence(X, "when.hour")
    assert hours.average[hours.grid[0] == 20] > hours.average[hours.grid[0] == 3]
    grid = arboost.Grid(values={"when": ["2024-01-06T20:00"]})
    dates = model.partial_dependence(X, "when", grid=grid)
    changed = X.assign(when=pd.Timestamp("2024-01-06T20:00"))
    assert dates.average[0] == pytest.approx(model.predict(changed).mean(), rel=1e-12)
    with pytest.raises(ValueError, match="its calendar parts are features of the trees"):
        model.partial_dependence(X, "when", method="recursion")
    of_column, _, _, of_hour, *_ = model.model_.importances("permutation", X, Y)
    assert of_column >= of_hour > 0


def test_ensembles_of_models(tmp_path):
    members = [("a", fit()), ("b", RandomForestRegressor(n_estimators=3))]
    for ensemble in (
        arboost.VotingRegressor(members),
        arboost.BaggingRegressor(GradientBoostingRegressor(n_estimators=2), n_estimators=3),
        arboost.StackingRegressor(members, passthrough=True, final_estimator=members[0][1]),
    ):
        rows = X if ensemble.__class__.__name__ != "StackingRegressor" else X.drop(columns="city")
        ensemble.fit(rows, Y)
        ensemble.save(tmp_path / "ensemble.arb")
        loaded = arboost.load(tmp_path / "ensemble.arb")
        np.testing.assert_array_equal(loaded.predict(rows), ensemble.predict(rows))
        if ensemble.__class__.__name__ == "VotingRegressor":
            values = ensemble.shap_values(rows)
            assert values.shape == (N_ROWS, 3)
            total = values.sum(axis=1) + ensemble.expected_value()
            np.testing.assert_allclose(total, ensemble.predict(rows), rtol=1e-9, atol=1e-12)


def test_description():
    line = arboost.describe(X).columns[0]
    shown = "2022-02-27 17:30:00 to 2024-06-25 07:30:00"
    assert line.use == f"{shown}, with hour, weekday, month, dayofyear"
    assert arboost.describe(X, calendar_parts=None).columns[0].use == shown


def test_report_and_predict_files(tmp_path):
    model = fit()
    page = model.report(X, Y)
    assert "when.hour" in str(page.payload)
    X.to_csv(tmp_path / "rows.csv", index=False)
    model.model_.predict_files(tmp_path / "rows.csv", tmp_path / "found.csv")
    found = pd.read_csv(tmp_path / "found.csv").iloc[:, 0]
    np.testing.assert_allclose(found, model.predict(X))


def test_command_line(tmp_path):
    X.assign(y=Y).drop(columns="city").to_csv(tmp_path / "rows.csv", index=False)
    model, rows = tmp_path / "model.arb", tmp_path / "rows.csv"
    assert run("train", rows, "-t", "y", "-o", model, "--n-estimators", "5").code == 0
    assert run("predict", model, rows, "-o", tmp_path / "p.csv").code == 0
    assert run("evaluate", model, rows, "--held-out").code == 0
    shown = run("explain", model, rows, "--row", "3").out
    (line,) = [line for line in shown.splitlines() if "when.weekday" in line]
    assert line.split()[1] == str(X["when"][3].weekday())
    plain = tmp_path / "plain.arb"
    args = ("train", rows, "-t", "y", "-o", plain, "--n-estimators", "2")
    assert run(*args, "--calendar-parts", "none").code == 0
    assert arboost.load(plain).feature_names == ("when", "x")
    assert run(*args, "--calendar-parts", "hour").code == 0
    assert arboost.load(plain).feature_names == ("when", "x", "when.hour")


def test_exports_take_parts_as_inputs():
    model = fit(X.drop(columns="city")).model_
    assert all(f'"{name}"' in model.to_c() for name in model.feature_names)
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    seconds = X["when"].to_numpy("M8[s]").astype(np.int64)[1:10].astype(np.float64)
    rows = [seconds, X["x"][1:10], *(calendar_part(part, seconds) for part in PARTS)]
    found = session.run(None, {"X": np.stack(rows, axis=1).astype(np.float64)})[0]
    np.testing.assert_allclose(found.ravel(), model.predict(X.drop(columns="city")[1:10]))


@pytest.mark.parametrize("part", [(0, "second"), (1, "hour"), (2, "hour"), (-1, "hour")])
def test_hostile_parts_are_refused(part):
    schema = Schema(("when", "x"), 2, units=("datetime", "")).with_parts(((0, "hour"),))
    schema.validate()
    with pytest.raises(ValueError, match="part"):
        replace(schema, parts=(part,)).validate()
