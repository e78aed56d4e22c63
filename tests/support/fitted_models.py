"""Fitted models of every kind, for the tests of explanations."""

from __future__ import annotations

import numpy as np
import pandas as pd

import arboost


def table(rng, n_rows=260):
    """Return a table of numbers with missing values, two categories and datetimes, and a target."""
    city = rng.choice(["Bern", "Oslo", "Rome", "Wien"], n_rows)
    street = rng.choice([f"s{i}" for i in range(140)], n_rows)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(40, 9, n_rows)),
            "rooms": rng.integers(1, 6, n_rows),
            "city": pd.Categorical(np.where(rng.random(n_rows) < 0.1, None, city)),
            "street": pd.Categorical(street, categories=sorted({*street})),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), "D"),
        }
    )
    y = (
        np.nan_to_num(frame["age"].to_numpy(), nan=30.0) / 9
        + frame["rooms"].to_numpy() * (city == "Oslo")
        + np.cos(frame["sold"].astype("int64").to_numpy() / 1e16)
        + rng.normal(size=n_rows) * 0.3
    )
    return frame, y


def fitted(kind, rng):
    frame, y = table(rng)
    three = np.array(["low", "mid", "top"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    small = {"n_estimators": 8, "random_state": 0}
    models = {
        "boosted": lambda: arboost.GradientBoostingRegressor(**small).fit(frame, y),
        "counts": lambda: arboost.GradientBoostingRegressor(loss="poisson", **small).fit(
            frame, np.abs(y).round()
        ),
        "quantiles": lambda: arboost.GradientBoostingRegressor(
            loss="quantile", alpha=[0.2, 0.8], **small
        ).fit(frame, y),
        "two": lambda: arboost.GradientBoostingClassifier(**small).fit(frame, y > y.mean()),
        "three": lambda: arboost.GradientBoostingClassifier(**small).fit(frame, three),
        "vectors": lambda: arboost.GradientBoostingClassifier(
            multi_strategy="multi_output_tree", **small
        ).fit(frame, three),
        "forest": lambda: arboost.RandomForestRegressor(**small).fit(frame, y),
        "votes": lambda: arboost.RandomForestClassifier(**small).fit(frame, three),
        "two_shares": lambda: arboost.DecisionTreeClassifier(max_depth=5).fit(frame, y > y.mean()),
        "targets": lambda: arboost.ExtraTreesRegressor(**small).fit(frame, np.c_[y, -y]),
        "labels": lambda: arboost.RandomForestClassifier(**small).fit(
            frame, np.c_[three, np.where(y > y.mean(), "yes", "no")]
        ),
        "ada": lambda: arboost.AdaBoostClassifier(max_depth=2, **small).fit(frame, three),
        "median": lambda: arboost.AdaBoostRegressor(max_depth=3, **small).fit(frame, y),
        "constant": lambda: arboost.GradientBoostingRegressor(**small).fit(frame, y * 0),
    }
    return models[kind]().model_, frame


KINDS = [
    "boosted",
    "counts",
    "quantiles",
    "two",
    "three",
    "vectors",
    "forest",
    "votes",
    "two_shares",
    "targets",
    "labels",
    "ada",
    "median",
    "constant",
]


def with_value(frame, name, value):
    """Return the table with one value in all rows of a column, of the column's type."""
    column = frame[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        changed = pd.Categorical([value] * len(frame), dtype=column.dtype)
    else:
        changed = pd.Series([value] * len(frame), dtype=None if name != "sold" else column.dtype)
    return frame.assign(**{name: changed})
