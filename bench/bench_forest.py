"""How fast, accurate and large are forests compared with scikit-learn's and YDF's?

scikit-learn takes seconds for each tree of 100,000 x 28, and longer with all features at each node,
so it gets few trees in all contests but the first. Times are then compared per tree; our time
includes binning and other set-up. Scores, prediction times and sizes of saved models are those of
forests with scikit-learn's number of trees.

The last table is the time of a tree of full depth next to one of depth 8, in one thread: per row
and candidate feature, and also per level. The levels of a row are the splits on its path.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from support import data, harness
from support.forest_once import Job, installed

OURS, THEIRS = "arboost", "scikit-learn"
FEATURES = 28
DRAWN = 5  # candidate features of a classifier's node: square root of 28
DEPTH = 8
COST_FITS = 3
BYTES_PER_MB = 2**20


@dataclass(frozen=True)
class Contest:
    """One comparison: the job, the rows, and the trees of each contestant."""

    title: str
    job: Job  # contestant and trees are filled in later
    rows: int
    trees: dict[str, int]

    @property
    def shared_trees(self) -> int:
        """Largest number of trees that every contestant grows."""
        return min(self.trees.values())


def main() -> None:
    """Run the contests and the cost measurements, print and save their tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="max_samples: ten times as many")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--few", type=int, default=20, help="scikit-learn's trees after contest 1")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest counts")
    parser.add_argument("--only", nargs="+", choices=[*NAMES, "depth"], help="comparisons to run")
    parser.add_argument("--results", type=Path, default=harness.RESULTS)
    parser.set_defaults(name="forest")
    args = harness.parse(parser)
    asked = args.only or [*NAMES, "depth"]
    figures: dict[str, Any] = {"threads": args.threads, "contests": {}}
    with tempfile.TemporaryDirectory() as scratch:
        for name in filter(asked.__contains__, NAMES):
            contest = NAMES[name](args, Path(scratch))
            found = {"title": contest.title, "rows": contest.rows, "fits": compete(contest, args)}
            figures["contests"][name] = found
        if "depth" in asked:
            figures["cost_of_depth"] = cost_of_depth(args, Path(scratch))
    harness.save(args, figures)


def _classes(args: argparse.Namespace, scratch: Path) -> Contest:
    folder = _labels(scratch, args.rows)
    job = Job(OURS, folder, "random_forest", "classifier", 0, args.threads, oob_score=True)
    names = _present([OURS, THEIRS, "ydf", "ydf-bins"])
    trees = dict.fromkeys(names, args.trees)
    return Contest("RandomForestClassifier, out of bag", job, args.rows, trees)


def _numbers(args: argparse.Namespace, scratch: Path) -> Contest:
    folder = data.regression(scratch / "regression", args.rows, FEATURES)
    job = Job(OURS, str(folder), "random_forest", "regressor", 0, args.threads, oob_score=True)
    title = "RandomForestRegressor, out of bag"
    return Contest(title, job, args.rows, _counts(args, args.few // 2))


def _many_rows(args: argparse.Namespace, scratch: Path) -> Contest:
    rows = 10 * args.rows
    folder = _labels(scratch, rows)
    job = Job(OURS, folder, "random_forest", "classifier", 0, args.threads, max_samples=0.1)
    return Contest("RandomForestClassifier, max_samples=0.1", job, rows, _counts(args, args.few))


def _extra(args: argparse.Namespace, scratch: Path) -> Contest:
    job = Job(OURS, _labels(scratch, args.rows), "extra_trees", "classifier", 0, args.threads)
    return Contest("ExtraTreesClassifier", job, args.rows, _counts(args, args.few))


NAMES = {"classes": _classes, "numbers": _numbers, "many_rows": _many_rows, "extra": _extra}


def _labels(scratch: Path, rows: int) -> str:
    """Folder of a binary classification problem, written at the first call."""
    folder = scratch / f"labels{rows}"
    return str(folder if folder.exists() else data.generate(folder, rows, FEATURES))


def _counts(args: argparse.Namespace, few: int) -> dict[str, int]:
    few = max(1, min(few, args.trees))
    return {name: few if name == THEIRS else args.trees for name in _present([OURS, THEIRS])}


def _present(names: list[str]) -> list[str]:
    """Installed contestants; prints the missing ones."""
    for name in names:
        if not installed(name):
            print(f"{name}: not installed, left out", file=sys.stderr)
    return list(filter(installed, names))


def compete(contest: Contest, args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Fastest figures of each contestant; contestants alternate, and the first one rotates."""
    names = list(contest.trees)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for repeat in range(args.repeats):
        turn = repeat % len(names)
        for name in names[turn:] + names[:turn]:
            trees, shared = contest.trees[name], contest.shared_trees
            job = replace(contest.job, contestant=name, trees=trees, shared_trees=shared)
            runs[name].append(run(job, contest.title))
    best = {}
    for name, found in runs.items():
        best[name] = min(found, key=lambda one: one["seconds"])
        best[name]["predict_seconds"] = min(one["predict_seconds"] for one in found)
    show(contest, best, args.threads)
    return best


def show(contest: Contest, best: dict[str, dict[str, Any]], threads: int) -> None:
    """Print the table of a contest, and a note where the numbers of trees differ."""
    score = "AUC" if contest.job.task == "classifier" else "R2"
    shared = contest.shared_trees
    header = ("library", "trees", "fit s", "ms a tree", "x ours", "peak MB", f"{score} at {shared}")
    header += (f"{score} at the end", "out of bag", "predict ms", "x ours", "saved MB", "x ours")
    header += ("bytes a node",)
    ours = best[OURS]
    lines = [
        (
            name,
            one["trees"],
            one["seconds"],
            one["tree_seconds"] * 1e3,
            one["tree_seconds"] / ours["tree_seconds"],
            one["peak_mb"],
            f"{one['score']:.4f}",
            f"{one['last_score']:.4f}",
            f"{one['oob_score']:.4f}" if "oob_score" in one else None,
            one["predict_seconds"] * 1e3,
            one["predict_seconds"] / ours["predict_seconds"],
            one["saved_bytes"] / BYTES_PER_MB,
            one["saved_bytes"] / ours["saved_bytes"],
            one["saved_bytes"] / one["nodes"],
        )
        for name, one in best.items()
    ]
    size = f"{contest.rows:,} x {FEATURES}"
    harness.show(f"{contest.title}, {size}, {threads} threads", header, lines)
    if len(set(contest.trees.values())) > 1:
        print(
            f"scikit-learn grew {contest.trees[THEIRS]} trees instead of {contest.trees[OURS]}. "
            f"Times are compared per tree, predictions, sizes and the first {score} at {shared} "
            "trees."
        )
    if contest.job.oob_score:
        word = "accuracy" if contest.job.task == "classifier" else "R2"
        print(f"The out-of-bag score is {word}; its time is part of the fit.")


def cost_of_depth(args: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Time of a tree at depth 8 and at full depth, with few or all features at each node."""
    folder, found = _labels(scratch, args.rows), {}
    for word, max_features, features in (("drawn", DRAWN, DRAWN), ("all", None, FEATURES)):
        one: dict[str, Any] = {"rows": args.rows, "features": features}
        for name, depth in (("depth_8", DEPTH), ("full", None)):
            job = Job(OURS, folder, "random_forest", "classifier", max(2, args.trees // 10), 1)
            job = replace(job, max_depth=depth, max_features=max_features, fits=COST_FITS)
            one[name] = run(job, f"{features} features, {name}")
        found[word] = one
    lines = []
    for one in found.values():
        for name in ("depth_8", "full"):
            words = f"{one['features']} of {FEATURES} features a node, {name.replace('_', ' ')}"
            figures = one[name]
            lines.append(
                (
                    words,
                    figures["tree_seconds"] * 1e3,
                    figures["levels"],
                    by_value(one, name),
                    by_value(one, name) / by_value(one, "depth_8"),
                    by_level(one, name),
                    by_level(one, name) / by_level(one, "depth_8"),
                )
            )
    header = ("one tree, one thread", "ms", "levels a row", "ns a row and feature", "x depth 8")
    harness.show("Cost of depth", (*header, "and level", "x depth 8"), lines)
    return found


def by_value(one: dict[str, Any], name: str) -> float:
    """Nanoseconds of a tree per row and feature."""
    return one[name]["tree_seconds"] * 1e9 / (one["rows"] * one["features"])


def by_level(one: dict[str, Any], name: str) -> float:
    """Nanoseconds of a tree per row, feature and level."""
    return by_value(one, name) / one[name]["levels"]


def run(job: Job, title: str) -> dict[str, Any]:
    """Figures of one contestant in a fresh process."""
    figures = harness.run_alone("forest_once", asdict(job), job.threads)
    if "error" in figures:
        raise SystemExit(f"{job.contestant} failed: {figures['error']}")
    others = figures["other_cores"]
    note = harness.disturbance(others)
    what = f"{title}, {job.contestant}, {job.trees} trees"
    milliseconds = figures["tree_seconds"] * 1e3
    print(f"  {what}: {milliseconds:.4g} ms a tree{note}", file=sys.stderr, flush=True)
    return figures


if __name__ == "__main__":
    main()
