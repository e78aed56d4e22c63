"""The same model for any number of threads, on the paths that choose or translate settings."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.backend import core
from arboost.compat import sklearn as compat

ROWS = 6000


def table(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 12))
    X[rng.random(X.shape) < 0.02] = np.nan
    signal = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
    noisy = signal + rng.normal(size=ROWS)
    if n_classes == 0:
        return X, noisy
    return X, np.searchsorted(np.quantile(noisy, np.arange(1, n_classes) / n_classes), noisy)


def preset(name, n_classes=2):
    def fit(n_jobs):
        estimator = GradientBoostingClassifier if n_classes else GradientBoostingRegressor
        return estimator(preset=name, max_leaves=8, n_jobs=n_jobs).fit(*table(n_classes))

    return fit


def evaluation_sets(n_jobs):
    X, y = table(2)
    model = GradientBoostingClassifier(n_estimators=20, n_iter_no_change=5, n_jobs=n_jobs)
    return model.fit(X, y, eval_set=[(X, y), (X[::3], y[::3])])


def warm_start(n_jobs):
    X, y = table(0)
    model = GradientBoostingRegressor(n_estimators=5, warm_start=True, n_jobs=n_jobs).fit(X, y)
    return model.set_params(n_estimators=10).fit(X, y)


def many_levels(encoding):
    def fit(n_jobs):
        X, y = table(0)
        X[:, 3] = np.random.default_rng(1).zipf(1.3, ROWS) % 900
        model = GradientBoostingRegressor(
            n_estimators=20, categorical_features=[3], category_encoding=encoding, n_jobs=n_jobs
        )
        return model.fit(X, y + X[:, 3] % 7)

    return fit


FITS = {
    "groups of levels": many_levels("groups"),
    "means of levels": many_levels("mean"),
    "fast": preset("fast"),
    "good": preset("good"),
    "good, regression": preset("good", 0),
    "good, eight classes": preset("good", 8),
    "best": preset("best"),
    "evaluation sets": evaluation_sets,
    "warm start": warm_start,
}


@pytest.mark.filterwarnings("ignore:The fit ended at the most rounds")
@pytest.mark.parametrize("name", FITS)
def test_models_do_not_depend_on_threads(name):
    models = [FITS[name](n_jobs).model_.to_json() for n_jobs in (1, 2, 4)]
    assert models[0] == models[1] == models[2]


@pytest.mark.parametrize(
    "estimator",
    [
        compat.GradientBoostingClassifier(n_estimators=5, subsample=0.7, random_state=0),
        compat.HistGradientBoostingClassifier(max_iter=10, early_stopping=True, random_state=0),
    ],
    ids=["GradientBoosting", "HistGradientBoosting"],
)
def test_boosters_with_the_signatures_of_scikit_learn(estimator, monkeypatch):
    """They have no n_jobs, and use all threads that the process may use."""
    X, y = table(3)
    models = []
    for n_threads in (1, 2, 4):
        monkeypatch.setattr(core, "available_threads", lambda n=n_threads: n)
        models.append(estimator.fit(np.nan_to_num(X), y).model_.to_json())
    assert models[0] == models[1] == models[2]
