"""Write the tables of names, metrics and benchmarks into the pages of docs/.

    python tools/write_tables.py            rewrite the pages that differ
    python tools/write_tables.py --check    change nothing; fail where a page differs

A page marks the place of a table by two comments, `<!-- table: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import arboost  # noqa: E402
from arboost.losses.metrics import (  # noqa: E402  (of the checkout, not an install)
    PROBABILITY_METRICS,
    VALUE_METRICS,
    BuiltIn,
)
from arboost.params.suggestions import LIBRARIES, Row, library_rows, library_values  # noqa: E402
from docs_site.benchmarks import TABLES as BENCHMARKS  # noqa: E402

MARKED = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def code(names: Iterable[str]) -> str:
    """Return names as code."""
    return ", ".join(f"`{name}`" for name in names)


def habits(library: str, rows: Iterable[Row], known: Collection[str] | None = None) -> str:
    """Return the names of a library next to ours, and before them the names that are the same.

    With `known` names, the name here is the first of a row that is among them.
    """
    same, others = [], []
    for row in rows:
        theirs = row.names(library)
        ours = [name for name in row.ours.split() if known is None or name in known][:1]
        kept = [name for name in theirs if name in ours]
        same += kept
        shown = [name for name in theirs if name not in ours] or (kept if row.note else [])
        if shown:
            others.append((code(shown), code(ours), row.note))
    kept = f"The same here: {code(dict.fromkeys(same))}.\n\n" if same else ""
    return kept + table((LIBRARIES[library], "here", ""), others)


def metrics(built_in: Mapping[str, BuiltIn]) -> str:
    """Return the metrics of a kind of task, with all their names."""
    aliases = {row.ours: row.names() for row in library_rows("metrics")}
    rows = [
        (
            f"`{name}`",
            "greater" if one.greater_is_better else "lower",
            one.text,
            code(alias for alias in aliases[name] if alias != name),
        )
        for name, one in built_in.items()
    ]
    return table(("metric", "better", "", "other names"), rows)


def values() -> str:
    """Return the values of parameters that have other names here."""
    rows = [
        (f'`{name}="{theirs}"`', f'`{name}="{ours}"`')
        for (name, theirs), ours in library_values().items()
    ]
    return table(("there", "here"), rows)


def booster_arguments() -> set[str]:
    """Return the names of all arguments of the boosters, of their methods and of cv."""
    boosters = arboost.GradientBoostingClassifier, arboost.GradientBoostingRegressor
    functions = [*boosters, boosters[0].fit, boosters[0].predict, arboost.cv]
    return set().union(*(inspect.signature(one).parameters for one in functions))


def tables() -> dict[str, str]:
    """Return all tables by their names."""
    made = {
        "values": values(),
        "metrics of regression": metrics(VALUE_METRICS),
        "metrics of classification": metrics(PROBABILITY_METRICS),
    }
    for library in LIBRARIES:
        made[f"{library} parameters"] = habits(
            library, library_rows("parameters"), booster_arguments()
        )
        made[f"{library} losses"] = habits(library, library_rows("losses"))
        made[f"{library} metrics"] = habits(library, library_rows("metrics"))
    return made | {name: write() for name, write in BENCHMARKS.items()}


def rewritten(page: str, made: Mapping[str, str]) -> str:
    """Return a page with its tables."""
    return MARKED.sub(lambda found: found[1] + made[found[2]] + found[3], page)


def main() -> int:
    """Rewrite or check the pages; return 1 if the check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail on a difference")
    check = parser.parse_args().check
    made, stale = tables(), []
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        fresh = rewritten(page, made)
        if fresh != page:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(fresh, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'differs from the tables' if check else 'rewritten'}")
    if stale and check:
        print("Run: python tools/write_tables.py")
    return int(bool(stale) and check)


if __name__ == "__main__":
    sys.exit(main())
