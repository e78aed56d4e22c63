"""Nodes of trees as text (conditions and values) and as columns of a table."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import lazy_property
from arboost.losses.links import ALL_CLASS_LINKS, LINKS, target_link
from arboost.models.model import Model
from arboost.models.prediction import depths
from arboost.params.kinds import Integer

Floats = NDArray[np.float64]

_PRECISION = Integer(name="precision", default=4, low=1, text="Significant digits.")
_MAX_LEVELS = Integer(name="max_levels", default=8, low=1, text="Category levels listed by name.")

_SHARE_LINKS = ("share_of_two", "shares")
_DAY = 86400
_DIGITS_OF_DOUBLE = 15
_LEAST_IN_GROUPS = 10_000
_ROUNDING = 2.0**-24  # of float32, in which tables often are


@dataclass(frozen=True)
class TextStyle:
    """Style of the text.

    Attributes
    ----------
    precision : int
        Significant digits of thresholds and values.
    max_levels : int
        Levels of a category that are listed by name; the rest is counted.
    show_missing : bool
        Whether conditions name the direction of missing values.
    at_most, above : str
        Signs between a feature and its threshold.
    """

    precision: int = 4
    max_levels: int = 8
    show_missing: bool = True
    at_most: str = "<="
    above: str = ">"

    def __post_init__(self) -> None:
        _PRECISION.check(self.precision)
        _MAX_LEVELS.check(self.max_levels)


@dataclass(frozen=True)
class NodeValues:
    """Values of the nodes of a tree for one target.

    Attributes
    ----------
    title : str
        Name of the target; "" where there is one.
    headers : tuple of str
        Names of the columns: class labels, or outputs.
    numbers : float64 array of shape (n_nodes, n_columns)
        Class probabilities, or values.
    is_share : bool
    """

    title: str
    headers: tuple[str, ...]
    numbers: Floats
    is_share: bool

    def share_text(self, node: int, column: int) -> str:
        """Return a class probability in percent; 0% and 100% only where they are exact."""
        share = float(self.numbers[node, column])
        if 0 < share < 0.005:  # noqa: PLR2004
            return "<1%"
        return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"  # noqa: PLR2004

    @property
    def best(self) -> NDArray[np.intp]:
        """Index of the most frequent class of each node; of ties the first, as in predictions."""
        best: NDArray[np.intp] = self.numbers.argmax(axis=1)
        return best


class TreeFormatter:
    """One tree of a model, node by node; node 0 is the root.

    Attributes
    ----------
    left : int32 array of shape (n_nodes,)
        Left child, the right one follows it; 0 for leaves.
    cover : float64 array of shape (n_nodes,)
    depth, n_leaves : int64 arrays of shape (n_nodes,)
        Depth of a node, and number of leaves at or below it.
    node_values : tuple of NodeValues
        One for each target.
    """

    def __init__(self, model: Model, tree: int, style: TextStyle) -> None:
        if not 0 <= tree < model.n_trees:
            raise ValueError(
                f"tree={tree} is not allowed: the model has {model.n_trees} trees. Use a number "
                f"from 0 to {model.n_trees - 1}."
                if model.n_trees
                else f"tree={tree} is not allowed: the model has no trees."
            )
        self._model, self._tree, self._style = model, tree, style
        self._forest = model.forest.only(tree)
        self.left, self.cover, self.gain = (
            getattr(self._forest, name) for name in ("left", "cover", "gain")
        )
        self.depth = depths(self._forest)
        self.n_leaves = np.where(self.left == 0, 1, 0)
        for node in np.flatnonzero(self.left)[::-1].tolist():  # children come after their parent
            child = self.left[node]
            self.n_leaves[node] = self.n_leaves[child] + self.n_leaves[child + 1]
        self.node_values = _node_values(model, tree)

    @property
    def headline(self) -> str:
        """Index and size of the tree."""
        model = self._model
        of = f" of {model.n_trees}" if model.n_trees > 1 else ""
        leaves, depth = int(self.n_leaves[0]), int(self.depth.max())
        size = f"{leaves} {'leaf' if leaves == 1 else 'leaves'}, depth {depth}"
        return f"tree {self._tree}{of}: {size}{self._purpose}"

    @property
    def _purpose(self) -> str:
        """Name of the output of the tree, where the model has several and the tree has one."""
        model = self._model
        if model.n_outputs == 1 or model.forest.width > 1:
            return ""
        output = int(model.forest.output[self._tree])
        return f", for {_output_names(model)[output]}"

    def question(self, node: int, *, max_name: int | None = None) -> str:
        """Return the condition of a split: rows that meet it go left.

        With `max_name`, names are cut to that many characters, and at most three levels are listed.
        """
        return self._condition(node, is_left=True, max_name=max_name)

    def condition(self, child: int, parent: int) -> str:
        """Return the condition of the rows in a child, missing values included."""
        is_left = child == self.left[parent]
        words = self._condition(parent, is_left=is_left)
        goes_here = bool(self._forest.default_left[parent]) == is_left
        if not (self._style.show_missing and goes_here) or self._missing_alone(parent) is not None:
            return words
        return f"{words} or missing"

    def missing_goes_left(self, node: int) -> bool | None:
        """Whether missing values go left; None if the split tests for them, or none are shown."""
        if not self._style.show_missing or self._missing_alone(node) is not None:
            return None
        return bool(self._forest.default_left[node])

    def number(self, value: float) -> str:
        """Return a number with the precision of the style."""
        return number_text(float(value), self._style.precision)

    def value(self, value: float) -> str:
        """Return a value of a node; 0 where it is rounding error next to the largest leaf value."""
        return self.number(_rounded(float(value), self._value_scale))

    @lazy_property
    def _value_scale(self) -> float:
        """Largest leaf value of the model."""
        return float(np.abs(self._model.forest.value).max(initial=0.0))

    def _threshold_scale(self, feature: int) -> float:
        """Largest threshold of a feature in the model."""
        forest = self._model.forest
        own = np.abs(forest.threshold[forest.is_split & (forest.feature == feature)])
        return float(own[np.isfinite(own)].max(initial=0.0))

    def _missing_alone(self, node: int) -> bool | None:
        """Whether the side of missing values alone is the left one; None if no side is."""
        forest = self._forest
        goes_left = bool(forest.default_left[node])
        if forest.level_set[node] < 0:
            return False if forest.threshold[node] == math.inf and not goes_left else None
        is_left = self._levels_left(node)
        return goes_left if len(is_left) and (is_left != goes_left).all() else None

    def _condition(self, node: int, *, is_left: bool, max_name: int | None = None) -> str:
        feature = int(self._forest.feature[node])
        name = shortened(self._names[feature], max_name)
        missing_side = self._missing_alone(node)
        if missing_side is not None:
            return f"{name} is {'missing' if is_left == missing_side else 'known'}"
        cut = self._mean_cut(node)
        if cut is not None:
            sign = self._style.at_most if is_left else self._style.above
            return f"target mean of {name} {sign} {self.number(cut)}"
        if self._forest.level_set[node] >= 0:
            return f"{name} {self._levels_words(node, feature, is_left=is_left, max_name=max_name)}"
        sign = self._style.at_most if is_left else self._style.above
        return f"{name} {sign} {self._threshold(feature, float(self._forest.threshold[node]))}"

    def _levels_words(self, node: int, feature: int, *, is_left: bool, max_name: int | None) -> str:
        levels = self._model.schema.levels_of(feature)
        assert levels is not None
        codes = np.flatnonzero((self._levels_left(node) == is_left) & levels.in_training)
        most = self._style.max_levels if max_name is None else min(3, self._style.max_levels)
        names = [levels.label(int(code)) for code in codes[:most]]
        max_level = None if max_name is None else max_name // 2
        shown = [
            shortened(printable(name) if isinstance(name, str) else self.number(name), max_level)
            for name in names
        ]
        if len(codes) == 1:
            return f"is {shown[0]}"
        more = [f"{len(codes) - most} more"] if len(codes) > most else []
        return f"in {{{', '.join(shown + more)}}}"

    def _mean_cut(self, node: int) -> float | None:
        """Return the mean target between the groups of two sides; None where these overlap."""
        number = int(self._forest.level_set[node])
        levels = self._model.schema.levels_of(int(self._forest.feature[node]))
        if number < 0 or levels is None or levels.group_means is None:
            return None
        means = levels.group_means
        words = self._forest.level_sets[number].astype("<u8").view(np.uint8)
        is_left = np.unpackbits(words, bitorder="little")[: len(means)]
        n_left = int(is_left.sum())
        if n_left in (0, len(means)) or not is_left[:n_left].all():
            return None
        low, high = float(means[n_left - 1]), float(means[n_left])
        return _rounded(low + (high - low) / 2, float(np.abs(means).max()))

    def _levels_left(self, node: int) -> NDArray[np.bool_]:
        """Return True for each level of a category that goes left."""
        levels = self._model.schema.levels_of(int(self._forest.feature[node]))
        assert levels is not None
        return levels.in_set(self._forest.level_sets[self._forest.level_set[node]])

    def _threshold(self, feature: int, value: float) -> str:
        schema = self._model.schema
        unit, levels = schema.unit_of(feature), schema.levels_of(feature)
        if unit and math.isfinite(value):
            return time_text(value, unit)
        if levels is not None and levels.ranks is not None:
            return printable(str(levels.label_at_most(value)))
        return self.number(_rounded(value, self._threshold_scale(feature)))

    @lazy_property
    def _names(self) -> list[str]:
        schema = self._model.schema
        names = []
        for feature in range(schema.n_features):
            name = printable(schema.shown_names[feature]) or "''"
            levels = schema.levels_of(feature)
            by_target = levels is not None and levels.statistic is not None
            names.append(f"target mean of {name}" if by_target else name)
        return names


def _node_values(model: Model, tree: int) -> tuple[NodeValues, ...]:
    values = model.forest.only(tree).value
    if model.combine == "mean":  # each tree alone is a model, with its base score
        values = values + (model.base_score if values.shape[1] > 1 else model.base_score[:1])
    names = _output_names(model)
    if model.kind == "classifier" and model.link in _SHARE_LINKS:
        if not model.targets:
            headers = tuple(_label(one) for one in model.classes)
            return (NodeValues("", headers, LINKS[model.link](values), is_share=True),)
        parts = []
        ends = np.cumsum(model.targets)
        for i, (end, labels) in enumerate(zip(ends, model.classes, strict=True)):
            own = values[:, end - model.targets[i] : end]
            shares = LINKS[target_link(model.targets[i], len(labels))](own)
            headers = tuple(_label(one) for one in labels)
            parts.append(NodeValues(f"target {i}", headers, shares, is_share=True))
        return tuple(parts)
    if values.shape[1] == 1:
        return (NodeValues("", ("value",), values, is_share=False),)
    return (NodeValues("", names, values, is_share=False),)


def _output_names(model: Model) -> tuple[str, ...]:
    if model.targets:
        return tuple(f"target {i}" for i in range(len(model.targets)))
    if model.classes is not None and model.link in ALL_CLASS_LINKS:
        return tuple(_label(one) for one in model.classes)
    return tuple(f"output {i}" for i in range(model.n_outputs))


def _label(label: object) -> str:
    return printable(str(label))


def printable(text: str) -> str:
    r"""Return the text with escapes for control characters and line breaks.

    Examples
    --------
    >>> printable("price\n(EUR)")
    'price\\n(EUR)'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def display_width(text: str) -> int:
    """Return the width of the text in columns of a terminal.

    Examples
    --------
    >>> display_width("price"), display_width("価格")
    (5, 4)
    """
    return sum(map(_width_of_char, text))


@cache
def _width_of_char(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _rounded(value: float, scale: float) -> float:
    """Return 0 for a number that is rounding next to the scale: 9.3e-10 next to 1."""
    return 0.0 if abs(value) < _ROUNDING * scale else value


def number_text(value: float, digits: int) -> str:
    """Return a number with at least so many significant digits; digits before the point are kept.

    They are in groups of three from 10,000 on; years, for example, are not.

    Examples
    --------
    >>> [number_text(x, 4) for x in (0.25, 2.44999, 2024, 1234567.8, 1e-9, 3e20)]
    ['0.25', '2.45', '2024', '1,234,568', '1e-09', '3e+20']
    """
    if value == 0 or not math.isfinite(value):
        return f"{value + 0.0:g}"
    magnitude = math.floor(math.log10(abs(value)))
    if not -digits <= magnitude < _DIGITS_OF_DOUBLE:
        return f"{value:.{digits}g}"
    decimals = max(digits - 1 - magnitude, 0)
    group = "," if abs(round(value, decimals)) >= _LEAST_IN_GROUPS else ""
    text = f"{value:{group}.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shortened(text: str, most: int | None) -> str:
    """Return the text, cut to `most` characters.

    Examples
    --------
    >>> shortened("petal length", 6)
    'petal…'
    """
    if most is None or len(text) <= most:
        return text
    return text[: most - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def time_text(seconds: float, unit: str) -> str:
    """Return a time of a unit of `Schema` as a date, a clock time, or days and clock time."""
    if unit == "datetime":
        whole = np.datetime64(math.floor(seconds), "s")
        return str(whole).replace("T", " ").removesuffix(" 00:00:00")
    days, rest = divmod(seconds, _DAY)
    minutes, second = divmod(rest, 60)
    clock = f"{int(minutes // 60):02}:{int(minutes % 60):02}:{number_text(second, 6).zfill(2)}"
    return clock if unit == "time" or not days else f"{int(days)} d {clock}"


def tree_table(model: Model) -> dict[str, NDArray[Any]]:
    """Return the columns of `arboost.Predictor.tree_table`.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingRegressor(n_estimators=1).fit([[0], [1]], [0, 1]).model_
    >>> table = tree_table(model)
    >>> table["feature"].tolist(), table["threshold"].tolist(), table["left"].tolist()
    (['x0', None, None], [0.5, nan, nan], [1, -1, -1])
    """
    forest = model.forest
    split, start = forest.is_split, forest.tree_start
    size = np.diff(start)
    names = np.empty(model.schema.n_features + 1, object)
    names[:-1] = model.schema.shown_names  # the last one is None, for leaves
    sides = np.array(["left", "right", None], object)
    missing_side = sides[np.where(split, np.where(forest.default_left, 0, 1), 2)]
    table: dict[str, NDArray[Any]] = {
        "tree": np.repeat(np.arange(forest.n_trees), size),
        "node": np.arange(forest.n_nodes) - np.repeat(start[:-1], size),
        "depth": depths(forest),
        "feature": names[np.where(split, forest.feature, -1)],
        "threshold": np.where(split & (forest.level_set < 0), forest.threshold, np.nan),
        "levels": _levels(model),
        "missing": missing_side,
        "left": np.where(split, forest.left, -1).astype(np.int64),
        "right": np.where(split, forest.left + 1, -1).astype(np.int64),
        "gain": np.where(split, forest.gain, np.nan),
        "cover": forest.cover.copy(),
    }
    if forest.width == 1:
        table["output"] = np.repeat(forest.output, size).astype(np.int64)
        table["value"] = forest.value[:, 0].copy()
    else:
        columns = forest.value.T.copy()
        table |= {f"value_{output}": column for output, column in enumerate(columns)}
    return table


def _levels(model: Model) -> NDArray[Any]:
    """Return the list of left levels for splits of categories, None for other nodes."""
    forest, schema = model.forest, model.schema
    found = np.full(forest.n_nodes, None, object)
    labels: dict[int, list[str | float]] = {}
    ranked = [one is not None and one.ranks is not None for one in schema.levels]
    by_rank = forest.is_split & np.isin(forest.feature, np.flatnonzero(ranked))
    for node in np.flatnonzero((forest.level_set >= 0) | by_rank).tolist():
        feature = int(forest.feature[node])
        levels = schema.levels_of(feature)
        assert levels is not None
        if feature not in labels:
            labels[feature] = [levels.label(code) for code in range(len(levels))]
        if levels.ranks is not None:
            codes = levels.by_rank[levels.ranks[levels.by_rank] <= forest.threshold[node]]
        else:
            is_left = levels.in_set(forest.level_sets[forest.level_set[node]])
            codes = np.flatnonzero(is_left)
        found[node] = [labels[feature][code] for code in codes]
    return found
