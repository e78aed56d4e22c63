"""How fast is a search for parameters with `arboost.tune`, next to Optuna around LightGBM?

All contestants run the same number of trials on the same held-out rows, with the same sampler,
pruner, limit of rounds and early stopping. LightGBM runs the very parameters that arboost's trials
had, under its own names: with a Dataset for each trial, as Optuna's examples do; with one Dataset
for all trials; with trials in parallel of a thread each, as arboost runs them, and a Dataset for
each; and without pruning. With parameters that Optuna proposes for LightGBM itself, the last line
shows the score that its own search reaches. A time includes binning, all trials and the fit of the
best parameters to all rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from support import data, harness
from support.table import Bar
from support.tune_once import Job

OURS = "arboost"
SAME = (
    "lightgbm",
    "lightgbm, one Dataset",
    "lightgbm, trials in parallel",
    "lightgbm, no pruning",
)
OWN = "lightgbm, own trials"


def main() -> None:
    """Run the comparison, print its table and save it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2, help="the fastest counts")
    parser.add_argument("--results", type=Path, default=harness.RESULTS)
    parser.set_defaults(name="tune")
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(Path(scratch), args.rows, args.features)
        figures = contest(Job(OURS, str(folder), args.threads, args.trials), args.repeats)
    header = ("library", "time s", "x ours", "pruned", "log loss", "test log loss", "test AUC")
    size = f"{args.rows:,} x {args.features}, {args.trials} trials, {args.threads} threads"
    harness.show(f"Search for parameters, {size}", header, [row(figures, name) for name in figures])
    harness.save(
        args,
        {
            "rows": args.rows,
            "features": args.features,
            "trials": args.trials,
            "threads": args.threads,
            "searches": figures,
            "bars": [asdict(one) for one in bars(figures, args.trials)],
        },
    )


def bars(figures: dict[str, Any], trials: int) -> list[Bar]:
    """Targets of the search, compared with LightGBM's trials."""
    found = {name: harness.ratio(figures, name) for name in SAME}
    return [
        Bar(f"tune, {trials} trials, over Optuna and {name}", faster, 3.0, 5.0)
        for name, faster in found.items()
        if faster is not None
    ]


def contest(job: Job, repeats: int) -> dict[str, dict[str, Any]]:
    """Fastest figures of each contestant; they alternate, and LightGBM follows arboost's trials."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (OURS, *SAME, OWN)}
    for _ in range(repeats):
        first = run(job)
        proposed = tuple(first.pop("proposed"))
        runs[OURS].append(first)
        for name in SAME:
            runs[name].append(run(replace(job, contestant=name, proposed=proposed)))
        runs[OWN].append(run(replace(job, contestant=OWN)))
    return {name: min(found, key=lambda one: one["seconds"]) for name, found in runs.items()}


def run(job: Job) -> dict[str, Any]:
    """Figures of one contestant in a fresh process."""
    figures = harness.run_alone("tune_once", asdict(job), job.threads)
    if "error" in figures:
        raise SystemExit(f"{job.contestant} failed: {figures['error']}")
    note = harness.disturbance(figures["other_cores"])
    print(f"  {job.contestant}: {figures['seconds']:.4g} s{note}", file=sys.stderr, flush=True)
    return figures


def row(figures: dict[str, dict[str, Any]], name: str) -> tuple[Any, ...]:
    """One line of the table."""
    one = figures[name]
    scores = [f"{one[key]:.5f}" for key in ("score", "log_loss", "auc")]
    return (name, one["seconds"], harness.ratio(figures, name), one["pruned"], *scores)


if __name__ == "__main__":
    main()
