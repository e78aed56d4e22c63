"""Random problems for CART trees: codes, and targets of regression, counts or classes."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from support.cart import Cart
from support.stored import ARRAYS

NAMES = {  # scikit-learn's criterion by kind of problem and criterion of the core
    ("classes", "quadratic"): "gini",
    ("classes", "entropy"): "entropy",
    ("values", "quadratic"): "squared_error",
    ("values", "absolute_error"): "absolute_error",
    ("counts", "poisson"): "poisson",
}

# All criteria; scikit-learn has no such criteria as the last ones.
CRITERIA = [*NAMES, ("classes", "error"), ("classes", "gain_ratio")]


def one_hot(y: np.ndarray) -> np.ndarray:
    return np.eye(int(y.max()) + 1)[y.astype(int)]


def dense(codes: np.ndarray) -> np.ndarray:
    """Return codes without gaps, in the order of the values, so that ranks equal bins."""
    result = np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1)
    return result - (codes.min(axis=0) < 0)


def problem(kind: str, n: int, features: int = 3, values: int = 60, *, seed: int = 0, missing=0.0):
    """Return random codes, and dependent targets: regression, counts or three classes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, values, (n, features))
    signal = np.sin(codes[:, 0] / 9.0) + (codes[:, 1] > values / 2) * codes[:, 0] / values
    codes[rng.random(codes.shape) < missing] = -1
    if kind == "classes":
        y = np.digitize(signal + 0.7 * rng.normal(size=n), [0.0, 0.9])
        return dense(codes), one_hot(y)
    if kind == "counts":
        return dense(codes), rng.poisson(np.exp(signal))[:, np.newaxis].astype(float)
    return dense(codes), (signal + 0.5 * rng.normal(size=n))[:, np.newaxis]


def assert_same_bytes(one, other) -> None:
    for name in ARRAYS:
        assert one[name].tobytes() == other[name].tobytes(), name


def sklearn_tree(codes, target, weight, **settings):
    """Return scikit-learn's tree on the same rows; a classifier for one-hot targets."""
    if target.shape[1] > 1:
        return DecisionTreeClassifier(random_state=0, **settings).fit(
            codes, target.argmax(axis=1), sample_weight=weight
        )
    return DecisionTreeRegressor(random_state=0, **settings).fit(
        codes, target[:, 0], sample_weight=weight
    )


def assert_same_as_sklearn(cart: Cart, tree, model, *, least_compared: int) -> None:
    """Assert the same splits and values from the root down, except below splits of equal gain."""
    theirs = model.tree_
    value = theirs.value[:, 0, :] if theirs.n_outputs == 1 else theirs.value[:, :, 0]
    waiting, compared = [(0, 0, np.arange(len(cart.codes)))], 0
    while waiting:
        ours, other, rows = waiting.pop()
        compared += 1
        if cart.criterion != "absolute_error":  # where the caller sets the medians
            own = tree["value"].reshape(len(tree["left"]), -1)[ours]
            np.testing.assert_allclose(own, value[other], rtol=1e-6, atol=1e-7)
        child = int(tree["left"][ours])
        assert (child == 0) == (theirs.children_left[other] < 0)
        if child == 0:
            continue
        left = cart.goes_left(tree, ours, rows)
        their_left = cart.codes[rows, theirs.feature[other]] <= theirs.threshold[other]
        if (left != their_left).any():
            gain, their_gain = cart.gain(rows, left), cart.gain(rows, their_left)
            np.testing.assert_allclose(gain, their_gain, rtol=1e-9, atol=1e-9)
            continue
        waiting.append((child, theirs.children_left[other], rows[left]))
        waiting.append((child + 1, theirs.children_right[other], rows[~left]))
    assert compared >= least_compared
