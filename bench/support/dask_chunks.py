"""Chunks of a generated problem on the workers of a cluster, as collections of Dask."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import wait

TARGET = "target"
CHUNKS = 8


def block(folder: str, name: str, begin: int, end: int) -> np.ndarray:
    """Return some rows of one array of the problem."""
    return np.array(np.load(Path(folder) / f"{name}.npy", mmap_mode="r")[begin:end])


def table(folder: str, begin: int, end: int) -> Any:
    """Return some rows as a data frame with the target as its last column."""
    import pandas as pd

    X = block(folder, "X", begin, end)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame[TARGET] = block(folder, "y", begin, end)
    return frame


def arrays(client: Any, folder: str, rows: int | None = None) -> tuple[Any, Any]:
    """Return X and y as arrays of Dask, whose chunks are in the memory of the workers."""
    X, y = (np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in "Xy")
    found = []
    for name, array in (("X", X[:rows]), ("y", y[:rows])):
        ranges = _ranges(len(array))
        futures = _computed(client, block, [(folder, name, *one) for one in ranges])
        parts = [
            da.from_delayed(future, (end - begin, *array.shape[1:]), array.dtype)
            for future, (begin, end) in zip(futures, ranges, strict=True)
        ]
        found.append(da.concatenate(parts))
    return found[0], found[1]


def frame(client: Any, folder: str) -> Any:
    """Return the training rows as a data frame of Dask, in the memory of the workers."""
    import dask.dataframe as dd

    ranges = _ranges(len(np.load(Path(folder) / "y.npy", mmap_mode="r")))
    futures = _computed(client, table, [(folder, *one) for one in ranges])
    return dd.from_delayed(futures, meta=table(folder, 0, 0), verify_meta=False)


def _ranges(rows: int) -> list[tuple[int, int]]:
    bounds = [rows * i // CHUNKS for i in range(CHUNKS + 1)]
    return list(pairwise(bounds))


def _computed(client: Any, function: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Return futures of the results; neighbours are on the same worker, each has as many."""
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    futures = [
        client.submit(
            function,
            *one,
            workers=[workers[i * len(workers) // len(arguments)]],
            allow_other_workers=True,  # where this one is lost
            pure=False,
        )
        for i, one in enumerate(arguments)
    ]
    wait(futures)
    return futures
