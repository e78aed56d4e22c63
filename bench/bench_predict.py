"""How fast is a booster's prediction of 100,000 rows, 10,000 rows and one row from Python?

The single row is one of an array for all libraries, and for arboost also one of a frame, or a dict.

Every library trains 500 trees of depth 6 on the generated table and predicts float32 rows by its
usual call: LightGBM and CatBoost by `predict`, XGBoost by `inplace_predict`. CatBoost runs with its
symmetric trees. These are faster to evaluate and not comparable in quality: a target, not a peer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from support import data, harness
from support.peers import PEERS
from support.shape import Shape

SHAPE = Shape(max_depth=6)
FORMS = ("pandas", "polars", "dict", "pandas row")
CONTESTANTS = ("arboost", "lightgbm", "xgboost", "catboost-symmetric")


def main() -> None:
    """Train each library once, time its predictions, print and save the ratios."""
    parser = harness.parser(__doc__, "predict")
    parser.add_argument("--rows", type=int, default=100_000, help="rows to train on")
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--predict-rows", type=int, nargs="+", default=[100_000, 10_000, 1])
    parser.set_defaults(peers=list(CONTESTANTS))
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(
            Path(scratch), args.rows, args.features, test_rows=max(args.predict_rows)
        )
        figures = {
            name: measure(args, folder, name) for name in harness.contestants(args.peers, SHAPE)
        }
    for n_rows in args.predict_rows:
        key = str(n_rows)
        ours = figures.get("arboost", {}).get(key, {}).get("seconds")
        rows = [
            (name, one[key]["seconds"] * 1e6, one[key]["seconds"] / ours if ours else None)
            for name, one in figures.items()
        ]
        title = f"{n_rows:,} rows, {args.rounds} trees of depth 6, {args.threads} threads"
        harness.show(title, ("library", "microseconds", "times ours"), rows)
    job = {"rounds": args.rounds, "threads": args.threads, "repeats": args.repeats}
    frames = harness.run_alone("frame_rows", job, args.threads)
    shown = [(form, frames[form] * 1e6) for form in FORMS if form in frames]
    harness.show("one row of a frame of 21 columns", ("form", "microseconds"), shown)
    harness.save(args, {"rows": args.rows, "rounds": args.rounds, "frames": frames} | figures)


def measure(args: Any, folder: Path, name: str) -> dict[str, Any]:
    """Best times of one contestant for each number of rows, in a fresh process."""
    job = {
        "peer": name,
        "folder": str(folder),
        "shape": {"max_leaves": SHAPE.max_leaves, "max_depth": SHAPE.max_depth},
        "rounds": args.rounds,
        "threads": args.threads,
        "variant": PEERS[name].variants[0],
        "predict_rows": args.predict_rows,
        "repeats": args.repeats,
    }
    figures = harness.run_alone("predict_once", job, args.threads)
    if "error" in figures:
        raise SystemExit(f"{name}: {figures['error']}")
    return figures


if __name__ == "__main__":
    main()
