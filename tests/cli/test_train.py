"""arboost train: task, models, parameters, ways to hold out rows, outputs."""

import json
import os
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import arboost
from arboost.cli.errors import UsageFailure
from arboost.cli.models import MODELS, TASKS, declarations
from arboost.cli.parameters import check_parameters
from support.command_line import run

FAST = ["--n-estimators", "5", "-q"]
COLUMNS = ["--ignore", "id,when,w,price"]


def _json(*args, stdin=b""):
    result = run(*args, "--json", stdin=stdin)
    assert result.code == 0, result.err
    return json.loads(result.out)


class TestTask:
    def test_strings_are_classes(self, here):
        found = _json("train", "rows.csv", "-t", "label", *FAST)
        assert found["task"] == "classification"
        assert "2 distinct strings" in found["reason"]

    def test_decimals_are_amounts(self, here):
        found = _json("train", "rows.csv", "-t", "price", *FAST)
        assert found["task"] == "regression"
        assert [score["name"] for score in found["scores"]] == ["RMSE", "MAE", "R²"]

    def test_few_integers_are_classes_and_said_aloud(self, here):
        result = run("train", "rows.csv", "-t", "w", "--n-estimators", "5")
        assert result.code == 0
        assert "task: classification (w holds 3 distinct whole numbers; --task" in result.err

    @pytest.mark.parametrize("command", ["train", "compare", "tune"])
    def test_rows_without_a_target(self, here, command):
        """Refused with the remedy, and left out when asked to."""
        table = csv.read_csv("rows.csv").select(["size", "label"]).slice(0, 60)
        label = pa.array(["", *table.column("label").to_pylist()[1:-1], None])
        csv.write_csv(table.set_column(1, "label", label), "some.csv")
        options = {"train": FAST, "compare": ["-m", "baseline", "-q"], "tune": ["--trials", "1"]}
        args = [command, "some.csv", "-t", "label", *options[command]]
        refused = run(*args)
        assert refused.code == 3
        assert "missing in 2 of 60 rows, the first of them row 1. Use --drop-missing" in refused.err
        result = run(*[arg for arg in args if arg != "-q"], "--drop-missing-target")
        assert result.code == 0
        assert "2 rows without label left out" in result.err

    def test_overridden(self, here):
        found = _json("train", "rows.csv", "-t", "w", "--task", "regression", *FAST)
        assert found["task"] == "regression"

    def test_found_from_a_parameter(self, here):
        found = _json("train", "rows.csv", "-t", "w", "--loss", "poisson", *FAST)
        assert found["task"] == "regression"
        assert found["reason"].startswith("loss=poisson asks for it")

    def test_many_integers_are_amounts(self, here):
        assert _json("train", "rows.csv", "-t", "id", *FAST)["task"] == "regression"

    def test_truth_values(self, here):
        text = (here / "rows.csv").read_text()
        (here / "rows.csv").write_text(text.replace(",high,", ",true,").replace(",low,", ",false,"))
        assert _json("train", "rows.csv", "-t", "label", *FAST)["task"] == "classification"


class TestModels:
    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("target", ["label", "price"])
    def test_every_model_trains_and_predicts(self, model, target, here):
        params = ["--n-estimators", "3"] if "n_estimators" in declarations(model, TASKS[0]) else []
        if model in ("stacking", "voting"):
            params = ["--set", "estimators=decision_tree,extra_trees"]
        other = {"label": "price", "price": "label"}[target]
        found = _json(
            *("train", "rows.csv", "-t", target, "-m", model, "-o", "m.arb", "-q", *params),
            *("--ignore", f"id,when,w,{other}", "--jobs", "1"),
        )
        assert found["features"] == 2
        best = found["scores"][0]
        assert (best["value"] > best["baseline"]) == best["higher_is_better"]
        assert arboost.load("m.arb").schema.target == target
        assert run("predict", "m.arb", "rows.csv", "-o", "p.csv", "-q").code == 0
        assert run("evaluate", "m.arb", "rows.csv", "-q").code == 0

    def test_same_model_as_in_python(self, here):
        run("train", "rows.csv", "-t", "price", *FAST, "--holdout", "0", "-o", "m.arb")
        table = csv.read_csv("rows.csv")
        model = arboost.GradientBoostingRegressor(n_estimators=5).fit(table, "price").model_
        record = arboost.load("m.arb").provenance["split"]
        model.with_provenance({"split": record}).save("python.arb")
        assert (here / "m.arb").read_bytes() == (here / "python.arb").read_bytes()

    def test_seed_changes_model_and_rows(self, here):
        args = ("train", "rows.csv", "-t", "label", *FAST, *COLUMNS, "--subsample", "0.5")
        first, same, other = (_json(*args, "--seed", seed) for seed in ("1", "1", "2"))
        assert first["scores"] == same["scores"] != other["scores"]


class TestParameters:
    @pytest.mark.parametrize(
        ("args", "name", "value"),
        [
            (["--learning-rate", "0.05"], "learning_rate", 0.05),
            (["--learning_rate=0.05"], "learning_rate", 0.05),
            (["--set", "learning_rate=5e-2"], "learning_rate", 0.05),
            (["--no-bundling"], "bundling", False),
            (["--bundling"], "bundling", True),
            (["--bundling=no"], "bundling", False),
            (["--class-weight", '{"high": 2, "low": 1}'], "class_weight", {"high": 2, "low": 1}),
        ],
    )
    def test_values(self, args, name, value, here):
        found = _json("train", "rows.csv", "-t", "label", *FAST, *COLUMNS, *args)
        assert found["parameters"][name] == value

    def test_config_is_overridden_by_the_command_line(self, here):
        (here / "train.toml").write_text(
            'target = "label"\nholdout = 0.3\nignore = ["id", "when", "w", "price"]\n'
            "learning-rate = 0.2\n[parameters]\nn_estimators = 4\nmax_depth = 2\n"
        )
        found = _json("train", "rows.csv", "--config", "train.toml", "--max-depth", "3", "-q")
        assert found["parameters"] == {"learning_rate": 0.2, "n_estimators": 4, "max_depth": 3}
        assert found["features"] == 2
        assert found["training_rows"] == pytest.approx(210, abs=2)
        other = _json("train", "rows.csv", "--config", "train.toml", "--holdout", "0.5", "-q")
        assert other["training_rows"] == pytest.approx(150, abs=2)

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("x = ", "not TOML"),
            ("lerning_rate = 1", "learning-rate"),
            ("parameters = 3", "must be a table"),
            ("learning_rate = 'x'", "learning_rate='x'"),
        ],
    )
    def test_wrong_config(self, text, part, here):
        (here / "bad.toml").write_text(text)
        result = run("train", "rows.csv", "-t", "label", "--config", "bad.toml", "-q")
        assert result.code == 2
        assert part in result.err

    @pytest.mark.parametrize("model", MODELS)
    def test_help_lists_every_declared_parameter(self, model):
        result = run("train", "--help-params", "--model", model)
        assert result.code == 0
        for task in TASKS:
            for name, param in declarations(model, task).items():
                assert f"--{name.replace('_', '-')} " in result.out
                assert param.text.split()[0] in result.out

    @pytest.mark.parametrize("model", MODELS)
    def test_odd_values_are_refused_by_name(self, model):
        odd = ["", "x", "-1", "0", "1e400", "nan", "none", "[", "{}", "[[]]", "a=b", "1,2", "٣"]
        for name in {one for task in TASKS for one in declarations(model, task)}:
            for text in [*odd, '{"a": {"b": 1}}', "true", "[1, 'x']", "9" * 30]:
                with suppress(UsageFailure):  # no other error
                    check_parameters(model, {name: text}, TASKS)

    def test_python_types_are_those_of_the_declarations(self):
        for model in MODELS:
            for task in TASKS:
                estimator = getattr(arboost, MODELS[model].class_name(task))
                names = set(estimator._get_param_names())
                assert names <= set(declarations(model, task))


class TestRows:
    def test_default_hold_out(self, here):
        result = run("train", "rows.csv", "-t", "label", *COLUMNS, "--n-estimators", "5")
        assert "60 random rows (20 %) are held out" in result.err

    def test_refit(self, here):
        found = _json("train", "rows.csv", "-t", "label", *COLUMNS, *FAST, "--refit")
        assert found["training_rows"] == 300
        assert found["scores"]

    def test_all_rows(self, here):
        found = _json("train", "rows.csv", "-t", "label", *COLUMNS, *FAST, "--holdout", "0")
        assert (found["training_rows"], found["scores"]) == (300, [])

    def test_time(self, here):
        shuffled = csv.read_csv("rows.csv").take(np.random.default_rng(0).permutation(300))
        parquet.write_table(shuffled, "rows.parquet")
        args = ("-t", "label", *FAST, "--time-column", "when", "--ignore", "id,w,price")
        found = _json("train", "rows.parquet", *args)
        assert "latest 60 rows" in found["split"]
        assert found["features"] == 2

    def test_groups(self, here):
        args = ("-t", "label", *FAST, "--groups", "city", "--ignore", "id,w,price,when")
        found = _json("train", "rows.csv", *args)
        assert found["split"].startswith("1 of 3 groups")
        assert found["features"] == 1

    @pytest.mark.parametrize(
        "how", [[], ["--groups", "city"], ["--time-column", "when"], ["--weight", "w"]]
    )
    def test_folds(self, how, here):
        args = ("-t", "label", *FAST, "--folds", "3", "--ignore", "id,price", *how)
        found = _json("train", "rows.csv", *args)
        assert found["training_rows"] == 300
        low, high = (found["scores"][0][end] for end in ("low", "high"))
        assert low < found["scores"][0]["value"] < high

    def test_rare_class_stays_in_the_training_rows(self, here):
        text = (here / "rows.csv").read_text()
        (here / "rows.csv").write_text(text + "300,1,Rome,2024-01-30,1,rare,1\n")
        found = _json("train", "rows.csv", "-t", "label", *COLUMNS, *FAST)
        assert list(arboost.load(found["model_file"]).classes) == ["high", "low", "rare"]

    def test_batches(self, here):
        args = ("-t", "label", *COLUMNS, *FAST)
        run("train", "rows.csv", *args, "--memory-limit", "500MB", "-o", "batches.arb")
        run("train", "rows.csv", *args, "--holdout", "0", "-o", "whole.arb")
        assert (here / "batches.arb").read_bytes() == (here / "whole.arb").read_bytes()

    def test_out_of_bag_score(self, here):
        args = ("-m", "random_forest", "--n-estimators", "20", "--oob-score", "-q")
        result = run("train", "rows.csv", "-t", "label", *COLUMNS, *args)
        assert "out of bag" in result.out

    def test_forests_measure_out_of_bag_rows_by_default(self, here):
        args = ("train", "rows.csv", "-t", "label", *COLUMNS, "-q")
        for model, options, measures in (
            ("random_forest", [], True),
            ("random_forest", ["--no-oob-score"], False),
            ("random_forest", ["--n-estimators", "10"], False),
            ("random_forest", ["--no-bootstrap"], False),
            ("random_forest", ["--ccp-alpha", "0.01"], False),
            ("extra_trees", [], False),
            ("extra_trees", ["--bootstrap"], True),
            ("decision_tree", [], False),
        ):
            found = _json(*args, "-m", model, *options)
            assert (found["oob_score"] is not None) == measures, (model, options)
            history = arboost.load(found["model_file"]).provenance.get("history", {})
            assert ("out_of_bag" in history) == measures
            assert "oob_score" not in found["parameters"] or options == ["--no-oob-score"]

    def test_forests_in_batches_are_those_in_memory(self, here):
        args = ("-t", "label", *COLUMNS, "-m", "random_forest", "-q")
        run("train", "rows.csv", *args, "--memory-limit", "500MB", "-o", "batches.arb")
        run("train", "rows.csv", *args, "--holdout", "0", "-o", "whole.arb")
        assert (here / "batches.arb").read_bytes() == (here / "whole.arb").read_bytes()
        assert "out_of_bag" in arboost.load("whole.arb").provenance["history"]


@pytest.mark.parametrize("model", ["gradient_boosting", "random_forest"])
def test_jobs_do_not_change_the_model(model, here):
    args = ("train", "rows.csv", "-t", "label", "-m", model, *COLUMNS, *FAST)
    for jobs in ("1", "2", "4"):
        assert run(*args, "--jobs", jobs, "-o", f"{jobs}.arb").code == 0
    assert len({(here / f"{jobs}.arb").read_bytes() for jobs in (1, 2, 4)}) == 1


class TestInput:
    @pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".feather", ".jsonl", ".csv.gz"])
    def test_every_kind_gives_the_same_model(self, suffix, here):
        table = csv.read_csv("rows.csv").drop_columns(["when"])
        _write(table, here / f"other{suffix}")
        args = ("-t", "label", *FAST, "--ignore", "id")
        csv.write_csv(table, "plain.csv")
        run("train", f"other{suffix}", *args, "-o", "a.arb")
        run("train", "plain.csv", *args, "-o", "b.arb")
        assert (here / "a.arb").read_bytes() == (here / "b.arb").read_bytes()

    @pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
    def test_standard_input(self, kind, here):
        table = csv.read_csv("rows.csv").drop_columns(["when"])
        _write(table, here / f"other.{kind}")
        data = (here / f"other.{kind}").read_bytes()
        found = _json("train", "-", "--format", kind, "-t", "label", *FAST, stdin=data)
        assert found["rows"] == 300
        assert found["model_file"] == "model.arb"
        assert not [name for name in os.listdir(here) if "arboost-input" in name]

    def test_standard_input_in_batches(self, here):
        data = (here / "rows.csv").read_bytes()
        args = ("-t", "label", *COLUMNS, *FAST)
        found = _json("train", "-", "--format", "csv", "--memory-limit", "1GB", *args, stdin=data)
        assert found["rows"] == 300

    def test_data_of_a_config(self, here):
        (here / "all.toml").write_text('data = "rows.csv"\ntarget = "label"\nquiet = true\n')
        found = _json("train", "--config", "all.toml", "--n-estimators", "2")
        assert found["rows"] == 300

    def test_fault_of_the_standard_input_has_its_line(self, here):
        result = run("train", "-", "--format", "csv", "-t", "y", "-q", stdin=b"a,y\n1,2\n3\n")
        assert result.code == 3
        assert "The file '-' is malformed in line 3" in result.err

    def test_patterns_and_lists(self, here):
        table = csv.read_csv("rows.csv")
        for part in range(3):
            csv.write_csv(table.slice(100 * part, 100), f"part{part}.csv")
        args = ("-t", "label", *FAST, *COLUMNS, "--holdout", "0")
        names = []
        for number, given in enumerate((["part*.csv"], ["part0.csv", "part1.csv", "part2.csv"])):
            run("train", *given, *args, "-o", f"{number}.arb")
            names.append((here / f"{number}.arb").read_bytes())
        run("train", "rows.csv", *args, "-o", "whole.arb")
        assert names == [(here / "whole.arb").read_bytes()] * 2

    def test_types_of_the_whole_file_count(self, here):
        ones = "".join(f"{i % 9},{i % 2}\n" for i in range(200_000))
        (here / "late.csv").write_text(f"a,y\n{ones}0.5,1\n")
        found = _json("train", "late.csv", "-t", "y", *FAST)
        assert found["rows"] == 200_001

    def test_values_with_line_breaks(self, here):
        row = '"two\nlines",1\n"one",0\n'
        (here / "breaks.csv").write_text("a,y\n" + row * 100)
        found = _json("train", "breaks.csv", "-t", "y", *FAST)
        assert found["rows"] == 200

    def test_format_of_an_unknown_name(self, here):
        os.rename("rows.csv", "rows.txt")
        found = _json("train", "rows.txt", "--format", "csv", "-t", "label", *FAST)
        assert found["rows"] == 300


def _write(table, path):
    from pyarrow import feather

    name = path.name
    if name.endswith(".tsv"):
        csv.write_csv(table, path, csv.WriteOptions(delimiter="\t"))
    elif name.endswith(".parquet"):
        parquet.write_table(table, path)
    elif name.endswith((".feather", ".arrow")):
        feather.write_feather(table, path)
    elif name.endswith(".csv.gz"):
        with pa.CompressedOutputStream(str(path), "gzip") as out:
            csv.write_csv(table, out)
    elif name.endswith(".csv"):
        csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


class TestMemory:
    def test_large_table_is_read_in_batches(self, here, monkeypatch):
        monkeypatch.setattr("arboost.cli.training._SMALL", 0)
        monkeypatch.setattr("arboost.data.memory.available_bytes", lambda: 30_000)
        monkeypatch.setattr("arboost.data.memory._SHARE", 1e5)
        result = run("train", "rows.csv", "-t", "label", "--n-estimators", "5", "-o", "m.arb")
        assert result.code == 0, result.err
        assert "the table is read in batches" in result.err
        args = ("--folds", "3", "--n-estimators", "5", "-o", "m.arb")
        result = run("train", "rows.csv", "-t", "label", *args)
        assert "--memory-limit reads the table in batches" in result.err
