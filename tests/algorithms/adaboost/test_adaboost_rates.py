"""AdaBoostClassifier: mixed learning rates, huge losses, weights of real and gentle boosting."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from arboost import AdaBoostClassifier


def test_lemma_4_where_training_goes_on_at_another_rate():
    X, y = load_breast_cancer(return_X_y=True)
    first = AdaBoostClassifier(learning_rate=0.01, n_estimators=30).fit(X, y)
    model = AdaBoostClassifier(n_estimators=1).fit(X, y, init_model=first)
    bound = model.edge_bound_
    assert (np.isnan(bound) | (model.training_error_ <= bound)).all()
    np.testing.assert_array_equal(bound[:30], first.edge_bound_)


def test_a_loss_beyond_all_doubles():
    X = np.arange(8.0).reshape(-1, 1)
    y = (X[:, 0] > 3).astype(int)
    model = AdaBoostClassifier().fit(X, y)
    for _ in range(70):
        model = AdaBoostClassifier(n_estimators=1).fit(X, y, init_model=model)
    model = AdaBoostClassifier(n_estimators=1).fit(X, 1 - y, init_model=model)
    assert model.exponential_loss_[-1] > 1e300


@pytest.mark.parametrize("algorithm", ["real", "gentle"])
def test_weights_are_repeated_rows(algorithm):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, size=(200, 5)).astype(float)
    y = (X[:, 0] + rng.normal(scale=8.0, size=200) > 15).astype(int)
    weight = rng.integers(1, 4, 200)
    model = AdaBoostClassifier(n_estimators=8, algorithm=algorithm)
    weighted = model.fit(X, y, sample_weight=weight).decision_function(X)
    repeated = model.fit(np.repeat(X, weight, 0), np.repeat(y, weight)).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)
