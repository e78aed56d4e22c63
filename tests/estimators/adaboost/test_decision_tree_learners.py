"""Decision trees of arboost as `estimator`: the engine grows the trees that clones would grow."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)
from arboost.estimators.adaboost.estimator_learners import TreeMembers

RNG = np.random.default_rng(8)
# At most 255 distinct values: bins do not depend on the weights of a round.
X = RNG.integers(0, 100, size=(400, 4)).astype(float)
X[::9, 2] = np.nan
SIGNAL = X[:, 0] / 50 + (X[:, 1] > 40) * np.nan_to_num(X[:, 2]) / 40
Y = {
    "numbers": SIGNAL + RNG.normal(size=400),
    "two": np.array(["no", "yes"])[(SIGNAL + RNG.normal(size=400) > 1.5).astype(int)],
    "three": np.digitize(SIGNAL + RNG.normal(size=400), [0.8, 1.8]),
}


class ClonedClassifier(DecisionTreeClassifier):
    """Goes through clones: only the exact classes do not."""


class ClonedRegressor(DecisionTreeRegressor):
    """As `ClonedClassifier`."""


def pair(target, tree, **params):
    """Return a fit through the engine and a fit through clones."""
    if target == "numbers":
        trees, kind = (DecisionTreeRegressor, ClonedRegressor), AdaBoostRegressor
    else:
        trees, kind = (DecisionTreeClassifier, ClonedClassifier), AdaBoostClassifier
    fit = params.pop("fit", {})
    params = {"n_estimators": 8, "random_state": 4, "verbose": 0} | params
    return [kind(one(**tree), **params).fit(X, Y[target], **fit) for one in trees]


def assert_same(own, cloned):
    assert isinstance(own.model_.members, TreeMembers)
    assert isinstance(cloned.model_.members, tuple)
    assert own.n_iter_ == cloned.n_iter_
    assert own.stop_reason_ == cloned.stop_reason_
    assert own.evals_result_ == cloned.evals_result_
    np.testing.assert_array_equal(own.estimator_errors_, cloned.estimator_errors_)
    np.testing.assert_array_equal(own.estimator_weights_, cloned.estimator_weights_)
    for left, right in zip(own.staged_predict(X), cloned.staged_predict(X), strict=True):
        np.testing.assert_array_equal(left, right)
    raw = own.model_.predict_raw(X)
    np.testing.assert_array_equal(raw, cloned.model_.predict_raw(X))
    np.testing.assert_array_equal(own.feature_importances_, cloned.feature_importances_)


TREES = [
    {"max_depth": 1},
    {"max_depth": 3},
    {"max_leaf_nodes": 6, "min_samples_leaf": 5},
    {"max_depth": 4, "min_samples_split": 0.1, "min_impurity_decrease": 0.001},
    {"max_depth": 3, "max_features": 2},
    {"max_depth": 3, "splitter": "random"},
    {"max_depth": 3, "tree_method": "exact"},
    {"max_depth": 3, "min_weight_fraction_leaf": 0.05},
    {"max_depth": 3, "monotonic_cst": {0: 1}},
    {"max_depth": 3, "missing": 7.0, "categorical_features": [3]},
]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("target", ["numbers", "two", "three"])
def test_engine_trees_equal_clones(target, tree):
    if target == "three" and "monotonic_cst" in tree:
        pytest.skip("monotone constraints are for one output")
    assert_same(*pair(target, tree))


@pytest.mark.parametrize("target", ["two", "three"])
@pytest.mark.parametrize("algorithm", ["real", "gentle"])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_engine_trees_of_other_votes_equal_clones(target, algorithm, criterion):
    tree = {"max_depth": 2, "criterion": criterion}
    own, cloned = pair(target, tree, algorithm=algorithm)
    assert_same(own, cloned)
    np.testing.assert_array_equal(own.predict_proba(X), cloned.predict_proba(X))


@pytest.mark.parametrize("criterion", ["absolute_error", "squared_error"])
@pytest.mark.parametrize("loss", ["square", "exponential"])
def test_engine_trees_of_other_errors_equal_clones(criterion, loss):
    assert_same(*pair("numbers", {"max_depth": 2, "criterion": criterion}, loss=loss))


@pytest.mark.parametrize("target", ["numbers", "two"])
def test_engine_trees_with_weights_and_validation_equal_clones(target):
    fit = {"sample_weight": RNG.choice([0.0, 0.5, 3.0], 400)}
    assert_same(*pair(target, {"max_depth": 2}, fit=fit))
    assert_same(*pair(target, {"max_depth": 2}, n_iter_no_change=2, n_estimators=30))
    fit = {"X_val": X[:99], "y_val": Y[target][:99]}
    assert_same(*pair(target, {"max_depth": 2}, fit=fit))


@pytest.mark.parametrize("target", ["numbers", "two"])
def test_engine_trees_continue_a_fit_as_clones_do(target):
    own, cloned = pair(target, {"max_depth": 2}, n_estimators=5)
    more = [
        clone(model).set_params(n_estimators=3).fit(X, Y[target], init_model=model)
        for model in (own, cloned)
    ]
    assert more[0].n_iter_ == 8
    np.testing.assert_array_equal(*(model.model_.predict_raw(X) for model in more))


def test_members_are_fitted_decision_trees():
    own, cloned = pair("two", {"max_depth": 2, "max_features": 2})
    assert len(own.estimators_) == 8
    for left, right in zip(own.estimators_, cloned.estimators_, strict=True):
        assert type(left) is DecisionTreeClassifier
        assert left.get_params() == right.get_params()
        assert vars(left).keys() == vars(right).keys()
        assert left.text() == right.text()
        np.testing.assert_array_equal(left.predict_proba(X), right.predict_proba(X))
    assert own.estimators_[0] is own.estimators_[0]
    shorter = own.model_.truncated(3)
    np.testing.assert_array_equal(shorter.predict(X), cloned.model_.truncated(3).predict(X))
    assert len(shorter.members) == 3


def test_the_estimator_stays_unfitted_and_the_model_pickles():
    tree = DecisionTreeRegressor(max_depth=2)
    model = AdaBoostRegressor(tree, n_estimators=4, verbose=0).fit(X, Y["numbers"])
    assert not hasattr(tree, "model_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.estimators_[1].get_depth() == 2


def test_a_random_state_of_the_estimator_is_not_drawn_from():
    state = np.random.RandomState(3)
    tree = DecisionTreeRegressor(max_depth=2, random_state=state)
    AdaBoostRegressor(tree, n_estimators=2, verbose=0).fit(X, Y["numbers"])
    assert state.randint(1000) == np.random.RandomState(3).randint(1000)


@pytest.mark.parametrize(
    ("tree", "params"),
    [
        ({"class_weight": "balanced"}, {}),
        ({"ccp_alpha": 0.01}, {}),
        ({"max_depth": 2}, {"resample": True}),
    ],
)
def test_clones_remain_where_trees_depend_on_more_than_weights(tree, params):
    own, _ = pair("two", {"max_depth": 2} | tree, **params)
    assert isinstance(own.model_.members, tuple)


def test_levels_that_are_encoded_by_the_target_need_clones():
    levels = RNG.integers(0, 150, 400)
    table = np.column_stack([levels, X[:, 0]])
    tree = DecisionTreeClassifier(max_depth=2, categorical_features=[0])
    model = AdaBoostClassifier(tree, n_estimators=3, verbose=0).fit(table, Y["two"])
    assert isinstance(model.model_.members, tuple)
