"""Custom losses and metrics: equal to built-in ones, and not needed by a saved model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import arboost
from arboost import CustomLoss, GradientBoostingClassifier, GradientBoostingRegressor


@pytest.fixture(scope="module")
def binary():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def regression():
    return load_diabetes(return_X_y=True)


def logistic_gradients(y, score, weight):
    p = 1 / (1 + np.exp(-score))
    w = 1.0 if weight is None else weight
    return w * (p - y), w * p * (1 - p)


def logistic_start(y, weight):
    p = np.average(y, weights=weight)
    return np.log(p / (1 - p))


def logistic_value(y, score, weight):
    return np.average(np.logaddexp(0, score) - y * score, weights=weight)


def logistic(**changes):
    fields = {
        "name": "my_logistic",
        "gradients": logistic_gradients,
        "start": logistic_start,
        "value": logistic_value,
        "link": "logistic",
    }
    return CustomLoss(**fields | changes)


def squared_gradients(y, score, weight):
    w = np.ones_like(y) if weight is None else weight
    return w * (score - y), w


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["hist", "exact"])
def test_logistic_is_the_built_in_one(binary, weighted, method):
    X, y = binary
    weight = np.linspace(0.5, 2.0, len(y)) if weighted else None
    settings = {"n_estimators": 30, "tree_method": method}
    ours = GradientBoostingClassifier(loss=logistic(), **settings).fit(X, y, weight)
    built_in = GradientBoostingClassifier(**settings).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict_proba(X), built_in.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), built_in.predict(X))
    np.testing.assert_array_equal(ours.classes_, built_in.classes_)


def test_squared_error_is_the_built_in_one(regression):
    X, y = regression
    loss = CustomLoss(name="squares", gradients=squared_gradients, start=lambda y, w: y.mean())
    ours = GradientBoostingRegressor(loss=loss, n_estimators=20).fit(X, y)
    built_in = GradientBoostingRegressor(n_estimators=20).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), built_in.predict(X), rtol=1e-6)


def test_start_is_0_unless_given(regression):
    loss = CustomLoss(name="squares", gradients=squared_gradients)
    model = GradientBoostingRegressor(loss=loss, n_estimators=2).fit(*regression)
    assert model.model_.base_score[0] == 0.0


def test_validation_uses_its_value(binary):
    X, y = binary
    settings = {"n_estimators": 10, "n_iter_no_change": 5}
    fits = [
        GradientBoostingClassifier(**settings, **more).fit(
            X[:400], y[:400], X_val=X[400:], y_val=y[400:]
        )
        for more in ({"loss": logistic()}, {})
    ]
    curves = [next(iter(fit.evals_result_["validation"].values())) for fit in fits]
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-5)


def test_metric(regression):
    """Custom metric: a function of (y, score, weight) next to built-in metrics; lower is better."""
    X, y = regression

    def largest_error(y, score, weight):
        return np.abs(y - score.reshape(len(y))).max()

    model = GradientBoostingRegressor(n_estimators=8, eval_metric=largest_error)
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    curve = model.evals_result_["validation"]["largest_error"]
    stages = [np.abs(y[300:] - stage).max() for stage in model.staged_predict(X[300:])]
    np.testing.assert_allclose(curve, stages, rtol=1e-12)


def test_loaded_model_predicts_without_the_loss(binary, tmp_path):
    X, y = binary
    model = GradientBoostingClassifier(loss=logistic(), n_estimators=5).fit(X, y)
    model.save(tmp_path / "custom.arb")
    loaded = arboost.load(tmp_path / "custom.arb")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y)


def test_training_goes_on_with_the_loss_only(binary, tmp_path):
    X, y = binary
    settings = {"n_estimators": 5}
    whole = GradientBoostingClassifier(loss=logistic(), n_estimators=10).fit(X, y)
    half = GradientBoostingClassifier(loss=logistic(), **settings).fit(X, y)
    half.save(tmp_path / "custom.arb")
    loaded = arboost.load(tmp_path / "custom.arb")
    with pytest.raises(ValueError, match="my_logistic"):
        GradientBoostingClassifier(**settings).fit(X, y, init_model=loaded)
    on = GradientBoostingClassifier(loss=logistic(), **settings).fit(X, y, init_model=loaded)
    np.testing.assert_allclose(on.predict_proba(X), whole.predict_proba(X), atol=1e-9)


WRONG = {
    "too few": (lambda y, score, weight: (score[1:], score[1:]), ValueError),
    "not finite": (lambda y, score, weight: (score + np.nan, np.ones_like(y)), ValueError),
    "negative": (lambda y, score, weight: (score - y, -np.ones_like(y)), ValueError),
    "one array": (lambda y, score, weight: score - y, (TypeError, ValueError)),
    "text": (lambda y, score, weight: ("a", "b"), (TypeError, ValueError)),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_gradients_are_refused(regression, kind):
    function, error = WRONG[kind]
    model = GradientBoostingRegressor(loss=CustomLoss(name="my_loss", gradients=function))
    with pytest.raises(error, match="my_loss"):
        model.fit(*regression)


def test_link_is_checked():
    with pytest.raises(ValueError, match="link"):
        CustomLoss(name="my_loss", gradients=squared_gradients, link="cubic")
