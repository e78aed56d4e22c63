"""Rows that a model was trained on, and those that were held out: found again in any table."""

import json
import shlex
from datetime import datetime

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pytest
from pyarrow import csv, feather, parquet

import arboost
from arboost.cli import row_record
from arboost.cli.model_files import SPLIT
from arboost.cli.models import MODELS
from arboost.cli.row_record import RowRecord, RowSample, row_hashes
from support.command_line import run, run_failing

N_ROWS = 600


def _table(seed=0, n_rows=N_ROWS):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n_rows)
    day = np.datetime64("2024-01-01") + np.arange(n_rows).astype("timedelta64[h]")
    town = rng.choice(["Rome", "Oslo", "0123", "Bonn, \u00fc"], n_rows).tolist()
    town[3] = None
    return pyarrow.table(
        {
            "size": pyarrow.array(size, mask=rng.random(n_rows) < 0.05),
            "small": pyarrow.array(rng.normal(size=n_rows).astype(np.float32)),
            "count": rng.integers(0, 50, n_rows),
            "town": pyarrow.array(town).dictionary_encode(),
            "new": rng.random(n_rows) < 0.5,
            "when": day.astype("datetime64[us]"),
            "price": np.round(size + rng.normal(size=n_rows), 3),
            "customer": rng.integers(0, 60, n_rows),
            "w": rng.integers(1, 4, n_rows),
        }
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a table and a model, and the scores of the training."""
    folder = tmp_path_factory.mktemp("held")
    parquet.write_table(_table(), folder / "t.parquet")
    line = ["train", folder / "t.parquet", "-t", "price", "--ignore", "customer,w"]
    result = run(*line, "-o", folder / "m.arb", "--n-estimators", "30", "--json", "-q")
    assert result.code == 0, result.err
    return folder, json.loads(result.out)


@pytest.fixture
def here(trained, tmp_path, monkeypatch):
    for name in ("t.parquet", "m.arb"):
        (tmp_path / name).write_bytes((trained[0] / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _values(scores):
    return {one["name"]: one["value"] for one in scores}


def _evaluated(*line):
    result = run("evaluate", *line, "--json")
    assert result.code == 0, result.err
    return json.loads(result.out), result.err


WRITERS = {
    "t2.parquet": parquet.write_table,
    "t2.csv": csv.write_csv,
    "t2.arrow": feather.write_feather,
    "t2.jsonl": lambda table, path: path.write_text(
        "".join(json.dumps(row, default=datetime.isoformat) + "\n" for row in table.to_pylist())
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_scores_of_the_training(trained, here, name):
    scores = _values(trained[1]["scores"])
    table = _table()
    order = np.random.default_rng(1).permutation(N_ROWS)
    other = table.take(order).select(table.column_names[::-1])
    WRITERS[name](other.append_column("more", [range(N_ROWS)]), here / name)
    found, _ = _evaluated("m.arb", name, "--held-out")
    assert found["held_out"]
    assert found["rows"] == trained[1]["held_out_rows"] == N_ROWS // 5
    for score, value in _values(found["scores"]).items():
        assert value == pytest.approx(scores[score], rel=1e-6)


def test_the_next_line_of_train(here):
    lines = run("train", "t.parquet", "-t", "price", "--weight", "w", "-o", "a model.arb").out
    report = next(line.split("arboost ")[1] for line in lines.splitlines() if "report" in line)
    assert "--held-out" in report
    assert "--weight w" in report
    result = run(*shlex.split(report), "--json")
    assert json.loads(result.out)["rows"] == N_ROWS // 5
    page = (here / "report.html").read_text(encoding="utf-8")
    assert "120 held-out rows of 600" in page


def test_large_tables_are_scored_in_part(here, monkeypatch):
    monkeypatch.setattr(row_record, "_MOST_HELD_OUT", 50)
    monkeypatch.setattr(row_record, "_MOST_TRAINED", 50)
    assert run("train", "t.parquet", "-t", "price", "-o", "p.arb", "-q").code == 0
    found, err = _evaluated("p.arb", "t.parquet", "--held-out")
    assert found["rows"] == 50
    assert "t.parquet: 50 held-out rows of 600, of 120 that were held out" in err


def test_trained_rows_are_named(here):
    found, err = _evaluated("m.arb", "t.parquet")
    assert found["trained_share"] == pytest.approx(0.8, abs=0.01)
    assert "trained on 80% of the rows of t.parquet: scores are too good; --held-out" in err
    result = run("report", "m.arb", "t.parquet", "-o", "page.html")
    assert "trained on 80% of the rows" in result.err
    assert "was trained on 80% of the rows" in (here / "page.html").read_text(encoding="utf-8")


def test_new_rows(here):
    parquet.write_table(_table(seed=5), "new.parquet")
    found, err = _evaluated("m.arb", "new.parquet")
    assert found["trained_share"] == 0
    assert "warning" not in err
    code, line = run_failing("evaluate", "m.arb", "new.parquet", "--held-out", "-q")
    assert code == 3
    assert "new.parquet has none of the 120 rows that were held out" in line


def test_rows_of_few_values_mean_nothing(here):
    rng = np.random.default_rng(0)
    table = pyarrow.table({"x": rng.integers(0, 9, 2000), "y": rng.integers(0, 2, 2000)})
    parquet.write_table(table, "few.parquet")
    assert run("train", "few.parquet", "-t", "y", "-o", "few.arb", "-q").code == 0
    assert "warning" not in _evaluated("few.arb", "few.parquet")[1]
    code, line = run_failing("evaluate", "few.arb", "few.parquet", "--held-out", "-q")
    assert code == 2
    assert "every held-out row has the values of a row that was trained on" in line


@pytest.mark.parametrize(
    "options",
    [["--holdout", "0"], ["--refit"], ["--folds", "2"], ["--memory-limit", "1GB"], ["tune"]],
    ids=lambda options: options[0],
)
def test_all_rows_are_trained_on(here, options):
    common = ["t.parquet", "-t", "price", "--ignore", "customer,w", "-o", "all.arb"]
    line = ["tune", *common, "--trials", "1", "-m", "decision_tree"]
    if options != ["tune"]:
        line = ["train", *common, "--n-estimators", "5", *options]
    result = run(*line)
    assert result.code == 0, result.err
    assert "--held-out" not in result.out
    found, err = _evaluated("all.arb", "t.parquet")
    assert found["trained_share"] == 1
    assert "100% of the rows of t.parquet: scores are too good; score rows that are new" in err
    code, text = run_failing("evaluate", "all.arb", "t.parquet", "--held-out", "-q")
    assert code == 2
    assert "--held-out has nothing to score: the model was trained on all rows" in text


@pytest.mark.parametrize(
    "options", [["--groups", "customer"], ["--time-column", "when"], ["--holdout", "0.3"]]
)
def test_other_splits(here, options):
    line = ["train", "t.parquet", "-t", "price", "--ignore", "w", *options, "-o", "s.arb"]
    fitted = json.loads(run(*line, "--n-estimators", "5", "--json", "-q").out)
    found, _ = _evaluated("s.arb", "t.parquet", "--held-out")
    assert found["rows"] == fitted["held_out_rows"] == N_ROWS - fitted["training_rows"]
    assert _values(found["scores"]) == pytest.approx(_values(fitted["scores"]))


@pytest.mark.parametrize("model", MODELS)
def test_all_models(here, model):
    line = ["train", "t.parquet", "-t", "new", "--ignore", "w", "-m", model, "-o", "k.arb"]
    small = {} if model in ("decision_tree", "voting", "stacking") else {"n_estimators": 3}
    result = run(*line, "-q", *(f"--set={name}={value}" for name, value in small.items()))
    assert result.code == 0, result.err
    assert _evaluated("k.arb", "t.parquet", "--held-out")[0]["rows"] == N_ROWS // 5


def test_json_models_and_conversion(here):
    assert run("convert", "m.arb", "m.json", "-q").code == 0
    assert _evaluated("m.json", "t.parquet", "--held-out")[0]["rows"] == N_ROWS // 5
    shown = json.loads(run("inspect", "m.arb", "--json").out)["provenance"][SPLIT]
    assert shown == {"held_out": 120, "trained": 480}


def test_models_of_python(here):
    table = _table()
    model = arboost.GradientBoostingRegressor(n_estimators=2)
    model.fit(table.drop_columns(["customer", "w"]), "price").save("python.arb")
    found, err = _evaluated("python.arb", "t.parquet")
    assert found["trained_share"] == 0
    assert "warning" not in err
    code, line = run_failing("evaluate", "python.arb", "t.parquet", "--held-out", "-q")
    assert code == 2
    assert "needs a model of arboost train" in line


def test_another_target(here):
    line = ["evaluate", "m.arb", "t.parquet", "-t", "w", "--held-out", "-q"]
    assert "--held-out finds rows by the target 'price'" in run_failing(*line)[1]
    assert run(*line[:-2]).code == 0


@pytest.mark.parametrize(
    "change",
    [
        {"held_out": None},
        {"held_out": {"rows": 1}},
        {"trained": {"keys": "!"}},
        {"trained": {"keys": "AAAA"}},
        {"trained": {"kept": 10**12}},
        {"trained": {"range": 2**60}},
        {"trained": {"below": "-1"}},
        {"repeated": "x"},
    ],
)
def test_damaged_records(here, change):
    model = arboost.load("m.arb")
    record = dict(model.provenance[SPLIT])
    for name, value in change.items():
        record[name] = {**record[name], **value} if isinstance(value, dict) else value
    if change == {"held_out": {"rows": 1}}:
        del record["held_out"]["keys"]
    model.with_provenance({SPLIT: record}).save("damaged.arb")
    code, line = run_failing("evaluate", "damaged.arb", "t.parquet", "-q")
    assert code == 4
    assert "damaged record of its rows" in line


def _next_of_tune(*options):
    result = run("tune", "t.csv", *options, "--trials", "1", "-m", "decision_tree", "-q")
    assert result.code == 0, result.err
    words = " ".join(result.out.split("next: arboost ")[1].split("\n"))
    return shlex.split(words)


@pytest.mark.parametrize(
    ("options", "n_features"),
    [
        (["-t", "price", "--ignore", "customer,w"], 6),
        (["-t", "price", "--ignore", "customer", "--ignore", "when", "--weight", "w"], 5),
        (["-t", "price", "--groups", "customer", "--seed", "7"], 7),
        (["-t", "count", "--task", "classification", "--drop-missing-target"], 8),
    ],
)
def test_the_next_line_of_tune(here, options, n_features):
    options_of_file = csv.WriteOptions(delimiter="|")
    csv.write_csv(_table(), here / "t.csv", options_of_file)
    given = [*options, "--delimiter", "|", "-o", "u.arb", "--params-out", "best one.toml"]
    line = _next_of_tune(*given)
    assert line[0] == "train"
    result = run(*line, "-o", "v.arb", "--json", "-q")
    assert result.code == 0, result.err
    assert json.loads(result.out)["features"] == n_features
    assert arboost.load("u.arb").feature_names == arboost.load("v.arb").feature_names
    for name in options:
        assert name in line or name in ("-t", "-q")


class TestHashes:
    def test_of_values(self):
        table = _table()
        names = table.column_names
        whole = row_hashes(table, names)
        assert len(np.unique(whole)) == N_ROWS
        parts = [row_hashes(table.slice(at, 7), names[::-1]) for at in range(0, N_ROWS, 7)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
        chunks = pyarrow.concat_tables([table.slice(at, 50) for at in range(0, N_ROWS, 50)])
        np.testing.assert_array_equal(row_hashes(chunks, names), whole)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ([1, 2, None], [1.0, 2.0, float("nan")]),
            ([True, False], [1, 0]),
            ([0.1, -0.0], pyarrow.array([0.1, 0.0], pyarrow.float32())),
            (["a", ""], ["a", None]),
            (pyarrow.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
            (
                pyarrow.array([1, 2], pyarrow.date32()),
                pyarrow.array([86400, 172800], "timestamp[s]"),
            ),
            (pyarrow.array(["1.50"]).cast(pyarrow.decimal128(5, 2)), [1.5]),
            (pyarrow.nulls(2), [None, float("nan")]),
        ],
    )
    def test_of_equal_values(self, one, other):
        tables = [pyarrow.table({"x": part}) for part in (one, other)]
        assert row_hashes(tables[0], ["x"]).tolist() == row_hashes(tables[1], ["x"]).tolist()

    def test_of_other_values(self):
        table = pyarrow.table(
            {"a": [1, 2, 1, 2, None, 1], "b": [2, 1, 1.5, None, 2, 2**53 + 2.0], "c": ["x"] * 6}
        )
        assert len(set(row_hashes(table, ["a", "b", "c"]).tolist())) == 6
        swapped = table.rename_columns(["b", "a", "c"])
        hashes = [row_hashes(one, ["a", "b", "c"]) for one in (table, swapped)]
        assert not (hashes[0] == hashes[1]).any()


class TestSets:
    def _hashes(self, seed, n_rows):
        numbers = np.random.default_rng(seed).integers(0, 2**64, n_rows, np.uint64)
        return numbers

    def test_large_tables_keep_a_sample(self):
        held_out, trained = self._hashes(0, 200_000), self._hashes(1, 800_000)
        record = RowRecord.of("y", RowSample(trained), RowSample(held_out))
        assert len(json.dumps(record.to_json())) < 65_000
        found = record.held_out.has(held_out)
        assert found.sum() == pytest.approx(1 << 14, rel=0.01)
        assert not record.held_out.has(trained).any()
        others = self._hashes(2, 2_000_000)
        assert record.held_out.has(others).sum() < 12  # 160,000 of them are covered
        assert record.trained_share(np.concatenate([held_out, trained])) == pytest.approx(
            0.8, abs=0.02
        )

    def test_samples_in_parts(self):
        hashes = self._hashes(0, 600_000)
        hashes[::3] = hashes[1::3]
        whole, parts = RowSample(hashes), RowSample()
        for part in np.array_split(hashes[::-1], 13):
            parts.add(part)
        record = [RowRecord.of("y", sample).to_json() for sample in (whole, parts)]
        assert record[0]["trained"] == record[1]["trained"]
        assert record[0]["repeated"] == pytest.approx(2 / 3, abs=0.01)
        assert record[1]["repeated"] == pytest.approx(2 / 3, abs=0.01)

    def test_round_trip(self):
        for n_rows in (0, 1, 2, 1000):
            record = RowRecord.of(
                "y", RowSample(self._hashes(3, 50)), RowSample(self._hashes(4, n_rows))
            )
            text = json.dumps(record.to_json())
            model = type("Model", (), {"provenance": {SPLIT: json.loads(text)}})
            again = RowRecord.of_model(model)
            assert again.held_out.has(self._hashes(4, n_rows)).all()
            assert json.dumps(again.to_json()) == text


def test_times_of_zones():
    table = pyarrow.table({"t": pyarrow.array([0, 10**6], pyarrow.timestamp("us"))})
    zone = pyarrow.timestamp("ms", "Asia/Tokyo")
    zoned = pyarrow.table({"t": pc.assume_timezone(table["t"], "UTC").cast(zone)})
    assert row_hashes(table, ["t"]).tolist() == row_hashes(zoned, ["t"]).tolist()
