"""How fast are fits of small tables, where overhead dominates?

Each contestant runs with one and with two threads; the faster run counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPE = Shape(max_depth=6)
SIZES = ((1_000, 10), (150, 10))


def main() -> None:
    """Run the comparison, print its tables and save it."""
    parser = harness.parser(__doc__, "small")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--fits", type=int, default=20, help="fits in each process")
    args = harness.parse(parser)
    figures: dict[str, Any] = {"rounds": args.rounds, "shape": str(SHAPE)}
    with tempfile.TemporaryDirectory() as scratch:
        for rows, features in SIZES:
            size = f"{rows}x{features}"
            folder = data.generate(Path(scratch) / size, rows, features, test_rows=10_000)
            figures[size] = compare(args, folder)
            print_comparison(f"{rows:,} x {features}, {args.rounds} rounds", figures[size])
    harness.save(args, figures)


def compare(args: Any, folder: Path) -> dict[str, Any]:
    """Figures of every contestant at one size."""
    candidates = {}
    for name in harness.contestants(args.peers, SHAPE):
        candidates[name] = [
            job
            for threads in args.threads
            for job in harness.variants(
                harness.Job(name, str(folder), SHAPE, args.rounds, threads, fits=args.fits)
            )
        ]
    return harness.contest(candidates, args.repeats)


def print_comparison(title: str, figures: dict[str, Any]) -> None:
    """Print one contest in milliseconds."""
    header = ("library", "time ms", "x arboost", "log loss", "threads", "variant")
    rows = []
    for name, one in figures.items():
        if "error" in one:
            rows.append((name, one["error"], *[None] * 4))
            continue
        times = (one["seconds"] * 1e3, harness.ratio(figures, name))
        rows.append((name, *times, one["log_loss"], one["threads"], one["variant"]))
    harness.show(f"{title}, {SHAPE}", header, rows)


if __name__ == "__main__":
    main()
