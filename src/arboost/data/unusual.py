"""Warnings of data that can be fitted, but hardly as the user expects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.features.dates import AMBIGUOUS, ReadDates, recognised
from arboost.data.levels import MAX_SET_LEVELS, Levels
from arboost.data.messages import listing
from arboost.errors import warn_caller, warn_first

if TYPE_CHECKING:
    from arboost.data.table import Table

__all__ = [
    "ColumnNotes",
    "check_pairing",
    "text_kind",
    "warn_constant_columns",
    "warn_target_scale",
    "warn_weight_scale",
]

_FLOAT32 = np.finfo(np.float32)
_TABLE_DIMENSIONS = 2
_FEWEST_ROWS = 2  # fewer are always constant

# Shares of distinct values from which strings look like keys, and sentences like free text.
_KEY_SHARE = 0.9
_TEXT_SHARE = 0.5
_FEWEST_SPACES = 4  # per string of free text
_READ_LEVELS = 1000  # levels read to see whether all are numbers


def text_kind(levels: Levels, n_present: int) -> str:
    """Return the kind of a column of strings that no one has named a category.

    Parameters
    ----------
    levels : Levels
        Distinct strings.
    n_present : int
        Number of values that are not missing.

    Returns
    -------
    str
        "unique": more values than `MAX_SET_LEVELS`, each once; "text": sentences, mostly distinct;
        "key": nearly all distinct; "numbers": all strings are numbers; "" for any other category.
    """
    n_levels = len(levels)
    if n_levels > MAX_SET_LEVELS:
        if n_levels == n_present:
            return "unique"
        n_spaces = np.count_nonzero(levels.values == ord(" "))
        if n_levels > _TEXT_SHARE * n_present and n_spaces >= _FEWEST_SPACES * n_levels:
            return "text"
        if n_levels > _KEY_SHARE * n_present:
            return "key"
    shown = range(min(n_levels, _READ_LEVELS))
    return "numbers" if shown and all(_is_number(str(levels.label(i))) for i in shown) else ""


@dataclass(frozen=True)
class ColumnNotes:
    """Columns of a table to fit on whose use may surprise, for one warning.

    Attributes
    ----------
    names : tuple of str, or None
    categories : collection of int
        Columns in `categorical_features`.
    texts : dict of str to dict of int to str
        For each kind of `text_kind` its columns, each with its counts or an example.
    n_present : dict of int to int
        Number of values of each of these columns that are not missing.
    inexact : list of int
        Columns with values beyond the precision of float64.
    ambiguous_dates : dict of int to str
        Columns of strings that are dates, day first or month first, each with an example.
    unused_format : list of str
        The format of dates, if no column has it.
    """

    names: tuple[str, ...] | None
    categories: Collection[int] = ()
    texts: dict[str, dict[int, str]] = field(default_factory=dict)
    n_present: dict[int, int] = field(default_factory=dict)
    inexact: list[int] = field(default_factory=list)
    ambiguous_dates: dict[int, str] = field(default_factory=dict)
    unused_format: list[str] = field(default_factory=list)

    def dates(self, column: int, levels: Levels, date_format: str | None) -> ReadDates | None:
        """Return the dates of a column of strings, None for others; note those in doubt."""
        found = recognised(levels, date_format)
        if found == AMBIGUOUS:
            self.ambiguous_dates[column] = next(
                label for code in range(len(levels)) if (label := str(levels.label(code))).strip()
            )
        return found if isinstance(found, ReadDates) else None

    def check_date_format(self, date_format: str | None, formats: Mapping[int, str]) -> None:
        """Note a format that no column has."""
        if date_format not in (None, "auto", *formats.values()):
            self.unused_format.append(str(date_format))

    def add(self, column: int, levels: Levels, n_present: int) -> str:
        """Note a column of strings that `categorical_features` does not name; return its kind."""
        kind = text_kind(levels, n_present)
        shown = f"{n_present:,} strings, {len(levels):,} distinct"
        if kind == "numbers":
            shown = f"such as {str(levels.label(0))!r}"
        if kind:
            self.texts.setdefault(kind, {})[column] = shown
            self.n_present[column] = n_present
        return kind

    def warn(self) -> None:
        """Warn once of all noted columns."""
        lines = self.lines()
        if lines:
            warn_first("\n".join(lines))

    def lines(self) -> list[str]:
        """Return the text of the warning: a line for each kind, and the lists to paste."""
        lines = []
        for kind, text in _NOTES.items():
            columns = self.texts.get(kind, {})
            if columns:
                shown = (f"{self._label(i)!r} ({counts})" for i, counts in columns.items())
                lines.append(text.format(listing(shown)))
        if self.texts:
            lines.append(self._advice())
        if self.ambiguous_dates:
            shown = (
                f"{self._label(i)!r} (such as {one!r})" for i, one in self.ambiguous_dates.items()
            )
            lines.append(_AMBIGUOUS_DATES.format(listing(shown)))
        if self.unused_format:
            lines.append(_UNUSED_FORMAT.format(*map(repr, self.unused_format)))
        if self.inexact:
            lines.append(_INEXACT.format(listing(repr(self._label(i)) for i in self.inexact)))
        return lines

    def _advice(self) -> str:
        """Return the lists to paste."""
        noted = {i for columns in self.texts.values() for i in columns}
        useless = sorted(noted - self.texts.get("numbers", {}).keys())
        drop = f"Drop {[self._label(i) for i in useless]}, or have" if useless else "Have"
        kept = [self._label(i) for i in sorted({*self.categories, *noted})]
        return f"{drop} categories without this warning: categorical_features={kept}."

    def _label(self, column: int) -> str | int:
        return column if self.names is None else self.names[column]


_NOTES = {
    "unique": "Keys or free text in X: {}. No string occurs twice, so these columns are ignored.",
    "key": "Keys in X: {}. Few strings occur twice; they become categories by target encoding.",
    "text": "Free text in X: {}. Whole texts become categories by target encoding; extract numbers "
    "from them to use their words.",
    "numbers": "Numbers as strings in X: {}. Strings are categories, whose levels have no order; "
    "convert them to numbers if their order matters.",
}
_AMBIGUOUS_DATES = (
    "Dates in X that may be day first or month first: {}. They remain strings: pass "
    'date_format="dayfirst" or date_format="monthfirst", or date_format=None for categories.'
)
_UNUSED_FORMAT = (
    "date_format={} is the format of no column of strings of X: no strings are read as dates."
)
_INEXACT = (
    "X has integers of 2**53 or beyond, or times finer than some 0.2 microseconds, in the columns "
    "{}. Values are compared as float64, which cannot tell such neighbours apart: subtract an "
    "offset, or split the digits over two columns."
)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def warn_constant_columns(
    table: Table, rows: NDArray[np.uint32] | None, edges: Sequence[NDArray[np.float64]]
) -> None:
    """Warn where no column can be split: all are constant, or have no values.

    Parameters
    ----------
    table : Table
    rows : uint32 array, or None for all
        Training rows.
    edges : sequence of float64 arrays
        Bin edges of each column.
    """
    n_rows = table.n_rows if rows is None else len(rows)
    if n_rows < _FEWEST_ROWS or any(map(len, edges)):
        return
    kinds = set()
    for feature in range(table.schema.n_features):
        column = table.columns.read(feature)
        missing = np.isnan(column if rows is None else column[rows])
        if missing.any() and not missing.all():
            return  # a split can separate the missing values
        kinds.add(bool(missing.all()))
    if not kinds:
        return
    found = "all values of X are missing" if kinds == {True} else "all columns of X are constant"
    warn_caller(
        f"{found} in the {n_rows} training rows, so there is nothing to split on, and the model "
        "predicts a constant. Check how X was read, and the parameter `missing`."
    )


def check_pairing(X: Any, y: Any, **values: Any) -> None:
    """Check that y and other values of the rows are in the order of X, where pandas tells it.

    Warn where y is a column of X too, or has the index of X in another order: it may have been
    shuffled on purpose. Raise ValueError where other values, by their names, are in another order.
    """
    if not hasattr(X, "iloc") or X.ndim != _TABLE_DIMENSIONS:
        return
    if hasattr(y, "iloc") and y.ndim == 1:
        if y.name is not None and list(X.columns).count(y.name) == 1 and y.equals(X[y.name]):
            by_name = f", or pass y={y.name!r}, which takes it out" * isinstance(y.name, str)
            warn_caller(
                f"X has the column {y.name!r}, which equals y: the model learns to copy it. Drop "
                f"it from X{by_name}."
            )
        if _is_other_order(X, y):
            warn_caller(
                "X and y have the same index in different orders, but rows are matched by "
                "position. Pass y.loc[X.index], or arrays where the order is right."
            )
    for name, of_rows in values.items():
        if hasattr(of_rows, "iloc") and _is_other_order(X, of_rows):
            raise ValueError(
                f"X and {name} have the same index in different orders, but rows are matched by "
                f"position. Pass {name}.loc[X.index], or {name}.to_numpy() where the order is "
                "right."
            )


def _is_other_order(X: Any, values: Any) -> bool:
    """Whether values have the labels of the rows of X in another order."""
    given, rows = values.index, X.index
    if len(given) != len(rows) or given.equals(rows):
        return False
    return bool(rows.is_unique and given.is_unique and given.isin(rows).all())


def warn_target_scale(name: str, largest: float) -> None:
    """Warn where a target leaves the range of float32."""
    if largest > float(_FLOAT32.max):
        warn_caller(
            f"{name} reaches {largest:g} in size, beyond the range of float32: squared errors may "
            "overflow, and predictions are infinite where they become float32, as in ONNX. Bring "
            f"{name} to a smaller scale."
        )


def warn_weight_scale(
    weight: NDArray[np.float64] | None, min_child_weight: float, *, grew: bool
) -> None:
    """Warn where weights are too small for a booster, to which their scale matters.

    Parameters
    ----------
    weight : float64 array of shape (n_rows,), or None
    min_child_weight : float
    grew : bool
        Whether any tree has a split.
    """
    if weight is None:
        return
    total, largest = float(weight.sum()), float(weight.max())
    if not grew and total < 2 * min_child_weight:
        warn_caller(
            f"no tree has a split: sample_weight adds up to {total:g}, and each leaf needs "
            f"min_child_weight={min_child_weight:g}. Scale the weights to a mean of 1, or lower "
            "min_child_weight."
        )
    elif largest < float(_FLOAT32.tiny):
        warn_caller(
            f"sample_weight is at most {largest:g}, so small that reg_lambda outweighs all rows, "
            "and that sums lose digits. Scale the weights to a mean of 1."
        )
