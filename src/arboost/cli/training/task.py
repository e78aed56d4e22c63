"""The task of a target column, and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from arboost.cli.console import Console
from arboost.cli.errors import DataFailure

__all__ = ["Task", "find_task", "with_target"]

_FEW = 20  # distinct strings that are classes whatever the number of rows
_MANY_CLASSES = 1000
_SHOWN = 3


@dataclass(frozen=True)
class Task:
    """A task and the sentence that says why.

    Attributes
    ----------
    name : {"classification", "regression"}
    reason : str
    """

    name: str
    reason: str

    @property
    def is_classification(self) -> bool:
        """Whether classes are predicted."""
        return self.name == "classification"


def find_task(column: Any, name: str, given: str | None, asked_by: str = "--task") -> Task:
    """Return the task of a target.

    Strings, truth values and few distinct integers are classes; other numbers are amounts.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str
        Name of the column, for messages.
    given : {"classification", "regression"} or None
        Task that the user asks for.
    asked_by : str
        Option that asks for it, for messages.

    Raises
    ------
    DataFailure
        The column cannot be a target: missing values, one value, numbers with a text among them.
    """
    import pyarrow.compute as pc
    from pyarrow import types

    _check_missing(column, name)
    if types.is_nested(column.type):
        raise DataFailure(
            f"the target {name!r} is of type {column.type}. Convert it to numbers or strings."
        )
    values = pc.unique(column)
    n_distinct = len(values)
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if n_distinct == 1:
        raise DataFailure(
            f"the target {name!r} has one value only, {values[0].as_py()!r}: there is nothing to "
            "learn. Check the column and the rows."
        )
    is_text = types.is_string(kind) or types.is_large_string(kind)
    if is_text and given != "classification":
        _refuse_numbers(values, name)
    if given is not None:
        return _asked(given, kind, name, n_distinct, asked_by)
    distinct = f"{n_distinct:,} distinct"
    if is_text:
        _refuse_many(n_distinct, len(column), name)
        return Task("classification", f"{name} holds {distinct} strings")
    if types.is_boolean(kind):
        return Task("classification", f"{name} holds truth values")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return _of_numbers(column, name, distinct)
    raise DataFailure(
        f"the target {name!r} is of type {kind}, which is neither numbers nor classes. Convert it "
        "to numbers or strings."
    )


def _of_numbers(column: Any, name: str, distinct: str) -> Task:
    """Return the task of numbers, by the rule of `arboost.compare`."""
    import numpy as np

    from arboost.model_selection.task import kind_of

    values = np.asarray(column.cast("float64", safe=False) if column.type != "int64" else column)
    if not np.array_equal(values, np.floor(values)):
        return Task("regression", f"{name} holds decimal numbers")
    if kind_of(values) == "classifier":
        return Task(
            "classification", f"{name} holds {distinct} whole numbers; --task regression changes it"
        )
    return Task(
        "regression", f"{name} holds {distinct} whole numbers; --task classification changes it"
    )


def _asked(given: str, kind: Any, name: str, n_distinct: int, asked_by: str) -> Task:
    from pyarrow import types

    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if given == "regression" and not (is_number or types.is_boolean(kind)):
        raise DataFailure(
            f"{asked_by} is for regression, which needs numbers, but the target {name!r} holds "
            f"values of type {kind}. Use --task classification, or convert the column."
        )
    return Task(given, f"{asked_by} asks for it; {name} holds {n_distinct:,} distinct values")


def with_target(console: Console, table: Any, name: str) -> Any:
    """Return the rows of a table that have a target; the number of others is said aloud."""
    import pyarrow.compute as pc

    kept = table.filter(pc.invert(_missing(table.column(name))))
    n_dropped = table.num_rows - kept.num_rows
    if n_dropped:
        rows = "row" if n_dropped == 1 else "rows"
        console.say(f"{n_dropped:,} {rows} without {name} left out")
    return kept if kept.num_rows else table  # the check of the target has the message


def _missing(column: Any) -> Any:
    """Return which values are missing, empty strings included."""
    import pyarrow.compute as pc
    from pyarrow import types

    missing = pc.is_null(column, nan_is_null=True)
    if types.is_string(column.type) or types.is_large_string(column.type):
        missing = pc.or_(missing, pc.equal(pc.fill_null(column, ""), ""))
    return missing


def _check_missing(column: Any, name: str) -> None:
    """Raise DataFailure for missing values, with the first row."""
    import pyarrow.compute as pc
    from pyarrow import types

    missing = _missing(column)
    n_missing = pc.sum(missing).as_py() or 0
    if n_missing == len(column):
        raise DataFailure(f"the target {name!r} has no value in any row. Check --target.")
    if n_missing:
        row = pc.index(missing, True).as_py() + 1
        raise DataFailure(
            f"the target {name!r} is missing in {n_missing:,} of {len(column):,} rows, the first "
            f"of them row {row:,}. Use --drop-missing-target to leave these rows out, or fill them."
        )
    if types.is_floating(column.type):
        infinite = pc.is_inf(column)
        if pc.any(infinite).as_py():
            row = pc.index(infinite, True).as_py() + 1
            raise DataFailure(
                f"the target {name!r} is infinite in row {row:,}. Remove the row, or correct it."
            )


def _refuse_numbers(values: Any, name: str) -> None:
    """Raise DataFailure for numbers with a few texts among them, which are strings by mistake."""
    texts = values.to_pylist()
    others = [text for text in texts if not _is_number(text)]
    if others and len(others) <= len(texts) // 2 and len(texts) > _FEW:
        shown = ", ".join(repr(text) for text in others[:_SHOWN])
        raise DataFailure(
            f"the target {name!r} holds numbers, but also the text {shown}. Remove these rows or "
            "correct them, or use --task classification for classes."
        )


def _refuse_many(n_distinct: int, n_rows: int, name: str) -> None:
    if n_distinct > _MANY_CLASSES or (n_distinct > _FEW and n_distinct > n_rows // 2):
        raise DataFailure(
            f"the target {name!r} holds {n_distinct:,} distinct strings in {n_rows:,} rows, too "
            "many for classes. Check --target; use --task classification to train anyway."
        )


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True
