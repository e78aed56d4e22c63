"""Iterables of batches that start again: an object with ``__iter__``, or a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar

from arboost.sources.source import Part, Source, row_count

__all__ = ["IterableSource", "is_iterable"]

# A table, array or series has one of these.
_OF_TABLES = (
    "__array__",
    "__array_interface__",
    "__arrow_c_array__",
    "__arrow_c_stream__",
    "__cuda_array_interface__",
    "__dataframe__",
    "__dlpack__",
    "__getitem__",
    "shape",
)


def is_iterable(X: Any) -> bool:
    """Whether X is an iterable or a function, but no table in memory."""
    if isinstance(X, type | str | bytes | Mapping | Sequence | Set):
        return False
    if any(hasattr(X, name) for name in _OF_TABLES):
        return False
    return hasattr(X, "__iter__") or callable(X)


class IterableSource(Source):
    """Batches of a user's iterable: tables of any type, or tuples (X, y) or (X, y, weight).

    They are computed in the thread of the caller, one at a time. A generator can be read only
    `once`.
    """

    _READS_AHEAD: ClassVar[bool] = False

    def __init__(
        self, X: Iterable[Any] | Callable[[], Iterable[Any]], *, once: bool = False
    ) -> None:
        if hasattr(X, "__next__") and not once:
            raise TypeError(
                f"X is a {type(X).__name__}, whose batches can be read only once, but training "
                "reads them twice. Pass the function that returns it, without calling it, or an "
                "object whose __iter__ starts again."
            )
        super().__init__(f"the {type(X).__name__}", None)
        self._start = X if not hasattr(X, "__iter__") else lambda: iter(X)

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        for number, table in enumerate(self._start()):
            yield Part(table, f"batch {number} of {self.label}", 0)

    def _slices(self, table: Any, batch_rows: int) -> Iterator[Any]:
        if row_count(table):
            yield table
