"""Offsets of rows that are read in batches: fits, evaluation sets, workers, predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import Dataset, GradientBoostingClassifier, GradientBoostingRegressor
from arboost.models.files.model_file import to_bytes
from arboost.workers import Share
from support.local_workers import run_workers

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N = 900
RNG = np.random.default_rng(6)
TABLE = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
TABLE["start"] = RNG.uniform(-1.5, 1.5, N)
TABLE["y"] = RNG.poisson(np.exp(0.5 * TABLE["a"] + TABLE["start"])).astype(float)
TABLE["weight"] = np.arange(N) % 4 / 2.0
X = TABLE[["a", "b", "c", "start"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for part in range(3):
        rows = TABLE.iloc[part * N // 3 : (part + 1) * N // 3]
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), folder / f"{part}.parquet")
    return folder


def batches_of(frame, size):
    """Return a source of batches, which starts again."""
    return lambda: [pa.table(frame.iloc[i : i + size]) for i in range(0, len(frame), size)]


def poisson(**params):
    return GradientBoostingRegressor(loss="poisson", **{"n_estimators": 6, **params})


def fit(model, X, y="y", **options):
    return model.fit(X, y, offset="start", **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("params", [{}, {"n_iter_no_change": 2, "n_estimators": 30}], ids=str)
def test_files_give_the_model_of_the_table(folder, weighted, params):
    columns = ["a", "b", "c", "start", "y", *(["weight"] if weighted else [])]
    files = [str(folder / f"{part}.parquet") for part in range(3)]
    if not weighted:
        files = batches_of(TABLE[columns], 300)
    weight = TABLE["weight"].to_numpy() if weighted else None
    known = fit(poisson(**params), TABLE[columns[:5]], sample_weight=weight)
    for n_jobs in (1, 2, 4):
        model = fit(
            poisson(n_jobs=n_jobs, **params), files, sample_weight="weight" if weighted else None
        )
        assert to_bytes(model.model_) == to_bytes(known.model_)
    assert known.model_.schema.offset == ("start",)


def test_arrays_are_offsets_of_the_rows_of_all_batches():
    batches = batches_of(TABLE[["a", "b", "c", "y"]], 400)
    start = TABLE["start"].to_numpy()
    known = poisson().fit(TABLE[["a", "b", "c", "y"]], "y", offset=start)
    model = poisson().fit(batches, "y", offset=start)
    assert to_bytes(model.model_) == to_bytes(known.model_)
    with pytest.raises(ValueError, match="offset has the shape"):
        poisson().fit(batches, "y", offset=start[:-1])
    with pytest.raises(ValueError, match="offset has the shape"):
        poisson().fit(batches, "y", offset=np.append(start, 0.0))


def test_several_columns_of_classes(folder):
    labels = np.digitize(TABLE["a"] + TABLE["start"], [-0.5, 0.5])
    table = TABLE[["a", "b"]].assign(
        y=labels, low=-TABLE["start"], mid=0.0, top=TABLE["start"].to_numpy()
    )
    batches = batches_of(table, 500)
    names = ["low", "mid", "top"]
    known = GradientBoostingClassifier(n_estimators=3).fit(table, "y", offset=names)
    model = GradientBoostingClassifier(n_estimators=3).fit(batches, "y", offset=names)
    assert to_bytes(model.model_) == to_bytes(known.model_)


def test_evaluation_sets_in_batches_have_their_offset(folder):
    known = fit(poisson(), TABLE.drop(columns="weight"), X_val=X[:300], y_val=TABLE["y"][:300])
    files = batches_of(TABLE.drop(columns="weight"), 450)
    val = batches_of(TABLE.drop(columns="weight").iloc[:300], 300)
    model = fit(poisson(), files, X_val=val, y_val="y")
    assert model.evals_result_ == known.evals_result_
    assert to_bytes(model.model_) == to_bytes(known.model_)


def test_dataset_of_files_keeps_the_offset(folder, tmp_path):
    options = {"weight": "weight", "offset": "start", "cache": tmp_path}
    data = Dataset.from_files(str(folder), "y", **options)
    again = Dataset.from_files(str(folder), "y", **options)
    kept = TABLE["weight"].to_numpy() > 0
    for one in (data, again):
        np.testing.assert_array_equal(one.offset[:, 0], TABLE["start"].to_numpy()[kept])
        assert one.schema.offset == ("start",)
    other = Dataset.from_files(str(folder), "y", weight="weight", cache=tmp_path)
    assert other.offset is None
    assert other.schema.names == ("a", "b", "c", "start")
    models = [to_bytes(poisson().fit(one).model_) for one in (data, again)]
    assert models[0] == models[1]


def test_bad_offsets_name_file_and_row(folder, tmp_path):
    bad = TABLE.copy()
    bad.loc[700, "start"] = np.nan
    pq.write_table(pa.Table.from_pandas(bad, preserve_index=False), tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"bad.parquet.*offset 'start' has 1 rows .* in row 700"):
        fit(poisson(), str(tmp_path / "bad.parquet"))
    with pytest.raises(ValueError, match="offset='begin' names no column"):
        poisson().fit(str(folder), "y", offset="begin")


@pytest.mark.parametrize("n_workers", [1, 2, 5])
def test_workers_give_the_model_of_one_process(n_workers):
    table = TABLE.drop(columns="weight")
    known = fit(poisson(n_jobs=1), table, X_val=X[:100], y_val=TABLE["y"][:100])
    parts = np.array_split(np.arange(N), n_workers)
    val = np.array_split(np.arange(100), n_workers)

    def program(worker):
        own = batches_of(table.iloc[parts[worker.rank]], 200)
        own_val = batches_of(table.iloc[val[worker.rank]], 200)
        sets = {"X_val": Share(own_val, worker), "y_val": "y"}
        return to_bytes(fit(poisson(n_jobs=1), Share(own, worker), **sets).model_)

    assert set(run_workers(n_workers, program)) == {to_bytes(known.model_)}


@pytest.mark.parametrize("method", ["predict", "predict_raw"])
def test_predict_files_takes_the_columns(folder, tmp_path, method):
    table, out = TABLE.drop(columns="weight"), tmp_path / "out.parquet"
    named = fit(poisson(), table)
    by_array = poisson().fit(TABLE[["a", "b", "c"]], TABLE["y"], offset=TABLE["start"])
    expected = getattr(named, method)(X).ravel()
    for model, options in ((named, {}), (named.model_, {}), (by_array, {"offset": "start"})):
        keep = ["start", "weight"]
        model.predict_files(str(folder), out, columns_to_keep=keep, method=method, **options)
        found = pq.read_table(out).to_pandas()
        np.testing.assert_array_equal(found.iloc[:, -1], expected)
        np.testing.assert_array_equal(found["start"], TABLE["start"])
        model.predict_files(str(folder), out, method=method, batch_rows=70, **options)
        np.testing.assert_array_equal(pq.read_table(out).to_pandas().iloc[:, 0], expected)
    by_array.predict_files(str(folder), out, method=method, offset=0)
    found = pq.read_table(out).to_pandas().iloc[:, 0]
    zero = getattr(by_array, method)(TABLE[["a", "b", "c"]], offset=0).ravel()
    np.testing.assert_array_equal(found, zero)


def test_predict_files_is_never_without_the_offset(folder, tmp_path):
    out = tmp_path / "out.parquet"
    by_array = poisson().fit(TABLE[["a", "b", "c"]], TABLE["y"], offset=TABLE["start"])
    with pytest.raises(ValueError, match="fitted with an array of offsets"):
        by_array.predict_files(str(folder), out)
    with pytest.raises(TypeError, match="offset of predict_files names columns"):
        by_array.predict_files(str(folder), out, offset=TABLE["start"])
    plain = poisson().fit(TABLE[["a", "b", "c"]], TABLE["y"])
    with pytest.raises(ValueError, match="fitted without an offset"):
        plain.predict_files(str(folder), out, offset="start")
    named = fit(poisson(), TABLE.drop(columns="weight"))
    pq.write_table(pa.table(TABLE[["a", "b", "c"]]), tmp_path / "rest.parquet")
    with pytest.raises(ValueError, match="start"):
        named.predict_files(str(tmp_path / "rest.parquet"), out)
    assert not out.exists()
    named.predict_files(iter([pa.table(X.iloc[:0])]), out)
    assert pq.read_table(out).num_rows == 0
    arboost.load(to_bytes(named.model_)).predict_files(iter([pa.table(X)]), out)
    np.testing.assert_array_equal(pq.read_table(out)["prediction"], named.predict(X))
