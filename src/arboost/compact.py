"""Forest <-> sections of a model file that take a few bytes a node.

Most of what the arrays of trees hold follows from the rest:

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
shrinkage               reg_lambda and the factor of gains, as cpp/save/derive.h takes them; absent
                        where they are 0 and 1
level_sets              as in the forest
======================= ========================================================================

What leaves know of y (`distributions`) is "y values", and packed "y counts" of the leaves, "y rank"
and "y upto". Numbers are as `packing` has them. Reading gives the same forest, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.distributions import SHARE_UNITS, LeafDistributions
from arboost.model import Forest
from arboost.packing import (
    Sections,
    named,
    pack_doubles,
    pack_integers,
    size_of,
    typed,
    unpack_doubles,
    unpack_integers,
)

__all__ = ["from_sections", "pack_distributions", "to_sections", "unpack_distributions"]

_DERIVED = ("cover", "value", "gain")
_PLAIN = (0.0, 1.0)  # the shrinkage of means
_DIGITS = 6  # of a shrinkage that is found from the numbers of trees
_SAMPLE = 10_000  # splits that it is found from
_WORD = 8  # bytes
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
        sections["order"] = pack_integers(order)
    for name, numbers in (
        ("feature", forest.feature + 1),  # that of leaves is -1
        ("default_left", forest.default_left),
        ("by_set", forest.level_set >= 0),
    ):
        sections[name] = pack_integers(numbers[split])
        sections[f"{name} of leaves"] = pack_integers(numbers[leaf])
    sections |= _pack_thresholds(forest.feature[split], forest.threshold[split])
    for name in ("threshold", *_DERIVED):
        sections |= pack_doubles(f"{name} of leaves", getattr(forest, name)[leaf].ravel())
    sections |= _pack_derived(forest)
    sections["level_sets"] = forest.level_sets
    return sections


def from_sections(sections: Mapping[str, NDArray[Any]], width: int) -> Forest:
    """Return the forest that sections hold, with leaves of so many numbers.

    Sections may come from anywhere. What is strange raises what `container.errors_named` expects,
    and no count costs memory before it has met the bytes behind it.
    """
    counts = typed(sections, "splits", np.uint32)
    tree_start = np.concatenate([[0], np.cumsum(1 + 2 * counts.astype(np.int64))])
    split = _structure(sections, counts, tree_start)
    n_splits = int(counts.sum(dtype=np.int64))
    n_leaves = len(split) - n_splits

    def merged(name: str, largest: int) -> NDArray[np.uint32]:
        of_splits, of_leaves = (
            typed(sections, f"{name}{which}", np.uint8) for which in ("", " of leaves")
        )
        with named(name):
            numbers: NDArray[np.uint32] = core.unpack_nodes(split, of_splits, of_leaves, largest)
        return numbers

    feature = (merged("feature", _LARGEST_INT) - np.uint32(1)).view(np.int32)
    threshold = np.empty((len(split), 1))
    threshold[split, 0] = _unpack_thresholds(sections, feature[split])
    _spread(sections, "threshold", split, threshold, n_leaves)
    left = np.zeros(len(split), np.int32)
    left[split] = 1 + 2 * _order(sections, counts)
    derived = _unpack_derived(sections, split, tree_start, left, width)
    return Forest(
        tree_start=tree_start,
        feature=feature,
        threshold=threshold[:, 0],
        left=left,
        default_left=merged("default_left", 1).astype(np.bool_),
        value=derived["value"],
        gain=derived["gain"][:, 0],
        cover=derived["cover"][:, 0],
        output=typed(sections, "output", np.int32),
        level_set=_numbered(merged("by_set", 1)),
        level_sets=sections["level_sets"],
    )


def _numbered(by_set: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return the number of each split's set, -1 where it has none."""
    if not by_set.any():
        return np.full(len(by_set), -1, np.int32)
    return np.where(by_set, np.cumsum(by_set, dtype=np.int32) - 1, -1).astype(np.int32)


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
    bits, n_nodes = typed(sections, "structure", np.uint8), int(tree_start[-1])
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
    return unpack_integers(sections, "order", len(numbers), _LARGEST_INT // 2 - 1)


def _rows(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return numbers if numbers.ndim > 1 else numbers[:, np.newaxis]


def _derive(
    tree_start: NDArray[np.int64],
    left: NDArray[np.int32],
    numbers: Mapping[str, NDArray[Any]],
    shrinkage: tuple[float, float],
) -> None:
    """Write cover, values and gains of splits as they follow from those of the leaves."""
    cover, value, gain = (numbers[name] for name in _DERIVED)
    core.derive_splits(
        tree_start,
        left,
        cover=cover[:, 0],
        value=value,
        gain=gain[:, 0],
        reg_lambda=shrinkage[0],
        gain_factor=shrinkage[1],
    )


def _pack_derived(forest: Forest) -> Sections:
    """Return how far splits are from what follows from the leaves, by the better shrinkage."""
    found = _distances(forest, _PLAIN)
    reg_lambda = _estimate_lambda(forest)
    shrinkage = (reg_lambda, _estimate_factor(forest, reg_lambda))
    if shrinkage != _PLAIN:
        other = _distances(forest, shrinkage) | {"shrinkage": np.array(shrinkage)}
        found = min((found, other), key=size_of)
    return found


def _derived(forest: Forest, shrinkage: tuple[float, float]) -> Sections:
    numbers = {name: _rows(getattr(forest, name)).copy() for name in _DERIVED}
    _derive(forest.tree_start, forest.left, numbers, shrinkage)
    return numbers


def _distances(forest: Forest, shrinkage: tuple[float, float]) -> Sections:
    split, derived = forest.is_split, _derived(forest, shrinkage)
    return {
        name: pack_integers(
            _distance(_rows(getattr(forest, name))[split], derived[name][split]).ravel()
        )
        for name in _DERIVED
    }


def _estimate_lambda(forest: Forest) -> float:
    """Return the reg_lambda by which values of splits would follow from those of their children.

    v (H + lambda) of a split is the sum of that of its children. Any answer is right: it only
    decides how much space the file takes.
    """
    split = np.flatnonzero(forest.left)
    left = forest.left[split] + np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))[split]
    value, cover = forest.value[:, 0], forest.cover
    with np.errstate(all="ignore"):
        of_children = value[left] * cover[left] + value[left + 1] * cover[left + 1]
        more = of_children - value[split] * cover[split]
        less = value[split] - value[left] - value[left + 1]
    return _middle(more, less, 0.0)


def _estimate_factor(forest: Forest, reg_lambda: float) -> float:
    """Return what gains of steps are to be multiplied with, to be those of the trees."""
    split = forest.is_split
    derived = _derived(forest, (reg_lambda, 1.0))["gain"][split, 0]
    return _middle(forest.gain[split], derived, 1.0)


def _middle(x: NDArray[np.float64], y: NDArray[np.float64], otherwise: float) -> float:
    """Return the median of x / y to a few digits, where it is a number that can be one."""
    with np.errstate(all="ignore"):
        ratio = (x[y != 0] / y[y != 0])[:_SAMPLE]
    ratio = np.sort(ratio[np.isfinite(ratio) & (ratio > 0)])
    return float(f"{ratio[len(ratio) // 2]:.{_DIGITS}g}") if len(ratio) else otherwise


def _unpack_derived(
    sections: Mapping[str, NDArray[Any]],
    split: NDArray[np.bool_],
    tree_start: NDArray[np.int64],
    left: NDArray[np.int32],
    width: int,
) -> Sections:
    """Return cover, values and gains of all nodes, each with an axis of their width."""
    numbers, away = {}, {}
    n_splits = int(np.count_nonzero(split))
    for name in _DERIVED:
        row = width if name == "value" else 1
        away[name] = unpack_integers(sections, name, n_splits * row).view(np.uint64)
        of_leaves = unpack_doubles(sections, f"{name} of leaves", (len(split) - n_splits) * row)
        numbers[name] = np.zeros((len(split), row))
        core.spread_leaves(split, of_leaves, numbers[name])
    _derive(tree_start, left, numbers, _shrinkage(sections))
    for name, places in away.items():
        if places.any():
            core.move_splits(split, places, numbers[name])
    return numbers


def _shrinkage(sections: Mapping[str, NDArray[Any]]) -> tuple[float, float]:
    if "shrinkage" not in sections:
        return _PLAIN
    found = typed(sections, "shrinkage", np.float64)
    if found.shape != (2,) or not np.isfinite(found).all():
        raise ValueError(f"shrinkage of {found.tolist()}")
    return float(found[0]), float(found[1])


def _spread(
    sections: Mapping[str, NDArray[Any]],
    name: str,
    split: NDArray[np.bool_],
    out: NDArray[np.float64],
    n_leaves: int,
) -> None:
    core.spread_leaves(split, unpack_doubles(sections, f"{name} of leaves", n_leaves), out)


# Doubles in their order as integers, so that close ones are close. Distances are without a sign,
# 0, -1, 1, -2, ... as 0, 1, 2, 3, ...; all of it is modulo 2^64. ``core.move_splits`` goes back.
def _ordered(x: NDArray[np.float64]) -> NDArray[np.uint64]:
    bits = np.ascontiguousarray(x).view(np.uint64)
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))


def _distance(x: NDArray[np.float64], derived: NDArray[np.float64]) -> NDArray[np.uint64]:
    away = _ordered(x) - _ordered(derived)
    return (away << np.uint64(1)) ^ (np.uint64(0) - (away >> np.uint64(63)))


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
    packed = pack_integers(index - (np.cumsum(counts) - counts)[feature])
    if _WORD * len(table) + len(packed) >= _WORD * len(threshold):
        return {"threshold": threshold}
    return {"threshold": packed, "thresholds": table, "thresholds_of": counts.astype(np.uint32)}


def _unpack_thresholds(
    sections: Mapping[str, NDArray[Any]], feature: NDArray[np.int32]
) -> NDArray[np.float64]:
    if "thresholds" not in sections:
        return unpack_doubles(sections, "threshold", len(feature))
    table = typed(sections, "thresholds", np.float64)
    counts = typed(sections, "thresholds_of", np.uint32).astype(np.int64)
    if counts.sum() != len(table):
        raise ValueError(f"a table of {len(table)} thresholds instead of {counts.sum()}")
    index = unpack_integers(sections, "threshold", len(feature), max(len(table) - 1, 0))
    if np.any(feature < 0) or np.any(index >= counts[feature]):
        raise ValueError("a threshold that its feature does not have")
    found: NDArray[np.float64] = table[(np.cumsum(counts) - counts)[feature] + index]
    return found


def pack_distributions(known: LeafDistributions) -> Sections:
    """Return the sections of what leaves know of y."""
    return {
        "y values": known.values,
        "y counts": pack_integers(np.diff(known.start)),
        "y rank": pack_integers(known.rank),
        "y upto": pack_integers(known.upto),
    }


def unpack_distributions(
    sections: Mapping[str, NDArray[Any]],
    tree_start: NDArray[np.int64],
    is_split: NDArray[np.bool_],
) -> LeafDistributions:
    """Return what the leaves of such trees know of y; sections may come from anywhere."""
    counts = unpack_integers(sections, "y counts", len(is_split), _LARGEST_INT)
    n_entries = int(counts.sum())  # of at most 2^31 nodes, so nothing can wrap around
    n_shares = n_entries if len(typed(sections, "y upto", np.uint8)) else 0
    return LeafDistributions(
        tree_start=tree_start,
        start=np.concatenate([[0], np.cumsum(counts)]),
        rank=unpack_integers(sections, "y rank", n_entries, _LARGEST_INT).astype(np.int32),
        upto=unpack_integers(sections, "y upto", n_shares, SHARE_UNITS),
        values=typed(sections, "y values", np.float64),
    )
