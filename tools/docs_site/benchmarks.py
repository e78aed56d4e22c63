"""Tables of figures from bench/results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from docs_site.markdown import literal, table

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
COLUMNS = ("arboost", "LightGBM", "XGBoost", "CatBoost", "scikit-learn")
Row = tuple[str, Callable[[float], str], Mapping[str, float]]


def results() -> dict[str, dict[str, Any]]:
    """Return all results by the name of their file."""
    return {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("*.json"))
    }


def seconds(value: float) -> str:
    """Return a time with two or three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale or unit == "µs":
            return f"{value / scale:.{1 if value / scale < 10 else 0}f} {unit}"
    raise AssertionError


def _named(figures: Mapping[str, Any], field: str, **names: str) -> dict[str, float]:
    """Return a field of each contestant by the name of its library."""
    keys = {"arboost": "arboost", "LightGBM": "lightgbm", "XGBoost": "xgboost"} | {
        "CatBoost": "catboost",
        "scikit-learn": "scikit-learn",
    }
    keys |= {name.replace("_", "-"): key for name, key in names.items()}
    found = {name: figures.get(key, {}).get(field) for name, key in keys.items()}
    return {name: value for name, value in found.items() if value is not None}


def _rows(figures: Mapping[str, Any]) -> Iterator[Row]:
    train = figures["train"]
    hgb = {"scikit_learn": "scikit-learn-hgb"}
    leafwise, depthwise = train["leafwise"], train["depthwise"]
    yield "training, 1M x 28, 255 leaves, 100 rounds", seconds, _named(leafwise, "seconds", **hgb)
    yield "its held-out AUC", "{:.4f}".format, _named(leafwise, "auc", **hgb)
    yield "its peak memory beyond the input", "{:.0f} MB".format, _named(leafwise, "peak_mb", **hgb)
    yield "training, 1M x 28, by level to depth 8", seconds, _named(depthwise, "seconds", **hgb)
    small = figures["small"]["1000x10"]
    yield "training, 1,000 x 10, 100 rounds", seconds, _named(small, "seconds", **hgb)
    stumps = figures["adaboost"]["contests"]["stumps"]["fits"]
    yield "AdaBoost, 100k x 28, a round of a stump", seconds, _named(stumps, "round_seconds")
    forest = figures["forest"]["contests"]["classes"]["fits"]
    yield "random forest, 100k x 28, a tree", seconds, _named(forest, "tree_seconds")
    for rows, text in (("100000", "100k rows"), ("1", "one row from Python")):
        timed = {
            name: one[rows]
            for name, one in figures["predict"].items()
            if isinstance(one, dict) and rows in one
        }
        named = _named(timed, "seconds", CatBoost="catboost-symmetric")
        yield f"prediction, {text}, 500 trees of depth 6", seconds, named
    shap = figures["shap"]["contest"]
    yield "SHAP values, 2,000 rows, 500 trees of depth 6", seconds, _named(shap, "values")
    real = figures["real"]["summary"]
    for setting, text in (
        ("default", "31 real tables, default parameters, chosen on them"),
        ("tuned", "19 of them, one tuned setting for all"),
    ):
        named = _named(real[setting]["contestants"], "mean_rank", **hgb)
        yield f"mean rank of the score on {text}", "{:.2f}".format, named


def headline() -> str:
    """Return the main figures: a row for each work, a column for each library."""
    figures = {name: result.get("figures", {}) for name, result in results().items()}
    rows = []
    for work, shown, values in _rows(figures):
        best = (max if "AUC" in work else min)(values.values())
        cells = [values.get(name) for name in COLUMNS]
        rows.append(
            [
                work,
                *(
                    "" if one is None else f"**{shown(one)}**" if one == best else shown(one)
                    for one in cells
                ),
            ]
        )
    return table(("work, two threads", *COLUMNS), rows)


def _stored() -> list[str]:
    """Return the tables that the benchmarks print of their stored results."""
    command = [sys.executable, ROOT / "bench" / "run_all.py", "--table"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [part for part in printed.strip().split("\n\n") if part]


def targets() -> str:
    """Return the targets and the measured values."""
    return f"{_stored()[0]}\n"


def training() -> str:
    """Return the contests of training, machine and versions."""
    return "\n\n".join(_stored()[1:]) + "\n"


def commands() -> str:
    """Return the command, date and machine of each result."""
    rows = []
    for name, result in results().items():
        what = result["machine"]
        if not isinstance(what, str):
            what = f"{what['cpu']}, {what['cores']} cores, {what['memory_gb']} GB"
        if "device" in result:
            what += f", {result['device']}"
        file = f"[{name}.json](../../bench/results/{name}.json)"
        rows.append((file, literal(result["command"]), result["date"], what))
    return table(("results", "command", "date", "machine"), rows)


TABLES = {
    "benchmark headline": headline,
    "benchmark targets": targets,
    "benchmark training": training,
    "benchmark commands": commands,
}
