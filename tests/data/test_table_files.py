"""Files of rows as an object: dialects, types of a model, faults with their line, fits."""

import gzip

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, feather, parquet

import arboost
from arboost.errors import InputError, ParameterError, SchemaError

TABLE = pyarrow.table(
    {"size": [1.5, 2.0, 3.25] * 30, "city": ["Rome", "Oslo", None] * 30, "y": range(90)}
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv.write_csv(TABLE, "t.csv")
    parquet.write_table(TABLE, "t.parquet", row_group_size=40)
    feather.write_feather(TABLE, "t.arrow")
    text = (tmp_path / "t.csv").read_text()
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "semicolons.csv").write_text(text.replace(",", ";").replace(".", ","))
    return tmp_path


@pytest.mark.parametrize("path", ["t.csv", "t.csv.gz", "t.parquet", "t.arrow"])
def test_rows_of_every_kind_of_file(here, path):
    files = arboost.TableFiles(path)
    assert files.names == ["size", "city", "y"]
    assert files.paths == (path,)
    assert files.read().to_pydict() == TABLE.to_pydict()
    stream = files.batches()
    assert pyarrow.Table.from_batches(list(stream), stream.schema).num_rows == 90
    assert files.table_bytes > 0


def test_progress_ends_at_all_bytes(here):
    for path in ("t.csv", "t.csv.gz", "t.parquet"):
        files, steps = arboost.TableFiles([path]), {}
        files.read(steps.setdefault)
        assert max(steps.items()) == (files.n_bytes, files.n_bytes)


def test_selected_columns(here):
    files = arboost.TableFiles("t.csv").select(["y", "size"])
    assert files.read().column_names == ["y", "size"]
    assert files.batches().schema.names == ["y", "size"]
    with pytest.raises(SchemaError, match="'sizes'"):
        files.select(["sizes"])


def test_dialects(here):
    files = arboost.TableFiles("semicolons.csv", decimal=",")
    assert files.unusual_delimiters == {"semicolons.csv": "';'"}
    assert files.read().to_pydict() == TABLE.to_pydict()
    assert arboost.TableFiles("t.csv").unusual_delimiters == {}
    bars = arboost.TableFiles("semicolons.csv", delimiter="|")
    assert len(bars.names) == 1
    with pytest.raises(InputError, match="decimal comma") as caught:
        arboost.TableFiles("semicolons.csv")
    assert caught.value.parameter == "decimal"
    assert "TableFiles(path, decimal" in caught.value.advice


@pytest.mark.parametrize("argument", ["delimiter", "decimal"])
def test_dialect_of_a_binary_file_is_refused(here, argument):
    with pytest.raises(ParameterError, match=f"{argument}=',' is for CSV and TSV files") as caught:
        arboost.TableFiles("t.parquet", **{argument: ","})
    assert caught.value.parameter == argument


def test_format_of_a_name(here):
    assert arboost.TableFiles.format_of("a.csv.gz") == "csv"
    (here / "t.csv").rename("t.data")
    assert arboost.TableFiles("t.data", format="csv").read().num_rows == 90
    with pytest.raises(ValueError, match="unknown kind"):
        arboost.TableFiles("t.data")


def test_types_are_those_of_a_model(here):
    model = arboost.DecisionTreeRegressor().fit(TABLE, "y").model_
    (here / "few.csv").write_text("size,city,y\n1,5,7\n2,6,8\n")
    files = arboost.TableFiles("few.csv", like=model, types={"y": "string"})
    for table in (files.read(), files.batches().read_all()):
        assert table.to_pydict() == {"size": [1.0, 2.0], "city": ["5", "6"], "y": ["7", "8"]}
        assert table.schema.field("size").type == "double"
    assert arboost.TableFiles("few.csv").read().schema.field("city").type == "int64"


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ("1,2\n", "line 92: it has 2 values, but the header has 3 columns; column 3 ('y')"),
        ("1,2,3,4\n", "line 92: it has 4 values"),
        ("large,Rome,1\n", "'large' in line 92, column 1 ('size'), which is not a number"),
    ],
)
def test_faults_have_line_and_column(here, rows, part):
    with open("t.csv", "a") as file:
        file.write(rows)
    model = arboost.DecisionTreeRegressor().fit(TABLE, "y").model_

    def predict():
        model.predict_files(arboost.TableFiles("t.csv", like=model), "out.csv")

    for read in (lambda: arboost.TableFiles("t.csv", like=model).read(), predict):
        with pytest.raises(InputError) as caught:
            read()
        assert part in str(caught.value)


def test_fits_and_predictions_take_them(here):
    files = arboost.TableFiles("semicolons.csv", decimal=",")
    first = arboost.GradientBoostingRegressor(n_estimators=5).fit(files, "y")
    second = arboost.GradientBoostingRegressor(n_estimators=5).fit("t.csv", "y")
    first.model_.save("first.arb")
    second.model_.save("second.arb")
    assert (here / "first.arb").read_bytes() == (here / "second.arb").read_bytes()
    first.model_.predict_files(files, "out.parquet", columns_to_keep=["y"])
    out = parquet.read_table("out.parquet")
    np.testing.assert_array_equal(out["prediction"], first.predict(TABLE))
    assert out["y"].to_pylist() == list(range(90))
