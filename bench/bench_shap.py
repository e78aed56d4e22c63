"""How fast are SHAP values and interactions compared with XGBoost, LightGBM and CatBoost?

Each library explains its own model; all models have the same number of trees and depth. Rows are
in memory. CatBoost's trees are symmetric, which simplifies its algorithm. LightGBM has no
interactions.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from support import data, harness
from support.shap_once import EXPLAINERS, Job

OURS = "arboost"
KINDS = ("values", "interactions")


def main() -> None:
    """Run the contestants in turns, print and save the table."""
    parser = harness.parser(__doc__, "shap")
    parser.add_argument("--rows", type=int, default=2_000, help="rows for values")
    parser.add_argument("--pair-rows", type=int, default=200, help="rows for interactions")
    parser.add_argument("--train-rows", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    args = harness.parse(parser)
    names = [name for name in args.peers or EXPLAINERS if harness.installed(name)]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(Path(scratch), args.train_rows, args.features, test_rows=0)
        for repeat in range(args.repeats):
            for name in names:
                runs[name].append(_run(args, str(folder), name, repeat))
    figures = {name: _best(found) for name, found in runs.items()}
    rows = [
        [name, *(one.get(kind) for kind in KINDS), *(_ratio(figures, name, kind) for kind in KINDS)]
        for name, one in figures.items()
    ]
    header = ("library", "values s", "interactions s", "times ours", "times ours")
    title = f"{args.trees} trees of depth {args.depth}, {args.features} features"
    harness.show(f"{title}: {args.rows:,} rows, {args.pair_rows} with interactions", header, rows)
    harness.save(args, {"threads": args.threads, "rows": args.rows, "contest": figures})


def _run(args: Any, folder: str, name: str, repeat: int) -> dict[str, Any]:
    # Interactions of some peers take half a minute: these run once.
    pair_rows = args.pair_rows if repeat == 0 or name == OURS else 0
    job = Job(
        contestant=name,
        folder=folder,
        trees=args.trees,
        depth=args.depth,
        threads=args.threads,
        rows=args.rows,
        pair_rows=pair_rows,
        repeats=args.repeats,
    )
    figures = harness.run_alone("shap_once", asdict(job), args.threads)
    if "error" in figures:
        raise SystemExit(f"{name}: {figures['error']}")
    print(f"  {name}: {figures}", file=sys.stderr, flush=True)
    return figures


def _best(found: list[dict[str, Any]]) -> dict[str, Any]:
    best = {
        kind: min(one[kind] for one in found if kind in one)
        for kind in KINDS
        if any(kind in one for one in found)
    }
    return best | {"other_cores": min(one["other_cores"] for one in found)}


def _ratio(figures: dict[str, dict[str, Any]], name: str, kind: str) -> float | None:
    if OURS not in figures or kind not in figures[name]:
        return None
    return figures[name][kind] / figures[OURS][kind]


if __name__ == "__main__":
    main()
