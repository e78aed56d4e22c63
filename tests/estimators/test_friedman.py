"""Friedman's gradient boosting on textbook examples that can be computed by hand.

The data: four heights, ten points of two classes, fourteen points of three classes. Their source,
lecture notes, has errors; where one matters, a comment gives the right value and the reason. Rounds
after the first are computed by a few lines of NumPy below.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor

METHODS = ["hist", "exact"]

AGE_WEIGHT = np.array([[5.0, 20.0], [7.0, 30.0], [21.0, 70.0], [30.0, 60.0]])
HEIGHT = np.array([1.1, 1.3, 1.7, 1.8])

TEN = np.arange(1.0, 11.0).reshape(-1, 1)
TWO_CLASSES = np.array([0, 0, 0, 1, 1, 0, 0, 0, 1, 1])

FOURTEEN = np.array([[6.0, 12, 14, 18, 20, 65, 31, 40, 1, 2, 100, 101, 65, 54]]).T
THREE_CLASSES = np.repeat([0, 1, 2], [5, 5, 4])


def stump(X, residual, turn=0):
    """Return the best split by least squares: feature, threshold and mask of the left rows.

    The first of several equal splits wins. `turn` rotates the order of the features.
    """
    best = (0.0, None, None)
    for place in range(X.shape[1]):
        feature = (turn + place) % X.shape[1]
        column = X[:, feature]
        values = np.unique(column)
        for low, high in itertools.pairwise(values):
            left = column <= low
            gain = residual[left].sum() ** 2 / left.sum() + residual[~left].sum() ** 2 / sum(~left)
            if gain > best[0] + 1e-12:
                best = (gain, feature, (low + high) / 2)
    _, feature, threshold = best
    return feature, threshold, X[:, feature] <= threshold


def sigmoid(score):
    return 1 / (1 + np.exp(-score))


def softmax(scores):
    e = np.exp(scores)
    return e / e.sum(axis=1, keepdims=True)


def newton(residual, p, side):
    """Return Friedman's leaf value for log loss: sum of r / sum of p (1 - p)."""
    r = np.abs(residual[side])
    np.testing.assert_allclose(r * (1 - r), (p * (1 - p))[side])
    return residual[side].sum() / (r * (1 - r)).sum()


def fit(estimator, X, y, *, method, rounds=1, rate=1.0, **more):
    model = estimator(
        boosting="gradient",
        tree_method=method,
        n_estimators=rounds,
        learning_rate=rate,
        max_depth=1,
        **more,
    )
    return model.fit(X, y)


def leaves(model, tree=0):
    """Return feature, threshold, left and right leaf value of a tree with one split."""
    forest = model.model_.forest
    root = forest.tree_start[tree]
    assert forest.left[root] == 1
    left, right = forest.value[root + 1 : root + 3, 0]
    return forest.feature[root], forest.threshold[root], left, right


@pytest.mark.parametrize("method", METHODS)
def test_heights(method):
    model = fit(GradientBoostingRegressor, AGE_WEIGHT, HEIGHT, method=method)
    assert model.model_.base_score[0] == pytest.approx(1.475, abs=1e-12)
    feature, threshold, left, right = leaves(model)
    # "Age 21" and "weight 60" are equal splits; the first feature wins.
    assert feature == 0
    assert 7 <= threshold < 21
    assert left == pytest.approx(-0.275, abs=1e-9)
    assert right == pytest.approx(0.275, abs=1e-9)
    np.testing.assert_allclose(model.predict(AGE_WEIGHT), [1.2, 1.2, 1.75, 1.75], atol=1e-9)
    assert model.predict([[25.0, 65.0]])[0] == pytest.approx(1.75, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_heights_second_round(method):
    """Residuals -0.1, 0.1, -0.05, 0.05: least squares separates the first row from the others."""
    model = fit(GradientBoostingRegressor, AGE_WEIGHT, HEIGHT, method=method, rounds=2)
    feature, threshold, left, right = leaves(model, tree=1)
    assert feature == 1  # equal splits of age and weight: the features alternate
    assert 20 <= threshold < 30
    assert left == pytest.approx(-0.1, abs=1e-9)
    assert right == pytest.approx(0.1 / 3, abs=1e-9)
    expected = [1.1, 1.2 + 0.1 / 3, 1.75 + 0.1 / 3, 1.75 + 0.1 / 3]
    np.testing.assert_allclose(model.predict(AGE_WEIGHT), expected, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_heights_many_rounds(method, rate):
    model = fit(GradientBoostingRegressor, AGE_WEIGHT, HEIGHT, method=method, rounds=6, rate=rate)
    scores = np.full(4, HEIGHT.mean())
    for tree in range(6):
        residual = HEIGHT - scores
        feature, threshold, left = stump(AGE_WEIGHT, residual, turn=tree)
        step = np.where(left, residual[left].mean(), residual[~left].mean())
        scores += rate * step
        assert leaves(model, tree)[:2] == (feature, threshold)
    np.testing.assert_allclose(model.predict(AGE_WEIGHT), scores, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_two_classes(method):
    model = fit(GradientBoostingClassifier, TEN, TWO_CLASSES, method=method)
    assert model.model_.base_score[0] == pytest.approx(np.log(4 / 6), abs=1e-12)
    assert round(model.model_.base_score[0], 4) == -0.4055  # the notes truncate: -0.4054
    _, threshold, left, right = leaves(model)
    assert 8 <= threshold < 9
    assert left == pytest.approx(-0.625, abs=1e-8)
    assert right == pytest.approx(2.5, abs=1e-8)
    expected = np.where(TEN[:, 0] <= 8, -1.0304651, 2.0945349)
    np.testing.assert_allclose(model.decision_function(TEN), expected, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_two_classes_second_round(method):
    """Residuals are y - p with p = e^f / (1 + e^f).

    The notes list -0.3569, 0.6431 and -7.1222 here: they use e^f for p, which gives a
    "probability" of 8.1222 in the right leaf.
    """
    scores = np.where(TEN[:, 0] <= 8, np.log(4 / 6) - 0.625, np.log(4 / 6) + 2.5)
    np.testing.assert_allclose(np.exp(scores[[0, 9]]), [0.3569, 8.1222], atol=2e-3)
    p = sigmoid(scores)
    residual = TWO_CLASSES - p
    np.testing.assert_allclose(residual[[0, 3, 9]], [-0.2630, 0.7370, 0.1096], atol=1e-4)
    _, threshold, left = stump(TEN, residual)
    model = fit(GradientBoostingClassifier, TEN, TWO_CLASSES, method=method, rounds=2)
    ours = leaves(model, tree=1)
    assert ours[1] == threshold == 3.5
    expected = [newton(residual, p, left), newton(residual, p, ~left)]
    np.testing.assert_allclose(ours[2:], expected, atol=1e-7)
    np.testing.assert_allclose(expected, [-1.3568, 0.7766], atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_two_classes_many_rounds(method, rate):
    model = fit(GradientBoostingClassifier, TEN, TWO_CLASSES, method=method, rounds=5, rate=rate)
    scores = np.full(10, np.log(4 / 6))
    for tree in range(5):
        p = sigmoid(scores)
        residual = TWO_CLASSES - p
        _, threshold, left = stump(TEN, residual)
        scores += rate * np.where(left, newton(residual, p, left), newton(residual, p, ~left))
        assert leaves(model, tree)[1] == threshold
    np.testing.assert_allclose(model.decision_function(TEN), scores, atol=1e-6)


def from_zero(method, rounds, rate=1.0):
    """Return a fit of three classes from start scores of 0, as in the notes."""
    return fit(
        GradientBoostingClassifier,
        FOURTEEN,
        THREE_CLASSES,
        method=method,
        rounds=rounds,
        rate=rate,
        base_score=0,
    )


@pytest.mark.parametrize("method", METHODS)
def test_three_classes(method):
    """Least squares splits class 0 after 20, with leaf values 8/7 = 1.1428 and -1.

    The notes say "after 31" with leaves 0.8751 and -0.9999, and then list the scores 1.1428 and
    -0.999, which belong to the split after 20. Their column of "total variances" mixes variances
    of sides with sums of them: the residual sum of squares is 1.875 after 31, 1.4286 after 20.
    """
    model = from_zero(method, rounds=1)
    np.testing.assert_array_equal(model.model_.base_score, np.zeros(3))
    _, threshold, left, right = leaves(model, tree=0)
    assert 20 <= threshold < 31
    assert left == pytest.approx(8 / 7, abs=1e-7)
    assert right == pytest.approx(-1.0, abs=1e-7)
    # Class 1: the notes give 0.2499 for the right leaf, and -0.2499 in the table that follows. The
    # sum of the leaf's residuals is negative: 3 * 2/3 - 9 * 1/3 = -1.
    _, threshold, left, right = leaves(model, tree=1)
    assert 2 <= threshold < 6
    assert left == pytest.approx(2.0, abs=1e-7)
    assert right == pytest.approx(-0.25, abs=1e-7)
    # Class 2, not in the notes: four of the five points 54, 65, 65, 100 and 101.
    _, threshold, left, right = leaves(model, tree=2)
    assert 40 <= threshold < 54
    assert left == pytest.approx(-1.0, abs=1e-7)
    assert right == pytest.approx(1.4, abs=1e-7)


def test_squares_left_by_the_two_splits():
    """Residual sums of squares 1.4286 and 1.875 of the splits after 20 and after 31."""
    residual = (THREE_CLASSES == 0) - 1 / 3

    def left_over(value):
        sides = [FOURTEEN[:, 0] <= value, FOURTEEN[:, 0] > value]
        return sum(((residual[side] - residual[side].mean()) ** 2).sum() for side in sides)

    assert left_over(20) == pytest.approx(10 / 7)
    assert left_over(31) == pytest.approx(15 / 8)
    assert min(left_over(value) for value in FOURTEEN[FOURTEEN < 101]) == pytest.approx(10 / 7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_three_classes_many_rounds(method, rate):
    model = from_zero(method, rounds=4, rate=rate)
    scores = np.zeros((14, 3))
    for i in range(4):
        p = softmax(scores)
        residual = np.eye(3)[THREE_CLASSES] - p
        for k in range(3):
            _, threshold, left = stump(FOURTEEN, residual[:, k])
            steps = [2 / 3 * newton(residual[:, k], p[:, k], side) for side in (left, ~left)]
            scores[:, k] += rate * np.where(left, *steps)
            assert leaves(model, 3 * i + k)[1] == threshold
    np.testing.assert_allclose(model.decision_function(FOURTEEN), scores, atol=1e-6)
