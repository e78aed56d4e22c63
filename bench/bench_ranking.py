"""How fast and how good is LambdaMART, next to LightGBM's and XGBoost's?

A made table with the same trees for all, and with `--file` a table of a ranking data set, as an
.npz file of a CSR matrix with target, qid and n_train, with default parameters.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from support import harness


def main() -> None:
    """Run the comparison, print its table and save it."""
    parser = harness.parser(__doc__, "ranking")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--queries", type=int, default=None, help="default: rows / 100")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=255)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--file", help="table of a ranking data set, instead of a made one")
    parser.add_argument("--same-trees", action="store_true", help="with --file, too")
    parser.add_argument(
        "--params", type=ast.literal_eval, default={}, help="more parameters of arboost, as a dict"
    )
    parser.set_defaults(peers=["arboost", "lightgbm", "xgboost"])
    args = harness.parse(parser)
    job = {
        "rows": args.rows,
        "features": args.features,
        "queries": args.queries or max(args.rows // 100, 1),
        "rounds": args.rounds,
        "leaves": args.leaves,
        "threads": args.threads,
        "file": args.file,
        "default": args.file is not None and not args.same_trees,
        "params": args.params,
    }
    runs: dict[str, list[dict[str, Any]]] = {
        name: [
            harness.run_alone("rank_once", job | {"library": name, "seed": seed}, args.threads)
            for seed in range(args.seeds)
        ]
        for name in args.peers
    }
    harness.show(
        _title(args, job),
        ("library", "time s", "x arboost", "NDCG@5", "NDCG@10", "MAP@10"),
        [_line(runs, name) for name in runs],
    )
    harness.save(args, {key: job[key] for key in job if key != "file"} | {"fits": runs})


def _title(args: Any, job: dict[str, Any]) -> str:
    trees = "default parameters" if job["default"] else f"{args.rounds} x {args.leaves} leaves"
    table = "table of a file" if args.file else f"{args.rows:,} x {args.features}"
    return f"{table}, {trees}, {args.threads} threads, {args.seeds} seeds"


def _line(runs: dict[str, list[dict[str, Any]]], name: str) -> tuple[Any, ...]:
    """Fastest time of a library, its ratio to arboost, and means of the metrics over the seeds."""
    errors = [one["error"] for one in runs[name] if "error" in one]
    if errors:
        return (name, errors[0], *[None] * 4)
    seconds = min(one["seconds"] for one in runs[name])
    ours = [one.get("seconds") for one in runs.get("arboost", [])]
    ratio = seconds / min(ours) if ours and None not in ours else None
    means = [np.mean([one[key] for one in runs[name]]) for key in ("ndcg@5", "ndcg@10", "map@10")]
    return (name, seconds, ratio, *(f"{mean:.4f}" for mean in means))


if __name__ == "__main__":
    main()
