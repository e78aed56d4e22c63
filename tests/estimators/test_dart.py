"""DART: weights of dropped and of new trees.

Rashmi and Gilad-Bachrach (2015), algorithm 2: with k trees dropped, the new tree is fitted to the
residuals of the others. Its weight is 1 / (k + 1), and the dropped trees are scaled by k / (k + 1).
With a learning rate r the factors are r / (k + r) and k / (k + r), as in XGBoost. With
normalize_type="forest" the dropped trees count as one: r / (1 + r) and 1 / (1 + r).
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from support.trees import trees_of


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True)


def dart(rounds, **params):
    return GradientBoostingRegressor(n_estimators=rounds, max_depth=3, **params)


def weights_of(model):
    """Return the weight of each tree relative to the unscaled first tree.

    All trees must be equal except for their weights.
    """
    X, y = load_diabetes(return_X_y=True)
    unscaled = trees_of(dart(1, learning_rate=1.0).fit(X, y))[0].value
    largest = np.abs(unscaled).argmax()
    return np.array([tree.value[largest] / unscaled[largest] for tree in trees_of(model)])


def expected_weights(rounds, rate, normalize_type):
    """Return the tree weights when every round drops all trees."""
    weights = np.zeros(0)
    for k in range(rounds):
        if k == 0:
            weights = np.array([rate])
            continue
        share = k if normalize_type == "tree" else 1
        weights = np.append(weights * share / (share + rate), rate / (share + rate))
    return weights


@pytest.mark.parametrize("normalize_type", ["tree", "forest"])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_weights_when_all_are_dropped(data, rate, normalize_type):
    """All trees are fitted to the same gradients, so they differ only in their weights."""
    model = dart(6, rate_drop=1.0, learning_rate=rate, normalize_type=normalize_type).fit(*data)
    first, *others = trees_of(model)
    for tree in others:
        np.testing.assert_array_equal(tree.threshold, first.threshold)
    expected = expected_weights(6, rate, normalize_type)
    np.testing.assert_allclose(weights_of(model), expected, rtol=1e-9)
    if rate == 1.0 and normalize_type == "tree":
        np.testing.assert_allclose(expected, 1 / 6)  # as in the paper: the mean of the trees


@pytest.mark.parametrize("normalize_type", ["tree", "forest"])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_weights_are_those_of_xgboost(data, rate, normalize_type):
    xgboost = pytest.importorskip("xgboost")
    X, y = np.round(data[0], 2).astype(np.float32), data[1]
    model = dart(6, rate_drop=1.0, learning_rate=rate, normalize_type=normalize_type)
    model.set_params(base_score=150.0).fit(X, y)
    params = {
        "booster": "dart",
        "rate_drop": 1.0,
        "normalize_type": normalize_type,
        "learning_rate": rate,
        "max_depth": 3,
        "base_score": 150.0,
        "tree_method": "hist",
        "nthread": 1,
        "verbosity": 0,
    }
    matrix = xgboost.DMatrix(X, y)
    theirs = xgboost.train(params, matrix, 6).predict(matrix, training=False)
    np.testing.assert_allclose(model.predict(X), theirs, rtol=1e-4)


def test_one_drop(data):
    """With a vanishing rate_drop, one_drop scales exactly one earlier tree per round."""
    settings = {"rate_drop": 1e-12, "one_drop": True, "learning_rate": 0.5}
    dropped = set()
    for rounds in range(1, 9):
        before = trees_of(dart(rounds, **settings).fit(*data))
        after = trees_of(dart(rounds + 1, **settings).fit(*data))
        ratios = [b.value[-1] / a.value[-1] for a, b in zip(before, after[:-1], strict=True)]
        scaled = [i for i, ratio in enumerate(ratios) if abs(ratio - 1) > 1e-6]
        assert len(scaled) == 1
        assert ratios[scaled[0]] == pytest.approx(1 / 1.5)
        dropped.add(scaled[0])
    assert len(dropped) > 1


def test_skip_drop(data):
    """A round that skips dropout is plain boosting."""
    plain = dart(8).fit(*data)
    skipped = dart(8, rate_drop=0.9, skip_drop=1.0).fit(*data)
    never_dropped = dart(8, rate_drop=1e-12).fit(*data)
    np.testing.assert_allclose(skipped.predict(data[0]), plain.predict(data[0]), rtol=1e-12)
    np.testing.assert_allclose(never_dropped.predict(data[0]), plain.predict(data[0]), rtol=1e-12)


@pytest.mark.parametrize(("sample_type", "share"), [("uniform", 1 / 3), ("weighted", 0.2)])
def test_sample_type(data, sample_type, share):
    """Drop probabilities in round 4 of three trees, one of them with half the weight.

    With learning rate 1 the tree weights are 1/2, 1/2 after round 2, and 1/4, 1/2, 1/2 after
    round 3: weighted sampling drops the light tree with probability 0.25 / 1.25.
    """
    X, y = data[0][:60], data[1][:60]
    settings = {"rate_drop": 1e-12, "one_drop": True, "sample_type": sample_type}
    settings |= {"learning_rate": 1.0}
    again, n = 0, 300
    for seed in range(n):
        values = [
            [tree.value[-1] for tree in trees_of(dart(r, random_state=seed, **settings).fit(X, y))]
            for r in (2, 3, 4)
        ]
        light = int(np.argmin(np.divide(values[1][:2], values[0])))
        ratios = np.divide(values[2][:3], values[1])
        again += int(np.argmin(ratios)) == light
    assert abs(again / n - share) < 4 * np.sqrt(share * (1 - share) / n)
    assert abs(again / n - share) < abs(again / n - (8 / 15 - share))


def test_classes(tmp_path):
    """A drop covers the trees of all classes, and the saved model has the final weights."""
    import arboost

    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=20, rate_drop=0.2).fit(X, y)
    assert model.score(X, y) > 0.95
    model.save(tmp_path / "dart.arb")
    loaded = arboost.load(tmp_path / "dart.arb")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
