"""--offset of the command line: train, evaluate, predict, report, explain and tune."""

from __future__ import annotations

import json

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

import arboost
from support.command_line import run

N = 500
RNG = np.random.default_rng(8)
START = np.round(RNG.uniform(-1.5, 1.5, N), 3)
A, B = np.round(RNG.normal(size=(2, N)), 3)
TABLE = pyarrow.table(
    {
        "a": A,
        "log exposure": START,
        "b": B,
        "claims": RNG.poisson(np.exp(0.5 * A + START)),
        "class": np.array(["x", "y", "z"])[np.digitize(A + START, [-0.5, 0.5])],
        "of x": -START,
        "of y": 0 * START,
        "of z": START,
    }
)
TRAIN = ["--task", "regression", "--set", "loss=poisson", "--n-estimators", "20"]
IGNORED = ["--ignore", "class,of x,of y,of z"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    parquet.write_table(TABLE, tmp_path / "t.parquet")
    csv.write_csv(TABLE, tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def done(*line):
    result = run(*line, "--json", "-q")
    assert result.code == 0, result.err
    return json.loads(result.out) if result.out.strip() else None


def train(*more, data="t.parquet", target="claims"):
    found = done("train", data, "-t", target, *TRAIN, "--offset", "log exposure", *IGNORED, *more)
    return found, arboost.load("m.arb")


def score(scores, name):
    return next(one for one in scores["scores"] if one["name"] == name)["value"]


def test_train_scores_with_the_offset(here):
    found, model = train("-o", "m.arb")
    assert model.schema.names == ("a", "b")
    assert model.schema.offset == ("log exposure",)
    without = done(
        "train",
        "t.parquet",
        "-t",
        "claims",
        *TRAIN,
        "--ignore",
        "log exposure",
        *IGNORED,
        "-o",
        "other.arb",
    )
    assert score(found, "RMSE") < 0.9 * score(without, "RMSE")


@pytest.mark.parametrize("more", [["--folds", "3"], ["--holdout", "0"], ["--memory-limit", "1GB"]])
def test_all_rows_train_the_same_model(here, more):
    _, model = train("-o", "m.arb", *more)
    frame = TABLE.select(["a", "log exposure", "b", "claims"])
    known = arboost.GradientBoostingRegressor(loss="poisson", n_estimators=20)
    known.fit(frame, "claims", offset="log exposure")
    np.testing.assert_array_equal(model.predict(frame), known.predict(frame))


def test_commands_know_the_columns(here):
    _, model = train("-o", "m.arb", "--holdout", "0")
    expected = model.predict(TABLE.select(["a", "b", "log exposure"]))
    rmse = np.sqrt(np.mean((expected - TABLE["claims"].to_numpy()) ** 2))
    for data in ("t.parquet", "t.csv"):
        assert score(done("evaluate", "m.arb", data), "RMSE") == pytest.approx(rmse)
        done("predict", "m.arb", data, "-o", "out.parquet", "--keep", "class")
        found = parquet.read_table("out.parquet")
        assert found.column_names == ["class", "prediction"]
        np.testing.assert_array_equal(found["prediction"], expected)
    page = done("report", "m.arb", "t.parquet", "-o", "r.html", "--train", "t.parquet")
    assert page["scores"]["RMSE"] == pytest.approx(rmse, abs=0.01)
    row = done("explain", "m.arb", "t.parquet", "--row", "3")
    assert row["prediction"] == expected[3]
    assert row["offset"] == START[3]
    total = row["expected_value"] + row["offset"] + sum(one["shap"] for one in row["contributions"])
    assert row["score"] == pytest.approx(total)
    assert np.exp(row["score"]) == pytest.approx(row["prediction"])
    importances = done("explain", "m.arb", "t.parquet")["importances"]
    assert {"gain", "shap", "permutation"} <= importances[0].keys()
    assert done("inspect", "m.arb")["offset"] == ["log exposure"]
    shown = run("explain", "m.arb", "t.parquet", "--row", "3")
    assert "offset" in shown.out
    assert "log exposure" in run("inspect", "m.arb").out


def test_text_columns_of_the_offset_hold_decimals(here):
    """The first rows of a column may be whole numbers, and those of a model are not."""
    train("-o", "m.arb", "--holdout", "0")
    values = [0] * 300_000 + [0.5]
    table = pyarrow.table({"a": values, "b": values, "log exposure": values})
    csv.write_csv(table.slice(0, 300_000), "many.csv")
    with open("many.csv", "a", encoding="ascii") as file:
        file.write("0.5,0.5,0.5\n")
    done("predict", "m.arb", "many.csv", "-o", "out.parquet")
    found = parquet.read_table("out.parquet")["prediction"].to_numpy()
    np.testing.assert_array_equal(
        found[[0, -1]],
        arboost.load("m.arb").predict({name: [0.0, 0.5] for name in table.column_names}),
    )


def test_models_of_arrays_are_told_the_column(here):
    model = arboost.GradientBoostingRegressor(loss="poisson", n_estimators=5)
    features = TABLE.select(["a", "b"])
    model.fit(features, TABLE["claims"].to_numpy(), offset=START).save("m.arb")
    given = ["--offset", "log exposure"]
    expected = model.predict(features, offset=START)
    done("predict", "m.arb", "t.parquet", "-o", "out.parquet", *given)
    found = parquet.read_table("out.parquet")["prediction"]
    np.testing.assert_array_equal(found, expected)
    rmse = np.sqrt(np.mean((expected - TABLE["claims"].to_numpy()) ** 2))
    found = done("evaluate", "m.arb", "t.parquet", "-t", "claims", *given)
    assert score(found, "RMSE") == pytest.approx(rmse)
    done("report", "m.arb", "t.parquet", "-t", "claims", "-o", "r.html", *given)
    done("explain", "m.arb", "t.parquet", "-t", "claims", *given)
    for line in (
        ["predict", "m.arb", "t.parquet", "-o", "out.parquet"],
        ["evaluate", "m.arb", "t.parquet", "-t", "claims"],
        ["report", "m.arb", "t.parquet", "-t", "claims"],
        ["explain", "m.arb", "t.parquet", "--row", "0"],
    ):
        result = run(*line)
        assert result.code != 0
        assert "Add --offset COLUMN" in " ".join(result.err.split())


def test_classes_have_a_column_each(here):
    ignored = ["--ignore", "claims,log exposure"]
    given = ["--offset", "of x,of y", "--offset", "of z"]
    line = ["train", "t.parquet", "-t", "class", "--n-estimators", "5", *given, *ignored]
    done(*line, "-o", "m.arb", "--holdout", "0")
    model = arboost.load("m.arb")
    assert model.schema.offset == ("of x", "of y", "of z")
    assert model.schema.names == ("a", "b")
    done("predict", "m.arb", "t.csv", "-o", "out.parquet", "--proba")
    found = parquet.read_table("out.parquet").to_pandas().to_numpy()
    np.testing.assert_array_equal(
        found, model.predict_proba(TABLE.select([*"ab", *model.schema.offset]))
    )


def test_tune_scores_with_the_offset(here):
    pytest.importorskip("optuna")
    line = ["tune", "t.parquet", "-t", "claims", *TRAIN, "--trials", "2", *IGNORED]
    found = done(*line, "--offset", "log exposure", "-o", "m.arb")
    without = done(*line, "--ignore", "log exposure", "-o", "other.arb")
    assert found["default_score"] < without["default_score"]
    assert arboost.load("m.arb").schema.offset == ("log exposure",)
    result = run(*line, "--offset", "log exposure", "-o", "m.arb", "--params-out", "p.toml")
    assert "--offset 'log exposure'" in " ".join(result.out.split())


REFUSED = {
    "no column": (["--offset", "exposure"], "the table has no such column"),
    "target": (["--offset", "claims"], "--offset claims is also the target"),
    "forest": (
        ["--offset", "log exposure", "--model", "random_forest"],
        "--offset is for gradient_boosting",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("command", ["train", "tune"])
def test_bad_offsets_are_refused(here, case, command):
    if command == "tune":
        pytest.importorskip("optuna")
    more, message = REFUSED[case]
    result = run(command, "t.parquet", "-t", "claims", *more)
    assert result.code != 0
    assert message in " ".join(result.err.split())


def test_other_models_refuse_the_option(here):
    line = ["train", "t.parquet", "-t", "claims", "--n-estimators", "2", *IGNORED, "-o", "m.arb"]
    done(*line, "--task", "regression")
    result = run("predict", "m.arb", "t.parquet", "-o", "o.csv", "--offset", "log exposure")
    assert result.code != 0
    assert "trained without an offset" in " ".join(result.err.split())
