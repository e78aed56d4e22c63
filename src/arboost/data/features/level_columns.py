"""Categories of a table <-> level codes, or the ranks and target encodings that stand for them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import messages
from arboost.data.levels import Levels, Order, encoded_values, merged_order
from arboost.data.raw_columns import RawTable, missing_column
from arboost.data.schema import Schema
from arboost.data.unusual import ColumnNotes
from arboost.errors import SchemaError, warn_first

__all__ = ["apply_levels", "learn_levels", "level_column", "number_levels", "ordered_levels"]

_FIRST_INEXACT = 2.0**53  # from here on float64 lacks integers


def level_column(n_rows: int, codes: NDArray[Any]) -> core.Columns:
    """Return level codes, -1 for missing, as one column of the core."""
    narrow = np.min_scalar_type(-int(codes.max(initial=0)) - 1)
    column = core.Columns(n_rows)
    column.add(codes.astype(narrow))
    column.set_missing(-1.0)
    return column


class LearnedColumn(NamedTuple):
    """Column of strings or levels to fit on: its levels, or the format of its dates."""

    levels: Levels | str
    column: core.Columns


def learn_levels(
    raw: RawTable, i: int, notes: ColumnNotes, date_format: str | None
) -> LearnedColumn:
    """Return the levels of a category to fit on and its column; dates in strings become times."""
    n_rows = int(raw.columns.n_rows)
    if i in raw.orders and i not in notes.categories:
        levels = ordered_levels(raw.orders[i], raw.label(i))
        return LearnedColumn(levels, _code_column(n_rows, levels, _codes(raw, i, levels)))
    if i in raw.texts:
        return _learn_text(raw, i, notes, date_format)
    stored = raw.columns.stored(i)
    if stored is None:
        levels, codes = number_levels(raw, i, raw.columns.read(i))
        return LearnedColumn(levels, level_column(n_rows, codes))
    rows, values, fill = stored
    numbers = values if len(rows) == n_rows else np.append(values, fill)
    levels, _ = number_levels(raw, i, numbers)
    return LearnedColumn(levels, _sparse_levels(n_rows, levels, rows, values, fill))


def number_levels(
    raw: RawTable, i: int, values: NDArray[np.float64]
) -> tuple[Levels, NDArray[np.int32]]:
    """Return the levels of a category of numbers, and the code of each value, -1 for missing.

    Raise ValueError for integers that float64 does not tell apart, which would become one level.
    Levels of categorical types count as integers; columns of floats are what they are.
    """
    levels, codes = Levels.of_numbers(values)
    largest = np.abs(levels.values[np.isfinite(levels.values)]).max(initial=0.0)
    if largest >= _FIRST_INEXACT and (
        i in raw.categories or i in raw.inexact or i in raw.columns.inexact_columns()
    ):
        raise ValueError(
            f"The category {raw.label(i)} of X holds integers of 2**53 or beyond, such as "
            f"{largest:.0f}, where float64 takes neighbours for one level. Convert the column to "
            "strings."
        )
    return levels, codes


def _learn_text(
    raw: RawTable, i: int, notes: ColumnNotes, date_format: str | None
) -> LearnedColumn:
    n_rows = int(raw.columns.n_rows)
    levels, codes = Levels.of_text(raw.texts[i])
    if not (i in raw.categories or i in notes.categories):
        dates = notes.dates(i, levels, date_format)
        if dates is not None:
            column = core.Columns(n_rows)
            column.add(encoded_values(dates.seconds, codes))
            return LearnedColumn(dates.format, column)
        if notes.add(i, levels, int(raw.texts[i].n_present)) == "unique":
            return LearnedColumn(Levels.none(), missing_column(n_rows))
    return LearnedColumn(levels, level_column(n_rows, codes))


def _sparse_levels(
    n_rows: int,
    levels: Levels,
    rows: NDArray[np.uint32],
    values: NDArray[np.float64],
    fill: float,
) -> core.Columns:
    codes = levels.codes_of_numbers(np.append(values, fill))
    column = core.Columns(n_rows)
    column.add_sparse(rows, codes[:-1].copy(), float(codes[-1]))
    column.set_missing(-1.0)
    return column


def apply_levels(raw: RawTable, i: int, levels: Levels, schema: Schema) -> core.Columns:
    """Return the column of a category with the levels of a fit."""
    n_rows = int(raw.columns.n_rows)
    stored = None if i in raw.texts else raw.columns.stored(i)
    if stored is not None and levels.numbers is None:
        return _sparse_levels(n_rows, levels, *stored)
    codes = _codes(raw, i, levels)
    if (codes < 0).all():
        n_present = _present_count(raw, i)
        if n_present > 1:  # a single value may well be new
            warn_first(messages.unseen_message(schema.label(i), n_present, len(levels)))
    return _code_column(n_rows, levels, codes)


def _codes(raw: RawTable, i: int, levels: Levels) -> NDArray[np.int32]:
    """Return the level code of each row, -1 for missing and unknown values."""
    if i in raw.texts:
        return levels.codes_of_text(raw.texts[i])
    return levels.codes_of_numbers(raw.columns.read(i))


def _present_count(raw: RawTable, i: int) -> int:
    if i in raw.texts:
        return int(raw.texts[i].n_present)
    return int(np.count_nonzero(~np.isnan(raw.columns.read(i))))


def _code_column(n_rows: int, levels: Levels, codes: NDArray[np.int32]) -> core.Columns:
    """Return a category as one column of the core: its level codes, or the numbers of these."""
    if levels.numbers is None:
        return level_column(n_rows, codes)
    column = core.Columns(n_rows)
    column.add(encoded_values(levels.numbers, codes))
    return column


def ordered_levels(
    orders: Collection[Order], label: str, values: Collection[object] = ()
) -> Levels:
    """Return the levels of an ordered category, whose dictionaries may be several.

    Raises SchemaError where they tell no single order of all levels, `values` among them.
    """
    order = merged_order(orders)
    if order is None or not set(values).issubset(order):
        more = [tuple(values)] if order is not None else []
        raise SchemaError(messages.order_message(label, [*orders, *more]))
    return Levels.ordered(order)
