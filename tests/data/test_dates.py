"""Dates in strings: recognised by all values of a column, never guessed, the same everywhere."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import Dataset, DataWarning, GradientBoostingRegressor, SchemaError
from arboost.data.table import ColumnOptions, ingest
from arboost.models.files.model_file import to_bytes
from support.command_line import run

N_ROWS = 300
TIMES = pd.date_range("2023-12-28", periods=N_ROWS, freq="19h")
Y = np.sin(np.arange(N_ROWS) / 9)


def table(form):
    return pd.DataFrame({"when": TIMES.strftime(form).astype(object), "x": np.arange(N_ROWS) % 7})


def fit(X, y=Y, **params):
    return GradientBoostingRegressor(n_estimators=4, **params).fit(X, y)


def seconds_of(values, **options):
    (read,) = [ingest(pd.DataFrame({"when": values}), options=ColumnOptions(**options))]
    assert read.schema.units == ("datetime",), read.schema
    return read.columns.read(0)


FORMS = {
    "%Y-%m-%d %H:%M:%S": "iso",
    "%Y/%m/%d %H:%M": "iso",
    "%Y-%m-%dT%H:%M:%SZ": "iso",
    "%Y-%m-%dT%H:%M:%S.000+00:00": "iso",
    "%d/%m/%Y %H:%M": "dayfirst",
    "%d.%m.%Y, %H:%M": "dayfirst",
    "%m/%d/%Y %I:%M:%S %p": "monthfirst",
    "%m-%d-%Y %H:%M": "monthfirst",
}


@pytest.mark.parametrize("form", FORMS)
def test_common_formats(form):
    read = ingest(table(form))
    assert read.schema.formats == (FORMS[form], "")
    typed = ingest(table(form).assign(when=TIMES))
    np.testing.assert_array_equal(read.columns.read(0), typed.columns.read(0))


def test_zones_fractions_blanks_and_dates_alone():
    found = seconds_of(["2024-02-29", "", None, "2024-02-29T01:00:00.25+01:30", " 2024-2-9 "])
    midnight = dt.datetime(2024, 2, 29, tzinfo=dt.UTC).timestamp()
    expected = [midnight, np.nan, np.nan, midnight - 1799.75, midnight - 20 * 86400]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "values",
    [
        ["2024-02-30", "2024-02-01"],
        ["13/02/2024", "02/13/2024"],
        ["2024-02-01", "01/02/2024"],
        ["1.2.3", "2.3.4"],
        ["2024-02-01", "unknown"],
        ["12/31/2024 13:00 PM"],
    ],
)
def test_strings_that_are_no_dates_of_one_format(values):
    assert not ingest(pd.DataFrame({"when": values})).schema.units


class TestDoubt:
    AMBIGUOUS = pd.DataFrame({"when": ["03/02/2024", "05/04/2024"] * 50, "x": np.arange(100)})

    def test_is_never_guessed(self):
        with pytest.warns(DataWarning, match="day first or month first: 'when' .such as '03/02/"):
            model = fit(self.AMBIGUOUS, np.arange(100))
        assert not model.model_.schema.units

    @pytest.mark.parametrize(("order", "month"), [("dayfirst", 2), ("monthfirst", 3)])
    def test_is_settled_by_the_parameter(self, order, month):
        first = seconds_of(self.AMBIGUOUS["when"], date_format=order)[0]
        assert dt.datetime.fromtimestamp(first, dt.UTC).month == month
        model = fit(self.AMBIGUOUS, np.arange(100), date_format=order)
        assert model.model_.schema.formats[:2] == (order, "")

    def test_none_means_categories_without_a_warning(self):
        model = fit(self.AMBIGUOUS, np.arange(100), date_format=None)
        assert model.model_.schema.is_category(0)


def test_a_format_that_no_column_has():
    with pytest.warns(DataWarning, match="'%d.%m.%y' is the format of no column"):
        fit(table("%Y-%m-%d"), date_format="%d.%m.%y")


class TestFormatByColumn:
    def test_strptime(self):
        found = seconds_of(["13-Feb-24", "1-Mar-24"], date_format=[["when", "%d-%b-%y"]])
        assert np.diff(found) == 17 * 86400

    def test_another_value_is_an_error(self):
        with pytest.raises(SchemaError, match="'when' of X holds 'soon', which is not a date"):
            fit(
                pd.DataFrame({"when": ["13/02/2024", "soon"]}),
                [0, 1],
                date_format={"when": "%d/%m/%Y"},
            )

    def test_unknown_columns_and_formats(self):
        with pytest.raises(ValueError, match="date_format names features that X does not have"):
            fit(table("%d/%m/%Y"), date_format={"then": "dayfirst"})
        for wrong in ("day-first", {"when": "auto"}, {"when": None}):
            with pytest.raises(ValueError, match="a dict from columns to formats"):
                fit(table("%d/%m/%Y"), date_format=wrong)

    def test_categories_stay_categories(self):
        assert fit(table("%d/%m/%Y"), categorical_features=["when"]).model_.schema.levels


class TestPredict:
    def test_strings_dates_and_rows(self, tmp_path):
        X = table("%d/%m/%Y %H:%M")
        model = fit(X)
        model.save(tmp_path / "model.arb")
        model.model_.save(tmp_path / "model.json")
        for known in (model, *(arboost.load(tmp_path / f"model.{end}") for end in ("arb", "json"))):
            np.testing.assert_array_equal(known.predict(X), model.predict(X))
            np.testing.assert_array_equal(known.predict(X.assign(when=TIMES)), model.predict(X))
            row = {"x": int(X["x"][5]), "when": X["when"][5]}
            assert known.predict(row) == model.predict(X)[5]
        with pytest.raises(SchemaError, match="'2024-02-13', which is not a date of the format"):
            model.predict({"x": 1, "when": "2024-02-13"})

    def test_iso_strings_in_place_of_dates(self):
        X = table("%d/%m/%Y").assign(when=TIMES)
        model = fit(X)
        np.testing.assert_array_equal(
            model.predict(X.assign(when=TIMES.strftime("%Y-%m-%dT%H:%M:%S"))), model.predict(X)
        )
        with pytest.raises(SchemaError, match="not a date of the format 'iso'"):
            model.predict({"x": 1, "when": "13/02/2024"})


@pytest.mark.parametrize("date_format", ["auto", {"when": "dayfirst"}])
def test_files_give_the_bytes_of_memory(tmp_path, date_format):
    X = table("%d/%m/%Y %H:%M").assign(y=Y)
    expected = to_bytes(fit(X, "y", date_format=date_format).model_)
    for first in (0, 200):
        X.iloc[first : first + 200].to_parquet(tmp_path / f"{first}.parquet")
    for n_jobs in (1, 2, 4):
        model = fit(f"{tmp_path}/*.parquet", "y", date_format=date_format, n_jobs=n_jobs)
        assert to_bytes(model.model_) == expected
    data = Dataset.from_files(f"{tmp_path}/*.parquet", "y", date_format=date_format)
    assert to_bytes(fit(data, None, date_format=date_format).model_) == expected


def test_command_line(tmp_path):
    X = pd.DataFrame({"when": ["03/02/2024", "05/04/2024"] * 50, "y": np.arange(100) % 2})
    X.to_csv(tmp_path / "rows.csv", index=False)
    shown = run("inspect", tmp_path / "rows.csv", "--date-format", "monthfirst")
    assert "month first: 2024-03-02 to 2024-05-04" in shown.out
    model = tmp_path / "model.arb"
    args = ("train", tmp_path / "rows.csv", "-t", "y", "-o", model, "--n-estimators", "2")
    assert run(*args, "--date-format", "monthfirst").code == 0
    assert arboost.load(model).schema.format_of(0) == "monthfirst"
    assert run("predict", model, tmp_path / "rows.csv", "-o", tmp_path / "p.csv").code == 0


def test_description():
    (line, _) = arboost.describe(table("%d/%m/%Y"), calendar_parts=None).columns
    assert (line.type, line.use) == ("datetime", "day first: 2023-12-28 to 2024-08-20")
