"""One ranking fit in a fresh process: fit, and print the figures as JSON.

Called by bench_ranking.py with one JSON argument. NDCG is that of `arboost.rank_metrics` for every
library, on held-out queries.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from arboost import rank_metrics

SMALLEST_HESSIAN = 1e-3  # of a leaf, the only limit of its size
Fit = Callable[[Any, np.ndarray, np.ndarray, dict[str, Any]], tuple[Callable[..., Any], float]]


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    job = json.loads(sys.argv[1])
    X, y, query, X_test, y_test, query_test = tables(job)
    small = np.isin(query, np.unique(query)[:5])
    FITS[job["library"]](X[small], y[small], query[small], job | {"rounds": 1})  # starts threads
    predict, seconds = FITS[job["library"]](X, y, query, job)
    names = ["ndcg@5", "ndcg@10", "map@10"]
    metrics = rank_metrics(y_test, np.asarray(predict(X_test), float), query_test, names)
    print(json.dumps({"seconds": seconds, **metrics}))


def tables(job: dict[str, Any]) -> tuple[Any, ...]:
    """Training and test rows, sorted by query: a made table, or a file of a ranking table."""
    if job["file"] is None:
        return made(job["rows"], job["features"], job["queries"], job["seed"])
    from scipy.sparse import csr_matrix

    stored = np.load(Path(job["file"]))
    X = csr_matrix((stored["data"], stored["indices"], stored["indptr"]), shape=stored["shape"])
    X, y, query = X.toarray(), stored["target"].astype(float), stored["qid"]
    first = int(stored["n_train"])
    return X[:first], y[:first], query[:first], X[first:], y[first:], query[first:]


def made(rows: int, features: int, queries: int, seed: int) -> tuple[Any, ...]:
    """A table of queries of different sizes; grades 0 to 4 follow ten of the features."""
    rng = np.random.default_rng(seed)

    def part(n_rows: int, n_queries: int) -> tuple[Any, ...]:
        sizes = rng.multinomial(n_rows - n_queries, rng.dirichlet(np.full(n_queries, 4.0))) + 1
        query = np.repeat(np.arange(n_queries), sizes)
        X = rng.standard_normal((n_rows, features), dtype=np.float32)
        X[:, 1] += rng.normal(size=n_queries)[query]  # says nothing within a query
        signal = X[:, 0] + np.sin(2 * X[:, 2]) + X[:, 3] * X[:, 4] + 0.5 * X[:, 5:10].sum(axis=1)
        noisy = signal + rng.normal(scale=2.0, size=n_rows)
        return X, np.digitize(noisy, [1.0, 2.5, 4.0, 5.5]).astype(float), query

    return (*part(rows, queries), *part(rows // 5, max(queries // 5, 1)))


def fit_arboost(
    X: Any, y: np.ndarray, query: np.ndarray, job: dict[str, Any]
) -> tuple[Callable[..., Any], float]:
    """LambdaMART of arboost."""
    import arboost

    params: dict[str, Any] = {}
    if not job["default"]:
        params = {
            "n_estimators": job["rounds"],
            "learning_rate": 0.1,
            "max_depth": None,
            "max_leaves": job["leaves"],
            "grow_policy": "leafwise",
            "min_child_weight": SMALLEST_HESSIAN,
            "reg_lambda": 0.0,
        }
    elif job["rounds"] == 1:
        params = {"n_estimators": 1}
    params |= job["params"]
    model = arboost.GradientBoostingRanker(
        n_jobs=job["threads"], random_state=job["seed"], verbose=0, **params
    )
    start = time.perf_counter()
    model.fit(X, y, qid=query)
    return model.predict, time.perf_counter() - start


def fit_lightgbm(
    X: Any, y: np.ndarray, query: np.ndarray, job: dict[str, Any]
) -> tuple[Callable[..., Any], float]:
    """LambdaMART of LightGBM."""
    import lightgbm

    params: dict[str, Any] = {}
    if not job["default"] or job["rounds"] == 1:
        params = {"n_estimators": job["rounds"], "learning_rate": 0.1, "num_leaves": job["leaves"]}
        params |= {"min_child_weight": SMALLEST_HESSIAN, "min_child_samples": 1}
    model = lightgbm.LGBMRanker(
        n_jobs=job["threads"], random_state=job["seed"], verbose=-1, **params
    )
    start = time.perf_counter()
    model.fit(X, y, group=np.unique(query, return_counts=True)[1])
    return model.predict, time.perf_counter() - start


def fit_xgboost(
    X: Any, y: np.ndarray, query: np.ndarray, job: dict[str, Any]
) -> tuple[Callable[..., Any], float]:
    """LambdaMART of XGBoost."""
    import xgboost

    params: dict[str, Any] = {}
    if not job["default"] or job["rounds"] == 1:
        params = {
            "n_estimators": job["rounds"],
            "learning_rate": 0.1,
            "max_leaves": job["leaves"],
            "max_depth": 0,
            "grow_policy": "lossguide",
            "tree_method": "hist",
            "min_child_weight": SMALLEST_HESSIAN,
            "reg_lambda": 0.0,
        }
    model = xgboost.XGBRanker(n_jobs=job["threads"], random_state=job["seed"], **params)
    start = time.perf_counter()
    model.fit(X, y, qid=query)
    return model.predict, time.perf_counter() - start


FITS: dict[str, Fit] = {
    "arboost": fit_arboost,
    "lightgbm": fit_lightgbm,
    "xgboost": fit_xgboost,
}


if __name__ == "__main__":
    main()
