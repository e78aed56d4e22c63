"""Warnings name the line of the user, from every entry of the package."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

import arboost
from arboost import DataWarning, Predictor

X = np.arange(24.0).reshape(12, 2)
Y = np.arange(12) % 2
NAMED = pd.DataFrame(X, columns=["a", "b"])


def estimator(name):
    cls = getattr(arboost, name)
    if name.startswith(("Stacking", "Voting")):
        kind = "Classifier" if name.endswith("Classifier") else "Regressor"
        member = getattr(arboost, f"DecisionTree{kind}")()
        return cls([("one", member), ("two", member)])
    return cls()


ESTIMATORS = [name for name in arboost.__all__ if name.endswith(("Classifier", "Regressor"))]


def assert_all_here(caught):
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_column_vector_as_y(name):
    with pytest.warns(DataConversionWarning, match="column-vector") as caught:
        estimator(name).fit(X, Y[:, np.newaxis])
    assert_all_here(caught)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_names_that_are_missing(name):
    model = estimator(name).fit(NAMED, Y)
    with pytest.warns(DataWarning, match="does not have valid feature names") as caught:
        model.predict(X)
    assert_all_here(caught)


def test_names_that_a_predictor_does_not_know():
    model = arboost.DecisionTreeRegressor().fit(X, Y).model_
    assert isinstance(model, Predictor)
    with pytest.warns(DataWarning, match="X has feature names") as caught:
        model.predict(NAMED)
    assert_all_here(caught)


def test_columns_of_a_dataset():
    with pytest.warns(DataWarning, match="numbers") as caught:
        arboost.Dataset(pd.DataFrame({"a": ["1", "2"] * 6}), Y)
    assert_all_here(caught)


def test_few_draws_and_no_new_members():
    model = arboost.BaggingClassifier(n_estimators=2, max_samples=0.1, warm_start=True)
    with pytest.warns(DataWarning, match="learns little") as caught:
        model.fit(X, Y)
    with pytest.warns(DataWarning, match="none is added") as again:
        model.fit(X, Y)
    assert_all_here([*caught, *again])
