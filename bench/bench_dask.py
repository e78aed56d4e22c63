"""How fast is training on the workers of a Dask cluster?

Boosters of depth 8 on rows of 28 columns that are in the memory of the workers, in eight chunks.
Workers are processes of one thread on this machine. Six comparisons:

    workers     rounds of two workers, over those of one process of two threads
    startup     from chunks to the first tree, over a first tree from arrays in one process
    peers       from chunks to the model, beside LightGBM and XGBoost on the same cluster
    bytes       bytes and messages that a worker sends, beside the formula for them: with eight
                bytes a slot, its most, and with the mean of the messages, which shows the rest;
                frames of Dask and TCP do not count
    loss        a fit whose last worker is killed at half of the rounds, over one without a loss
    slow_net    eight workers in network namespaces, with and without a limit of 1 Gbit/s each, in
                either direction; workers also wait where they have to share the cores

Each contestant has a process, and a cluster, of its own; they alternate, and the fastest run of
each figure counts. A round is the time of all rounds less that of a fit of one, so start-up is not
in it. Models of a row must have equal bytes; the exit status is 1 if not. `slow_net` needs root on
Linux and iproute2, and is left out elsewhere. Needs dask[array,dataframe] and distributed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from support import dask_counters, dask_namespaces, data, harness
from support.dask_once import Job
from support.peers import installed

FEATURES = 28
UNLIMITED = "no limit"
MOST_BYTES = 8  # of a slot
SIZES = {  # rows and rounds
    "workers": (2_000_000, 100),
    "startup": (2_000_000, 1),
    "peers": (1_000_000, 50),
    "bytes": (200_000, 20),
    "loss": (1_000_000, 50),
    "slow_net": (500_000, 20),
}
Figures = dict[str, Any]


def main() -> None:
    """Run the comparisons, print their tables and save them."""
    parser = harness.parser(__doc__, "dask")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--rows", type=int, help="of all comparisons; each has its own otherwise")
    parser.add_argument("--rounds", type=int, help="of all comparisons but startup")
    parser.add_argument("--test-rows", type=int, default=100_000, help="held out, for peers")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 3, 5, 8], help="for bytes")
    parser.add_argument("--net-workers", type=int, default=8, help="for slow_net")
    parser.add_argument("--rate", default="1gbit", help="for slow_net, as tc takes it")
    args = harness.parse(parser)
    figures = {}
    for name in args.only:
        with tempfile.TemporaryDirectory() as scratch:
            figures[name] = PARTS[name](args, problem(args, name, Path(scratch)))
    harness.save(args, figures)
    different = [name for name, one in figures.items() if one.get("equal") is False]
    if different:
        raise SystemExit(f"models differ: {', '.join(different)}")


def problem(args: argparse.Namespace, name: str, folder: Path) -> Job:
    """Write the rows of a comparison, and return a job on them."""
    rows, rounds = SIZES[name]
    data.generate(folder, args.rows or rows, FEATURES, args.test_rows)
    rounds = rounds if name == "startup" else args.rounds or rounds
    return Job("workers", str(folder), rounds)


def workers(args: argparse.Namespace, job: Job) -> Figures:
    """Time rounds of two workers and of one process of two threads."""
    jobs = {"one process": replace(job, contestant="process"), "workers": job}
    found = contest(args, jobs)
    local, spread = (found[name].get("rounds_seconds") for name in jobs)
    lines = [
        (name, one.get("rounds_seconds"), one.get("fit_seconds"), one.get("first_seconds"))
        for name, one in found.items()
    ]
    header = ("two cores", "rounds s", "with start-up s", "one round s")
    show(f"Workers, {size(args, 'workers')}", header, lines, found)
    over = {"rounds": over_or_none(spread, local)}
    over["fit"] = over_or_none(*(found[name].get("fit_seconds") for name in reversed(jobs)))
    print_ratios("two workers over one process", over)
    return {"fits": found, "over": over, "equal": equal(found)}


def startup(args: argparse.Namespace, job: Job) -> Figures:
    """Time a fit of one round from chunks, from partitions, and from arrays in one process."""
    jobs = {
        "one process, arrays": replace(job, contestant="process"),
        "workers, Dask array": job,
        "workers, Dask DataFrame": replace(job, contestant="frame"),
    }
    found = contest(args, jobs)
    local = found["one process, arrays"].get("first_seconds")
    lines = [
        (name, one.get("first_seconds"), over_or_none(one.get("first_seconds"), local))
        for name, one in found.items()
    ]
    header = ("rows", "first tree s", "x one process")
    show(f"Start-up, {size(args, 'startup')}", header, lines, found)
    return {"fits": found, "equal": equal(found)}


def peers(args: argparse.Namespace, job: Job) -> Figures:
    """Time fits of all libraries on the same cluster, start-up included."""
    names = [name for name in ("arboost", "lightgbm", "xgboost") if name in (args.peers or [name])]
    for name in [one for one in names if not installed(one)]:
        print(f"{name}: left out, not installed", file=sys.stderr)
        names.remove(name)
    found = contest(args, {name: replace(job, contestant=name) for name in names})
    ours = found.get("arboost", {}).get("fit_seconds")
    lines = [
        (
            name,
            *(one.get("fit_seconds"), over_or_none(one.get("fit_seconds"), ours)),
            *(one.get("log_loss"), one.get("auc")),
        )
        for name, one in found.items()
    ]
    header = ("two workers", "fit s", "x arboost", "log loss", "AUC")
    show(f"Peers, {size(args, 'peers')}", header, lines, found)
    return {"fits": found}


def sent_bytes(args: argparse.Namespace, job: Job) -> Figures:
    """Count what a worker sends, for several numbers of workers, beside the formula."""
    found = {}
    for n in args.workers:
        one = run(f"{n} workers", replace(job, contestant="counters", workers=n))
        found[str(n)] = one if "error" in one else one | per_round(one, n, job.rounds)
    lines = [
        (
            name,
            *(one[key] for key in ("batches", "histograms_a_batch", "messages", "mb", "most_mb")),
            *(one[key] for key in ("kb_a_batch", "slot_bytes", "over_most", "over_mean")),
        )
        for name, one in found.items()
        if "error" not in one
    ]
    header = ("workers", "batches", "histograms a batch", "messages", "MB", "MB, most")
    header += ("KB a batch", "bytes a slot", f"x formula, {MOST_BYTES} bytes", "x formula, mean")
    show(f"Sent by a worker in a round, {size(args, 'bytes')}", header, lines, found)
    return {"counts": found}


def per_round(one: Figures, n_workers: int, rounds: int) -> Figures:
    """Return what a worker sends in a round and a batch, and its quotients by the formula."""
    trees, sent, slots = one.pop("trees"), one["sent"], one["slots"]
    histograms = sum(map(sum, trees))
    n_slots = dask_counters.slots_sent(trees, slots, n_workers)
    others = dask_counters.others_sent(trees, slots, n_workers)
    # Numbers of rows are sent with histograms; there are at most as many as histograms.
    numbers = (n_workers - 1) * histograms * dask_counters.NUMBER
    mean = (sent["histogram_bytes"] - numbers) / n_slots
    return {
        "batches": sent["batches"] / rounds,
        "histograms_a_batch": histograms / sent["batches"],
        "messages": sent["messages"] / rounds,
        "mb": sent["bytes"] / rounds / 1e6,
        "most_mb": one["most_bytes"] / rounds / 1e6,
        "kb_a_batch": sent["bytes"] / sent["batches"] / 1e3,
        "slot_bytes": mean,
        "over_most": sent["bytes"] / (n_slots * MOST_BYTES + others),
        "over_mean": sent["bytes"] / (n_slots * mean + others),
    }


def loss(args: argparse.Namespace, job: Job) -> Figures:
    """Time fits with and without the loss of a worker."""
    jobs = {
        f"{n} workers": replace(job, contestant="loss", workers=n, rounds=max(2, job.rounds))
        for n in (2, 3)
    }
    found = contest(args, jobs)
    for one in found.values():
        if "error" not in one:
            one["lost_seconds"] = one["loss_seconds"] - one["fit_seconds"]
    columns = ("fit_seconds", "loss_seconds", "lost_seconds")
    lines = [(name, *map(one.get, columns)) for name, one in found.items()]
    header = ("killed: one of", "no loss s", "loss s", "more s")
    show(f"Loss of a worker, {size(args, 'loss')}", header, lines, found)
    return {"fits": found, "equal": equal(found)}


def slow_net(args: argparse.Namespace, job: Job) -> Figures:
    """Time rounds of workers in namespaces, with and without a limit of their networks."""
    reason = dask_namespaces.why_not()
    if reason is not None:
        print(f"\nslow_net: left out, {reason}")
        return {"left_out": reason}
    jobs = {name: replace(job, workers=args.net_workers) for name in (UNLIMITED, args.rate)}
    found = contest(args, jobs, in_namespaces=True)
    lines = []
    for name, one in found.items():
        if "error" in one:
            continue
        rounds = job.rounds - 1
        one["round_seconds"] = one["rounds_seconds"] / rounds
        one["mb_a_round"] = one["bytes"] / rounds / 1e6
        columns = ("round_seconds", "wait_share", "mb_a_round", "fit_seconds")
        lines.append((name, *map(one.get, columns)))
    header = (f"{args.net_workers} workers", "a round s", "share of waits", "MB a round", "fit s")
    show(f"Network, {size(args, 'slow_net')}", header, lines, found)
    return {"workers": args.net_workers, "fits": found, "equal": equal(found)}


PARTS = {
    "workers": workers,
    "startup": startup,
    "peers": peers,
    "bytes": sent_bytes,
    "loss": loss,
    "slow_net": slow_net,
}


def contest(
    args: argparse.Namespace, jobs: dict[str, Job], *, in_namespaces: bool = False
) -> Figures:
    """Return the least figures of each job; jobs alternate, and the first one rotates."""
    runs: dict[str, list[Figures]] = {name: [] for name in jobs}
    names = list(jobs)
    for repeat in range(args.repeats):
        turn = repeat % len(names)
        for name in names[turn:] + names[:turn]:
            if any("error" in one for one in runs[name]):
                continue
            rate = None if name == UNLIMITED else name
            found = run_limited(name, jobs[name], rate) if in_namespaces else run(name, jobs[name])
            runs[name].append(found)
    return {name: best(found) for name, found in runs.items()}


def run_limited(name: str, job: Job, rate: str | None) -> Figures:
    """Return the figures of one process, whose workers are in namespaces of their own."""
    with dask_namespaces.network(job.workers, rate) as network:
        return run(name, replace(job, namespaces=network.workers), network.prefix)


def run(name: str, job: Job, prefix: tuple[str, ...] = ()) -> Figures:
    """Return the figures of one process."""
    found = harness.run_alone("dask_once", asdict(job), job.workers, prefix)
    seconds = found.get("fit_seconds", found.get("first_seconds"))
    took = found.get("error") or f"{seconds:.4g} s"
    note = harness.disturbance(found.get("other_cores", 0.0))
    print(f"  {name}: {took}{note}", file=sys.stderr, flush=True)
    return found


def best(runs: list[Figures]) -> Figures:
    """Return the least of each figure over all runs, and the time of rounds after the first."""
    failed = [one for one in runs if "error" in one]
    if failed:
        return failed[0]
    found = {
        name: min(one[name] for one in runs) if name.endswith("seconds") else value
        for name, value in runs[0].items()
    }
    found["other_cores"] = max(one["other_cores"] for one in runs)
    found["models"] = sorted({one[key] for one in runs for key in one if key.startswith("model")})
    if "first_seconds" in found and "fit_seconds" in found:
        found["rounds_seconds"] = found["fit_seconds"] - found["first_seconds"]
    if "wait_seconds" in found:
        fastest = min(runs, key=lambda one: one["fit_seconds"])
        seconds = fastest["fit_seconds"] - fastest["first_seconds"]
        found["wait_share"] = fastest["wait_seconds"] / seconds
    return found


def equal(found: Figures) -> bool | None:
    """Print whether all models have the same bytes, and return it; None where a run has failed."""
    same = None
    if not any("error" in one for one in found.values()):
        same = len({model for one in found.values() for model in one["models"]}) == 1
    print(f"models are equal: {'not known' if same is None else 'yes' if same else 'NO'}")
    return same


def over_or_none(value: float | None, other: float | None) -> float | None:
    """Return the quotient of two figures; None where one is missing."""
    return None if value is None or not other else value / other


def print_ratios(what: str, ratios: dict[str, float | None]) -> None:
    """Print quotients under a table."""
    print(f"{what}: " + ", ".join(f"{name} {harness.cell(one)}" for name, one in ratios.items()))


def size(args: argparse.Namespace, name: str) -> str:
    """Return the size of a comparison in words."""
    rows, rounds = SIZES[name]
    rounds = rounds if name == "startup" else args.rounds or rounds
    return f"{args.rows or rows:,} x {FEATURES}, {rounds} rounds of depth 8"


def show(title: str, header: tuple[str, ...], lines: list[Any], found: Figures) -> None:
    """Print the table of a comparison; contestants that failed have their reason below it."""
    harness.show(title, header, lines)
    for name, one in found.items():
        if "error" in one:
            print(f"{name}: {one['error']}")


if __name__ == "__main__":
    main()
