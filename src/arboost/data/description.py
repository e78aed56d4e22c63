"""Description of a table before a fit: type and use of each column, for terminals and notebooks."""

from __future__ import annotations

import html
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.feature_names import names_of
from arboost.data.level_columns import ColumnNotes
from arboost.data.levels import MAX_SET_LEVELS, Floats, Levels
from arboost.data.raw_table import N_DIMENSIONS, is_column, is_missing
from arboost.data.table import ColumnOptions, Table, learn_table
from arboost.params.boosting import PARAMS
from arboost.text import (
    counted,
    cut_to_width,
    display_width,
    label_text,
    number_text,
    padded,
    printable,
    shown_name,
    time_text,
)

_HEADS = ("column", "type", "distinct", "missing", "use")
_NUMERIC = (2, 3)  # columns of counts, aligned right
_SHORTEST_NAME, _SHORTEST_USE = 12, 12
_MOST_LINES = 200
_MOST_LEVELS = 8
_DIGITS = 4


@dataclass(frozen=True)
class ColumnDescription:
    """Type and use of one column.

    Attributes
    ----------
    name : str
        x0, x1 and so on for a table without names.
    type : {"number", "category", "datetime", "duration", "time", "mixed"}
        "mixed" is a column that a fit refuses: the notes of the table say why.
    n_distinct, n_missing : int
        Number of distinct values, not counting missing ones, and of missing values.
    use : str
        Range of the numbers; "sets of levels" or "target encoding", and the first levels; or
        "constant", "empty" (without values) or "ignored" (strings that never occur twice).
    """

    name: str
    type: str
    n_distinct: int
    n_missing: int
    use: str


@dataclass(frozen=True, repr=False)
class TableDescription:
    """Description of a table, as text (``print``) and as HTML (notebooks).

    Attributes
    ----------
    n_rows : int
    columns : tuple of ColumnDescription
    notes : tuple of str
        Lines of the warning that a fit to this table would give.
    """

    n_rows: int
    columns: tuple[ColumnDescription, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.text(shutil.get_terminal_size().columns)

    def text(self, width: int) -> str:
        """Description in lines of at most `width` columns of a terminal."""
        rows = [_HEADS, *self._rows()]
        widths = [max(display_width(row[i]) for row in rows) for i in range(len(_HEADS))]
        # Counts are never cut; names give way before uses are lost.
        rest = width - sum(widths[1:-1]) - 2 * len(_HEADS)
        widths[0] = min(widths[0], max(_SHORTEST_NAME, 2 * rest // 5))
        widths[-1] = min(widths[-1], max(_SHORTEST_USE, rest - widths[0]))
        lines = [self._title, *(_line(row, widths) for row in rows)]
        if len(self.columns) > _MOST_LINES:
            lines.append(f"  and {len(self.columns) - _MOST_LINES:,} more columns")
        if self.notes:
            lines.append("")
            for note in self.notes:
                lines += textwrap.wrap(printable(note), width, break_on_hyphens=False)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """An HTML fragment without script and style sheet, for light and dark pages."""
        cell = "padding:0 1em 0 0;border:0;background:none;text-align:"
        lines = []
        for number, row in enumerate([_HEADS, *self._rows()]):
            fade = "" if number else ";opacity:.7"
            cells = (
                f'<td style="{cell}{"right" if i in _NUMERIC else "left"}{fade}">'
                f"{html.escape(text)}</td>"
                for i, text in enumerate(row)
            )
            lines.append(f'<tr style="background:none">{"".join(cells)}</tr>')
        more = len(self.columns) - _MOST_LINES
        notes = ([f"and {more:,} more columns"] if more > 0 else []) + list(self.notes)
        below = "".join(f"<div>{html.escape(printable(note))}</div>" for note in notes)
        style = "border-collapse:collapse;border:0;margin:0 0 .6em;font:inherit;color:inherit"
        return (
            '<div style="font:13px/1.5 system-ui,sans-serif;color:inherit">'
            f'<div style="font-weight:600;margin-bottom:.3em">{html.escape(self._title)}</div>'
            f'<table style="{style}">{"".join(lines)}</table>{below}</div>'
        )

    @property
    def _title(self) -> str:
        return f"{counted(self.n_rows, 'row')}, {counted(len(self.columns), 'column')}"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for column in self.columns[:_MOST_LINES]:
            missing = f"{column.n_missing / self.n_rows:.1%}" if column.n_missing else ""
            if missing == "0.0%":
                missing = "<0.1%"
            count, use = f"{column.n_distinct:,}", printable(column.use)
            yield shown_name(column.name), column.type, count, missing, use


def describe(
    X: object,
    *,
    categorical_features: str | Sequence[Any] = "from_dtype",
    missing: float = float("nan"),
    date_format: str | Mapping[Any, str] | None = "auto",
    calendar_parts: str | Sequence[str] | None = "auto",
) -> TableDescription:
    """Description of a table before a fit: type, levels, missing values and use of each column.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        Any table that ``fit`` takes.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Additional categories, as in the estimators.
    missing : float, default=float("nan")
        Number that means missing, in addition to NaN.
    date_format : str, dict, or None, default="auto"
        Format of dates in strings, as in the estimators.
    calendar_parts : "auto", list of str, or None, default="auto"
        Calendar parts of dates that are features next to them, as in the estimators.

    Examples
    --------
    >>> import arboost
    >>> arboost.describe({"age": [31, 45, None, 52], "city": ["Rome", "Oslo", "Rome", None]})
    4 rows, 2 columns
      column  type      distinct  missing  use
      age     number           3    25.0%  31 to 52
      city    category         2    25.0%  sets of levels: Oslo, Rome
    """
    options = ColumnOptions(
        PARAMS["categorical_features"].check(categorical_features),
        PARAMS["missing"].check(missing),
        date_format=PARAMS["date_format"].check(date_format),
        calendar_parts=PARAMS["calendar_parts"].check(calendar_parts),
    )
    try:
        table, notes = learn_table(X, options)
    except TypeError:
        description = _describe_by_column(X, options)
        if description is None:
            raise
        return description
    columns = (_describe_column(table, notes, i) for i in range(table.schema.n_columns))
    return TableDescription(table.n_rows, tuple(columns), tuple(notes.lines()))


def _describe_by_column(X: Any, options: ColumnOptions) -> TableDescription | None:
    """Description of a table that a fit refuses, with the reason for each column.

    None: the columns are not the reason.
    """
    names = names_of(X)
    parts = _single_columns(X, names)
    if not parts:
        return None
    texts = None
    if names is not None and all(isinstance(name, str) for name in names):
        texts = tuple(names)
    named = options.categories(texts, len(parts))
    formats = options.date_formats(texts, len(parts))
    columns, notes, is_refused = [], [], False
    for i, (part, values) in enumerate(parts):
        name = f"x{i}" if names is None else str(names[i])
        column_options = replace(
            options,
            categorical_features=[0] if i in named else "from_dtype",
            date_format=[[0, formats[i]]] if i in formats else options.any_date_format,
        )
        try:
            table, column_notes = learn_table(part, column_options)
            columns.append(replace(_describe_column(table, column_notes, 0), name=name))
            notes += column_notes.lines()
        except TypeError as error:
            is_refused = True
            columns.append(_refused(name, values))
            notes.append(str(error))
    return TableDescription(len(parts[0][1]), tuple(columns), tuple(notes)) if is_refused else None


def _refused(name: str, values: list[Any]) -> ColumnDescription:
    present = [value for value in values if not is_missing(value)]
    kinds = dict.fromkeys(type(value).__name__ for value in present)
    distinct = {(type(value).__name__, str(value)) for value in present}
    use = f"refused by fit: {', '.join(kinds)}"
    return ColumnDescription(name, "mixed", len(distinct), len(values) - len(present), use)


def _single_columns(X: Any, names: list[Any] | None) -> list[tuple[Any, list[Any]]]:
    """Each column as a table of one, and its values; empty for tables without columns."""
    if names is None or len(set(names)) < len(names):
        if not isinstance(X, np.ndarray) or X.ndim != N_DIMENSIONS:
            return []
        return [(X[:, [i]], X[:, i].tolist()) for i in range(X.shape[1])]
    if isinstance(X, Mapping):
        columns = {name: X[name] if is_column(X[name]) else [X[name]] for name in names}
        return [({name: values}, list(values)) for name, values in columns.items()]
    if isinstance(X, list | tuple):
        rows = [[row.get(name) for row in X] for name in names]
        return [({name: values}, values) for name, values in zip(names, rows, strict=True)]
    if hasattr(X, "iloc"):
        return [(X.iloc[:, [i]], X.iloc[:, i].tolist()) for i in range(len(names))]
    parts = [(X.select([name]), X[name]) for name in names]
    return [
        (part, values.to_pylist() if hasattr(values, "to_pylist") else values.to_list())
        for part, values in parts
    ]


_FORMATS = {"iso": "year first", "dayfirst": "day first", "monthfirst": "month first"}


def _describe_column(table: Table, notes: ColumnNotes, i: int) -> ColumnDescription:
    schema, n_rows = table.schema, table.n_rows
    name, levels = schema.shown_names[i], schema.levels_of(i)
    if i in notes.texts.get("unique", {}):
        count = notes.n_present[i]
        use = "ignored: all distinct"
        return ColumnDescription(name, "category", count, n_rows - count, use)
    values, n_missing = _distinct(table, i)
    unit = schema.unit_of(i)
    if levels is None:
        use = _range_text(values, n_rows - n_missing, unit)
        strings = schema.format_of(i)
        use = f"{_FORMATS.get(strings, strings)}: {use}" if strings else use
        parts = ", ".join(schema.parts_of(i).values())
        use += f", with {parts}" if parts else ""
        return ColumnDescription(name, unit or "number", len(values), n_missing, use)
    kind = next((kind for kind, columns in notes.texts.items() if i in columns), "")
    use = _levels_text(levels, kind)
    return ColumnDescription(name, "category", len(levels), n_missing, use)


def _distinct(table: Table, i: int) -> tuple[Floats, int]:
    """Distinct values of a column, ascending, and its number of missing values."""
    stored = table.columns.stored(i)
    if stored is None:
        values = table.columns.read(i)
        n_missing = int(np.count_nonzero(np.isnan(values)))
    else:
        rows, values, fill = stored
        n_filled = table.n_rows - len(rows)
        n_missing = int(np.count_nonzero(np.isnan(values)))
        if n_filled:
            n_missing += n_filled * bool(np.isnan(fill))
            values = np.append(values, fill)
    return np.unique(values[~np.isnan(values)]), n_missing


def _range_text(values: Floats, n_present: int, unit: str) -> str:
    """Use of a column of numbers or times with these distinct values."""
    if len(values) == 0:
        return "empty"
    low, high = (
        time_text(end, unit) if unit and np.isfinite(end) else number_text(end, _DIGITS)
        for end in values[[0, -1]].tolist()
    )
    if len(values) == 1:
        return f"constant: {low}"
    is_key = n_present == len(values) > MAX_SET_LEVELS and not unit
    # Distinct integers may be keys, or counts, or years: a fit uses them, without a warning.
    like = "key-like: " if is_key and (values == np.floor(values)).all() else ""
    return f"{like}{low} to {high}"


def _levels_text(levels: Levels, kind: str) -> str:
    """Use of a category; `kind` is that of `text_kind`."""
    if len(levels) == 0:
        return "empty"
    if len(levels) == 1:
        return f"constant: {label_text(levels.label(0), _DIGITS)}"
    codes: NDArray[np.intp] = np.arange(len(levels))
    if levels.ranks is not None:
        codes = levels.by_rank
    doubt = {"key": ", key-like", "text": ", free text", "numbers": ", numbers as strings"}
    how = "sets of levels" if len(levels) <= MAX_SET_LEVELS else "target encoding"
    how = how if levels.ranks is None else "ordered"
    shown = [label_text(levels.label(code), _DIGITS) for code in codes[:_MOST_LEVELS].tolist()]
    more = ", ..." if len(levels) > _MOST_LEVELS else ""
    return f"{how}{doubt.get(kind, '')}: {', '.join(shown)}{more}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        padded(cut_to_width(text, width), width, to_right=i in _NUMERIC)
        for i, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return ("  " + "  ".join(cells)).rstrip()
