"""Bagged or stacked models in a fresh process: fit, and print the figures as JSON.

Called by bench_bagging.py with one JSON argument. The data are in memory, the libraries are
imported and their threads are started (by a tiny fit) before the clock starts.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from support.data import load
from support.fit_once import PeakMemory, quality

WARM_UP_ROWS = 500
FOLDS = 5
BOOSTER = {"learning_rate": 0.1, "max_depth": 6}


@dataclass(frozen=True)
class Job:
    """One fit, and its contestant."""

    contestant: str
    folder: str
    threads: int
    rounds: int = 0  # of boosters
    trees: int = 0  # of forests and AdaBoost, in a stack
    boosters: int = 0  # members of a bag


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    job = Job(**json.loads(sys.argv[1]))
    folder = Path(job.folder)
    X, y = load(folder, "X"), load(folder, "y")
    make = CONTESTANTS[job.contestant]
    make(job).fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    gc.collect()
    peak = PeakMemory()
    start = time.perf_counter()
    model = make(job).fit(X, y)
    figures: dict[str, Any] = {"seconds": time.perf_counter() - start}
    figures |= {"peak_mb": peak.beyond_start_mb(), "start_mb": peak.start}
    X_test, y_test = load(folder, "X_test"), load(folder, "y_test")
    start = time.perf_counter()
    shares = np.asarray(model.predict_proba(X_test)[:, 1], dtype=np.float64)
    figures["predict_seconds"] = time.perf_counter() - start
    end_workers()
    print(json.dumps(figures | quality(y_test, shares)))


def end_workers() -> None:
    """Wait for joblib's processes: their CPU time counts as this process's only after their end."""
    if "joblib" in sys.modules:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)


def _booster(job: Job) -> Any:
    from arboost import GradientBoostingClassifier

    return GradientBoostingClassifier(
        n_estimators=job.rounds, n_jobs=job.threads, random_state=0, verbose=0, **BOOSTER
    )


def _bag(job: Job) -> Any:
    """Bagged boosters, each on a bootstrap sample; all share one binned table."""
    from arboost import BaggingClassifier

    return BaggingClassifier(
        _booster(job), n_estimators=job.boosters, n_jobs=job.threads, random_state=0, verbose=0
    )


def _our_stack(job: Job, *, at_a_time: bool) -> Any:
    """arboost's five members, fitted in sequence or in parallel, and a logistic regression."""
    import arboost

    inside = 1 if at_a_time else job.threads
    common: dict[str, Any] = {"n_jobs": inside, "random_state": 0, "verbose": 0}
    members = [
        ("booster", _booster(job).set_params(n_jobs=inside)),
        ("forest", arboost.RandomForestClassifier(job.trees, **common)),
        ("extra", arboost.ExtraTreesClassifier(job.trees, **common)),
        ("adaboost", arboost.AdaBoostClassifier(n_estimators=job.trees, max_depth=3, **common)),
        ("tree", arboost.DecisionTreeClassifier(min_samples_leaf=20, **common)),
    ]
    n_jobs = job.threads if at_a_time else None
    return arboost.StackingClassifier(members, _final(), cv=FOLDS, n_jobs=n_jobs)


def _scikit_stack(job: Job) -> Any:
    """scikit-learn's counterparts, with one member per thread in parallel."""
    from sklearn import ensemble, tree

    stump = tree.DecisionTreeClassifier(max_depth=3)
    members = [
        (
            "booster",
            ensemble.HistGradientBoostingClassifier(
                max_iter=job.rounds, max_leaf_nodes=None, early_stopping=False, **BOOSTER
            ),
        ),
        ("forest", ensemble.RandomForestClassifier(job.trees, random_state=0)),
        ("extra", ensemble.ExtraTreesClassifier(job.trees, random_state=0)),
        ("adaboost", ensemble.AdaBoostClassifier(stump, n_estimators=job.trees, random_state=0)),
        ("tree", tree.DecisionTreeClassifier(min_samples_leaf=20, random_state=0)),
    ]
    return ensemble.StackingClassifier(members, _final(), cv=FOLDS, n_jobs=job.threads)


def _final() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


CONTESTANTS: dict[str, Callable[[Job], Any]] = {
    "one booster": _booster,
    "bagged boosters": _bag,
    "arboost": lambda job: _our_stack(job, at_a_time=False),
    "arboost-at-a-time": lambda job: _our_stack(job, at_a_time=True),
    "scikit-learn": _scikit_stack,
}


if __name__ == "__main__":
    main()
