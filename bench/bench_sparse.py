"""How fast, accurate and large is training on sparse tables, compared with the peers?

One-hot categories (500,000 x 5,000: 50 categories of 100 levels), and scattered
counts (1,000,000 x 10,000, 0.1 % stored), both as CSR matrices.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPE = Shape(max_leaves=31)
TABLES: dict[str, tuple[Callable[..., Path], int, int]] = {
    # generator, rows, columns
    "one_hot": (data.one_hot, 500_000, 5_000),
    "scattered": (data.scattered, 1_000_000, 10_000),
}


def main() -> None:
    """Run the comparisons, print and save their tables."""
    parser = harness.parser(__doc__, "sparse")
    parser.add_argument("--rows", type=int, help="rows of each table")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(peers=["arboost", "lightgbm", "xgboost"])
    args = harness.parse(parser)
    figures: dict[str, Any] = {"rounds": args.rounds}
    for name in args.tables:
        make, rows, columns = TABLES[name]
        rows = args.rows or rows
        with tempfile.TemporaryDirectory() as scratch:
            folder = make(Path(scratch), rows)
            candidates = {
                peer: harness.variants(
                    harness.Job(peer, str(folder), SHAPE, args.rounds, args.threads)
                )
                for peer in harness.contestants(args.peers, SHAPE)
            }
            fits = harness.contest(candidates, args.repeats)
        figures[name] = {"rows": rows, "columns": columns, "fits": fits}
        title = f"{name}: {rows:,} x {columns:,}, {SHAPE}, {args.rounds} rounds"
        header = ("library", "time s", "binning s", "x arboost", "AUC", "peak MB", "process MB")
        lines = [row(fits, peer) for peer in fits]
        harness.show(f"{title}, {args.threads} threads", header, lines)
    harness.save(args, figures)


def row(fits: dict[str, Any], name: str) -> tuple[Any, ...]:
    """One line of the table; process memory is the data plus the fit."""
    one = fits[name]
    if "error" in one:
        return (name, one["error"], *[None] * 5)
    times = (one["seconds"], one["bin_seconds"], harness.ratio(fits, name))
    return (name, *times, f"{one['auc']:.5f}", one["peak_mb"], one["start_mb"] + one["peak_mb"])


if __name__ == "__main__":
    main()
