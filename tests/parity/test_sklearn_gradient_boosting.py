"""boosting="gradient" against scikit-learn's GradientBoosting*, by the loss on held-out rows.

Both fit least-squares trees to the negative gradient and give each leaf the minimiser of the loss.
Without equal splits both grow the same trees, with the same predictions for the training rows. Two
choices differ: the one of equal splits (scikit-learn draws one), and the threshold in the gap
between two values of a node (scikit-learn takes the middle, we take the nearest edge between two
values of the table). A few rounds later such choices have led to other trees of the same quality,
so that one held-out loss differs by percents in either direction. The mean over many data sets or
splits must agree to half a percent plus two standard errors of the mean difference, and these
standard errors must be small themselves.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_hastie_10_2,
)
from sklearn.metrics import log_loss, mean_absolute_error, mean_pinball_loss, mean_squared_error
from sklearn.model_selection import train_test_split

from arboost import GradientBoostingClassifier, GradientBoostingRegressor

WITHIN = 0.005  # as a share of scikit-learn's mean loss
SHAPE = {"n_estimators": 50, "learning_rate": 0.1, "max_depth": 3}
ALPHA = 0.8


def three_classes(n_rows, seed):
    X, y = make_friedman1(n_rows, noise=2.0, random_state=seed)
    return X, np.digitize(y, np.quantile(y, [0.3, 0.7]))


LOSSES = {
    "squared_error": mean_squared_error,
    "absolute_error": mean_absolute_error,
    "huber": mean_absolute_error,
    "quantile": lambda y, predicted: mean_pinball_loss(y, predicted, alpha=ALPHA),
    "log_loss": log_loss,
    "exponential": log_loss,
}
# Data sets by name; each repetition of a generated data set has its own seed.
DRAWN = {
    "friedman1": lambda seed: make_friedman1(3000, noise=1.0, random_state=seed),
    "friedman2": lambda seed: make_friedman2(3000, noise=50.0, random_state=seed),
    "hastie": lambda seed: make_hastie_10_2(4000, random_state=seed),
    "three classes": lambda seed: three_classes(3000, seed),
}
LOADED = {
    "diabetes": load_diabetes,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}
# Data, loss, repetitions. Gradients that are signs (all losses but squared error and those of
# classification) make trees depend on the last bit, and small data have a high variance: these
# cases have more repetitions.
CASES = [
    ("friedman1", "squared_error", 6),
    ("friedman1", "absolute_error", 8),
    ("friedman1", "huber", 8),
    ("friedman1", "quantile", 8),
    ("friedman2", "squared_error", 6),
    ("friedman2", "huber", 8),
    ("hastie", "log_loss", 6),
    ("hastie", "exponential", 6),
    ("three classes", "log_loss", 4),
    ("diabetes", "squared_error", 12),
    ("diabetes", "absolute_error", 12),
    ("diabetes", "huber", 12),
    ("diabetes", "quantile", 12),
    ("breast_cancer", "log_loss", 12),
    ("breast_cancer", "exponential", 12),
]
# The largest standard error of a meaningful comparison, as a share of scikit-learn's loss. The loss
# of breast_cancer comes from a handful of its rows.
LARGEST_ERROR = 0.01
LARGEST_ERROR_OF = {"breast_cancer": 0.04}


@cache
def split(name, seed):
    X, y = DRAWN[name](seed) if name in DRAWN else LOADED[name](return_X_y=True)
    return train_test_split(X, y, test_size=0.4, random_state=seed)


def held_out(model, name, loss, seed):
    X, X_test, y, y_test = split(name, seed)
    model.fit(X, y)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return LOSSES[loss](y_test, predict(X_test))


def is_regression(loss):
    return loss not in ("log_loss", "exponential")


@cache
def their_losses(name, loss, repetitions):
    found = []
    for seed in range(repetitions):
        if is_regression(loss):
            model = ensemble.GradientBoostingRegressor(
                loss=loss, alpha=ALPHA, random_state=seed, **SHAPE
            )
        else:
            model = ensemble.GradientBoostingClassifier(loss=loss, random_state=seed, **SHAPE)
        found.append(held_out(model, name, loss, seed))
    return np.array(found)


def our_losses(name, loss, repetitions, method):
    settings = {"loss": loss, "boosting": "gradient", "tree_method": method, **SHAPE}
    if is_regression(loss):
        of_loss = {"alpha": ALPHA} if loss in ("huber", "quantile") else {}
        model = GradientBoostingRegressor(**of_loss, **settings)
    else:
        model = GradientBoostingClassifier(**settings)
    return np.array([held_out(model, name, loss, seed) for seed in range(repetitions)])


def compare(ours, theirs):
    """Return the mean difference and its standard error, as shares of scikit-learn's loss."""
    differences = (ours - theirs) / theirs.mean()
    return differences.mean(), differences.std(ddof=1) / np.sqrt(len(theirs))


@pytest.mark.parametrize(("name", "loss", "repetitions"), CASES)
def test_exact(name, loss, repetitions):
    theirs = their_losses(name, loss, repetitions)
    mean, error = compare(our_losses(name, loss, repetitions, "exact"), theirs)
    assert error <= LARGEST_ERROR_OF.get(name, LARGEST_ERROR)
    assert abs(mean) <= WITHIN + 2 * error


@pytest.mark.parametrize(("name", "loss", "repetitions"), CASES)
def test_hist(name, loss, repetitions):
    """Bins offer fewer candidates than all values: the losses differ by chance, and little."""
    theirs = their_losses(name, loss, repetitions)
    mean, error = compare(our_losses(name, loss, repetitions, "hist"), theirs)
    assert mean <= WITHIN + 2 * error
    assert abs(mean) <= 0.05


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_weights(loss):
    found = []
    for seed in range(8):
        X, X_test, y, y_test = split("friedman1", seed)
        weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
        theirs = ensemble.GradientBoostingRegressor(loss=loss, random_state=seed, **SHAPE)
        ours = GradientBoostingRegressor(
            boosting="gradient", loss=loss, tree_method="exact", **SHAPE
        )
        models = (model.fit(X, y, sample_weight=weight) for model in (ours, theirs))
        found.append([LOSSES[loss](y_test, model.predict(X_test)) for model in models])
    mean, error = compare(*np.transpose(found))
    assert abs(mean) <= WITHIN + 2 * error


@pytest.mark.parametrize(("name", "repetitions"), [("iris", 30), ("wine", 30), ("digits", 3)])
def test_many_equal_splits(name, repetitions):
    """With many equal splits, the choice among them decides the loss.

    scikit-learn draws one of them, ours takes the features in turn. Taking always the first feature
    was 10 % worse on iris, 29 % on wine.
    """
    theirs = their_losses(name, "log_loss", repetitions)
    mean, error = compare(our_losses(name, "log_loss", repetitions, "exact"), theirs)
    assert mean <= 0.05 + 2 * error


@pytest.mark.parametrize(
    ("name", "loss", "rounds"),
    [
        ("friedman1", "squared_error", 10),
        ("friedman2", "squared_error", 10),
        ("hastie", "log_loss", 10),
        ("hastie", "exponential", 10),
        ("three classes", "log_loss", 5),
    ],
)
def test_same_predictions_of_training_rows(name, loss, rounds):
    """On continuous columns without ties every prediction is the same."""
    X, _, y, _ = split(name, 0)
    settings = {**SHAPE, "n_estimators": rounds, "loss": loss}
    if is_regression(loss):
        ours, theirs = GradientBoostingRegressor(), ensemble.GradientBoostingRegressor()
    else:
        ours, theirs = GradientBoostingClassifier(), ensemble.GradientBoostingClassifier()
    ours.set_params(boosting="gradient", tree_method="exact", **settings).fit(X, y)
    theirs.set_params(random_state=0, **settings).fit(X, y)
    predict = "predict" if is_regression(loss) else "predict_proba"
    np.testing.assert_allclose(getattr(ours, predict)(X), getattr(theirs, predict)(X), rtol=1e-6)
