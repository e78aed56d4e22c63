"""Trees of a model as columns, and the leaf of each sampled row in each of them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.model.forest import Forest
from arboost.model.links import LINKS
from arboost.model.model import Model
from arboost.pictures.tree_words import number_text, printable, shortened, time_text
from arboost.report.models import ReportModel
from arboost.report.rounding import counts, rounded
from arboost.report.table import Sample, level_text

__all__ = ["trees_section"]

_MOST_NODES = 30_000  # of all models of a page; fewer where leaves hold several values
_MOST_TREES = 500
_MOST_WIDE = 10  # values of a leaf of several outputs
_LARGEST_NODE = 65_535  # of 16 bits
_MAX_NAME = 40  # characters of a level
_MOST_LEVELS = 8  # that are listed by name
_DIGITS = 5
_ROUNDING = 2.0**-24  # of float32, in which tables often are


def trees_section(model: ReportModel, sample: Sample, n_models: int) -> dict[str, Any] | None:
    """Return the first trees of a model, as many as a page of so many models can carry."""
    engine = model.engine
    if engine is None or not engine.n_trees:
        return None
    start = engine.forest.tree_start
    width = min(engine.forest.width, _MOST_WIDE)
    most = 4 * _MOST_NODES / (3 + width) / n_models
    fits = (start[1:] <= most) & (np.diff(start) <= _LARGEST_NODE)
    n_shown = min(int(np.argmin(fits)) if not fits.all() else len(fits), _MOST_TREES)
    reason = None
    if n_shown < engine.n_trees:
        reason = (
            f"The page carries {n_shown:,} of {engine.n_trees:,} trees: more would be too large."
        )
    if not n_shown:
        return _empty(engine, "The page carries no trees: they are too large.")
    forest = engine.forest.first(n_shown)
    split = forest.is_split
    value, unit = _values(engine, forest)
    return {
        "n": engine.n_trees,
        "shown": n_shown,
        "reason": reason,
        "start": forest.tree_start[:-1].tolist(),
        **_named(engine, forest),
        "condition": conditions(engine, forest),
        "left": np.where(split, forest.left, -1).tolist(),
        "right": np.where(split, forest.left + 1, -1).tolist(),
        "value": rounded(value),
        "unit": unit,
        "cover": counts(forest.cover),
        "gain": rounded(np.where(split, forest.gain, np.nan)),
        "missing": np.where(split, np.where(forest.default_left, 0, 1), 0).tolist(),
        "output": forest.output.tolist(),
        "leaves": _leaves(model, sample, n_shown),
    }


def _empty(engine: Model, reason: str) -> dict[str, Any]:
    lists = ("start", "names", "feature", "condition", "left", "right", "value", "cover", "gain")
    found: dict[str, Any] = {name: [] for name in (*lists, "missing", "output")}
    return found | {"n": engine.n_trees, "shown": 0, "reason": reason, "leaves": ""}


def _values(engine: Model, forest: Forest) -> tuple[NDArray[np.float64], str]:
    """Return the values of the nodes, and their meaning: of averaged trees, predictions."""
    value = forest.value
    unit = "part of the raw score" if engine.combine == "sum" else "prediction of the tree"
    if engine.combine == "mean":
        value = value + (engine.base_score if value.shape[1] > 1 else engine.base_score[:1])
        if engine.kind == "classifier" and not engine.targets:
            value = LINKS[engine.link](value)
            unit = "class probabilities of the tree"
            if engine.link == "share_of_two":
                value, unit = value[:, 1:], f"probability of {engine.classes[1]} in the tree"
    # Sums that cancel leave rounding next to the largest leaf value: 0 for readers.
    value = np.where(np.abs(value) < _ROUNDING * np.abs(value).max(initial=0.0), 0.0, value)
    return value[:, 0] if value.shape[1] == 1 else value[:, :_MOST_WIDE], unit


def _named(engine: Model, forest: Forest) -> dict[str, Any]:
    """Return the features of the splits, as indices of the names that occur."""
    split = forest.is_split
    used, index = np.unique(forest.feature[split], return_inverse=True)
    feature = np.full(forest.n_nodes, -1)
    feature[split] = index
    names = engine.schema.shown_names
    return {"names": [names[i] for i in used.tolist()], "feature": feature.tolist()}


def conditions(engine: Model, forest: Forest) -> list[str]:
    """Return the condition of each split, without the name of the feature; "" for leaves.

    Rows that meet it go left.
    """
    words = _Conditions(engine, forest)
    return [
        words.of(node) if is_split else "" for node, is_split in enumerate(forest.is_split.tolist())
    ]


class _Conditions:
    """Conditions of the splits of a forest as text; equal ones are written once."""

    def __init__(self, engine: Model, forest: Forest) -> None:
        self._schema, self._forest = engine.schema, forest
        self._known: dict[tuple[int, object], str] = {}
        # Thresholds that are rounding next to the largest of a feature are shown as 0.
        self._scale = np.zeros(engine.schema.n_features)
        cut = forest.is_split & (forest.level_set < 0) & np.isfinite(forest.threshold)
        np.maximum.at(self._scale, forest.feature[cut], np.abs(forest.threshold[cut]))

    def of(self, node: int) -> str:
        """Return the condition of a split."""
        forest = self._forest
        feature, number = int(forest.feature[node]), int(forest.level_set[node])
        key: object = float(forest.threshold[node])
        if number >= 0:
            key = forest.level_sets[number].tobytes()
        place = (feature, (key, bool(forest.default_left[node])))
        if place not in self._known:
            self._known[place] = (
                self._of_number(feature, node) if number < 0 else self._of_set(feature, node)
            )
        return self._known[place]

    def _of_number(self, feature: int, node: int) -> str:
        threshold = float(self._forest.threshold[node])
        if np.isinf(threshold):
            return "is known" if threshold > 0 else "is missing"
        levels, unit = self._schema.levels_of(feature), self._schema.unit_of(feature)
        if unit:
            return f"<= {time_text(threshold, unit)}"
        if levels is not None and levels.ranks is not None:
            last = level_text(levels.label_at_most(threshold))
            return f"<= {shortened(printable(last), _MAX_NAME)}"
        is_rounding = abs(threshold) < _ROUNDING * self._scale[feature]
        number = number_text(0.0 if is_rounding else threshold, _DIGITS)
        is_mean = levels is not None and levels.statistic is not None
        return f"{'has a target mean ' if is_mean else ''}<= {number}"

    def _of_set(self, feature: int, node: int) -> str:
        forest = self._forest
        levels = self._schema.levels_of(feature)
        assert levels is not None
        is_left = levels.in_set(forest.level_sets[forest.level_set[node]])
        goes_left = bool(forest.default_left[node])
        if len(is_left) and (is_left != goes_left).all():  # missing values alone on one side
            return "is missing" if goes_left else "is known"
        codes = np.flatnonzero(is_left & levels.in_training)
        names = [level_text(levels.label(code)) for code in codes[:_MOST_LEVELS].tolist()]
        shown = [shortened(printable(name), _MAX_NAME) for name in names]
        if len(codes) == 1:
            return f"is {shown[0]}"
        more = [f"{len(codes) - _MOST_LEVELS} more"] if len(codes) > _MOST_LEVELS else []
        return f"in {{{', '.join(shown + more)}}}"


def _leaves(model: ReportModel, sample: Sample, n_trees: int) -> str:
    """Return the leaves of the rows in the shown trees, row by row: 16 bits each, in base64."""
    found: NDArray[np.int32] = model.call("apply", model.table(sample))
    leaves = found.reshape(len(sample), -1)  # of a single tree it is a vector
    shown = np.ascontiguousarray(leaves[:, :n_trees].astype("<u2"))
    return base64.b64encode(shown.tobytes()).decode("ascii")
