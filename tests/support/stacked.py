"""Members and final estimators that record their training rows."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from arboost import AdaBoostClassifier, GradientBoostingClassifier

N_ROWS = 60
ROWS = np.arange(float(N_ROWS)).reshape(-1, 1)
GROUPS = np.repeat(np.arange(12), 5)


class Memory(RegressorMixin, BaseEstimator):
    """Predicts the target of every training row, and -1 for other rows."""

    def fit(self, X, y):
        self.known_ = dict(zip(X[:, 0].tolist(), y.tolist(), strict=True))
        return self

    def predict(self, X):
        return np.array([self.known_.get(value, -1.0) for value in X[:, 0].tolist()])


class Latest(RegressorMixin, BaseEstimator):
    """Predicts the largest value of X in fit."""

    def fit(self, X, y):
        self.latest_ = X.max()
        return self

    def predict(self, X):
        return np.full(len(X), self.latest_)


class Recorder(RegressorMixin, BaseEstimator):
    """Records the arguments of fit."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        return self

    def predict(self, X):
        return np.zeros(X.shape[0])


class ClassRecorder(ClassifierMixin, BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(X.shape[0], int)


class FrameReader(RegressorMixin, BaseEstimator):
    """Accepts only a frame with these columns."""

    def __init__(self, columns=("a", "b")):
        self.columns = columns

    def fit(self, X, y):
        self.n_rows_ = len(X)
        assert tuple(X.columns) == tuple(self.columns)
        return self

    def predict(self, X):
        assert tuple(X.columns) == tuple(self.columns)
        return np.asarray(X["a"], float)


def engine_members():
    return [
        ("deep", GradientBoostingClassifier(n_estimators=10)),
        ("flat", GradientBoostingClassifier(n_estimators=10, max_depth=2)),
        ("votes", AdaBoostClassifier(n_estimators=10)),
        ("coarse", GradientBoostingClassifier(n_estimators=10, max_bins=15)),
        ("line", make_pipeline(StandardScaler(), LogisticRegression())),
    ]
