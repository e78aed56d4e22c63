"""Stacking and voting against scikit-learn's classes, with the same members and folds."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse
import sklearn.ensemble
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import arboost

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
NAMES = ("StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor")
CLASSIFIERS = [
    ("line", LogisticRegression()),
    ("bayes", GaussianNB()),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
]
REGRESSORS = [
    ("line", Ridge()),
    ("tree", DecisionTreeRegressor(max_depth=3, random_state=0)),
    ("plain", LinearRegression()),
]


def both(name, *arguments, **named):
    """Return our ensemble and scikit-learn's, unfitted."""
    modules = (arboost, sklearn.ensemble)
    return [getattr(module, name)(*map(clone_all, arguments), **named) for module in modules]


def clone_all(argument):
    return [(name, clone(member)) for name, member in argument]


def agree(ours, theirs, X):
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), **CLOSE)
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    assert hasattr(ours, "classes_") == hasattr(theirs, "classes_")
    if hasattr(ours, "classes_"):
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    else:
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), **CLOSE)
    for method in ("predict_proba", "decision_function"):
        assert hasattr(ours, method) == hasattr(theirs, method)
        if hasattr(ours, method):
            given, expected = getattr(ours, method)(X), getattr(theirs, method)(X)
            np.testing.assert_allclose(given, expected, **CLOSE)


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    ours, theirs = (
        inspect.signature(getattr(module, name)).parameters
        for module in (arboost, sklearn.ensemble)
    )
    assert list(ours) == list(theirs)
    for parameter, other in zip(ours.values(), theirs.values(), strict=True):
        assert (parameter.default, parameter.kind) == (other.default, other.kind)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("cv", [None, 3, StratifiedKFold(4, shuffle=True, random_state=1)])
def test_stacked_classes(load, passthrough, cv):
    X, y = load(return_X_y=True)
    X, y = scale(X), np.array(["c", "a", "b"])[y]
    ours, theirs = both("StackingClassifier", CLASSIFIERS, passthrough=passthrough, cv=cv)
    agree(ours.fit(X, y), theirs.fit(X, y), X)
    np.testing.assert_allclose(ours.final_estimator_.coef_, theirs.final_estimator_.coef_, **CLOSE)
    assert ours.stack_method_ == theirs.stack_method_


@pytest.mark.parametrize("method", ["auto", "predict", "decision_function"])
def test_stack_methods(method):
    X, y = load_iris(return_X_y=True)
    members = [("line", LogisticRegression()), ("svc", LinearSVC(random_state=0))]
    final = DecisionTreeClassifier(random_state=0)
    ours, theirs = both("StackingClassifier", members, stack_method=method)
    ours.set_params(final_estimator=final)
    theirs.set_params(final_estimator=final)
    agree(ours.fit(scale(X), y), theirs.fit(scale(X), y), scale(X))


def test_several_targets():
    X, y = load_wine(return_X_y=True)
    X, several = scale(X), np.column_stack([y == 0, y == 2, y != 1]).astype(int)
    members = [("near", KNeighborsClassifier()), ("line", RidgeClassifier())]
    folds = KFold(3, shuffle=True, random_state=0)
    ours, theirs = both("StackingClassifier", members, cv=folds)
    for stack in (ours, theirs):
        stack.set_params(final_estimator=KNeighborsClassifier()).fit(X, several)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), **CLOSE)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert len(ours.get_feature_names_out()) == 6  # scikit-learn has two names for six columns
    # scikit-learn has the probabilities of the label 0 here.
    np.testing.assert_allclose(ours.predict_proba(X), 1.0 - theirs.predict_proba(X), **CLOSE)


@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_stacked_numbers(passthrough, weighted):
    X, y = load_diabetes(return_X_y=True)
    weight = {"sample_weight": 1.0 + np.arange(len(y)) % 3} if weighted else {}
    folds = [(np.arange(0, 300), np.arange(300, 442)), (np.arange(150, 442), np.arange(150))]
    folds.append((np.r_[:150, 300:442], np.arange(150, 300)))
    ours, theirs = both("StackingRegressor", REGRESSORS, passthrough=passthrough, cv=folds)
    agree(ours.fit(X, y, **weight), theirs.fit(X, y, **weight), X)


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_sparse_tables(form):
    X, y = load_diabetes(return_X_y=True)
    X = form(np.where(np.abs(X) < 0.03, 0.0, X))
    ours, theirs = both("StackingRegressor", REGRESSORS[:2], passthrough=True)
    given, expected = ours.fit(X, y).transform(X), theirs.fit(X, y).transform(X)
    assert given.format == expected.format
    np.testing.assert_allclose(given.toarray(), expected.toarray(), **CLOSE)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), **CLOSE)


@pytest.mark.parametrize("prefit", ["predict_proba", "predict"])
def test_members_that_are_fitted_already(prefit):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    members = [(name, clone(member).fit(X[::2], y[::2])) for name, member in CLASSIFIERS]
    stacks = [
        module.StackingClassifier(members, cv="prefit", stack_method=prefit).fit(X, y)
        for module in (arboost, sklearn.ensemble)
    ]
    agree(*stacks, X)


@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("weights", [None, [1, 2, 1.5]])
@pytest.mark.parametrize("flat", [True, False])
def test_votes(voting, weights, flat):
    X, y = load_wine(return_X_y=True)
    X, y = scale(X)[:, :3], np.array(["c", "a", "b"])[y]
    ours, theirs = both(
        "VotingClassifier", CLASSIFIERS, voting=voting, weights=weights, flatten_transform=flat
    )
    ours.fit(X, y)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), **CLOSE)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if voting == "soft":
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), **CLOSE)


@pytest.mark.parametrize("weights", [None, [1, 2, 1.5]])
def test_means(weights):
    X, y = load_diabetes(return_X_y=True)
    ours, theirs = both("VotingRegressor", REGRESSORS, weights=weights)
    agree(ours.fit(X, y), theirs.fit(X, y), X)
