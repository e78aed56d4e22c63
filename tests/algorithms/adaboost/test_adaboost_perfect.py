"""AdaBoostRegressor with a learner whose only errors are rounding errors.

Leaf values of the engine are sums of integers, with errors of about 1e-10 of the range of y.
Divided by the largest error, such errors would be ordinary losses.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from arboost import AdaBoostRegressor


@pytest.mark.parametrize("estimator", [None, DecisionTreeRegressor(max_depth=2)], ids=str)
@pytest.mark.parametrize("resample", [False, True])
def test_a_learner_that_is_perfect_but_for_rounding(estimator, resample):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(400, 1)).astype(float)
    y = np.array([3.0, 4, 0, 1])[X[:, 0].astype(int)]
    depth = {"max_depth": 2} if estimator is None else {}
    model = AdaBoostRegressor(estimator, resample=resample, **depth).fit(X, y)
    assert (model.stop_reason_, model.n_iter_) == ("perfect learner", 1)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-8)
