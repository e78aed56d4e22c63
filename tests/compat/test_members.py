"""Estimators of arboost.compat.sklearn as members of ensembles, and in scikit-learn's tools."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import arboost
from arboost.compat import sklearn as compat

X, Y = (part[:200] for part in load_breast_cancer(return_X_y=True))
MEMBERS = [
    compat.GradientBoostingClassifier(n_estimators=3, random_state=0),
    compat.HistGradientBoostingClassifier(max_iter=3, random_state=0),
    compat.DecisionTreeClassifier(random_state=0),
    compat.RandomForestClassifier(3, random_state=0),
    compat.AdaBoostClassifier(n_estimators=3, random_state=0),
]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: type(member).__name__)
def test_members(member):
    pair = [("one", member), ("two", compat.ExtraTreesClassifier(3, random_state=0))]
    for ensemble in (
        compat.BaggingClassifier(member, 2, random_state=0),
        arboost.BaggingClassifier(member, n_estimators=2, max_features=0.5),
        compat.AdaBoostClassifier(member, n_estimators=2, random_state=0),
        compat.StackingClassifier(pair, cv=2),
        compat.VotingClassifier(pair, voting="soft"),
    ):
        assert ensemble.fit(X, Y).score(X, Y) > 0.9


def test_search_and_pickle():
    pipeline = make_pipeline(StandardScaler(), compat.GradientBoostingClassifier(n_estimators=5))
    grid = {"gradientboostingclassifier__max_depth": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, Y)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))


def test_held_out_rows_may_be_counted():
    model = compat.HistGradientBoostingClassifier(
        max_iter=3, early_stopping=True, validation_fraction=40, random_state=0
    )
    assert model.fit(X, Y).model_.provenance["rows"] == len(Y) - 40
