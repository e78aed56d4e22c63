"""arboost compare and arboost tune: tables, JSON, files, settings to reuse, bad command lines."""

import json
import os
import tomllib

import pytest

import arboost
from support.command_line import run, run_failing

FEATURES = ["--ignore", "id,when,w"]
LABEL = ["-t", "label", *FEATURES, "--ignore", "price"]
PRICE = ["-t", "price", *FEATURES, "--ignore", "label"]
FEW = ["--models", "decision_tree,random_forest", "-m", "baseline"]


def _json(*args):
    result = run(*args, "--json", "-q")
    assert result.code == 0, result.err
    assert result.err == ""
    return json.loads(result.out)


class TestCompare:
    def test_table(self, here):
        result = run("compare", "rows.csv", *LABEL, *FEW, "--folds", "2")
        assert result.code == 0, result.err
        for text in ("classification, 300 rows, 2 folds", "random_forest", "auc", "fit s"):
            assert text in result.out
        assert result.out.count("± se") == 2
        assert "task: classification" in result.err
        assert "compared 3 models" in result.err
        assert max(map(len, result.out.splitlines())) <= 80

    def test_json_has_the_result_of_the_library(self, here):
        found = _json("compare", "rows.csv", *PRICE, *FEW, "--folds", "3", "--seed", "2")
        assert (found["task"], found["metric"], found["n_folds"]) == ("regression", "rmse", 3)
        assert set(found["models"]) == {"decision_tree", "random_forest", "baseline"}
        assert found["best"] in ("decision_tree", "random_forest")
        assert len(found["models"]["baseline"]["scores"]) == 3
        other = _json("compare", "rows.csv", *PRICE, *FEW, "--folds", "3", "--seed", "2", "-j", "1")
        scores = [
            {name: one["scores"] for name, one in of["models"].items()} for of in (found, other)
        ]
        assert scores[0] == scores[1]

    def test_weights_groups_and_time(self, here):
        plain = ["compare", "rows.csv", "-t", "price", "--ignore", "id,label", *FEW]
        base = {"when", "w"}
        found = {}
        for option, name in (("--weight", "w"), ("--groups", "when"), ("--time-column", "when")):
            others = ",".join(base - {name})
            found[option] = _json(*plain, option, name, "--ignore", others, "--folds", "3")
        means = {option: one["models"]["baseline"]["mean"] for option, one in found.items()}
        assert len(set(means.values())) == 3
        assert {one["n_rows"] for one in found.values()} == {300}

    def test_metric(self, here):
        found = _json("compare", "rows.csv", *LABEL, *FEW, "--metric", "log_loss", "--folds", "2")
        assert (found["metric"], found["greater_is_better"]) == ("log_loss", False)


class TestTune:
    def test_model_and_parameters(self, here):
        result = run(
            *("tune", "rows.csv", *LABEL, "--trials", "3", "-o", "best.arb"),
            *("--params-out", "best.toml", "--folds", "2"),
        )
        assert result.code == 0, result.err
        assert "Best parameters" in result.out
        assert "n_estimators" in result.out
        line = "arboost train rows.csv --target label --config best.toml --ignore id,when,w"
        assert line in result.out
        assert "3 trials in" in result.err
        model = arboost.load("best.arb")
        settings = tomllib.loads((here / "best.toml").read_text())
        assert settings["model"] == "gradient_boosting"
        assert settings["parameters"]["n_estimators"] == model.n_rounds
        again = run(
            *("train", "rows.csv", *LABEL, "--config", "best.toml", "--holdout", "0"),
            *("-o", "again.arb", "--seed", "0", "-q"),
        )
        assert again.code == 0, again.err
        rows = [[0.1, "Rome"], [-1.0, "Oslo"]]
        table = {"size": [one[0] for one in rows], "city": [one[1] for one in rows]}
        assert (
            arboost.load("again.arb").predict_proba(table).tolist()
            == model.predict_proba(table).tolist()
        )

    def test_json_and_other_models(self, here):
        common = ["--trials", "3", "--folds", "2", "-o", "m.arb"]
        found = _json("tune", "rows.csv", *PRICE, "-m", "decision_tree", *common)
        assert (found["model"], found["task"], found["metric"]) == (
            "decision_tree",
            "regression",
            "rmse",
        )
        assert found["score"] <= found["default_score"]
        assert [one["number"] for one in found["trials"]] == [0, 1, 2]
        assert found["stop_reason"] == "trials"
        assert os.path.exists("m.arb")
        for model in ("voting", "bagging"):
            small = [*common, "--metric", "mae"]
            if model == "bagging":
                small += ["--n-estimators", "3"]
            assert _json("tune", "rows.csv", *PRICE, "-m", model, *small)["metric"] == "mae"

    def test_given_parameters_are_not_searched(self, here):
        common = ["--trials", "4", "--folds", "2", "-o", "m.arb", "-m", "random_forest"]
        given = ["--max-depth", "3", "--set", "n_estimators=4"]
        found = _json("tune", "rows.csv", *PRICE, *common, *given, "--params-out", "p.toml")
        assert all("max_depth" not in one["params"] for one in found["trials"])
        assert arboost.load("m.arb").n_trees == 4
        settings = tomllib.loads((here / "p.toml").read_text())
        assert settings["parameters"]["n_estimators"] == 4

    def test_a_parameter_of_one_task_asks_for_it(self, here):
        options = ["-t", "w", "--ignore", "id,when", "--set", "loss=poisson", "--trials", "1"]
        assert _json("tune", "rows.csv", *options)["task"] == "regression"

    def test_seconds(self, here):
        found = _json("tune", "rows.csv", *PRICE, "-m", "decision_tree", "--seconds", "0.3")
        assert found["stop_reason"] == "seconds"
        assert found["model_file"] == "rows.arb"


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (["compare", "rows.csv"], 2, "--target"),
        (["compare", "rows.csv", *LABEL, "--models", "random_forst"], 2, "random_forest"),
        (["compare", "rows.csv", *LABEL, "--folds", "x"], 2, "--folds"),
        (["compare", "rows.csv", *LABEL, "--metrc", "auc"], 2, "--metric"),
        (["compare", "none.csv", *LABEL], 3, "none.csv"),
        (["tune", "rows.csv", *LABEL, "--model", "forest"], 2, "random_forest"),
        (["tune", "rows.csv", *LABEL, "-o", "model.txt"], 2, ".arb"),
        (["tune", "rows.csv", *LABEL, "-o", "no/model.arb"], 5, "no"),
        (["tune", "rows.csv", *LABEL, "--params-out", "best.json"], 2, ".toml"),
        (["tune", "rows.csv", *LABEL, "--learning-rate", "-1"], 2, "learning_rate"),
        (["tune", "rows.csv", *LABEL, "--set", "depth=3"], 2, "max-depth"),
    ],
)
def test_bad_command_lines(here, args, code, text):
    before = sorted(os.listdir())
    found, line = run_failing(*args)
    assert found == code
    assert text in line
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (["compare", "-t", "pric"], 3, "price"),
        (["compare", "-t", "label", "--metric", "rmse"], 2, "for a classifier"),
        (["compare", "-t", "label", "--folds", "1"], 2, "folds=1"),
        (["compare", "-t", "label", "--weight", "city"], 3, "Weights must be numbers"),
        (["compare", "-t", "label", "--weight", "label"], 2, "also the target"),
        (["compare", "-t", "label", "--ignore", "label"], 2, "also the target"),
        (["compare", "-t", "label", "--groups", "w", "--time-column", "when"], 2, "one of them"),
        (["tune", "-t", "label", "--trials", "0"], 2, "trials=0"),
        (["tune", "-t", "label", "--seconds", "-1"], 2, "seconds=-1"),
        (["tune", "-t", "label", "--metric", "aucc"], 2, "auc"),
    ],
)
def test_bad_options_of_a_table(here, args, code, text):
    before = sorted(os.listdir())
    result = run(args[0], "rows.csv", *args[1:], "-q")
    assert (result.code, result.out) == (code, "")
    assert result.err.count("\n") == 1
    assert text in result.err
    assert sorted(os.listdir()) == before
