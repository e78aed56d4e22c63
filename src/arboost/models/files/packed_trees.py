"""Forest and leaf distributions <-> sections of a model file, in a few bytes per node.

Most numbers of a tree follow from the others, so that they need not be stored in full:

======================= ========================================================================
section                 content
======================= ========================================================================
splits, output          per tree: number of its splits, and its output
structure               one bit per node, in order: whether it is a split
order                   per split: number of splits of its tree whose children precede its own;
                        only where that is not the order of the splits
feature, default_left,  per split; with " of leaves" after the name per leaf, where they mean
by_set                  nothing; features count from 1
threshold               per split: index in "thresholds", the distinct thresholds by feature, whose
                        numbers are "thresholds_of"
cover, value, gain      " of leaves": per leaf; else per split: distance from the number that
                        follows from the leaves
shrinkage               reg_lambda and the factor of gains, as in cpp/save/derive.h; absent where
                        values are plain means
level_sets              as in the forest
y values                leaf distributions: distinct values of y
y counts, y rank,       per node: number of entries; per entry: rank of y, and cumulative share of
y upto                  the weight
======================= ========================================================================

Integers are packed by ``core.pack_bits``. Doubles have the smallest of four forms: integers, where
all are integers; a ", table" of the distinct values with indices in it; ", scaled" by
``core.pack_scaled``; or as they are. Reading gives the same forest, bit for bit, and allocates no
memory for a count before it has checked the bytes behind that count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.models.files.container import Budget
from arboost.trees.forest import Floats, Forest, Integers, splits
from arboost.trees.leaf_distributions import SHARE_UNITS, LeafDistributions

Sections = dict[str, NDArray[Any]]

_DERIVED = ("cover", "value", "gain")
_PLAIN = (0.0, 1.0)  # the shrinkage of means
_DIGITS = 6  # significant digits of an estimated shrinkage
_SAMPLE = 10_000  # splits from which it is estimated
_DOUBLE_SIZE = 8  # bytes
_NODE_BYTES = 45  # of a node in memory, without its values
# Bytes in memory, copies of the reader and of the checks included: counts and starts of nodes,
# ranks and shares of entries.
_COUNT_BYTES, _RANK_BYTES, _SHARE_BYTES = 24, 18, 16
_LARGEST_INT = 2**31 - 1
_INTEGERS_END = 2.0**53  # from here on not every integer is a double


def to_sections(forest: Forest) -> Sections:
    """Sections of a valid forest."""
    split = forest.is_split
    leaf = ~split
    before = np.concatenate([[0], np.cumsum(split)])  # splits before each node
    counts = np.diff(before[forest.tree_start]).astype(np.uint32)
    sections: Sections = {
        "splits": counts,
        "output": forest.output,
        "structure": np.packbits(split, bitorder="little"),
    }
    order = (forest.left[split] - 1) // 2
    ends = np.cumsum(counts, dtype=np.int64)
    number_in_tree = np.arange(len(order)) - np.repeat(ends - counts, counts)
    if not np.array_equal(order, number_in_tree):
        sections["order"] = _pack_integers(order)
    for name, numbers in (
        ("feature", forest.feature + 1),  # that of leaves is -1
        ("default_left", forest.default_left),
        ("by_set", forest.level_set >= 0),
    ):
        sections[name] = _pack_integers(numbers[split])
        sections[f"{name} of leaves"] = _pack_integers(numbers[leaf])
    sections |= _pack_thresholds(forest.feature[split], forest.threshold[split])
    for name in ("threshold", *_DERIVED):
        sections |= _pack_doubles(f"{name} of leaves", getattr(forest, name)[leaf].ravel())
    sections |= _pack_derived(forest)
    sections["level_sets"] = forest.level_sets
    return sections


def from_sections(sections: Mapping[str, NDArray[Any]], width: int, budget: Budget) -> Forest:
    """Forest in sections, with leaves of `width` values.

    Sections may come from anywhere: invalid ones raise the errors that `container.errors_named`
    expects.
    """
    splits = _typed(sections, "splits", np.uint32)
    n_nodes = len(splits) + 2 * int(splits.sum(dtype=np.uint64))
    largest_tree = 1 + 2 * int(splits.max(initial=0))
    node_bytes = _NODE_BYTES + _DOUBLE_SIZE * width
    if n_nodes <= 8 * len(_typed(sections, "structure", np.uint8)):  # else the core says more
        budget.take(n_nodes * node_bytes + largest_tree * _DOUBLE_SIZE * width, "trees")
    arrays = core.read_forest(dict(sections), width)
    arrays["default_left"] = arrays["default_left"].view(np.bool_)
    return Forest(
        output=_typed(sections, "output", np.int32), level_sets=sections["level_sets"], **arrays
    )


def pack_distributions(distributions: LeafDistributions) -> Sections:
    """Sections of leaf distributions."""
    return {
        "y values": distributions.values,
        "y counts": _pack_integers(np.diff(distributions.start)),
        "y rank": _pack_integers(distributions.rank),
        "y upto": _pack_integers(distributions.upto),
    }


def unpack_distributions(
    sections: Mapping[str, NDArray[Any]],
    tree_start: Integers,
    is_split: NDArray[np.bool_],
    budget: Budget,
) -> LeafDistributions:
    """Leaf distributions of the given trees; sections may come from anywhere."""
    budget.take(_COUNT_BYTES * len(is_split), "counts of leaves")
    counts = _unpack_integers(sections, "y counts", len(is_split), _LARGEST_INT)
    n_entries = int(counts.sum())  # of at most 2^31 nodes, so it cannot overflow
    n_shares = n_entries if len(_typed(sections, "y upto", np.uint8)) else 0
    budget.take(_RANK_BYTES * n_entries + _SHARE_BYTES * n_shares, "distributions of leaves")
    return LeafDistributions(
        tree_start=tree_start,
        start=np.concatenate([[0], np.cumsum(counts)]),
        rank=_unpack_integers(sections, "y rank", n_entries, _LARGEST_INT).astype(np.int32),
        upto=_unpack_integers(sections, "y upto", n_shares, SHARE_UNITS),
        values=_typed(sections, "y values", np.float64),
    )


# ---- thresholds ----


def _pack_thresholds(feature: NDArray[np.int32], threshold: Floats) -> Sections:
    bits = threshold.view(np.uint64)
    order = np.lexsort((bits, feature))
    features, keys = feature[order], bits[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (features[1:] != features[:-1]) | (keys[1:] != keys[:-1])
    table = keys[first].view(np.float64)
    counts = np.bincount(features[first]) if len(order) else np.empty(0, np.int64)
    index = np.empty(len(order), np.int64)
    index[order] = np.cumsum(first) - 1
    packed = _pack_integers(index - (np.cumsum(counts) - counts)[feature])
    if _DOUBLE_SIZE * len(table) + len(packed) >= _DOUBLE_SIZE * len(threshold):
        return {"threshold": threshold}
    return {"threshold": packed, "thresholds": table, "thresholds_of": counts.astype(np.uint32)}


# ---- numbers of splits, which follow from those of the leaves ----


def _pack_derived(forest: Forest) -> Sections:
    """Distances of splits from their derived numbers, by the better shrinkage."""
    sections = _distances(forest, _PLAIN)
    # Estimated: params leave reg_lambda to the fit, and DART, samples and others change the factor.
    reg_lambda, split = _estimate_lambda(forest), forest.is_split
    derived_gain = _derived(forest, (reg_lambda, 1.0))["gain"][split, 0]
    shrinkage = (reg_lambda, _median_ratio(forest.gain[split], derived_gain, 1.0))
    if shrinkage != _PLAIN:
        shrunk = _distances(forest, shrinkage) | {"shrinkage": np.array(shrinkage)}
        sections = min((sections, shrunk), key=_size)
    return sections


def _distances(forest: Forest, shrinkage: tuple[float, float]) -> Sections:
    split, derived = forest.is_split, _derived(forest, shrinkage)
    return {
        name: _pack_integers(
            _distance(_columns(getattr(forest, name))[split], derived[name][split]).ravel()
        )
        for name in _DERIVED
    }


def _derived(forest: Forest, shrinkage: tuple[float, float]) -> Sections:
    """Covers, values and gains of all nodes, those of splits derived from the leaves."""
    numbers = {name: _columns(getattr(forest, name)).copy() for name in _DERIVED}
    core.derive_splits(
        forest.tree_start,
        forest.left,
        cover=numbers["cover"][:, 0],
        value=numbers["value"],
        gain=numbers["gain"][:, 0],
        reg_lambda=shrinkage[0],
        gain_factor=shrinkage[1],
        whole_sums=shrinkage == _PLAIN,
    )
    return numbers


def _columns(numbers: Floats) -> Floats:
    return numbers if numbers.ndim > 1 else numbers[:, np.newaxis]


def _estimate_lambda(forest: Forest) -> float:
    """The reg_lambda by which values of splits follow from those of their children.

    v (H + lambda) of a split is the sum of that of its children. Any result is valid: it affects
    only the size of the file.
    """
    split, left = splits(forest)
    value, cover = forest.value[:, 0], forest.cover
    with np.errstate(all="ignore"):
        of_children = value[left] * cover[left] + value[left + 1] * cover[left + 1]
        more = of_children - value[split] * cover[split]
        less = value[split] - value[left] - value[left + 1]
    return _median_ratio(more, less, 0.0)


def _median_ratio(x: Floats, y: Floats, default: float) -> float:
    """Median of the positive finite x / y, to a few digits."""
    with np.errstate(all="ignore"):
        ratio = (x[y != 0] / y[y != 0])[:_SAMPLE]
    ratio = np.sort(ratio[np.isfinite(ratio) & (ratio > 0)])
    return float(f"{ratio[len(ratio) // 2]:.{_DIGITS}g}") if len(ratio) else default


def _distance(x: Floats, derived: Floats) -> NDArray[np.uint64]:
    """Number of doubles between x and derived, as integers without a sign.

    The distances 0, -1, 1, -2, ... are 0, 1, 2, 3, ..., modulo 2^64; ``core.read_forest`` inverts
    it.
    """
    away = _ordered(x) - _ordered(derived)
    return (away << np.uint64(1)) ^ (np.uint64(0) - (away >> np.uint64(63)))


def _ordered(x: Floats) -> NDArray[np.uint64]:
    """Integers in the order of the doubles: adjacent doubles are adjacent integers."""
    bits = np.ascontiguousarray(x).view(np.uint64)
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))


# ---- integers and doubles in few bytes ----


def _pack_integers(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Section of integers from 0 on."""
    packed: NDArray[np.uint8] = core.pack_bits(numbers.astype(np.uint64))
    return packed


def _unpack_integers(
    sections: Mapping[str, NDArray[Any]], name: str, count: int, largest: int
) -> Integers:
    """Integers from 0 to `largest`, `count` of them; raise ValueError for larger ones."""
    try:
        numbers: NDArray[np.uint64] = core.unpack_bits(_typed(sections, name, np.uint8), count)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if count and int(numbers.max()) > largest:
        raise ValueError(f"{name} of {int(numbers.max())}, above {largest}")
    return numbers.view(np.int64)


def _pack_doubles(name: str, x: Floats) -> Sections:
    """Sections of doubles, in the smallest form."""
    bits = np.ascontiguousarray(x).view(np.uint64)
    if np.all((x >= 0) & (x < _INTEGERS_END) & (x == np.floor(x)) & (bits >> 63 == 0)):
        return {name: _pack_integers(x)}
    table, index = np.unique(bits, return_inverse=True)
    forms: list[Sections] = [
        {f"{name}, table": table.view(np.float64), name: _pack_integers(index)},
        {f"{name}, scaled": core.pack_scaled(x)},
        {name: x},
    ]
    return min(forms, key=_size)


def _size(sections: Sections) -> int:
    """Number of bytes of sections."""
    return sum(section.nbytes for section in sections.values())


def _typed(
    sections: Mapping[str, NDArray[Any]], name: str, dtype: type[np.generic]
) -> NDArray[Any]:
    """Section; raise TypeError unless it is a vector of this dtype."""
    array = sections[name]
    if array.dtype != dtype or array.ndim != 1:
        raise TypeError(f"{name} of type {array.dtype} and {array.ndim} axes")
    return array
