"""Columns of batches, and of the batches of several workers -> one schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import level_columns
from arboost.data.level_columns import ColumnNotes, DateColumn
from arboost.data.levels import MAX_SET_LEVELS, Floats, Levels, Order
from arboost.data.raw_table import RawTable, missing_columns
from arboost.data.schema import UNITS, CalendarStats, Schema
from arboost.data.table import ColumnOptions
from arboost.errors import InputTypeError, SchemaError, error_prefix, listing

_WORDS = {"number": "numbers", "string": "strings", "datetime": "dates", "duration": "durations"}


class ColumnHeader(NamedTuple):
    """Columns of the first batch: their names, number, and those of a categorical type."""

    names: tuple[str, ...] | None
    n_columns: int
    categories: frozenset[int]

    @classmethod
    def of(cls, raw: RawTable) -> ColumnHeader:
        """Header of a batch."""
        return cls(raw.names, int(raw.columns.n_columns), frozenset(raw.categories))


class BatchKinds(NamedTuple):
    """Kinds of the columns of one batch.

    Attributes
    ----------
    where : str
        Name of the batch.
    categories : frozenset of int
        Columns of a categorical type.
    new_kinds : dict of int to tuple
        For columns whose kind differs from the known one: the kind, and whether there is a value.
    """

    where: str
    categories: frozenset[int]
    new_kinds: dict[int, tuple[str, bool]]


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
        """Kind of a column; one without values has that of its first batch."""
        return self._kinds.get(i) or self._empty_kinds.get(i, "")

    def with_values(self, i: int) -> str | None:
        """Kind of a column that has a value, None for all others."""
        return self._kinds.get(i)

    def is_category(self, i: int) -> bool:
        """Whether the values of a column are levels."""
        return self[i] == "string" or self.is_named(i)

    def is_named(self, i: int) -> bool:
        """Whether a column is a category by its type, or because the user says so."""
        return i in self.categories or i in self.named

    def label(self, i: int) -> str:
        """Name of a column in messages: its name, or its index."""
        return repr(i if self.header.names is None else self.header.names[i])

    def order_of(self, raw: RawTable) -> list[int] | None:
        """Places of the columns in a batch, None where they are in their order."""
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
        for i, (kind, has_values) in sorted(batch.new_kinds.items()):
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

    def _check_categories(self, categories: frozenset[int]) -> None:
        """Raise SchemaError where numbers are of a categorical type in some batches only."""
        kind_of = self._kinds if self._is_part else self._empty_kinds | self._kinds
        changed = sorted(
            i
            for i in categories ^ self.categories
            if kind_of.get(i, "") not in ("string", "") and i not in self.named
        )
        if changed:
            raise SchemaError(
                f"The column {self.label(changed[0])} of X is of a categorical type in some "
                "batches, but not in all. Convert it to one type, or name it in "
                "categorical_features."
            )
        self.categories |= categories


def _columns_message(raw: RawTable, header: ColumnHeader) -> str:
    """Message on a batch of other columns than the first."""
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


MOST_LEVELS = 1_000_000  # of a category; a set of more takes too much memory


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
    codes: dict[int, Floats]


class ColumnPart(NamedTuple):
    """Columns of the batches of one worker.

    Attributes
    ----------
    kinds : list of BatchKinds
        Of the batches with a kind that was new to the worker.
    levels : dict of int to pair of arrays
        Levels of each category, by provisional code: bytes and offsets.
    n_present : dict of int to int
        Number of strings of each category.
    inexact : set of int
        Columns with values beyond the precision of float64.
    orders : dict of int to list of Order
        Orders of the levels of ordered categories.
    dates : dict of int to CalendarStats
        Columns of dates.
    """

    kinds: list[BatchKinds]
    levels: dict[int, tuple[NDArray[np.uint8], NDArray[np.int64]]]
    n_present: dict[int, int]
    inexact: set[int]
    orders: dict[int, list[Order]]
    dates: dict[int, CalendarStats]


class ColumnMerge:
    """Names, kinds and levels of the columns of all batches so far.

    Parameters
    ----------
    options : ColumnOptions
    header : ColumnHeader
        Columns of the first batch of all.
    is_part : bool
        Whether other workers have batches before these.
    """

    def __init__(
        self, options: ColumnOptions, header: ColumnHeader, *, is_part: bool = False
    ) -> None:
        self._options = options
        self._kinds = ColumnKinds(header, options, is_part=is_part)
        self._levels: dict[int, core.LevelSet] = {}  # by category; numbers as their bytes
        self._part = ColumnPart([], {}, {}, set(), {}, {})  # without levels

    def add(self, raw: RawTable, where: str) -> core.Columns:
        """Columns of the next batch, categories as provisional level codes.

        `where` is the name of the batch in messages.
        """
        kinds = self._kinds
        order = kinds.order_of(raw)
        categories = frozenset(i if order is None else order.index(i) for i in raw.categories)
        if order is not None:
            raw = raw.select(order)
        if raw.columns.has_sparse:
            raise InputTypeError(
                "X has batches of sparse matrices, but batches must be dense. Fit on the whole "
                "sparse matrix, or yield arrays: X.toarray()."
            )
        for i in kinds.date_formats.keys() & raw.texts.keys():
            if not raw.is_all_missing(i):
                level_columns.read_dates(raw, i, kinds.date_formats[i])
        raw.set_missing(self._options.missing)
        self._part.inexact.update(raw.columns.inexact_columns(), raw.inexact)
        self._add_orders(raw.orders)
        new_kinds = {}
        for i in range(raw.columns.n_columns):
            kind = raw.units.get(i) or ("string" if i in raw.texts else "number")
            if kinds.with_values(i) != kind:
                new_kinds[i] = kind, not raw.is_all_missing(i)
        self._see(raw, BatchKinds(where, categories, new_kinds))
        if self._options.calendar_parts == "auto":
            dates = [i for i, unit in raw.units.items() if unit == "datetime"]
            self._add_dates({i: CalendarStats.of(raw.columns.read(i)) for i in dates})
        for i in range(raw.columns.n_columns):
            if kinds.is_category(i):
                raw.columns.put(i, self._level_codes(raw, i))
        return raw.columns

    @property
    def level_bytes(self) -> int:
        """Bytes of the levels of all categories."""
        return sum(int(known.n_bytes) for known in self._levels.values())

    @property
    def n_encoded(self) -> int:
        """Number of the categories of too many levels for sets."""
        return sum(len(known) > MAX_SET_LEVELS for known in self._levels.values())

    def part(self) -> ColumnPart:
        """Columns of all batches so far, for other workers."""
        return self._part._replace(levels={i: known.strings() for i, known in self._levels.items()})

    def joined(self, parts: Sequence[ColumnPart]) -> MergedColumns:
        """Schema of the batches of all workers, of which this one is one.

        `codes` are of the provisional codes of this worker.
        """
        whole = ColumnMerge(self._options, self._kinds.header)
        for part in parts:
            whole._join(part)
        merged = whole.finish()
        codes = {
            i: merged.codes[i][whole._levels[i].add(*levels.strings())]
            for i, levels in self._levels.items()
            if i in merged.codes
        }
        return merged._replace(codes=codes)

    def finish(self) -> MergedColumns:
        """Schema of all batches."""
        kinds = self._kinds
        names, n_columns, _ = kinds.header
        notes = ColumnNotes(names, kinds.named)
        notes.inexact.extend(sorted(self._part.inexact))
        formats = kinds.date_formats.copy()
        units = {i: kinds[i] for i in range(n_columns) if kinds[i] in UNITS}
        levels: dict[int, Levels] = {}
        codes = {}
        for i in sorted(self._levels):
            if not kinds.is_category(i):  # it had no values until numbers came
                continue
            learned, codes[i] = self._final_levels(i, notes)
            if isinstance(learned, Levels):
                levels[i] = learned
            else:
                formats[i], units[i] = learned, "datetime"
                self._part.dates[i] = CalendarStats.of(codes[i])
        notes.check_date_format(self._options.any_date_format, formats)
        schema = self._options.schema(
            names, levels, units, formats, n_columns, self._part.dates.get
        )
        return MergedColumns(schema, notes, codes)

    def _see(self, raw: RawTable, batch: BatchKinds) -> None:
        """Add the kinds of a batch; a column without values takes the kind of the others."""
        kinds = self._kinds
        is_new = any(has_values or not kinds[i] for i, (_, has_values) in batch.new_kinds.items())
        if is_new or batch.categories != kinds.categories:
            self._part.kinds.append(batch)
        kinds.see(batch)
        for i, (_, has_values) in batch.new_kinds.items():
            if not has_values and kinds.with_values(i) is not None:
                raw.columns.put(i, missing_columns(int(raw.columns.n_rows)))
                raw.texts.pop(i, None)

    def _join(self, part: ColumnPart) -> None:
        """Add the columns of the next worker."""
        for batch in part.kinds:
            with error_prefix(batch.where):
                self._kinds.see(batch)
        for i, strings in part.levels.items():
            known = self._levels.setdefault(i, core.LevelSet())
            known.add(*strings)
            _check_level_count(len(known), self._kinds.label(i))
        for i, n_present in part.n_present.items():
            self._part.n_present[i] = self._part.n_present.get(i, 0) + n_present
        self._part.inexact.update(part.inexact)
        self._add_orders(part.orders)
        self._add_dates(part.dates)

    def _add_dates(self, dates: dict[int, CalendarStats]) -> None:
        for i, stats in dates.items():
            if i in self._part.dates:
                self._part.dates[i].add(stats)
            else:
                self._part.dates[i] = stats

    def _add_orders(self, orders: dict[int, list[Order]]) -> None:
        for i, more in orders.items():
            known = self._part.orders.setdefault(i, [])
            known += [order for order in more if order not in known]

    def _level_codes(self, raw: RawTable, i: int) -> core.Columns:
        """A category as provisional level codes, -1 for missing."""
        known = self._levels.setdefault(i, core.LevelSet())
        if i in raw.texts:
            codes: NDArray[Any] = known.add_text(raw.texts[i])
            self._part.n_present[i] = self._part.n_present.get(i, 0) + int(raw.texts[i].n_present)
        else:
            levels, codes = level_columns.number_levels(raw, i, raw.columns.read(i))
            offsets = levels.values.itemsize * np.arange(len(levels) + 1)
            codes = np.append(known.add(levels.values.view(np.uint8), offsets), -1)[codes]
        _check_level_count(len(known), self._kinds.label(i))
        return level_columns.level_column(codes)

    def _final_levels(self, i: int, notes: ColumnNotes) -> tuple[Levels | str, Floats]:
        """Levels of a category in order, and the final codes of provisional ones.

        Of dates in strings they are the format, and seconds.
        """
        kinds, known = self._kinds, self._levels[i]
        is_text = kinds[i] == "string"
        if is_text:
            values, offsets, places = known.levels()
            levels = Levels("string", values, offsets)
        else:
            levels, places = Levels.of_numbers(known.strings()[0].view(np.float64))
        if i in self._part.orders and i not in kinds.named:
            known_values = levels.texts() if is_text else levels.values.tolist()
            ordered = level_columns.ordered_levels(
                self._part.orders[i], kinds.label(i), known_values
            )
            assert ordered.ranks is not None
            all_values = ordered.texts() if is_text else ordered.values.tolist()
            rank_of = dict(zip(all_values, ordered.ranks.tolist(), strict=True))
            ranks = [rank_of[value] for value in known_values]
            return ordered, np.array(ranks, np.float64)[places]
        if not is_text or kinds.is_named(i):
            return levels, places.astype(np.float64)
        n_present, date_format = self._part.n_present.get(i, 0), self._options.any_date_format
        learned = notes.learn(i, levels, n_present, date_format)
        if isinstance(learned, DateColumn):
            return learned.format, learned.seconds[places]
        is_ignored = learned is not levels
        return learned, np.full(len(known), np.nan) if is_ignored else places.astype(np.float64)


def _check_level_count(n_levels: int, label: str) -> None:
    """Raise ValueError where a category has too many levels."""
    if n_levels > MOST_LEVELS:
        raise ValueError(
            f"The column {label} of X has more than {MOST_LEVELS:,} distinct values, too many for "
            "the levels of a category that is read in batches. Drop the column: keys and free "
            "text hold little to learn from. Of dates, name the format, as in date_format={...}."
        )
