"""Write model files of this version for tests/models, with the predictions of each model.

Usage: python tools/make_models.py [FOLDER]

Each model is a real fit to a small table. Next to NAME.arb there is NAME.json: rows, the names of
their columns for data frames, raw scores, predictions ("answers"), and quantiles where the model
has them. Existing files are never overwritten: every later version must read them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import arboost
from arboost.models.files.model_file import format_version

QUANTILES = [0.1, 0.5, 0.9]
CITIES = [f"city {number:03d}" for number in range(150)]

Fit = tuple[Any, ...]  # an estimator, a table, a target, and further arguments of fit by name


def numbers(seed: int, n: int = 200, n_features: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with missing values and infinities, and a target with steps and a slope."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, n_features)), 2)
    y = np.round(X[:, 0] * 2 + np.where(X[:, 1] > 0.3, 3.0, 0.0) + rng.normal(size=n) / 4, 3)
    X[rng.random(X.shape) < 0.08] = np.nan
    X[0, 2], X[1, 2] = np.inf, -np.inf
    return X, y


def booster() -> Fit:
    """Squared error, with names."""
    X, y = numbers(1)
    model = arboost.GradientBoostingRegressor(n_estimators=8, max_depth=3, learning_rate=0.3)
    return model, pd.DataFrame(X, columns=["a", "b", "c d", "é"]), y


def booster_two_classes() -> Fit:
    """Labels that are strings, and early stopping on held-out rows."""
    X, y = numbers(2, n=400)
    model = arboost.GradientBoostingClassifier(
        n_estimators=30, max_depth=3, n_iter_no_change=3, learning_rate=0.5, validation_fraction=0.3
    )
    return model, X, np.where(y > 1, "yes", "no")


def booster_classes() -> Fit:
    """Three int8 labels, with one tree per class and round."""
    X, y = numbers(3)
    model = arboost.GradientBoostingClassifier(n_estimators=3, max_depth=2)
    return model, X, np.digitize(y, [0.0, 3.0]).astype(np.int8)


def booster_vector_leaves() -> Fit:
    """Vector leaves: one value for each class."""
    X, y = numbers(4)
    model = arboost.GradientBoostingClassifier(
        n_estimators=3, max_depth=2, multi_strategy="multi_output_tree"
    )
    return model, X, np.digitize(y, [0.0, 3.0]) * 2.0


def booster_poisson() -> Fit:
    """Counts with a log link, and a number for missing values."""
    X, y = numbers(5)
    X = np.nan_to_num(X, nan=-9.0)
    model = arboost.GradientBoostingRegressor(
        loss="poisson", n_estimators=5, max_depth=3, missing=-9.0
    )
    return model, X, np.floor(np.abs(y))


def booster_offset() -> Fit:
    """Counts and the logarithm of their exposure, a column of the table."""
    X, y = numbers(18)
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    table["log exposure"] = np.round(np.random.default_rng(18).uniform(-1.0, 1.0, len(y)), 2)
    model = arboost.GradientBoostingRegressor(loss="poisson", n_estimators=5, max_depth=3)
    return model, table, np.floor(np.abs(y)), {"offset": "log exposure"}


def booster_quantiles() -> Fit:
    """Three quantiles of y."""
    X, y = numbers(6)
    model = arboost.GradientBoostingRegressor(
        loss="quantile", alpha=[0.1, 0.5, 0.9], n_estimators=4, max_depth=2
    )
    return model, X, y


def booster_categories() -> Fit:
    """Level sets, target encoding of many levels, times and numbers in one table."""
    rng = np.random.default_rng(7)
    n = 600
    colour = rng.choice(["red", "green", "blue", "ünï"], n)
    city = rng.choice(CITIES, n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    size = np.round(rng.normal(size=n), 1)
    effect = dict(zip(CITIES, np.round(rng.normal(size=len(CITIES)), 2), strict=True))
    y = np.where(np.isin(colour, ["red", "ünï"]), 2.0, 0.0) + [effect[one] for one in city] + size
    table = pd.DataFrame(
        {"colour": colour, "city": city, "day": day.astype(str), "size": size}
    ).assign(day=lambda frame: pd.to_datetime(frame["day"]))
    model = arboost.GradientBoostingRegressor(n_estimators=5, max_depth=3, category_encoding="mean")
    return model, table, np.round(y, 3)


def booster_groups() -> Fit:
    """Groups of levels: frequent ones alone, rare ones together, and missing values."""
    rng = np.random.default_rng(17)
    code = np.minimum(rng.geometric(0.02, 1500) - 1, len(CITIES) - 1)
    effect = np.round(rng.normal(size=len(CITIES)), 2)
    size = np.round(rng.normal(size=len(code)), 1)
    y = effect[code] * np.where(size > 0, 2.0, -1.0) + size
    city = np.array(CITIES, object)[code]
    city[rng.random(len(code)) < 0.05] = None
    model = arboost.GradientBoostingRegressor(n_estimators=6, max_depth=3)
    return model, pd.DataFrame({"city": city, "size": size}), np.round(y, 3)


def tree() -> Fit:
    """One classification tree by entropy."""
    X, y = numbers(8)
    model = arboost.DecisionTreeClassifier(max_depth=4, criterion="entropy", random_state=0)
    return model, X, y > 1


def forest_classes() -> Fit:
    """Mean class probabilities of three classes."""
    X, y = numbers(9, n=120)
    model = arboost.RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0)
    return model, X, np.digitize(y, [0.0, 3.0])


def forest_deep() -> Fit:
    """Full trees of two classes."""
    X, y = numbers(10, n=150)
    model = arboost.RandomForestClassifier(n_estimators=4, random_state=0)
    return model, X, y > 1


def extra_trees() -> Fit:
    """Means of trees with random cuts."""
    X, y = numbers(11, n=100)
    model = arboost.ExtraTreesRegressor(n_estimators=4, max_depth=5, random_state=0)
    return model, X, y


def forest_targets() -> Fit:
    """Regression of two targets."""
    X, y = numbers(12, n=100)
    model = arboost.RandomForestRegressor(n_estimators=4, max_depth=4, random_state=0)
    return model, X, np.column_stack([y, np.round(y**2, 2)])


def forest_label_targets() -> Fit:
    """Classification of two targets, with two and three labels."""
    X, y = numbers(13, n=100)
    model = arboost.ExtraTreesClassifier(n_estimators=4, max_depth=4, random_state=0)
    return model, X, np.column_stack([(y > 1).astype(int), np.digitize(y, [0.0, 3.0]) + 5])


def forest_quantiles() -> Fit:
    """Leaf distributions of y."""
    X, y = numbers(14, n=100)
    model = arboost.RandomForestRegressor(
        n_estimators=4, min_samples_leaf=5, quantiles=True, random_state=0
    )
    return model, X, y


def adaboost_real() -> Fit:
    """Trees whose leaf values are log-odds."""
    X, y = numbers(15)
    model = arboost.AdaBoostClassifier(n_estimators=6, algorithm="real", random_state=0)
    return model, X, np.digitize(y, [0.0, 3.0])


def adaboost_votes() -> Fit:
    """Trees that vote."""
    X, y = numbers(16)
    model = arboost.AdaBoostClassifier(n_estimators=6, algorithm="discrete", random_state=0)
    return model, X, np.where(y > 1, "yes", "no")


def adaboost_median() -> Fit:
    """A weighted median of trees."""
    X, y = numbers(17, n=100)
    model = arboost.AdaBoostRegressor(n_estimators=5, random_state=0)
    return model, X, y


MODELS: tuple[Callable[[], Fit], ...] = (
    booster,
    booster_two_classes,
    booster_classes,
    booster_vector_leaves,
    booster_poisson,
    booster_offset,
    booster_quantiles,
    booster_categories,
    booster_groups,
    tree,
    forest_classes,
    forest_deep,
    extra_trees,
    forest_targets,
    forest_label_targets,
    forest_quantiles,
    adaboost_real,
    adaboost_votes,
    adaboost_median,
)


def expected(model: arboost.Predictor, X: Any) -> dict[str, Any]:
    """Return rows and their predictions."""
    frame = isinstance(X, pd.DataFrame)
    some = X[:20]
    kept: dict[str, Any] = {"rows": rows_of(some)}
    if frame:
        kept["names"] = list(some.columns)
        kept["times"] = [name for name in some if some[name].dtype.kind == "M"]
    kept["raw"] = model.predict_raw(some).tolist()
    kept["answers"] = model.predict(some).tolist()
    if model.distributions is not None:
        kept["quantiles"] = QUANTILES
        kept["of quantiles"] = model.predict_quantiles(some, QUANTILES).tolist()
    return kept


def rows_of(some: Any) -> list[list[Any]]:
    """Return rows for JSON: missing values as null, infinities unchanged, times as text."""
    if isinstance(some, pd.DataFrame):
        times = some.select_dtypes("datetime").columns
        some = some.assign(**{name: some[name].astype(str) for name in times})
        return [[None if pd.isna(one) else one for one in row] for row in some.values.tolist()]
    return [[None if np.isnan(one) else one for one in row] for row in some.tolist()]


def main() -> None:
    """Write the files that do not exist yet."""
    default = Path(__file__).resolve().parent.parent / "tests" / "models"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    for make in MODELS:
        estimator, X, y, *options = make()
        model = estimator.fit(X, y, **(options[0] if options else {})).model_
        version = format_version(model.schema)
        path = folder / f"{arboost.__version__}-v{version}-{make.__name__}.arb"
        if path.exists():
            print(f"{path.name}: exists")
            continue
        model.save(path)
        path.with_suffix(".json").write_text(json.dumps(expected(model, X), indent=None) + "\n")
        print(f"{path.name}: {path.stat().st_size} bytes, {model}")


if __name__ == "__main__":
    main()
