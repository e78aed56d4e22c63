"""How fast, accurate and large is training compared with the peers, with trees of one shape?

Two shapes (255 leaves best-first, depth 8 by level) on generated data similar to HIGGS.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPES = {"leafwise": Shape(max_leaves=255), "depthwise": Shape(max_depth=8)}


def main() -> None:
    """Run the comparison, print its tables and save it."""
    parser = harness.parser(__doc__, "train")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        figures = on_generated(args, Path(scratch))
    harness.save(args, figures)


def on_generated(args: Any, scratch: Path) -> dict[str, Any]:
    """Figures of each shape on the generated data."""
    folder = data.generate(scratch / "higgs_like", args.rows, args.features)
    figures = {"rows": args.rows, "features": args.features, "rounds": args.rounds}
    for name in args.shapes:
        figures[name] = compare(args, folder, SHAPES[name])
        title = f"{args.rows:,} x {args.features}, {SHAPES[name]}, {args.rounds} rounds"
        print_comparison(f"{title}, {args.threads} threads", figures[name])
    return figures


def compare(args: Any, folder: Path, shape: Shape) -> dict[str, Any]:
    """Figures of every contestant for one problem and shape."""
    candidates = {}
    for name in harness.contestants(args.peers, shape):
        job = harness.Job(name, str(folder), shape, args.rounds, args.threads)
        candidates[name] = harness.variants(job)
    return harness.contest(candidates, args.repeats)


def print_comparison(title: str, figures: dict[str, Any]) -> None:
    """Print one contest."""
    header = (
        "library",
        "time s",
        "binning s",
        "x arboost",
        "log loss",
        "AUC",
        "peak MB",
        "variant",
    )
    rows = []
    for name, one in figures.items():
        if "error" in one:
            rows.append((name, one["error"], *[None] * 6))
            continue
        quality = (f"{one['log_loss']:.5f}", f"{one['auc']:.5f}")
        times = (one["seconds"], one["bin_seconds"], harness.ratio(figures, name))
        rows.append((name, *times, *quality, one["peak_mb"], one["variant"]))
    harness.show(title, header, rows)


if __name__ == "__main__":
    main()
