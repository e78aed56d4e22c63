"""Seconds of binning a table in device memory, and a table of the host for a fit on the device."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BAR_ROWS", "BAR_SECONDS", "time_binning"]

# Target in seconds on an H200, by the number of rows of a table of 28 columns.
BAR_ROWS, BAR_SECONDS = 10_000_000, 0.09


def time_binning(X: NDArray[np.float32], y: NDArray[Any], repeats: int) -> dict[str, float]:
    """Return the seconds of `Dataset` by the place of X, and check that the codes are the same."""
    from arboost import Dataset
    from arboost.data.cuda import CudaArray

    there = CudaArray.of(X), CudaArray.of(y)
    found, codes = {}, []
    for name, (table, target) in {"processor": (X, y), "device": there}.items():
        seconds = []
        for _ in range(repeats + 1):  # the first one starts the device
            start = time.perf_counter()
            data = Dataset(table, target)
            seconds.append(time.perf_counter() - start)
        found[f"binning on the {name}"] = min(seconds[1:])
        codes.append(data.binned.codes.by_row)
    if not np.array_equal(*codes):
        raise SystemExit("other codes on the device")
    asked = f"  (asked for: {BAR_SECONDS} s)" if len(X) == BAR_ROWS else ""
    shown = found["binning on the device"]
    print(f"{len(X):>10,} x {X.shape[1]}, binning from device memory: {shown:7.3f} s{asked}")
    return found
