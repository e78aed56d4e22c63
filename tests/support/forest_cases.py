"""Rows, targets and forests that tests of forests share."""

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
    """Sums over the trees, one by one, of what they say of rows that they have not drawn."""
    sums, counts = np.zeros((n_rows, width)), np.zeros(n_rows)
    pairs = zip(model.estimators_, model.estimators_samples_, strict=True)
    for tree, seen in pairs:
        unseen = np.setdiff1d(np.arange(n_rows), seen)
        sums[unseen] += answers(tree, table[unseen]).reshape(len(unseen), width)
        counts[unseen] += 1
    with np.errstate(invalid="ignore"):
        return sums / counts[:, np.newaxis]
