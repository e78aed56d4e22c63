"""Kinds of the columns of batches: numbers, strings or times, of a categorical type or not.

The kind of a column is that of the first batch with a value of it; all other batches must agree.
Workers see some of the batches each. They keep the kinds that were new to them, batch by batch, and
`ColumnKinds.see` tells from those of all workers, in the order of the rows, what it would have told
from the batches.
"""

from __future__ import annotations

from typing import NamedTuple

from arboost.data.messages import listing
from arboost.data.raw_columns import RawTable
from arboost.data.table import ColumnOptions
from arboost.errors import SchemaError

__all__ = ["BatchKinds", "ColumnHeader", "ColumnKinds"]

_WORDS = {"number": "numbers", "string": "strings", "datetime": "dates", "duration": "durations"}


class ColumnHeader(NamedTuple):
    """Columns of the first batch: their names, number, and those of a categorical type."""

    names: tuple[str, ...] | None
    n_columns: int
    categories: frozenset[int]

    @classmethod
    def of(cls, raw: RawTable) -> ColumnHeader:
        """Return the header of a batch."""
        return cls(raw.names, int(raw.columns.n_columns), frozenset(raw.categories))


class BatchKinds(NamedTuple):
    """Kinds of the columns of one batch.

    Attributes
    ----------
    where : str
        Name of the batch.
    categories : frozenset of int
        Columns of a categorical type.
    given : dict of int to tuple
        For columns whose kind was not known to be so: the kind, and whether there is a value.
    """

    where: str
    categories: frozenset[int]
    given: dict[int, tuple[str, bool]]


class ColumnKinds:
    """Kinds of the columns of all batches so far.

    Parameters
    ----------
    header : ColumnHeader
        Columns of the first batch of all.
    options : ColumnOptions
    is_part : bool
        Whether other workers have batches before these: a column without a value here may have
        had any kind there.
    """

    def __init__(
        self, header: ColumnHeader, options: ColumnOptions, *, is_part: bool = False
    ) -> None:
        self.header = header
        self.named = options.categories(header.names, header.n_columns)  # in categorical_features
        self.date_formats = options.date_formats(header.names, header.n_columns)
        self.categories = set(header.categories)  # of a categorical type
        self._is_part = is_part
        self._kinds: dict[int, str] = {}  # of columns with a value
        self._empty_kinds: dict[int, str] = {}  # of columns without one, by the first batch

    def __getitem__(self, i: int) -> str:
        """Return the kind of a column; one without values has that of its first batch."""
        return self._kinds.get(i) or self._empty_kinds.get(i, "")

    def with_values(self, i: int) -> str | None:
        """Return the kind of a column that has a value, None for all others."""
        return self._kinds.get(i)

    def is_category(self, i: int) -> bool:
        """Whether the values of a column are levels."""
        return self[i] == "string" or self.is_named(i)

    def is_named(self, i: int) -> bool:
        """Whether a column is a category by its type, or because the user says so."""
        return i in self.categories or i in self.named

    def label(self, i: int) -> str:
        """Return the name of a column in messages: its name, or its index."""
        return repr(i if self.header.names is None else self.header.names[i])

    def order_of(self, raw: RawTable) -> list[int] | None:
        """Return the places of the columns in a batch, None where they are in their order."""
        names, n_columns, _ = self.header
        if raw.names == names and raw.columns.n_columns == n_columns:
            return None
        if raw.names is None or names is None or {*raw.names} != {*names}:
            raise SchemaError(_columns_message(raw, self.header))
        return [raw.names.index(name) for name in names]

    def see(self, batch: BatchKinds) -> None:
        """Add the kinds of the next batch; raise SchemaError where they differ from those before.

        A column without values takes the kind of the other batches.
        """
        self._check_categories(batch.categories)
        for i, (kind, has_values) in sorted(batch.given.items()):
            known = self._kinds.get(i)
            if not has_values:
                self._empty_kinds.setdefault(i, kind)
            elif known is None:
                self._kinds[i] = kind
            elif known != kind:
                raise SchemaError(
                    f"The column {self.label(i)} of X holds {_WORDS.get(kind, kind)}, but "
                    f"{_WORDS.get(known, known)} in batches before. Convert it to one type."
                )

    def _check_categories(self, given: frozenset[int]) -> None:
        """Raise SchemaError where numbers are of a categorical type in some batches only."""
        kind_of = self._kinds if self._is_part else self._kinds | self._without_values()
        changed = sorted(
            i
            for i in given ^ self.categories
            if kind_of.get(i, "") not in ("string", "") and i not in self.named
        )
        if changed:
            raise SchemaError(
                f"The column {self.label(changed[0])} of X is of a categorical type in some "
                "batches, but not in all. Convert it to one type, or name it in "
                "categorical_features."
            )
        self.categories |= given

    def _without_values(self) -> dict[int, str]:
        return {i: kind for i, kind in self._empty_kinds.items() if i not in self._kinds}


def _columns_message(raw: RawTable, header: ColumnHeader) -> str:
    """Return the message on a batch of other columns than the first."""
    if raw.names is None or header.names is None:
        return (
            f"X has a batch of {raw.columns.n_columns} columns, but the first one has "
            f"{header.n_columns}, or names only in some batches. Yield the same columns in all "
            "batches."
        )
    lacks = [name for name in header.names if name not in raw.names]
    more = [name for name in raw.names if name not in header.names]
    parts = [f"lacks the columns {listing(map(repr, lacks))}"] if lacks else []
    parts += [f"has the columns {listing(map(repr, more))} in addition"] if more else []
    return (
        f"X has a batch that {' and '.join(parts)}, compared with the first one. Yield the same "
        "columns in all batches."
    )
