"""One contestant on Parquet files in a fresh process: read, fit, and print the figures as JSON.

Called by bench_out_of_core.py with one JSON argument. The libraries are imported and their threads
are started (by a tiny fit) before the limit is set and the clock starts.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support import memory_limits
from support.fit_once import PeakMemory
from support.parquet_files import TARGET
from support.shape import LEARNING_RATE, MAX_BINS


@dataclass(frozen=True)
class Job:
    """One contestant, its files and its limits."""

    contestant: str
    folder: str  # Parquet files
    tiny: str  # the same with few rows, for the first fit
    scratch: str  # on the disk of the files
    threads: int
    rounds: int = 1
    max_depth: int = 8
    limit_mb: float | None = None  # beyond the interpreter, with all that is imported
    hard: str | None = None  # "address space", or the folder of a memory cgroup


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    job = Job(**json.loads(sys.argv[1]))
    pa.set_cpu_count(job.threads)
    pa.set_io_thread_count(job.threads)
    run = CONTESTANTS[job.contestant]
    run(replace(job, folder=job.tiny, scratch=f"{job.scratch}/tiny", rounds=1))
    gc.collect()
    set_limit(job)
    peak, space = PeakMemory(), memory_limits.address_space_mb("VmSize")
    try:
        figures = run(job)
    except Exception as error:  # of any library: its first line says why
        reason = (str(error).splitlines() or [""])[0]
        raise SystemExit(f"{type(error).__name__}: {reason}") from None
    figures |= {"peak_mb": peak.beyond_start_mb(), "start_mb": peak.start}
    figures["space_mb"] = memory_limits.address_space_mb("VmPeak") - space
    if job.hard not in (None, "address space"):
        figures["group_peak_mb"] = memory_limits.peak_mb(Path(str(job.hard)))
    print(json.dumps(figures))


def set_limit(job: Job) -> None:
    """Set the hard limit of this process."""
    if job.hard == "address space":
        memory_limits.limit_address_space(int((job.limit_mb or 0) * 10**6))
    elif job.hard is not None:
        memory_limits.join(Path(job.hard))


def clocked(**steps: Callable[[Any], Any]) -> dict[str, float]:
    """Return the seconds of each step, which takes the result of the last one, and of all."""
    figures: dict[str, float] = {"seconds": 0.0}
    result = None
    for name, step in steps.items():
        start = time.perf_counter()
        result = step(result)
        figures[f"{name}_seconds"] = time.perf_counter() - start
    return figures | {"seconds": sum(figures.values())}


def _estimator(job: Job) -> Any:
    from arboost import GradientBoostingRegressor

    return GradientBoostingRegressor(
        n_estimators=job.rounds,
        learning_rate=LEARNING_RATE,
        max_depth=job.max_depth,
        min_child_weight=1.0,
        min_samples_leaf=1,
        reg_lambda=1.0,
        max_bins=MAX_BINS,
        n_jobs=job.threads,
        random_state=0,
        verbose=0,
    )


def _limits(job: Job) -> dict[str, Any]:
    return {} if job.limit_mb is None else {"memory_limit": int(job.limit_mb * 10**6)}


def _dataset(job: Job, **params: Any) -> Any:
    from arboost import Dataset

    return Dataset.from_files(
        f"{job.folder}/*.parquet",
        target=TARGET,
        max_bins=MAX_BINS,
        n_jobs=job.threads,
        verbose=0,
        **_limits(job),
        **params,
    )


def _stream(job: Job) -> dict[str, float]:
    """arboost from files, within the limit."""
    return clocked(read=lambda _: _dataset(job), fit=_estimator(job).fit)


def _memory(job: Job) -> dict[str, float]:
    """arboost from a table that pyarrow has read."""
    from arboost import Dataset

    def read(_: Any) -> Any:
        table = pq.read_table(job.folder)
        y = table[TARGET].to_numpy()
        X = table.drop_columns([TARGET])
        return Dataset(X, y, max_bins=MAX_BINS, n_jobs=job.threads)

    return clocked(read=read, fit=_estimator(job).fit)


def _read(job: Job) -> dict[str, float]:
    """pyarrow reads the files once."""
    return clocked(read=lambda _: pq.read_table(job.folder))


def _bins(job: Job) -> dict[str, float]:
    """Both passes of arboost over the files."""
    return clocked(read=lambda _: _dataset(job))


def _first_tree(job: Job) -> dict[str, float]:
    """arboost from files; the cache may have the codes already."""
    cache = Path(job.scratch) / "cache"
    return clocked(read=lambda _: _dataset(job, cache=cache), fit=_estimator(job).fit)


def _files(job: Job) -> dict[str, float]:
    """A fit of arboost on files, without a limit."""
    return clocked(fit=lambda _: _estimator(job).fit(f"{job.folder}/*.parquet", TARGET))


def _table(job: Job) -> dict[str, float]:
    """A fit of arboost on the table that pyarrow reads."""
    return clocked(
        read=lambda _: pq.read_table(job.folder),
        fit=lambda table: _estimator(job).fit(table, TARGET),
    )


def _xgboost(job: Job) -> dict[str, float]:
    """XGBoost's external memory: a batch for each row group, its cache on the disk of the files."""
    import xgboost

    class Groups(xgboost.DataIter):
        def __init__(self) -> None:
            Path(job.scratch).mkdir(parents=True, exist_ok=True)
            self._groups = _row_groups(job.folder)
            super().__init__(cache_prefix=f"{job.scratch}/xgboost")

        def next(self, input_data: Callable[..., Any]) -> bool:
            batch = next(self._groups, None)
            if batch is not None:
                input_data(data=batch[0], label=batch[1])
            return batch is not None

        def reset(self) -> None:
            self._groups = _row_groups(job.folder)

    params = {
        "tree_method": "hist",
        "max_depth": job.max_depth,
        "learning_rate": LEARNING_RATE,
        "min_child_weight": 1.0,
        "reg_lambda": 1.0,
        "max_bin": MAX_BINS,
        "nthread": job.threads,
        "verbosity": 0,
    }
    return clocked(
        read=lambda _: xgboost.ExtMemQuantileDMatrix(
            Groups(), max_bin=MAX_BINS, nthread=job.threads
        ),
        fit=lambda data: xgboost.train(params, data, job.rounds),
    )


def _row_groups(folder: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for path in sorted(Path(folder).glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                table = file.read_row_group(number)
                y = table[TARGET].to_numpy()
                columns = table.drop_columns([TARGET]).columns
                X = np.empty((len(y), len(columns)), np.float32)
                for j, column in enumerate(columns):
                    X[:, j] = column.to_numpy()
                del table, columns
                yield X, y


CONTESTANTS: dict[str, Callable[[Job], dict[str, float]]] = {
    "stream": _stream,
    "memory": _memory,
    "xgboost": _xgboost,
    "pyarrow": _read,
    "bins": _bins,
    "first tree": _first_tree,
    "files": _files,
    "table": _table,
}


if __name__ == "__main__":
    main()
