"""How soon does Ctrl-C end each kind of work?

Every work is interrupted several times, at moments spread over its length (or its first seconds).
The table shows the slowest answer: the time from the signal to the KeyboardInterrupt, and the
CPU time within it, which other programs hardly change.
Usage: python bench/bench_interrupt.py [--rows N] [--times N] [--only WORD] [--threads N]
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import arboost as ab
from arboost.backend import core

FEATURES = 30


class Clock:
    """Sends Ctrl-C to this process after a delay, and notes when."""

    def __init__(self, delay: float) -> None:
        self.sent = self.sent_cpu = 0.0
        self._timer = threading.Timer(delay, self._send)

    def _send(self) -> None:
        self.sent, self.sent_cpu = time.perf_counter(), time.process_time()
        os.kill(os.getpid(), signal.SIGINT)

    def start(self) -> None:
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()
        self._timer.join()


def answer(work: Callable[[], object], delay: float) -> tuple[float, float] | float:
    """Return the time and CPU time from Ctrl-C to its answer, or the time of the work."""
    clock = Clock(delay)
    start = time.perf_counter()
    try:
        clock.start()
        work()
        clock.cancel()
    except KeyboardInterrupt:
        return time.perf_counter() - clock.sent, time.process_time() - clock.sent_cpu
    return time.perf_counter() - start


def works(rows: int, threads: int) -> dict[str, Callable[[], Callable[[], object]]]:
    """Return functions by name that prepare a work and return it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, FEATURES))
    y = X[:, 0] * X[:, 1] + rng.normal(size=rows)
    label = (y > 0).astype(int)
    usual = {"n_jobs": threads, "verbose": 0}

    def fit(kind: str, target: np.ndarray, **params: object) -> Callable[[], Callable]:
        return lambda: lambda: getattr(ab, kind)(**(usual | params)).fit(X, target)

    boosters = {
        f"gradient boosting, {name}": fit(
            "GradientBoostingRegressor", y, n_estimators=50, tree_method=name, **more
        )
        for name, more in {"hist": {}, "exact": {}, "approx": {"sketch_scope": "local"}}.items()
    }
    members = [("a", ab.DecisionTreeRegressor()), ("b", ab.GradientBoostingRegressor(verbose=0))]
    short = {"n_estimators": 20, "verbose": 0}

    def predict() -> Callable[[], object]:
        model = ab.RandomForestRegressor(**short).fit(X[:50_000], y[:50_000])
        model.n_jobs = threads
        return lambda: [model.predict(X) for _ in range(10)]

    def shap() -> Callable[[], object]:
        model = ab.GradientBoostingRegressor(**short, max_depth=10).fit(X[:50_000], y[:50_000])
        model.n_jobs = threads
        return lambda: model.shap_values(X)

    def load() -> Callable[[], object]:
        path = Path(tempfile.mkdtemp()) / "model.arb"
        ab.RandomForestRegressor(**short).fit(X[:300_000], y[:300_000]).save(path)
        return lambda: ab.load(path).predict(X[:10])

    return boosters | {
        "gradient boosting, auto": fit("GradientBoostingRegressor", y),
        "random forest": fit("RandomForestRegressor", y),
        "random forest, classes": fit("RandomForestClassifier", label, oob_score=True),
        "random forest, absolute error": fit(
            "RandomForestRegressor", y, criterion="absolute_error", max_depth=8
        ),
        "random forest, exact": fit("RandomForestRegressor", y, tree_method="exact"),
        "extra trees": fit("ExtraTreesRegressor", y),
        "extra trees, classes": fit("ExtraTreesClassifier", label),
        "tree": fit("DecisionTreeRegressor", y),
        "AdaBoost": fit("AdaBoostClassifier", label, n_estimators=50, max_depth=6),
        "AdaBoost R2": fit("AdaBoostRegressor", y, n_estimators=50),
        "bagging": fit("BaggingRegressor", y, estimator=ab.DecisionTreeRegressor()),
        "stacking": fit("StackingRegressor", y, estimators=members),
        "predict": predict,
        "SHAP values": shap,
        "load": load,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=6, help="interruptions of each work")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a work that are looked at")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="names of works that contain this word")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{args.rows:,} x {FEATURES}, {args.threads} threads, {core.instruction_set()}")
    for name, prepare in works(args.rows, args.threads).items():
        if args.only not in name:
            continue
        work, answers = prepare(), []
        span = args.seconds
        for i in range(args.times):
            delay = span * (i + rng.random()) / args.times
            found = answer(work, delay)
            if isinstance(found, float):
                span = min(span, 0.8 * found)
            else:
                answers.append(found)
        longest = [max(times) for times in zip(*answers, strict=True)] or [math.nan] * 2
        shown = f"{longest[0]:6.2f} s, CPU {longest[1]:6.2f} s, of {len(answers)}"
        print(f"{name:32} {shown}", flush=True)


if __name__ == "__main__":
    main()
