"""How much slower is a custom loss in NumPy than the built-in loss?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPE = Shape(max_depth=8)


def main() -> None:
    """Run the comparison, print its table and save it."""
    parser = harness.parser(__doc__, "custom_loss")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(peers=["arboost", "arboost-custom-loss"])
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(Path(scratch), args.rows, args.features)
        candidates = {
            name: harness.variants(harness.Job(name, str(folder), SHAPE, args.rounds, args.threads))
            for name in harness.contestants(args.peers, SHAPE)
        }
        figures = harness.contest(candidates, args.repeats)
    title = f"{args.rows:,} x {args.features}, {SHAPE}, {args.rounds} rounds"
    header = ("loss", "time s", "x built-in", "log loss")
    lines: list[tuple[Any, ...]] = [
        (name, one["error"], None, None)
        if "error" in one
        else (name, one["seconds"], harness.ratio(figures, name), f"{one['log_loss']:.6f}")
        for name, one in figures.items()
    ]
    harness.show(f"{title}, {args.threads} threads", header, lines)
    harness.save(args, {"rows": args.rows, "rounds": args.rounds, "fits": figures})


if __name__ == "__main__":
    main()
