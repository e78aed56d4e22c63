"""Fits with varied settings, whose models must be the same on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fits"]

Floats = NDArray[np.float64]
Fit = Callable[[str], Any]  # name of a device -> fitted estimator

_SIX = {"n_estimators": 6}
_DEEP = {"max_depth": None, "min_child_weight": 0.0, "reg_lambda": 0.0, "n_estimators": 2}
_LEAVES = {"max_depth": None, "grow_policy": "leafwise"}
_REGRESSORS: dict[str, dict[str, Any]] = {
    "depth 6": _SIX,
    "depth 8": {"max_depth": 8} | _SIX,
    "stumps": {"max_depth": 1} | _SIX,
    "255 leaves": {"max_leaves": 255} | _LEAVES | _SIX,
    "9 leaves": {"max_leaves": 9} | _LEAVES | _SIX,
    "31 leaves by level": {"max_leaves": 31} | _SIX,
    "full depth": _DEEP,
    "full depth, leaf size": _DEEP | {"min_samples_leaf": 5},
    "leaf size 20": {"min_samples_leaf": 20, "max_depth": 8} | _SIX,
    "child weight": {"min_child_weight": 50.0} | _SIX,
    "two-byte bins": {"max_bins": 1000} | _SIX,
    "15 bins": {"max_bins": 15} | _SIX,
    "L1": {"reg_alpha": 2.0} | _SIX,
    "no L2": {"reg_lambda": 0.0} | _SIX,
    "gamma": {"gamma": 3.0} | _SIX,
    "step limit": {"max_delta_step": 0.3} | _SIX,
    "all penalties": {"reg_alpha": 1.0, "gamma": 0.5, "max_delta_step": 0.5} | _SIX,
    "monotone": {"monotone_constraints": {0: 1, 4: -1}} | _SIX,
    "monotone, 63 leaves": {"monotone_constraints": {0: 1, 4: -1}, "max_leaves": 63}
    | _LEAVES
    | _SIX,
    "interactions": {"interaction_constraints": [[0, 1, 2], list(range(3, 12))]} | _SIX,
    "rows": {"subsample": 0.5} | _SIX,
    "GOSS": {"sampling_method": "goss", "learning_rate": 0.5} | _SIX,
    "gradient-based sample": {"sampling_method": "gradient_based", "subsample": 0.3} | _SIX,
    "columns of trees": {"colsample_bytree": 0.6} | _SIX,
    "columns of levels": {"colsample_bylevel": 0.6} | _SIX,
    "columns of nodes": {"colsample_bynode": 0.5} | _SIX,
    "DART": {"rate_drop": 0.5} | _SIX,
    "Friedman": {"boosting": "gradient"} | _SIX,
    "several trees a round": {"num_parallel_tree": 2, "subsample": 0.6} | _SIX,
    "poisson": {"loss": "poisson"} | _SIX,
    "gamma loss": {"loss": "gamma"} | _SIX,
    "tweedie": {"loss": "tweedie"} | _SIX,
    "huber": {"loss": "huber"} | _SIX,
    "absolute error": {"loss": "absolute_error"} | _SIX,
    "quantile": {"loss": "quantile", "alpha": 0.3} | _SIX,
    "two quantiles": {"loss": "quantile", "alpha": [0.1, 0.9]} | _SIX,
    "categories": {"categorical_features": [1, 2]} | _SIX,
    "early stopping": {"n_estimators": 40, "n_iter_no_change": 3},
    "automatic": {"preset": "fast"},
}
_FOREST = {"n_estimators": 6}
_FORESTS: dict[str, dict[str, Any]] = {
    "": {},
    "depth 8": {"max_depth": 8},
    "leaf size": {"min_samples_leaf": 5},
    "all features": {"max_features": None, "bootstrap": False, "n_estimators": 1},
    "out of bag": {"oob_score": True, "max_depth": 12, "n_estimators": 20},
    "pruned": {"ccp_alpha": 0.001},
    "impurity decrease": {"min_impurity_decrease": 1e-4},
    "60 leaves": {"max_leaf_nodes": 60},
    "categories": {"categorical_features": [1, 2], "max_depth": 8, "n_estimators": 2},
    "two-byte bins": {"max_bins": 1000, "max_depth": 8, "n_estimators": 2},
}
_CLASSIFIERS: dict[str, dict[str, Any]] = {
    "gini": {},
    "entropy": {"criterion": "entropy"},
    "entropy, leaf size": {"criterion": "entropy", "min_samples_leaf": 5},
    "balanced": {"class_weight": "balanced_subsample"},
}


def fits(rows: int, n_jobs: int) -> dict[str, Fit]:
    """Return the fits by name; each takes the name of a device."""
    return _boosters(rows, n_jobs) | _trees(rows, n_jobs)


def _trees(rows: int, n_jobs: int) -> dict[str, Fit]:
    """Return the fits of forests, decision trees and AdaBoost."""
    import arboost

    X = _numbers(rows)
    y = _target(X)
    classes = np.floor(y).astype(int)
    flags = _flags(rows // 4)
    some = {"n_jobs": n_jobs, "verbose": 0}

    def fit(make: Any, target: Any, table: Any = X, **params: Any) -> Fit:
        return lambda device: make(**(some | params), device=device).fit(table, target)

    found = {}
    for name, params in _FORESTS.items():
        given = _FOREST | params
        found[f"forest {name}"] = fit(arboost.RandomForestRegressor, y, **given)
        given = given | {"bootstrap": given.get("bootstrap", True)}
        found[f"extra trees {name}"] = fit(arboost.ExtraTreesRegressor, y, **given)
    for name, params in _CLASSIFIERS.items():
        for n_classes in (2, 5):
            label, given = f"{name}, {n_classes} classes", _FOREST | params
            labels = classes % n_classes
            found[f"forest {label}"] = fit(arboost.RandomForestClassifier, labels, **given)
            found[f"extra trees {label}"] = fit(arboost.ExtraTreesClassifier, labels, **given)
    forest = arboost.RandomForestRegressor
    found["forest of two targets"] = fit(forest, np.c_[y, X[:, 3]], **_FOREST)
    found["forest of counts"] = fit(forest, np.floor(y), criterion="poisson", **_FOREST)
    found["forest, shared columns"] = fit(forest, _target(flags), flags, **_FOREST)
    found["forest, sparse"] = fit(forest, _target(flags), _sparse(flags), max_depth=8, **_FOREST)
    found["decision tree"] = fit(arboost.DecisionTreeRegressor, y)
    found["AdaBoost"] = fit(arboost.AdaBoostClassifier, classes % 3, max_depth=3, n_estimators=6)
    found["AdaBoost.R2"] = fit(arboost.AdaBoostRegressor, y, n_estimators=6)
    return found


def _boosters(rows: int, n_jobs: int) -> dict[str, Fit]:
    """Return the fits of boosters."""
    import arboost

    X = _numbers(rows)
    y = _target(X)
    classes = np.floor(y).astype(int)
    some = {"n_jobs": n_jobs, "verbose": 0}

    def regressor(params: dict[str, Any], **rest: Any) -> Fit:
        return lambda device: arboost.GradientBoostingRegressor(
            **(some | params), device=device
        ).fit(X, y, **rest)

    def classifier(table: Any, labels: Any, **params: Any) -> Fit:
        return lambda device: arboost.GradientBoostingClassifier(
            **(some | _SIX | params), device=device
        ).fit(table, labels)

    found = {name: regressor(params) for name, params in _REGRESSORS.items()}
    weight = np.random.default_rng(4).integers(0, 9, rows) / 4 + (np.arange(rows) == 0)
    found["weights"] = regressor(_SIX, sample_weight=weight)
    found["two classes"] = classifier(X, classes % 2)
    found["five classes"] = classifier(X, classes % 5)
    found["vector leaves"] = classifier(X, classes % 5, multi_strategy="multi_output_tree")
    flags = _flags(rows // 4)
    labels = np.floor(_target(flags)).astype(int) % 3
    found["shared columns"] = classifier(flags, labels)
    found["no shared columns"] = classifier(flags, labels, bundling=False)
    found["sparse"] = classifier(_sparse(flags), labels)
    few = slice(0, 300)
    found["300 rows"] = classifier(X[few], classes[few] % 2)
    return found


def _numbers(rows: int) -> Floats:
    """Return columns of many and of few values, with missing ones."""
    rng = np.random.default_rng(1)
    X = rng.integers(-5000, 5000, (rows, 12)) / 8
    X[:, 1] = rng.integers(0, 4, rows)
    X[:, 2] = rng.integers(0, 40, rows)
    X[rng.random(X.shape) < 0.02] = np.nan
    X[:, 3:6] = np.nan_to_num(X[:, 3:6])
    return X


def _flags(rows: int) -> Floats:
    """Return one-hot and rare columns, which share stored columns."""
    rng = np.random.default_rng(2)
    one_hot = rng.integers(0, 25, rows)[:, None] == np.arange(25)
    rare = np.where(rng.random((rows, 12)) < 0.02, rng.integers(1, 6, (rows, 12)), 0)
    return np.hstack([one_hot, rare, rng.integers(0, 300, (rows, 2))]).astype(float)


def _sparse(table: Floats) -> Any:
    from scipy.sparse import csr_array

    return csr_array(table[:, 10:37])


def _target(X: Floats) -> Floats:
    """Return positive numbers, multiples of 1/64: the same on every machine."""
    rng = np.random.default_rng(3)
    known = np.nan_to_num(X)
    step = (known[:, 0] > known[:, -1]) * 3 + (known[:, 1] % 2) * (known[:, 2] > 10)
    return np.asarray(1 + step + rng.integers(0, 128, len(X)) / 64)
