"""How much time and memory does a category of a million levels take, compared with CatBoost?"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from support import harness

CONTESTANTS = ("arboost", "catboost")


def main() -> None:
    """Run every contestant in fresh processes, print and save the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--levels", type=int, nargs="+", default=[1_000_000, 100_000])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest counts")
    parser.add_argument("--results", type=Path, default=harness.RESULTS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.set_defaults(name="levels")
    if "--one" in sys.argv:
        args = parser.parse_args()
        print(json.dumps(fit(args.one, args)))
        return
    args = harness.parse(parser)
    figures: dict[str, dict[str, Any]] = {}
    for levels in args.levels:
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTESTANTS}
        for _ in range(args.repeats):
            for name, found in runs.items():
                found.append(run(name, levels, args))
        best = {name: min(found, key=lambda one: one["seconds"]) for name, found in runs.items()}
        figures[str(levels)] = best
        header = ("", "time s", "x arboost", "memory MB", "AUC")
        ours = best["arboost"]["seconds"]
        lines = [
            (name, one["seconds"], one["seconds"] / ours, one["mb"], f"{one['auc']:.4f}")
            for name, one in best.items()
        ]
        shape = f"{args.rows:,} rows, {levels:,} levels and 4 numeric columns, {args.rounds} rounds"
        harness.show(f"{shape} of depth 6, {args.threads} threads", header, lines)
    harness.save(args, {"rows": args.rows, "rounds": args.rounds, "by_levels": figures})


def run(name: str, levels: int, args: argparse.Namespace) -> dict[str, Any]:
    """Figures of one fit in a fresh process."""
    command = [sys.executable, __file__, "--one", name, "--levels", str(levels)]
    for option in ("rows", "rounds", "threads"):
        command += [f"--{option}", str(getattr(args, option))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed: {done.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"  {name}, {levels:,} levels: {figures['seconds']:.3g} s", file=sys.stderr, flush=True)
    return figures


def make(n_rows: int, n_levels: int) -> tuple[Any, np.ndarray]:
    """Rows with equally frequent levels, each with its own effect on the log odds."""
    import pandas as pd

    rng = np.random.default_rng(0)
    code = rng.permutation(n_rows) % n_levels
    X = rng.normal(size=(n_rows, 4)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n_levels)[code]
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(np.int8)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["id"] = code
    return frame, y


def fit(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Time, peak memory beyond the data, and AUC on held-out rows, a tenth as many."""
    from sklearn.metrics import roc_auc_score

    n_new = args.rows // 10
    frame, y = make(args.rows + n_new, args.levels[0])
    X, X_new = frame[: args.rows].copy(), frame[args.rows :].copy()
    model: Any
    if name == "arboost":
        from arboost import GradientBoostingClassifier

        model = GradientBoostingClassifier(
            n_estimators=args.rounds,
            learning_rate=0.1,
            max_depth=6,
            categorical_features=["id"],
            n_jobs=args.threads,
            verbose=0,
        )
    else:
        from catboost import CatBoostClassifier

        model = CatBoostClassifier(
            iterations=args.rounds,
            learning_rate=0.1,
            depth=6,
            cat_features=["id"],
            thread_count=args.threads,
            verbose=0,
            allow_writing_files=False,
        )
    before, start = memory("VmRSS"), time.perf_counter()
    model.fit(X, y[: args.rows])
    seconds, peak = time.perf_counter() - start, memory("VmHWM")
    auc = roc_auc_score(y[args.rows :], model.predict_proba(X_new)[:, 1])
    return {"seconds": seconds, "mb": peak - before, "auc": auc}


def memory(key: str) -> float:
    """Resident megabytes of this process, now (VmRSS) or at the peak (VmHWM); Linux only."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
