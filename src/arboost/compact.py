"""Forest <-> sections of a model file that take a few bytes a node.

Forests have many deep trees, and most of what their arrays hold follows from the rest:

======================= ========================================================================
section                 what it holds
======================= ========================================================================
splits, output          of each tree: number of its splits, and its output
structure               a bit for each node, in their order: whether it is a split
order                   of each split: how many splits of its tree have children before its own;
                        only where that is not the order of the splits
feature, default_left,  of the splits; and with " of leaves" behind the name of the leaves, where
by_set                  they mean nothing; features from 1 on
threshold               of the splits: counts in "thresholds", the distinct ones of each feature, of
                        which there are as many as "thresholds_of" says
cover, value, gain      " of leaves": as they are; of the splits: how far they are from what follows
                        from the leaves
level_sets              as in the forest
======================= ========================================================================

Integers are packed by ``core.pack_bits``. Other numbers are whole, or a table of the distinct ones
and integers that count in it, or as they are: whatever is smallest. Reading gives the same forest,
bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.model import Forest

__all__ = ["from_sections", "to_sections"]

Sections = dict[str, NDArray[Any]]

_DERIVED = ("cover", "value", "gain")
_WORD = 8  # bytes
_WHOLE_END = 2.0**53  # from here on not every whole number is a double
_LARGEST_INT = 2**31 - 1


def to_sections(forest: Forest) -> Sections:
    """Return the sections of a forest that is valid."""
    split = forest.is_split
    leaf = ~split
    counts = _splits_of(split, forest.tree_start)
    sections: Sections = {
        "splits": counts,
        "output": forest.output,
        "structure": np.packbits(split, bitorder="little"),
    }
    order = (forest.left[split] - 1) // 2
    if not np.array_equal(order, _split_numbers(counts)):
        sections["order"] = _pack(order)
    for name, numbers in (
        ("feature", forest.feature + 1),  # that of leaves is -1
        ("default_left", forest.default_left),
        ("by_set", forest.level_set >= 0),
    ):
        sections[name] = _pack(numbers[split])
        sections[f"{name} of leaves"] = _pack(numbers[leaf])
    sections |= _pack_thresholds(forest.feature[split], forest.threshold[split])
    for name in ("threshold", *_DERIVED):
        sections |= _pack_doubles(f"{name} of leaves", getattr(forest, name)[leaf].ravel())
    derived = {name: _rows(getattr(forest, name)).copy() for name in _DERIVED}
    _derive(forest.tree_start, forest.left, derived)
    for name in _DERIVED:
        away = _distance(_rows(getattr(forest, name))[split], derived[name][split])
        sections[name] = _pack(away.ravel())
    sections["level_sets"] = forest.level_sets
    return sections


def from_sections(sections: Mapping[str, NDArray[Any]], width: int) -> Forest:
    """Return the forest that sections hold, with leaves of so many numbers.

    Sections may come from anywhere. What is strange raises what `container.errors_named` expects,
    and no count costs memory before it has met the bytes behind it.
    """
    counts = _typed(sections, "splits", np.uint32)
    tree_start = np.concatenate([[0], np.cumsum(1 + 2 * counts.astype(np.int64))])
    split = _structure(sections, counts, tree_start)
    n_splits = int(counts.sum(dtype=np.int64))
    n_leaves = len(split) - n_splits

    def merged(name: str, largest: int) -> NDArray[np.int64]:
        of_leaves = _unpack(sections, f"{name} of leaves", n_leaves, largest)
        return _merged(split, _unpack(sections, name, n_splits, largest), of_leaves)

    feature = _unpack(sections, "feature", n_splits, _LARGEST_INT) - 1
    threshold = _unpack_thresholds(sections, feature)
    left = _merged(split, 1 + 2 * _order(sections, counts), np.zeros(n_leaves, np.int64))
    by_set = merged("by_set", 1) == 1
    derived = _unpack_derived(sections, split, tree_start, left, width)
    return Forest(
        tree_start=tree_start,
        feature=(merged("feature", _LARGEST_INT) - 1).astype(np.int32),
        threshold=_merged(
            split, threshold, _unpack_doubles(sections, "threshold of leaves", n_leaves)
        ),
        left=left.astype(np.int32),
        default_left=merged("default_left", 1) == 1,
        value=derived["value"],
        gain=derived["gain"].ravel(),
        cover=derived["cover"].ravel(),
        output=_typed(sections, "output", np.int32),
        level_set=np.where(by_set, np.cumsum(by_set) - 1, -1).astype(np.int32),
        level_sets=sections["level_sets"],
    )


def _split_numbers(counts: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the number of each split in its tree."""
    ends = np.cumsum(counts, dtype=np.int64)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)


def _structure(
    sections: Mapping[str, NDArray[Any]],
    counts: NDArray[np.uint32],
    tree_start: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which nodes are splits."""
    bits, n_nodes = _typed(sections, "structure", np.uint8), int(tree_start[-1])
    if len(bits) != -(-n_nodes // 8):
        raise ValueError(f"the structure of {n_nodes} nodes in {len(bits)} bytes")
    split = np.unpackbits(bits, count=n_nodes, bitorder="little").view(np.bool_)
    if not np.array_equal(_splits_of(split, tree_start), counts):
        raise ValueError("trees with other numbers of splits")
    return split


def _splits_of(split: NDArray[np.bool_], tree_start: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the number of splits of each tree."""
    before = np.zeros(len(split) + 1, np.int64)
    np.cumsum(split, out=before[1:])
    return np.diff(before[tree_start]).astype(np.uint32)


def _order(sections: Mapping[str, NDArray[Any]], counts: NDArray[np.uint32]) -> NDArray[np.int64]:
    numbers = _split_numbers(counts)
    if "order" not in sections:
        return numbers
    return _unpack(sections, "order", len(numbers), _LARGEST_INT // 2 - 1)


def _rows(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return numbers if numbers.ndim > 1 else numbers[:, np.newaxis]


def _derive(
    tree_start: NDArray[np.int64], left: NDArray[np.int32], numbers: Mapping[str, NDArray[Any]]
) -> None:
    """Write cover, values and gains of splits as they follow from those of the leaves."""
    cover, value, gain = (numbers[name] for name in _DERIVED)
    core.derive_splits(tree_start, left, cover=cover[:, 0], value=value, gain=gain[:, 0])


def _unpack_derived(
    sections: Mapping[str, NDArray[Any]],
    split: NDArray[np.bool_],
    tree_start: NDArray[np.int64],
    left: NDArray[np.int64],
    width: int,
) -> Sections:
    """Return cover, values and gains of all nodes, each with an axis of their width."""
    numbers, away = {}, {}
    n_splits = int(np.count_nonzero(split))
    n_leaves = len(split) - n_splits
    for name in _DERIVED:
        row = width if name == "value" else 1
        of_splits = _unpack(sections, name, n_splits * row)
        of_leaves = _unpack_doubles(sections, f"{name} of leaves", n_leaves * row)
        numbers[name] = _merged(split, np.zeros(len(of_splits)), of_leaves, row)
        if of_splits.any():
            away[name] = _merged(split, of_splits, np.zeros(len(of_leaves), np.int64), row)
    _derive(tree_start, left.astype(np.int32), numbers)
    return numbers | {name: _moved(numbers[name], distance) for name, distance in away.items()}


# Doubles in their order as integers, so that close ones are close. Distances are without a sign,
# 0, -1, 1, -2, ... as 0, 1, 2, 3, ...; all of it is modulo 2^64.
def _ordered(x: NDArray[np.float64]) -> NDArray[np.uint64]:
    bits = np.ascontiguousarray(x).view(np.uint64)
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))


def _distance(x: NDArray[np.float64], derived: NDArray[np.float64]) -> NDArray[np.uint64]:
    away = _ordered(x) - _ordered(derived)
    return (away << np.uint64(1)) ^ (np.uint64(0) - (away >> np.uint64(63)))


def _moved(derived: NDArray[np.float64], distance: NDArray[np.int64]) -> NDArray[np.float64]:
    bits = distance.view(np.uint64)
    one = np.uint64(1)
    ordered = _ordered(derived) + ((bits >> one) ^ (np.uint64(0) - (bits & one)))
    positive = ordered >> np.uint64(63)
    return np.where(positive, ordered ^ np.uint64(1 << 63), ~ordered).view(np.float64)


def _merged(
    split: NDArray[np.bool_], of_splits: NDArray[Any], of_leaves: NDArray[Any], width: int = 0
) -> NDArray[Any]:
    """Return 8-byte numbers of all nodes, with a second axis where a width is given."""
    rows = (-1, width or 1)
    merged: NDArray[np.uint64] = core.merge_words(
        split, of_splits.view(np.uint64).reshape(rows), of_leaves.view(np.uint64).reshape(rows)
    )
    numbers = merged.view(of_splits.dtype)
    return numbers if width else numbers.ravel()


def _pack(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    packed: NDArray[np.uint8] = core.pack_bits(numbers.astype(np.uint64))
    return packed


def _unpack(
    sections: Mapping[str, NDArray[Any]], name: str, count: int, largest: int | None = None
) -> NDArray[np.int64]:
    """Return `count` integers; with no `largest` their 64 bits may mean anything."""
    numbers: NDArray[np.uint64] = core.unpack_bits(_typed(sections, name, np.uint8), count)
    if largest is not None and count and int(numbers.max()) > largest:
        raise ValueError(f"{name} of {int(numbers.max())}, above {largest}")
    return numbers.view(np.int64)


def _pack_doubles(name: str, x: NDArray[np.float64]) -> Sections:
    bits = np.ascontiguousarray(x).view(np.uint64)
    if np.all((x >= 0) & (x < _WHOLE_END) & (x == np.floor(x)) & (bits >> 63 == 0)):
        return {name: _pack(x)}
    table, index = np.unique(bits, return_inverse=True)
    packed = _pack(index)
    if _WORD * len(table) + len(packed) < _WORD * len(x):
        return {f"{name}, table": table.view(np.float64), name: packed}
    return {name: x}


def _unpack_doubles(
    sections: Mapping[str, NDArray[Any]], name: str, count: int
) -> NDArray[np.float64]:
    if f"{name}, table" in sections:
        table = _typed(sections, f"{name}, table", np.float64)
        found: NDArray[np.float64] = table[_unpack(sections, name, count, len(table) - 1)]
        return found
    if sections[name].dtype == np.float64:
        if sections[name].shape != (count,):
            raise ValueError(f"{name} of shape {sections[name].shape}")
        return sections[name]
    return _unpack(sections, name, count, int(_WHOLE_END) - 1).astype(np.float64)


def _pack_thresholds(feature: NDArray[np.int32], threshold: NDArray[np.float64]) -> Sections:
    bits = threshold.view(np.uint64)
    order = np.lexsort((bits, feature))
    features, keys = feature[order], bits[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (features[1:] != features[:-1]) | (keys[1:] != keys[:-1])
    table = keys[first].view(np.float64)
    counts = np.bincount(features[first]) if len(order) else np.empty(0, np.int64)
    index = np.empty(len(order), np.int64)
    index[order] = np.cumsum(first) - 1
    packed = _pack(index - (np.cumsum(counts) - counts)[feature])
    if _WORD * len(table) + len(packed) >= _WORD * len(threshold):
        return {"threshold": threshold}
    return {"threshold": packed, "thresholds": table, "thresholds_of": counts.astype(np.uint32)}


def _unpack_thresholds(
    sections: Mapping[str, NDArray[Any]], feature: NDArray[np.int64]
) -> NDArray[np.float64]:
    if "thresholds" not in sections:
        return _unpack_doubles(sections, "threshold", len(feature))
    table = _typed(sections, "thresholds", np.float64)
    counts = _typed(sections, "thresholds_of", np.uint32).astype(np.int64)
    if counts.sum() != len(table):
        raise ValueError(f"a table of {len(table)} thresholds instead of {counts.sum()}")
    index = _unpack(sections, "threshold", len(feature), max(len(table) - 1, 0))
    if np.any(feature < 0) or np.any(index >= counts[feature]):
        raise ValueError("a threshold that its feature does not have")
    found: NDArray[np.float64] = table[(np.cumsum(counts) - counts)[feature] + index]
    return found


def _typed(
    sections: Mapping[str, NDArray[Any]], name: str, dtype: type[np.generic]
) -> NDArray[Any]:
    array = sections[name]
    if array.dtype != dtype or array.ndim != 1:
        raise TypeError(f"{name} of type {array.dtype} and {array.ndim} axes")
    return array
