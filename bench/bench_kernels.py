"""Nanoseconds of each kernel for one (row, feature) or row, beside the ceilings it aims at.

python bench/bench_kernels.py [--rows 1000000] [--threads 1]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from arboost import _core

# Measured floors of the memory system: one packed add for each (row, feature), rows in order.
CEILINGS = {"histogram, one tree of depth 1": 0.38}

FEATURES = 28


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Return the seconds of the fastest run."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def show(name: str, seconds: float, units: int, unit: str) -> None:
    ceiling = f"   ceiling {CEILINGS[name]:.2f}" if name in CEILINGS else ""
    print(f"{name:40s} {seconds * 1e9 / units:8.3f} ns per {unit}{ceiling}")


def grower(codes: _core.Codes, *, depth: int) -> _core.Grower:
    params = _core.TreeParams(
        max_depth=depth,
        max_leaves=None,
        best_first=False,
        min_child_weight=1.0,
        min_samples_leaf=1,
        gamma=0.0,
        reg_lambda=1.0,
        reg_alpha=0.0,
        max_delta_step=0.0,
    )
    return _core.Grower(codes, 1, params)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    n, threads = args.rows, args.threads
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n, FEATURES)).astype(np.float32)
    y = (table[:, 0] * table[:, 1] + rng.normal(size=n) > 0).astype(float)
    columns = _core.Columns(n)
    columns.add_matrix(table)
    print(f"{n:,} rows x {FEATURES} features, {threads} threads, {_core.instruction_set()}")

    cells = n * FEATURES
    seconds = best_of(3, lambda: _core.quantiles(columns, None, None, 255, threads))
    show("quantiles", seconds, cells, "value")
    edges = _core.quantiles(columns, None, None, 255, threads)
    show("encode", best_of(3, lambda: _core.encode(columns, None, edges, threads)), cells, "value")

    codes = _core.encode(columns, None, edges, threads)
    gradients, scores = _core.Gradients(n, 1, by_row=False), np.zeros((n, 1))
    for loss in ("squared_error", "logistic"):
        seconds = best_of(
            5, lambda loss=loss: _core.apply_loss(loss, y, None, scores, gradients, threads)
        )
        show(f"gradients, {loss}", seconds, n, "row")

    # A tree that cannot split is one histogram; each level more adds a partition, half a
    # histogram, and the search of its nodes.
    stump = grower(codes, depth=1)
    seconds = best_of(5, lambda: stump.grow(gradients, 0, 0, 0, 0.1, threads))
    show("histogram, one tree of depth 1", seconds, cells, "(row, feature), all of the tree in it")
    for depth in (4, 8):
        deep = grower(codes, depth=depth)
        seconds = best_of(5, lambda deep=deep: deep.grow(gradients, 0, 0, 0, 0.1, threads))
        show(f"one tree of depth {depth}", seconds, cells * depth, "(row, feature, level)")
    show("add leaves", best_of(5, lambda: stump.add_leaves(scores, 0, threads)), n, "row")


if __name__ == "__main__":
    main()
