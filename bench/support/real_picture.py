"""Picture of `bench_real.py`: score against time, one panel per setting."""

from __future__ import annotations

import statistics
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from support.real_table import Contest

WORST = 100.0  # per cent; larger values are drawn here
TICKS = (0, 0.5, 1, 2, 5, 10, 20, 50, WORST)
COLOURS = {
    "arboost": "#c1272d",
    "lightgbm": "#1b7f3b",
    "xgboost": "#2a5caa",
    "catboost": "#b8860b",
    "scikit-learn-hgb": "#7a4fa3",
}


def draw(contests: list[Contest], path: Path) -> None:
    """Write the picture; without matplotlib, print a note instead."""
    if find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed (pip install matplotlib)")
        return
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "arboost"  # equal figures give an equal file
    from matplotlib import pyplot

    settings = list(dict.fromkeys(one.setting for one in contests))
    figure, panels = pyplot.subplots(
        1, len(settings), figsize=(5.2 * len(settings), 4.6), sharey=True, squeeze=False
    )
    for panel, setting in zip(panels[0], settings, strict=True):
        _panel(panel, setting, [one for one in contests if one.setting == setting])
    panels[0][0].set_ylabel("log loss or RMSE above the best, %")
    names = panels[0][0].get_legend_handles_labels()
    figure.legend(*names, frameon=False, fontsize=8, loc="lower center", ncols=len(names[1]))
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    print(f"picture: {path}")


def _panel(panel: Any, setting: str, contests: list[Contest]) -> None:
    """Small point: one data set and library; large point: the library's medians."""
    for label in dict.fromkeys(label for one in contests for label in one.means):
        mine = [one for one in contests if label in one.means]
        seconds = [one.means[label]["seconds"] for one in mine]
        best = [min(map(one.score, one.means)) for one in mine]
        behind = [
            min(WORST, 100 * (one.score(label) / least - 1))
            for one, least in zip(mine, best, strict=True)
        ]
        colour = COLOURS.get(label, "#555555")
        panel.scatter(seconds, behind, s=14, color=colour, alpha=0.35, linewidths=0, clip_on=False)
        middle = (statistics.median(seconds), statistics.median(behind))
        panel.scatter(*middle, s=110, color=colour, edgecolors="white", label=label, zorder=3)
    panel.set_xscale("log")
    panel.set_yscale("symlog", linthresh=0.5, linscale=0.8)
    panel.set_ylim(-0.1, WORST)
    panel.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    panel.minorticks_off()
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.axhline(0.5, color="#999999", linewidth=0.7, linestyle=":")
    panel.set_xlabel("fit time, s")
    panel.set_title(f"{setting} parameters" if setting == "default" else f"{setting} setting")
    panel.spines[["top", "right"]].set_visible(False)
