"""How fast is tree_method="exact" compared with XGBoost's and scikit-learn's exact trees?

scikit-learn takes seconds for each tree, so it gets few rounds and is compared by time per tree;
set-up is a negligible part of both.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.shape import Shape

SHAPE = Shape(max_depth=6)
OURS = "arboost-exact"
SLOW = "scikit-learn-gb"


def main() -> None:
    """Run the comparison, print its table and save it."""
    parser = harness.parser(__doc__, "exact")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--few", type=int, default=3, help="rounds of scikit-learn")
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(peers=[OURS, "xgboost-exact", SLOW, "arboost"])
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(Path(scratch), args.rows, args.features)
        figures = compare(args, folder)
    title = f"{args.rows:,} x {args.features}, {SHAPE}, {args.threads} threads"
    header = ("library", "rounds", "time s", "ms a tree", "x ours, fit", "x ours, tree", "AUC")
    harness.show(title, header, [row(figures, name) for name in figures])
    sizes = {"rows": args.rows, "features": args.features, "rounds": args.rounds}
    harness.save(args, sizes | {"fits": figures})


def compare(args: Any, folder: Path) -> dict[str, Any]:
    """Figures of every contestant, with its rounds and its seconds per tree."""
    names = harness.contestants(args.peers, SHAPE)
    rounds = {name: args.few if name == SLOW else args.rounds for name in names}
    candidates = {
        name: harness.variants(harness.Job(name, str(folder), SHAPE, rounds[name], args.threads))
        for name in names
    }
    figures = harness.contest(candidates, args.repeats)
    for name, one in figures.items():
        one["rounds"] = rounds[name]
        if "seconds" in one:
            one["tree_seconds"] = one["seconds"] / rounds[name]
    return figures


def row(figures: dict[str, Any], name: str) -> tuple[Any, ...]:
    """One line of the table; fits with different numbers of rounds are compared per tree only."""
    one, ours = figures[name], figures.get(OURS, {})
    if "error" in one:
        return (name, one["rounds"], one["error"], *[None] * 4)
    same = one["rounds"] == ours.get("rounds")
    fit = harness.ratio(figures, name, OURS) if same else None
    tree = one["tree_seconds"] / ours["tree_seconds"] if "tree_seconds" in ours else None
    auc = f"{one['auc']:.5f}"
    return (name, one["rounds"], one["seconds"], one["tree_seconds"] * 1e3, fit, tree, auc)


if __name__ == "__main__":
    main()
