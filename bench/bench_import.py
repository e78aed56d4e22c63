"""How long does the import take, and how large is the wheel?"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from support import harness
from support.peers import PEERS, installed

ROOT = harness.BENCH.parent
TIMED = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def main() -> None:
    """Time the imports, measure the wheel, print and save both."""
    parser = harness.parser(__doc__, "import")
    parser.add_argument("--wheel", type=Path, help="wheel to measure; default: newest in dist/")
    parser.add_argument("--build", action="store_true", help="build the wheel if there is none")
    parser.set_defaults(repeats=10)
    args = harness.parse(parser)
    packages = {PEERS[name].package for name in args.peers or PEERS if installed(name)}
    figures: dict[str, Any] = {"import": import_times({"numpy", *packages}, args.repeats)}
    rows = [(name, one["best"], one["median"]) for name, one in figures["import"].items()]
    harness.show("import in a fresh process", ("package", "best s", "median s"), rows)
    figures["wheel_mb"] = wheel_mb(args.wheel, build=args.build)
    harness.show("size", ("file", "MB"), [("arboost wheel", figures["wheel_mb"])])
    harness.save(args, figures)


def import_times(packages: set[str], repeats: int) -> dict[str, dict[str, float]]:
    """Best and median seconds of each import; packages alternate."""
    times: dict[str, list[float]] = {name: [] for name in sorted(packages)}
    for repeat in range(repeats + 1):
        for name, seconds in times.items():
            command = [sys.executable, "-c", TIMED.format(name)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            if repeat > 0:  # the first import reads the files from disk
                seconds.append(float(done.stdout))
    return {
        name: {"best": min(seconds), "median": statistics.median(seconds)}
        for name, seconds in times.items()
    }


def wheel_mb(wheel: Path | None, *, build: bool) -> float | None:
    """Size of the given, newest or freshly built wheel in MB; None if there is none."""
    found = [wheel] if wheel else sorted((ROOT / "dist").glob("arboost-*.whl"), key=_age)
    if found:
        return found[-1].stat().st_size / 1e6
    if not build:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
        ]
        subprocess.run([*command, "--wheel-dir", scratch, str(ROOT)], check=True)
        return next(Path(scratch).glob("arboost-*.whl")).stat().st_size / 1e6


def _age(path: Path) -> float:
    return path.stat().st_mtime


if __name__ == "__main__":
    main()
