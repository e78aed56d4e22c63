"""How fast are quantiles and bin codes compared with NumPy's?

Prints nanoseconds per value and checks that the results agree.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.table import ingest

N_FEATURES = 28
N_BINS = 255


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Return the seconds of the fastest run."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def tables(n_rows: int) -> dict[str, NDArray[np.generic]]:
    """Return typical tables: both precisions and memory orders, skewed values, few values."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(n_rows, N_FEATURES))
    return {
        "float32, by row": normal.astype(np.float32),
        "float64, by row": normal,
        "float32, by column": np.asfortranarray(normal.astype(np.float32)),
        "float64, log-normal": np.exp(3 * normal),
        "int64, 50 values": rng.integers(0, 50, size=(n_rows, N_FEATURES)),
    }


def plain(values: NDArray[np.generic]) -> tuple[float, float]:
    """Return NumPy's seconds for the quantiles and the codes of one column."""
    column = np.ascontiguousarray(values[:, 0])
    points = np.linspace(0, 1, N_BINS + 1)[1:-1]
    edges = np.unique(np.quantile(column, points))
    return (
        best_of(1, lambda: np.quantile(column, points)),
        best_of(1, lambda: np.searchsorted(edges, column)),
    )


def check(values: NDArray[np.generic], edges: list[NDArray[np.float64]], codes: core.Codes) -> None:
    """Fail where a code differs from NumPy's, or a bin holds far more rows than the mean."""
    for feature in (0, N_FEATURES - 1):
        expected = np.searchsorted(edges[feature], values[:, feature])
        np.testing.assert_array_equal(codes.by_row[:, feature], expected)
        np.testing.assert_array_equal(codes.by_column[:, feature], expected)
    counts = np.bincount(codes.by_row[:, 0])
    if len(counts) == N_BINS:
        assert counts.max() < 1.25 * counts.mean()


def main() -> None:
    """Print one line for each kind of table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=core.available_threads())
    args = parser.parse_args()
    n_rows, n_threads = args.rows, args.threads
    print(f"{n_rows} rows, {N_FEATURES} features, {n_threads} threads; nanoseconds per value")
    print(
        f"{'':<22}{'quantiles':>10}{'np.quantile':>13}{'encode':>10}{'searchsorted':>14}{'ms':>8}"
    )
    for name, values in tables(n_rows).items():
        columns = ingest(values).columns
        edges = core.quantiles(columns, None, None, N_BINS, n_threads)
        codes = core.encode(columns, None, edges, n_threads)
        check(values, edges, codes)

        def quantiles(columns: core.Columns = columns) -> object:
            return core.quantiles(columns, None, None, N_BINS, n_threads)

        def encode(columns: core.Columns = columns, edges: list = edges) -> object:
            return core.encode(columns, None, edges, n_threads)

        fast = best_of(3, quantiles), best_of(3, encode)
        slow = plain(values)
        print(
            f"{name:<22}{fast[0] / values.size * 1e9:>10.2f}{slow[0] / n_rows * 1e9:>13.1f}"
            f"{fast[1] / values.size * 1e9:>10.2f}{slow[1] / n_rows * 1e9:>14.1f}"
            f"{sum(fast) * 1e3:>8.0f}"
        )


if __name__ == "__main__":
    main()
