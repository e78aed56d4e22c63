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
                        where values are plain means
level_sets              as in the forest
======================= ========================================================================

What leaves know of y (`distributions`) is "y values", and packed "y counts" of the leaves, "y rank"
and "y upto". Numbers are as `packing` has them. Reading gives the same forest, bit for bit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.model.forest import Forest
from arboost.model.leaf_distributions import SHARE_UNITS, LeafDistributions

__all__ = [
    "Sections",
    "from_sections",
    "named",
    "pack_distributions",
    "pack_doubles",
    "pack_integers",
    "size_of",
    "to_sections",
    "typed",
    "unpack_distributions",
    "unpack_integers",
]


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
    arrays = core.read_forest(dict(sections), width)
    arrays["default_left"] = arrays["default_left"].view(np.bool_)
    return Forest(
        output=typed(sections, "output", np.int32), level_sets=sections["level_sets"], **arrays
    )


def _split_numbers(counts: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the number of each split in its tree."""
    ends = np.cumsum(counts, dtype=np.int64)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)


def _splits_of(split: NDArray[np.bool_], tree_start: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the number of splits of each tree."""
    before = np.zeros(len(split) + 1, np.int64)
    np.cumsum(split, out=before[1:])
    return np.diff(before[tree_start]).astype(np.uint32)


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
        whole_sums=shrinkage == _PLAIN,
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


# Doubles in their order as integers, so that close ones are close. Distances are without a sign,
# 0, -1, 1, -2, ... as 0, 1, 2, 3, ...; all of it is modulo 2^64. ``core.read_forest`` goes back.
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


Sections = dict[str, NDArray[Any]]

_WHOLE_END = 2.0**53  # from here on not every whole number is a double


def size_of(sections: Sections) -> int:
    """Return the bytes that sections take."""
    return sum(section.nbytes for section in sections.values())


def pack_integers(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the section of integers from 0 on."""
    packed: NDArray[np.uint8] = core.pack_bits(numbers.astype(np.uint64))
    return packed


def unpack_integers(
    sections: Mapping[str, NDArray[Any]], name: str, count: int, largest: int | None = None
) -> NDArray[np.int64]:
    """Return `count` integers; with no `largest` their 64 bits may mean anything."""
    with named(name):
        numbers: NDArray[np.uint64] = core.unpack_bits(typed(sections, name, np.uint8), count)
    if largest is not None and count and int(numbers.max()) > largest:
        raise ValueError(f"{name} of {int(numbers.max())}, above {largest}")
    return numbers.view(np.int64)


def pack_doubles(name: str, x: NDArray[np.float64]) -> Sections:
    """Return the sections of doubles, in the smallest form."""
    bits = np.ascontiguousarray(x).view(np.uint64)
    if np.all((x >= 0) & (x < _WHOLE_END) & (x == np.floor(x)) & (bits >> 63 == 0)):
        return {name: pack_integers(x)}
    table, index = np.unique(bits, return_inverse=True)
    forms: list[Sections] = [
        {f"{name}, table": table.view(np.float64), name: pack_integers(index)},
        {f"{name}, scaled": core.pack_scaled(x)},
        {name: x},
    ]
    return min(forms, key=size_of)


def typed(sections: Mapping[str, NDArray[Any]], name: str, dtype: type[np.generic]) -> NDArray[Any]:
    """Return a section; raise TypeError where it is no list of this type."""
    array = sections[name]
    if array.dtype != dtype or array.ndim != 1:
        raise TypeError(f"{name} of type {array.dtype} and {array.ndim} axes")
    return array


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Say which section it was that the core refused."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
