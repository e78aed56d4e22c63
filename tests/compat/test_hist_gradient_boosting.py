"""HistGradientBoosting of arboost.compat.sklearn against scikit-learn's own, and its refusals."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import ensemble
from sklearn.datasets import load_iris, make_friedman1
from sklearn.metrics import make_scorer, mean_absolute_error

import arboost
from arboost.compat.sklearn import HistGradientBoostingClassifier, HistGradientBoostingRegressor

X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def regression(n_rows=200):
    return make_friedman1(n_rows, n_features=5, noise=0.5, random_state=0)


def pair(kind, **params):
    name = f"HistGradientBoosting{kind}"
    classifier, regressor = HistGradientBoostingClassifier, HistGradientBoostingRegressor
    params = {"max_iter": 10, "random_state": 0, **params}
    ours = classifier if kind == "Classifier" else regressor
    return ours(**params), getattr(ensemble, name)(**params)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"loss": "poisson"},
        {"loss": "gamma"},
        {"l2_regularization": 3.0, "min_samples_leaf": 5},
        {"max_depth": 2},
        {"max_leaf_nodes": 4},
        {"interaction_cst": [[0, 1]]},
        {"interaction_cst": "no_interactions"},
    ],
    ids=str,
)
def test_regression_is_scikit_learns(params):
    X, y = regression()
    ours, theirs = pair("Regressor", **params)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "absolute_error"},
        {"loss": "quantile", "quantile": 0.3},
        {"monotonic_cst": [1, 0, 0, -1, 0]},
    ],
    ids=str,
)
def test_others_reach_scikit_learns(params):
    X, y = regression()
    ours, theirs = pair("Regressor", **params)
    errors = [np.abs(y - model.fit(X, y).predict(X)).mean() for model in (ours, theirs)]
    assert errors[0] == pytest.approx(errors[1], rel=0.05)
    if "monotonic_cst" in params:
        assert [proof.holds for proof in ours.verify_monotone()] == [True, True]


@pytest.mark.parametrize("rows", [Y_IRIS != 2, slice(None)], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    "params",
    [{}, {"l2_regularization": 2.0}, {"class_weight": "balanced"}, {"class_weight": {1: 5.0}}],
    ids=str,
)
def test_classification_is_scikit_learns(rows, params):
    X, y = X_IRIS[rows, :2], Y_IRIS[rows]
    ours, theirs = pair("Classifier", **params)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert_allclose(ours._baseline_prediction, theirs._baseline_prediction)
    assert ours.n_trees_per_iteration_ == theirs.n_trees_per_iteration_


@pytest.mark.parametrize("scoring", ["loss", "accuracy", None])
@pytest.mark.parametrize("validation_fraction", [0.3, None])
def test_early_stopping_is_scikit_learns(scoring, validation_fraction):
    X, y = X_IRIS[:, 2:], np.array(["a", "b", "c"])[Y_IRIS]
    params = {"early_stopping": True, "n_iter_no_change": 4, "max_iter": 60}
    ours, theirs = pair(
        "Classifier", scoring=scoring, validation_fraction=validation_fraction, **params
    )
    ours.fit(X, y)
    theirs.fit(X, y)
    assert ours.do_early_stopping_
    assert ours.n_iter_ == theirs.n_iter_
    assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-4)
    assert_allclose(ours.validation_score_, theirs.validation_score_, rtol=1e-4)


def test_scorers_of_users():
    X, y = regression(300)
    X = np.round(4 * X)  # thresholds between whole numbers are the same for held-out rows
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    params = {"scoring": scorer, "early_stopping": True, "max_iter": 20}
    ours, theirs = pair("Regressor", **params)
    weight = np.linspace(1.0, 2.0, len(y))
    ours.fit(X, y, weight)
    theirs.fit(X, y, weight)
    assert_allclose(ours.validation_score_, theirs.validation_score_, rtol=1e-3)

    def other_rows(estimator, X, y):
        return float(estimator.predict(X[:1])[0])

    with pytest.raises(ValueError, match="scoring asked for predictions of other rows"):
        ours.set_params(scoring=other_rows).fit(X, y)


def test_stopping_of_a_large_table():
    X, y = regression(10_001)
    model = HistGradientBoostingRegressor(max_iter=2, random_state=0).fit(X, y)
    assert model.do_early_stopping_
    assert len(model.validation_score_) == 3
    assert not HistGradientBoostingRegressor(max_iter=2).fit(X[:100], y[:100]).do_early_stopping_


def test_ordered_categories_have_no_order():
    y = np.arange(60) % 3 == 1
    frame = pd.DataFrame({"a": pd.Categorical(list("abc") * 20, ordered=True)})
    model, plain = (
        HistGradientBoostingClassifier(max_iter=2).fit(X, y)
        for X in (frame, frame.astype("object"))
    )
    assert model.is_categorical_.tolist() == [True]
    np.testing.assert_array_equal(model.predict_proba(frame), plain.predict_proba(frame))


def test_categories():
    frame = pd.DataFrame({"city": pd.Categorical(list("abcd") * 50), "x": np.arange(200) % 7})
    y = frame["city"].isin(["a", "c"]).astype(int)
    model = HistGradientBoostingClassifier(max_iter=5).fit(frame, y)
    assert model.is_categorical_.tolist() == [True, False]
    assert model.score(frame, y) == 1.0
    assert HistGradientBoostingClassifier(max_iter=1).fit(frame[["x"]], y).is_categorical_ is None
    with pytest.raises(ValueError, match="cardinality <= 3 but actually has a cardinality of 4"):
        HistGradientBoostingClassifier(max_bins=3).fit(frame, y)
    with pytest.raises(ValueError, match="'city' is a category, but categorical_features=None"):
        HistGradientBoostingClassifier(categorical_features=None).fit(frame, y)


def test_trees_as_predictors():
    X, y = regression()
    model = HistGradientBoostingRegressor(max_iter=3, max_depth=2).fit(X, y)
    assert [one.get_max_depth() for (one,) in model._predictors] == [2, 2, 2]
    leaves = model.apply(X)
    raw = model._baseline_prediction[0, 0] + sum(
        one.nodes["value"][leaves[:, number]] for number, (one,) in enumerate(model._predictors)
    )
    assert_allclose(raw, model.predict(X))


def test_file(tmp_path):
    X, y = X_IRIS, Y_IRIS
    model = HistGradientBoostingClassifier(max_iter=3).fit(X, y)
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    assert_allclose(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "quantile"}, "needs a quantile"),
        ({"loss": "huber"}, "loss='huber'"),
        ({"max_bins": 256}, "max_bins=256"),
        ({"early_stopping": "yes"}, "early_stopping='yes'"),
        ({"interaction_cst": "triples"}, "sequence of tuples"),
        ({"interaction_cst": [[0, 9]]}, "integer indices"),
        ({"scoring": "likes", "early_stopping": True}, "likes"),
    ],
    ids=str,
)
def test_refusals(params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        HistGradientBoostingRegressor(**params).fit(*regression())
