"""How fast is gradient boosting with each common setting, beside LightGBM with the same setting?

Thirty settings: leaf size, penalties, samplers, constraints, weights, missing values, categories,
classes, losses, DART, bins, shapes. Trees have 255 leaves where the setting says nothing else. The
two libraries alternate, each in a process of its own, on binned data.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from support import harness
from support.settings import SETTINGS
from support.worker import Worker


def library(name: str, args: Any) -> Worker:
    """Return a process that fits one library."""
    numbers = [str(number) for number in (args.rows, args.rounds, args.threads)]
    path = os.pathsep.join(filter(None, (str(harness.BENCH), os.environ.get("PYTHONPATH"))))
    threads = {"OMP_NUM_THREADS": str(args.threads)}
    return Worker("settings_once", [name, *numbers], path, **threads)


def main() -> None:
    """Alternate the libraries, print their table, slowest ratio first, and save it."""
    parser = harness.parser(__doc__, "settings")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="part of the names of the settings")
    args = harness.parse(parser)
    libraries = {name: library(name, args) for name in ("arboost", "lightgbm")}
    figures: dict[str, dict[str, float]] = {}
    for setting in SETTINGS:
        if args.only not in setting:
            continue
        best = dict.fromkeys(libraries, float("inf"))
        for turn in range(args.repeats):
            for name in sorted(libraries, reverse=turn % 2 == 1):
                best[name] = min(best[name], libraries[name].seconds(setting))
        ratio = best["lightgbm"] / best["arboost"]
        figures[setting] = {**best, "ratio": ratio}
        print(f"  {setting}: {ratio:.2f} x", file=sys.stderr, flush=True)
    for worker in libraries.values():
        worker.close()
    plain = figures.get("plain", {}).get("arboost")
    rows = [
        (name, one["arboost"], one["lightgbm"], one["ratio"], plain and one["arboost"] / plain)
        for name, one in sorted(figures.items(), key=lambda item: item[1]["ratio"])
    ]
    header = ("setting", "arboost s", "LightGBM s", "x LightGBM", "x plain")
    harness.show(f"{args.rows:,} x 28, {args.rounds} rounds, {args.threads} threads", header, rows)
    harness.save(args, figures)


if __name__ == "__main__":
    main()
