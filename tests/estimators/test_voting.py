"""Voting: hard and soft votes, means, weights, and refused input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from arboost import (
    AdaBoostRegressor,
    DataWarning,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from arboost.estimators import member_fits
from support.stacked import ROWS, FrameReader, Latest, Recorder, engine_members

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
X_DIABETES, Y_DIABETES = load_diabetes(return_X_y=True)
LABELS = np.array(["x", "y", "z"])[Y_IRIS]


def classifiers():
    return [
        ("bayes", GaussianNB()),
        ("near", KNeighborsClassifier(15)),
        ("trees", GradientBoostingClassifier(n_estimators=5, max_depth=1)),
    ]


def regressors():
    return [
        ("line", Ridge(alpha=10.0)),
        ("near", KNeighborsRegressor()),
        ("trees", GradientBoostingRegressor(n_estimators=5)),
    ]


# ---- votes and means ----


@pytest.mark.parametrize("weights", [None, [1, 1, 1.5], (0.0, 3.0, 1.0), np.array([2, 1, 1])])
def test_hard_votes_are_counted_by_weight(weights):
    voter = VotingClassifier(classifiers(), weights=weights).fit(X_IRIS, LABELS)
    votes = np.array([member.predict(X_IRIS) for member in voter.estimators_])
    given = [1.0, 1.0, 1.0] if weights is None else weights
    expected = []
    for of_row in votes.T:
        counts = dict.fromkeys(range(3), 0.0)
        for vote, weight in zip(of_row, given, strict=True):
            counts[vote] += weight
        expected.append(max(range(3), key=counts.get))  # the first of equals
    np.testing.assert_array_equal(voter.predict(X_IRIS), voter.classes_[expected])
    np.testing.assert_array_equal(voter.transform(X_IRIS), votes.T)
    assert len({tuple(row) for row in votes.T}) > 3  # the members disagree


def test_the_smaller_label_wins_a_tie():
    members = [
        ("third", FrozenEstimator(GaussianNB().fit(X_IRIS[100:], LABELS[100:]))),
        ("second", FrozenEstimator(GaussianNB().fit(X_IRIS[50:100], LABELS[50:100]))),
    ]
    voter = VotingClassifier(members).fit(X_IRIS, LABELS)
    assert set(voter.predict(X_IRIS)) == {"y"}
    assert set(voter.set_params(weights=[2, 1]).fit(X_IRIS, LABELS).predict(X_IRIS)) == {"z"}


@pytest.mark.parametrize("weights", [None, [1, 0, 2.5]])
def test_soft_votes_are_means(weights):
    voter = VotingClassifier(classifiers(), voting="soft", weights=weights).fit(X_IRIS, LABELS)
    each = np.array([member.predict_proba(X_IRIS) for member in voter.estimators_])
    mean = np.average(each, axis=0, weights=weights)
    np.testing.assert_allclose(voter.predict_proba(X_IRIS), mean, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(voter.predict(X_IRIS), voter.classes_[mean.argmax(axis=1)])
    np.testing.assert_array_equal(voter.transform(X_IRIS), np.hstack(each))
    voter.set_params(flatten_transform=False)
    np.testing.assert_array_equal(voter.transform(X_IRIS), each)


@pytest.mark.parametrize("weights", [None, [1, 0, 2.5]])
def test_regression_is_the_mean(weights):
    voter = VotingRegressor(regressors(), weights=weights).fit(X_DIABETES, Y_DIABETES)
    each = np.array([member.predict(X_DIABETES) for member in voter.estimators_])
    np.testing.assert_array_equal(voter.transform(X_DIABETES), each.T)
    mean = np.average(each, axis=0, weights=weights)
    np.testing.assert_allclose(voter.predict(X_DIABETES), mean, rtol=1e-14)


def test_dropped_members_have_no_weight():
    voter = VotingRegressor(regressors(), weights=[1, 5, 2]).set_params(near="drop")
    voter.fit(X_DIABETES, Y_DIABETES)
    line, trees = voter.estimators_
    expected = (line.predict(X_DIABETES) + 2 * trees.predict(X_DIABETES)) / 3
    np.testing.assert_allclose(voter.predict(X_DIABETES), expected, rtol=1e-14)
    assert voter.named_estimators_.near == "drop"
    names = ["votingregressor_line", "votingregressor_trees"]
    assert voter.get_feature_names_out().tolist() == names


# ---- members ----


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_members_that_lack_a_class(voting):
    """Rows of weight 0 count as absent, so a class may be absent."""
    weight = (Y_IRIS != 1).astype(float)
    members = [("trees", GradientBoostingClassifier(n_estimators=5))]
    voter = VotingClassifier(members, voting=voting).fit(X_IRIS, LABELS, weight)
    assert voter.estimators_[0].classes_.tolist() == [0, 2]
    assert set(voter.predict(X_IRIS)) == {"x", "z"}
    if voting == "soft":
        assert (voter.predict_proba(X_IRIS)[:, 1] == 0.0).all()


def test_members_share_bins(monkeypatch):
    made = []
    shared_dataset = member_fits.shared_dataset

    def counted(*arguments):
        made.append(shared_dataset(*arguments))
        return made[-1]

    monkeypatch.setattr(member_fits, "shared_dataset", counted)
    voter = VotingClassifier(engine_members(), voting="soft").fit(X_IRIS, Y_IRIS)
    assert len(made) == 1  # the 15 bins of the fourth are not shared
    for (_, member), fitted in zip(engine_members(), voter.estimators_, strict=True):
        alone = clone(member).fit(X_IRIS, Y_IRIS)
        np.testing.assert_array_equal(alone.predict_proba(X_IRIS), fitted.predict_proba(X_IRIS))


@pytest.mark.parametrize(
    ("on_bins", "on_values"),
    [
        (RandomForestRegressor(3), RandomForestRegressor(3, quantiles=True)),
        (AdaBoostRegressor(), AdaBoostRegressor(DecisionTreeRegressor(max_depth=1))),
    ],
)
def test_members_that_need_values_get_no_bins(on_bins, on_values):
    members = [("first", on_bins), ("second", on_bins), ("values", on_values)]
    voter = VotingRegressor(members).fit(X_IRIS, Y_IRIS)
    alone = clone(on_values).fit(X_IRIS, Y_IRIS)
    np.testing.assert_array_equal(voter.estimators_[2].predict(X_IRIS), alone.predict(X_IRIS))


def test_results_do_not_depend_on_n_jobs():
    fits = [
        VotingClassifier(classifiers(), voting="soft", n_jobs=n_jobs).fit(X_IRIS, LABELS)
        for n_jobs in (None, 1, 2, -1)
    ]
    first, *others = (fit.transform(X_IRIS) for fit in fits)
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_row_weights_reach_members():
    weight = 1.0 + np.arange(60)
    members = [("one", Recorder()), ("two", make_pipeline(StandardScaler(), Recorder()))]
    one, two = VotingRegressor(members).fit(ROWS, ROWS[:, 0], weight).estimators_
    np.testing.assert_array_equal(one.weight_, weight)
    np.testing.assert_array_equal(two[-1].weight_, weight)
    with pytest.raises(TypeError, match=r"the fit of 'late' \(Latest\) has no such"):
        VotingRegressor([("late", Latest())]).fit(ROWS, ROWS[:, 0], weight)


def test_frames_stay_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2})
    voter = VotingRegressor([("reader", FrameReader())]).fit(frame, frame["b"] + 1)
    np.testing.assert_array_equal(voter.predict(frame[["b", "a"]]), frame["a"])
    assert voter.feature_names_in_.tolist() == ["a", "b"]


def test_a_table_without_names_after_one_with_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X_DIABETES).rename(columns=str)
    members = [("trees", GradientBoostingRegressor(n_estimators=2))]
    voter = VotingRegressor(members).fit(frame, Y_DIABETES)
    with pytest.warns(DataWarning, match="was fitted with feature names") as caught:
        voter.predict(X_DIABETES)
    assert "VotingRegressor" in str(caught[0].message)


def test_parameters_of_members():
    voter = VotingClassifier(classifiers(), voting="soft")
    grid = {"near__n_neighbors": [1, 15], "weights": [None, [1, 2, 3]], "bayes": ["drop"]}
    search = GridSearchCV(voter, grid, cv=2).fit(X_IRIS, LABELS)
    assert len(search.best_estimator_.estimators_) == 2
    other = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(other.predict(X_IRIS), search.predict(X_IRIS))


def test_probabilities_need_soft_voting():
    voter = VotingClassifier(classifiers())
    assert not hasattr(voter, "predict_proba")
    assert hasattr(voter.set_params(voting="soft"), "predict_proba")
    for use in (voter.predict, voter.predict_proba, voter.transform):
        with pytest.raises(NotFittedError):
            use(X_IRIS)


# ---- refused input ----


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"voting": "loud"}, ValueError, 'voting must be "hard" or "soft"'),
        ({"weights": [1, 2]}, ValueError, "weights has 2 entries, but there are 3 members"),
        ({"weights": [0, 0, 0]}, ValueError, r"weights=\[0, 0, 0\] are not allowed.*above 0"),
        ({"weights": [1, -1, 1]}, ValueError, "finite numbers of at least 0"),
        ({"weights": [1, float("nan"), 1]}, ValueError, "finite numbers of at least 0"),
        ({"weights": ["a", 1, 1]}, TypeError, "weights must be a sequence"),
        ({"weights": 3}, TypeError, "weights must be a sequence"),
        ({"flatten_transform": None}, TypeError, "flatten_transform must be True or False"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer"),
        ({"estimators": []}, ValueError, "estimators must be a list of pairs"),
        ({"estimators": [("a", Ridge())]}, ValueError, "'a' .Ridge. is not a classifier"),
        ({"estimators": [("a", GaussianNB())] * 2}, ValueError, "several members of the name 'a'"),
        ({"estimators": [("a__b", GaussianNB())]}, ValueError, "name 'a__b', but __ stands"),
    ],
)
def test_refused(changes, error, message):
    voter = VotingClassifier(classifiers())
    for name, value in changes.items():
        setattr(voter, name, value)
    with pytest.raises(error, match=message):
        voter.fit(X_IRIS, LABELS)
    assert not hasattr(voter, "estimators_")


def test_active_members_need_a_weight_above_zero():
    voter = VotingClassifier(classifiers(), weights=[1, 0, 0]).set_params(bayes="drop")
    with pytest.raises(ValueError, match="the members that are not dropped are all 0"):
        voter.fit(X_IRIS, LABELS)


def test_soft_voting_needs_probabilities():
    voter = VotingClassifier([("svc", SVC())], voting="soft")
    with pytest.raises(ValueError, match=r"'svc' \(SVC\) has no method predict_proba"):
        voter.fit(X_IRIS, LABELS)


def test_several_targets():
    with pytest.raises(NotImplementedError, match=r"y has the shape \(150, 2\), but a vote is"):
        VotingClassifier(classifiers()).fit(X_IRIS, np.column_stack([Y_IRIS, Y_IRIS]))
    with pytest.raises(ValueError, match="y should be a 1d array"):
        VotingRegressor(regressors()).fit(X_DIABETES, np.column_stack([Y_DIABETES, Y_DIABETES]))


def test_names_out():
    voter = VotingClassifier(classifiers()).fit(X_IRIS, LABELS)
    assert voter.get_feature_names_out()[0] == "votingclassifier_bayes"
    voter.set_params(voting="soft")
    assert voter.get_feature_names_out()[:2].tolist() == [
        "votingclassifier_bayes0",
        "votingclassifier_bayes1",
    ]
    with pytest.raises(ValueError, match="equal to the number of columns of X, 4, and has 2"):
        voter.get_feature_names_out(["a", "b"])
    with pytest.raises(ValueError, match="Use flatten_transform=True"):
        voter.set_params(flatten_transform=False).get_feature_names_out()


@pytest.mark.filterwarnings("ignore:y has one class only")
@parametrize_with_checks(
    [
        VotingClassifier(
            [("line", LogisticRegression()), ("trees", GradientBoostingClassifier(n_estimators=5))]
        ),
        VotingClassifier(
            [("line", LogisticRegression()), ("trees", GradientBoostingClassifier(n_estimators=5))],
            voting="soft",
            weights=[2, 1],
        ),
        VotingRegressor(
            [("line", LinearRegression()), ("trees", GradientBoostingRegressor(n_estimators=5))]
        ),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)
