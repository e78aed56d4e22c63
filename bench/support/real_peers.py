"""One adapter per library for `bench_real.py`: real tables, categories in the native form.

    tables(problem) -> X, X_test     in the library's input form; not timed
    estimator(task, setting, seed, threads) -> its scikit-learn estimator, not fitted

Two settings. "default": only threads, seed and categorical columns are set. "tuned": learning rate
0.05, 500 rounds, depth 6 (63 leaves for libraries that grow best-first), L2 penalty 1, and a
subsample of 0.8 of the rows and of the columns. The class of a library names the settings that the
library lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from support.real_data import Problem

SETTINGS = ("default", "tuned")
RATE, ROUNDS, DEPTH, LEAVES, L2, SHARE = 0.05, 500, 6, 63, 1.0, 0.8
DENSE_LIMIT = 2**30  # bytes of a dense float32 copy, for libraries without sparse input
UNKNOWN = "(missing)"  # the level of missing values for CatBoost, which allows none


class RealPeer(Protocol):
    """Adapter of one library."""

    package: str
    distributions: tuple[str, ...]
    rounds: str  # name of the parameter

    def tables(self, problem: Problem) -> tuple[Any, Any]: ...
    def estimator(self, task: str, setting: str, seed: int, threads: int) -> Any: ...


def text_columns(table: Any) -> list[str]:
    """Names of the non-numeric columns: the categories."""
    from pandas.api.types import is_numeric_dtype

    return [name for name in table.columns if not is_numeric_dtype(table[name].dtype)]


def as_categories(problem: Problem) -> tuple[Any, Any]:
    """Both tables with pandas categories of equal codes; levels only in test rows are missing."""
    import pandas as pd

    X, X_test = problem.X.copy(), problem.X_test.copy()
    for name in text_columns(X):
        levels = sorted(X[name].dropna().unique())
        kind = pd.CategoricalDtype(pd.Index(levels, dtype=object))
        for table in (X, X_test):
            table[name] = table[name].astype(object).astype(kind)
    return X, X_test


class Arboost:
    """arboost; takes the table unchanged."""

    package = "arboost"
    distributions = ("arboost",)
    rounds = "n_estimators"

    def __init__(self, extra: Mapping[str, Any] | None = None) -> None:
        self.extra = dict(extra or {})

    def tables(self, problem: Problem) -> tuple[Any, Any]:
        return problem.X, problem.X_test

    def estimator(self, task: str, setting: str, seed: int, threads: int) -> Any:
        import arboost

        params: dict[str, Any] = {"n_jobs": threads, "random_state": seed}
        if setting == "tuned":
            params |= {
                "learning_rate": RATE,
                "n_estimators": ROUNDS,
                "max_depth": DEPTH,
                "reg_lambda": L2,
                "subsample": SHARE,
                "colsample_bytree": SHARE,
            }
        if task == "regression":
            return arboost.GradientBoostingRegressor(**params | self.extra)
        return arboost.GradientBoostingClassifier(**params | self.extra)


class LightGBM:
    """LightGBM; categories by pandas' dtype."""

    package = "lightgbm"
    distributions = ("lightgbm",)
    rounds = "n_estimators"

    def tables(self, problem: Problem) -> tuple[Any, Any]:
        return (problem.X, problem.X_test) if problem.sparse else as_categories(problem)

    def estimator(self, task: str, setting: str, seed: int, threads: int) -> Any:
        import lightgbm

        params: dict[str, Any] = {"n_jobs": threads, "random_state": seed, "verbosity": -1}
        if setting == "tuned":
            params |= {
                "learning_rate": RATE,
                "n_estimators": ROUNDS,
                "num_leaves": LEAVES,
                "reg_lambda": L2,
                "subsample": SHARE,
                "subsample_freq": 1,  # without it `subsample` does nothing
                "colsample_bytree": SHARE,
            }
        kind = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
        return kind(**params)


class XGBoost:
    """XGBoost; categories by pandas' dtype. Entries not stored in a sparse matrix are missing."""

    package = "xgboost"
    distributions = ("xgboost-cpu", "xgboost")
    rounds = "n_estimators"

    def tables(self, problem: Problem) -> tuple[Any, Any]:
        return (problem.X, problem.X_test) if problem.sparse else as_categories(problem)

    def estimator(self, task: str, setting: str, seed: int, threads: int) -> Any:
        import xgboost

        params: dict[str, Any] = {
            "n_jobs": threads,
            "random_state": seed,
            "verbosity": 0,
            "enable_categorical": True,
        }
        if setting == "tuned":
            params |= {
                "learning_rate": RATE,
                "n_estimators": ROUNDS,
                "max_depth": DEPTH,
                "reg_lambda": L2,
                "subsample": SHARE,
                "colsample_bytree": SHARE,
            }
        kind = xgboost.XGBRegressor if task == "regression" else xgboost.XGBClassifier
        return kind(**params)


class CatBoost:
    """CatBoost; categories as strings in `cat_features`, missing ones a level of their own.

    It draws the columns anew for each level of a tree.
    """

    package = "catboost"
    distributions = ("catboost",)
    rounds = "iterations"

    def __init__(self) -> None:
        self.categories: list[str] = []

    def tables(self, problem: Problem) -> tuple[Any, Any]:
        if problem.sparse:
            return problem.X, problem.X_test
        self.categories = text_columns(problem.X)
        tables = problem.X.copy(), problem.X_test.copy()
        for table in tables:
            for name in self.categories:
                table[name] = table[name].astype(object).fillna(UNKNOWN)
        return tables

    def estimator(self, task: str, setting: str, seed: int, threads: int) -> Any:
        import catboost

        params: dict[str, Any] = {
            "thread_count": threads,
            "random_seed": seed,
            "cat_features": self.categories or None,
            "logging_level": "Silent",
            "allow_writing_files": False,
        }
        if setting == "tuned":
            params |= {
                "learning_rate": RATE,
                "iterations": ROUNDS,
                "depth": DEPTH,
                "l2_leaf_reg": L2,
                "bootstrap_type": "Bernoulli",
                "subsample": SHARE,
                "rsm": SHARE,
            }
        regress = task == "regression"
        kind = catboost.CatBoostRegressor if regress else catboost.CatBoostClassifier
        return kind(**params)


class HistGradientBoosting:
    """scikit-learn's booster; categories by pandas' dtype, threads from OMP_NUM_THREADS.

    A category of more than 255 levels is passed as ordinal codes and a sparse matrix as a dense
    one, because the booster accepts neither. It has no row subsampling, and samples columns for
    each node. By default it stops early above 10,000 rows.
    """

    package = "sklearn"
    distributions = ("scikit-learn",)
    rounds = "max_iter"
    most_levels = 255

    def tables(self, problem: Problem) -> tuple[Any, Any]:
        if problem.sparse:
            size = 4 * (problem.X.shape[0] + problem.X_test.shape[0]) * problem.X.shape[1]
            if size > DENSE_LIMIT:
                raise MemoryError(f"no sparse input, and a dense table has {size >> 20} MiB")
            return problem.X.toarray(), problem.X_test.toarray()
        X, X_test = as_categories(problem)
        for name in text_columns(X):
            if len(X[name].cat.categories) > self.most_levels:
                for table in (X, X_test):
                    codes = table[name].cat.codes.to_numpy(dtype=np.float64)
                    table[name] = np.where(codes < 0, np.nan, codes)
        return X, X_test

    def estimator(self, task: str, setting: str, seed: int, threads: int) -> Any:
        from sklearn import ensemble

        params: dict[str, Any] = {"random_state": seed, "categorical_features": "from_dtype"}
        if setting == "tuned":
            params |= {
                "learning_rate": RATE,
                "max_iter": ROUNDS,
                "max_leaf_nodes": LEAVES,
                "l2_regularization": L2,
                "max_features": SHARE,
                "early_stopping": False,
            }
        if task == "regression":
            return ensemble.HistGradientBoostingRegressor(**params)
        return ensemble.HistGradientBoostingClassifier(**params)


REAL_PEERS: dict[str, type] = {
    "arboost": Arboost,
    "lightgbm": LightGBM,
    "xgboost": XGBoost,
    "catboost": CatBoost,
    "scikit-learn-hgb": HistGradientBoosting,
}
