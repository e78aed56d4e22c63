"""arboost evaluate, explain, inspect and convert."""

import json

import numpy as np
import pytest
from pyarrow import csv, parquet

import arboost
from support.command_line import run


def _json(*args):
    result = run(*args, "--json", "-q")
    assert result.code == 0, result.err
    return json.loads(result.out)


class TestEvaluate:
    def test_scores_are_those_of_the_metrics(self, here):
        found = _json("evaluate", "labels.arb", "rows.csv", "--metric", "kappa")
        scores = {score["name"]: score for score in found["scores"]}
        table = csv.read_csv("rows.csv")
        model = arboost.load("labels.arb")
        right = model.predict(table.select(list(model.feature_names))) == table["label"].to_numpy()
        assert scores["accuracy"]["value"] == pytest.approx(right.mean())
        for score in scores.values():
            assert score["low"] <= score["value"] <= score["high"]
        assert "kappa" in scores
        assert [one["class"] for one in found["classes"]] == ["high", "low"]

    def test_regression(self, here):
        found = _json("evaluate", "prices.arb", "rows.csv", "--metric", "mape", "--weight", "w")
        names = [score["name"] for score in found["scores"]]
        assert names == ["RMSE", "MAE", "R²", "mape"]

    def test_tables(self, here):
        result = run("evaluate", "labels.arb", "rows.csv")
        assert "95 % interval" in result.out
        assert "the most frequent class" in " ".join(result.out.split())
        assert "precision" in result.out

    def test_target_of_another_name(self, here):
        lines = (here / "rows.csv").read_text().replace("label", "truth", 1)
        (here / "rows.csv").write_text(lines)
        assert _json("evaluate", "labels.arb", "rows.csv", "-t", "truth")["target"] == "truth"

    def test_labels_that_look_like_numbers(self, here):
        text = (here / "rows.csv").read_text().replace(",high,", ",7,").replace(",low,", ",x,")
        (here / "mixed.csv").write_text(text)
        args = ("-t", "label", "-q", "-o", "mixed.arb", "--n-estimators", "2")
        assert run("train", "mixed.csv", *args).code == 0
        lines = [line for line in text.splitlines() if ",x," not in line]
        (here / "sevens.csv").write_text("\n".join(lines) + "\n")
        assert run("evaluate", "mixed.arb", "sevens.csv", "-q").code == 0

    def test_model_without_the_name_of_its_target(self, here):
        table = csv.read_csv("rows.csv")
        model = arboost.GradientBoostingClassifier(n_estimators=2)
        model.fit(table.select(["size", "city"]), table["label"].to_numpy()).save("arrays.arb")
        result = run("evaluate", "arrays.arb", "rows.csv", "-q")
        assert (result.code, "Add --target" in result.err) == (2, True)
        assert run("evaluate", "arrays.arb", "rows.csv", "-t", "label", "-q").code == 0


class TestExplain:
    def test_importances(self, here):
        found = _json("explain", "labels.arb", "rows.csv")["importances"]
        assert {one["feature"] for one in found} == {"size", "city"}
        assert set(found[0]) == {"feature", "gain", "shap", "permutation"}
        assert sum(one["gain"] for one in found) == pytest.approx(1.0)

    def test_without_rows_or_target(self, here):
        assert set(_json("explain", "labels.arb")["importances"][0]) == {"feature", "gain"}
        csv.write_csv(csv.read_csv("rows.csv").select(["size", "city"]), "features.csv")
        found = _json("explain", "labels.arb", "features.csv")
        assert set(found["importances"][0]) == {"feature", "gain", "shap"}

    def test_rows_without_a_target(self, here):
        """They have SHAP values, and no part in the permutation importances."""
        table = csv.read_csv("rows.csv")
        price = table["price"].to_pylist()
        price[5] = None
        index = table.column_names.index("price")
        csv.write_csv(table.set_column(index, "price", [price]), "some.csv")
        result = run("explain", "prices.arb", "some.csv")
        assert result.code == 0, result.err
        assert "1 row without price left out" in result.err
        assert "SHAP values of 300 rows" in result.err
        assert "permutation importances of 299 rows" in result.err

    def test_row(self, here):
        found = _json("explain", "prices.arb", "rows.csv", "--row", "7")
        steps = sum(one["shap"] for one in found["contributions"])
        assert found["expected_value"] + steps == pytest.approx(found["prediction"])
        result = run("explain", "prices.arb", "rows.csv", "--row", "7", "-q")
        assert "expected value" in result.out
        assert "Row 7: prediction" in result.out

    def test_file(self, here):
        run("explain", "prices.arb", "rows.csv", "-o", "shap.parquet", "-q")
        table = parquet.read_table("shap.parquet")
        assert table.column_names == ["size", "city", "expected_value"]
        total = np.sum([column.to_numpy() for column in table.columns], axis=0)
        model = arboost.load("prices.arb")
        rows = csv.read_csv("rows.csv").select(["size", "city"])
        assert total == pytest.approx(model.predict(rows))

    def test_several_classes(self, here):
        run("train", "rows.csv", "-t", "city", "-q", "-o", "c.arb", "--n-estimators", "2")
        found = _json("explain", "c.arb", "rows.csv", "--row", "0", "--class", "Oslo")
        assert found["output"] == "score of class Oslo"
        run("explain", "c.arb", "rows.csv", "-o", "shap.csv", "-q")
        names = csv.read_csv("shap.csv").column_names
        assert "size Rome" in names
        assert "expected_value Oslo" in names

    def test_ensemble(self, here):
        args = ("-t", "price", "-q", "-o", "e.arb", "--n-estimators", "3", "--ignore", "label,when")
        assert run("train", "rows.csv", "-m", "bagging", *args).code == 0
        assert set(_json("explain", "e.arb", "rows.csv")["importances"][0]) == {"feature", "shap"}

    def test_ensemble_without_shap_values(self, here):
        args = ("-t", "price", "-q", "-o", "v.arb", "--set", "estimators=adaboost,decision_tree")
        assert run("train", "rows.csv", "-m", "voting", *args).code == 0
        result = run("explain", "v.arb", "rows.csv", "-q")
        assert result.code == 4
        assert result.err.count("\n") == 1


class TestInspect:
    def test_model(self, here):
        found = _json("inspect", "labels.arb")
        assert found["trees"] == 5
        assert found["target"] == "label"
        assert found["parameters"]["n_estimators"] == 5
        result = run("inspect", "labels.arb", "--params", "-q")
        assert "classifier" in result.out
        assert "learning_rate = " in result.out

    def test_tree(self, here):
        result = run("inspect", "labels.arb", "--tree", "0", "--depth", "1", "-q")
        assert result.out.startswith("tree 0 of 5")

    def test_table(self, here):
        found = _json("inspect", "rows.csv")
        kinds = {column["name"]: column["type"] for column in found["columns"]}
        assert kinds["size"] == "number"
        assert kinds["city"] == "category"
        assert "300 rows, 7 columns" in run("inspect", "rows.csv", "-q").out

    def test_ensemble(self, here):
        args = ("-t", "price", "-q", "-o", "e.arb", "--n-estimators", "3")
        run("train", "rows.csv", "-m", "bagging", *args)
        assert len(_json("inspect", "e.arb")["members"]) == 3
        assert "EnsemblePredictor" in run("inspect", "e.arb", "-q").out


class TestConvert:
    def test_json_and_back(self, here):
        assert run("convert", "labels.arb", "labels.json", "-q").code == 0
        assert run("convert", "labels.json", "again.arb", "-q").code == 0
        assert (here / "again.arb").read_bytes() == (here / "labels.arb").read_bytes()

    def test_c_and_onnx(self, here):
        assert run("convert", "labels.arb", "labels.h", "-q").code == 0
        assert "labels_predict" in (here / "labels.h").read_text()
        assert run("convert", "labels.arb", "labels.h", "--name", "my", "-q").code == 0
        assert "my_predict" in (here / "labels.h").read_text()
        assert run("convert", "labels.arb", "labels.onnx", "-q").code == 0
        assert (here / "labels.onnx").stat().st_size > 0

    def test_ensemble_has_no_c(self, here):
        run("train", "rows.csv", "-m", "bagging", "-t", "price", "-q", "-o", "e.arb")
        for output in ("e.h", "e.onnx", "e.json"):
            result = run("convert", "e.arb", output, "-q")
            assert result.code == 4, result
            assert not (here / output).exists()
