"""How fast is AdaBoost compared with scikit-learn's, and how much time does a round take?

scikit-learn takes about half a second for each stump of 100,000 x 28, so its classifier gets few
rounds. Times are compared per round; our time includes binning and other set-up. Prediction times
and held-out scores are those of models with scikit-learn's number of rounds.

The second table is the time of a round after the first, for growing rows and features. Trees on
bins read each value once or twice, so the time should grow no faster than rows x features.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from support import data, harness
from support.adaboost_once import Job

OURS, THEIRS = "arboost", "scikit-learn"
FEATURES = 28
COST_FITS = 3  # of arboost; scikit-learn is slow enough to be timed once


@dataclass(frozen=True)
class Contest:
    """One comparison: task, depth, size of the data, and rounds of each contestant."""

    title: str
    folder: str
    task: str
    depth: int
    rows: int
    features: int
    rounds: dict[str, int]

    @property
    def shared_rounds(self) -> int:
        """Largest number of rounds that every contestant reaches."""
        return min(self.rounds.values())


def main() -> None:
    """Run the contests and the cost measurements, print and save their tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="regression: half as many")
    parser.add_argument("--rounds", type=int, default=200, help="depth 3: half as many")
    parser.add_argument("--few", type=int, default=20, help="rounds of scikit-learn's classifier")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest counts")
    parser.add_argument("--results", type=Path, default=harness.RESULTS)
    parser.set_defaults(name="adaboost")
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        found = {
            name: {"title": contest.title, "fits": compete(contest, args)}
            for name, contest in contests(args, Path(scratch)).items()
        }
        costs = cost_of_rounds(args, Path(scratch))
    harness.save(args, {"threads": args.threads, "contests": found, "cost_of_a_round": costs})


def contests(args: argparse.Namespace, scratch: Path) -> dict[str, Contest]:
    """The three comparisons, with their data written to `scratch`."""
    labels, amounts = str(scratch / "labels"), str(scratch / "regression")
    data.generate(Path(labels), args.rows, FEATURES, test_rows=args.rows)
    data.regression(Path(amounts), args.rows // 2, 20, test_rows=args.rows)
    half, few = args.rounds // 2, args.few

    def two(title: str, depth: int, rounds: int) -> Contest:
        count = {OURS: rounds, THEIRS: min(few, rounds)}
        return Contest(title, labels, "classifier", depth, args.rows, FEATURES, count)

    count = dict.fromkeys((OURS, "arboost-resample", THEIRS), half)
    return {
        "stumps": two("AdaBoostClassifier, stumps", 1, args.rounds),
        "trees": two("AdaBoostClassifier, depth 3", 3, half),
        "numbers": Contest(
            "AdaBoostRegressor, depth 3", amounts, "regressor", 3, args.rows // 2, 20, count
        ),
    }


def compete(contest: Contest, args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Fastest figures of each contestant; contestants alternate, and the first one rotates."""
    names = list(contest.rounds)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for repeat in range(args.repeats):
        turn = repeat % len(names)
        for name in names[turn:] + names[:turn]:
            job = Job(
                contestant=name,
                folder=contest.folder,
                task=contest.task,
                depth=contest.depth,
                rounds=contest.rounds[name],
                threads=args.threads,
                shared_rounds=contest.shared_rounds,
            )
            runs[name].append(run(job, contest.title))
    best = {}
    for name, found in runs.items():
        best[name] = min(found, key=lambda one: one["seconds"])
        best[name]["predict_seconds"] = min(one["predict_seconds"] for one in found)
    show(contest, best, args.threads)
    return best


def show(contest: Contest, best: dict[str, dict[str, Any]], threads: int) -> None:
    """Print the table of a contest, and a note where the numbers of rounds differ."""
    score = "accuracy" if contest.task == "classifier" else "R2"
    header = ("library", "rounds", "fit s", "ms a round", "x ours")
    header += (
        f"predict ms, {contest.shared_rounds} rounds",
        "x ours",
        score,
        f"{score} at the end",
    )
    ours = best[OURS]
    lines = [
        (
            name,
            one["rounds"],
            one["seconds"],
            one["round_seconds"] * 1e3,
            one["round_seconds"] / ours["round_seconds"],
            one["predict_seconds"] * 1e3,
            one["predict_seconds"] / ours["predict_seconds"],
            f"{one['score']:.4f}",
            f"{one['last_score']:.4f}",
        )
        for name, one in best.items()
    ]
    size = f"{contest.rows:,} x {contest.features}"
    harness.show(f"{contest.title}, {size}, {threads} threads (scikit-learn: 1)", header, lines)
    if len(set(contest.rounds.values())) > 1:
        print(
            f"scikit-learn ran {contest.rounds[THEIRS]} rounds instead of {contest.rounds[OURS]}. "
            f"Times are compared per round, predictions and the first {score} at "
            f"{contest.shared_rounds} rounds."
        )


def cost_of_rounds(args: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Time of a round of stumps after the first, for tables of several sizes."""
    sizes = [(args.rows * part // 4, FEATURES) for part in (1, 2, 4, 8)]
    sizes += [(args.rows, FEATURES // 2), (args.rows, FEATURES * 2)]
    found = []
    for rows, features in sizes:
        folder = data.generate(scratch / f"{rows}x{features}", rows, features, test_rows=0)
        one: dict[str, Any] = {"rows": rows, "features": features}
        for name, rounds, fits in ((OURS, args.rounds, COST_FITS), (THEIRS, 1 + args.few // 4, 1)):
            job = Job(name, str(folder), "classifier", 1, max(2, rounds), args.threads, fits=fits)
            one[name] = run(job, f"a round of {rows:,} x {features}")
        found.append(one)
    lines = [
        (f"{one['rows']:,} x {one['features']}", *cost_cells(one, OURS), *cost_cells(one, THEIRS))
        for one in found
    ]
    header = ("stumps", "ms a round", "ns a value", "scikit-learn ms", "ns a value")
    harness.show("Time of a round after the first", header, lines)
    for name in (OURS, THEIRS):
        rows, features = growth(found, name, "rows"), growth(found, name, "features")
        print(f"{name}: time of a round ~ rows^{rows:.2f} and features^{features:.2f}")
    return {f"{one['rows']}x{one['features']}": one for one in found}


def cost_cells(one: dict[str, Any], name: str) -> tuple[float, float]:
    """Milliseconds per round, and nanoseconds per value of the table."""
    seconds = one[name]["round_seconds"]
    return seconds * 1e3, seconds * 1e9 / (one["rows"] * one["features"])


def growth(found: list[dict[str, Any]], name: str, size: str) -> float:
    """Exponent of the growth with rows or features, fitted by least squares on a log-log scale."""
    other = {"rows": "features", "features": "rows"}[size]
    common = max({one[other] for one in found}, key=[one[other] for one in found].count)
    chosen = [one for one in found if one[other] == common]
    seconds = [one[name]["round_seconds"] for one in chosen]
    if min(seconds) <= 0:  # below the noise
        return float("nan")
    return float(np.polyfit(np.log([one[size] for one in chosen]), np.log(seconds), 1)[0])


def run(job: Job, title: str) -> dict[str, Any]:
    """Figures of one contestant in a fresh process."""
    figures = harness.run_alone("adaboost_once", asdict(job), job.threads)
    if "error" in figures:
        raise SystemExit(f"{job.contestant} failed: {figures['error']}")
    others = figures["other_cores"]
    note = harness.disturbance(others)
    milliseconds = figures["round_seconds"] * 1e3
    what = f"{title}, {job.contestant}, {job.rounds} rounds"
    print(f"  {what}: {milliseconds:.4g} ms a round{note}", file=sys.stderr, flush=True)
    return figures


if __name__ == "__main__":
    main()
