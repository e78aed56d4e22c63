"""Rankers: queries of any form and order, the same bytes, whole queries in splits, refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import ndcg_score

import arboost
from arboost import GradientBoostingRanker
from arboost.training.splits import split
from support.streamed import model_bytes

N_QUERIES, SIZE = 60, 20
N_ROWS = N_QUERIES * SIZE
FAST = {"n_estimators": 20, "learning_rate": 0.2, "min_child_weight": 0.01}
PLAIN = GradientBoostingRanker(**FAST)
pytestmark = pytest.mark.filterwarnings("ignore:The search for the number of rounds")


@pytest.fixture(scope="module")
def data():
    """A table, relevances that follow two columns, and queries of rows in random order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5))
    query = rng.permutation(np.repeat(np.arange(N_QUERIES), SIZE))
    # The level of a query says nothing about the order of its documents.
    signal = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=N_ROWS)
    y = np.clip(np.round(signal), 0, 4)
    return X, y, query


def mean_ndcg(model, X, y, query):
    score = model.predict(X)
    rows = [query == name for name in np.unique(query)]
    return np.mean([ndcg_score([y[at]], [score[at]]) for at in rows])


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"target_metric": "map"},
        {"target_metric": "mrr"},
        {"gain": "linear"},
        {"truncation_level": None, "score_normalization": False},
        {"loss": "pairwise"},
        {"loss": "listwise"},
        {"rate_drop": 0.3},
        {"subsample": 0.5},
        {"sampling_method": "goss"},
        {"n_estimators": "auto", "preset": "fast"},
    ],
    ids=str,
)
def test_learns_the_order(data, params):
    X, y, query = data
    train = query < N_QUERIES // 2
    model = clone(PLAIN).set_params(**params).fit(X[train], y[train], qid=query[train])
    assert mean_ndcg(model, X[~train], y[~train], query[~train]) > 0.8  # random scores: 0.6


@pytest.mark.parametrize("params", [{}, {"loss": "pairwise"}, {"loss": "listwise"}], ids=str)
def test_same_bytes_for_any_threads(data, params, tmp_path):
    X, y, query = data
    X, y = np.tile(X, (12, 1)), np.tile(y, 12)
    query = np.concatenate([query + i * N_QUERIES for i in range(12)])
    models = [
        clone(PLAIN).set_params(n_jobs=n_jobs, **params).fit(X, y, qid=query)
        for n_jobs in (1, 2, 4)
    ]
    first, *others = [model_bytes(model, tmp_path) for model in models]
    assert all(other == first for other in others)


def test_queries_of_any_type(data, tmp_path):
    X, y, query = data
    expected = model_bytes(clone(PLAIN).fit(X, y, qid=query), tmp_path)
    names = np.array([f"q{number:03}" for number in query])
    for qid in (names, names.astype(object), pd.Series(query), pl.Series(query), query.tolist()):
        assert model_bytes(clone(PLAIN).fit(X, y, qid=qid), tmp_path) == expected


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_named_columns(data, frame):
    X, y, query = data
    columns = {f"x{i}": X[:, i] for i in range(5)} | {"grade": y, "query": query}
    table = frame(columns)
    model = clone(PLAIN).fit(table, "grade", qid="query")
    features = table[[f"x{i}" for i in range(5)]]
    plain = clone(PLAIN).fit(features, y, qid=query)
    assert np.array_equal(model.predict(features), plain.predict(features))
    assert model.feature_names_in_.tolist() == [f"x{i}" for i in range(5)]
    assert model.score(table, "grade", qid="query") == plain.score(features, y, qid=query)
    named = model.evaluate(table, "grade", qid="query")
    assert repr(named) == repr(plain.evaluate(features, y, qid=query))
    with pytest.raises(ValueError, match="qid"):
        clone(PLAIN).fit(table, "grade", qid="question")


def test_score_and_early_stopping(data):
    X, y, query = data
    train = query < 40
    sets = {"X_val": X[~train], "y_val": y[~train], "qid_val": query[~train]}
    model = clone(PLAIN).set_params(n_estimators=200, n_iter_no_change=5)
    model.set_params(eval_metric=["ndcg@5", "MAP@3", "mrr", "pre@2"])
    model.fit(X[train], y[train], qid=query[train], **sets)
    curves = model.evals_result_["validation"]
    assert list(curves) == ["ndcg@5", "map@3", "mrr", "precision@2"]
    assert model.best_iteration_ == int(np.argmax(curves["ndcg@5"])) == model.n_iter_ - 1
    assert model.n_iter_ < 200
    score = model.predict(X[~train])
    metrics = arboost.rank_metrics(y[~train], score, query[~train], list(curves))
    for name, curve in curves.items():
        assert metrics[name] == pytest.approx(curve[model.best_iteration_], rel=1e-12)
    expected = arboost.rank_metrics(y, model.predict(X), query, "ndcg@10")["ndcg@10"]
    assert model.score(X, y, qid=query) == expected


def test_evaluation_sets(data):
    X, y, query = data
    train, weight = query < 40, 1.0 + query % 3
    rows = (X[~train], y[~train], query[~train])
    sets = [(X[train], y[train], query[train]), rows, (*rows, weight[~train])]
    model = clone(PLAIN).fit(X[train], y[train], qid=query[train], eval_set=sets)
    curves = model.evals_result_
    assert list(curves) == ["train", "validation_0", "validation_1"]
    assert curves["validation_0"] != curves["validation_1"]
    with pytest.raises(ValueError, match=r"eval_set\[0\]: the queries .* Pass \(X, y, qid\)"):
        clone(PLAIN).fit(X[train], y[train], qid=query[train], eval_set=[rows[:2]])
    with pytest.raises(ValueError, match="Pass qid_val"):
        clone(PLAIN).fit(X, y, qid=query, X_val=X, y_val=y)


def test_held_out_rows_are_whole_queries(data):
    X, y, query = data
    model = clone(PLAIN).set_params(n_iter_no_change=5).fit(X, y, qid=query)
    train, held_out = split(y, how="group", fraction=0.1, seed=0, groups=query)
    assert not set(query[train]) & set(query[held_out])
    again = clone(PLAIN).set_params(n_iter_no_change=5)
    again.fit(
        X[train], y[train], qid=query[train], eval_set=[(X[held_out], y[held_out], query[held_out])]
    )
    assert model.evals_result_ == again.evals_result_


def test_cross_validation_keeps_queries_whole(data):
    X, y, query = data
    result = arboost.cv(
        PLAIN, X, y, qid=query, folds=4, metrics=["ndcg@5", "map"], return_models=True
    )
    assert list(result.mean) == ["ndcg@5", "map"]
    for (train, held_out), model, score in zip(
        result.folds, result.models, result.scores["map"], strict=True
    ):
        assert not set(query[train]) & set(query[held_out])
        metrics = arboost.rank_metrics(
            y[held_out], model.predict(X[held_out]), query[held_out], "map"
        )
        assert metrics["map"] == pytest.approx(score[-1], rel=1e-12)
    frame = pd.DataFrame(X).assign(query=query).rename(columns=str)
    named = arboost.cv(PLAIN, frame, y, qid="query", folds=4, metrics="map")
    assert np.array_equal(named.scores["map"], result.scores["map"])
    with pytest.raises(ValueError, match="qid is None"):
        arboost.cv(PLAIN, X, y)
    with pytest.raises(ValueError, match="whole queries"):
        arboost.cv(PLAIN, X, y, groups=query)
    with pytest.raises(TypeError, match="qid is for rankers"):
        arboost.cv(arboost.GradientBoostingRegressor(), X, y, qid=query)


def test_weights_of_queries(data, tmp_path):
    X, y, query = data
    weight = np.where(query % 2, 1.0, 0.0)
    model = clone(PLAIN).fit(X, y, weight, qid=query)
    odd = query % 2 == 1
    # Rows of weight 0 are not there; the edges of the bins do not count them either.
    alone = clone(PLAIN).fit(X[odd], y[odd], np.ones(odd.sum()), qid=query[odd])
    assert model.evals_result_ == alone.evals_result_
    heavy = clone(PLAIN).fit(X, y, 1.0 + 50.0 * odd, qid=query)
    plain = clone(PLAIN).fit(X, y, qid=query)
    score = {"sample_weight": odd.astype(float), "qid": query}
    assert heavy.score(X, y, **score) > plain.score(X, y, **score)
    with pytest.raises(ValueError, match=r"in row .* of the same query"):
        clone(PLAIN).fit(X, y, np.arange(N_ROWS) + 1.0, qid=query)


def test_files_keep_the_model(data, tmp_path):
    X, y, query = data
    model = clone(PLAIN).set_params(target_metric="map").fit(X, y, qid=query)
    for name in ("model.arb", "model.json"):
        model.save(tmp_path / name)
        loaded = GradientBoostingRanker.load(tmp_path / name)
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert loaded.target_metric == "map"
        assert loaded.score(X, y, qid=query) == model.score(X, y, qid=query)
        predictor = arboost.load(tmp_path / name)
        assert predictor.kind == "ranker"
        assert np.array_equal(predictor.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="holds no GradientBoostingRegressor: it holds a ranker"):
        arboost.GradientBoostingRegressor.load(tmp_path / "model.arb")
    assert "ranker" in model.to_c()
    assert "ranker" in repr(model.model_)
    assert model.summary() is not None
    shap = model.shap_values(X[:10]).sum(axis=1) + model.expected_value()
    np.testing.assert_allclose(shap.ravel(), model.predict(X[:10]), atol=1e-9)


def test_continued_training(data, tmp_path):
    X, y, query = data
    first = clone(PLAIN).fit(X, y, qid=query)
    more = clone(PLAIN).fit(X, y, qid=query, init_model=first)
    assert more.n_iter_ == 40
    assert more.score(X, y, qid=query) > first.score(X, y, qid=query)
    other = arboost.GradientBoostingRegressor(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="init_model is a regressor, but this is a ranker"):
        clone(PLAIN).fit(X, y, qid=query, init_model=other)


@pytest.mark.parametrize("loss", ["lambdamart", "listwise"])
def test_checkpoints(data, loss, tmp_path):
    X, y, query = data
    model = clone(PLAIN).set_params(loss=loss)
    expected = model_bytes(clone(model).fit(X, y, qid=query), tmp_path)

    def kill(done):
        if done.index == 7:
            raise KeyboardInterrupt

    path = tmp_path / "state"
    checkpoint = arboost.Checkpoint(path, every=1)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(X, y, qid=query, checkpoint=checkpoint, callbacks=[kill])
    assert path.exists()
    with pytest.raises(ValueError, match="qid"):
        clone(model).fit(X, y, qid=(query + 1) % 60 // 2, checkpoint=checkpoint)
    again = clone(model).fit(X, y, qid=query, checkpoint=checkpoint)
    assert model_bytes(again, tmp_path) == expected


def test_files_with_a_memory_limit(data, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y, query = data
    columns = {f"x{i}": X[:, i] for i in range(5)} | {"grade": y, "query": query}
    table, path = pyarrow.table(columns), tmp_path / "rows.parquet"
    parquet.write_table(table, path, row_group_size=100)
    features = table.drop_columns(["grade", "query"])
    validation = {"X_val": features.slice(0, 400), "y_val": y[:400], "qid_val": query[:400]}
    model = clone(PLAIN).set_params(n_iter_no_change=4)
    whole = clone(model).fit(table.drop_columns(["query"]), "grade", qid=query, **validation)
    for limit in ("auto", "20MB"):
        files = clone(model)
        files.fit([str(path)], "grade", qid="query", memory_limit=limit, **validation)
        assert model_bytes(files, tmp_path) == model_bytes(whole, tmp_path)
    held_out = clone(model).fit([str(path)], "grade", qid="query")
    assert model_bytes(held_out, tmp_path) == model_bytes(
        clone(model).fit(table.drop_columns(["query"]), "grade", qid=query), tmp_path
    )
    parquet.write_table(table.slice(0, 400), tmp_path / "validation.parquet")
    validation = {"X_val": [str(tmp_path / "validation.parquet")], "y_val": "grade"}
    read = clone(model).fit([str(path)], "grade", qid="query", **validation)
    assert model_bytes(read, tmp_path) == model_bytes(whole, tmp_path)


def test_datasets(data, tmp_path):
    pytest.importorskip("pyarrow")
    X, y, query = data
    model = clone(PLAIN).set_params(n_iter_no_change=4)
    expected = clone(model).fit(arboost.Dataset(X, y), qid=query)
    plain = clone(model).fit(X, y, qid=query)
    assert expected.evals_result_.keys() == plain.evals_result_.keys()
    frame = pd.DataFrame(X).assign(grade=y, query=query).rename(columns=str)
    frame.to_parquet(tmp_path / "rows.parquet")
    grouped = arboost.Dataset.from_files([tmp_path / "rows.parquet"], "grade", groups="query")
    for qid in (None, query):
        found = clone(model).fit(grouped, qid=qid)
        named = frame.drop(columns=["grade", "query"])
        assert np.array_equal(found.predict(named), expected.predict(X))
    with pytest.raises(ValueError, match="differs from the groups of the Dataset"):
        clone(model).fit(grouped, qid=query + 1)
    with pytest.raises(ValueError, match="qid is None"):
        clone(model).fit(arboost.Dataset(X, y))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qid": None}, "qid is None, but a ranker"),
        ({"qid": [SIZE] * N_QUERIES}, r"np.repeat\(np.arange\(60\), sizes\)"),
        ({"qid": np.arange(N_ROWS)}, "only document of its query"),
        ({"y": np.zeros(N_ROWS)}, "no query has documents of different relevance"),
        ({"y": np.full(N_ROWS, -1.0)}, "-1.0 in row 0"),
        ({"y": np.linspace(0, 40, N_ROWS)}, "at most 31"),
        ({"y": np.full(N_ROWS, np.nan)}, "NaN"),
        ({"qid": np.where(np.arange(N_ROWS) == 5, np.nan, 1.0)}, "the first in row 5"),
        ({"group": [SIZE] * N_QUERIES}, "qid"),
        ({"groups": np.arange(N_ROWS)}, "groups"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_refusals(data, changes, message):
    X, y, query = data
    with pytest.raises((ValueError, TypeError), match=message):
        clone(PLAIN).fit(X, **({"y": y, "qid": query} | changes))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "lambdarank"}, "lambdamart"),
        ({"loss": "squared_error"}, "loss"),
        ({"target_metric": "err"}, "target_metric"),
        ({"truncation_level": 0}, "truncation_level=None"),
        ({"eval_metric": "rmse", "n_iter_no_change": 3}, "not a metric of rankings"),
        ({"eval_metric": "ndgc", "n_iter_no_change": 3}, "eval_metric"),
    ],
    ids=str,
)
def test_refused_parameters(data, params, message):
    X, y, query = data
    with pytest.raises(ValueError, match=message):
        clone(PLAIN).set_params(**params).fit(X, y, qid=query)


def test_applications_that_know_no_queries_refuse(data):
    X, y, query = data
    model = clone(PLAIN).fit(X, y, qid=query)
    for owner in (model, model.model_):
        with pytest.raises(TypeError, match=r"report is not available for rankers.*rank_metrics"):
            owner.report(X, y)
    with pytest.raises(TypeError, match="rank_metrics"):
        model.model_.score(X, y)
    with pytest.raises(TypeError, match="rank_metrics"):
        model.importances("permutation", X, y)
    with pytest.raises(TypeError, match="compare is not available for rankers"):
        arboost.compare(X, y, models={"ranker": PLAIN})
    with pytest.raises(TypeError, match="rank_metrics"):
        arboost.plots.plot_residuals(model, X, y)
    with pytest.raises(ValueError, match="qid is None"):
        model.score(X, y)


def test_tune_keeps_queries_whole(data):
    pytest.importorskip("optuna")
    X, y, query = data
    options = {"trials": 3, "verbose": 0, "space": {"learning_rate": (1e-6, 0.3)}, "folds": 3}
    tuning = arboost.tune(PLAIN, X, y, qid=query, **options)
    assert tuning.metric == "ndcg@10"
    assert tuning.greater_is_better
    assert tuning.score >= tuning.default_score
    expected = arboost.cv(PLAIN, X, y, qid=query, folds=3).mean["ndcg@10"][-1]
    assert tuning.default_score == pytest.approx(expected, rel=1e-12)
    frame = pd.DataFrame(X).assign(query=query, grade=y).rename(columns=str)
    named = arboost.tune(PLAIN, frame, "grade", qid="query", **options)
    assert named.score == tuning.score
    features = frame.drop(columns=["query", "grade"])
    assert named.estimator.predict(features).shape == (N_ROWS,)
    with pytest.raises(ValueError, match="qid is None"):
        arboost.tune(PLAIN, X, y, **options)


def test_listed_folds_must_not_divide_queries(data):
    X, y, query = data
    odd = query % 2 == 1
    result = arboost.cv(PLAIN, X, y, qid=query, folds=[(~odd, odd)])
    assert np.array_equal(result.folds[0][1], np.flatnonzero(odd))
    even_rows = np.arange(N_ROWS) % 2 == 0
    with pytest.raises(ValueError, match=r"folds\[0\] divides a query: row 1 is held out"):
        arboost.cv(PLAIN, X, y, qid=query, folds=[(even_rows, ~even_rows)])


def test_evaluation(data, tmp_path):
    X, y, query = data
    train = query < 40
    model = clone(PLAIN).fit(X[train], y[train], qid=query[train])
    rows = {"qid": query[~train], "sample_weight": 1.0 + query[~train] % 2}
    result = model.evaluate(X[~train], y[~train], metrics="pre@3", **rows)
    names = ["ndcg@5", "ndcg@10", "map@10", "mrr", "precision@3"]
    score, weight = model.predict(X[~train]), rows["sample_weight"]
    expected = arboost.rank_metrics(y[~train], score, rows["qid"], names, sample_weight=weight)
    assert [score.value for score in result.scores] == list(expected.values())
    assert [score.name for score in result.scores][-2:] == ["MRR", "Precision@3"]
    for score in result.scores:
        assert score.low <= score.value <= score.high
        assert score.baseline < score.value
    assert "orders documents at random" in repr(result)
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    assert repr(loaded.evaluate(X[~train], y[~train], metrics="pre@3", **rows)) == repr(result)
    with pytest.raises(ValueError, match="scored query by query"):
        model.evaluate(X, y)
    with pytest.raises(ValueError, match="qid is for rankers, but this is a regressor"):
        arboost.GradientBoostingRegressor(n_estimators=2).fit(X, y).evaluate(X, y, qid=query)


def test_queries_are_routed(data):
    from sklearn import config_context
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, query = data
    with config_context(enable_metadata_routing=True):
        ranker = clone(PLAIN).set_fit_request(qid=True).set_score_request(qid=True)
        pipeline = make_pipeline(StandardScaler(), ranker)
        grid = {"gradientboostingranker__learning_rate": [1e-6, 0.3]}
        search = GridSearchCV(pipeline, grid, cv=GroupKFold(3))
        search.fit(X, y, qid=query, groups=query)
    assert search.best_params_["gradientboostingranker__learning_rate"] == 0.3
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
