"""Small tables, fitted models of every kind, and payloads of their reports."""

import json
from functools import cache

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression

import arboost

N_ROWS = 240


@cache
def table():
    """A frame with numbers, strings, truth values, times and missing values, and targets."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=N_ROWS)
    city = rng.choice(["Rome", "Oslo", "Bonn"], N_ROWS)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(N_ROWS) < 0.1, np.nan, size),
            "age": rng.integers(18, 80, N_ROWS).astype(float),
            "city": pd.Series(city, dtype=object).where(rng.random(N_ROWS) > 0.05),
            "member": rng.random(N_ROWS) < 0.5,
            "since": np.datetime64("2020-01-01") + rng.integers(0, 900, N_ROWS),
            "noise": rng.normal(size=N_ROWS),
        }
    )
    price = 2 * size + (city == "Rome") + 0.02 * frame["age"].to_numpy()
    price = price + 0.3 * rng.normal(size=N_ROWS)
    labels = np.array(["low", "mid", "high"])[np.digitize(price, [0.0, 2.0])]
    targets = {
        "regression": price,
        "binary": np.where(price > 0.8, "yes", "no"),
        "multiclass": labels,
    }
    return frame, targets


def numbers():
    """The numeric columns of the table as a matrix without missing values."""
    frame, targets = table()
    return np.nan_to_num(frame[["size", "age", "noise"]].to_numpy()), targets


def halves():
    """Rows to train on and rows to report on."""
    return np.arange(N_ROWS) < N_ROWS // 2, np.arange(N_ROWS) >= N_ROWS // 2


@cache
def fitted(name, task):
    """A model of the frame, fitted on its first half."""
    frame, targets = table()
    train, _ = halves()
    return _estimator(name, task).fit(frame[train], targets[task][train])


def _estimator(name, task):
    kind = "Regressor" if task == "regression" else "Classifier"
    few = {"n_estimators": 8, "random_state": 0}
    if name == "DecisionTree":
        few = {"random_state": 0}
    if name in ("Stacking", "Voting"):
        soft = {"voting": "soft"} if (name, kind) == ("Voting", "Classifier") else {}
        members = [(one, _estimator(one, task)) for one in ("GradientBoosting", "RandomForest")]
        return getattr(arboost, name + kind)(members, **soft)
    if name == "Bagging":
        few["estimator"] = getattr(arboost, "DecisionTree" + kind)(max_depth=3)
    return getattr(arboost, name + kind)(**few)


ENSEMBLES = (
    "GradientBoosting",
    "AdaBoost",
    "RandomForest",
    "ExtraTrees",
    "DecisionTree",
    "Bagging",
    "Stacking",
    "Voting",
)
TASKS = ("binary", "multiclass", "regression")


@cache
def report(name="GradientBoosting", task="binary"):
    """The report of a model on the second half of the frame, with the first as training rows."""
    frame, targets = table()
    train, test = halves()
    return fitted(name, task).report(
        frame[test], targets[task][test], X_train=frame[train], y_train=targets[task][train]
    )


def section(task, part, name="GradientBoosting"):
    """One part of the first model of a report."""
    return report(name, task).payload["models"][0][part]


def other_members(task):
    """A bagged estimator of scikit-learn, fitted on numbers."""
    X, targets = numbers()
    train, _ = halves()
    member = LinearRegression() if task == "regression" else LogisticRegression(max_iter=300)
    kind = "Regressor" if task == "regression" else "Classifier"
    bagged = getattr(arboost, "Bagging" + kind)(member, n_estimators=3, random_state=0)
    return bagged.fit(X[train], targets[task][train])


def same_parts(payload):
    """The bytes of a payload without the parts that depend on the clock."""
    models = [{k: v for k, v in one.items() if k != "timings"} for one in payload["models"]]
    kept = {k: v for k, v in payload.items() if k != "created"} | {"models": models}
    return json.dumps(kept, allow_nan=False)
