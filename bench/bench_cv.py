"""How much time and memory does cross-validation with five folds take, compared with one fit?

Five fits on four fifths of the rows equal four fits; time above that is evaluation and set-up
of the folds. Folds share one set of bin codes: five copies would show in the memory.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPE = Shape(max_depth=8)


def main() -> None:
    """Run the comparison, print its table and save it."""
    parser = harness.parser(__doc__, "cv")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(peers=["arboost", "arboost-cv"])
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(Path(scratch), args.rows, args.features, test_rows=0)
        candidates = {
            name: [harness.Job(name, str(folder), SHAPE, args.rounds, args.threads, quality=False)]
            for name in harness.contestants(args.peers, SHAPE)
        }
        figures = harness.contest(candidates, args.repeats)
    title = f"{args.rows:,} x {args.features}, {SHAPE}, {args.rounds} rounds"
    header = ("work", "time s", "x one fit", "peak MB", "x one fit")
    lines = [row(figures, name) for name in figures]
    harness.show(f"{title}, {args.threads} threads", header, lines)
    harness.save(
        args, {"rows": args.rows, "features": args.features, "rounds": args.rounds, "fits": figures}
    )


def row(figures: dict[str, Any], name: str) -> tuple[Any, ...]:
    """One line of the table."""
    one, fit = figures[name], figures.get("arboost", {})
    if "error" in one:
        return (name, one["error"], *[None] * 3)
    memory = one["peak_mb"] / fit["peak_mb"] if "peak_mb" in fit else None
    return (name, one["seconds"], harness.ratio(figures, name), one["peak_mb"], memory)


if __name__ == "__main__":
    main()
