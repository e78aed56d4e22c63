"""SHAP values of one library in a fresh process: print their times as JSON.

Called by bench_shap.py with one JSON argument. The model is fitted before the clock starts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from support.data import load

LEARNING_RATE = 0.1


@dataclass(frozen=True)
class Job:
    """One model to explain, and its contestant."""

    contestant: str
    folder: str
    trees: int
    depth: int
    threads: int
    rows: int
    pair_rows: int
    repeats: int


class Explainer(NamedTuple):
    """SHAP values and interactions of the first rows; both sum to raw scores."""

    values: Callable[[int], Any]
    interactions: Callable[[int], Any] | None


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    job = Job(**json.loads(sys.argv[1]))
    X, y = load(Path(job.folder), "X"), load(Path(job.folder), "y")
    explainer = EXPLAINERS[job.contestant](job, X, y)
    explainer.values(16)  # starts the threads
    figures = {"values": _fastest(lambda: explainer.values(job.rows), job.repeats)}
    if explainer.interactions is not None and job.pair_rows:
        interactions = explainer.interactions
        figures["interactions"] = _fastest(lambda: interactions(job.pair_rows), 1)
    print(json.dumps(figures))


def _fastest(work: Callable[[], Any], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def _arboost(job: Job, X: np.ndarray, y: np.ndarray) -> Explainer:
    from arboost import GradientBoostingClassifier

    model = GradientBoostingClassifier(
        n_estimators=job.trees,
        max_depth=job.depth,
        grow_policy="depthwise",
        max_leaves=None,
        learning_rate=LEARNING_RATE,
        n_jobs=job.threads,
    ).fit(X, y)
    return Explainer(
        lambda rows: model.shap_values(X[:rows]), lambda rows: model.shap_interactions(X[:rows])
    )


def _xgboost(job: Job, X: np.ndarray, y: np.ndarray) -> Explainer:
    import xgboost

    params = {
        "max_depth": job.depth,
        "objective": "binary:logistic",
        "eta": LEARNING_RATE,
        "nthread": job.threads,
    }
    model = xgboost.train(params, xgboost.DMatrix(X, y, nthread=job.threads), job.trees)

    def run(rows: int, **what: bool) -> Any:
        return model.predict(xgboost.DMatrix(X[:rows], nthread=job.threads), **what)

    return Explainer(
        lambda rows: run(rows, pred_contribs=True), lambda rows: run(rows, pred_interactions=True)
    )


def _lightgbm(job: Job, X: np.ndarray, y: np.ndarray) -> Explainer:
    import lightgbm

    params = {
        "max_depth": job.depth,
        "num_leaves": 2**job.depth,
        "objective": "binary",
        "learning_rate": LEARNING_RATE,
        "num_threads": job.threads,
        "verbose": -1,
    }
    model = lightgbm.train(params, lightgbm.Dataset(X, y), job.trees)
    return Explainer(
        lambda rows: model.predict(X[:rows], pred_contrib=True, num_threads=job.threads), None
    )


def _catboost(job: Job, X: np.ndarray, y: np.ndarray) -> Explainer:
    import catboost

    model = catboost.CatBoostClassifier(
        iterations=job.trees,
        depth=job.depth,
        learning_rate=LEARNING_RATE,
        thread_count=job.threads,
        verbose=0,
        allow_writing_files=False,
    ).fit(X, y)

    def run(rows: int, kind: str) -> Any:
        pool = catboost.Pool(X[:rows], thread_count=job.threads)
        return model.get_feature_importance(pool, type=kind, thread_count=job.threads)

    return Explainer(
        lambda rows: run(rows, "ShapValues"), lambda rows: run(rows, "ShapInteractionValues")
    )


EXPLAINERS = {
    "arboost": _arboost,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
}


if __name__ == "__main__":
    main()
