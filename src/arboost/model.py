r"""Forest (trees as flat arrays) and Model: what a fit leaves behind, frozen.

The nodes of tree t lie at ``tree_start[t]`` to ``tree_start[t + 1]``, parents before children:

    node    0   1   2   3   4        left of a node = index of its left child in the same tree,
    left    1   0   3   0   0        right child = left + 1, and 0 marks a leaf
               /       \
           leaf 1     3 and 4 are the leaves below node 2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from arboost.answers import CLASS_LINKS, require, validate_answer
from arboost.backend import core
from arboost.data.schema import Schema
from arboost.distributions import LeafDistributions

__all__ = [
    "ALL_DTYPES",
    "CLASS_LINKS",
    "COMBINATIONS",
    "FOREST_DTYPES",
    "N_CODES",
    "SET_DTYPES",
    "Forest",
    "Model",
    "distinct_rows",
]

COMBINATIONS = ("sum", "median", "mean")

FOREST_DTYPES: Mapping[str, np.dtype[Any]] = {
    "tree_start": np.dtype(np.int64),
    "feature": np.dtype(np.int32),
    "threshold": np.dtype(np.float64),
    "left": np.dtype(np.int32),
    "default_left": np.dtype(np.bool_),
    "value": np.dtype(np.float64),
    "gain": np.dtype(np.float64),
    "cover": np.dtype(np.float64),
    "output": np.dtype(np.int32),
}
# What splits of categories need beside it.
SET_DTYPES: Mapping[str, np.dtype[Any]] = {
    "level_set": np.dtype(np.int32),
    "level_sets": np.dtype(np.uint64),
}
ALL_DTYPES: Mapping[str, np.dtype[Any]] = {**FOREST_DTYPES, **SET_DTYPES}
SET_WORDS = 4  # of 64 bits
N_CODES = 255  # of levels in sets; others are missing


def _frozen(array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Read-only view as the core reads it, or copy where dtype, order or alignment differ."""
    view = np.asarray(array, dtype=dtype, order="C").view()
    if not view.flags.aligned:
        view = view.copy()
    view.flags.writeable = False
    return view


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct rows of a matrix, to the bit, and which of them each row is."""
    whole = np.dtype((np.void, rows.shape[1] * rows.dtype.itemsize))
    _, first, which = np.unique(
        np.ascontiguousarray(rows).view(whole)[:, 0], return_index=True, return_inverse=True
    )
    return rows[first], which


@dataclass(frozen=True, eq=False, kw_only=True)
class Forest:
    """Trees as flat arrays; a row goes left where x <= threshold or x is missing and default_left.

    A split of a category has a set of levels instead of a threshold: left go the codes of levels
    whose bit is set. What is no code from 0 to 254 is missing.

    Attributes
    ----------
    tree_start : int64 array of shape (n_trees + 1,)
        First node of each tree, and the number of nodes.
    feature, left : int32 arrays of shape (n_nodes,)
        Column that is compared, and left child (see the head of this file).
    threshold, gain, cover : float64 arrays of shape (n_nodes,)
        Largest value that goes left, gain of the split, and sum of hessians in the node.
    default_left : bool array of shape (n_nodes,)
        Whether missing values go left.
    value : float64 array of shape (n_nodes, width)
        What the leaf adds: to one output (width 1), or one number to each (width n_outputs).
    output : int32 array of shape (n_trees,)
        Output that the tree adds to; 0 where it adds to all.
    level_set : int32 array of shape (n_nodes,)
        Which set the split has, -1 where it has a threshold. Sets are in the order of their nodes.
    level_sets : uint64 array of shape (n_sets, 4)
        Sets of levels: code c is bit c % 64 of word c // 64.
    """

    tree_start: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    default_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    gain: NDArray[np.float64]
    cover: NDArray[np.float64]
    output: NDArray[np.int32]
    level_set: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    level_sets: NDArray[np.uint64] = field(default_factory=lambda: np.empty((0, 4), np.uint64))

    def __post_init__(self) -> None:
        if not len(self.level_sets) and not len(self.level_set):
            object.__setattr__(self, "level_set", np.full(len(self.left), -1))
        for name, dtype in ALL_DTYPES.items():
            object.__setattr__(self, name, _frozen(getattr(self, name), dtype))

    @classmethod
    def empty(cls, width: int = 1) -> Self:
        """Return a forest without trees."""
        arrays = {name: np.empty(0, dtype) for name, dtype in FOREST_DTYPES.items()}
        arrays["tree_start"] = np.zeros(1, np.int64)
        arrays["value"] = np.empty((0, width))
        return cls(**arrays)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.output)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, leaves included."""
        return len(self.left)

    @property
    def width(self) -> int:
        """Numbers in a leaf."""
        return int(self.value.shape[1])

    @property
    def is_split(self) -> NDArray[np.bool_]:
        """Which nodes are no leaves."""
        return np.not_equal(self.left, 0)

    @property
    def has_sets(self) -> bool:
        """Whether a split is one of a category."""
        return len(self.level_sets) > 0

    def first(self, n_trees: int) -> Self:
        """Return a forest of the first trees; its arrays are views of this one's."""
        n_nodes = int(self.tree_start[n_trees])
        ends = dict.fromkeys(ALL_DTYPES, n_nodes) | {
            "tree_start": n_trees + 1,
            "output": n_trees,
            "level_sets": int(self.level_set[:n_nodes].max(initial=-1)) + 1,
        }
        return type(self)(**{name: getattr(self, name)[:end] for name, end in ends.items()})

    def only(self, tree: int) -> Self:
        """Return a forest of one of the trees."""
        ends = self.tree_start[tree : tree + 2]
        of_tree = slice(*ends)
        arrays = {name: getattr(self, name)[of_tree] for name in ALL_DTYPES}
        sets = self.level_set[of_tree]
        first = int(sets[sets >= 0].min(initial=len(self.level_sets)))
        arrays["tree_start"] = ends - ends[0]
        arrays["output"] = self.output[tree : tree + 1]
        arrays["level_set"] = np.where(sets >= 0, sets - first, -1)
        arrays["level_sets"] = self.level_sets[first : first + np.count_nonzero(sets >= 0)]
        return type(self)(**arrays)

    def joined(self, other: Forest) -> Self:
        """Return a forest of these trees and then those of another with leaves as wide."""
        arrays = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in ALL_DTYPES
        }
        arrays["tree_start"] = np.concatenate(
            [self.tree_start, self.tree_start[-1] + other.tree_start[1:]]
        )
        later = np.arange(len(arrays["level_set"])) >= self.n_nodes
        arrays["level_set"][later & (arrays["level_set"] >= 0)] += len(self.level_sets)
        return type(self)(**arrays)

    def validate(
        self, n_features: int, n_outputs: int, categorical: NDArray[np.bool_] | None = None
    ) -> None:
        """Raise ValueError unless every walk from a root ends in a leaf inside the arrays.

        `categorical` says which features are split by sets, and is None where nobody knows.
        """
        self._validate_shapes()
        require(self.width in (1, n_outputs), f"leaves of width {self.width}")
        core.check_forest(
            self,
            categorical=np.empty(0, np.bool_) if categorical is None else categorical,
            n_features=n_features,
            n_outputs=n_outputs,
        )

    def _validate_shapes(self) -> None:
        for name in ALL_DTYPES:
            array = getattr(self, name)
            axes = 2 if name in ("value", "level_sets") else 1
            require(array.ndim == axes, f"{name} of {array.ndim} axes")
            if name not in ("tree_start", "output", "level_sets"):
                require(len(array) == self.n_nodes, f"{name} for {len(array)} nodes")
        start = self.tree_start
        require(len(start) == self.n_trees + 1, f"{len(start)} starts of {self.n_trees} trees")
        require(self.level_sets.shape[1] == SET_WORDS, f"sets of {self.level_sets.shape[1]} words")


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A fitted ensemble: raw score = base_score + sum, median or mean of the trees, then a link.

    Attributes
    ----------
    forest : Forest
    schema : arboost.data.table.Schema
        Names and number of the columns.
    base_score : float64 array of shape (n_outputs,)
    link : str
        One of those in ``links.py`` that fits the kind.
    classes : array of shape (n_classes,), tuple of them, or None
        Labels in the order of the probabilities, of several targets one array each; None for
        regression.
    trees_per_round : int
    params : dict
        Parameters of the fit that can change the model. A custom loss or metric is there by its
        name alone, as ``{"custom": name}``.
    kind : {"regressor", "classifier"}
    combine : {"sum", "median", "mean"}
        The mean is the sum divided by the number of rounds. With "median" the trees of a regressor
        of one output vote with weights: the score is the smallest of their values at which the
        weights, cumulated in the order of the values, reach half of their total.
    tree_weights : float64 array of shape (n_trees,)
        Weights of the trees in the median; empty for sums and means.
    targets : tuple of int
        Outputs of each target, which lie side by side; empty where there is one target. Targets of
        a classifier have the link that `target_link` tells, and the model's is "shares".
    distributions : arboost.distributions.LeafDistributions or None
        The y of the training rows in each leaf, where the fit was to keep them.
    provenance : dict
        What is known of the fit: "version" of the library, "rows", and where rows were set aside to
        find the best round "metric" and "best_score". Empty where nothing is known.
    """

    forest: Forest
    schema: Schema
    base_score: NDArray[np.float64]
    link: str
    classes: Any
    trees_per_round: int
    params: dict[str, Any]
    kind: str
    combine: str = "sum"
    tree_weights: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    targets: tuple[int, ...] = ()
    distributions: LeafDistributions | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("base_score", "tree_weights"):
            object.__setattr__(self, name, _frozen(getattr(self, name), np.float64))
        if isinstance(self.classes, tuple):
            frozen = tuple(_frozen(labels, labels.dtype) for labels in self.classes)
            object.__setattr__(self, "classes", frozen)
        elif self.classes is not None:
            object.__setattr__(self, "classes", _frozen(self.classes, self.classes.dtype))

    @property
    def n_outputs(self) -> int:
        """Raw scores of a row."""
        return len(self.base_score)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.forest.n_trees

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return self.n_trees // self.trees_per_round

    @cached_property
    def packed(self) -> core.PackedForest:
        """The forest as the core walks it; made when it is first asked for."""
        return core.PackedForest(self.forest, self.schema.n_features, self.n_outputs)

    @cached_property
    def row(self) -> core.RowModel | None:
        """What answers for single rows; None where that takes more than the values of the row."""
        columns_are_numbers = self.schema.names is None and not self.schema.special
        if not columns_are_numbers or self.combine == "median" or self.link == "ordered":
            return None
        mean_of = max(self.n_rounds, 1) if self.combine == "mean" else 0
        return core.RowModel(self.packed, self.base_score, self.link, mean_of, self.schema.missing)

    def __getstate__(self) -> dict[str, Any]:
        return self.fields()  # without what can be made again

    def truncated(self, rounds: int) -> Self:
        """Return the model as it was after some rounds.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor().fit([[0], [1]], [0, 1]).model_
        >>> model.truncated(10).n_rounds
        10
        """
        if not 0 <= rounds <= self.n_rounds:
            raise ValueError(
                f"rounds={rounds} is not allowed: the model has {self.n_rounds} rounds. "
                f"Use a number from 0 to {self.n_rounds}."
            )
        n_trees = rounds * self.trees_per_round
        weights = self.tree_weights[:n_trees]  # there are none but in medians
        known = self.distributions
        return replace(
            self,
            forest=self.forest.first(n_trees),
            tree_weights=weights,
            distributions=None if known is None else known.first(n_trees),
        )

    def fields(self) -> dict[str, Any]:
        """Return the fields by name, as the constructor takes them."""
        return {field.name: getattr(self, field.name) for field in fields(Model)}

    def validate(self) -> None:
        """Raise ValueError unless the parts fit together; a valid model cannot crash the core."""
        require(self.base_score.ndim == 1 and self.n_outputs >= 1, "no base score")
        require(np.all(np.isfinite(self.base_score)), "a base score that is not finite")
        # Without levels the number of features may be any: nothing that long is made of it.
        known = np.array(self.schema.categorical, np.bool_) if self.schema.levels else None
        self.forest.validate(self.schema.n_features, self.n_outputs, known)
        require(known is not None or not self.forest.has_sets, "sets for splits of no category")
        require(self.trees_per_round >= 1, f"{self.trees_per_round} trees per round")
        require(self.n_trees % self.trees_per_round == 0, "an unfinished round")
        names = self.schema.names
        if names is not None:
            require(len(names) == self.schema.n_features, f"{len(names)} feature names")
            require(len(set(names)) == len(names), "two features of one name")
        validate_answer(self)
        self._validate_combination()
        if self.distributions is not None:
            require(self.kind == "regressor" and not self.targets, "distributions of no numbers")
            self.distributions.validate(self.forest.tree_start, self.forest.is_split)

    def _validate_combination(self) -> None:
        require(self.combine in COMBINATIONS, f"the combination {self.combine!r}")
        is_share = self.link in ("share_of_two", "shares")
        require(self.combine == "mean" or not is_share, f"shares by {self.combine}")
        require(self.combine == "mean" or not self.targets, f"several targets by {self.combine}")
        weights = self.tree_weights
        expected = self.n_trees if self.combine == "median" else 0
        require(weights.shape == (expected,), f"tree weights of shape {weights.shape}")
        if self.combine == "median":
            require(self.link == "identity", f"a median with the link {self.link!r}")
            require(self.n_outputs == 1, f"a median of {self.n_outputs} outputs")
            require(self.trees_per_round == 1, "a median with several trees per round")
            require(np.all(np.isfinite(weights)), "a tree weight that is not finite")
            require(np.all(weights >= 0), "a negative tree weight")
            # Then every truncated model has a tree with a vote, too.
            require(np.all(weights[:1] > 0), "a first tree without weight")
