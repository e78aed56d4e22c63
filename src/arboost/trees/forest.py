r"""Forest: the trees of a model as flat, read-only arrays.

The nodes of tree t lie at ``tree_start[t]`` to ``tree_start[t + 1]``, parents before children:

    node    0   1   2   3   4        left of a node = index of its left child in the same tree,
    left    1   0   3   0   0        right child = left + 1, and 0 marks a leaf
               /       \
           leaf 1     3 and 4 are the leaves below node 2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from arboost.backend import core
from arboost.data.table import Table
from arboost.losses.links import require

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

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
ALL_DTYPES: Mapping[str, np.dtype[Any]] = {  # with the arrays of categorical splits
    **FOREST_DTYPES,
    "level_set": np.dtype(np.int32),
    "level_sets": np.dtype(np.uint64),
}
NODE_ARRAYS = tuple(n for n in ALL_DTYPES if n not in ("tree_start", "output", "level_sets"))
SET_WORDS = 4  # 64-bit words in a level set
N_CODES = 255  # level codes that a set can hold; all other codes are missing values


def frozen_array(array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Read-only view for the core, or a copy where dtype, order or alignment differ."""
    view = np.asarray(array, dtype=dtype, order="C").view()
    if not view.flags.aligned:
        view = view.copy()
    view.flags.writeable = False
    return view


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct rows of a matrix, compared bit by bit, and each row's index in them."""
    whole = np.dtype((np.void, rows.shape[1] * rows.dtype.itemsize))
    _, first, which = np.unique(
        np.ascontiguousarray(rows).view(whole)[:, 0], return_index=True, return_inverse=True
    )
    return rows[first], which


def codes_in_sets(level_sets: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each level code is in a set; the last axis has codes in place of words."""
    octets = np.ascontiguousarray(level_sets).astype("<u8").view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little").astype(np.bool_)


@dataclass(frozen=True, eq=False, kw_only=True)
class Forest:
    """Trees as flat arrays; a row goes left where x <= threshold or x is missing and default_left.

    A categorical split has a level set instead of a threshold: level codes whose bit is set go
    left. Any value other than a code from 0 to 254 is missing.

    Attributes
    ----------
    tree_start : int64 array of shape (n_trees + 1,)
        First node of each tree, and the number of nodes.
    feature, left : int32 arrays of shape (n_nodes,)
        Feature of the split, and left child (see the head of this file).
    threshold, gain, cover : float64 arrays of shape (n_nodes,)
        Largest value that goes left, gain of the split, and sum of hessians in the node.
    default_left : bool array of shape (n_nodes,)
        Whether missing values go left.
    value : float64 array of shape (n_nodes, width)
        Value that the leaf adds to one output (width 1), or to each output (width n_outputs).
    output : int32 array of shape (n_trees,)
        Output that the tree adds to; 0 where it adds to all.
    level_set : int32 array of shape (n_nodes,)
        Index of the split's level set, -1 for a threshold. Sets are in the order of their nodes.
    level_sets : uint64 array of shape (n_sets, 4)
        Level sets: code c is bit c % 64 of word c // 64.
    """

    tree_start: Integers
    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    default_left: NDArray[np.bool_]
    value: Floats
    gain: Floats
    cover: Floats
    output: NDArray[np.int32]
    level_set: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    level_sets: NDArray[np.uint64] = field(default_factory=lambda: np.empty((0, 4), np.uint64))

    def __post_init__(self) -> None:
        if not len(self.level_sets) and not len(self.level_set):
            object.__setattr__(self, "level_set", np.full(len(self.left), -1))
        for name, dtype in ALL_DTYPES.items():
            object.__setattr__(self, name, frozen_array(getattr(self, name), dtype))

    @classmethod
    def empty(cls, width: int = 1) -> Self:
        """Forest without trees."""
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
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(getattr(self, name).nbytes for name in ALL_DTYPES)

    @property
    def width(self) -> int:
        """Number of values in a leaf."""
        return int(self.value.shape[1])

    @property
    def is_split(self) -> NDArray[np.bool_]:
        """Mask of the nodes that are splits, not leaves."""
        return np.not_equal(self.left, 0)

    @property
    def root(self) -> Integers:
        """Root of the tree of each node."""
        return np.repeat(self.tree_start[:-1], np.diff(self.tree_start))

    @property
    def tree_of_node(self) -> Integers:
        """Tree of each node."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.tree_start))

    @property
    def has_sets(self) -> bool:
        """Whether any split is categorical."""
        return len(self.level_sets) > 0

    def first(self, n_trees: int) -> Self:
        """Forest of the first trees; its arrays are views of this forest's."""
        n_nodes = int(self.tree_start[n_trees])
        ends = dict.fromkeys(ALL_DTYPES, n_nodes) | {
            "tree_start": n_trees + 1,
            "output": n_trees,
            "level_sets": int(self.level_set[:n_nodes].max(initial=-1)) + 1,
        }
        return type(self)(**{name: getattr(self, name)[:end] for name, end in ends.items()})

    def single_tree(self, tree: int) -> Self:
        """Forest of one tree."""
        ends = self.tree_start[tree : tree + 2]
        return self.with_nodes(
            slice(*ends), tree_start=ends - ends[0], output=self.output[tree : tree + 1]
        )

    def with_trees(self, chosen: NDArray[np.bool_]) -> Self:
        """Forest of the trees of a mask."""
        size = np.diff(self.tree_start)
        return self.with_nodes(
            np.repeat(chosen, size),
            tree_start=np.concatenate([[0], np.cumsum(size[chosen])]),
            output=self.output[chosen],
        )

    def with_nodes(
        self,
        nodes: slice | NDArray[Any],
        *,
        tree_start: Integers,
        output: NDArray[np.int32],
        **changed: NDArray[Any],
    ) -> Self:
        """Forest of some nodes, in the form of an index or a mask, and of their sets.

        Arrays in `changed` replace those of this forest before nodes are taken.
        """
        arrays = {name: changed.get(name, getattr(self, name))[nodes] for name in NODE_ARRAYS}
        sets = arrays["level_set"]
        by_set = sets >= 0
        arrays["level_set"] = np.where(by_set, np.cumsum(by_set) - 1, -1)
        arrays["level_sets"] = self.level_sets[sets[by_set]]
        return type(self)(tree_start=tree_start, output=output, **arrays)

    def joined(self, other: Forest) -> Self:
        """Forest of these trees followed by those of another forest of equal width."""
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

        `categorical` is the mask of the categorical features, None if unknown.
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
            if name in NODE_ARRAYS:
                require(len(array) == self.n_nodes, f"{name} for {len(array)} nodes")
        start = self.tree_start
        require(len(start) == self.n_trees + 1, f"{len(start)} starts of {self.n_trees} trees")
        require(self.level_sets.shape[1] == SET_WORDS, f"sets of {self.level_sets.shape[1]} words")


def splits(forest: Forest) -> tuple[Integers, Integers]:
    """Splits and their left children, both counted over the whole forest."""
    split = np.flatnonzero(forest.left)
    return split, forest.root[split] + forest.left[split]


def parents(forest: Forest) -> Integers:
    """Parent of each node, both counted over the whole forest; -1 for roots.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit([[0], [1]], [0, 1])
    >>> parents(model.model_.forest)
    array([-1,  0,  0, -1,  3,  3])
    """
    split, child = splits(forest)
    parent = np.full(forest.n_nodes, -1)
    parent[child] = parent[child + 1] = split
    return parent


def depths(forest: Forest) -> Integers:
    """Number of splits above each node of the forest.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit([[0], [1]], [0, 1])
    >>> depths(model.model_.forest)
    array([0, 1, 1])
    """
    root = forest.root
    depth = np.zeros(forest.n_nodes, np.int64)
    node, level = forest.tree_start[:-1], 0
    while len(node):
        depth[node] = level
        split = node[forest.is_split[node]]
        left = root[split] + forest.left[split]
        node, level = np.concatenate([left, left + 1]), level + 1
    return depth


def forest_leaves(forest: Forest, table: Table, *, n_threads: int) -> NDArray[np.int32]:
    """Leaf of each row in each tree, int32 of shape (n_rows, n_trees)."""
    n_outputs = max(forest.width, int(forest.output.max(initial=0)) + 1)
    leaves = np.empty((table.n_rows, forest.n_trees), np.int32)
    core.PackedForest(forest, table.columns.n_columns, n_outputs).leaves(
        table.columns, leaves, n_threads
    )
    return leaves
