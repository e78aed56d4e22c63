"""Summary of a model: kind, size, important features, parameters. For terminals and notebooks."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from arboost import Predictor
from arboost.params import Param, declarations_of
from arboost.text import (
    counted,
    display_width,
    number_text,
    padded,
    printable,
    shortened,
    shown_name,
    size_text,
)
from arboost.trees.forest import depths

# Estimators whose models are trees; of several with equally few differences, the first counts.
_ESTIMATORS = ("GradientBoosting", "RandomForest", "ExtraTrees", "DecisionTree", "AdaBoost")

# Parameters with the default "auto" hold the value of the fit, so they are always shown.
_PARAMS_HEAD = "parameters (defaults left out)"
_MOST_BARS, _MOST_LABELS, _MAX_NAME, _MAX_VALUE = 10, 5, 28, 60
_BAR_COLUMNS = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_DOT = " \N{MIDDLE DOT} "


class Summary:
    """Summary of a model, as text (``print``) and as HTML (notebooks).

    Attributes
    ----------
    title : str
    facts : dict of str to str
    categories : dict of str to str
        Use of each category: sets of levels, target encoding, or none.
    bars : list of (str, float)
        Features with the largest shares of the total gain, and the rest.
    params : dict of str to str
        Parameters that differ from their defaults.
    """

    def __init__(self, model: Predictor) -> None:
        self.title = _title(model)
        self.facts = dict(_facts(model))
        self.categories = _categories(model.schema)
        self.bars = _bars(model)
        self.params = _changed(model)

    def __str__(self) -> str:
        lines = [self.title, *_lines(self.facts)]
        parts = {
            "categories": _lines(self.categories),
            "gain by feature": self._bar_lines(),
            _PARAMS_HEAD: _lines(self.params),
        }
        for head, part in parts.items():
            if part:
                lines += ["", head, *part]
        return "\n".join(lines)

    __repr__ = __str__

    def _bar_lines(self) -> list[str]:
        width = max((display_width(name) for name, _ in self.bars), default=0)
        longest = max((share for _, share in self.bars), default=0.0)
        return [
            f"  {padded(name, width)}  {_blocks(share / longest):<{_BAR_COLUMNS}} {share:6.1%}"
            for name, share in self.bars
        ]

    def _repr_html_(self) -> str:
        """HTML fragment without script and style sheet, for light and dark pages."""
        html_parts = [
            f'<div style="font-weight:600;margin-bottom:.3em">{html.escape(self.title)}</div>',
            _html_table(self.facts),
        ]
        parts = {
            "categories": _html_table(self.categories),
            "gain by feature": _html_bars(self.bars),
            _PARAMS_HEAD: _html_table(self.params),
        }
        for head, part in parts.items():
            if part:
                html_parts.append(f'<div style="opacity:.7;margin:.6em 0 .2em">{head}</div>{part}')
        style = "font:13px/1.5 system-ui,sans-serif;max-width:44em;color:inherit"
        return f'<div style="{style}">{"".join(html_parts)}</div>'


def _lines(rows: Mapping[str, str]) -> list[str]:
    width = max(map(display_width, rows), default=0)
    return [f"  {padded(name, width)}  {text}" for name, text in rows.items()]


def _title(model: Predictor) -> str:
    trees = counted(model.n_trees, "tree")
    if model.n_trees == 1:
        return f"{model.kind}{_DOT}one tree"
    how = {"sum": "sum", "mean": "mean", "median": "weighted median"}[model.combine]
    return f"{model.kind}{_DOT}{how} of {trees}"


def _facts(model: Predictor) -> Iterator[tuple[str, str]]:
    forest, schema = model.forest, model.schema
    yield from _fit_facts(model.provenance)
    used = len(np.unique(forest.feature[forest.is_split]))
    n_categories = sum(levels is not None for levels in schema.levels)
    kinds = f", {counted(n_categories, 'category', 'categories')}" if n_categories else ""
    yield "features", f"{schema.n_features}, {used} of them used{kinds}"
    if model.classes is not None:
        yield from _class_facts(model)
    elif model.n_outputs > 1:
        yield "outputs", f"{model.n_outputs} for each row"
    if model.trees_per_round > 1:
        yield "rounds", f"{model.n_rounds:,} of {model.trees_per_round} trees"
    if model.n_trees:
        start = forest.tree_start[:-1]
        yield "depth", _range_text(np.maximum.reduceat(depths(forest), start))
        leaves = np.add.reduceat(~forest.is_split, start, dtype=np.int64)
        total = f", {leaves.sum():,} in all" if model.n_trees > 1 else ""
        yield "leaves", f"{_range_text(leaves)}{total}"
    yield "link", model.link.replace("_", " ")
    base = ", ".join(number_text(score, 4) for score in model.base_score[:_MOST_LABELS].tolist())
    more = ", ..." if model.n_outputs > _MOST_LABELS else ""
    yield "base score", f"{base}{more}"
    if schema.offset is not None:
        names = [shown_name(name, _MAX_NAME) for name in schema.offset]
        yield "offset", ", ".join(names[:_MOST_LABELS]) or "an array, which predictions need too"
    yield "memory", size_text(forest.n_bytes)


def _fit_facts(provenance: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield rows, version and validation score of the fit, as far as the model knows them."""
    rows, version = provenance.get("rows"), provenance.get("version")
    if isinstance(rows, int):
        yield "trained on", f"{counted(rows, 'row')}"
    if isinstance(version, str):
        yield "version", f"arboost {printable(version)}"
    metric, score = provenance.get("metric"), provenance.get("best_score")
    if isinstance(metric, str) and isinstance(score, float):
        yield "held-out rows", f"{printable(metric)} {number_text(score, 4)}"


def _categories(schema: Any) -> dict[str, str]:
    """Use of each category, by name; the rest is counted."""
    uses: dict[str, str] = {}
    features = [i for i in range(schema.n_features) if schema.levels_of(i) is not None]
    for feature in features[:_MOST_BARS]:
        levels = schema.levels_of(feature)
        assert levels is not None
        how = "target encoding" if levels.statistic is not None else "sets of levels"
        how = "ordered" if levels.ranks is not None else how
        how = how if levels.groups is None else f"sets of {levels.n_set_codes} groups"
        use = f"{how}, {counted(len(levels), 'level')}"
        name = shown_name(schema.shown_names[feature], _MAX_NAME)
        uses[name] = use if len(levels) else "ignored: all strings distinct, or no values"
    if len(features) > _MOST_BARS:
        uses[f"{len(features) - _MOST_BARS} more"] = "categories"
    return uses


def _class_facts(model: Predictor) -> Iterator[tuple[str, str]]:
    several = isinstance(model.classes, tuple)
    for i, labels in enumerate(model.classes if several else (model.classes,)):
        if i == _MOST_LABELS:
            yield "targets", f"{len(model.classes)} in all"
            return
        shown = [shortened(printable(str(label)), _MAX_NAME) for label in labels[:_MOST_LABELS]]
        more = ", ..." if len(labels) > _MOST_LABELS else ""
        name = f"classes {i}" if several else "classes"
        yield name, f"{len(labels)}: {', '.join(shown)}{more}"


def _bars(model: Predictor) -> list[tuple[str, float]]:
    gain = model.importances("gain").clip(min=0.0)
    total = float(gain.sum())
    if not total > 0:
        return []
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 0]
    shown = order[:_MOST_BARS] if len(order) > _MOST_BARS + 1 else order
    names = model.schema.shown_names
    bars = [(shown_name(names[i], _MAX_NAME), float(gain[i] / total)) for i in shown.tolist()]
    rest = order[len(shown) :]
    if len(rest):
        bars.append((f"{len(rest)} more", float(gain[rest].sum() / total)))
    return bars


def parameter_table(model: Predictor) -> Mapping[str, Param]:
    """Parameters of the estimator that fitted a model; empty if unknown.

    Of estimators with the same parameter names it is the one with the fewest differences.
    """
    names = ["GradientBoosting"] if model.kind == "ranker" else _ESTIMATORS
    declared = (declarations_of(f"{name}{model.kind.capitalize()}") for name in names)
    tables = [table for table in declared if model.params.keys() <= table.keys()]

    def n_changed(table: Mapping[str, Param]) -> int:
        return sum(_differs(value, table[name]) for name, value in model.params.items())

    return min(tables, key=n_changed, default={})


def _changed(model: Predictor) -> dict[str, str]:
    """Parameters that differ from the defaults of the model's estimator."""
    table = parameter_table(model)
    return {
        name: shortened(printable(value_text(value)), _MAX_VALUE)
        for name, value in model.params.items()
        if name in table and _differs(value, table[name])
    }


def _differs(value: Any, param: Param) -> bool:
    default = param.record(param.default)
    both_nan = value != value and default != default  # noqa: PLR0124
    return bool(value != default) and not both_nan


def value_text(value: Any) -> str:
    """Parameter as users write it; a function by its name."""
    if isinstance(value, Mapping) and set(value) == {"custom"}:
        return f"{value['custom']} (a function)"
    if value is None or isinstance(value, bool):
        return repr(value)  # as users write it
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def _blocks(share: float) -> str:
    eighths = max(1, round(share * _BAR_COLUMNS * 8))
    return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _html_table(rows: Mapping[str, str]) -> str:
    cell = "text-align:left;padding:0 1em 0 0;border:0;background:none"
    return _html_rows(
        f'<td style="{cell};opacity:.7">{html.escape(name)}</td>'
        f'<td style="{cell}">{html.escape(text)}</td>'
        for name, text in rows.items()
    )


def _html_bars(bars: list[tuple[str, float]]) -> str:
    longest = max((share for _, share in bars), default=0.0)
    cell = "text-align:left;padding:1px 1em 1px 0;border:0;background:none;white-space:nowrap"
    bar = "height:.8em;background:#3d85c6;border-radius:2px"
    return _html_rows(
        f'<td style="{cell}">{html.escape(name)}</td><td style="{cell};width:16em">'
        f'<div style="width:{max(100 * share / longest, 1.0):.1f}%;{bar}"></div></td>'
        f'<td style="{cell};text-align:right">{share:.1%}</td>'
        for name, share in bars
    )


def _html_rows(rows: Iterable[str]) -> str:
    """Table of rows of cells; empty without rows."""
    lines = "".join(f'<tr style="background:none">{cells}</tr>' for cells in rows)
    style = "border-collapse:collapse;border:0;margin:0;font:inherit;color:inherit"
    return f'<table style="{style}">{lines}</table>' if lines else ""


def _range_text(numbers: Any) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}, {numbers.mean():,.1f} on average"
