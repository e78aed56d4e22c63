"""Members that record their training rows, and tables to bag."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_diabetes, load_iris

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[IRIS[1]]


class Witness(RegressorMixin, BaseEstimator):
    """Records the arguments of fit and predict."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        return self

    def predict(self, X):
        self.asked_ = X
        return np.zeros(X.shape[0])


class Unweighted(Witness):
    """A Witness whose fit takes no weights."""

    def fit(self, X, y):
        return super().fit(X, y)


def numbered(n_rows=50):
    """Table whose values identify row and column: 10 * row + column."""
    return 10.0 * np.arange(n_rows)[:, np.newaxis] + np.arange(5), np.arange(float(n_rows))
