"""How much time does gradient-based row sampling save, and how much AUC does it lose?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPE = Shape(max_depth=6)  # the default


def main() -> None:
    """Run the comparison, print its table and save it."""
    parser = harness.parser(__doc__, "sampling")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(
        peers=["arboost", "arboost-goss", "arboost-gradient-based", "arboost-uniform"]
    )
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(Path(scratch), args.rows, args.features)
        candidates = {
            name: harness.variants(harness.Job(name, str(folder), SHAPE, args.rounds, args.threads))
            for name in harness.contestants(args.peers, SHAPE)
        }
        figures = harness.contest(candidates, args.repeats)
    title = f"{args.rows:,} x {args.features}, {SHAPE}, {args.rounds} rounds"
    header = ("sampling", "time s", "binning s", "x all rows", "AUC", "AUC behind")
    lines = [row(figures, name) for name in figures]
    harness.show(f"{title}, {args.threads} threads", header, lines)
    harness.save(args, {"rows": args.rows, "rounds": args.rounds, "fits": figures})


def row(figures: dict[str, Any], name: str) -> tuple[Any, ...]:
    """One line of the table: speed-up over all rows, and loss of AUC."""
    one = figures[name]
    if "error" in one:
        return (name, one["error"], *[None] * 4)
    slower = harness.ratio(figures, name)
    faster = None if slower is None else 1 / slower
    behind = figures["arboost"]["auc"] - one["auc"] if "auc" in figures["arboost"] else None
    return (name, one["seconds"], one["bin_seconds"], faster, f"{one['auc']:.5f}", behind)


if __name__ == "__main__":
    main()
