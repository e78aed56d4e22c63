"""Tables of standard normals in Parquet files, written once to a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

GROUP_ROWS = 1 << 17
FILE_ROWS = 4 * GROUP_ROWS
TARGET = "y"
SEED = 20240607


def written(folder: Path, rows: int, features: int) -> Path:
    """Return the folder of a table, which is written where it is not there yet."""
    finished = folder / f"normals_{rows}_{features}"
    if finished.exists():
        return finished
    unfinished = finished.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        _write(unfinished / f"{number:03}.parquet", min(FILE_ROWS, rows - first), features, number)
    unfinished.rename(finished)
    return finished


def _write(path: Path, rows: int, features: int, number: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng([SEED, number])
    X = rng.standard_normal((features, rows), dtype=np.float32)
    y = X[0] + X[1] * X[2] + np.sin(3 * X[3]) / 2 + rng.standard_normal(rows)  # float64
    names = [f"x{j}" for j in range(features)]
    table = pa.table([*map(pa.array, X), pa.array(y)], [*names, TARGET])
    # A dictionary of values that hardly repeat makes files half as large again, and slower to read.
    pq.write_table(table, path, row_group_size=GROUP_ROWS, use_dictionary=False)
