"""Tables of `bench_real.py`: every data set, and the summary over all of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.real_peers import REAL_PEERS

SOLVED = 0.001  # lower bound of a log loss: ratios of smaller ones are meaningless
CLOSE = 0.005  # relative difference up to which scores count as equal
FIGURES = ("score", "seconds", "predict_seconds", "peak_mb")
BEGIN, END = (
    "<!-- tables: begin -->",
    "<!-- tables: end -->",
)  # around the tables of a page


@dataclass
class Contest:
    """One data set with one setting: the mean figures of each contestant over the seeds."""

    data: str
    task: str
    rows: int
    setting: str
    seeds: int
    means: dict[str, dict[str, float]] = field(default_factory=dict)  # by label
    libraries: dict[str, str] = field(default_factory=dict)  # by label
    errors: dict[str, str] = field(default_factory=dict)  # by label
    others: float = 0.0  # cores used by other processes, time-weighted mean

    def rivals(self, label: str) -> list[str]:
        """One contestant of each other library; the one without tried parameters if it exists."""
        first: dict[str, str] = {}
        for other, library in self.libraries.items():
            if other == library or library not in first:
                first[library] = other
        return [other for library, other in first.items() if library != self.libraries[label]]

    def is_contest(self) -> bool:
        """Whether at least two libraries succeeded."""
        return len({self.libraries[label] for label in self.means}) > 1

    def score(self, label: str) -> float:
        """Mean score, at least `SOLVED` for a log loss; infinite after a failure."""
        if label not in self.means:
            return float("inf")
        score = self.means[label]["score"]
        return score if self.task == "regression" else max(score, SOLVED)

    def rank(self, label: str) -> float:
        """Rank among the rivals, 1 is best; equal scores share ranks."""
        mine = self.score(label)
        theirs = [self.score(other) for other in self.rivals(label)]
        return 1 + sum(one < mine for one in theirs) + sum(one == mine for one in theirs) / 2

    def gap(self, label: str) -> float:
        """Relative difference to the best rival's score; negative is better."""
        return self.score(label) / min(map(self.score, self.rivals(label))) - 1

    def fastest_good(self, label: str) -> float:
        """Seconds of the fastest rival whose score is close to the best rival's."""
        rivals = [one for one in self.rivals(label) if one in self.means]
        close = min(map(self.score, rivals)) * (1 + CLOSE)
        return min(self.means[one]["seconds"] for one in rivals if self.score(one) <= close)


def compare(fits: list[dict[str, Any]]) -> list[Contest]:
    """One contest per data set and setting, over the seeds common to all contestants."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    order = list(REAL_PEERS)
    for fit in sorted(fits, key=lambda one: (order.index(one["library"]), one["label"])):
        groups.setdefault((fit["data"], fit["setting"]), []).append(fit)
    return [_contest(group) for group in groups.values()]


def _contest(fits: list[dict[str, Any]]) -> Contest:
    scored = [fit for fit in fits if "score" in fit]
    labels: dict[str, set[int]] = {}
    for fit in scored:
        labels.setdefault(fit["label"], set()).add(fit["seed"])
    seeds = set.intersection(*labels.values()) if labels else set()
    first = fits[0]
    made = Contest(first["data"], first["task"], first["rows"], first["setting"], len(seeds))
    for fit in fits:
        made.libraries[fit["label"]] = fit["library"]
        if "error" in fit:
            made.errors[fit["label"]] = fit["error"]
    for label in labels:
        mine = [fit for fit in scored if fit["label"] == label and fit["seed"] in seeds]
        if mine and label not in made.errors:
            made.means[label] = {
                name: statistics.fmean(fit[name] for fit in mine) for name in FIGURES
            }
    seconds = sum(fit["seconds"] for fit in scored)
    if seconds:
        made.others = sum(fit["seconds"] * fit["others"] for fit in scored) / seconds
    return made


def summary(contests: list[Contest]) -> dict[str, Any]:
    """Summary of each contestant over all data sets, by setting."""
    found: dict[str, Any] = {}
    for setting in dict.fromkeys(one.setting for one in contests):
        chosen = [one for one in contests if one.setting == setting and one.is_contest()]
        if not chosen:
            continue
        labels = dict.fromkeys(label for one in chosen for label in one.means)
        found[setting] = {
            "contestants": {label: _reached(label, chosen) for label in labels},
            # Per contest, so that one long disturbed fit does not outweigh the others.
            "other_cores": round(statistics.fmean(one.others for one in chosen), 3),
        }
    return found


def _reached(label: str, contests: list[Contest]) -> dict[str, Any]:
    """Summary of one contestant; its times are summed over data sets without any failure."""
    mine = [one for one in contests if label in one.libraries]
    scored = [one for one in mine if label in one.means]
    gaps = {one.data: one.gap(label) for one in scored}
    worst = max(gaps, key=gaps.__getitem__)
    everybody = max(len(one.means) for one in contests)
    shared = [one for one in scored if len(one.means) == everybody]
    total = {name: sum(one.means[label][name] for one in shared) for name in FIGURES[1:3]}
    rivals = sum(one.fastest_good(label) for one in shared)
    return {
        "data_sets": len(mine),
        "failed": len(mine) - len(scored),
        "mean_rank": statistics.fmean(one.rank(label) for one in mine),
        "close": sum(gap <= CLOSE for gap in gaps.values()),
        "median_gap": statistics.median(gaps.values()),
        "worst_gap": gaps[worst],
        "worst_on": worst,
        **total,
        "good_rival_seconds": rivals,
        "mean_peak_mb": statistics.fmean(one.means[label]["peak_mb"] for one in scored),
        "largest_peak_mb": max(one.means[label]["peak_mb"] for one in scored),
    }


def text(contests: list[Contest]) -> str:
    """All tables as Markdown."""
    parts = []
    for setting, reached in summary(contests).items():
        chosen = [one for one in contests if one.setting == setting]
        labels = list(reached["contestants"])
        parts += [f"## {setting}\n", _summary_table(reached["contestants"])]
        parts += [_table("held-out score: log loss, or RMSE", "score", chosen, labels)]
        parts += [_table("fit time in s", "seconds", chosen, labels)]
        parts += [_table("peak memory of the fit in MB", "peak_mb", chosen, labels)]
        for one in chosen:
            parts += [f"{one.data}: {label}: {why}\n" for label, why in one.errors.items()]
    return "\n".join(parts)


def write(contests: list[Contest], page: Path) -> None:
    """Write the tables between the marks of a Markdown page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    parts = [before + BEGIN, text(contests).strip(), END + after]
    page.write_text("\n\n".join(parts), encoding="utf-8")


def _summary_table(contestants: dict[str, dict[str, Any]]) -> str:
    head = ["library", "mean rank", "within 0.5 %", "median gap %", "worst gap %", "on",
            "fit s", "predict s", "mean MB", "most MB"]  # fmt: skip
    rows = [
        [
            label,
            f"{one['mean_rank']:.2f}",
            f"{one['close']} of {one['data_sets']}",
            f"{100 * one['median_gap']:+.2f}",
            f"{100 * one['worst_gap']:+.2f}",
            one["worst_on"],
            f"{one['seconds']:.1f}",
            f"{one['predict_seconds']:.2f}",
            f"{one['mean_peak_mb']:.0f}",
            f"{one['largest_peak_mb']:.0f}",
        ]
        for label, one in sorted(contestants.items(), key=lambda item: item[1]["mean_rank"])
    ]
    return markdown(head, rows)


def _table(title: str, figure: str, contests: list[Contest], labels: list[str]) -> str:
    rows = []
    for one in contests:
        values = {label: mean[figure] for label, mean in one.means.items()}
        best = min(values.values(), default=None)
        cells = [
            "failed" if label in one.errors else _cell(values.get(label), best) for label in labels
        ]
        rows.append([one.data, one.task, f"{one.rows:,}", *cells])
    return markdown([title, "task", "rows", *labels], rows)


def _cell(value: float | None, best: float | None) -> str:
    if value is None:
        return "-"
    shown = f"{value:.0f}" if value >= 1000 else f"{value:.4g}"
    return f"**{shown}**" if value == best else shown


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
