"""Run every benchmark in sequence, then print the table of targets and measured values.

This is `make bench`. With --quick the sizes are tiny and no results are kept: a check that the
benchmarks run, not a measurement.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from support import harness, table

FULL: dict[str, list[str]] = {
    "bench_train.py": [],
    "bench_settings.py": [],
    "bench_small.py": [],
    "bench_load.py": [],
    "bench_exact.py": [],
    "bench_approx.py": [],
    "bench_sampling.py": [],
    "bench_sparse.py": [],
    "bench_out_of_core.py": [],
    "bench_dask.py": [],
    "bench_custom_loss.py": [],
    "bench_ranking.py": [],
    "bench_cv.py": [],
    "bench_tune.py": [],
    "bench_explain.py": [],
    "bench_report.py": [],
    "bench_cli.py": [],
    "bench_adaboost.py": [],
    "bench_forest.py": [],
    "bench_bagging.py": [],
    "bench_files.py": [],
    "bench_shap.py": [],
    "bench_predict.py": [],
    "bench_import.py": ["--build"],
    "bench_binning.py": [],
    "bench_kernels.py": [],
}
TINY = ["--rows", "20000", "--rounds", "5", "--repeats", "1"]
QUICK: dict[str, list[str]] = {
    "bench_train.py": TINY,
    "bench_settings.py": TINY,
    "bench_small.py": ["--repeats", "1", "--fits", "2", "--rounds", "10"],
    "bench_load.py": TINY,
    "bench_exact.py": ["--rows", "5000", "--rounds", "5", "--few", "1", "--repeats", "1"],
    "bench_approx.py": TINY,
    "bench_sampling.py": TINY,
    "bench_sparse.py": TINY,
    "bench_out_of_core.py": ["--quick"],
    "bench_dask.py": [*TINY, "--only", "workers", "peers", "bytes", "--workers", "2"],
    "bench_custom_loss.py": TINY,
    "bench_ranking.py": [
        *("--rows", "4000", "--features", "10", "--rounds", "5", "--leaves", "15"),
        *("--seeds", "1"),
    ],
    "bench_cv.py": TINY,
    "bench_tune.py": ["--rows", "2000", "--trials", "4", "--repeats", "1"],
    "bench_explain.py": ["--rows", "500", "--rounds", "5", "--repeats", "1"],
    "bench_report.py": ["--rows", "500", "--rounds", "5", "--repeats", "1"],
    "bench_cli.py": ["--rows", "20000", "--predicted", "50000", "--repeats", "1"],
    "bench_adaboost.py": ["--rows", "4000", "--rounds", "10", "--few", "2", "--repeats", "1"],
    "bench_forest.py": ["--rows", "2000", "--trees", "20", "--few", "4", "--repeats", "1"],
    "bench_bagging.py": [
        *("--rows", "2000", "--bag-rows", "20000", "--boosters", "5", "--rounds", "5"),
        *("--trees", "5", "--repeats", "1"),
    ],
    "bench_files.py": ["--rows", "3000", "--rounds", "10", "--trees", "5", "--repeats", "1"],
    "bench_shap.py": [
        *("--rows", "200", "--pair-rows", "8", "--train-rows", "2000", "--trees", "20"),
        *("--repeats", "1"),
    ],
    "bench_predict.py": [*TINY, "--predict-rows", "2000", "1"],
    "bench_threads.py": TINY,
    "bench_import.py": ["--repeats", "2"],
}
MANY_CORES = 8  # fewer cores show no scaling


def main() -> None:
    """Run the scripts; with failures, print their names at the end and exit with status 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, results not kept")
    parser.add_argument("--table", action="store_true", help="only print the stored results")
    args = parser.parse_args()
    if args.table:
        table.show(harness.RESULTS)
        return
    scripts = dict(QUICK if args.quick else FULL)
    if not args.quick and harness.cores() >= MANY_CORES:
        scripts["bench_threads.py"] = []
    with tempfile.TemporaryDirectory() as scratch:
        extra = ["--results", scratch] if args.quick else []
        failed = [name for name, options in scripts.items() if not _run(name, options + extra)]
        table.show(Path(scratch) if args.quick else harness.RESULTS)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _run(name: str, options: list[str]) -> bool:
    script = harness.BENCH / name
    print(f"\n== {name}", flush=True)
    if not script.exists():
        print("not found, left out")
        return True
    return subprocess.run([sys.executable, str(script), *options], check=False).returncode == 0


if __name__ == "__main__":
    main()
