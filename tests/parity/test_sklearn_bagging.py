"""Bagging against scikit-learn's bagging, with the same bags and the same seeds of members.

scikit-learn samples from one generator for each member. Here that generator returns the bags of our
fit, so that both train the same members and only bagging is compared.

scikit-learn gives members that take weights all rows, out-of-bag rows with weight 0. Some members
read these rows nevertheless (``gamma="scale"`` of SVC is the variance of all rows), so they are not
among the members here.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn import ensemble
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from arboost import BaggingClassifier, BaggingRegressor
from arboost.estimators.member_fits import set_random_states

SETTINGS = [
    {},
    {"max_samples": 0.6, "max_features": 0.5},
    {"max_samples": 90, "bootstrap_features": True},
    {"max_samples": 0.5, "bootstrap": False, "oob_score": False},
]


class Numbers(RandomState):
    """A generator that returns the indices of the members."""

    def randint(self, high, size):
        return np.arange(size)


@pytest.fixture
def theirs_of(monkeypatch):
    """Return a function that fits scikit-learn's class with the bags and seeds of our fit."""

    def fit(model, X, y, sample_weight=None):
        rows, features = model.estimators_samples_, model.estimators_features_

        def same_bag(number, *arguments):
            return features[number], rows[number]

        def same_seeds(estimator, number):
            set_random_states(estimator, 0, number)

        monkeypatch.setattr(ensemble._bagging, "_generate_bagging_indices", same_bag)
        monkeypatch.setattr(ensemble._base, "_set_random_states", same_seeds)
        kind = getattr(ensemble, type(model).__name__)
        settings = model.get_params(deep=False) | {"random_state": Numbers(0), "verbose": 0}
        settings.pop("voting", None)  # which scikit-learn has not
        return kind(**settings | {"n_jobs": 1}).fit(X, y, sample_weight=sample_weight)

    return fit


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(max_depth=3),
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        SVC(gamma=0.5),
    ],
    ids=lambda one: type(one).__name__,
)
def test_classifier(estimator, weighted, settings, theirs_of):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    if weighted and not settings.get("bootstrap", True):
        pytest.skip("there, weights are chances; ours are passed on")
    usual = {"n_estimators": 20, "oob_score": not weighted, "n_jobs": 1}
    model = BaggingClassifier(estimator, **usual | settings).fit(X, y, sample_weight=weight)
    theirs = theirs_of(model, X, y, weight)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
    if hasattr(estimator, "decision_function"):
        np.testing.assert_allclose(
            model.decision_function(X), theirs.decision_function(X), atol=1e-10
        )
    if model.oob_score:
        assert model.oob_score_ == theirs.oob_score_
        np.testing.assert_allclose(
            model.oob_decision_function_, theirs.oob_decision_function_, atol=1e-12
        )


def test_two_classes(theirs_of):
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier()
    model = BaggingClassifier(tree, n_estimators=20, max_features=5, oob_score=True).fit(X, y)
    theirs = theirs_of(model, X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    assert model.oob_score_ == theirs.oob_score_


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeRegressor(), KNeighborsRegressor(), LinearRegression()],
    ids=lambda one: type(one).__name__,
)
def test_regressor(estimator, n_targets, settings, theirs_of):
    X, y = load_diabetes(return_X_y=True)
    y = y if n_targets == 1 else np.column_stack([y, X[:, 0] * X[:, 1]])
    usual = {"n_estimators": 20, "oob_score": n_targets == 1, "n_jobs": 1}
    model = BaggingRegressor(estimator, **usual | settings).fit(X, y)
    theirs = theirs_of(model, X, y)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-9)
    if model.oob_score:
        assert model.oob_score_ == pytest.approx(theirs.oob_score_, rel=1e-9)
        np.testing.assert_allclose(model.oob_prediction_, theirs.oob_prediction_, rtol=1e-9)
