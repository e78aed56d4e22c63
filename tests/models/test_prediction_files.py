"""Predictions of files in a file: the values of predict, batch by batch, written atomically."""

import os

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

import arboost
from arboost.errors import SchemaError
from support.processes import run

N_ROWS = 500


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = pa.array(rng.normal(size=N_ROWS), mask=rng.random(N_ROWS) < 0.1)
    place = pa.array(rng.choice(["here", "there"], N_ROWS)).dictionary_encode()
    return pa.table({"id": np.arange(N_ROWS), "x": x, "place": place, "n": rng.integers(0, 9, 500)})


@pytest.fixture(scope="module")
def X(table):
    return table.select(["n", "x", "place"])


@pytest.fixture(scope="module")
def classifier(table, X):
    y = np.array(["no", "yes", "maybe"])[np.asarray(table["n"]) % 3]
    return arboost.GradientBoostingClassifier(n_estimators=5).fit(X, y)


@pytest.fixture(scope="module")
def regressor(table, X):
    return arboost.GradientBoostingRegressor(n_estimators=5).fit(X, np.asarray(table["n"]) * 0.5)


@pytest.fixture
def folder(table, tmp_path):
    (tmp_path / "in").mkdir()
    for part in range(3):
        rows = table.slice(200 * part, 200)
        pq.write_table(rows, tmp_path / "in" / f"{part}.parquet", row_group_size=90)
    return tmp_path


READERS = {
    "out.parquet": pq.read_table,
    "out.feather": feather.read_table,
    "out.arrow": feather.read_table,
    "out.csv": csv.read_csv,
    "out.csv.gz": csv.read_csv,
    "out.tsv": lambda path: csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t")),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("batch_rows", [64, 10_000])
def test_values_and_columns(folder, table, X, regressor, name, batch_rows):
    path = folder / name
    kept = ["id", "place"]
    model = regressor.model_
    assert model.predict_files(
        f"{folder}/in/*", path, columns_to_keep=kept, batch_rows=batch_rows
    ) == len(table)
    actual = READERS[name](path)
    assert actual.column_names == ["id", "place", "prediction"]
    assert actual["id"].to_pylist() == table["id"].to_pylist()
    assert actual["place"].to_pylist() == table["place"].to_pylist()
    np.testing.assert_array_equal(actual["prediction"], regressor.predict(X))
    assert sorted(os.listdir(folder)) == ["in", name]


def test_methods_of_a_classifier(folder, X, classifier):
    path = folder / "out.parquet"
    classifier.predict_files(folder / "in", path, batch_rows=64)
    assert pq.read_table(path).to_pydict() == {"prediction": [*classifier.predict(X)]}
    classifier.predict_files(folder / "in", path, method="predict_proba", batch_rows=64)
    actual = pq.read_table(path)
    assert actual.column_names == ["proba_maybe", "proba_no", "proba_yes"]
    np.testing.assert_array_equal(actual.to_pandas(), classifier.predict_proba(X))
    classifier.predict_files(folder / "in", path, method="predict_raw", n_jobs=1)
    actual = pq.read_table(path)
    assert actual.column_names == ["raw_0", "raw_1", "raw_2"]
    np.testing.assert_array_equal(actual.to_pandas(), classifier.predict_raw(X))


def test_several_targets(folder, table):
    X, n = table.select(["x"]), np.asarray(table["n"])
    forest = arboost.RandomForestClassifier(n_estimators=3, random_state=0)
    forest.fit(X, np.column_stack([n > 3, n > 5]))
    path = folder / "out.parquet"
    forest.predict_files(folder / "in", path)
    actual = pq.read_table(path)
    assert actual.schema.types == [pa.bool_()] * 2
    np.testing.assert_array_equal(actual.to_pandas(), forest.predict(X))
    forest.predict_files(folder / "in", path, method="predict_proba")
    actual = pq.read_table(path)
    assert actual.column_names == [f"proba_{i}_{label}" for i in (0, 1) for label in (False, True)]
    np.testing.assert_array_equal(actual.to_pandas(), np.hstack(forest.predict_proba(X)))


def test_sources(folder, table, X, regressor):
    """Any source of training is one of predictions; streams and generators are read directly."""
    feather.write_feather(table, folder / "in.feather")
    sources = [
        [folder / "in" / "0.parquet", f"{folder}/in/[12].parquet"],
        folder / "in.feather",
        ds.dataset(folder / "in"),
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(70)),
        pl.scan_parquet(folder / "in" / "*.parquet"),
        lambda: iter(table.to_batches(70)),
        (rows.to_pandas() for rows in table.to_batches(70)),
        (pl.from_arrow(rows) for rows in table.to_batches(70)),
    ]
    for source in sources:
        regressor.predict_files(source, folder / "out.parquet", columns_to_keep=["n", "id"])
        actual = pq.read_table(folder / "out.parquet")
        assert actual.column_names == ["n", "id", "prediction"]
        assert actual["id"].to_pylist() == table["id"].to_pylist()
        np.testing.assert_array_equal(actual["prediction"], regressor.predict(X))


def test_arrays(folder):
    """Columns of models without names are matched by order."""
    values = np.random.default_rng(0).normal(size=(300, 2))
    model = arboost.GradientBoostingRegressor(n_estimators=3).fit(values, values[:, 0])
    path = folder / "out.parquet"
    assert model.predict_files((values[i : i + 90] for i in range(0, 300, 90)), path) == 300
    np.testing.assert_array_equal(pq.read_table(path)["prediction"], model.predict(values))
    pq.write_table(pa.table({"id": range(300), "a": values[:, 0], "b": values[:, 1]}), path)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        model.predict_files(path, folder / "b.parquet", columns_to_keep=["id"])
    np.testing.assert_array_equal(
        pq.read_table(folder / "b.parquet")["prediction"], model.predict(values)
    )
    with pytest.raises(TypeError, match=r"columns_to_keep=\['id'\] needs columns with names"):
        model.predict_files((values for _ in range(1)), path, columns_to_keep=["id"])


def test_no_rows(folder, table, classifier):
    pq.write_table(table[:0], folder / "none.parquet")
    path = folder / "out.parquet"
    assert classifier.predict_files(folder / "none.parquet", path, columns_to_keep=["id"]) == 0
    assert pq.read_table(path).schema.equals(
        pa.schema([("id", pa.int64()), ("prediction", pa.string())])
    )
    assert classifier.predict_files(lambda: iter([]), path, method="predict_proba") == 0
    assert pq.read_table(path).num_columns == 3


def test_ensembles(folder, table, X, tmp_path):
    bags = arboost.BaggingRegressor(
        arboost.GradientBoostingRegressor(n_estimators=2), n_estimators=2, random_state=0
    ).fit(X, np.asarray(table["n"]))
    bags.save(tmp_path / "bags.arb")
    loaded = arboost.load(tmp_path / "bags.arb")
    assert loaded.predict_files(folder / "in", folder / "out.parquet") == N_ROWS
    actual = pq.read_table(folder / "out.parquet")
    np.testing.assert_array_equal(actual["prediction"], bags.predict(X))
    loaded.predict_files(folder / "in", folder / "shap.parquet", method="shap_values")
    actual = pq.read_table(folder / "shap.parquet").drop_columns("expected_value")
    np.testing.assert_array_equal(np.column_stack(actual.columns), bags.shap_values(X))
    with pytest.raises(ValueError, match=r"must be one of predict, predict_proba, shap_values\."):
        loaded.predict_files(folder / "in", folder / "out.parquet", method="predict_raw")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "transform"}, ValueError, "method is 'transform', but it must be one of"),
        ({"method": "predict_proba"}, TypeError, "predict_proba is not available for a regressor"),
        ({"batch_rows": 0}, ValueError, "batch_rows is 0, but it must be an integer"),
        ({"columns_to_keep": "id"}, TypeError, r"Pass \['id'\]"),
        ({"columns_to_keep": ["idd"]}, SchemaError, "no column 'idd' in .* mean 'id'"),
        ({"path": "out.txt"}, ValueError, "out.txt' is of an unknown kind"),
        ({"path": "in/1.parquet"}, ValueError, "which is one of the files to read"),
        ({"path": "none/out.parquet"}, FileNotFoundError, "Make the folder first"),
        ({"source": "in/*.csv"}, FileNotFoundError, "No file matches"),
        ({"source": "other.parquet"}, SchemaError, "There is no column 'x'"),
    ],
)
def test_refusals(folder, table, regressor, options, error, message):
    pq.write_table(table.drop_columns("x"), folder / "other.parquet")
    (folder / "out.parquet").write_bytes(b"old")
    before = sorted(os.listdir(folder))
    arguments = {"source": "in", "path": "out.parquet"} | options
    source, path = (folder / arguments.pop(name) for name in ("source", "path"))
    with pytest.raises(error, match=message):
        regressor.predict_files(source, path, **arguments)
    assert sorted(os.listdir(folder)) == before
    assert (folder / "out.parquet").read_bytes() == b"old"
    assert pq.read_table(folder / "in" / "1.parquet").num_rows == 200


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_after_an_error(folder, table, regressor, name, error):
    def batches():
        yield table.select(["x", "place", "n"])
        raise error("stop")

    (folder / name).write_bytes(b"old")
    with pytest.raises(error, match="stop"):
        regressor.predict_files(batches, folder / name)
    assert sorted(os.listdir(folder)) == ["in", name]
    assert (folder / name).read_bytes() == b"old"


def test_columns_of_other_types(folder, table, regressor):
    """The error names the file."""
    texts = table.set_column(1, "x", [["text"] * N_ROWS])
    pq.write_table(texts, folder / "texts.parquet")
    with pytest.raises(SchemaError, match=r"texts\.parquet' do not fit .*'x' of X holds strings"):
        regressor.predict_files(folder / "texts.parquet", folder / "out.parquet")


def test_orphans_of_killed_writers_go(folder, regressor):
    (folder / "out.csv.0123456789ab.tmp").write_bytes(b"half a file")
    regressor.predict_files(folder / "in", folder / "out.csv")
    assert sorted(os.listdir(folder)) == ["in", "out.csv"]


def test_kept_columns_have_names_of_their_own(folder, table, regressor):
    pq.write_table(table.append_column("prediction", table["id"]), folder / "again.parquet")
    with pytest.raises(ValueError, match="has 'prediction', which is the name of a column"):
        regressor.predict_files(
            folder / "again.parquet", folder / "out.parquet", columns_to_keep=["prediction"]
        )


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
@pytest.mark.parametrize("name", ["out.parquet", "out.feather", "out.csv", "out.csv.gz"])
def test_full_disk(tmp_path, name):
    """A limit on the size of files stands for a full disk."""
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit([[0.0], [1.0]], [0.0, 1.0])
    model.save(tmp_path / "model.arb")
    (tmp_path / name).write_bytes(b"old")
    printed = run(
        """
        import resource, signal, sys, warnings
        import numpy as np
        import pyarrow as pa
        import arboost

        warnings.simplefilter("ignore")  # columns are matched by order

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
        rng = np.random.default_rng(0)
        model = arboost.load(sys.argv[1] + "/model.arb")
        tables = (pa.table({"x0": rng.normal(size=20_000)}) for _ in range(5))
        try:
            model.predict_files(tables, sys.argv[1] + "/" + sys.argv[2], columns_to_keep=["x0"])
        except OSError as error:
            print(error)
        """,
        str(tmp_path),
        name,
    )
    assert "File too large (an existing file is unchanged" in printed
    assert name in printed
    assert sorted(os.listdir(tmp_path)) == sorted(["model.arb", name])
    assert (tmp_path / name).read_bytes() == b"old"
