"""The levels of a category: its distinct values in order, and their level codes.

Levels are strings, sorted by their UTF-8 bytes, or numbers, sorted by size. A level's code is its
index in that order, -1 for missing and unknown values; so equal tables of different libraries have
equal codes. A million levels are three arrays, not a million objects.

Ordered levels have ranks, by which trees split them like numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core, lazy_property

Floats = NDArray[np.float64]
Index = NDArray[np.uint32]  # of rows
Codes = NDArray[np.int32]  # of levels, -1 for missing
Order = tuple[Any, ...]  # all levels of an ordered category, ascending: bytes, or numbers

# Largest number of levels of a category that is split by sets of levels. The core has room for
# 255, but on tables of airports and airplanes target encoding wins from about here on.
MAX_SET_LEVELS = 100

KINDS = ("string", "number")
_CACHED = ("_index", "by_rank", "numbers")
NO_GROUP = 255  # of a level without training rows
_DTYPES: dict[str, Any] = {
    "offsets": np.int64,
    "statistic": np.float64,
    "groups": np.uint8,
    "group_means": np.float64,
    "shared_groups": np.uint8,
    "ranks": np.int32,
}
_PARTS = ("values", *_DTYPES)


@dataclass(frozen=True, eq=False)
class Levels:
    """The known levels of one category.

    Attributes
    ----------
    kind : {"string", "number"}
    values : uint8 array, or float64 array of shape (n_levels,)
        Strings one after the other, or numbers, ascending.
    offsets : int64 array of shape (n_levels + 1,), or None
        Starts of the strings; None for numbers.
    statistic : float64 array of shape (n_levels,), or None
        Target encoding of each level, where there are too many levels for sets.
    groups : uint8 array of shape (n_levels,), or None
        Group of each level, where there are too many levels for sets of levels and sets of groups
        take their place; `NO_GROUP` for levels without training rows.
    group_means : float64 array of shape (n_groups,), or None
        Mean target that each group stands for, ascending.
    shared_groups : uint8 array, or None
        Groups of several rare levels, ascending; every other group is one level.
    ranks : int32 array of shape (n_levels,), or None
        Place of each level in the order of an ordered category.
    """

    kind: str
    values: NDArray[Any]
    offsets: NDArray[np.int64] | None = None
    statistic: Floats | None = None
    groups: NDArray[np.uint8] | None = None
    group_means: Floats | None = None
    shared_groups: NDArray[np.uint8] | None = None
    ranks: Codes | None = None

    def __post_init__(self) -> None:
        for name in _PARTS:
            array = getattr(self, name)
            if array is not None:
                array = array.view()
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    @property
    def n_bytes(self) -> int:
        """Bytes of the levels and of their hash table."""
        offsets = 0 if self.offsets is None else self.offsets.nbytes
        return self.values.nbytes + offsets + 32 * len(self)

    @classmethod
    def of_text(cls, text: core.Text) -> tuple[Levels, Codes]:
        """Levels of a column of strings, and the level code of each row."""
        values, offsets, codes = text.levels()
        return cls("string", values, offsets), codes

    @classmethod
    def ordered(cls, order: Order) -> Levels:
        """Levels of an ordered category, all of them, with or without rows."""
        by_value = sorted(range(len(order)), key=order.__getitem__)
        values = [order[rank] for rank in by_value]
        ranks = np.array(by_value, np.int32)
        if values and isinstance(values[0], bytes):
            offsets = np.zeros(len(values) + 1, np.int64)
            np.cumsum([len(value) for value in values], out=offsets[1:])
            return cls("string", np.frombuffer(b"".join(values), np.uint8), offsets, ranks=ranks)
        return cls("number", np.array(values, np.float64), ranks=ranks)

    @classmethod
    def none(cls) -> Levels:
        """No levels: those of a column that is ignored, whose values are all missing."""
        return cls("string", np.empty(0, np.uint8), np.zeros(1, np.int64))

    @classmethod
    def of_numbers(cls, numbers: Floats) -> tuple[Levels, Codes]:
        """Levels of a column of numbers, and the level code of each row."""
        present = ~np.isnan(numbers)
        # Adding 0 makes the two zeros one level.
        values, inverse = np.unique(numbers[present] + 0.0, return_inverse=True)
        codes = np.full(len(numbers), -1, np.int32)
        codes[present] = inverse
        return cls("number", values), codes

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Levels):
            return NotImplemented
        pairs = zip(self._parts(), other._parts(), strict=True)
        return self.kind == other.kind and all(
            (array is None) == (other_array is None)
            and (
                array is None
                or other_array is None
                or np.array_equal(array, other_array, equal_nan=True)
            )
            for array, other_array in pairs
        )

    def __hash__(self) -> int:
        return hash((self.kind, len(self)))

    def __repr__(self) -> str:
        return f"Levels({len(self)} {self.kind}s)"

    def __getstate__(self) -> dict[str, Any]:
        # The hash table is built again on first use.
        return {part: value for part, value in vars(self).items() if part not in _CACHED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()  # unpickled arrays are writable

    @property
    def is_encoded(self) -> bool:
        """Whether levels are encoded by their targets: as means, or as groups."""
        return self.statistic is not None or self.groups is not None

    @property
    def n_set_codes(self) -> int:
        """Number of codes in the sets of splits: levels or groups; 0 for means and ranks."""
        if self.group_means is not None:
            return len(self.group_means)
        return len(self) if self.by_sets else 0

    @property
    def by_sets(self) -> bool:
        """Whether splits are sets of levels or groups, not thresholds."""
        return self.statistic is None and self.ranks is None

    @lazy_property
    def by_rank(self) -> NDArray[np.intp]:
        """Codes of the levels in their order."""
        assert self.ranks is not None
        return np.argsort(self.ranks)

    def label_at_most(self, threshold: float) -> str | float:
        """Last level of an ordered category that is not above a threshold."""
        return self.label(int(self.by_rank[min(max(int(threshold), 0), len(self) - 1)]))

    @lazy_property
    def numbers(self) -> Floats | None:
        """Number of each level in the table of a fit, NaN for missing; None: its code."""
        if self.ranks is not None:
            return self.ranks.astype(np.float64)
        if self.groups is None:
            return self.statistic
        numbers = self.groups.astype(np.float64)
        numbers[self.groups == NO_GROUP] = np.nan
        return numbers

    @property
    def means(self) -> Floats | None:
        """Mean target of each level, of a shared group that of the group; None: not encoded."""
        if self.groups is None:
            return self.statistic
        assert self.group_means is not None
        return np.append(self.group_means, np.full(256 - len(self.group_means), np.nan))[
            self.groups
        ]

    def is_shared(self, groups: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Whether each of some groups is of several levels."""
        assert self.shared_groups is not None
        return np.isin(groups, self.shared_groups)

    def nearest_shared(self, means: Floats) -> NDArray[np.uint8]:
        """Shared groups of the nearest means."""
        assert self.group_means is not None
        assert self.shared_groups is not None
        steps = self.group_means[self.shared_groups]
        if not len(steps):
            return np.full(len(means), NO_GROUP, np.uint8)
        return self.shared_groups[np.searchsorted(steps[:-1] + np.diff(steps) / 2, means)]

    def groups_by(self, means: Floats) -> NDArray[np.uint8]:
        """Groups of the levels, of rare ones by other means, and `NO_GROUP` at -1.

        A mean of NaN is a level without training rows, which has no group.
        """
        assert self.groups is not None
        groups = np.append(self.groups, np.uint8(NO_GROUP))
        rare = np.flatnonzero(self.is_shared(self.groups))
        groups[rare] = self.nearest_shared(means[rare])
        groups[:-1][np.isnan(means)] = NO_GROUP
        return groups

    @property
    def in_training(self) -> NDArray[np.bool_]:
        """Whether each level has training rows, as far as its groups show."""
        groups = np.zeros(len(self), np.uint8) if self.groups is None else self.groups
        has_rows: NDArray[np.bool_] = groups != NO_GROUP
        return has_rows

    def in_set(self, words: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether each level is in a set of codes, given as bits."""
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little").astype(bool)
        if self.groups is None:
            return bits[: len(self)]
        bits[NO_GROUP] = False
        return bits[self.groups]

    def codes_of_text(self, text: core.Text) -> Codes:
        """Level code of each row of a column of strings."""
        codes: Codes = self._index.codes(text)
        return codes

    def codes_of_numbers(self, numbers: Floats) -> Codes:
        """Level code of each number."""
        if len(self) == 0:
            return np.full(len(numbers), -1, np.int32)
        index = np.searchsorted(self.values, numbers).clip(max=len(self) - 1)
        return np.where(self.values[index] == numbers, index, -1).astype(np.int32)

    def label(self, code: int) -> str | float:
        """Level of a code."""
        if self.offsets is None:
            return float(self.values[code])
        return self.text(code).decode("utf-8", "backslashreplace")

    def text(self, code: int) -> bytes:
        """Level of a code of a column of strings, in UTF-8."""
        assert self.offsets is not None
        return self.values[self.offsets[code] : self.offsets[code + 1]].tobytes()

    def texts(self) -> list[bytes]:
        """All levels of a column of strings, in UTF-8."""
        assert self.offsets is not None
        data = self.values.tobytes()
        return [data[begin:end] for begin, end in pairwise(self.offsets.tolist())]

    def validate(self) -> None:
        """Raise ValueError unless the levels are in order; for levels from a file."""
        if self.kind not in KINDS or (self.kind == "string") != (self.offsets is not None):
            raise ValueError(f"levels of the kind {self.kind!r}")
        if self.values.ndim != 1 or (self.offsets is not None and self.offsets.ndim != 1):
            raise ValueError("levels that are not a list")
        if self.offsets is not None:
            core.check_levels(self.values, self.offsets)
        elif np.isnan(self.values).any() or not (self.values[:-1] < self.values[1:]).all():
            raise ValueError("levels that are not in ascending order")
        if self.statistic is not None and (
            self.statistic.shape != (len(self),) or np.isinf(self.statistic).any()
        ):
            raise ValueError("statistics that do not fit their levels")
        self._validate_groups()
        ranks = self.ranks
        if ranks is not None and (
            self.is_encoded or not np.array_equal(np.sort(ranks), np.arange(len(self)))
        ):
            raise ValueError("ranks that do not order their levels")

    def _validate_groups(self) -> None:
        groups, means, shared = self.groups, self.group_means, self.shared_groups
        if groups is None or means is None or shared is None:
            if any(part is not None for part in (groups, means, shared)):
                raise ValueError("groups without their parts")
            return
        if means.ndim != 1 or len(means) > NO_GROUP or not np.isfinite(means).all():
            raise ValueError("means that do not fit their groups")
        n_groups = len(means)
        is_known = (groups < n_groups) | (groups == NO_GROUP)
        if self.statistic is not None or groups.shape != (len(self),) or not is_known.all():
            raise ValueError("groups that do not fit their levels")
        if shared.ndim != 1 or not (shared[:-1] < shared[1:]).all() or (shared >= n_groups).any():
            raise ValueError("shared groups that are none")

    def describe(self, name: str, arrays: dict[str, NDArray[Any]]) -> str:
        """Kind of the levels, whose arrays are added to those of a file."""
        for part, array in zip(_PARTS, self._parts(), strict=True):
            if array is not None:
                arrays[f"{name} {part}"] = array
        return self.kind

    @classmethod
    def read(cls, kind: str, name: str, arrays: dict[str, NDArray[Any]]) -> Levels:
        """Levels of a file; `Schema.validate` validates them."""
        parts = {part: arrays.get(f"{name} {part}") for part in _PARTS}
        dtypes = _DTYPES | {"values": np.uint8 if kind == "string" else np.float64}
        for part, array in parts.items():
            if array is not None and array.dtype != dtypes[part]:
                raise ValueError(f"{name} {part} of type {array.dtype}")
        values = parts.pop("values")
        if values is None:
            raise ValueError(f"{name} without values")
        return cls(kind, values, **parts)

    def _parts(self) -> tuple[NDArray[Any] | None, ...]:
        return tuple(getattr(self, part) for part in _PARTS)

    @lazy_property
    def _index(self) -> core.LevelIndex:
        """Hash table of the strings, built on first use."""
        assert self.offsets is not None
        return core.LevelIndex(self.values, self.offsets)


def encoded_values(statistic: Floats, codes: Codes) -> Floats:
    """Target encoding of each level code; NaN for the code -1."""
    return np.append(statistic, np.nan)[codes]  # the index -1 is the last one


def merged_order(orders: Collection[Order]) -> Order | None:
    """Only order of all levels that agrees with each of some orders; None: not one.

    Examples
    --------
    >>> merged_order([("low", "high"), ("low", "medium"), ("medium", "high")])
    ('low', 'medium', 'high')
    >>> merged_order([("low", "medium"), ("low", "high")])
    """
    followers: dict[Any, set[Any]] = {}
    for order in orders:
        for level in order:
            followers.setdefault(level, set())
        for level, following in pairwise(order):
            followers[level].add(following)
    n_before = dict.fromkeys(followers, 0)
    for following in followers.values():
        for level in following:
            n_before[level] += 1
    merged, free = [], [level for level, count in n_before.items() if not count]
    while len(free) == 1:  # with two, their order would be open
        merged.append(free.pop())
        for level in followers[merged[-1]]:
            n_before[level] -= 1
            free += [] if n_before[level] else [level]
    return tuple(merged) if len(merged) == len(followers) else None
