"""Forests against scikit-learn's forests: held-out scores, and its own tests with our classes.

Random generators differ, so the forests do. Their scores on held-out rows, over twenty seeds of
each library, are compared by Welch's t-test of equal means at the level 0.001. The seeds are fixed,
so that a test passes always or never.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import ttest_ind
from sklearn import ensemble
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_friedman1
from sklearn.model_selection import train_test_split

import arboost
from support import swapped

SEEDS = 20


def few_levels():
    """Return features of few values, which are often constant in small nodes."""
    X, y = make_classification(600, 12, n_informative=6, flip_y=0.1, random_state=0)
    return np.round(X), y


DATA = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: tuple(part[:700] for part in load_digits(return_X_y=True)),
    "few levels": few_levels,
    "Friedman": lambda: make_friedman1(500, noise=1.0, random_state=0),
}
SETTINGS = {
    "usual": {},
    "leaves of 5": {"min_samples_leaf": 5},
    "few draws": {"max_samples": 0.3, "bootstrap": True},
}


@cache
def parts(data):
    return train_test_split(*DATA[data](), test_size=0.4, random_state=0)


def scores(library, name, data, settings):
    X, X_test, y, y_test = parts(data)
    kind = "Regressor" if data == "Friedman" else "Classifier"
    maker = getattr(library, name + kind)
    models = [maker(15, random_state=seed, n_jobs=1, **settings) for seed in range(SEEDS)]
    return [model.fit(X, y).score(X_test, y_test) for model in models]


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", ["RandomForest", "ExtraTrees"])
def test_held_out_scores(name, data, settings):
    ours = scores(arboost, name, data, SETTINGS[settings])
    theirs = scores(ensemble, name, data, SETTINGS[settings])
    p = ttest_ind(ours, theirs, equal_var=False).pvalue
    # With hundreds of rows a significant difference below half a percent is too small to matter.
    close = abs(np.mean(ours) - np.mean(theirs)) < 0.005
    assert p > 0.001 or close, (np.mean(ours), np.mean(theirs), p)


# scikit-learn's own tests of forests. docs/developers/forests_differences.md lists the tests that
# fail, each with its reason. Any other failure is a bug, and so is a listed test that passes.

SUITE = "sklearn.ensemble.tests.test_forest"
CLASSES = tuple(
    name + kind for name in ("RandomForest", "ExtraTrees") for kind in ("Classifier", "Regressor")
)


@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    passed, fits = swapped.run(tmp_path, SUITE, CLASSES, package=swapped.COMPAT)
    expected = swapped.differences("forests_differences.md", "## Forests")
    assert len(passed) > 300
    assert fits > 400
    assert swapped.failed(passed) == set(expected)
    assert all(expected.values())
