"""AdaBoostClassifier: error messages for wrong parameters, data and tables."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from arboost import AdaBoostClassifier
from support.boosted import noisy_table

TREE = DecisionTreeClassifier(max_depth=2)
LEARNERS = {"engine": None, "scikit-learn": TREE}


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"algorithm": "SAMME"}, ValueError, r"algorithm='SAMME' .*is not allowed"),
        ({"n_estimators": 0}, ValueError, r"n_estimators=0 .*is not allowed"),
        ({"learning_rate": 0.0}, ValueError, r"learning_rate=0.0 .*is not allowed"),
        ({"max_depth": 0}, ValueError, r"max_depth=0 .*is not allowed.*max_depth=None"),
        ({"tree_method": "approx"}, ValueError, r"tree_method='approx' .*is not allowed"),
        ({"oob_score": True}, ValueError, "oob_score=True is not allowed with resample=False"),
        ({"tol": 0.1}, ValueError, r"tol=0\.1 is not allowed.*Set n_iter_no_change too"),
        ({"max_restarts": -1}, ValueError, r"max_restarts=-1 .*is not allowed"),
        ({"estimator": "tree"}, TypeError, "estimator='tree'"),
        ({"estimator": TREE, "max_depth": 3}, ValueError, "max_depth=3 .*with an estimator"),
        ({"estimator": TREE, "missing": 0.0}, ValueError, "missing=0.0 .*with an estimator"),
        ({"class_weight": {7: 2.0}}, ValueError, "class_weight"),
        ({"eval_metric": "rmse", "n_iter_no_change": 3}, ValueError, "rmse"),
    ],
    ids=str,
)
def test_wrong_parameters(params, error, message):
    X, y = noisy_table()
    with pytest.raises(error, match=message):
        AdaBoostClassifier(**params).fit(X, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sample_weight": [1.0]}, ValueError, "sample_weight"),
        (
            {"sample_weight": -np.ones(300)},
            ValueError,
            "300 values that are negative",
        ),
        ({"sample_weight": np.zeros(300)}, ValueError, "weight"),
        ({"X_val": np.ones((3, 4)), "y_val": [0, 1, 0]}, ValueError, "4 features"),
        ({"X_val": np.ones((3, 5)), "y_val": [0, 1, 9]}, ValueError, "9"),
        ({"X_val": np.ones((3, 5))}, ValueError, "y_val"),
        ({"callbacks": [3]}, TypeError, "callbacks hold 3"),
        ({"callbacks": print}, TypeError, r"list of functions .* Use callbacks=\["),
    ],
    ids=lambda value: str(value)[:25],
)
@pytest.mark.parametrize("learner", LEARNERS)
def test_wrong_data(learner, options, error, message):
    X, y = noisy_table()
    with pytest.raises(error, match=message):
        AdaBoostClassifier(LEARNERS[learner]).fit(X, y, **options)


def test_wrong_tables():
    X, y = noisy_table()
    model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        AdaBoostClassifier().fit(np.empty((0, 2)), [])
    with pytest.raises(ValueError, match="continuous"):
        AdaBoostClassifier().fit(X, X[:, 0] + 0.5)
