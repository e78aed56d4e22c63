"""How fast is training on files whose codes do not fit in the memory limit?

A table of standard normals in Parquet files; 255 bins, so a byte a cell. Five comparisons:

    rounds      a round under a hard limit of half the codes, over one in memory without a limit
    xgboost     reading and rounds, compared with XGBoost's external memory under the same limit
    reading     both passes over the files, over pyarrow's reading of them into memory
    cache       first tree of a second fit, whose codes are in the cache
    no limit    a fit on files that fit in memory, over reading them and a fit on the table

The hard limit is one of the address space (RLIMIT_AS): what the process has after its imports and a
tiny fit, and --limit-mb more. With --cgroup, the same limit is also set by a memory cgroup, which
counts the page cache; the option names a memory cgroup in which another one may be made. Each
contestant has a process of its own; they alternate, and the fastest run of each counts. Times of
libraries that the limit ends are left out, with the reason. Needs pyarrow.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from support import harness, memory_limits
from support.parquet_files import written
from support.peers import installed
from support.stream_once import Job

TINY_ROWS = 2000
ADDRESS_SPACE = "address space"
LIMIT_ROW_BYTES, FEWEST_MB = 70, 100  # too little for codes of 28 columns in memory
# Each arena of glibc, up to eight a core, reserves 64 MB of address space.
FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}
Figures = dict[str, dict[str, Any]]


def main() -> None:
    """Run the comparisons, print their tables and save them."""
    parser = harness.parser(__doc__, "out_of_core")
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--narrow-rows", type=int, default=10_000_000, help="of 28 columns")
    parser.add_argument("--limit-mb", type=float, default=400, help="beyond the interpreter")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="Parquet files, kept; else a temporary one")
    parser.add_argument("--cgroup", type=Path, help="memory cgroup, for another one inside it")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="tiny tables and limits")
    args = harness.parse(parser)
    if args.quick:
        args.rows, args.features, args.narrow_rows, args.limit_mb = 200_000, 20, 200_000, 120
        args.rounds, args.repeats = 3, 1
    os.environ.update(FEW_ARENAS)
    with ExitStack() as stack:
        args.scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=args.folder)))
        args.folder = args.folder or args.scratch
        figures = {name: PARTS[name](args) for name in args.only}
    bars = [bar for part in figures.values() for bar in part.pop("bars")]
    harness.show(
        "Bars",
        ("work", "measured", "bar", "stretch"),
        [(bar["work"], bar["value"], bar["bar"], bar["stretch"]) for bar in bars],
    )
    sizes = {name: getattr(args, name) for name in ("rounds", "threads", "limit_mb")}
    harness.save(args, sizes | figures | {"bars": bars})


def job_on(args: argparse.Namespace, contestant: str, rows: int, features: int) -> Job:
    """Return a job on the files of a table, without limits."""
    return Job(
        contestant,
        folder=str(written(args.folder, rows, features)),
        tiny=str(written(args.folder, TINY_ROWS, features)),
        scratch=str(args.scratch),
        threads=args.threads,
        rounds=args.rounds,
    )


def rounds(args: argparse.Namespace) -> dict[str, Any]:
    """Time rounds in memory and under the limit, and XGBoost's external memory."""
    memory = job_on(args, "memory", args.rows, args.features)
    limited = {
        f"arboost, {name}": replace(memory, contestant="stream", limit_mb=args.limit_mb, hard=hard)
        for name, hard in hard_limits(args).items()
    }
    jobs = {"arboost, in memory": memory} | limited
    if installed("xgboost") and "xgboost" in (args.peers or ["xgboost"]):
        jobs["xgboost, no limit"] = replace(memory, contestant="xgboost")
        jobs |= {
            name.replace("arboost", "xgboost"): replace(job, contestant="xgboost")
            for name, job in limited.items()
        }
    found = contest(args, jobs)
    size = f"{args.rows:,} x {args.features}, {args.rounds} rounds of depth 8"
    show(f"Files, {size}, {args.limit_mb:g} MB, {args.threads} threads", found)
    bars = []
    for name in limited:
        place = name.removeprefix("arboost, ")
        slower = quotient(found, "fit_seconds", name, "arboost, in memory")
        bars.append(bar(f"a round, {place}, over one in memory", slower, 2.0, 1.3))
        # XGBoost without a limit stands for one that the limit ends.
        rivals = [name.replace("arboost", "xgboost"), "xgboost, no limit"]
        rival = next((one for one in rivals if "seconds" in found.get(one, {})), rivals[-1])
        faster = quotient(found, "seconds", rival, name)
        bars.append(bar(f"{place}, faster than {rival}", faster, 3.0, 5.0, less=False))
    return {"rows": args.rows, "features": args.features, "fits": found, "bars": kept(bars)}


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """Time both passes over the files, and pyarrow's reading."""
    once = job_on(args, "pyarrow", args.narrow_rows, 28)
    bins = replace(once, contestant="bins")
    limited = replace(bins, limit_mb=max(FEWEST_MB, LIMIT_ROW_BYTES * args.narrow_rows / 1e6))
    jobs = {"pyarrow, once": once, "arboost, codes in a file": limited, "arboost, no limit": bins}
    found = contest(args, jobs)
    show(f"Reading, {args.narrow_rows:,} x 28, {args.threads} threads", found)
    slower = quotient(found, "seconds", "arboost, codes in a file", "pyarrow, once")
    bars = [bar("reading and binning, over pyarrow's reading", slower, 2.5, 1.5)]
    return {"rows": args.narrow_rows, "fits": found, "bars": kept(bars)}


def cache(args: argparse.Namespace) -> dict[str, Any]:
    """Time the first tree of fits whose codes are in the cache; the import does not count."""
    job = replace(job_on(args, "first tree", args.narrow_rows, 28), rounds=1)
    first = run("first fit", job)
    found = {"first fit": first} | contest(args, {"second fit": job})
    show(f"Cache, {args.narrow_rows:,} x 28, one tree, {args.threads} threads", found)
    bars = [bar("first tree from the cache", found["second fit"].get("seconds"), 1.0, 0.2, "s")]
    return {"rows": args.narrow_rows, "fits": found, "bars": kept(bars)}


def no_limit(args: argparse.Namespace) -> dict[str, Any]:
    """Time fits on files that fit in memory, and on the table that pyarrow reads."""
    job = job_on(args, "table", args.narrow_rows, 28)
    found = contest(args, {"table": job, "files": replace(job, contestant="files")})
    show(f"No limit, {args.narrow_rows:,} x 28, {args.rounds} rounds", found)
    slower = quotient(found, "seconds", "files", "table")
    bars = [bar("fit on files that fit in memory, over the table", slower, 1.1, 1.0)]
    return {"rows": args.narrow_rows, "fits": found, "bars": kept(bars)}


PARTS = {"rounds": rounds, "reading": reading, "cache": cache, "no limit": no_limit}


def hard_limits(args: argparse.Namespace) -> dict[str, str]:
    """Return the hard limits of this run, by their names in tables."""
    limits = {"limited address space": ADDRESS_SPACE}
    return limits if args.cgroup is None else limits | {"memory cgroup": str(args.cgroup)}


def contest(args: argparse.Namespace, jobs: dict[str, Job]) -> Figures:
    """Return the figures of the fastest run of each job; jobs alternate, the first one rotates."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in jobs}
    names = list(jobs)
    for repeat in range(args.repeats):
        turn = repeat % len(names)
        for name in names[turn:] + names[:turn]:
            if not any("error" in one for one in runs[name]):
                runs[name].append(run(name, jobs[name]))
    return {
        name: min(found, key=lambda one: one.get("seconds", float("inf")))
        for name, found in runs.items()
    }


def run(name: str, job: Job) -> dict[str, Any]:
    """Return the figures of one process, in a memory cgroup of its own where the job names one."""
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(dir=job.scratch))
        if job.contestant != "first tree":  # whose cache stays
            job = replace(job, scratch=scratch)
        if job.hard not in (None, ADDRESS_SPACE):
            limit = int((job.limit_mb or 0) * 10**6)
            group = memory_limits.memory_group(Path(str(job.hard)), limit)
            job = replace(job, hard=str(stack.enter_context(group)))
        figures = harness.run_alone("stream_once", asdict(job), job.threads)
    took = figures.get("error") or f"{figures['seconds']:.4g} s"
    note = harness.disturbance(figures.get("other_cores", 0.0))
    print(f"  {name}: {took}{note}", file=sys.stderr, flush=True)
    return figures


def show(title: str, found: Figures) -> None:
    """Print the table of a comparison; contestants that failed have their reason below it."""
    columns = ("seconds", "read_seconds", "fit_seconds", "peak_mb", "space_mb", "group_peak_mb")
    lines = [(name, *map(one.get, columns)) for name, one in found.items() if "error" not in one]
    header = ("contestant", "all s", "read s", "fit s", "peak MB", "addresses MB", "cgroup MB")
    harness.show(title, header, lines)
    for name, one in found.items():
        if "error" in one:
            print(f"{name}: {one['error']}")


def quotient(found: Figures, figure: str, over: str, under: str) -> float | None:
    """Return the quotient of a figure of two contestants; None where one has none."""
    values = [found.get(name, {}).get(figure) for name in (over, under)]
    return None if None in values else values[0] / values[1]


def bar(
    work: str,
    value: float | None,
    bar: float,
    stretch: float,
    unit: str = "x",
    *,
    less: bool = True,
) -> dict[str, Any]:
    """Return a bar as `support.table.Bar` takes it."""
    return {
        "work": work,
        "value": value,
        "bar": bar,
        "stretch": stretch,
        "unit": unit,
        "less_is_better": less,
    }


def kept(bars: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the bars that were measured."""
    return [one for one in bars if one["value"] is not None]


if __name__ == "__main__":
    main()
