"""One contestant in a fresh process: fit, predict, and print the best times as JSON.

Called by bench_predict.py with one JSON argument.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.data import load
from support.peers import PEERS
from support.shape import Shape, Work

SECONDS = 1.0  # approximate time of the calls for one number of rows, per repeat
DIFFERENT_ROWS = 1000  # calls with few rows get different ones, so that no cache holds their paths


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    job = json.loads(sys.argv[1])
    folder = Path(job["folder"])
    peer = PEERS[job["peer"]]
    work = Work(Shape(**job["shape"]), job["rounds"], job["threads"], job["variant"])
    model = peer.train(peer.bin(load(folder, "X"), load(folder, "y"), work), work)
    X = load(folder, "X_test")
    figures: dict[str, Any] = {}
    for n_rows in job["predict_rows"]:
        tables = [X[:n_rows]]
        if 2 * n_rows <= len(X):
            n_tables = min(DIFFERENT_ROWS, len(X) // n_rows)
            tables = [X[i * n_rows : (i + 1) * n_rows] for i in range(n_tables)]
        took = best(lambda table: peer.predict(model, table), tables, job["repeats"])
        figures[str(n_rows)] = {"seconds": took}
    figures["seconds"] = figures[str(job["predict_rows"][0])]["seconds"]
    print(json.dumps(figures))


def best(predict: Callable[[Any], object], tables: list[Any], repeats: int) -> float:
    """Seconds of a call: the best mean over consecutive calls."""
    start = time.perf_counter()
    for table in tables[:3]:
        predict(table)
    once = (time.perf_counter() - start) / len(tables[:3])
    calls = max(1, min(len(tables), int(0.05 / once)))
    least = float("inf")
    for repeat in range(max(1, int(repeats * SECONDS / (calls * once)))):
        some = [tables[(repeat * calls + i) % len(tables)] for i in range(calls)]
        start = time.perf_counter()
        for table in some:
            predict(table)
        least = min(least, (time.perf_counter() - start) / calls)
    return least


if __name__ == "__main__":
    main()
