"""kind_of: classes or amounts."""

import numpy as np
import pytest

from arboost.estimators.folds import estimator_kind


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (np.array(["a", "b"]), "classifier"),
        (np.array(["a", "b"], dtype=object), "classifier"),
        (np.array([True, False]), "classifier"),
        (np.array([0, 1]), "classifier"),
        (np.array([0.0, 1.0]), "classifier"),
        (np.array([1.5, 2.5] * 50), "regressor"),
        (np.arange(20).repeat(5), "classifier"),
        (np.arange(20).repeat(4), "regressor"),
        (np.arange(21).repeat(50), "regressor"),
        (np.array([1, 2.5], dtype=object), "regressor"),
    ],
)
def test_kind_by_target(y, kind):
    assert estimator_kind(y) == kind


def test_the_user_decides():
    assert estimator_kind(np.array([1.5, 2.5]), "classification") == "classifier"
    assert estimator_kind(np.array([0, 1]), "regression") == "regressor"
