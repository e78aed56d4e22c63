"""JSON results as Markdown: the targets and the measured values, then each training contest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.harness import BUSY, cell, ratio
from support.peers import STANDARD

SHAPES = ("leafwise", "depthwise")
OTHER_SHAPE = "catboost-symmetric"  # not comparable in quality at the same shape


@dataclass(frozen=True)
class Bar:
    """One target: measured value, required value and ambitious value."""

    work: str
    value: float
    bar: float
    stretch: float
    unit: str = "x"
    less_is_better: bool = False

    def verdict(self) -> str:
        """Verdict: "surpassed", "met" or "**not met**"."""
        sign = -1 if self.less_is_better else 1
        if sign * self.value >= sign * self.stretch:
            return "surpassed"
        return "met" if sign * self.value >= sign * self.bar else "**not met**"

    def row(self) -> list[str]:
        """Cells of the table."""
        word = "at most" if self.less_is_better else "at least"
        return [
            self.work,
            f"{word} {self.bar:g} {self.unit}",
            f"{self.value:.3g} {self.unit}",
            self.verdict(),
        ]


def show(folder: Path) -> None:
    """Print the tables of the results in a folder."""
    results = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    rows = []
    for name in filter(results.__contains__, BARS):
        result = results[name]
        spoilt = disturbed(result["figures"]) or disturbed(result["machine"])
        for bar in BARS[name](result["figures"]):
            *cells, verdict = bar.row()
            rows.append([*cells, "disturbed, run again" if spoilt else verdict])
    if rows:
        print(markdown(["work", "target", "measured", "verdict"], rows))
    if "train" in results:
        print(contests(results["train"]))


def disturbed(figures: Any) -> bool:
    """Whether other processes used a core before or during a run."""
    if not isinstance(figures, dict):
        return False
    allowed = {"other_cores": BUSY, "busy_cores_before": BUSY, "other_cores_loaded": 1 + BUSY}
    return any(figures.get(key, 0.0) > limit for key, limit in allowed.items()) or any(
        disturbed(value) for value in figures.values()
    )


def _train_bars(train: dict[str, Any]) -> Iterator[Bar]:
    asked = {
        "leafwise": {"lightgbm": 2.5, "lightgbm-quantised": 1.7, "xgboost": 2.5},
        "depthwise": {"xgboost": 2.5},
    }
    for shape, peers in asked.items():
        figures = train.get(shape, {})
        for name, bar in peers.items():
            faster = ratio(figures, name) if name in figures else None
            if faster is not None:
                yield Bar(f"{shape}, faster than {name}", faster, bar, 4.0)
        yield from _quality_bars(shape, figures)


def _quality_bars(shape: str, figures: dict[str, Any]) -> Iterator[Bar]:
    ran = {name: one for name, one in figures.items() if "error" not in one}
    ours = ran.pop("arboost", None)
    ran.pop(OTHER_SHAPE, None)
    if ours is None or not ran:
        return
    loss = ours["log_loss"] - min(one["log_loss"] for one in ran.values())
    auc = max(one["auc"] for one in ran.values()) - ours["auc"]
    behind = {"unit": "behind", "less_is_better": True}
    yield Bar(f"{shape}, log loss, best peer", loss, 0.0005, 0.0, **behind)
    yield Bar(f"{shape}, AUC, best peer", auc, 0.0005, 0.0, **behind)
    if "lightgbm" in ran:
        share = ours["peak_mb"] / ran["lightgbm"]["peak_mb"]
        yield Bar(f"{shape}, peak memory over LightGBM's", share, 1.0, 0.5, less_is_better=True)


def _predict_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    asked = (
        ("100000", "lightgbm", 10.0, 10.0),
        ("100000", "xgboost", 4.0, 4.0),
        ("100000", OTHER_SHAPE, 1.0, 1.0),
        ("1", "lightgbm", 5.0, 5.0),
    )
    ours = figures.get("arboost", {})
    for rows, name, bar, stretch in asked:
        if rows in ours and rows in figures.get(name, {}):
            faster = figures[name][rows]["seconds"] / ours[rows]["seconds"]
            yield Bar(f"prediction of {rows} rows, faster than {name}", faster, bar, stretch)
    if "1" in ours:
        micro = ours["1"]["seconds"] * 1e6
        yield Bar("prediction of one row", micro, 10.0, 3.0, unit="us", less_is_better=True)


def _small_bars(small: dict[str, Any]) -> Iterator[Bar]:
    for size, bar in (("1000x10", 5.0), ("150x10", 3.0)):
        figures = small.get(size, {})
        faster = [ratio(figures, name) for name in figures if name != "arboost"]
        known = [value for value in faster if value is not None]
        if known:
            yield Bar(f"{size}, faster than the fastest peer", min(known), bar, 20.0)


def _load_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    if "arboost" in figures:
        slower = figures["arboost"]["ratio"]
        yield Bar("leafwise with one core busy, over quiet", slower, 2.0, 1.6, less_is_better=True)


def _thread_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    seconds = {
        int(count): one["arboost"]["seconds"]
        for count, one in figures["by_threads"].items()
        if "seconds" in one.get("arboost", {})
    }
    if 1 in seconds and 16 in seconds:
        yield Bar("2M x 28, 1 to 16 threads", seconds[1] / seconds[16], 7.0, 12.0)


def _exact_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    fits = figures["fits"]
    seconds = {name: one["tree_seconds"] for name, one in fits.items() if "tree_seconds" in one}
    ours = seconds.get("arboost-exact")
    for name, bar, stretch in (("xgboost-exact", 2.0, 4.0), ("scikit-learn-gb", 10.0, 40.0)):
        if ours is not None and name in seconds:
            yield Bar(f"exact, faster than {name}", seconds[name] / ours, bar, stretch)


def _approx_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    for rows, fits in figures["by_rows"].items():
        faster = ratio(fits, "xgboost-approx", "arboost-approx")
        if faster is not None:
            yield Bar(f"approx, {int(rows):,} rows, faster than xgboost-approx", faster, 2.0, 4.0)


def _shap_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    contest = figures["contest"]
    asked = {
        "values": {"xgboost": (10.0, 40.0), "lightgbm": (10.0, 40.0), "catboost": (0.5, 1.0)},
        "interactions": {"xgboost": (20.0, 200.0)},
    }
    for kind, peers in asked.items():
        ours = contest.get("arboost", {}).get(kind)
        for name, marks in peers.items():
            theirs = contest.get(name, {}).get(kind)
            if ours is not None and theirs is not None:
                yield Bar(f"SHAP {kind}, faster than {name}", theirs / ours, *marks)


def _sampling_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    fits = figures["fits"]
    slower = ratio(fits, "arboost-gradient-based")
    if slower is not None:
        behind = fits["arboost"]["auc"] - fits["arboost-gradient-based"]["auc"]
        yield Bar("gradient_based 0.1, faster than all rows", 1 / slower, 3.0, 5.0)
        yield Bar(
            "gradient_based 0.1, AUC, all rows",
            behind,
            0.002,
            0.0005,
            "behind",
            less_is_better=True,
        )


def _custom_loss_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    slower = ratio(figures["fits"], "arboost-custom-loss")
    if slower is not None:
        yield Bar("loss in NumPy over built-in", slower, 1.5, 1.2, less_is_better=True)


def _cv_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    fits = figures["fits"]
    slower = ratio(fits, "arboost-cv")
    if slower is not None:
        extra = fits["arboost-cv"]["peak_mb"] - fits["arboost"]["peak_mb"]
        copies = extra / (figures["rows"] * figures["features"] * 4 / 2**20)
        yield Bar("cv of 5 folds over one fit", slower, 4.5, 4.0, less_is_better=True)
        # Folds with separate tables would hold four more copies of the data.
        yield Bar(
            "cv of 5 folds, memory beyond one fit",
            copies,
            4.0,
            1.0,
            "copies of X",
            less_is_better=True,
        )


def _sparse_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    fits = figures.get("one_hot", {}).get("fits", {})
    faster = ratio(fits, "lightgbm")
    if faster is not None:
        share = fits["arboost"]["peak_mb"] / fits["lightgbm"]["peak_mb"]
        yield Bar("sparse one-hot, faster than lightgbm", faster, 2.0, 4.0)
        yield Bar(
            "sparse one-hot, peak memory over LightGBM's", share, 1.0, 0.5, less_is_better=True
        )
    ours = figures.get("scattered", {}).get("fits", {}).get("arboost", {})
    if "peak_mb" in ours:
        held = ours["start_mb"] + ours["peak_mb"]  # with the data
        yield Bar("sparse scattered, process", held, 1024, 512, "MB", less_is_better=True)


def _real_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    reached = figures["summary"].get("default", {}).get("contestants", {})
    ours = reached.get("arboost")
    ranks = [
        reached[name]["mean_rank"] for name in reached if name in STANDARD and name != "arboost"
    ]
    if ours is None or not ranks:
        return
    behind = {"unit": "behind", "less_is_better": True}
    rank = ours["mean_rank"] - min(ranks)
    yield Bar("real tables, mean rank, best peer", rank, 0.0, -1.0, **behind)
    worst = f"real tables, worst score ({ours['worst_on']}), best peer"
    yield Bar(worst, 100 * ours["worst_gap"], 0.5, 0.0, "% behind", less_is_better=True)
    if ours["seconds"]:
        faster = ours["good_rival_seconds"] / ours["seconds"]
        yield Bar("real tables, faster than the fastest good peer", faster, 2.0, 4.0)


def _adaboost_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    asked = {
        "stumps": ("stumps", 100.0, 300.0),
        "trees": ("depth 3", 50.0, 150.0),
        "numbers": ("regression", 30.0, 100.0),
    }
    for name, (words, bar, stretch) in asked.items():
        fits = figures["contests"].get(name, {}).get("fits", {})
        ours, theirs = fits.get("arboost"), fits.get("scikit-learn")
        if ours is not None and theirs is not None:
            faster = theirs["round_seconds"] / ours["round_seconds"]
            predicts = theirs["predict_seconds"] / ours["predict_seconds"]
            yield Bar(f"AdaBoost, {words}, a round faster than scikit-learn", faster, bar, stretch)
            yield Bar(f"AdaBoost, {words}, prediction", predicts, 5.0, 15.0)


def _forest_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    asked = {
        "classes": ("random forest", 8.0, 20.0),
        "numbers": ("random forest, regression", 8.0, 20.0),
        "many_rows": ("random forest, a tenth of the rows", 8.0, 20.0),
        "extra": ("extra trees", 4.0, 10.0),
    }
    saved, predicted = [], []
    for name, (words, bar, stretch) in asked.items():
        fits = figures["contests"].get(name, {}).get("fits", {})
        ours, theirs = fits.get("arboost"), fits.get("scikit-learn")
        if ours is None:
            continue
        if theirs is not None:
            faster = theirs["tree_seconds"] / ours["tree_seconds"]
            yield Bar(f"{words}, faster than scikit-learn", faster, bar, stretch)
            saved.append(ours["saved_bytes"] / theirs["saved_bytes"])
            predicted.append(theirs["predict_seconds"] / ours["predict_seconds"])
        ydf = [one["tree_seconds"] for peer, one in fits.items() if peer.startswith("ydf")]
        if ydf:
            yield Bar(f"{words}, faster than YDF", min(ydf) / ours["tree_seconds"], 4.0, 10.0)
        if name == "classes" and theirs is not None:
            behind = theirs["score"] - ours["score"]
            yield Bar(
                "random forest, AUC, scikit-learn",
                behind,
                0.002,
                0.0,
                "behind",
                less_is_better=True,
            )
    if saved:
        worst = "saved forest over scikit-learn's pickle, worst"
        yield Bar(worst, max(saved), 0.2, 0.1, less_is_better=True)
        yield Bar("prediction of forests, worst", min(predicted), 3.0, 10.0)
    yield from _depth_bars(figures.get("cost_of_depth", {}))


def _depth_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    for words, one in figures.items():
        if min(one[name]["tree_seconds"] for name in ("full", "depth_8")) <= 0:
            continue  # below the noise
        cost = one["full"]["tree_seconds"] / one["depth_8"]["tree_seconds"]
        work = f"full depth over depth 8, {words} features, per row and feature"
        yield Bar(work, cost, 3.0, 2.0, less_is_better=True)
        by_level = cost * one["depth_8"]["levels"] / one["full"]["levels"]
        yield Bar(
            f"full depth over depth 8, {words} features, per level",
            by_level,
            3.0,
            1.0,
            less_is_better=True,
        )


def _bagging_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    fits = figures["memory"]["fits"]
    more = fits["bagged boosters"]["peak_mb"] / fits["one booster"]["peak_mb"]
    words = f"memory of {figures['memory']['boosters']} bagged boosters over one"
    yield Bar(words, more, 1.5, 1.1, less_is_better=True)
    faster = ratio(figures["stacking"]["fits"], "scikit-learn")
    if faster is not None:
        yield Bar("stack of five members, faster than scikit-learn", faster, 4.0, 10.0)


def _size_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    if "arboost" in figures["import"]:
        seconds = figures["import"]["arboost"]["median"]
        yield Bar("import arboost", seconds, 0.2, 0.1, "s", less_is_better=True)
    if figures["wheel_mb"] is not None:
        yield Bar("core wheel", figures["wheel_mb"], 10.0, 3.0, "MB", less_is_better=True)


def _listed_bars(figures: dict[str, Any]) -> Iterator[Bar]:
    yield from (Bar(**one) for one in figures["bars"])


BARS = {
    "train": _train_bars,
    "small": _small_bars,
    "load": _load_bars,
    "threads": _thread_bars,
    "exact": _exact_bars,
    "approx": _approx_bars,
    "sampling": _sampling_bars,
    "custom_loss": _custom_loss_bars,
    "cv": _cv_bars,
    "import": _size_bars,
    "sparse": _sparse_bars,
    "real": _real_bars,
    "adaboost": _adaboost_bars,
    "forest": _forest_bars,
    "bagging": _bagging_bars,
    "shap": _shap_bars,
    "predict": _predict_bars,
    "out_of_core": _listed_bars,
    "tune": _listed_bars,
    "report": _listed_bars,
}


def contests(train: dict[str, Any]) -> str:
    """Tables of the training comparison, with machine and versions under them."""
    parts = []
    for shape in SHAPES:
        figures = train["figures"].get(shape)
        if figures is None:
            continue
        rows = [
            [
                name,
                *map(cell, (one["seconds"], ratio(figures, name))),
                f"{one['log_loss']:.4f}",
                f"{one['auc']:.4f}",
                cell(one["peak_mb"]),
            ]
            for name, one in figures.items()
            if "error" not in one
        ]
        header = [shape, "seconds", "x arboost", "log loss", "AUC", "peak MB"]
        parts.append(markdown(header, rows))
    machine = train["machine"]
    names = ", ".join(f"{name} {version}" for name, version in train["versions"].items())
    place = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB"
    if disturbed(train["figures"]):
        parts.append("Not valid: other processes were running.\n")
    return "\n".join([*parts, f"{place}; {names}; {train['date']}; `{train['command']}`"])


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
