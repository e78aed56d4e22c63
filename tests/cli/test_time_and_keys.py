"""Rows in the order of time: searched, and read in batches. Columns that name the row are said."""

import json
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

import arboost
from arboost.models.files.model_file import to_bytes
from support.command_line import run, run_failing

N_ROWS = 3000


def _table(n_rows=N_ROWS):
    """Return rows in the order of time, whose target drifts."""
    rng = np.random.default_rng(0)
    x, day = rng.normal(size=n_rows), np.sort(rng.integers(0, n_rows // 3, n_rows))
    y = np.round(x + 2 * day / n_rows + 0.3 * rng.normal(size=n_rows), 4)
    return pyarrow.table(
        {
            "id": np.arange(n_rows) + 7,
            "code": rng.permutation(n_rows) * 3.0,
            "x": x,
            "count": rng.integers(0, 9, n_rows),
            "day": day,
            "w": rng.integers(1, 4, n_rows),
            "y": y,
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = _table()
    parquet.write_table(table, "t.parquet", row_group_size=700)
    csv.write_csv(table, "t.csv")
    order = np.random.default_rng(1).permutation(N_ROWS)
    parquet.write_table(table.take(order), "mixed.parquet")
    return tmp_path


FEATURES = ["--ignore", "id,code"]
TIME = ["-t", "y", "--time-column", "day", *FEATURES]


def _json(*line):
    result = run(*line, "--json", "-q")
    assert result.code == 0, result.err
    return json.loads(result.out)


@pytest.mark.parametrize("model", ["gradient_boosting", "random_forest"])
def test_batches_are_the_table(here, model):
    """The model file, with its record of rows, and the scores are those of a fit in memory."""
    line = [*TIME, "--weight", "w", "-m", model, "--n-estimators", "12"]
    whole = _json("train", "t.parquet", *line, "-o", "whole.arb")
    for data in ("t.parquet", "t.csv"):
        parts = _json("train", data, *line, "-o", "parts.arb", "--memory-limit", "200MB")
        for name in ("rows", "training_rows", "held_out_rows", "split", "scores", "features"):
            assert parts[name] == whole[name], name
        assert parts["held_out_rows"] == N_ROWS // 5
        models = [arboost.load(name) for name in ("parts.arb", "whole.arb")]
        assert models[0].provenance["split"] == models[1].provenance["split"]
        # In memory, the fit of a given number of rounds also records a curve.
        assert len({to_bytes(replace(one, provenance={})) for one in models}) == 1
    found = _json("evaluate", "parts.arb", "mixed.parquet", "--held-out", "--weight", "w")
    assert found["scores"][0]["value"] == pytest.approx(whole["scores"][0]["value"])


def test_automatic_rounds_are_the_same(here):
    line = [*TIME, "--holdout", "0.3"]
    whole = _json("train", "t.parquet", *line, "-o", "whole.arb")
    parts = _json("train", "t.parquet", *line, "-o", "parts.arb", "--memory-limit", "200MB")
    assert parts["trees"] == whole["trees"]
    assert parts["held_out_rows"] == 900
    assert (here / "parts.arb").read_bytes() == (here / "whole.arb").read_bytes()


def test_without_held_out_rows(here):
    line = [*TIME, "--holdout", "0", "--n-estimators", "5"]
    found = _json("train", "t.parquet", *line, "-o", "all.arb", "--memory-limit", "200MB")
    assert (found["training_rows"], found["held_out_rows"], found["scores"]) == (N_ROWS, 0, [])


def test_few_rows_are_scored_where_memory_is_short(here, monkeypatch):
    from arboost.cli import training

    monkeypatch.setattr(training, "_SHARE_OF_LIMIT", 200e6 / 8_000)
    result = run(
        *("train", "t.parquet", *TIME, "--n-estimators", "5", "--memory-limit", "200MB", "--json")
    )
    found = json.loads(result.out)
    assert "of 600 held-out rows are scored" in result.err
    assert found["held_out_rows"] == 600
    assert len(found["scores"]) == 3


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["mixed.parquet", *TIME], 3, "the rows must be in the order of time, but row "),
        (["t.parquet", *TIME, "--refit"], 2, "--refit needs the table in memory"),
        (["t.parquet", "-t", "y", "--holdout", "0.3"], 2, "--holdout needs the table in memory"),
        (["t.parquet", "-t", "y", "--time-column", "dya"], 3, "--time-column dya"),
    ],
)
def test_refusals(here, options, code, text):
    found, line = run_failing("train", *options, "--memory-limit", "200MB", "-q", "-o", "m.arb")
    assert found == code
    assert text in line
    assert not (here / "m.arb").exists()


def test_tune_scores_later_rows(here, monkeypatch):
    from arboost.selection import trials

    seen = []
    make_trials = trials.make_trials

    def recorded_trials(estimator, rows, splits, *more):
        seen.append((rows, splits))
        return make_trials(estimator, rows, splits, *more)

    monkeypatch.setattr(trials, "make_trials", recorded_trials)
    line = ["tune", "mixed.parquet", *TIME, "-m", "decision_tree", "--trials", "2", "-o", "b.arb"]
    result = run(*line, "--params-out", "best.toml", "-q")
    assert result.code == 0, result.err
    assert "--time-column day" in result.out
    ((rows, splits),) = seen
    assert rows.table.X.column_names == ["x", "count", "w"]
    assert len(splits) == 5
    assert all(train.max() < held_out.min() for train, held_out in splits)
    _json(*line, "--folds", "3")
    assert len(seen[1][1]) == 3
    parquet.write_table(_table(6000), "t.parquet")
    _json("tune", "t.parquet", *line[2:])
    ((train, held_out),) = seen[2][1]
    assert (len(train), len(held_out), held_out.min()) == (4800, 1200, 4800)
    code, text = run_failing(*line, "--groups", "w")
    assert code == 2
    assert "--time-column and --groups are two splits" in text


@pytest.mark.parametrize(
    "line",
    [
        ["train", "t.parquet", "-m", "decision_tree", "-o", "k.arb"],
        ["train", "t.csv", "-m", "decision_tree", "-o", "k.arb", "--memory-limit", "200MB"],
        ["tune", "t.parquet", "-m", "decision_tree", "-o", "k.arb", "--trials", "1"],
        ["compare", "t.parquet", "-m", "baseline", "--folds", "2"],
    ],
    ids=lambda line: " ".join(line[:2]),
)
def test_keys_are_named(here, line):
    said = run(*line, "-t", "y").err
    text = "id is a row number and code has another whole number in each row: key-like columns say"
    assert f"warning: {text} nothing about new rows; --ignore id,code leaves them out" in said
    assert "key-like" not in run(*line, "-t", "y", *FEATURES).err


def test_other_numbers_are_no_keys(here):
    rng = np.random.default_rng(0)
    table = pyarrow.table(
        {
            "few": np.arange(60).repeat(50),
            "real": rng.normal(size=N_ROWS),
            "mostly": np.append(np.arange(N_ROWS - 1), 5),
            "empty": pyarrow.nulls(N_ROWS, pyarrow.int64()),
            "y": rng.normal(size=N_ROWS),
        }
    )
    parquet.write_table(table, "other.parquet")
    result = run("train", "other.parquet", "-t", "y", "-m", "decision_tree", "-o", "o.arb")
    assert "key-like" not in result.err
