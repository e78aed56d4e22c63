"""Permutation importances of what is no single model of trees: ensembles, pipelines, others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import arboost
from arboost import GradientBoostingClassifier, GradientBoostingRegressor, permutation_importances
from arboost.models.importances import Shuffles, table_increases

N_ROWS = 200
RNG = np.random.default_rng(0)
X = pd.DataFrame({"noise": RNG.normal(size=N_ROWS), "x": RNG.random(N_ROWS)})
X.insert(1, "city", RNG.choice(list("abc"), N_ROWS))
X.index = RNG.permutation(N_ROWS)
Y = X["x"].to_numpy() + (X["city"] == "a").to_numpy()
LABELS = np.where(Y > 0.8, "high", "low")


def members(cls=GradientBoostingRegressor):
    return [("a", cls(n_estimators=5)), ("b", cls(n_estimators=3, max_depth=2))]


REGRESSORS = {
    "voting": arboost.VotingRegressor(members()),
    "stacking": arboost.StackingRegressor(members()),
    "bagging": arboost.BaggingRegressor(GradientBoostingRegressor(n_estimators=3), n_estimators=2),
    "pipeline": make_pipeline(FunctionTransformer(), GradientBoostingRegressor(n_estimators=5)),
}
CLASSIFIERS = {
    "voting": arboost.VotingClassifier(members(GradientBoostingClassifier)),
    "hard": arboost.VotingClassifier(members(GradientBoostingClassifier), voting="hard"),
    "stacking": arboost.StackingClassifier(members(GradientBoostingClassifier)),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    model = REGRESSORS[name].fit(X, Y)
    found = permutation_importances(model, X, Y, n_repeats=2)
    assert found.shape == (2, 3)
    noise, city, x = found.mean(axis=0)
    assert min(city, x) > 0.02 > abs(noise)
    np.testing.assert_array_equal(permutation_importances(model, X, Y, n_repeats=2), found)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    model = CLASSIFIERS[name].fit(X, LABELS)
    noise, city, x = permutation_importances(model, X, LABELS).mean(axis=0)
    assert min(city, x) > 0.02 > abs(noise)


def test_loaded_ensembles_and_columns_by_name(tmp_path):
    model = REGRESSORS["voting"].fit(X, Y)
    expected = permutation_importances(model, X, Y)
    model.save(tmp_path / "ensemble.arb")
    loaded = arboost.load(tmp_path / "ensemble.arb")
    np.testing.assert_array_equal(permutation_importances(loaded, X, Y), expected)
    turned = X[["x", "city", "noise"]].assign(y=Y)
    np.testing.assert_array_equal(permutation_importances(model, turned, "y"), expected)


def test_equal_to_the_shuffles_inside_a_model():
    model = GradientBoostingRegressor(n_estimators=5).fit(X, Y)
    expected = permutation_importances(model, X, Y, n_repeats=2)
    tables = {
        "pandas": X,
        "polars": pl.from_pandas(X),
        "arrow": pa.Table.from_pandas(X, preserve_index=False),
        "dict": X.to_dict("list"),
        "dicts": X.to_dict("records"),
    }
    for kind, table in tables.items():
        found = table_increases(model, table, Y, None, Shuffles(n_repeats=2))
        np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=kind)
    numbers = X[["noise", "x"]].to_numpy()
    model = GradientBoostingRegressor(n_estimators=5).fit(numbers, Y)
    expected = permutation_importances(model, numbers, Y, n_repeats=2)
    for table in (numbers, numbers.tolist(), sparse.csr_matrix(numbers)):
        found = table_increases(model, table, Y, None, Shuffles(n_repeats=2))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_metrics_weights_and_other_libraries():
    model = LinearRegression().fit(X[["noise", "x"]], Y)
    rows = X[["noise", "x"]]
    weight = RNG.random(N_ROWS)
    mae = permutation_importances(model, rows, Y, metric="mae", sample_weight=weight)
    own = permutation_importances(
        model,
        rows,
        Y,
        sample_weight=weight,
        metric=lambda y, p, w: np.average(abs(y - p), weights=w),
    )
    np.testing.assert_allclose(mae, own)
    with pytest.raises(TypeError, match="a object without a method predict"):
        permutation_importances(object(), rows, Y)
    with pytest.raises(ValueError, match="X lacks the columns 'x' of fit"):
        permutation_importances(model, rows[["noise"]], Y)


def test_plot():
    pytest.importorskip("matplotlib").use("Agg")
    from arboost.plots import plot_importances

    for model in (REGRESSORS["voting"].fit(X, Y), REGRESSORS["pipeline"].fit(X, Y)):
        with pytest.raises(TypeError, match=r'kind="permutation", X=X'):
            plot_importances(model)
        axes = plot_importances(model, kind="permutation", X=X, y=Y)
        assert {text.get_text() for text in axes.get_yticklabels()} == {"noise", "city", "x"}
