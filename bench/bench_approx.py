"""How fast is tree_method="approx", with a new sketch in each round, compared with XGBoost's?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPE = Shape(max_depth=6)
OURS = "arboost-approx"


def main() -> None:
    """Run the comparison, print its tables and save it."""
    parser = harness.parser(__doc__, "approx")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(peers=[OURS, "xgboost-approx", "arboost"])
    args = harness.parse(parser)
    figures: dict[str, Any] = {"features": args.features, "rounds": args.rounds, "by_rows": {}}
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as scratch:
            folder = data.generate(Path(scratch), rows, args.features)
            one = compare(args, folder)
        figures["by_rows"][str(rows)] = one
        title = f"{rows:,} x {args.features}, {SHAPE}, {args.rounds} rounds, {args.threads} threads"
        harness.show(title, ("library", "time s", "x ours", "AUC"), table(one))
    harness.save(args, figures)


def compare(args: Any, folder: Path) -> dict[str, Any]:
    """Figures of every contestant at one size."""
    candidates = {
        name: harness.variants(harness.Job(name, str(folder), SHAPE, args.rounds, args.threads))
        for name in harness.contestants(args.peers, SHAPE)
    }
    return harness.contest(candidates, args.repeats)


def table(figures: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Lines of the table."""
    return [
        (name, one["error"], None, None)
        if "error" in one
        else (name, one["seconds"], harness.ratio(figures, name, OURS), f"{one['auc']:.5f}")
        for name, one in figures.items()
    ]


if __name__ == "__main__":
    main()
