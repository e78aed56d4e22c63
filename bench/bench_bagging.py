"""How much memory do bagged boosters need, and how fast are stacks next to scikit-learn's?

Bagged boosters share one binned table, so 50 boosters should need little more memory than one. Each
figure is the peak of a separate process, minus the memory that was resident before the fit, with
the data loaded.

Both stacks have five members, scikit-learn's of its own estimators:

    arboost                       scikit-learn
    GradientBoostingClassifier    HistGradientBoostingClassifier    depth 6, rate 0.1
    RandomForestClassifier        RandomForestClassifier            full depth
    ExtraTreesClassifier          ExtraTreesClassifier              full depth
    AdaBoostClassifier            AdaBoostClassifier                trees of depth 3
    DecisionTreeClassifier        DecisionTreeClassifier            leaves of 20 rows or more

Both have five folds and scikit-learn's LogisticRegression as final estimator, so each member is
fitted six times. scikit-learn takes minutes; --rows and --trees shorten the run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from support import data, harness
from support.bagging_once import Job

FEATURES = 28
ONE, MANY = "one booster", "bagged boosters"
OURS, THEIRS = "arboost", "scikit-learn"
# Members in sequence with all threads each, or members in parallel; the faster counts.
VARIANTS = {OURS: (OURS, "arboost-at-a-time"), THEIRS: (THEIRS,)}
WORDS = {
    OURS: "threads inside members",
    "arboost-at-a-time": "members in parallel",
    THEIRS: "members in parallel",
}


def main() -> None:
    """Run both comparisons, print and save their tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="of the stacks")
    parser.add_argument("--bag-rows", type=int, default=1_000_000)
    parser.add_argument("--boosters", type=int, default=50)
    parser.add_argument("--bag-rounds", type=int, default=10, help="of each bagged booster")
    parser.add_argument("--rounds", type=int, default=100, help="of the stacked booster")
    parser.add_argument("--trees", type=int, default=30, help="of stacked forests and AdaBoost")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2, help="of the stacks: the fastest counts")
    parser.add_argument("--results", type=Path, default=harness.RESULTS)
    parser.set_defaults(name="bagging")
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        figures = {"memory": memory(args, Path(scratch)), "stacking": stacking(args, Path(scratch))}
    harness.save(args, {"threads": args.threads} | figures)


def memory(args: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Peak memory of one booster and of bagged boosters."""
    folder = data.generate(scratch / "bag", args.bag_rows, FEATURES, test_rows=1000)
    job = Job(ONE, str(folder), args.threads, rounds=args.bag_rounds, boosters=args.boosters)
    fits = {name: run(replace(job, contestant=name)) for name in (ONE, MANY)}
    names = {ONE: ONE, MANY: f"{args.boosters} bagged boosters"}
    lines = [
        (names[name], one["seconds"], one["peak_mb"], one["peak_mb"] / fits[ONE]["peak_mb"])
        for name, one in fits.items()
    ]
    size = f"{args.bag_rows:,} x {FEATURES}, {args.bag_rounds} rounds, {args.threads} threads"
    harness.show(f"Memory, {size}", ("work", "time s", "peak MB", "x one"), lines)
    return {"rows": args.bag_rows, "boosters": args.boosters, "fits": fits}


def stacking(args: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Times and scores of the two stacks; contestants alternate, and the first one rotates."""
    folder = data.generate(scratch / "stack", args.rows, FEATURES)
    job = Job(OURS, str(folder), args.threads, rounds=args.rounds, trees=args.trees)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in VARIANTS}
    for repeat in range(args.repeats):
        names = list(VARIANTS)
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            for variant in VARIANTS[name]:
                figures = run(replace(job, contestant=variant))
                runs[name].append(figures | {"variant": WORDS[variant]})
    best = {name: min(found, key=lambda one: one["seconds"]) for name, found in runs.items()}
    lines = [
        (
            name,
            one["variant"],
            one["seconds"],
            harness.ratio(best, name),
            one["predict_seconds"],
            one["peak_mb"],
            f"{one['auc']:.4f}",
        )
        for name, one in best.items()
    ]
    header = ("library", "threads", "fit s", "x ours", "predict s", "peak MB", "AUC")
    size = f"{args.rows:,} x {FEATURES}, booster of {args.rounds} rounds, {args.trees} trees"
    harness.show(
        f"Stacks of five members, five folds, {size}, {args.threads} threads", header, lines
    )
    print("Memory is that of the main process; scikit-learn fits members in worker processes.")
    return {"rows": args.rows, "rounds": args.rounds, "trees": args.trees, "fits": best}


def run(job: Job) -> dict[str, Any]:
    """Figures of one contestant in a fresh process."""
    # scikit-learn's members run in parallel processes: OpenMP threads would oversubscribe cores.
    of_openmp = 1 if job.contestant == THEIRS else job.threads
    figures = harness.run_alone("bagging_once", asdict(job), of_openmp)
    if "error" in figures:
        raise SystemExit(f"{job.contestant} failed: {figures['error']}")
    others = figures["other_cores"]
    note = harness.disturbance(others)
    seconds = figures["seconds"]
    print(f"  {job.contestant}: {seconds:.4g} s{note}", file=sys.stderr, flush=True)
    return figures


if __name__ == "__main__":
    main()
