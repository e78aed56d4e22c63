"""One step length a round: Friedman's algorithm 1, against its lines in NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.estimators.boosting_rounds import step_length
from arboost.losses import Target, make

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 4))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + RNG.standard_t(2, 400)
CLASSES = np.digitize(Y, [-1.0, 1.0])
SETTINGS = {
    "boosting": "gradient",
    "line_search": "round",
    "n_estimators": 5,
    "learning_rate": 0.3,
    "max_depth": 3,
}


def leaf_means(model, rounds):
    """Return the raw scores before the last of some rounds, and what this round adds."""
    before = model.predict_raw(X, rounds=rounds - 1)
    return before, model.predict_raw(X, rounds=rounds) - before


@pytest.mark.parametrize("loss", ["absolute_error", "huber", "quantile", "squared_error"])
def test_steps_of_regression_minimise_the_loss(loss):
    model = GradientBoostingRegressor(loss=loss, **SETTINGS).fit(X, Y)
    target, kernel = Target(Y, None), make(loss, alpha=0.9)
    for rounds in range(1, 6):
        before, added = leaf_means(model, rounds)
        direction = added / 0.3  # the step in full

        def value(length, before=before, direction=direction):
            return kernel.value(target, before + length * direction, 1)

        best = minimize_scalar(value, bounds=(0.0, 4.0), method="bounded")
        assert value(1.0) <= best.fun + 1e-9 * abs(best.fun)


def test_steps_of_classes_minimise_the_loss_together():
    model = GradientBoostingClassifier(**SETTINGS).fit(X, CLASSES)
    target, kernel = Target(CLASSES.astype(float), None), make("log_loss", n_outputs=3)
    for rounds in range(1, 6):
        before, added = leaf_means(model, rounds)
        slopes = [
            kernel.value(target, before + length * added / 0.3, 1) for length in (0.999, 1.0, 1.001)
        ]
        assert slopes[1] <= min(slopes[0], slopes[2])


def test_leaves_are_multiples_of_mean_gradients():
    model = GradientBoostingClassifier(**SETTINGS | {"n_estimators": 1}).fit(X, CLASSES > 1)
    _, added = leaf_means(model, 1)
    share = (CLASSES > 1).mean()
    leaves = model.apply(X)[:, 0]
    ratios = []
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        ratios.append(added[rows][0, 0] / ((CLASSES[rows] > 1) - share).mean())
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)


def test_squared_errors_have_steps_of_length_one():
    """The mean residual of each leaf is also its value by a line search in the leaf."""
    one, each = (
        GradientBoostingRegressor(**SETTINGS | {"line_search": line_search}).fit(X, Y)
        for line_search in ("round", "leaf")
    )
    np.testing.assert_allclose(one.predict(X), each.predict(X), rtol=1e-6, atol=1e-8)


def test_a_class_alone_ends_at_a_finite_step():
    """Pure leaves: the loss falls along the whole step, which ends at a score change of 10."""
    model = GradientBoostingClassifier(**SETTINGS | {"learning_rate": 1.0, "n_estimators": 1})
    raw = model.fit(X, X[:, 0] > 0).predict_raw(X)
    start = model.model_.base_score
    assert np.abs(raw - start).max() == pytest.approx(10.0, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_lengths_of_any_scale(scale):
    """|y - s d| with d = 1: the minimum is at the median of y, whatever the first length."""
    y = scale * np.array([1.0, 2.0, 3.0])
    scores, direction = np.zeros((3, 1)), np.ones((3, 1))
    loss = make("absolute_error")
    length = step_length(loss, Target(y, None), scores, direction, 1.0, 1)
    assert length == pytest.approx(2 * scale, rel=1e-6)


def test_a_direction_of_zeros_changes_nothing():
    model = GradientBoostingRegressor(**SETTINGS | {"gamma": 1e12, "loss": "huber"}).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
