"""How much slower is training while another process uses one core?

A spinning barrier waits for the thread that lost its core; a pool that hands out work in small
pieces does not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import data, harness
from support.peers import PEERS
from support.shape import Shape

SHAPE = Shape(max_leaves=255)


def main() -> None:
    """Run quiet and loaded fits in turns, print and save the ratios."""
    parser = harness.parser(__doc__, "load")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(peers=["arboost", "lightgbm", "xgboost"])
    args = harness.parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        folder = data.generate(Path(scratch), args.rows, args.features, test_rows=0)
        figures = {
            name: measure(args, folder, name) for name in harness.contestants(args.peers, SHAPE)
        }
    header = ("library", "quiet s", "loaded s", "loaded / quiet")
    rows = [(name, one["quiet"], one["loaded"], one["ratio"]) for name, one in figures.items()]
    title = f"{args.rows:,} x {args.features}, {SHAPE}, {args.rounds} rounds"
    harness.show(f"{title}, {args.threads} threads, one core busy", header, rows)
    harness.save(args, {"rows": args.rows, "rounds": args.rounds} | figures)


def measure(args: Any, folder: Path, name: str) -> dict[str, Any]:
    """Best quiet and best loaded time of one contestant; both kinds of run alternate."""
    job = harness.Job(
        name, str(folder), SHAPE, args.rounds, args.threads, PEERS[name].variants[0], quality=False
    )
    runs: dict[str, list[dict[str, Any]]] = {"quiet": [], "loaded": []}
    for _ in range(args.repeats):
        runs["quiet"].append(_run(job))
        with busy_core():
            runs["loaded"].append(_run(job))
    quiet, loaded = (min(runs[kind], key=_seconds) for kind in ("quiet", "loaded"))
    return {
        "quiet": _seconds(quiet),
        "loaded": _seconds(loaded),
        "ratio": _seconds(loaded) / _seconds(quiet),
        "other_cores": quiet["other_cores"],
        "other_cores_loaded": loaded["other_cores"],
        "times": {kind: [_seconds(one) for one in figures] for kind, figures in runs.items()},
    }


def _run(job: harness.Job) -> dict[str, Any]:
    figures = harness.run(job)
    if "error" in figures:
        raise SystemExit(f"{job.peer}: {figures['error']}")
    took = f"{figures['seconds']:.3f} s, other processes used {figures['other_cores']} cores"
    print(f"  {job.peer}: {took}", file=sys.stderr, flush=True)
    return figures


def _seconds(figures: dict[str, Any]) -> float:
    return figures["seconds"]


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep one core busy with another process."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
