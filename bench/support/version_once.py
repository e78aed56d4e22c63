"""One version of arboost in a process of its own: runs the work named on each line of its input.

Started by bench_versions.py with the sources of the version on the module path.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from support.data import higgs_like

THREADS = 2


@cache
def table(rows: int, features: int = 28) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels."""
    return higgs_like(rows, features)


def booster(rows: int, rounds: int | str = 30, **params: Any) -> Callable[[], Any]:
    """Return a fit of gradient boosting."""
    from arboost import GradientBoostingClassifier

    X, y = table(rows, 10 if rows < 10_000 else 28)
    model = GradientBoostingClassifier(
        n_estimators=rounds, learning_rate=0.1, n_jobs=THREADS, verbose=0, **params
    )
    return lambda: model.fit(X, y)


def estimator(name: str, rows: int, **params: Any) -> Callable[[], Any]:
    """Return a fit of another estimator."""
    import arboost

    X, y = table(rows)
    target = X[:, 0] + y if name.endswith("Regressor") else y
    model = getattr(arboost, name)(n_jobs=THREADS, verbose=0, **params)
    return lambda: model.fit(X, target)


@cache
def fitted() -> Any:
    """Return a model of 500 trees of depth 6."""
    return booster(20_000, 500, max_depth=6)().model_


def prediction(rows: int, repeats: int) -> Callable[[], Any]:
    """Return repeated predictions of the same rows."""
    model = fitted()
    X = np.ascontiguousarray(table(100_000)[0][:rows])
    return lambda: [model.predict_proba(X, n_jobs=THREADS) for _ in range(repeats)]


def repeated(work: Callable[[], Any], times: int) -> Callable[[], Any]:
    """Return some work done several times."""
    return lambda: [work() for _ in range(times)]


WORK: dict[str, Callable[[], Callable[[], Any]]] = {
    "boosting, 1M x 28, 255 leaves": lambda: booster(
        1_000_000, max_leaves=255, max_depth=None, grow_policy="leafwise"
    ),
    "boosting, 1M x 28, depth 8": lambda: booster(1_000_000, max_depth=8),
    "boosting, 20k x 28, rounds found on held-out rows": lambda: booster(20_000, "auto"),
    "boosting, 1,000 x 10, 100 rounds, 20 fits": lambda: repeated(booster(1_000, 100), 20),
    "boosting, 150 x 10, 100 rounds, 50 fits": lambda: repeated(booster(150, 100), 50),
    "AdaBoost, 100k x 28, 200 stumps": lambda: estimator(
        "AdaBoostClassifier", 100_000, n_estimators=200
    ),
    "AdaBoost, 100k x 28, 100 trees of depth 3": lambda: estimator(
        "AdaBoostClassifier", 100_000, n_estimators=100, max_depth=3
    ),
    "AdaBoost.R2, 50k x 28, 100 trees of depth 3": lambda: estimator(
        "AdaBoostRegressor", 50_000, n_estimators=100
    ),
    "random forest, 100k x 28, 50 trees": lambda: estimator(
        "RandomForestClassifier", 100_000, n_estimators=50
    ),
    "random forest, 40k x 28, 50 trees, out of bag": lambda: estimator(
        "RandomForestClassifier", 40_000, n_estimators=50, oob_score=True
    ),
    "random forest by entropy, 40k x 28, 20 trees, max_features=0.8": lambda: estimator(
        "RandomForestClassifier",
        40_000,
        n_estimators=20,
        criterion="entropy",
        max_features=0.8,
    ),
    "random forest regression, 40k x 28, 20 trees": lambda: estimator(
        "RandomForestRegressor", 40_000, n_estimators=20
    ),
    "extra trees, 100k x 28, 50 trees": lambda: estimator(
        "ExtraTreesClassifier", 100_000, n_estimators=50
    ),
    "prediction, 100k rows, 500 trees, 10 calls": lambda: prediction(100_000, 10),
    "prediction, one row, 20,000 calls": lambda: prediction(1, 20_000),
}


def use_sources() -> None:
    """Import arboost from the module path, also where an editable install would come first."""
    sys.meta_path[:] = [one for one in sys.meta_path if "Redirecting" not in type(one).__name__]
    import arboost

    wanted = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0])
    if not Path(arboost.__file__).is_relative_to(wanted):
        raise SystemExit(f"arboost was imported from {arboost.__file__}, not from {wanted}")


def main() -> None:
    """Time the work of each line; the first run of each is not timed."""
    use_sources()
    made: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            made.clear()
            made[name] = WORK[name]()
            made[name]()
        started = time.perf_counter()
        made[name]()
        print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()
