"""The attribute `tree_` of scikit-learn's decision trees, from our trees and training rows.

Estimators of arboost have no `tree_`, but scikit-learn's tests of decision trees read it almost
everywhere.
"""

import numpy as np

import arboost
from arboost.model.leaves import depths
from arboost.pictures.tree_words import Style, TreeWords

CLASSES = ("DecisionTreeClassifier", "DecisionTreeRegressor")
NO_CHILD, NO_FEATURE = -1, -2  # values of leaves


class TreeView:
    """Fitted tree with the attributes of scikit-learn's `tree_`."""

    def __init__(self, estimator):
        forest = estimator.model_.forest
        is_split = forest.is_split
        self._estimator = estimator
        self.node_count = self.capacity = forest.n_nodes
        self.n_leaves = int(np.count_nonzero(~is_split))
        self.n_features = estimator.n_features_in_
        self.max_depth = int(depths(forest).max())
        self.children_left = np.where(is_split, forest.left, NO_CHILD)
        self.children_right = np.where(is_split, forest.left + 1, NO_CHILD)
        self.feature = np.where(is_split, forest.feature, NO_FEATURE)
        self.threshold = np.where(is_split, forest.threshold, float(NO_FEATURE))
        self.missing_go_to_left = forest.default_left.astype(np.uint8)
        self.weighted_n_node_samples = forest.cover
        answers = [one.numbers for one in TreeWords(estimator.model_, 0, Style()).node_values]
        self.n_outputs = len(answers)
        self.n_classes = np.array([one.shape[1] for one in answers])
        most = self.n_classes.max()
        wide = [np.pad(one, ((0, 0), (0, most - one.shape[1]))) for one in answers]
        self.value = np.stack(wide, axis=1)

    @property
    def n_node_samples(self):
        return self.decision_path(self._estimator._fitted_to[0]).toarray().sum(axis=0)

    @property
    def impurity(self):
        """Return the impurity of the training rows of each node, the mean over the targets."""
        X, y, weight = self._estimator._fitted_to
        y = np.asarray(y).reshape(len(y), -1)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, float)
        passes = self.decision_path(X).toarray().astype(bool) & (weight > 0)[:, np.newaxis]
        of_target = impurities if hasattr(self._estimator, "classes_") else errors
        criterion = self._estimator.criterion
        return np.array(
            [
                np.mean([of_target(column[rows], weight[rows], criterion) for column in y.T])
                for rows in passes.T
            ]
        )

    def apply(self, X):
        return self._estimator.apply(X)

    def decision_path(self, X):
        return self._estimator.decision_path(X)

    def predict(self, X):
        values = self.value[self.apply(X)]
        return values[:, 0] if values.shape[1] == 1 else values

    def compute_node_depths(self):
        return depths(self._estimator.model_.forest) + 1


def impurities(labels, weight, criterion):
    _, codes = np.unique(labels, return_inverse=True)
    shares = np.bincount(codes, weight) / weight.sum()
    if criterion == "gini":
        return 1.0 - np.sum(shares**2)
    return -np.sum(shares * np.log2(shares))


def errors(y, weight, criterion):
    y = y.astype(float)
    mean = np.average(y, weights=weight)
    if criterion == "poisson":
        ratio = np.where(y > 0.0, y, mean) / mean
        return np.average(y * np.log(ratio), weights=weight)
    if criterion == "absolute_error":
        order = np.argsort(y)
        reached = np.cumsum(weight[order])
        median = y[order[np.searchsorted(reached, reached[-1] / 2)]]
        return np.average(np.abs(y - median), weights=weight)
    return np.average((y - mean) ** 2, weights=weight)


def remembering(fit):
    def wrapper(self, X, y, sample_weight=None):
        fit(self, X, y, sample_weight)
        self._fitted_to = (X, y, sample_weight)
        return self

    return wrapper


def install():
    """Add the attribute `tree_` to our decision trees."""
    for name in CLASSES:
        one = getattr(arboost, name)
        one.fit = remembering(one.fit)
        one.tree_ = property(TreeView)
