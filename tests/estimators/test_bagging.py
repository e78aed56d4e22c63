"""Bagging: votes and means by hand, out-of-bag predictions by brute force."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from arboost import (
    BaggingClassifier,
    BaggingRegressor,
    DataWarning,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from support.bagged import DIABETES, IRIS, LABELS

# Draws depend on row numbers, so a table of repeated rows has other bags than one of weighted rows,
# and with max_samples=None larger ones; test_weights_are_counts_in_law tests the common law.
OTHER_BAGS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "other rows are drawn"
    for kind in ("dense", "sparse")
}


def expected_failures(estimator):
    return OTHER_BAGS if estimator.bootstrap else {}


@pytest.mark.filterwarnings("ignore:y has one class only")
@parametrize_with_checks(
    [
        BaggingClassifier(n_estimators=5),
        BaggingClassifier(n_estimators=3, bootstrap=False),
        BaggingClassifier(n_estimators=3, voting="hard"),
        BaggingClassifier(KNeighborsClassifier(), n_estimators=3, n_jobs=1),
        BaggingClassifier(GradientBoostingClassifier(n_estimators=5), n_estimators=3),
        BaggingClassifier(
            GradientBoostingClassifier(n_estimators=5), n_estimators=3, bootstrap=False
        ),
        BaggingRegressor(n_estimators=5),
        BaggingRegressor(n_estimators=3, bootstrap=False),
        BaggingRegressor(GradientBoostingRegressor(n_estimators=30), n_estimators=3),
        BaggingRegressor(
            GradientBoostingRegressor(n_estimators=30), n_estimators=3, bootstrap=False
        ),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)


# ---- votes and means ----


def test_soft_vote_is_the_mean_of_probabilities():
    X, _ = IRIS
    model = BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=7).fit(X, LABELS)
    mean = sum(member.predict_proba(X) for member in model.estimators_) / 7
    np.testing.assert_allclose(model.predict_proba(X), mean, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(X), model.classes_[mean.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), mean, rtol=1e-12)
    assert model.predict_log_proba(X).min() == -np.inf


def test_hard_vote_counts_the_classes_of_members_with_probabilities():
    X, _ = IRIS
    member = DecisionTreeClassifier(max_depth=2)
    model = BaggingClassifier(member, n_estimators=7, voting="hard").fit(X, LABELS)
    votes = np.array([one.predict(X) for one in model.estimators_])
    shares = (votes[:, :, np.newaxis] == model.classes_).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(X), shares, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(X), model.classes_[shares.argmax(axis=1)])
    assert not np.array_equal(
        shares, model.set_params(voting="soft").fit(X, LABELS).predict_proba(X)
    )


def test_hard_vote_is_the_share_of_choices():
    X, _ = IRIS
    model = BaggingClassifier(SVC(C=0.05), n_estimators=7).fit(X, LABELS)
    votes = np.array([member.predict(X) for member in model.estimators_])
    shares = (votes[:, :, np.newaxis] == model.classes_).mean(axis=0)
    assert ((shares > 0) & (shares < 1)).sum() > 0
    np.testing.assert_allclose(model.predict_proba(X), shares, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(X), model.classes_[shares.argmax(axis=1)])


def test_regression_is_the_mean():
    X, y = DIABETES
    model = BaggingRegressor(LinearRegression(), n_estimators=6, max_features=0.5).fit(X, y)
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    mean = sum(member.predict(X[:, features]) for member, features in pairs) / 6
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-13)


def test_decision_function_is_the_mean():
    X, y = IRIS
    model = BaggingClassifier(SVC(), n_estimators=4).fit(X, y)
    mean = sum(member.decision_function(X) for member in model.estimators_) / 4
    np.testing.assert_allclose(model.decision_function(X), mean, rtol=1e-13)
    booster = BaggingClassifier(GradientBoostingClassifier(n_estimators=3), n_estimators=4)
    two = booster.fit(X[:100], y[:100])
    mean = sum(member.decision_function(X[:100]) for member in two.estimators_) / 4
    np.testing.assert_allclose(two.decision_function(X[:100]), mean, rtol=1e-13)
    assert mean.shape == (100,)
    assert not hasattr(BaggingClassifier(DecisionTreeClassifier()), "decision_function")


def rare_class():
    """A class of three rows among 60: some bags have none of them."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [30, 27, 3])
    return rng.normal(size=(60, 2)) + np.searchsorted(["a", "b", "c"], y)[:, np.newaxis], y


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), SVC(), GradientBoostingClassifier(n_estimators=3)]
)
def test_members_that_lack_a_class(estimator):
    X, y = rare_class()
    model = BaggingClassifier(estimator, n_estimators=40, max_samples=15).fit(X, y)
    known = {tuple(member.classes_) for member in model.estimators_}
    assert {("a", "b"), ("a", "b", "c")} <= known
    total = np.zeros((60, 3))
    for member in model.estimators_:
        places = np.searchsorted(model.classes_, member.classes_)
        if hasattr(member, "predict_proba"):
            total[:, places] += member.predict_proba(X)
        else:
            total += member.predict(X)[:, np.newaxis] == model.classes_
    np.testing.assert_allclose(model.predict_proba(X), total / 40, atol=1e-12)
    decision = model.decision_function(X)
    assert decision.shape == (60, 3)
    assert np.isfinite(decision).all()


def test_decision_function_of_an_unknown_class():
    """The class gets the smallest value of the member's own classes."""

    class Decider(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.repeat(self.classes_[:1], len(X))

        def decision_function(self, X):
            k = len(self.classes_)
            return X[:, 0] if k <= 2 else np.tile(np.arange(k), (len(X), 1))

    X, y = rare_class()
    model = BaggingClassifier(Decider(), n_estimators=60, max_samples=4).fit(X, y)
    total = np.zeros((60, 3))
    for member in model.estimators_:
        if len(member.classes_) == 3:
            total += [0, 1, 2]
        elif len(member.classes_) == 2:
            of_two = np.column_stack([-X[:, 0], X[:, 0]])
            own = np.repeat(of_two.min(axis=1, keepdims=True), 3, axis=1)
            own[:, np.searchsorted(model.classes_, member.classes_)] = of_two
            total += own
    assert {len(member.classes_) for member in model.estimators_} == {1, 2, 3}
    np.testing.assert_allclose(model.decision_function(X), total / 60, atol=1e-12)


def test_bags_of_one_class():
    X, y = rare_class()
    model = BaggingClassifier(LogisticRegression(), n_estimators=30, max_samples=2).fit(X, y)
    kinds = {type(member) for member in model.estimators_}
    assert kinds == {DummyClassifier, LogisticRegression}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(model.decision_function(X)).all()


def test_errors_of_members_are_not_hidden():
    X, y = IRIS
    with pytest.raises(ValueError, match="contains NaN"):
        BaggingClassifier(LogisticRegression()).fit(np.where(X > 7, np.nan, X), y)


def test_several_targets():
    X, y = DIABETES
    targets = np.column_stack([y, -2 * y, X[:, 0]])
    model = BaggingRegressor(n_estimators=60, oob_score=True).fit(X, targets)
    assert model.predict(X).shape == model.oob_prediction_.shape == targets.shape
    assert model.oob_score_ == r2_score(targets, model.oob_prediction_)
    one = BaggingRegressor(LinearRegression(), n_estimators=5)
    together = one.fit(X, targets).predict(X)
    np.testing.assert_allclose(together[:, 0], one.fit(X, y).predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        BaggingClassifier().fit(X, targets.astype(int))


# ---- out-of-bag predictions ----


def out_of_bag(model, X, n_outputs, predict):
    """Mean predictions of the members, one by one and row by row."""
    means = np.full((len(X), n_outputs), np.nan)
    bags = [set(rows.tolist()) for rows in model.estimators_samples_]
    for row in range(len(X)):
        own = [
            predict(member, X[[row]][:, features])
            for member, features, bag in zip(
                model.estimators_, model.estimators_features_, bags, strict=True
            )
            if row not in bag
        ]
        if own:
            means[row] = np.mean(own, axis=0)
    return means


SETTINGS = [
    {},
    {"max_samples": 0.4, "bootstrap": False},
    {"max_samples": 60, "max_features": 2, "bootstrap_features": True},
    {"max_samples": 500},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
@pytest.mark.parametrize(
    "estimator",
    [
        None,
        SVC(),
        GradientBoostingClassifier(n_estimators=3),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_out_of_bag_classes_by_brute_force(estimator, settings):
    X, y = IRIS[0][::2], LABELS[::2]

    def predict(member, row):
        if hasattr(member, "predict_proba"):
            shares = np.zeros(3)
            shares[np.searchsorted(model.classes_, member.classes_)] = member.predict_proba(row)[0]
            return shares
        return member.predict(row) == model.classes_

    n_estimators = 60 if settings.get("max_samples") == 500 else 15
    model = BaggingClassifier(estimator, n_estimators=n_estimators, oob_score=True, **settings)
    if settings.get("max_samples") == 500:
        with pytest.warns(DataWarning, match="rows were drawn for every member"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    expected = out_of_bag(model, X, 3, predict)
    np.testing.assert_allclose(model.oob_decision_function_, expected, rtol=1e-12)
    known = ~np.isnan(expected[:, 0])
    assert known.all() != (settings.get("max_samples") == 500)
    predicted = model.classes_[expected[known].argmax(axis=1)]
    assert model.oob_score_ == accuracy_score(y[known], predicted)


@pytest.mark.parametrize("settings", SETTINGS[:3], ids=repr)
@pytest.mark.parametrize(
    "estimator",
    [None, KNeighborsRegressor(), GradientBoostingRegressor(n_estimators=3)],
    ids=lambda one: type(one).__name__,
)
def test_out_of_bag_regression_by_brute_force(estimator, settings):
    X, y = DIABETES[0][:90], DIABETES[1][:90]
    model = BaggingRegressor(estimator, n_estimators=15, oob_score=True, **settings).fit(X, y)
    expected = out_of_bag(model, X, 1, lambda member, row: member.predict(row))[:, 0]
    np.testing.assert_allclose(model.oob_prediction_, expected, rtol=1e-12)
    assert model.oob_score_ == pytest.approx(r2_score(y, expected), rel=1e-12)


def test_rows_that_all_members_have_drawn():
    X, y = DIABETES
    with pytest.warns(DataWarning, match=r"(\d+) of 442 rows were drawn for every member") as found:
        model = BaggingRegressor(n_estimators=2, oob_score=True).fit(X, y)
    without = np.isnan(model.oob_prediction_)
    assert str(found[0].message).startswith(f"{without.sum()} of 442 ")
    first, second = map(set, (rows.tolist() for rows in model.estimators_samples_))
    assert set(np.flatnonzero(without)) == first & second
    assert model.oob_score_ == r2_score(y[~without], model.oob_prediction_[~without])


def test_share_of_rows_out_of_bag():
    X, y = make_classification(5000, random_state=0)
    model = BaggingClassifier(DummyClassifier(), n_estimators=50).fit(X, y)
    shares = [1 - len(np.unique(rows)) / 5000 for rows in model.estimators_samples_]
    assert np.mean(shares) == pytest.approx(np.exp(-1), abs=0.004)  # five standard errors


def test_out_of_bag_score_estimates_the_test_score():
    X, y = make_classification(2000, 10, n_informative=5, flip_y=0.1, random_state=0)
    model = BaggingClassifier(n_estimators=60, oob_score=True).fit(X[:1000], y[:1000])
    assert model.score(X[:1000], y[:1000]) > 0.99
    assert model.oob_score_ == pytest.approx(model.score(X[1000:], y[1000:]), abs=0.03)


# getrusage knows other systems, but includes the memory of the parent at the time of the fork.
STATUS = Path("/proc/self/status")

PEAK = """
import sys
import numpy as np
from arboost import BaggingRegressor, GradientBoostingRegressor

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 28))
y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
booster = GradientBoostingRegressor(n_estimators=2)
model = BaggingRegressor(booster, n_estimators=50, oob_score=True) if sys.argv[1:] else booster
before = peak()
model.fit(X, y)
print(before, peak())
"""


def peaks(*arguments):
    """Return the peak memory of a process before and after a fit."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    return map(int, done.stdout.split())


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="peak memory is read from Linux's /proc")
def test_fifty_boosters_take_little_more_memory_than_one():
    before, one = peaks()
    assert one > before  # the peak is that of the fit
    _, fifty = peaks("bagged")
    assert fifty <= 1.5 * one
