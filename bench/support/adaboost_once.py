"""AdaBoost in a fresh process: fit, predict, and print the figures as JSON.

Called by bench_adaboost.py with one JSON argument. The data are in memory, the library is imported
and its threads are started (by a tiny fit) before the clock starts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from support.data import load

WARM_UP_ROWS = 200
PREDICTIONS = 3  # the fastest counts


@dataclass(frozen=True)
class Job:
    """One fit, and its contestant."""

    contestant: str
    folder: str
    task: str  # "classifier" or "regressor"
    depth: int
    rounds: int
    threads: int
    shared_rounds: int = 0  # rounds of the model that predicts; 0: the timed model
    fits: int = 0  # above 0: only time a round, as the best of this many fits


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    job = Job(**json.loads(sys.argv[1]))
    X, y = load(Path(job.folder), "X"), load(Path(job.folder), "y")
    fit(job, X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], 2)
    print(json.dumps(cost(job, X, y) if job.fits else contest(job, X, y)))


def contest(job: Job, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Time of the fit, time of a prediction for all training rows, and scores on held-out rows.

    Predictions and scores are comparable only at equal rounds: `predict_seconds` and `score` are
    those of a model of `shared_rounds`, `last_score` that of the full model.
    """
    seconds, model = timed(lambda: fit(job, X, y, job.rounds))
    rounds = length(model)
    held_out = load(Path(job.folder), "X_test"), load(Path(job.folder), "y_test")
    figures = {"seconds": seconds, "rounds": rounds, "round_seconds": seconds / rounds}
    figures["last_score"] = model.score(*held_out)
    if job.shared_rounds not in (0, job.rounds):
        model = fit(job, X, y, job.shared_rounds)
    taken = [timed(lambda: model.predict(X))[0] for _ in range(PREDICTIONS)]
    return figures | {"predict_seconds": min(taken), "score": model.score(*held_out)}


def cost(job: Job, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Time of a round after the first: a fit of all rounds minus a fit of one."""
    taken: dict[int, list[float]] = {1: [], job.rounds: []}
    for _ in range(job.fits):
        for rounds, found in taken.items():
            seconds, model = timed(lambda rounds=rounds: fit(job, X, y, rounds))
            if length(model) != rounds:
                raise SystemExit(f"the fit ended after {length(model)} of {rounds} rounds")
            found.append(seconds)
    return {"round_seconds": (min(taken[job.rounds]) - min(taken[1])) / (job.rounds - 1)}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of a call."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def fit(job: Job, X: np.ndarray, y: np.ndarray, rounds: int) -> Any:
    """The fitted model of the contestant."""
    return CONTESTANTS[job.contestant](job, rounds).fit(X, y)


def length(model: Any) -> int:
    """Number of rounds of a fitted model."""
    return model.n_iter_ if hasattr(model, "n_iter_") else len(model.estimators_)


def _ours(job: Job, rounds: int, *, resample: bool = False) -> Any:
    import arboost

    kinds = {"classifier": arboost.AdaBoostClassifier, "regressor": arboost.AdaBoostRegressor}
    return kinds[job.task](
        n_estimators=rounds,
        max_depth=job.depth,
        resample=resample,
        n_jobs=job.threads,
        random_state=0,
        verbose=0,
    )


def _ours_resampled(job: Job, rounds: int) -> Any:
    return _ours(job, rounds, resample=True)


def _scikit_learn(job: Job, rounds: int) -> Any:
    """scikit-learn's AdaBoost: one thread, exact trees; its regressor always resamples."""
    from sklearn import ensemble, tree

    if job.task == "classifier":
        learner = tree.DecisionTreeClassifier(max_depth=job.depth)
        return ensemble.AdaBoostClassifier(learner, n_estimators=rounds, random_state=0)
    learner = tree.DecisionTreeRegressor(max_depth=job.depth)
    return ensemble.AdaBoostRegressor(learner, n_estimators=rounds, random_state=0)


CONTESTANTS: dict[str, Callable[[Job, int], Any]] = {
    "arboost": _ours,
    "arboost-resample": _ours_resampled,
    "scikit-learn": _scikit_learn,
}


if __name__ == "__main__":
    main()
