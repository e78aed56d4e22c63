"""How does training scale from 1 thread to 16?

Needs NumPy and arboost only; installed peers run too. Times include binning.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPE = Shape(max_depth=8)
COUNTS = (1, 2, 4, 8, 16)


def main() -> None:
    """Time every contestant at every thread count, print and save the speed-ups."""
    parser = harness.parser(__doc__, "threads")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--threads", type=int, nargs="+", help="default: 1 2 4 8 16, up to the number of cores"
    )
    parser.set_defaults(peers=["arboost", "lightgbm", "xgboost"], repeats=2)
    args = harness.parse(parser)
    counts = args.threads or [count for count in COUNTS if count <= harness.cores()]
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(Path(scratch), args.rows, args.features, test_rows=0)
        names = harness.contestants(args.peers, SHAPE)
        figures = {count: compare(args, folder, names, count) for count in counts}
    title = f"{args.rows:,} x {args.features}, {SHAPE}, {args.rounds} rounds"
    for name in names:
        rows = [speedup(figures, name, count) for count in counts]
        header = ("threads", "time s", "speed-up", "binning s", "binning", "trees s", "trees")
        harness.show(f"{name}: {title}", header, rows)
    sizes = {"rows": args.rows, "features": args.features, "rounds": args.rounds}
    harness.save(args, sizes | {"by_threads": figures})


def compare(args: Any, folder: Path, names: list[str], threads: int) -> dict[str, Any]:
    """Figures of every contestant at one thread count."""
    candidates = {}
    for name in names:
        job = harness.Job(name, str(folder), SHAPE, args.rounds, threads, quality=False)
        candidates[name] = harness.variants(job)
    return harness.contest(candidates, args.repeats)


def speedup(figures: dict[int, Any], name: str, count: int) -> tuple[Any, ...]:
    """One line of the table: seconds and speed-up over the first count, in total and by part."""
    one, first = figures[count][name], next(iter(figures.values()))[name]
    if "error" in one or "error" in first:
        return (count, one.get("error"), *[None] * 5)
    row: list[Any] = [count]
    for part in (
        lambda f: f["seconds"],
        lambda f: f["bin_seconds"],
        lambda f: f["seconds"] - f["bin_seconds"],
    ):
        row += [part(one), part(first) / part(one)]
    return tuple(row)


if __name__ == "__main__":
    main()
