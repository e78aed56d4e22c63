"""How fast is the command line: help, training on a CSV file, predictions of Parquet files?

Help is timed in fresh processes. Training runs in a pseudo-terminal: the longest time without a
byte of output is the silence of the terminal, and the command's own figures tell the share of
reading. Predictions are compared with PyArrow alone, which reads the same files and writes as many
numbers; both run in fresh processes, imports included.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from support import data, harness

COMMAND = [sys.executable, "-m", "arboost"]
PART_ROWS = 1_000_000  # of a Parquet file
CHUNK = 65536
READ_AND_WRITE = """
import sys
import pyarrow
from pyarrow import parquet
table = parquet.read_table(sys.argv[1])
numbers = pyarrow.table({"prediction": table.column(0).cast(pyarrow.float64())})
parquet.write_table(numbers, sys.argv[2], use_dictionary=False)
"""


def main() -> None:
    """Time the three commands, print and save the figures."""
    parser = harness.parser(__doc__, "cli")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the CSV file")
    parser.add_argument("--predicted", type=int, default=10_000_000, help="rows of Parquet files")
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=100, help="of the model that predicts")
    questions = ("help", "train", "predict")
    parser.add_argument("--only", nargs="+", choices=questions, default=questions)
    args = harness.parse(parser)
    figures: dict[str, Any] = {"rows": args.rows, "predicted": args.predicted}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if "help" in args.only:
            figures["help"] = help_times(args.repeats)
        if "train" in args.only:
            figures["train"] = training(folder, args.rows, args.features, args.repeats)
        if "predict" in args.only:
            figures["predict"] = predictions(folder, args)
    harness.save(args, figures)


def help_times(repeats: int) -> dict[str, float]:
    """Fastest seconds of two pages of help."""
    found = {}
    for words in (["--help"], ["train", "--help"]):
        found[" ".join(words)] = min(
            _seconds([*COMMAND, *words]) for _ in range(max(repeats, 3) + 1)
        )
    harness.show("help", ("command", "s"), found.items())
    return found


def training(folder: Path, rows: int, features: int, repeats: int) -> dict[str, Any]:
    """Figures of the fastest training on a CSV file, in a terminal."""
    from pyarrow import csv

    csv.write_csv(_table(rows, features, target=True), folder / "rows.csv")
    command = [*COMMAND, "train", "rows.csv", "--target", "y", "-o", "model.arb"]
    runs = [_in_terminal(command, folder) for _ in range(repeats)]
    best = min(runs, key=lambda run: run["seconds"])
    figures = {
        "csv_mb": (folder / "rows.csv").stat().st_size / 1e6,
        "seconds": best["seconds"],
        "reading_share": best["reading"] / best["seconds"],
        "longest_silence": max(run["silence"] for run in runs),
    }
    harness.show(f"train, {rows:,} x {features} CSV", ("figure", "value"), figures.items())
    return figures


def predictions(folder: Path, args: Any) -> dict[str, Any]:
    """Figures of the fastest predictions, and of PyArrow alone; they alternate."""
    from pyarrow import parquet

    from arboost import GradientBoostingClassifier

    X, y = data.higgs_like(100_000, args.features)
    names = [f"x{i}" for i in range(args.features)]
    model = GradientBoostingClassifier(n_estimators=args.rounds)
    model.fit({name: X[:, i] for i, name in enumerate(names)}, y).save(folder / "model.arb")
    (folder / "rows").mkdir()
    for part, start in enumerate(range(0, args.predicted, PART_ROWS)):
        table = _table(min(PART_ROWS, args.predicted - start), args.features, seed=part)
        parquet.write_table(table, folder / "rows" / f"part{part}.parquet")
    ours = [*COMMAND, "predict", "model.arb", "rows", "-o", "out.parquet", "-q"]
    alone = [sys.executable, "-c", READ_AND_WRITE, "rows", "alone.parquet"]
    times: dict[str, list[float]] = {"arboost": [], "pyarrow": []}
    for _ in range(args.repeats):
        times["arboost"].append(_seconds(ours, folder))
        times["pyarrow"].append(_seconds(alone, folder))
    figures = {name: min(seconds) for name, seconds in times.items()}
    figures["ratio"] = figures["arboost"] / figures["pyarrow"]
    title = f"predict, {args.predicted:,} x {args.features} Parquet, {args.rounds} rounds"
    harness.show(title, ("figure", "s"), figures.items())
    return figures


def _table(rows: int, features: int, *, seed: int = 0, target: bool = False) -> Any:
    import pyarrow

    X, y = data.higgs_like(rows, features, seed)
    columns: dict[str, Any] = {f"x{i}": np.float32(X[:, i]) for i in range(features)}
    return pyarrow.table(columns | ({"y": y} if target else {}))


def _seconds(command: list[str], folder: Path | None = None) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return time.perf_counter() - start


def _in_terminal(command: list[str], folder: Path) -> dict[str, float]:
    """Seconds of a command in a pseudo-terminal, of its longest silence and of its reading."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    start = last = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, cwd=folder, env=environment
    )
    os.close(follower)
    silence, text = 0.0, b""
    while True:
        select.select([leader], [], [])
        try:
            part = os.read(leader, CHUNK)
        except OSError:  # the other end is closed
            part = b""
        now = time.perf_counter()
        silence, last = max(silence, now - last), now
        if not part:
            break
        text += part
    os.close(leader)
    if process.wait():
        raise SystemExit(text.decode(errors="replace"))
    reading = re.search(r"reading ([\d.]+) s, fitting", text.decode(errors="replace"))
    if reading is None:
        raise SystemExit(f"no time of reading in {json.dumps(text.decode(errors='replace'))}")
    return {
        "seconds": time.perf_counter() - start,
        "silence": silence,
        "reading": float(reading[1]),
    }


if __name__ == "__main__":
    main()
