"""How accurate, fast and large are fits of real tables, with default and tuned parameters?

Every data set of a data folder, every library with its native treatment of categories, three
seeds. Each fit is cached in results/real.json, and a run continues from the cache.
`--only arboost --again` repeats one library and compares it with the cached fits of the others.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from support import harness, real_data, real_picture, real_table
from support.real_peers import REAL_PEERS, SETTINGS

VARIABLE = "ARBOOST_BENCH_DATA"
FOLDER = harness.BENCH.parents[1] / "shared" / "data"


@dataclass(frozen=True)
class Contestant:
    """A library; for arboost, also parameters to try."""

    library: str
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name in tables and in the cache."""
        words = [f"{name}={value!r}" for name, value in sorted(self.extra.items())]
        return " ".join([self.library, *words])

    @property
    def version(self) -> str:
        """Version of the installed library."""
        for name in REAL_PEERS[self.library].distributions:
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return "unknown"


@dataclass(frozen=True)
class Case:
    """One fit of the contest, without its contestant."""

    data: real_data.DataSet
    setting: str
    seed: int
    rows: int

    def key(self, contestant: Contestant) -> str:
        """Name of the fit in the cache."""
        who = f"{contestant.label} | {contestant.version}"
        return f"{self.data.name} | {who} | {self.setting} | seed {self.seed} | {self.rows} rows"

    def about(self, contestant: Contestant) -> dict[str, Any]:
        """Metadata of the fit for the tables."""
        return {
            "data": self.data.name,
            "task": self.data.task,
            "rows": self.rows,
            "library": contestant.library,
            "label": contestant.label,
            "setting": self.setting,
            "seed": self.seed,
        }


class Library:
    """Worker process of one library, started at the first fit."""

    def __init__(self, name: str, threads: int) -> None:
        self.command, self.env = harness.process("real_once", name, threads)
        self.process: subprocess.Popen[str] | None = None

    def fit(self, job: dict[str, Any]) -> dict[str, Any]:
        """Figures of one fit, or {"error": reason}."""
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.process = subprocess.Popen(
                self.command, env=self.env, text=True, stderr=subprocess.DEVNULL, **pipes
            )
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{' '.join(self.command)} ended: run it by hand to see why")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def main() -> None:
    """Run the fits that are not cached, then print the tables and draw the picture."""
    args = harness.parse(_parser())
    if not (args.data / "MANIFEST.md").exists():
        print(
            f"bench-real: no data in {args.data.name}, nothing to compare. Give a folder of "
            f"tables with a MANIFEST.md as --data FOLDER or {VARIABLE}=FOLDER."
        )
        return
    contestants = _contestants(args)
    cases = [
        Case(data, setting, seed, data.training_rows(args.rows))
        for data in real_data.data_sets(args.data)
        if args.sets is None or data.name in args.sets
        for seed in args.seeds
        for setting in args.settings
    ]
    fits = _cached(args.results / f"{args.name}.json")
    if not args.cached:
        chosen = args.only or list(REAL_PEERS)
        run(args, cases, [one for one in contestants if one.library in chosen], fits)
    keys = {case.key(one) for case in cases for one in contestants}
    comparison = real_table.compare([fits[key] for key in fits if key in keys])
    print(real_table.text(comparison))
    _save(args, fits, real_table.summary(comparison))
    if args.page:
        real_table.write(comparison, args.page)
    if args.picture:
        real_picture.draw(comparison, args.picture)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    folder = Path(os.environ.get(VARIABLE, FOLDER))
    made.add_argument("--data", type=Path, default=folder, help=f"data folder (or {VARIABLE})")
    made.add_argument("--sets", nargs="+", metavar="NAME", help="only these data sets")
    made.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    made.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    made.add_argument("--rows", type=_rows, help="limit of the training rows, or all")
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--limit", type=int, default=600, help="time limit of a fit in seconds")
    made.add_argument("--only", nargs="+", choices=list(REAL_PEERS), help="run only these")
    made.add_argument(
        "--try",
        dest="tries",
        nargs="+",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="also run arboost with these parameters; may be given several times",
    )
    made.add_argument("--again", action="store_true", help="repeat cached fits")
    made.add_argument("--cached", action="store_true", help="run no fits, show the cached ones")
    made.add_argument("--results", type=Path, default=harness.RESULTS)
    made.add_argument("--page", type=Path, help="Markdown file to write the tables into")
    made.add_argument("--picture", type=Path, help="SVG or PNG file to draw score against time in")
    made.set_defaults(name="real")
    return made


def _rows(text: str) -> int:
    return sys.maxsize if text == "all" else int(text)


def _contestants(args: argparse.Namespace) -> list[Contestant]:
    """Installed libraries, and the parameters of --try; prints the libraries left out."""
    chosen = [Contestant(name) for name in REAL_PEERS]
    for words in args.tries:
        pairs = (word.split("=", 1) for word in words)
        chosen.append(Contestant("arboost", {name: _value(text) for name, text in pairs}))
    for name, peer in REAL_PEERS.items():
        if find_spec(peer.package) is None:
            print(f"{name}: left out, not installed", file=sys.stderr)
    return [one for one in chosen if find_spec(REAL_PEERS[one.library].package) is not None]


def _value(text: str) -> Any:
    """The text as a Python literal, or unchanged if it is none."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def _cached(path: Path) -> dict[str, dict[str, Any]]:
    return json.loads(path.read_text())["figures"]["fits"] if path.exists() else {}


def _save(args: argparse.Namespace, fits: dict[str, Any], summary: dict[str, Any]) -> None:
    harness.save(args, {"fits": dict(sorted(fits.items())), "summary": summary})


def run(
    args: argparse.Namespace,
    cases: list[Case],
    contestants: list[Contestant],
    fits: dict[str, dict[str, Any]],
) -> None:
    """Run the fits that are not cached or failed last time, and save after each.

    Contestants alternate on the same problem, and the first one rotates.
    """
    libraries = {one.library: Library(one.library, args.threads) for one in contestants}
    folders: dict[tuple[str, int], Path] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, case in enumerate(cases):
            turn = number % len(contestants)
            for one in contestants[turn:] + contestants[:turn]:
                key = case.key(one)
                if not args.again and "score" in fits.get(key, {}):
                    continue
                problem = (case.data.name, case.seed)
                if problem not in folders:
                    target = Path(scratch) / f"{case.data.name}_{case.seed}"
                    folders[problem] = real_data.split(case.data, case.seed, case.rows, target)
                job = {
                    "folder": str(folders[problem]),
                    "setting": case.setting,
                    "seed": case.seed,
                    "threads": args.threads,
                    "limit": args.limit,
                    "extra": one.extra,
                }
                figures = libraries[one.library].fit(job)
                fits[key] = case.about(one) | figures
                _progress(key, figures)
                _save(args, fits, {})
    for library in libraries.values():
        library.close()


def _progress(key: str, figures: dict[str, Any]) -> None:
    said = figures.get("error") or f"{figures['score']:.5f} in {figures['seconds']:.3g} s"
    print(f"  {key}: {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
