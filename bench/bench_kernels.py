"""How many nanoseconds does each kernel take per (row, feature) or row?

Histograms are shown next to the limit that the memory system sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from arboost import GradientBoostingClassifier, _core
from support import harness

# Limits of the memory system: one packed add for each (row, feature), measured on two cores of an
# AMD EPYC with AVX-512. Other machines have other limits.
LIMITS = {"histogram, rows in order": 0.38, "histogram, rows by index": 0.51}

FEATURES = 28


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Return the seconds of the fastest run."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


class Report:
    """Nanoseconds of each kernel, printed and kept."""

    def __init__(self) -> None:
        self.nanoseconds: dict[str, float] = {}

    def show(self, name: str, seconds: float, units: int, unit: str) -> None:
        self.nanoseconds[name] = seconds * 1e9 / units
        limit = f"   limit {LIMITS[name]:.2f}" if name in LIMITS else ""
        print(f"{name:40s} {self.nanoseconds[name]:8.3f} ns per {unit}{limit}")


def grower(codes: _core.Codes, *, depth: int) -> _core.Grower:
    params = _core.TreeParams()
    params.max_depth = depth
    return _core.Grower(codes, 1, params)


def narrow_elements(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return elements of a tree's row partition: row id, and a gradient pair in the high bits."""
    pairs = rng.integers(0, 2**28, len(rows), dtype=np.uint64)
    return (pairs << np.uint64(32)) | rows.astype(np.uint64)


def time_histogram(codes: _core.Codes, rng: np.random.Generator, report: Report) -> None:
    """Time the histogram of rows in order, and of scattered rows as in one node among 32."""
    kernel = _core.HistogramKernel(codes)
    out = np.zeros(kernel.n_slots, np.int64)
    rows = np.arange(codes.n_rows)
    scattered = np.concatenate([rows[part::32] for part in rng.permutation(32)])
    for name, order in (("in order", rows), ("by index", scattered)):
        elements = narrow_elements(order, rng)
        seconds = best_of(5, lambda elements=elements: kernel.add(elements, None, out))
        report.show(f"histogram, rows {name}", seconds, len(rows) * FEATURES, "(row, feature)")


def time_partition(codes: _core.Codes, rng: np.random.Generator, report: Report) -> None:
    elements = narrow_elements(np.arange(codes.n_rows), rng)
    out = np.empty_like(elements)
    rule = {"feature": 0, "bin": 100, "missing_left": False}
    seconds = best_of(5, lambda: _core.partition_kernel(codes, **rule, elements=elements, out=out))
    report.show("partition", seconds, len(elements), "row")


def time_search(rng: np.random.Generator, report: Report) -> None:
    hist = rng.integers(-1000, 1000, (255, 1)) * 2**32 + rng.integers(0, 1000, (255, 1))
    sums = {"hist": hist, "totals": hist.sum(axis=0)}

    def search() -> None:
        for _ in range(1000):
            _core.find_split_kernel(**sums, has_missing=False, reg_lambda=1.0, min_h=1)

    report.show("split search, with the call", best_of(5, search), 255 * 1000, "bin")


def time_walks(
    codes: _core.Codes, gradients: _core.Gradients, report: Report, threads: int
) -> None:
    """Time walks of all rows together, 512 at once, and of the same rows by number, one by one."""
    rows, scores = np.arange(codes.n_rows, dtype=np.uint32), np.zeros((codes.n_rows, 1))
    for depth in (1, 6, 8):
        grown = grower(codes, depth=depth)
        grown.grow(gradients, 0, seed=0, tree=0, rate=0.1, n_threads=threads)
        for name, order in (("together", None), ("by number", rows)):
            seconds = best_of(
                5,
                lambda grown=grown, order=order: grown.add_tree(
                    0, 1.0, codes, order, scores, 0, threads
                ),
            )
            report.show(f"walk, depth {depth}, rows {name}", seconds, codes.n_rows, "row")


def time_prediction(table: np.ndarray, y: np.ndarray, report: Report, threads: int) -> None:
    """Time full trees, uneven ones, and those with another test for missing values."""
    some, n_trees = slice(0, 100_000), 100
    holes = table[some].copy()
    holes[::2, 0] = np.nan
    shapes = {"full": {"max_depth": 6}, "uneven": {"max_depth": None, "max_leaves": 64}}
    for name, shape in shapes.items():
        policy = "leafwise" if name == "uneven" else "depthwise"
        model = GradientBoostingClassifier(
            n_estimators=n_trees, grow_policy=policy, n_jobs=threads, **shape
        ).fit(holes, y[some])
        for values, kind in ((table[some], "present"), (holes, "missing")):
            seconds = best_of(5, lambda model=model, values=values: model.predict_proba(values))
            report.show(
                f"predict, {name} trees, values {kind}", seconds, len(values) * n_trees, "tree"
            )


def time_subtrees(table: np.ndarray, y: np.ndarray, report: Report) -> None:
    """Time full trees, grown as one subtree: searches of small nodes.

    Random cuts of all features show the loops of a constant length for a handful of rows, which do
    not pay with 5 features.
    """
    n, threads = min(20_000, len(table)), 1
    columns = _core.Columns(n)
    columns.add_matrix(np.ascontiguousarray(table[:n]))
    codes = _core.encode(columns, None, _core.quantiles(columns, None, None, 255, threads), threads)
    gradients = _core.Gradients(n, 1, by_row=False)
    _core.apply_loss("squared_error", y[:n], None, None, gradients, threads)
    for name, random_cuts, n_features in (
        ("best", False, 5),
        ("random", True, 5),
        ("random", True, FEATURES),
    ):
        params = _core.TreeParams()
        params.max_depth = params.max_leaves = None
        params.reg_lambda, params.allow_zero_gain = 0.0, True
        params.colsample_bynode = n_features / FEATURES
        params.random_cuts, params.subtree_rows = random_cuts, n
        grown = _core.Grower(codes, 1, params)
        seconds = best_of(
            5,
            lambda grown=grown: grown.grow(
                gradients, 0, seed=0, tree=0, rate=1.0, n_threads=threads
            ),
        )
        report.show(f"full tree, {name} cuts of {n_features} features", seconds, n, "row")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=harness.RESULTS)
    parser.set_defaults(name="kernels")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    args = harness.parse(parser)
    report = Report()
    n, threads = args.rows, args.threads
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n, FEATURES)).astype(np.float32)
    y = (table[:, 0] * table[:, 1] + rng.normal(size=n) > 0).astype(float)
    columns = _core.Columns(n)
    columns.add_matrix(table)
    print(f"{n:,} rows x {FEATURES} features, {threads} threads, {_core.instruction_set()}")

    cells = n * FEATURES
    seconds = best_of(3, lambda: _core.quantiles(columns, None, None, 255, threads))
    report.show("quantiles", seconds, cells, "value")
    edges = _core.quantiles(columns, None, None, 255, threads)
    report.show(
        "encode", best_of(3, lambda: _core.encode(columns, None, edges, threads)), cells, "value"
    )

    codes = _core.encode(columns, None, edges, threads)
    gradients, scores = _core.Gradients(n, 1, by_row=False), np.zeros((n, 1))
    for loss in ("squared_error", "logistic"):
        seconds = best_of(
            5, lambda loss=loss: _core.apply_loss(loss, y, None, scores, gradients, threads)
        )
        report.show(f"gradients, {loss}", seconds, n, "row")

    time_histogram(codes, rng, report)
    time_partition(codes, rng, report)
    time_search(rng, report)
    time_subtrees(table, y, report)
    for depth in (1, 8):
        grown = grower(codes, depth=depth)
        seconds = best_of(
            5,
            lambda grown=grown: grown.grow(
                gradients, 0, seed=0, tree=0, rate=0.1, n_threads=threads
            ),
        )
        report.show(f"one tree of depth {depth}", seconds, cells * depth, "(row, feature, level)")
    stump = grower(codes, depth=1)
    stump.grow(gradients, 0, seed=0, tree=0, rate=0.1, n_threads=threads)
    report.show("add leaves", best_of(5, lambda: stump.add_leaves(scores, 0, threads)), n, "row")
    time_walks(codes, gradients, report, threads)
    time_prediction(table, y, report, threads)
    sizes = {"rows": n, "features": FEATURES, "threads": threads}
    harness.save(args, sizes | {"nanoseconds": report.nanoseconds})


if __name__ == "__main__":
    main()
