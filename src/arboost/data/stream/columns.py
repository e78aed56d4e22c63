"""Columns of batches -> one schema: names, kinds, units and levels over all batches.

Levels are not known before the last batch. Until then, levels have provisional codes, in the order
of their first appearance; `ColumnMerge.finish` tells the final ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.levels import Levels
from arboost.data.messages import listing
from arboost.data.raw_columns import RawTable, missing_column
from arboost.data.schema import UNITS, Schema
from arboost.data.table import ColumnOptions, level_column, read_columns
from arboost.data.unusual import ColumnNotes
from arboost.errors import SchemaError

__all__ = ["ColumnMerge", "MergedColumns"]

MOST_LEVELS = 1_000_000  # of a category; a set of more takes too much memory
_WORDS = {"number": "numbers", "string": "strings", "datetime": "dates", "duration": "durations"}


class MergedColumns(NamedTuple):
    """Columns of all batches.

    Attributes
    ----------
    schema : Schema
    notes : ColumnNotes
        Notes to warn of, as of a table in memory.
    codes : dict of int to float64 array
        For each category, the final code of each provisional one; NaN in a column that is ignored.
    """

    schema: Schema
    notes: ColumnNotes
    codes: dict[int, NDArray[np.float64]]


class ColumnMerge:
    """Names, kinds and levels of the columns of all batches so far."""

    def __init__(self, options: ColumnOptions) -> None:
        self._options = options
        self._names: tuple[str, ...] | None = None
        self._n_columns: int | None = None
        self._named: set[int] = set()  # in categorical_features
        self._categories: set[int] = set()  # of a categorical type
        self._kinds: dict[int, str] = {}  # of columns with a value
        self._empty_kinds: dict[int, str] = {}  # of columns without one, by the first batch
        self._codes: dict[int, dict[object, int]] = {}  # of levels, by category
        self._n_present: dict[int, int] = {}
        self._inexact: set[int] = set()

    def add(self, X: object) -> core.Columns:
        """Return the columns of the next batch, categories as provisional level codes."""
        raw = self._matched(read_columns(X))
        if raw.columns.has_sparse:
            raise TypeError(
                "X has batches of sparse matrices, but batches must be dense. Fit on the whole "
                "sparse matrix, or yield arrays: X.toarray()."
            )
        raw.set_missing(self._options.missing)
        self._inexact.update(raw.columns.inexact_columns(), raw.inexact)
        for i in range(raw.columns.n_columns):
            kind = self._merge_kind(raw, i)
            if kind == "string" or i in self._categories or i in self._named:
                raw.columns.put(i, self._level_codes(raw, i))
        return raw.columns

    def finish(self) -> MergedColumns:
        """Return the schema of all batches."""
        n_columns = self._n_columns or 0
        notes = ColumnNotes(self._names, self._named)
        notes.inexact.extend(sorted(self._inexact))
        levels: list[Levels | None] = [None] * n_columns
        codes = {}
        for i in sorted(self._codes):
            levels[i], codes[i] = self._final_levels(i, notes)
        units = [self._kind(i) if self._kind(i) in UNITS else "" for i in range(n_columns)]
        schema = Schema(
            names=self._names,
            n_features=n_columns,
            levels=tuple(levels) if codes else (),
            missing=self._options.missing,
            units=tuple(units) if any(units) else (),
        )
        return MergedColumns(schema, notes, codes)

    def _matched(self, raw: RawTable) -> RawTable:
        """Return the columns in the order of the first batch."""
        n_columns = int(raw.columns.n_columns)
        if self._n_columns is None:
            self._names, self._n_columns = raw.names, n_columns
            self._named = self._options.categories(raw.names, n_columns)
            self._categories = set(raw.categories)
            return raw
        if raw.names == self._names and n_columns == self._n_columns:
            self._check_categories(raw)
            return raw
        if raw.names is None or self._names is None or {*raw.names} != {*self._names}:
            raise SchemaError(_columns_message(raw, self._names, self._n_columns))
        self._check_categories(raw)
        return raw.select([raw.names.index(name) for name in self._names])

    def _check_categories(self, raw: RawTable) -> None:
        """Raise SchemaError where numbers are of a categorical type in some batches only."""
        given = {
            i if raw.names is None else (self._names or ()).index(raw.names[i])
            for i in raw.categories
        }
        changed = sorted(
            i
            for i in given ^ self._categories
            if self._kind(i) not in ("string", "") and i not in self._named
        )
        if changed:
            raise SchemaError(
                f"The column {self._label(changed[0])} of X is of a categorical type in some "
                "batches, but not in all. Convert it to one type, or name it in "
                "categorical_features."
            )
        self._categories |= given

    def _merge_kind(self, raw: RawTable, i: int) -> str:
        """Return the kind of a column; one without values takes that of the other batches."""
        given = raw.units.get(i) or ("string" if i in raw.texts else "number")
        known = self._kinds.get(i)
        if known == given:
            return given
        if raw.is_all_missing(i):
            self._empty_kinds.setdefault(i, given)
            if known is not None:
                raw.columns.put(i, missing_column(int(raw.columns.n_rows)))
                raw.texts.pop(i, None)
            return self._kind(i)
        if known is not None:
            raise SchemaError(
                f"The column {self._label(i)} of X holds {_WORDS.get(given, given)}, but "
                f"{_WORDS.get(known, known)} in batches before. Convert it to one type."
            )
        if given != "string" and i not in self._categories | self._named:
            self._codes.pop(i, None)  # it had no values so far
        self._kinds[i] = given
        return given

    def _kind(self, i: int) -> str:
        return self._kinds.get(i) or self._empty_kinds.get(i, "")

    def _label(self, i: int) -> str:
        return repr(i if self._names is None else self._names[i])

    def _level_codes(self, raw: RawTable, i: int) -> core.Columns:
        """Return a category as provisional level codes, -1 for missing."""
        known = self._codes.setdefault(i, {})
        values: Iterable[object]
        if i in raw.texts:
            levels, codes = Levels.of_text(raw.texts[i])
            values = levels.texts()
            self._n_present[i] = self._n_present.get(i, 0) + int(raw.texts[i].n_present)
        else:
            levels, codes = Levels.of_numbers(raw.columns.read(i))
            values = levels.values.tolist()
        found = [known.setdefault(value, len(known)) for value in values]
        if len(known) > MOST_LEVELS:
            raise ValueError(
                f"The column {self._label(i)} of X has more than {MOST_LEVELS:,} distinct values, "
                "too many for the levels of a category that is read in batches. Drop the column: "
                "keys and free text hold little to learn from."
            )
        return level_column(int(raw.columns.n_rows), np.array([*found, -1], np.int32)[codes])

    def _final_levels(self, i: int, notes: ColumnNotes) -> tuple[Levels, NDArray[np.float64]]:
        """Return the levels of a category in order, and the final codes of provisional ones."""
        known = self._codes[i]
        is_text = self._kind(i) == "string"
        levels = _text_levels(known) if is_text else _number_levels(known)
        codes = np.empty(len(known))
        codes[[known[value] for value in sorted(known)]] = np.arange(len(known))  # type: ignore[type-var]
        is_named = i in self._categories or i in self._named
        n_present = self._n_present.get(i, 0)
        if is_text and not is_named and notes.add(i, levels, n_present) == "unique":
            return Levels.none(), np.full(len(known), np.nan)
        return levels, codes


def _text_levels(known: Iterable[object]) -> Levels:
    texts = sorted(text for text in known if isinstance(text, bytes))
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return Levels("string", np.frombuffer(b"".join(texts), np.uint8), offsets)


def _number_levels(known: Iterable[object]) -> Levels:
    return Levels("number", np.sort(np.array([*known], np.float64)))


def _columns_message(raw: RawTable, names: Sequence[str] | None, n_columns: int) -> str:
    """Return the message on a batch of other columns than the first."""
    if raw.names is None or names is None:
        return (
            f"X has a batch of {raw.columns.n_columns} columns, but the first one has {n_columns}, "
            "or names only in some batches. Yield the same columns in all batches."
        )
    lacks = [name for name in names if name not in raw.names]
    more = [name for name in raw.names if name not in names]
    parts = [f"lacks the columns {listing(map(repr, lacks))}"] if lacks else []
    parts += [f"has the columns {listing(map(repr, more))} in addition"] if more else []
    return (
        f"X has a batch that {' and '.join(parts)}, compared with the first one. Yield the same "
        "columns in all batches."
    )
