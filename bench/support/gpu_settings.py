"""Times of common settings on a device, against a plain booster; K classes; the first tree."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np

SETTINGS: dict[str, dict[str, Any]] = {
    "subsample 0.8": {"subsample": 0.8},
    "GOSS": {"sampling_method": "goss"},
    "gradient-based sampling": {"sampling_method": "gradient_based", "subsample": 0.3},
    "colsample_bynode 0.7": {"colsample_bynode": 0.7},
    "min_samples_leaf 20": {"min_samples_leaf": 20},
    "monotone constraint": {"monotone_constraints": {0: 1}},
    "held-out rows": {"n_iter_no_change": 1000, "validation_fraction": 0.2},
    "Friedman": {"boosting": "gradient"},
    "DART": {"rate_drop": 0.1},
}
LOSSES = ("squared_error", "absolute_error", "huber", "poisson")

_FIRST_TREE = """
import time
start = time.perf_counter()
import numpy as np
from arboost import GradientBoostingRegressor
X = np.arange(5000.0).reshape(1000, 5)
GradientBoostingRegressor(n_estimators=1, device="cuda", verbose=0).fit(X, X[:, 0])
print(time.perf_counter() - start)
"""


def time_settings(X: Any, rounds: int = 100) -> dict[str, float]:
    """Return the seconds of fits of depth 8, and print them as multiples of a plain one."""
    from arboost import Dataset, GradientBoostingClassifier, GradientBoostingRegressor

    rng = np.random.default_rng(1)
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(len(X), dtype=np.float32)
    y, target = (score > 0).astype(int), np.exp(score / 4).astype(np.float64)
    table = Dataset(X)
    with_levels = X.copy()
    with_levels[:, 5], with_levels[:, 6] = rng.integers(0, 20, len(X)), rng.integers(0, 90, len(X))
    levels = Dataset(with_levels, categorical_features=[5, 6])
    shared = {"n_estimators": rounds, "max_depth": 8, "device": "cuda", "verbose": 0}

    def seconds(make: Any, table: Any, y: Any) -> float:
        found = []
        for _ in range(3):
            start = time.perf_counter()
            make().fit(table, y)
            found.append(time.perf_counter() - start)
        return min(found)

    times = {"plain": seconds(lambda: GradientBoostingClassifier(**shared), table, y)}
    for name, params in SETTINGS.items():
        times[name] = seconds(lambda p=params: GradientBoostingClassifier(**shared, **p), table, y)
    times["two categories"] = seconds(lambda: GradientBoostingClassifier(**shared), levels, y)
    for loss in LOSSES:
        times[loss] = seconds(
            lambda name=loss: GradientBoostingRegressor(**shared, loss=name), table, target
        )
    plain = times["plain"]
    print(f"{len(X):,} rows, {rounds} rounds of depth 8: {plain:.3f} s; other settings, of that:")
    print("  " + ", ".join(f"{name} {t / plain:.2f}" for name, t in times.items()), flush=True)
    return times


def time_classes(X: Any, n_classes: int = 7, rounds: int = 50) -> float:
    """Return the seconds of a fit with a tree a class, of depth 6."""
    from arboost import Dataset, GradientBoostingClassifier

    edges = np.quantile(X[:100_000, 0], np.arange(1, n_classes) / n_classes)
    noise = np.random.default_rng(1).standard_normal(len(X), dtype=np.float32) / 2
    y, table, found = np.digitize(X[:, 0] + noise, edges), Dataset(X), []
    for _ in range(2):
        model = GradientBoostingClassifier(
            n_estimators=rounds, max_depth=6, device="cuda", verbose=0
        )
        start = time.perf_counter()
        model.fit(table, y)
        found.append(time.perf_counter() - start)
    print(f"{len(X):,} rows, {n_classes} classes, {rounds} rounds of depth 6: {min(found):.3f} s")
    return min(found)


def time_first_tree() -> float:
    """Return the seconds from the start of Python to the first tree, with compiled kernels."""
    command = [sys.executable, "-c", _FIRST_TREE]
    found = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in "123"]
    print(f"import to first tree: {min(found):.2f} s", flush=True)
    return min(found)
