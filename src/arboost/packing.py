"""Numbers <-> sections of a model file, in as few bytes as they need.

Integers are packed by ``core.pack_bits``. Other numbers are whole; or in a section with ", scaled"
behind its name, packed by ``core.pack_scaled``; or a ", table" of the distinct ones and integers
that count in it; or as they are: whatever is smallest. No count costs memory before it has met the
bytes behind it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = [
    "Sections",
    "named",
    "pack_doubles",
    "pack_integers",
    "size_of",
    "typed",
    "unpack_integers",
]

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
