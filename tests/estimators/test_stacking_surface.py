"""Stacking: tables, parameters, refused input, and scikit-learn's checks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from arboost import (
    Dataset,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from support.stacked import (
    GROUPS,
    ROWS,
    ClassRecorder,
    FrameReader,
    engine_members,
)

# ---- tables ----


def test_frames_stay_frames_and_columns_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2})
    stack = StackingRegressor([("reader", FrameReader())], Ridge(), cv=2).fit(frame, frame["b"] + 1)
    assert stack.feature_names_in_.tolist() == ["a", "b"]
    assert stack.n_features_in_ == 2
    np.testing.assert_array_equal(stack.transform(frame[["b", "a"]]), frame[["a"]])
    with pytest.raises(ValueError, match="yet now missing:\n- b"):
        stack.predict(frame[["a"]])
    stack.set_params(passthrough=True).fit(frame, frame["b"] + 1)
    assert type(stack.transform(frame)) is np.ndarray
    assert stack.transform(frame).shape == (20, 3)


def test_pandas_output():
    pytest.importorskip("pandas")
    X, y = load_diabetes(return_X_y=True)
    stack = StackingRegressor([("line", Ridge()), ("flat", LinearRegression())])
    stack.set_output(transform="pandas").fit(X, y)
    assert list(stack.transform(X)) == ["stackingregressor_line", "stackingregressor_flat"]
    stack.predict(X)  # the final estimator gets the same names as in fit: no warning


def test_texts():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["red apple", "green apple", "fast car", "slow car"] * 6
    labels = ["fruit", "fruit", "car", "car"] * 6
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression())
    stack = StackingClassifier([("words", pipe)], cv=3).fit(texts, labels)
    assert stack.predict(["apple", "car"]).tolist() == ["fruit", "car"]
    assert not hasattr(stack, "n_features_in_")
    with pytest.raises(ValueError, match=r"X is not a table.*passthrough=False"):
        clone(stack).set_params(passthrough=True).fit(texts, labels)


def test_kernel_matrices():
    X, y = load_iris(return_X_y=True)
    kernel = X @ X.T
    stack = StackingClassifier([("svc", SVC(kernel="precomputed"))], ClassRecorder(), cv=3)
    stack.fit(kernel, y)
    (train, held_out), *_ = KFold(3).split(X)
    stack.set_params(cv=[(train, held_out), (held_out, train)])
    with pytest.raises(ValueError, match="without the classes 0") as caught:
        stack.fit(kernel, y)  # unshuffled: a class is missing in each fold
    assert "every class among the rows to train on" in str(caught.value)
    assert caught.value.__notes__ == ["It was raised by the member 'svc' on the rows of a fold."]


def test_datasets_are_refused():
    X, y = load_iris(return_X_y=True)
    stack = StackingClassifier(engine_members())
    with pytest.raises(TypeError, match=r"X is a Dataset.*Pass the table it was made from"):
        stack.fit(Dataset(X, y), y)


# ---- parameters ----


def test_parameters_of_members():
    stack = StackingRegressor([("line", Ridge()), ("near", KNeighborsRegressor())])
    assert stack.get_params()["line__alpha"] == 1.0
    assert stack.get_params(deep=False).keys() == {
        "estimators",
        "final_estimator",
        "cv",
        "n_jobs",
        "passthrough",
        "verbose",
    }
    given = stack.estimators
    stack.set_params(line__alpha=3.0, near="drop", cv=2)
    assert stack.estimators[1] == ("near", "drop")
    assert given[1][1] != "drop"  # the list of the user is unchanged
    stack.fit(ROWS, ROWS[:, 0])
    assert [member.alpha for member in stack.estimators_] == [3.0]
    assert stack.named_estimators_.near == "drop"
    assert stack.named_estimators_.line is stack.estimators_[0]
    with pytest.raises(ValueError, match="Invalid parameter"):
        stack.set_params(far="drop")


def test_grid_search_over_members():
    X, y = load_diabetes(return_X_y=True)
    grid = {"line__alpha": [0.1, 1.0], "trees": ["drop", GradientBoostingRegressor(n_estimators=5)]}
    stack = StackingRegressor([("line", Ridge()), ("trees", "drop")], cv=2)
    search = GridSearchCV(stack, grid, cv=2).fit(X, y)
    assert search.best_estimator_.predict(X).shape == y.shape


@pytest.mark.parametrize("how", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_predict_the_same(how):
    X, y = load_iris(return_X_y=True)
    stack = StackingClassifier(engine_members(), cv=2).fit(X, y)
    np.testing.assert_array_equal(how(stack).predict_proba(X), stack.predict_proba(X))


def test_a_failed_fit_changes_nothing():
    X, y = load_iris(return_X_y=True)
    stack = StackingClassifier([("bayes", GaussianNB())], cv=2).fit(X, y)
    before = dict(vars(stack))
    with pytest.raises(ValueError, match="y has 149 values"):
        stack.fit(X[:, :2], y[:149])
    assert vars(stack) == before


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"cv": 1}, ValueError, r"cv=1 \(int\) is not allowed: cv must be a number of at least 2"),
        ({"cv": "time"}, ValueError, 'cv must be .*"prefit", or None. Use cv=5'),
        ({"cv": 2.5}, TypeError, r"cv=2.5 \(float\) is not allowed"),
        ({"cv": True}, TypeError, r"cv=True \(bool\) is not allowed"),
        ({"cv": []}, ValueError, "cv holds no fold"),
        ({"cv": ShuffleSplit(5)}, ValueError, "cv holds out .* rows more than once"),
        ({"cv": [([0, 1], [1, 2])]}, ValueError, r"cv\[0\] has rows on both sides: 1"),
        ({"cv": [([0, 60], [1, 2])]}, ValueError, r"cv\[0\]\[0\] holds the row 60"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be an integer from 1 to 1024, or -1, or None"),
        ({"verbose": -1}, ValueError, "verbose must be an integer of at least 0, or True or False"),
        ({"passthrough": 1}, TypeError, "passthrough must be True or False"),
        ({"final_estimator": Ridge}, TypeError, "final_estimator must be an estimator with"),
        ({"final_estimator": GaussianNB()}, ValueError, "is not a regressor. Use a regressor"),
        ({"estimators": ()}, ValueError, "list of pairs .name, estimator., at least one"),
        ({"estimators": [Ridge()]}, ValueError, "Ridge..]..list. is not allowed.*Use for example"),
        ({"estimators": [("a", "drop")]}, ValueError, "only .drop. entries"),
        ({"estimators": [("a", GaussianNB())]}, ValueError, "'a' .GaussianNB. is not a regressor"),
        ({"estimators": [("a", Ridge)]}, ValueError, "Pass an estimator, not its class"),
        ({"estimators": [("a", 3)]}, ValueError, "'a' is 3 .int., which has no fit"),
        (
            {"estimators": [("cv", Ridge())]},
            ValueError,
            "'cv', which is a parameter of",
        ),
    ],
)
def test_refused(changes, error, message):
    stack = StackingRegressor([("line", Ridge())])
    for name, value in changes.items():
        setattr(stack, name, value)
    with pytest.raises(error, match=message):
        stack.fit(ROWS, ROWS[:, 0])


def test_groups_that_cv_does_not_read():
    stack = StackingRegressor([("line", Ridge())], cv=[([0, 1], [2, 3])])
    with pytest.raises(ValueError, match="cv lists its rows already"):
        stack.fit(ROWS, ROWS[:, 0], groups=GROUPS)
    with pytest.raises(ValueError, match=r"cv=13 is not allowed: groups.*Use cv=12 or fewer"):
        stack.set_params(cv=13).fit(ROWS, ROWS[:, 0], groups=GROUPS)
    with pytest.raises(ValueError, match="groups"):
        stack.set_params(cv=GroupKFold(3)).fit(ROWS, ROWS[:, 0])


def test_arguments_without_metadata_routing():
    stack = StackingRegressor([("line", Ridge())])
    with pytest.raises(ValueError, match=r"fit got colour.*metadata_routing=True"):
        stack.fit(ROWS, ROWS[:, 0], colour="red")


def test_method_that_a_member_lacks():
    X, y = load_iris(return_X_y=True)
    stack = StackingClassifier([("line", Ridge())], stack_method="predict_proba")
    with pytest.raises(ValueError, match=r"'line' \(Ridge\) has no method predict_proba"):
        stack.fit(X, y)


def test_errors_of_members_name_them():
    stack = StackingRegressor([("fine", Ridge()), ("bad", Ridge(alpha="much"))])
    with pytest.raises(ValueError, match="alpha") as caught:
        stack.fit(ROWS, ROWS[:, 0])
    assert caught.value.__notes__ == ["It was raised by the member 'bad'."]
    stack = StackingRegressor([("bad", GradientBoostingRegressor(max_depth=0)), ("fine", Ridge())])
    with pytest.raises(ValueError, match="max_depth=0") as caught:
        stack.fit(ROWS, ROWS[:, 0])
    assert caught.value.__notes__ == ["It was raised by the member 'bad'."]


def test_unfitted():
    stack = StackingClassifier([("bayes", GaussianNB())])
    assert hasattr(stack, "predict_proba")  # the default final estimator has it
    assert not hasattr(clone(stack).set_params(final_estimator=SVC()), "predict_proba")
    for use in (stack.predict, stack.predict_proba, stack.decision_function, stack.transform):
        with pytest.raises(NotFittedError):
            use([[1.0]])
    with pytest.raises(NotFittedError):
        stack.get_feature_names_out()


def test_default_final_estimators():
    X, y = load_iris(return_X_y=True)
    assert type(StackingClassifier([("a", GaussianNB())]).fit(X, y).final_estimator_) is (
        LogisticRegression
    )
    final = StackingRegressor([("a", Ridge())]).fit(X, y).final_estimator_
    assert type(final).__name__ == "RidgeCV"


def test_a_class_that_the_final_estimator_lacks():
    """The only rows of a class are never held out."""
    X, y = load_iris(return_X_y=True)
    order = np.r_[:50, np.random.default_rng(0).permutation(np.arange(50, 150))]
    folds = TimeSeriesSplit(2, test_size=50)
    stack = StackingClassifier([("bayes", GaussianNB())], GaussianNB(), cv=folds)
    stack.fit(X[order], y[order])
    assert stack.final_estimator_.classes_.tolist() == [1, 2]
    given = stack.predict_proba(X)
    assert given.shape == (150, 3)
    assert (given[:, 0] == 0.0).all()
    assert set(stack.predict(X)) == {1, 2}


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_frozen_members_know_labels_not_numbers(voting):
    X, y = load_iris(return_X_y=True)
    y = y + 1
    frozen = GaussianNB().fit(
        X[:100], y[:100]
    )  # labels 1 and 2, which are indices of other classes
    members = [("frozen", FrozenEstimator(frozen))]
    stack = StackingClassifier(members, cv=3).fit(X, y)
    np.testing.assert_array_equal(stack.transform(X)[:, :2], frozen.predict_proba(X))
    vote = VotingClassifier(members, voting=voting).fit(X, y)
    np.testing.assert_array_equal(vote.predict(X), frozen.predict(X))


# Weights and repeated rows must give equal models: ties of gains broken alike, solvers converged.
TREES = GradientBoostingClassifier(n_estimators=5, multi_strategy="multi_output_tree")
LOGISTIC = LogisticRegression(solver="newton-cholesky", tol=1e-10)


@pytest.mark.filterwarnings("ignore:y has one class only")
@parametrize_with_checks(
    [
        StackingClassifier([("line", LOGISTIC), ("trees", TREES)], LOGISTIC, cv=3),
        StackingClassifier([("trees", TREES)], TREES, cv=3, passthrough=True),
        StackingRegressor(
            [("line", Ridge()), ("trees", GradientBoostingRegressor(n_estimators=5))],
            cv=3,
            passthrough=True,
        ),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("passthrough", [True, False])
def test_missing_values_need_estimators_that_allow_them(passthrough):
    trees = [("trees", GradientBoostingRegressor(n_estimators=5))]
    folds = KFold(3, shuffle=True, random_state=0)
    stack = StackingRegressor(trees, Ridge(), passthrough=passthrough, cv=folds)
    assert get_tags(stack).input_tags.allow_nan is not passthrough
    both = StackingRegressor([*trees, ("line", Ridge())], trees[0][1], passthrough=passthrough)
    assert not get_tags(both).input_tags.allow_nan
    X = np.where(ROWS % 7 == 0, np.nan, ROWS)
    if not passthrough:
        assert stack.fit(X, ROWS[:, 0]).score(X, ROWS[:, 0]) > 0.5


# ---- frames and later changes ----


TREES_OF_NUMBERS = GradientBoostingRegressor(n_estimators=5)


def test_frames_whose_index_has_a_label_twice():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice(["a", "b"], 40), "value": rng.normal(size=40)})
    twice = frame.set_axis(np.repeat(range(20), 2), axis="index")
    stack = StackingRegressor([("trees", TREES_OF_NUMBERS)], TREES_OF_NUMBERS, passthrough=True)
    expected = clone(stack).fit(frame, frame["value"] + 1).predict(frame)
    stack.fit(twice, frame["value"] + 1)
    assert stack.transform(twice).shape == (40, 3)
    np.testing.assert_array_equal(stack.transform(twice)["value"], frame["value"])
    np.testing.assert_array_equal(stack.predict(twice), expected)


def test_frames_whose_names_are_numbers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({0: rng.choice(["a", "b"], 40), 7: rng.normal(size=40)})
    stack = StackingRegressor([("trees", TREES_OF_NUMBERS)], TREES_OF_NUMBERS, passthrough=True)
    stack.fit(frame, frame[7] + 1)
    names = ["stackingregressor_trees", "0", "7"]
    assert list(stack.transform(frame).columns) == names
    assert stack.get_feature_names_out().tolist() == names
    frame.columns = range(2)  # as frames have them by default: no names
    stack.fit(frame, frame[1] + 1)
    names = ["stackingregressor_trees", "x0", "x1"]
    assert list(stack.transform(frame).columns) == names
    assert stack.get_feature_names_out().tolist() == names


def test_members_that_are_dropped_after_the_fit():
    X, y = load_diabetes(return_X_y=True)
    members = [("trees", TREES_OF_NUMBERS), ("line", Ridge())]
    for model in (StackingRegressor(members, cv=2), VotingRegressor(members, weights=[1, 2])):
        before, names = model.fit(X, y).predict(X), model.get_feature_names_out()
        model.set_params(line="drop")
        np.testing.assert_array_equal(model.predict(X), before)
        np.testing.assert_array_equal(model.get_feature_names_out(), names)


def test_missing_values_are_passed_through_only_where_they_are_taken():
    X = np.array([[0.0], [1.0], [np.nan], [3.0]] * 10)
    y = np.arange(40.0)
    calls = []

    class Member(DecisionTreeRegressor):
        def fit(self, *args, **kwargs):
            calls.append(1)
            return super().fit(*args, **kwargs)

    stack = StackingRegressor([("tree", Member())], passthrough=True)
    for final in (None, Ridge(), make_pipeline(PolynomialFeatures(), Ridge())):
        with pytest.raises(
            ValueError, match=r"hands the missing values \(NaN\) of X to final_estimator="
        ):
            clone(stack).set_params(final_estimator=final).fit(X, y)
    assert calls == []  # before any work
    for final in (make_pipeline(SimpleImputer(), Ridge()), DecisionTreeRegressor()):
        assert clone(stack).set_params(final_estimator=final).fit(X, y).predict(X).shape == (40,)
    assert clone(stack).fit(X[:2].repeat(9, 0), y[:18]).predict(X[:2]).shape == (2,)
