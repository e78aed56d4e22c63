"""arboost predict: the values of `predict`, kinds of outputs, kept columns, streams."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import arboost
from support.command_line import run


def _table(path):
    name = str(path)
    if name.endswith(".parquet"):
        return parquet.read_table(path)
    if name.endswith((".arrow", ".feather")):
        return feather.read_table(path)
    if name.endswith((".jsonl", ".jsonl.gz")):
        with pa.input_stream(name, compression="detect") as file:
            rows = [json.loads(line) for line in file.read().decode().splitlines()]
        return pa.Table.from_pylist(rows)
    tabs = csv.ParseOptions(delimiter="\t" if ".tsv" in name else ",")
    return csv.read_csv(path, parse_options=tabs)


def _expected(method="predict"):
    model = arboost.load("labels.arb")
    rows = csv.read_csv("rows.csv").select(list(model.feature_names))
    return getattr(model, method)(rows)


@pytest.mark.parametrize(
    "output", ["o.csv", "o.tsv", "o.csv.gz", "o.parquet", "o.feather", "o.jsonl", "o.jsonl.gz"]
)
def test_kinds_of_outputs(output, here):
    result = run("predict", "labels.arb", "rows.csv", "-o", output, "--keep", "id,city", "-q")
    assert result.code == 0, result.err
    found = _table(here / output)
    assert found.column_names == ["id", "city", "prediction"]
    assert found["prediction"].to_pylist() == _expected().tolist()
    assert found["id"].to_pylist() == list(range(300))


def test_probabilities_and_raw_scores(here):
    run("predict", "labels.arb", "rows.csv", "-o", "p.parquet", "--proba", "-q")
    found = np.column_stack([column.to_numpy() for column in _table("p.parquet").columns])
    assert np.array_equal(found, _expected("predict_proba"))
    run("predict", "labels.arb", "rows.csv", "-o", "r.parquet", "--raw", "-q")
    raw = _table("r.parquet")["raw"].to_numpy()
    assert np.array_equal(raw, _expected("predict_raw").ravel())


def test_standard_output_and_input(here):
    data = (here / "rows.csv").read_bytes()
    result = run("predict", "labels.arb", "-", "--format", "csv", "-o", "-", "-q", stdin=data)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == '"prediction"'
    assert len(lines) == 301


def test_standard_output_of_another_kind(here):
    args = ("-o", "-", "--output-format", "parquet", "-q")
    result = run("predict", "labels.arb", "rows.csv", *args)
    assert parquet.read_table(pa.BufferReader(result.raw)).num_rows == 300


def test_output_of_an_unknown_name(here):
    args = ("-o", "out.data", "--output-format", "jsonl", "-q")
    assert run("predict", "labels.arb", "rows.csv", *args).code == 0
    assert len((here / "out.data").read_text().splitlines()) == 300


def test_json_and_progress(here):
    result = run("predict", "labels.arb", "rows.csv", "-o", "o.csv", "--json")
    assert json.loads(result.out)["rows"] == 300
    assert result.err.startswith("predicted 300 rows of rows.csv in ")


def test_columns_are_read_as_the_model_has_them(here):
    rows = "".join(f"{i % 5},{'Rome' if i % 2 else 7}\n" for i in range(3))
    (here / "few.csv").write_text("size,city\n1,5\n2,7\n" + rows + "0.5,9\n")
    assert run("predict", "labels.arb", "few.csv", "-o", "o.csv", "-q").code == 0
    numbers = "".join("1,5\n" for _ in range(400_000))
    (here / "late.csv").write_text(f"size,city\n{numbers}0.5,Rome\n")
    result = run("predict", "labels.arb", "late.csv", "-o", "o.csv", "-q")
    assert result.code == 0, result.err
    assert csv.read_csv("o.csv").num_rows == 400_001


def test_json_lines_keep_their_types(here):
    rows = [{"size": 1, "city": "Rome"}] * 9 + [{"size": 0.5, "city": None}, {"city": "Oslo"}]
    (here / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("predict", "labels.arb", "a.jsonl", "-o", "o.csv", "-q")
    assert result.code == 0, result.err
    (here / "b.jsonl").write_text('{"size": "large", "city": "Rome"}\n')
    result = run("predict", "labels.arb", "b.jsonl", "-o", "o.csv", "-q")
    assert result.code == 3
    assert "'size'" in result.err


def test_failure_leaves_the_old_file(here):
    (here / "o.csv").write_text("old")
    (here / "bad.csv").write_text("size,city\n1,Rome\nx,Rome\n")
    result = run("predict", "labels.arb", "bad.csv", "-o", "o.csv", "-q")
    assert result.code == 3
    assert "line 3, column 1 ('size')" in result.err
    assert (here / "o.csv").read_text() == "old"


def test_names_with_commas_can_be_kept(here):
    text = (here / "rows.csv").read_text().replace("id,", '"id, of row",', 1)
    (here / "rows.csv").write_text(text)
    args = ("-o", "o.csv", "--keep", "id, of row", "--keep", "w,city", "-q")
    assert run("predict", "labels.arb", "rows.csv", *args).code == 0
    assert csv.read_csv("o.csv").column_names == ["id, of row", "w", "city", "prediction"]


def test_unknown_name_to_keep(here):
    result = run("predict", "labels.arb", "rows.csv", "-o", "o.csv", "--keep", "idd", "-q")
    assert result.code == 3
    assert "Did you mean 'id'?" in result.err


def test_no_rows(here):
    (here / "none.csv").write_text("size,city\n")
    assert run("predict", "labels.arb", "none.csv", "-o", "o.csv", "-q").code == 0
    assert (here / "o.csv").read_text() == '"prediction"\n'
