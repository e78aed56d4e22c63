"""Fits of one library for `bench_real.py`, each in a separate process.

Called with the library's name. Each line of the input is a job in JSON, and is answered by one line
of JSON. The library is imported once, and every job runs in a fork of this process. That saves the
import and isolates the fits: no memory, thread or failure of one fit reaches the next. Only imports
happen before a fork, so no library has threads then.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from support.fit_once import PeakMemory
from support.harness import others_seconds
from support.real_data import Problem, load
from support.real_peers import REAL_PEERS, RealPeer

# Libraries round probabilities to 24 bits at best; below this, a log loss compares rounding.
SMALLEST = 1e-7


def main() -> None:
    """Answer jobs until the input ends."""
    kind = REAL_PEERS[sys.argv[1]]
    for package in (kind.package, "pandas", "scipy.sparse", "pyarrow"):
        importlib.import_module(package)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of the library must not mix with the answers
    for line in sys.stdin:
        answers.write(json.dumps(_in_fork(kind, json.loads(line))) + "\n")
        answers.flush()


def _in_fork(kind: type, job: dict[str, Any]) -> dict[str, Any]:
    """Figures of the job, or {"error": reason}."""
    start, before = time.perf_counter(), others_seconds()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(job["limit"])  # ends the process even inside a library's loop
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(_attempt(kind, job)))
        os._exit(0)  # without exit handlers, which would clean up resources shared with the parent
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    others = (others_seconds() - before) / (time.perf_counter() - start)
    if not os.WIFSIGNALED(status):
        return json.loads(text) | {"others": round(others, 2)}
    if os.WTERMSIG(status) == signal.SIGALRM:
        return {"error": f"took more than {job['limit']} s"}
    return {"error": f"ended by signal {os.WTERMSIG(status)}"}


def _attempt(kind: type, job: dict[str, Any]) -> dict[str, Any]:
    try:
        peer = kind(job["extra"]) if job["extra"] else kind()
        return fit(peer, load(Path(job["folder"])), job)
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return {"error": f"{type(error).__name__}: {lines[0]}"}


def fit(peer: RealPeer, problem: Problem, job: dict[str, Any]) -> dict[str, Any]:
    """Seconds of fit and predict, peak memory beyond the loaded data, and the score."""
    _warm_up(peer, job)
    X, X_test = peer.tables(problem)
    model = peer.estimator(problem.task, job["setting"], job["seed"], job["threads"])
    gc.collect()
    peak = PeakMemory()
    start, worked = time.perf_counter(), time.process_time()
    model.fit(X, problem.y)
    fitted, cpu_seconds = time.perf_counter(), time.process_time() - worked
    regress = problem.task == "regression"
    predicted = model.predict(X_test) if regress else model.predict_proba(X_test)
    end = time.perf_counter()
    return {
        "seconds": fitted - start,
        "cpu_seconds": cpu_seconds,  # of all threads
        "predict_seconds": end - fitted,
        "peak_mb": peak.beyond_start_mb(),
        "score": (rmse if regress else log_loss)(problem.y_test, np.asarray(predicted)),
    }


def _warm_up(peer: RealPeer, job: dict[str, Any]) -> None:
    """Start the library's threads, and trigger its lazy imports."""
    import pandas as pd

    X = pd.DataFrame(np.random.default_rng(0).random((200, 4)), columns=list("abcd"))
    model = peer.estimator("regression", "default", 0, job["threads"])
    model.set_params(**{peer.rounds: 1}).fit(X, X["a"]).predict(X)


def log_loss(y: np.ndarray, proba: np.ndarray) -> float:
    """Mean negative log probability of the true class; y holds column indices."""
    clipped = np.clip(proba.astype(np.float64), SMALLEST, 1 - SMALLEST)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return float(-np.log(clipped[np.arange(len(y)), y]).mean())


def rmse(y: np.ndarray, predicted: np.ndarray) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((y - predicted.reshape(-1)) ** 2)))


if __name__ == "__main__":
    main()
