"""GradientBoosting of arboost.compat.sklearn against scikit-learn's own, and its refusals."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import ensemble
from sklearn.datasets import load_iris, make_friedman1
from sklearn.linear_model import LinearRegression, LogisticRegression

import arboost
from arboost.compat.sklearn import GradientBoostingClassifier, GradientBoostingRegressor

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
TWO = Y_IRIS != 0


def regression(n_rows=150):
    """Return fewer values of each feature than bins, so that thresholds are the same."""
    X, y = make_friedman1(n_rows, n_features=5, noise=0.5, random_state=0)
    return X, y


def pair(kind, **params):
    name = f"GradientBoosting{kind}"
    ours = {"Classifier": GradientBoostingClassifier, "Regressor": GradientBoostingRegressor}[kind]
    params = {"n_estimators": 10, "random_state": 0, **params}
    return ours(**params), getattr(ensemble, name)(**params)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"max_leaf_nodes": 5, "max_depth": None},
        {"min_samples_split": 30, "min_samples_leaf": 0.05},
        {"min_weight_fraction_leaf": 0.1},
        {"min_impurity_decrease": 0.2},
        {"ccp_alpha": 0.15},
        {"init": "zero", "learning_rate": 0.3},
        {"init": LinearRegression()},
    ],
    ids=str,
)
def test_regression_is_scikit_learns(params):
    X, y = regression()
    ours, theirs = pair("Regressor", **params)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    assert_allclose(list(ours.staged_predict(X))[3], list(theirs.staged_predict(X))[3], rtol=1e-5)
    sizes = [[one.tree_.node_count for one in model.estimators_.flat] for model in (ours, theirs)]
    assert sizes[0] == sizes[1]
    assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-5)


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "absolute_error"},
        {"loss": "absolute_error", "ccp_alpha": 0.03},
        {"loss": "quantile", "alpha": 0.3},
        {"loss": "huber", "alpha": 0.8},
    ],
    ids=str,
)
def test_robust_losses_reach_scikit_learns(params):
    """Gradients of few values tie many splits, and medians of an even number of rows differ."""
    X, y = regression(400)
    ours, theirs = pair("Regressor", n_estimators=50, **params)
    errors = [np.abs(y - model.fit(X, y).predict(X)).mean() for model in (ours, theirs)]
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
    assert ours.init_.constant_ == theirs.init_.constant_
    assert np.all(np.diff(ours.train_score_) < 0.02)


@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ccp_alpha": 0.01},
        {"init": "zero"},
        {"init": LogisticRegression(max_iter=1000)},
        {"max_leaf_nodes": 3},
    ],
    ids=str,
)
def test_classification_is_scikit_learns(rows, params):
    X, y = X_IRIS[rows, 2:], np.array(["a", "b", "c"])[Y_IRIS[rows]]  # without ties
    ours, theirs = pair("Classifier", **params)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-4)
    if not isinstance(params.get("init"), LogisticRegression):  # scores of probabilities near 0
        assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-3)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert (ours.n_classes_, ours.n_estimators_, ours.max_features_) == (len(set(y)), 10, 2)
    assert ours.estimators_.shape == ours.apply(X).shape[1:] == theirs.estimators_.shape


def test_weights_of_zero_are_left_out_with_init():
    X, y = regression()
    weight = np.where(np.arange(len(y)) % 3, 1.0, 0.0)
    ours, theirs = pair("Regressor", init=LinearRegression())
    fits = [
        model.fit(X, y, sample_weight=weight).predict(X[weight > 0]) for model in (ours, theirs)
    ]
    assert_allclose(*fits, rtol=1e-5)


def test_early_stopping_is_scikit_learns():
    X, y = regression(300)
    X = np.round(4 * X)  # thresholds between whole numbers are the same for held-out rows
    params = {"n_estimators": 200, "n_iter_no_change": 3, "tol": 0.01, "validation_fraction": 0.3}
    ours, theirs = pair("Regressor", **params)
    assert ours.fit(X, y).n_estimators_ == theirs.fit(X, y).n_estimators_ < 200
    assert len(ours.train_score_) == len(ours) == ours.n_estimators_


def test_members_are_steps_of_the_stages():
    X, y = regression()
    model = GradientBoostingRegressor(n_estimators=4, learning_rate=0.2).fit(X, y)
    steps = sum(0.2 * one.predict(X) for one in model.estimators_[:, 0])
    assert_allclose(model.init_.predict(X) + steps, model.predict(X))
    assert [one.max_depth for (one,) in model] == [3] * 4


def test_out_of_bag():
    X, y = regression()
    model = GradientBoostingRegressor(n_estimators=30, subsample=0.5, random_state=0).fit(X, y)
    assert model.oob_scores_.shape == model.oob_improvement_.shape == (30,)
    assert model.oob_score_ == model.oob_scores_[-1] < model.oob_scores_[0]
    assert_allclose(model.oob_improvement_[1:], -np.diff(model.oob_scores_))
    assert not hasattr(model.set_params(subsample=1.0).fit(X, y), "oob_score_")


def test_warm_start_is_one_fit():
    X, y = regression()
    whole = GradientBoostingRegressor(n_estimators=8, init=LinearRegression()).fit(X, y)
    model = GradientBoostingRegressor(n_estimators=3, init=LinearRegression(), warm_start=True)
    model.fit(X, y).set_params(n_estimators=8).fit(X, y)
    assert_allclose(model.predict(X), whole.predict(X))
    assert_allclose(model.train_score_, whole.train_score_)
    model.set_params(n_estimators=9, learning_rate=0.5).fit(X, y)
    last = model.predict(X) - whole.predict(X)
    assert_allclose(0.5 * model.estimators_[-1, 0].predict(X), last, atol=1e-9)
    with pytest.raises(ValueError, match="keeps the 9 stages"):
        model.set_params(n_estimators=4).fit(X, y)


def test_monitor_and_table_of_progress(capsys):
    X, y = regression()
    seen = []

    def monitor(stage, estimator, arrays):
        seen.append((stage, arrays["raw_predictions"].shape))
        return stage == 2

    model = GradientBoostingRegressor(verbose=2).fit(X, y, monitor=monitor)
    assert seen == [(stage, (len(y), 1)) for stage in range(3)]
    assert model.n_estimators_ == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Iter", "Train", "Loss", "Remaining", "Time"]
    assert len(lines) == 4


def test_files_and_pickles(tmp_path):
    X, y = regression()
    model = GradientBoostingRegressor(n_estimators=5, min_samples_split=20).fit(X, y)
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert (loaded.params["min_samples_split"], loaded.params["init"]) == (20, None)
    assert_array_equal(arboost.Predictor.from_json(loaded.to_json()).predict(X), model.predict(X))
    assert_allclose(model.shap_values(X).sum(axis=1) + model.expected_value(), model.predict(X))
    model.set_params(init=LinearRegression()).fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    refused = "save is not available for trees that correct LinearRegression"
    with pytest.raises(ValueError, match=refused):
        model.save(tmp_path / "model.arb")
    with pytest.raises(ValueError, match="shap_values is not available for trees that correct"):
        model.shap_values(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "poisson"}, "loss='poisson'"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"max_features": 1.5}, "max_features=1.5"),
        ({"init": "mean"}, "init='mean' is not allowed"),
        ({"ccp_alpha": -1.0}, "ccp_alpha=-1.0"),
        ({"subsample": 0.0}, "subsample=0.0"),
        ({"validation_fraction": 1.0, "n_iter_no_change": 3}, "validation_fraction=1.0"),
    ],
    ids=str,
)
def test_refusals(params, message):
    with pytest.raises(ValueError, match=message):
        GradientBoostingRegressor(**params).fit(*regression())


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="y contains 1 class"):
        GradientBoostingClassifier().fit([[0], [1]], [1, 1])


def test_categories_and_missing_values_are_allowed():
    X = np.array([["a", 1.0], ["b", None], ["a", 2.0], ["b", 3.0]] * 10, object)
    model = GradientBoostingClassifier(n_estimators=5).fit(X, list("xyxy") * 10)
    assert model.predict(X[:2]).tolist() == ["x", "y"]
