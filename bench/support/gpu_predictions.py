"""Predictions and SHAP values on a CUDA device: equality with those of the CPU, and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

FEATURES = 28
# Seconds that were asked for on an H200: 500 trees of depth 6, a float32 table in device memory.
PREDICT_BAR, SHAP_BAR = 0.09, 0.10
SHAP_ROWS = 20_000


def predictions(rows: int, rounds: int, repeats: int) -> dict[str, Any]:
    """Return seconds of predictions and SHAP values on the device, and the results that differ."""
    different = compare(5_000)
    X = np.random.default_rng(0).standard_normal((rows, FEATURES), dtype=np.float32)
    model = _booster(X[:200_000], rounds)
    some = X[:SHAP_ROWS]
    times = _time(model, X, repeats, some)
    for name, seconds in times.items():
        print(f"{name}: {seconds:7.4f} s", flush=True)
    same = np.array_equal(model.predict_raw(some), model.to("cuda").predict_raw(some))
    print(f"{len(different)} results differ: {different}; large model the same: {same}")
    return {"rows": rows, "seconds": times, "different": different + ["large"] * (not same)}


def _time(model: Any, X: Any, repeats: int, some: Any) -> dict[str, float]:
    from arboost.data.cuda import CudaArray

    there = model.to("cuda")
    on_device, few = CudaArray.of(X), CudaArray.of(some)
    works: dict[str, Callable[[], Any]] = {
        f"predict {len(X):,} rows on the device (asked for: {PREDICT_BAR} s)": (
            lambda: there.predict(on_device)
        ),
        f"predict_proba {len(X):,} rows on the device": lambda: there.predict_proba(on_device),
        f"predict {len(X):,} rows of the host": lambda: there.predict(X),
        f"leaves of {SHAP_ROWS:,} rows on the device": lambda: there.apply(few),
        f"SHAP values of {SHAP_ROWS:,} rows on the device (asked for: {SHAP_BAR} s)": (
            lambda: there.shap_values(few)
        ),
    }
    times = {}
    for name, work in works.items():
        found = []
        for _ in range(repeats + 1):
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
        times[name] = min(found[1:])
        if "SHAP" in name:
            times[name + ", first call"] = found[0]
    return times


def _booster(X: Any, rounds: int) -> Any:
    from arboost import GradientBoostingClassifier

    noise = np.random.default_rng(1).standard_normal(len(X))
    y = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]) / 2 + noise > 0
    booster = GradientBoostingClassifier(n_estimators=rounds, max_depth=6, device="cuda", verbose=0)
    return booster.fit(X, y.astype(int)).model_


def compare(rows: int) -> list[str]:
    """Return the results of models of many kinds that are not the same bytes on both devices."""
    from arboost.data.cuda import CudaArray

    rng = np.random.default_rng(0)
    X = rng.integers(-500, 500, (rows, 8)) / 4
    X[:, 1], X[:, 2] = rng.integers(0, 4, rows), rng.integers(0, 150, rows)
    X[rng.random(X.shape) < 0.03] = np.nan
    y = 1 + (np.nan_to_num(X[:, 0]) > 10) * 3 + np.nan_to_num(X[:, 2]) % 7
    different = []
    for name, model in _models(X, y).items():
        there, on_device = model.to("cuda"), CudaArray.of(X)
        methods = ["predict", "predict_raw", "apply"]
        methods += ["predict_proba"] * (model.kind == "classifier")
        methods += ["shap_values"] * (model.combine != "median")
        for method in methods:
            few = X[:500] if method == "shap_values" else X
            on_device = CudaArray.of(few)
            expected = getattr(model, method)(few)
            found = (getattr(there, method)(few), np.asarray(getattr(there, method)(on_device)))
            if any(expected.tobytes() != one.tobytes() for one in found):
                different.append(f"{name}: {method}")
    return different


def _models(X: Any, y: Any) -> dict[str, Any]:
    import arboost

    classes = y.astype(int) % 5
    few = {"n_estimators": 10, "verbose": 0}
    boosters = {
        "depth 6": {"max_depth": 6},
        "leaves": {"max_depth": None, "max_leaves": 100, "grow_policy": "leafwise"},
        "exact": {"tree_method": "exact"},
        "level sets": {"categorical_features": [1]},
        "groups": {"categorical_features": [1, 2], "category_encoding": "groups"},
        "means": {"categorical_features": [2], "category_encoding": "mean"},
        "poisson": {"loss": "poisson"},
        "quantiles": {"loss": "quantile", "alpha": [0.4, 0.6]},
    }
    models: dict[str, Any] = {
        name: arboost.GradientBoostingRegressor(**few, **params).fit(X, y)
        for name, params in boosters.items()
    }
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        booster = arboost.GradientBoostingClassifier(multi_strategy=strategy, **few)
        models[strategy] = booster.fit(X, classes)
    models |= {
        "forest": arboost.RandomForestRegressor(10).fit(X, y),
        "forest of classes": arboost.ExtraTreesClassifier(10).fit(X, classes),
        "AdaBoost": arboost.AdaBoostClassifier(n_estimators=10).fit(X, classes),
        "median": arboost.AdaBoostRegressor(n_estimators=10).fit(X, y),
        "tree": arboost.DecisionTreeRegressor().fit(X, y),
    }
    return {name: model.model_ for name, model in models.items()}
