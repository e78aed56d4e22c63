"""Columns of batches -> one schema: names, kinds, units and levels over all batches.

Levels are not known before the last batch. Until then, levels have provisional codes, in the order
of their first appearance; `ColumnMerge.finish` tells the final ones. Of workers, each merges its
own batches, and all of them join the parts of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.features.dates import read_dates
from arboost.data.features.level_columns import level_column, ordered_levels
from arboost.data.levels import Levels, Order
from arboost.data.raw_columns import RawTable, missing_column
from arboost.data.schema import UNITS, Schema, by_feature
from arboost.data.stream.merge.kinds import BatchKinds, ColumnHeader, ColumnKinds
from arboost.data.stream.rows import naming
from arboost.data.table import ColumnOptions, read_columns
from arboost.data.unusual import ColumnNotes

__all__ = ["ColumnMerge", "ColumnPart", "MergedColumns"]

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
    codes: dict[int, NDArray[np.float64]]


class ColumnPart(NamedTuple):
    """Columns of the batches of one worker.

    Attributes
    ----------
    kinds : list of BatchKinds
        Of the batches with a kind that was new to the worker.
    levels : dict of int to list
        Levels of each category, by provisional code.
    n_present : dict of int to int
        Number of strings of each category.
    inexact : set of int
        Columns with values beyond the precision of float64.
    orders : dict of int to list of Order
        Orders of the levels of ordered categories.
    """

    kinds: list[BatchKinds]
    levels: dict[int, list[object]]
    n_present: dict[int, int]
    inexact: set[int]
    orders: dict[int, list[Order]]


class ColumnMerge:
    """Names, kinds and levels of the columns of all batches so far.

    Parameters
    ----------
    options : ColumnOptions
    header : ColumnHeader, optional
        Columns of the first batch of all, where other workers may have it.
    """

    def __init__(self, options: ColumnOptions, header: ColumnHeader | None = None) -> None:
        self._options = options
        self._kinds = None if header is None else ColumnKinds(header, options, is_part=True)
        self._seen: list[BatchKinds] = []
        self._codes: dict[int, dict[object, int]] = {}  # of levels, by category
        self._n_present: dict[int, int] = {}
        self._inexact: set[int] = set()
        self._orders: dict[int, list[Order]] = {}

    def add(self, X: object, where: str = "") -> core.Columns:
        """Return the columns of the next batch, categories as provisional level codes."""
        raw = read_columns(X)
        if self._kinds is None:
            self._kinds = ColumnKinds(ColumnHeader.of(raw), self._options)
        kinds = self._kinds
        order = kinds.order_of(raw)
        categories = frozenset(i if order is None else order.index(i) for i in raw.categories)
        if order is not None:
            raw = raw.select(order)
        if raw.columns.has_sparse:
            raise TypeError(
                "X has batches of sparse matrices, but batches must be dense. Fit on the whole "
                "sparse matrix, or yield arrays: X.toarray()."
            )
        for i in kinds.date_formats.keys() & raw.texts.keys():
            if not raw.is_all_missing(i):
                read_dates(raw, i, kinds.date_formats[i])
        raw.set_missing(self._options.missing)
        self._inexact.update(raw.columns.inexact_columns(), raw.inexact)
        self._add_orders(raw.orders)
        self._see(kinds, raw, BatchKinds(where, categories, _new_kinds(raw, kinds)))
        for i in range(raw.columns.n_columns):
            if kinds.is_category(i):
                raw.columns.put(i, self._level_codes(kinds, raw, i))
        return raw.columns

    def part(self) -> ColumnPart:
        """Return the columns of all batches so far, for other workers."""
        levels = {i: list(known) for i, known in self._codes.items()}
        return ColumnPart(self._seen, levels, self._n_present, self._inexact, self._orders)

    def joined(self, parts: Sequence[ColumnPart]) -> MergedColumns:
        """Return the schema of the batches of all workers, of which this one is one.

        `codes` are of the provisional codes of this worker.
        """
        assert self._kinds is not None
        whole = ColumnMerge(self._options)
        whole._kinds = ColumnKinds(self._kinds.header, self._options)
        for part in parts:
            whole._join(whole._kinds, part)
        merged = whole.finish()
        codes = {
            i: merged.codes[i][[whole._codes[i][value] for value in own]]
            for i, own in self._codes.items()
            if i in merged.codes
        }
        return merged._replace(codes=codes)

    def finish(self) -> MergedColumns:
        """Return the schema of all batches."""
        kinds = self._kinds
        assert kinds is not None
        names, n_columns, _ = kinds.header
        notes = ColumnNotes(names, kinds.named)
        notes.inexact.extend(sorted(self._inexact))
        formats = kinds.date_formats.copy()
        units = {i: kinds[i] for i in range(n_columns) if kinds[i] in UNITS}
        levels: dict[int, Levels] = {}
        codes = {}
        for i in sorted(self._codes):
            if not kinds.is_category(i):  # it had no values until numbers came
                continue
            learned, codes[i] = self._final_levels(kinds, i, notes)
            if isinstance(learned, Levels):
                levels[i] = learned
            else:
                formats[i], units[i] = learned, "datetime"
        notes.check_date_format(self._options.any_date_format, formats)
        schema = Schema(
            names=names,
            n_features=n_columns,
            levels=by_feature(levels, n_columns, None),
            missing=self._options.missing,
            units=by_feature(units, n_columns, ""),
            formats=by_feature({i: one for i, one in formats.items() if i in units}, n_columns, ""),
        )
        return MergedColumns(schema, notes, codes)

    def _see(self, kinds: ColumnKinds, raw: RawTable, batch: BatchKinds) -> None:
        """Add the kinds of a batch; a column without values takes the kind of the others."""
        is_new = any(has_values or not kinds[i] for i, (_, has_values) in batch.given.items())
        if is_new or batch.categories != kinds.categories:
            self._seen.append(batch)
        kinds.see(batch)
        for i, (_, has_values) in batch.given.items():
            if not has_values and kinds.with_values(i) is not None:
                raw.columns.put(i, missing_column(int(raw.columns.n_rows)))
                raw.texts.pop(i, None)

    def _join(self, kinds: ColumnKinds, part: ColumnPart) -> None:
        """Add the columns of the next worker."""
        for batch in part.kinds:
            with naming(batch.where):
                kinds.see(batch)
        for i, values in part.levels.items():
            known = self._codes.setdefault(i, {})
            for value in values:
                known.setdefault(value, len(known))
            _check_level_count(len(known), kinds.label(i))
        for i, n_present in part.n_present.items():
            self._n_present[i] = self._n_present.get(i, 0) + n_present
        self._inexact |= part.inexact
        self._add_orders(part.orders)

    def _add_orders(self, orders: dict[int, list[Order]]) -> None:
        for i, more in orders.items():
            known = self._orders.setdefault(i, [])
            known += [order for order in more if order not in known]

    def _level_codes(self, kinds: ColumnKinds, raw: RawTable, i: int) -> core.Columns:
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
        _check_level_count(len(known), kinds.label(i))
        return level_column(int(raw.columns.n_rows), np.array([*found, -1], np.int32)[codes])

    def _final_levels(
        self, kinds: ColumnKinds, i: int, notes: ColumnNotes
    ) -> tuple[Levels | str, NDArray[np.float64]]:
        """Return the levels of a category in order, and the final codes of provisional ones.

        Of dates in strings they are the format, and seconds.
        """
        known = self._codes[i]
        is_text = kinds[i] == "string"
        if i in self._orders and i not in kinds.named:
            levels = ordered_levels(self._orders[i], kinds.label(i), known)
            assert levels.ranks is not None
            values = levels.texts() if is_text else levels.values.tolist()
            rank_of = dict(zip(values, levels.ranks.tolist(), strict=True))
            return levels, np.array([rank_of[value] for value in known], np.float64)
        levels = _text_levels(known) if is_text else _number_levels(known)
        is_noted = is_text and not kinds.is_named(i)
        codes = np.empty(len(known))
        dates = notes.dates(i, levels, self._options.any_date_format) if is_noted else None
        if dates is not None:
            codes[[known[value] for value in sorted(known)]] = dates.seconds  # type: ignore[type-var]
            return dates.format, codes
        codes[[known[value] for value in sorted(known)]] = np.arange(len(known))  # type: ignore[type-var]
        n_present = self._n_present.get(i, 0)
        if is_noted and notes.add(i, levels, n_present) == "unique":
            return Levels.none(), np.full(len(known), np.nan)
        return levels, codes


def _new_kinds(raw: RawTable, kinds: ColumnKinds) -> dict[int, tuple[str, bool]]:
    """Return the kinds of columns that are not known to have them, and whether there is a value."""
    given = {}
    for i in range(raw.columns.n_columns):
        kind = raw.units.get(i) or ("string" if i in raw.texts else "number")
        if kinds.with_values(i) != kind:
            given[i] = kind, not raw.is_all_missing(i)
    return given


def _check_level_count(n_levels: int, label: str) -> None:
    """Raise ValueError where a category has too many levels."""
    if n_levels > MOST_LEVELS:
        raise ValueError(
            f"The column {label} of X has more than {MOST_LEVELS:,} distinct values, too many for "
            "the levels of a category that is read in batches. Drop the column: keys and free "
            "text hold little to learn from. Of dates, name the format, as in date_format={{...}}."
        )


def _text_levels(known: Iterable[object]) -> Levels:
    return Levels.of_bytes(sorted(text for text in known if isinstance(text, bytes)))


def _number_levels(known: Iterable[object]) -> Levels:
    return Levels("number", np.sort(np.array([*known], np.float64)))
