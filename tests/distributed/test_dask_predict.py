"""Lazy predictions: as those of the table in memory, with its partitions and index."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import arboost
from arboost.dask import predict, predict_proba, shap_values
from arboost.distributed import predict as packed_model

FRAME = pd.DataFrame(
    {"a": np.arange(60.0), "b": np.tile([1.5, np.nan, -3.0], 20), "c": list("xyzx") * 15},
    index=np.arange(60) * 2,
)
LABELS = np.where(FRAME["a"] > 30, "high", "low")


@pytest.fixture(scope="module")
def model():
    return arboost.GradientBoostingClassifier(n_estimators=5).fit(FRAME, LABELS)


@pytest.fixture(scope="module")
def regressor():
    rows = FRAME[["a", "b"]].to_numpy()
    return arboost.GradientBoostingRegressor(n_estimators=5).fit(rows, FRAME["a"])


@pytest.fixture
def frame():
    return dd.from_pandas(FRAME, npartitions=4)


def test_labels(client, model, frame):
    found = predict(model, frame)
    assert found.divisions == frame.divisions
    result = client.compute(found).result(30)
    assert result.name == "prediction"
    assert found.dtype == result.dtype
    pd.testing.assert_index_equal(result.index, FRAME.index)
    np.testing.assert_array_equal(result, model.predict(FRAME))


def test_probabilities_and_shap_values(client, model, frame):
    found, values = client.compute([predict_proba(model, frame), shap_values(model, frame)])
    assert list(found.result(30).columns) == ["high", "low"]
    np.testing.assert_array_equal(found.result(), model.predict_proba(FRAME))
    assert list(values.result(30).columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(values.result(), model.model_.shap_values(FRAME))


def test_kinds_of_models(model, frame, tmp_path):
    model.save(tmp_path / "model.arb")
    expected = model.predict(FRAME)
    for given in (model.model_, tmp_path / "model.arb", str(tmp_path / "model.arb")):
        np.testing.assert_array_equal(predict(given, frame).compute(scheduler="sync"), expected)


def test_an_ensemble(frame):
    members = [("one", arboost.GradientBoostingRegressor(n_estimators=2))]
    voting = arboost.VotingRegressor(members).fit(FRAME, FRAME["a"].to_numpy())
    found = predict(voting, frame).compute(scheduler="sync")
    np.testing.assert_array_equal(found, voting.predict(FRAME))


def test_parquet(client, model, frame, tmp_path):
    predict_proba(model, frame).to_parquet(tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out")
    np.testing.assert_array_equal(found, model.predict_proba(FRAME))


def test_a_column_of_predictions(model, frame):
    found = frame.assign(p=predict(model, frame)).compute(scheduler="sync")
    np.testing.assert_array_equal(found["p"], model.predict(FRAME))


def test_empty_partitions(model, frame):
    few = frame[frame["a"] > 50]  # the first partitions are empty
    for method in (predict, predict_proba, shap_values):
        assert len(method(model, few).compute(scheduler="sync")) == 9


@pytest.mark.parametrize("chunks", [(17, 2), (17, 1)])
def test_arrays(client, regressor, chunks):
    rows = FRAME[["a", "b"]].to_numpy()
    data = da.from_array(rows, chunks=chunks)
    found = predict(regressor, data)
    assert found.chunks == (data.chunks[0],)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(client.compute(found).result(30), regressor.predict(rows))
    values = shap_values(regressor, data)
    assert values.shape == (60, 2)
    np.testing.assert_array_equal(
        client.compute(values).result(30), regressor.model_.shap_values(rows)
    )


def test_sparse_arrays_and_unknown_lengths(regressor):
    rows = FRAME[["a", "b"]].fillna(0).to_numpy()
    data = da.from_array(rows, chunks=(17, 2))
    found = predict(regressor, data[data[:, 0] > 20])
    np.testing.assert_array_equal(found.compute(scheduler="sync"), regressor.predict(rows[21:]))
    found = predict(regressor, data.map_blocks(sparse.csr_matrix))
    np.testing.assert_array_equal(found.compute(scheduler="sync"), regressor.predict(rows))


def test_several_outputs(frame):
    model = arboost.GradientBoostingClassifier(n_estimators=2)
    model.fit(FRAME[["a"]].to_numpy(), np.arange(60) % 3)
    data = da.from_array(FRAME[["a"]].to_numpy(), chunks=(20, 1))
    assert predict_proba(model, data).compute(scheduler="sync").shape == (60, 3)
    assert shap_values(model, data).compute(scheduler="sync").shape == (60, 1, 3)
    with pytest.raises(TypeError, match="to_dask_array"):
        shap_values(arboost.GradientBoostingClassifier().fit(FRAME, np.arange(60) % 3), frame)


def test_a_process_loads_the_model_once(client, model, frame):
    client.run(packed_model.load_packed.cache_clear)
    client.compute([predict(model, frame), predict_proba(model, frame)], sync=True)
    for info in client.run(packed_model.load_packed.cache_info).values():
        assert info.misses <= 1
    graph = predict(model, frame).optimize().__dask_graph__()
    assert sum("arboost-model-" in str(key) for key in graph) == 1


def test_inside_a_task(client, model):
    def task():
        return predict(model, dd.from_pandas(FRAME, npartitions=2)).compute(scheduler="sync")

    found = client.submit(task, pure=False).result(30)
    np.testing.assert_array_equal(found, model.predict(FRAME))


def test_errors(model, regressor, frame):
    with pytest.raises(TypeError, match="data is a DataFrame"):
        predict(model, FRAME)
    with pytest.raises(arboost.SchemaError, match="- c"):
        predict(model, frame[["a", "b"]])
    with pytest.raises(TypeError, match="only a classifier"):
        predict_proba(regressor, da.ones((4, 2)))


def test_the_default_scheduler_of_dask(model, frame):
    with dask.config.set(scheduler="threads"):
        np.testing.assert_array_equal(predict(model, frame).compute(), model.predict(FRAME))
