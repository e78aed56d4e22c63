"""Shared table, targets and forests for the tests of forests."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_regression

from arboost import RandomForestClassifier, RandomForestRegressor

X, Y = make_regression(300, 6, n_informative=4, noise=20.0, random_state=0)
LABELS = np.digitize(Y, [-60.0, 60.0])
NAMES = np.array(["low", "middle", "high"])[LABELS]
TARGETS = {"numbers": Y, "two classes": LABELS > 0, "three classes": NAMES}
MAKERS = {
    "numbers": RandomForestRegressor,
    "two classes": RandomForestClassifier,
    "three classes": RandomForestClassifier,
}


def forest(kind, **params):
    return MAKERS[kind](**{"n_estimators": 12, **params})


def answers(model, table):
    return model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)


def saved(model, tmp_path):
    path = tmp_path / "model.arb"
    model.save(path)
    return path.read_bytes()


def brute_force(model, table, n_rows, width):
    """Return the mean predictions of each row's out-of-bag trees, one tree at a time."""
    sums, counts = np.zeros((n_rows, width)), np.zeros(n_rows)
    pairs = zip(model.estimators_, model.estimators_samples_, strict=True)
    for tree, sample in pairs:
        out_of_bag = np.setdiff1d(np.arange(n_rows), sample)
        sums[out_of_bag] += answers(tree, table[out_of_bag]).reshape(len(out_of_bag), width)
        counts[out_of_bag] += 1
    with np.errstate(invalid="ignore"):
        return sums / counts[:, np.newaxis]
