"""Nodes of trees: conditions and values as text, and all nodes as columns of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import lazy_property
from arboost.losses.links import ALL_CLASS_LINKS, LINKS, SHARE_LINKS, target_parts
from arboost.models.model import Model
from arboost.params.kinds import Integer
from arboost.text import label_text, number_text, printable, shortened, shown_name, time_text
from arboost.trees.forest import Floats, Forest, codes_in_sets, depths

_PRECISION = Integer(name="precision", default=4, low=1, text="Significant digits.")
_MAX_LEVELS = Integer(name="max_levels", default=8, low=1, text="Category levels listed by name.")

_FEW_LEVELS = 3
MOST_BARS = 4  # values of a node in a picture
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
    max_label : int or None
        Characters of a level.
    show_missing : bool
        Whether conditions name the direction of missing values.
    at_most, above : str
        Signs between a feature and its threshold.
    """

    precision: int = 4
    max_levels: int = 8
    max_label: int | None = None
    show_missing: bool = True
    at_most: str = "<="
    above: str = ">"

    def __post_init__(self) -> None:
        _PRECISION.check(self.precision)
        _MAX_LEVELS.check(self.max_levels)


class SplitFormatter:
    """Conditions of the splits of a forest as text; thresholds are scaled by those of the model."""

    def __init__(self, model: Model, forest: Forest, style: TextStyle) -> None:
        self._schema, self._forest, self._style = model.schema, forest, style
        # Thresholds that are rounding next to the largest of a feature are shown as 0.
        self._scale = np.zeros(model.schema.n_features)
        trees = model.forest
        is_number = trees.is_split & (trees.level_set < 0) & np.isfinite(trees.threshold)
        np.maximum.at(self._scale, trees.feature[is_number], np.abs(trees.threshold[is_number]))

    def is_target_mean(self, node: int) -> bool:
        """Whether a split compares the target mean of a level, not a value of the column."""
        levels = self._schema.levels_of(int(self._forest.feature[node]))
        by_mean = levels is not None and levels.statistic is not None
        if by_mean and self.missing_alone(node) is None:
            return True
        return self._mean_cut(node) is not None

    def relation(self, node: int, *, is_left: bool = True) -> str:
        """Condition of the rows of one side, without the name of the feature: "<= 3.5"."""
        missing_side = self.missing_alone(node)
        if missing_side is not None:
            return f"is {'missing' if is_left == missing_side else 'known'}"
        mean = self._mean_cut(node)
        if mean is None and self._forest.level_set[node] >= 0:
            return self._levels(node, is_left=is_left)
        cut = self._threshold(node) if mean is None else number_text(mean, self._style.precision)
        return f"{self._style.at_most if is_left else self._style.above} {cut}"

    def missing_alone(self, node: int) -> bool | None:
        """Whether the side of missing values alone is the left one; None if no side is."""
        forest = self._forest
        goes_left = bool(forest.default_left[node])
        if forest.level_set[node] < 0:
            return False if forest.threshold[node] == math.inf and not goes_left else None
        is_left = self._levels_left(node)
        return goes_left if len(is_left) and (is_left != goes_left).all() else None

    def _levels_left(self, node: int) -> NDArray[np.bool_]:
        """True for each level of a category that goes left."""
        levels = self._schema.levels_of(int(self._forest.feature[node]))
        assert levels is not None
        return levels.in_set(self._forest.level_sets[self._forest.level_set[node]])

    def _levels(self, node: int, *, is_left: bool) -> str:
        levels = self._schema.levels_of(int(self._forest.feature[node]))
        assert levels is not None
        codes = np.flatnonzero((self._levels_left(node) == is_left) & levels.in_training)
        most = self._style.max_levels
        shown = [self._label(levels.label(code)) for code in codes[:most].tolist()]
        if len(codes) == 1:
            return f"is {shown[0]}"
        more = [f"{len(codes) - most} more"] if len(codes) > most else []
        return f"in {{{', '.join(shown + more)}}}"

    def _label(self, label: str | float) -> str:
        return shortened(printable(label_text(label, self._style.precision)), self._style.max_label)

    def _mean_cut(self, node: int) -> float | None:
        """Mean target between the level groups of two sides; None where these overlap."""
        number = int(self._forest.level_set[node])
        levels = self._schema.levels_of(int(self._forest.feature[node]))
        if number < 0 or levels is None or levels.group_means is None:
            return None
        means = levels.group_means
        is_left = codes_in_sets(self._forest.level_sets[number])[: len(means)]
        n_left = int(is_left.sum())
        if n_left in (0, len(means)) or not is_left[:n_left].all():
            return None
        low, high = float(means[n_left - 1]), float(means[n_left])
        return _rounded(low + (high - low) / 2, float(np.abs(means).max()))

    def _threshold(self, node: int) -> str:
        feature, value = int(self._forest.feature[node]), float(self._forest.threshold[node])
        unit, levels = self._schema.unit_of(feature), self._schema.levels_of(feature)
        if unit and math.isfinite(value):
            return time_text(value, unit)
        if levels is not None and levels.ranks is not None:
            return self._label(levels.label_at_most(value))
        return number_text(_rounded(value, self._scale[feature]), self._style.precision)


def conditions(model: Model, forest: Forest, style: TextStyle) -> list[str]:
    """Conditions of the rows that go left, without the name of the feature; "" for leaves."""
    splits = SplitFormatter(model, forest, style)
    text_of: dict[tuple[int, object, bool], str] = {}
    texts = [""] * forest.n_nodes
    for node in np.flatnonzero(forest.is_split).tolist():
        number = int(forest.level_set[node])
        cut = float(forest.threshold[node]) if number < 0 else forest.level_sets[number].tobytes()
        key = int(forest.feature[node]), cut, bool(forest.default_left[node])
        if key not in text_of:
            by_mean = "has a target mean " if splits.is_target_mean(node) else ""
            text_of[key] = by_mean + splits.relation(node)
        texts[node] = text_of[key]
    return texts


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
        """Class probability in percent; 0% and 100% only where they are exact."""
        share = float(self.numbers[node, column])
        if 0 < share < 0.005:  # noqa: PLR2004
            return "<1%"
        return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"  # noqa: PLR2004

    @lazy_property
    def range(self) -> tuple[float, float]:
        """Smallest and largest number."""
        return float(self.numbers.min()), float(self.numbers.max())

    @lazy_property
    def best(self) -> NDArray[np.intp]:
        """Index of the most frequent class of each node; of ties the first, as in predictions."""
        best: NDArray[np.intp] = self.numbers.argmax(axis=1)
        return best


def node_values(model: Model, forest: Forest) -> tuple[NodeValues, ...]:
    """Values of the nodes of trees of a model, for each target.

    Averaged trees have predictions of the tree alone, summed trees parts of the raw scores.
    """
    values = forest.value
    if model.combine == "mean":  # each tree alone is a model, with its base score
        values = values + (model.base_score if values.shape[1] > 1 else model.base_score[:1])
    if model.kind == "classifier" and model.link in SHARE_LINKS:
        return tuple(
            NodeValues(
                f"target {i}" if model.targets else "",
                tuple(printable(str(label)) for label in part.labels),
                LINKS[part.link](part.columns(values)),
                is_share=True,
            )
            for i, part in enumerate(target_parts(model))
        )
    headers = ("value",) if values.shape[1] == 1 else _output_names(model)
    return (NodeValues("", headers, values, is_share=False),)


def _output_names(model: Model) -> tuple[str, ...]:
    if model.targets:
        return tuple(f"target {i}" for i in range(len(model.targets)))
    if model.classes is not None and model.link in ALL_CLASS_LINKS:
        return tuple(printable(str(label)) for label in model.classes)
    return tuple(f"output {i}" for i in range(model.n_outputs))


class TreeFormatter:
    """One tree of a model, node by node; node 0 is the root.

    Attributes
    ----------
    left : int32 array of shape (n_nodes,)
        Left child, the right one follows it; 0 for leaves.
    cover, gain : float64 array of shape (n_nodes,)
    depth, n_leaves : int64 arrays of shape (n_nodes,)
        Depth of a node, and number of leaves at or below it.
    node_values : tuple of NodeValues
        One for each target.

    Questions have names of at most `max_name` characters, and list three levels.
    """

    def __init__(
        self, model: Model, tree: int, style: TextStyle, *, max_name: int | None = None
    ) -> None:
        if not 0 <= tree < model.n_trees:
            raise ValueError(
                f"tree={tree} is not allowed: the model has {model.n_trees} trees. Use a number "
                f"from 0 to {model.n_trees - 1}."
                if model.n_trees
                else f"tree={tree} is not allowed: the model has no trees."
            )
        self._model, self._tree, self._style = model, tree, style
        forest = self._forest = model.forest.single_tree(tree)
        self._splits = SplitFormatter(model, forest, style)
        self._short_splits, self._max_name = self._splits, max_name
        if max_name is not None:
            few = min(_FEW_LEVELS, style.max_levels)
            short = replace(style, max_levels=few, max_label=max_name // 2)
            self._short_splits = SplitFormatter(model, forest, short)
        self.left, self.cover, self.gain = forest.left, forest.cover, forest.gain
        self.depth = depths(forest)
        self.n_leaves = np.where(self.left == 0, 1, 0)
        for node in np.flatnonzero(self.left)[::-1].tolist():  # children come after their parent
            child = self.left[node]
            self.n_leaves[node] = self.n_leaves[child] + self.n_leaves[child + 1]
        self.node_values = node_values(model, forest)

    @property
    def headline(self) -> str:
        """Index and size of the tree, and its output where trees have one of several."""
        model = self._model
        total = f" of {model.n_trees}" if model.n_trees > 1 else ""
        leaves, depth = int(self.n_leaves[0]), int(self.depth.max())
        size = f"{leaves} {'leaf' if leaves == 1 else 'leaves'}, depth {depth}"
        output = ""
        if model.n_outputs > 1 and model.forest.width == 1:
            output = f", for {_output_names(model)[int(model.forest.output[self._tree])]}"
        return f"tree {self._tree}{total}: {size}{output}"

    def question(self, node: int) -> str:
        """Short condition of a split: rows that meet it go left."""
        return self._condition(node, self._short_splits, max_name=self._max_name)

    def condition(self, child: int, parent: int) -> str:
        """Condition of the rows in a child, missing values included."""
        is_left = bool(child == self.left[parent])
        text = self._condition(parent, self._splits, is_left=is_left)
        return f"{text} or missing" if self.missing_goes_left(parent) is is_left else text

    def missing_goes_left(self, node: int) -> bool | None:
        """Whether missing values go left; None if the split tests for them, or none are shown."""
        if not self._style.show_missing or self._splits.missing_alone(node) is not None:
            return None
        return bool(self._forest.default_left[node])

    def edge_labels(self, node: int) -> tuple[str, str]:
        """Labels of the edges to the left and to the right child."""
        missing_left = self.missing_goes_left(node)
        return (
            "yes or missing" if missing_left is True else "yes",
            "no or missing" if missing_left is False else "no",
        )

    def short_value(self, node: int) -> str:
        """Value of a node as short text: class and probability, or numbers."""
        more = "\N{HORIZONTAL ELLIPSIS}"
        parts = []
        for values in self.node_values[:MOST_BARS]:
            if values.is_share:
                best = int(values.best[node])
                name = shortened(values.headers[best], self._max_name)
                parts.append(f"{name} {values.share_text(node, best)}")
            else:
                parts += [self.signed(value) for value in values.numbers[node, :MOST_BARS]]
                parts += [more] * (len(values.headers) > MOST_BARS)
        parts += [more] * (len(self.node_values) > MOST_BARS)
        return ", ".join(parts)

    def number(self, value: float) -> str:
        """Number with the precision of the style."""
        return number_text(float(value), self._style.precision)

    def value(self, value: float) -> str:
        """Value of a node; 0 where it is rounding error next to the largest leaf value."""
        return self.number(_rounded(float(value), self._value_scale))

    def signed(self, value: float) -> str:
        """Value of a node with a minus sign in place of the hyphen, for pictures."""
        return self.value(value).replace("-", "\N{MINUS SIGN}")

    @lazy_property
    def _value_scale(self) -> float:
        """Largest leaf value of the model."""
        return float(np.abs(self._model.forest.value).max(initial=0.0))

    def _condition(
        self,
        node: int,
        splits: SplitFormatter,
        *,
        is_left: bool = True,
        max_name: int | None = None,
    ) -> str:
        names = self._model.schema.shown_names
        name = shown_name(names[int(self._forest.feature[node])], max_name)
        by_mean = "target mean of " if splits.is_target_mean(node) else ""
        return f"{by_mean}{name} {splits.relation(node, is_left=is_left)}"


def _rounded(value: float, scale: float) -> float:
    """Value, or 0 where it is rounding next to the scale: 9.3e-10 next to 1."""
    return 0.0 if abs(value) < _ROUNDING * scale else value


def tree_table(model: Model) -> dict[str, NDArray[Any]]:
    """Columns of `arboost.Predictor.tree_table`.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingRegressor(n_estimators=1).fit([[0], [1]], [0, 1]).model_
    >>> table = tree_table(model)
    >>> table["feature"].tolist(), table["threshold"].tolist(), table["left"].tolist()
    (['x0', None, None], [0.5, nan, nan], [1, -1, -1])
    """
    forest = model.forest
    split = forest.is_split
    names = np.empty(model.schema.n_features + 1, object)
    names[:-1] = model.schema.shown_names  # the last one is None, for leaves
    sides = np.array(["left", "right", None], object)
    missing_side = sides[np.where(split, np.where(forest.default_left, 0, 1), 2)]
    table: dict[str, NDArray[Any]] = {
        "tree": forest.tree_of_node,
        "node": np.arange(forest.n_nodes) - forest.root,
        "depth": depths(forest),
        "feature": names[np.where(split, forest.feature, -1)],
        "threshold": np.where(split & (forest.level_set < 0), forest.threshold, np.nan),
        "levels": _left_levels(model),
        "missing": missing_side,
        "left": np.where(split, forest.left, -1).astype(np.int64),
        "right": np.where(split, forest.left + 1, -1).astype(np.int64),
        "gain": np.where(split, forest.gain, np.nan),
        "cover": forest.cover.copy(),
    }
    if forest.width == 1:
        table["output"] = forest.output[forest.tree_of_node].astype(np.int64)
        table["value"] = forest.value[:, 0].copy()
    else:
        columns = forest.value.T.copy()
        table |= {f"value_{output}": column for output, column in enumerate(columns)}
    return table


def _left_levels(model: Model) -> NDArray[Any]:
    """List of left levels for splits of categories, None for other nodes."""
    forest, schema = model.forest, model.schema
    left_levels = np.full(forest.n_nodes, None, object)
    labels: dict[int, list[str | float]] = {}
    ranked = [levels is not None and levels.ranks is not None for levels in schema.levels]
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
        left_levels[node] = [labels[feature][code] for code in codes]
    return left_levels
