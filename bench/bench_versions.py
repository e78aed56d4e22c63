"""Is this checkout as fast as another one, in training, forests, AdaBoost and prediction?

``python bench/bench_versions.py --before ../other/src`` alternates the two, each in a process of
its own, and prints the ratio of the best times. The sources of both need their compiled core
(``_core``) next to them.
"""

from __future__ import annotations

import os
from pathlib import Path

from support import harness
from support.version_once import WORK
from support.worker import Worker

HERE = Path(__file__).resolve().parent


def version(source: Path) -> Worker:
    """Return a process that runs one version."""
    return Worker("version_once", [], os.pathsep.join([str(source.resolve()), str(HERE)]))


def main() -> None:
    """Alternate the two versions, print their table and save it."""
    parser = harness.parser(__doc__, "versions")
    parser.add_argument("--before", type=Path, required=True, help="src folder of the other one")
    parser.add_argument("--after", type=Path, default=HERE.parent / "src")
    parser.add_argument("--only", default="", help="part of the names of the work to do")
    args = harness.parse(parser)
    versions = {"before": version(args.before), "after": version(args.after)}
    figures = {}
    for name in WORK:
        if args.only not in name:
            continue
        best = dict.fromkeys(versions, float("inf"))
        for turn in range(args.repeats):
            for which in sorted(versions, reverse=turn % 2 == 0):
                best[which] = min(best[which], versions[which].seconds(name))
        figures[name] = {**best, "ratio": best["after"] / best["before"]}
    for worker in versions.values():
        worker.close()
    rows = [(name, of["before"], of["after"], of["ratio"]) for name, of in figures.items()]
    harness.show("two versions", ("work", "before s", "after s", "after / before"), rows)
    harness.save(args, figures)


if __name__ == "__main__":
    main()
