"""What share of held-out rows do intervals of 90 % cover, of boosters and of forests?

Three tables, each split at random five times: the quantiles 0.05 and 0.95 of one booster, with a
number of rounds of its own choice, and of one forest. Not part of `make bench`; about a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import train_test_split

from arboost import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from support import harness

ENDS = [0.05, 0.95]
SPLITS = 5


def spread(rows: int) -> tuple[Any, Any]:
    """A target whose noise grows with the first column."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 10.0, size=(rows, 5))
    return X, np.sin(X[:, 0]) + X[:, 1] / 5 + rng.normal(size=rows) * (0.1 + 0.06 * X[:, 0])


TABLES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "diabetes, 442 x 10": lambda: load_diabetes(return_X_y=True),
    "Friedman 1, 2,000 x 10": lambda: make_friedman1(2000, noise=1.0, random_state=0),
    "growing noise, 4,000 x 5": lambda: spread(4000),
}


def boosted(X: Any, y: Any, X_test: Any) -> Any:
    """Both ends of the interval of a booster."""
    model = GradientBoostingRegressor(loss="quantile", alpha=ENDS, verbose=False)
    return model.fit(X, y).predict(X_test)


def of_forest(kind: Any) -> Callable[[Any, Any, Any], Any]:
    """A function for both ends of the interval of a forest."""

    def quantiles(X: Any, y: Any, X_test: Any) -> Any:
        model = kind(200, quantiles=True, min_samples_leaf=5, random_state=0, verbose=False)
        return model.fit(X, y).predict_quantiles(X_test, ENDS)

    return quantiles


CONTESTANTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "booster": boosted,
    "random forest": of_forest(RandomForestRegressor),
    "extra trees": of_forest(ExtraTreesRegressor),
}


def coverages(X: Any, y: Any, predict: Callable[[Any, Any, Any], Any]) -> Iterator[Any]:
    """Yield coverage and mean width of the interval for each split."""
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        low, high = predict(X_train, y_train, X_test).T
        yield np.mean((low <= y_test) & (y_test <= high)), np.mean(high - low)


def main() -> None:
    """Measure all contestants on all tables, print and save the figures."""
    args = harness.parse(harness.parser(__doc__, "intervals"))
    figures: dict[str, Any] = {}
    for table, make in TABLES.items():
        X, y = make()
        figures[table] = {}
        for name, predict in CONTESTANTS.items():
            covered, width = np.mean(list(coverages(X, y, predict)), axis=0)
            figures[table][name] = {"coverage": float(covered), "width": float(width)}
        rows = [(name, one["coverage"], one["width"]) for name, one in figures[table].items()]
        harness.show(table, ("quantiles of a", "coverage", "mean width"), rows)
    harness.save(args, figures)


if __name__ == "__main__":
    main()
