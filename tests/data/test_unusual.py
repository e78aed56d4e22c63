"""Warnings of data and parameters that are allowed, but hardly meant: one each, and no others."""

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import DataWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60)
REGRESSORS = ["GradientBoostingRegressor", "RandomForestRegressor", "DecisionTreeRegressor"]
CLASSIFIERS = ["GradientBoostingClassifier", "RandomForestClassifier", "AdaBoostClassifier"]


def make(name, **params):
    few = {} if name.startswith("DecisionTree") else {"n_estimators": 3}
    return getattr(arboost, name)(**few, **params)


def warned(model, *arguments):
    """Return the only warning of a fit."""
    with pytest.warns(DataWarning) as caught:
        model.fit(*arguments)
    (warning,) = caught
    assert warning.filename == __file__
    return str(warning.message)


@pytest.mark.parametrize("name", REGRESSORS)
def test_no_values(name):
    message = warned(make(name), np.full((60, 3), np.nan), Y)
    assert message.startswith("all values of X are missing in the 60 training rows")


@pytest.mark.parametrize("name", REGRESSORS)
def test_constant_columns(name):
    constant = np.tile([1.0, np.nan, 3.0], (60, 1))
    assert warned(make(name), constant, Y).startswith("all columns of X are constant in the 60")


@pytest.mark.parametrize("tree_method", ["exact", "approx"])
def test_constant_columns_of_ranks(tree_method):
    model = make("GradientBoostingRegressor", tree_method=tree_method)
    assert "columns of X are constant" in warned(model, np.ones((60, 3)), Y)


def test_constant_columns_of_a_dataset():
    with pytest.warns(DataWarning, match="all columns of X are constant"):
        arboost.Dataset(pd.DataFrame({"a": ["x"] * 60, "b": [1] * 60}), Y)


def test_columns_that_can_be_split():
    half = np.where(np.arange(60) % 2, 1.0, np.nan)[:, np.newaxis]
    for table in (half, np.c_[np.ones(60), X[:, :1]]):
        make("GradientBoostingRegressor").fit(table, Y)
    make("GradientBoostingRegressor").fit(X[:1], Y[:1])


def test_rows_of_weight_0_do_not_count():
    table, weight = np.ones((60, 1)), np.ones(60)
    table[7], weight[7] = 2.0, 0.0
    assert "constant in the 59" in warned(make("GradientBoostingRegressor"), table, Y, weight)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class(name):
    message = warned(make(name), X, ["yes"] * 60)
    assert message.startswith("y has one class only, 'yes': the model always predicts it")


@pytest.mark.parametrize("name", REGRESSORS)
def test_large_targets(name):
    message = warned(make(name), X, Y * 1e39)
    assert message.startswith("y reaches ")
    assert "beyond the range of float32" in message
    make(name).fit(X, Y * 1e37)


def test_tiny_weights():
    """The scale of weights matters to boosters only."""
    model = make("GradientBoostingRegressor", min_child_weight=0.0, reg_lambda=0.0)
    message = warned(model, X, Y, np.full(60, 1e-40))
    assert message.startswith("sample_weight is at most 1e-40")
    model.fit(X, Y, np.full(60, 1e-30))
    for name in ("DecisionTreeRegressor", "AdaBoostRegressor"):
        make(name).fit(X, Y, np.full(60, 1e-40))


@pytest.mark.parametrize("weight", [1e-300, 1e-40, 1 / 60])
def test_weights_too_small_for_a_split(weight):
    """Weights that add up to 1 are common, and below min_child_weight."""
    model = make("GradientBoostingRegressor")
    message = warned(model, X, Y, np.full(60, weight))
    assert message.startswith("no tree has a split: sample_weight adds up to ")
    assert "min_child_weight=1." in message
    make("GradientBoostingRegressor", min_child_weight=0.0).fit(X, Y, np.full(60, 1 / 60))


def test_large_rates():
    model = make("GradientBoostingRegressor", learning_rate=1e6)
    assert warned(model, X, Y).startswith("learning_rate=1e+06 is above 2")
    make("GradientBoostingRegressor", learning_rate=2.0).fit(X, Y)


FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y)
REST = FRAME.drop(columns="y")
ENSEMBLES = [*REGRESSORS, "AdaBoostRegressor", "BaggingRegressor"]


@pytest.mark.parametrize("name", ENSEMBLES)
def test_target_among_the_columns(name):
    message = warned(make(name), FRAME, FRAME["y"])
    assert message.startswith("X has the column 'y', which equals y: the model learns to copy it")
    make(name).fit(FRAME, "y")  # takes the column out


@pytest.mark.parametrize("name", ENSEMBLES)
def test_index_in_another_order(name):
    message = warned(make(name), REST[::-1], FRAME["y"])
    assert message.startswith("X and y have the same index in different orders")
    make(name).fit(REST[::-1], FRAME["y"][::-1])


def test_dataset_and_comparison_warn_as_well():
    with pytest.warns(DataWarning, match="equals y"):
        arboost.Dataset(FRAME, FRAME["y"])
    with pytest.warns(DataWarning, match="different orders"):
        arboost.compare(REST[::-1], FRAME["y"], models=["decision_tree"], folds=2)


def test_pairs_that_are_fine():
    model = make("GradientBoostingRegressor")
    model.fit(FRAME.rename(columns={"a": "y", "y": "d"}), FRAME["y"])  # same name, other values
    model.fit(REST, FRAME["y"].set_axis(range(100, 160)))  # another index
    model.fit(REST.set_axis([0] * 60), FRAME["y"])
    model.fit(REST, FRAME["y"].to_numpy())
    model.fit(FRAME, FRAME[["y", "a"]].sum(axis=1))  # without a name
