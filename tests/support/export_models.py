"""Models of every kind, and rows at all thresholds: for the tests of exports."""

from __future__ import annotations

import datetime
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

import arboost
from arboost.data.levels import Levels
from arboost.models.predictor import Predictor
from support.random_models import make_model, random_forest

WORDS = ["Köln", "Oslo", 'a "quoted"\n*/ ??/ \\ %s', "", "nan", "é" * 3000, "b\0c", "b"]
HOSTILE = ('say "no"', "two\nlines", "*/ int main(", "??/", "\\", "label", "é", "model_raw")


def numbers(rng, n=300):
    X = rng.normal(size=(n, 5)).round(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    score = np.nan_to_num(X[:, 0]) + (np.nan_to_num(X[:, 1]) > 0) + 0.1 * rng.normal(size=n)
    return X, score


def mixed(rng, n=400, *, many=False):
    """Return a table of numbers, strings, a numeric category and optionally many-level strings."""
    table = np.empty((n, 4 if many else 3), object)
    table[:, 0] = rng.normal(size=n).round(2)
    table[:, 1] = rng.choice(np.array(WORDS, object), n)
    table[:, 2] = rng.choice([1.5, -2.0, 0.0, 1e300, 7.0], n)
    table[rng.random(table.shape) < 0.1] = None
    if many:
        table[:, 3] = [f"level {i}" for i in rng.integers(0, 150, n)]
    effect = np.array([hash_of(one) for one in table[:, 1]])
    y = effect + np.array([one or 0.0 for one in table[:, 0]])
    return table, y


def hash_of(text):
    return 0.0 if text is None else sum(text.encode()) % 7 - 3.0


def _boosted(kind="Regressor", y=lambda score: score, **params):
    def fit(rng):
        X, score = numbers(rng)
        estimator = getattr(arboost, f"GradientBoosting{kind}")
        return estimator(n_estimators=12, verbose=0, **params).fit(X, y(score)).model_

    return fit


def _fitted(name, y=lambda score: score, **params):
    def fit(rng):
        X, score = numbers(rng)
        return getattr(arboost, name)(verbose=0, **params).fit(X, y(score)).model_

    return fit


def _mixed(many, name="GradientBoostingRegressor", **params):
    def fit(rng):
        table, y = mixed(rng, many=many)
        y = y if name.endswith("Regressor") else np.where(y > 0, "yes", "no")
        params.setdefault("categorical_features", [1, 2, 3] if many else [1, 2])
        return getattr(arboost, name)(verbose=0, **params).fit(table, y).model_

    return fit


def _ordered(rng):
    table, y = mixed(rng)
    frame = pd.DataFrame(table).astype({0: float})
    for column, levels in {1: WORDS, 2: [7.0, -2.0, 0.0, 1e300, 1.5]}.items():
        frame[column] = frame[column].astype(pd.CategoricalDtype(levels, ordered=True))
    return arboost.GradientBoostingRegressor(n_estimators=20, verbose=0).fit(frame, y).model_


def two(score):
    return np.where(score > 0.5, "yes", 'n"o')


def three(score):
    return np.digitize(score, [0.0, 1.0]) * 10


def targets(score):
    return np.stack([score, -score], axis=1)


def class_targets(score):
    return np.stack([score > 0.5, three(score)], axis=1).astype(int)


def two_targets(score):
    return np.stack([score > 0.5, score > 0.0], axis=1)


CASES = {
    "squared": _boosted(),
    "poisson": _boosted(loss="poisson", y=lambda score: np.exp(score).round()),
    "quantile": _boosted(loss="quantile", alpha=0.9),
    "quantiles": _boosted(loss="quantile", alpha=[0.1, 0.5, 0.9]),
    "binary": _boosted("Classifier", two),
    "exponential": _boosted("Classifier", two, loss="exponential"),
    "classes": _boosted("Classifier", three),
    "vector": _boosted("Classifier", three, multi_strategy="multi_output_tree"),
    "missing": _boosted(missing=0.0),
    "truth": _boosted("Classifier", lambda score: score > 0.5),
    "forest": _fitted("RandomForestRegressor", n_estimators=10),
    "forest_of_two": _fitted("RandomForestClassifier", two, n_estimators=10),
    "forest_of_classes": _fitted("RandomForestClassifier", three, n_estimators=150, max_depth=5),
    "targets": _fitted("RandomForestRegressor", targets, n_estimators=5),
    "class_targets": _fitted("ExtraTreesClassifier", class_targets, n_estimators=5),
    "targets_of_two": _fitted("RandomForestClassifier", two_targets, n_estimators=5),
    "tree": _fitted("DecisionTreeClassifier", three),
    "r2": _fitted("AdaBoostRegressor", n_estimators=30),
    "r2 by means": _fitted("AdaBoostRegressor", n_estimators=30, aggregation="mean"),
    "votes": _fitted("AdaBoostClassifier", two, n_estimators=20),
    "votes_of_classes": _fitted("AdaBoostClassifier", three, n_estimators=20),
    "levels": _mixed(many=False, n_estimators=30),
    "many_levels": _mixed(many=True, n_estimators=20),
    "levels_and_missing": _mixed(many=True, n_estimators=20, missing=0.0),
    "levels_of_two": _mixed(many=False, name="GradientBoostingClassifier", n_estimators=10),
    "levels_of_forest": _mixed(many=True, name="RandomForestClassifier", n_estimators=10),
    "ordered_levels": _ordered,
    "no_trees": lambda rng: CASES["classes"](rng).truncated(0),
    "one_leaf": _boosted(max_depth=1, gamma=1e9),
}


@cache
def model_of(case):
    """Return the model of a case."""
    return CASES[case](np.random.default_rng(1))


def random_model(rng, *, n_outputs=1, width=1, categories=(), n_trees=12):
    """Return a model of random trees, with infinite thresholds and random level sets."""
    forest = random_forest(rng, n_trees, 5, n_outputs, width, 40, categories)
    return make_model(forest, 5, n_outputs, categories=categories)


def without_levels(rng, n=100):
    """Return a model of a number and two categories without levels, and its rows."""
    table = np.empty((n, 3), object)
    table[:, 0] = rng.normal(size=n)
    model = arboost.GradientBoostingRegressor(
        n_estimators=5, categorical_features=[1, 2], verbose=0
    )
    model = model.fit(table, table[:, 0].astype(float)).model_
    text = Levels("string", np.empty(0, np.uint8), np.zeros(1, np.int64))
    schema = replace(model.schema, levels=(None, text, model.schema.levels[2]))
    assert not any(map(len, schema.levels[1:]))
    return Predictor(**model.fields() | {"schema": schema}), table


def times(rng, n=300):
    """Return a model of days and numbers, its rows, and the same rows with days as seconds.

    The number for missing values is a valid day, too.
    """
    table = np.empty((n, 2), object)
    days = rng.integers(0, 10, n)
    table[:, 0] = [datetime.datetime(1970, 1, 1 + day) for day in days.tolist()]
    table[:, 1] = rng.choice([0.0, 86400.0, 1e5], n)
    y = days + np.where(table[:, 1] == 86400.0, 7.0, 0.0)
    model = arboost.GradientBoostingRegressor(
        n_estimators=20, missing=86400.0, calendar_parts=None, verbose=0
    )
    seconds = np.stack([days * 86400.0, table[:, 1].astype(float)], axis=1)
    return model.fit(table, y).model_, table, seconds


def random_median(rng):
    """Return a weighted median of trees, with inexact weight sums and few distinct values."""
    forest = random_forest(rng, 40, 5, 1, 1)
    forest = replace(forest, value=forest.value.round(1))
    weights = rng.choice([0.1, 0.2, 0.3, 0.7], 40)
    fields = make_model(forest, 5, 1).fields()
    model = Predictor(**fields | {"combine": "median", "tree_weights": weights})
    model.validate()
    return model


def hostile_names(model):
    """Return the model with names that need escapes in C."""
    n = model.schema.n_features
    names = (HOSTILE * (n // len(HOSTILE) + 1))[:n]
    return Predictor(**model.fields() | {"schema": replace(model.schema, names=names)})


def rows_of(model, rng, n=200):
    """Return rows at and around every threshold, with missing values, infinities, all levels."""
    schema = model.schema
    rows = np.empty((n, schema.n_features), object)
    for feature in range(schema.n_features):
        rows[:, feature] = _values(model, feature, rng, n)
    forest = model.forest
    at = forest.is_split & (forest.level_set < 0)
    plain = [f for f in range(schema.n_features) if schema.levels_of(f) is None]
    extra = []
    for feature, threshold in sorted({*zip(forest.feature[at], forest.threshold[at], strict=True)}):
        if feature in plain:
            neighbours = np.nextafter(threshold, [-np.inf, np.inf])
            for value in (threshold, *neighbours.tolist()):
                row = rows[int(rng.integers(n))].copy()
                row[feature] = float(value)
                extra.append(row)
    rows = np.concatenate([rows, np.array(extra, object).reshape(-1, rows.shape[1])])
    return rows.astype(np.float64) if len(plain) == schema.n_features else rows


def _values(model, feature, rng, n):
    levels = model.schema.levels_of(feature)
    if levels is None:
        values = rng.normal(size=n).round(2)
        values[:4] = np.nan, np.inf, -np.inf, 0.0
        values[rng.random(n) < 0.1] = np.nan
        return values
    known = [levels.label(code) for code in range(len(levels))]
    unknown = [None, *(("?", "Bonn") if levels.kind == "string" else (np.inf, 0.25, -0.0))]
    return rng.permutation(np.resize(np.array(known + unknown, object), n))
