"""Is this checkout as fast as another one, in training, forests, AdaBoost and prediction?

``python bench/bench_versions.py --before ../other/src`` alternates the two, each in a process of
its own, and prints the ratio of the best times. The sources of both need their compiled core
(``_core``) next to them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import harness
from support.version_once import WORK

HERE = Path(__file__).resolve().parent


class Version:
    """A process that runs one version."""

    def __init__(self, source: Path) -> None:
        path = os.pathsep.join([str(source.resolve()), str(HERE)])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "support.version_once"],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str) -> float:
        """Return the time of some work."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def main() -> None:
    """Alternate the two versions, print their table and save it."""
    parser = harness.parser(__doc__, "versions")
    parser.add_argument("--before", type=Path, required=True, help="src folder of the other one")
    parser.add_argument("--after", type=Path, default=HERE.parent / "src")
    parser.add_argument("--only", default="", help="part of the names of the work to do")
    args = harness.parse(parser)
    versions = {"before": Version(args.before), "after": Version(args.after)}
    figures = {}
    for name in WORK:
        if args.only not in name:
            continue
        best = dict.fromkeys(versions, float("inf"))
        for turn in range(args.repeats):
            for which in sorted(versions, reverse=turn % 2 == 0):
                best[which] = min(best[which], versions[which].seconds(name))
        figures[name] = {**best, "ratio": best["after"] / best["before"]}
    for version in versions.values():
        version.close()
    rows = [(name, of["before"], of["after"], of["ratio"]) for name, of in figures.items()]
    harness.show("two versions", ("work", "before s", "after s", "after / before"), rows)
    harness.save(args, figures)


if __name__ == "__main__":
    main()
