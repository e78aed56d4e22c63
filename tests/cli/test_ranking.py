"""--qid of the command line: rankings of train, evaluate and predict."""

from __future__ import annotations

import json

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import arboost
from support.command_line import run

N = 900
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
QUERY = RNG.permutation(np.arange(N) // 10)
TABLE = pyarrow.table(
    {
        "a": X[:, 0],
        "b": X[:, 1],
        "grade": np.clip(np.round(X[:, 0] + 0.3 * RNG.normal(size=N)), 0, 4).astype(int),
        "query": [f"q{number}" for number in QUERY],
        "weight": 1.0 + QUERY % 2,
    }
)
FAST = ["--n-estimators", "20", "--learning-rate", "0.3"]
IGNORED = ["--ignore", "weight"]
WEIGHTS = ["--weight", "weight"]
TRAIN = ["train", "t.parquet", "-t", "grade", "--qid", "query", "-o", "m.arb", *FAST]


@pytest.fixture
def here(tmp_path, monkeypatch):
    parquet.write_table(TABLE, tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def done(*line):
    result = run(*line, "--json", "-q")
    assert result.code == 0, result.err
    return json.loads(result.out)


def values(found):
    return {score["name"]: score["value"] for score in found["scores"]}


def test_train_holds_out_whole_queries(here):
    found = done(*TRAIN, *WEIGHTS)
    assert found["task"] == "ranking"
    assert "18 of 90 queries" in found["split"]
    model = arboost.load("m.arb")
    assert model.kind == "ranker"
    assert model.schema.names == ("a", "b")
    scored = done(
        "evaluate", "m.arb", "t.parquet", "--held-out", "--qid", "query", "--weight", "weight"
    )
    assert values(scored) == values(found)
    assert list(values(found)) == ["NDCG@5", "NDCG@10", "MAP@10", "MRR"]
    assert values(found)["NDCG@10"] > 0.8
    assert "random" in scored["baseline"]


def test_model_of_all_rows_is_that_of_the_library(here):
    done(
        *TRAIN,
        "--task",
        "ranking",
        "--holdout",
        "0",
        "--target-metric",
        "map",
        "--ignore",
        "weight",
    )
    ranker = arboost.GradientBoostingRanker(n_estimators=20, learning_rate=0.3, target_metric="map")
    ranker.fit(TABLE.drop_columns(["weight"]), "grade", qid="query")
    features = TABLE.select(["a", "b"])
    assert np.array_equal(arboost.load("m.arb").predict(features), ranker.predict(features))
    in_batches = done(*TRAIN, "--target-metric", "map", *IGNORED, "--memory-limit", "1GB")
    assert in_batches["task"] == "ranking"
    assert np.array_equal(arboost.load("m.arb").predict(features), ranker.predict(features))


def test_folds_and_text(here):
    result = run(*TRAIN, "--folds", "3", *IGNORED)
    assert result.code == 0, result.err
    assert "3 folds of whole queries" in result.err
    assert "NDCG@10" in result.out
    assert "arboost report" not in result.out
    result = run(*TRAIN, *IGNORED)
    assert "arboost evaluate m.arb t.parquet --held-out --qid query" in result.out


def test_queries_are_needed_where_they_are(here):
    done(*TRAIN, *IGNORED)
    result = run("evaluate", "m.arb", "t.parquet")
    assert result.code != 0
    assert "scored query by query" in result.err
    result = run("report", "m.arb", "t.parquet")
    assert result.code != 0
    assert "not available for rankers" in result.err
    done("train", "t.parquet", "-t", "grade", "-o", "r.arb", "--task", "regression", *FAST)
    result = run("evaluate", "r.arb", "t.parquet", "--qid", "query")
    assert result.code != 0
