"""Parts of every benchmark: contests between libraries, tables, JSON results."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from support.peers import PEERS, STANDARD, installed
from support.shape import Shape

BENCH = Path(__file__).resolve().parents[1]
RESULTS = BENCH / "results"
# A candidate (variant, thread count) is not run again if the first repeat shows it slower than the
# fastest candidate of its contestant by this factor.
KEEP_WITHIN = 1.10
OTHERS = (
    ("ydf",),
    ("zstandard",),
    ("pyarrow",),
    ("dask",),
    ("distributed",),
)  # distributions that only one benchmark uses
BUSY = 0.2  # cores used by other processes; above it, a run counts as disturbed


@dataclass(frozen=True)
class Job:
    """One run of one contestant in a fresh process."""

    peer: str
    folder: str
    shape: Shape
    rounds: int
    threads: int
    variant: str = "default"
    fits: int = 1  # fits inside the process; the fastest counts
    quality: bool = True


def run(job: Job) -> dict[str, Any]:
    """Figures of a job in a fresh process, or {"error": reason}.

    The figure `other_cores` is the number of cores that other processes used meanwhile. OpenMP's
    spinning barriers make the peers up to ten times slower under load, so a comparison is valid
    only if `other_cores` is near zero.
    """
    return run_alone("fit_once", asdict(job), job.threads)


def run_alone(
    module: str, job: dict[str, Any], threads: int, prefix: Sequence[str] = ()
) -> dict[str, Any]:
    """Run a module of `support` in a fresh process, with the job as its JSON argument.

    Returns the figures that the module prints on its last line, with `other_cores`; or
    {"error": reason}. `prefix` is a command that runs another one.
    """
    command, env = process(module, json.dumps(job), threads)
    command = [*prefix, *command]
    start, before = time.perf_counter(), others_seconds()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    others = (others_seconds() - before) / (time.perf_counter() - start)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1]) | {"other_cores": round(others, 2)}
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return {"error": lines[-1]}


def process(module: str, argument: str, threads: int) -> tuple[list[str], dict[str, str]]:
    """Command and environment of a fresh process for a module of `support`."""
    # -P: the current folder may hold another package named support.
    command = [sys.executable, "-P", "-m", f"support.{module}", argument]
    path = os.pathsep.join(filter(None, (str(BENCH), os.environ.get("PYTHONPATH"))))
    # scikit-learn reads its number of threads from the environment only.
    return command, os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": str(threads)}


def contestants(names: Sequence[str] | None, shape: Shape) -> list[str]:
    """Installed contestants that can grow `shape`; prints the ones that are not installed."""
    chosen = []
    for name in names or list(STANDARD):
        if not installed(name):
            package = PEERS[name].distributions[0]
            print(f"{name}: left out, not installed (pip install {package})", file=sys.stderr)
        elif PEERS[name].supports(shape):
            chosen.append(name)
    if not chosen:
        raise SystemExit("no contestant is installed: install arboost or one of the peers")
    return chosen


def variants(job: Job) -> list[Job]:
    """The job once for each variant of its library."""
    return [replace(job, variant=variant) for variant in PEERS[job.peer].variants]


def contest(candidates: dict[str, list[Job]], repeats: int) -> dict[str, dict[str, Any]]:
    """Fastest figures of each contestant; contestants alternate, and the first one rotates.

    A contestant may have several candidates. All run in the first repeat. Later repeats run only
    the candidates near the fastest, unless a run was disturbed.
    """
    runs: dict[str, dict[Job, list[dict[str, Any]]]] = {
        name: {job: [] for job in jobs} for name, jobs in candidates.items()
    }
    names = list(candidates)
    for repeat in range(repeats):
        turn = repeat % len(names) if names else 0
        for name in names[turn:] + names[:turn]:
            for job in _worth_running(runs[name]):
                figures = run(job)
                runs[name][job].append(figures)
                _progress(repeat, job, figures)
    return {name: _summary(by_job) for name, by_job in runs.items()}


def _worth_running(by_job: dict[Job, list[dict[str, Any]]]) -> list[Job]:
    figures = [one for runs in by_job.values() for one in runs]
    if not figures or any(one.get("other_cores", 0.0) > BUSY for one in figures):
        return list(by_job)  # no figures yet, or disturbed ones
    best = {job: _fastest(runs)["seconds"] for job, runs in by_job.items()}
    limit = KEEP_WITHIN * min(best.values())
    return [job for job, seconds in best.items() if seconds <= limit < float("inf")]


def _fastest(figures: list[dict[str, Any]]) -> dict[str, Any]:
    return min(({"seconds": float("inf")} | one for one in figures), key=lambda one: one["seconds"])


def _summary(by_job: dict[Job, list[dict[str, Any]]]) -> dict[str, Any]:
    """Figures of the fastest run, with the times of all runs of all candidates."""
    job = min(by_job, key=lambda one: _fastest(by_job[one])["seconds"])
    best = _fastest(by_job[job])
    if "error" in best:
        return {"error": best["error"]}
    tried = [
        {"variant": one.variant, "threads": one.threads}
        | {"seconds": [round(f["seconds"], 6) for f in figures if "seconds" in f]}
        for one, figures in by_job.items()
    ]
    return best | {"variant": job.variant, "threads": job.threads, "tried": tried}


def _progress(repeat: int, job: Job, figures: dict[str, Any]) -> None:
    took = f"{figures['seconds']:.4g} s" if "seconds" in figures else figures["error"]
    what = f"{job.peer} ({job.variant}, {job.threads} threads, {job.shape})"
    others = figures.get("other_cores", 0.0)
    note = disturbance(others)
    print(f"  repeat {repeat + 1}: {what}: {took}{note}", file=sys.stderr, flush=True)


def disturbance(others: float) -> str:
    """Warning for a run during which other processes used this many cores; empty if few."""
    return f"  DISTURBED: other processes used {others:.2g} cores" if others > BUSY else ""


def ratio(
    figures: dict[str, dict[str, Any]], name: str, ours_name: str = "arboost"
) -> float | None:
    """Time of `name` divided by the time of arboost; None if either did not run."""
    ours, theirs = figures.get(ours_name, {}), figures.get(name, {})
    if "seconds" not in ours or "seconds" not in theirs:
        return None
    return theirs["seconds"] / ours["seconds"]


def show(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; numbers with four significant digits, None as a dash."""
    cells = [list(header)] + [[cell(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    print(f"\n{title}")
    for first, *rest in cells:
        padded = [text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *padded]))


def cell(value: Any) -> str:
    """Text of one table cell."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def parser(description: str | None, name: str) -> argparse.ArgumentParser:
    """Parser with the arguments that every benchmark has."""
    made = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    made.add_argument("--repeats", type=int, default=3, help="the fastest counts")
    made.add_argument("--peers", nargs="+", choices=list(PEERS), help="contestants")
    made.add_argument("--results", type=Path, default=RESULTS, help="folder for JSON")
    made.set_defaults(name=name)
    return made


def parse(made: argparse.ArgumentParser) -> argparse.Namespace:
    """Parsed arguments, with `busy_cores`, the machine's load before the start."""
    args = made.parse_args()
    args.busy_cores = busy_cores()
    if args.busy_cores > BUSY:
        print(f"other processes use {args.busy_cores} cores: times are not valid", file=sys.stderr)
    return args


def save(args: argparse.Namespace, figures: Any) -> None:
    """Write the figures with machine, versions, date and command."""
    words = [word if "/" not in word else Path(word).name for word in sys.argv[1:]]
    result = {
        "benchmark": args.name,
        "command": " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *words]),
        "date": datetime.date.today().isoformat(),
        "machine": machine() | {"busy_cores_before": args.busy_cores},
        "versions": versions(),
        "figures": figures,
    }
    args.results.mkdir(parents=True, exist_ok=True)
    path = args.results / f"{args.name}.json"
    unfinished = path.with_suffix(".tmp")  # a run that is stopped keeps the last results
    unfinished.write_text(json.dumps(result, indent=1) + "\n")
    unfinished.replace(path)


def machine() -> dict[str, Any]:
    """CPU, cores available to this process, memory and system."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return {
        "cpu": cpu,
        "architecture": platform.machine(),
        "cores": cores(),
        "memory_gb": memory,
        "system": platform.system(),
    }


def busy_cores(seconds: float = 1.0) -> float:
    """Cores that other processes use now. The load average would count ended processes."""
    before = others_seconds()
    time.sleep(seconds)
    return round((others_seconds() - before) / seconds, 2)


def others_seconds() -> float:
    """CPU seconds of other processes since the system started; 0 on systems without /proc."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, stat.read_text().split()[1:9])
    ours = os.times()
    busy = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
    return busy - sum(ours[:4])  # this process and its children


def cores() -> int:
    """Number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Versions of Python, NumPy and every installed contestant."""
    found = {"python": platform.python_version(), "numpy": metadata.version("numpy")}
    for names in [*(peer.distributions for peer in PEERS.values()), *OTHERS]:
        for name in names:
            try:
                found[name] = metadata.version(name)
                break
            except metadata.PackageNotFoundError:
                continue
    return found
