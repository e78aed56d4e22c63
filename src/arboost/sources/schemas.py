"""Schemas of several files -> the one schema of a source, or an error that names the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from arboost.errors import SchemaError

__all__ = ["as_schema", "common_schema", "near_names", "selected"]

_MOST_NAMES = 10


def common_schema(
    files: Iterable[tuple[str, Any]], columns: Sequence[str] | None, *, promotes: bool = False
) -> Any:
    """Return the columns that all files have, with their types.

    Names and their order are those of `columns`, or of the first file. Columns without a value
    (type null) take the type of other files. Strings and dictionaries of different layouts have
    one type: the values are the same.

    Parameters
    ----------
    files : iterable of (name, pyarrow.Schema)
    columns : sequence of str, or None for all
    promotes : bool
        Whether int64 and double become double: types of text files are guessed.

    Raises
    ------
    SchemaError
        A file has not the columns of the first one, or has one of another type.
    """
    import pyarrow

    types: dict[str, Any] = {}
    origin: dict[str, str] = {}
    first = ""
    for name, schema in files:
        if not types:
            first = name
            names = selected(columns, schema.names, f"the file {name!r}")
            types = {column: schema.field(column).type for column in names}
            origin = dict.fromkeys(types, name)
            continue
        _check_names(name, schema.names, first, types, columns)
        for column, known in types.items():
            given = schema.field(column).type
            joined = _joined(known, given, promotes=promotes)
            if joined is None:
                raise SchemaError(
                    f"The column {column!r} is of type {given} in the file {name!r}, but of type "
                    f"{known} in {origin[column]!r}. Write it with one type in all files, or leave "
                    "it out by `columns`."
                )
            if not joined.equals(known):
                types[column], origin[column] = joined, name
    return pyarrow.schema(list(types.items()))


def selected(columns: Sequence[str] | None, names: Sequence[str], owner: str) -> list[str]:
    """Return the names of the columns to read; raise SchemaError for those that are not there."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise SchemaError(
            f"Several columns of {owner} have the name {twice[0]!r}. Each column must have a name "
            "of its own: rename or drop columns."
        )
    if columns is None:
        return list(names)
    for column in columns:
        if column not in names:
            raise SchemaError(
                f"There is no column {column!r} in {owner}, whose columns are "
                f"{_listing(names)}.{near_names(column, names)}"
            )
    return list(dict.fromkeys(columns))


def near_names(name: str, names: Iterable[str]) -> str:
    """Return the sentence " Did you mean ...?" on the nearest name, or nothing."""
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def as_schema(batch: Any, schema: Any) -> Any:
    """Return the columns of a record batch in the order and with the types of a schema."""
    if batch.schema.equals(schema):
        return batch
    import pyarrow

    columns = [batch.column(batch.schema.get_field_index(name)) for name in schema.names]
    arrays = [
        column if column.type.equals(kind) else column.cast(kind)
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _check_names(
    name: str, given: Sequence[str], first: str, known: Iterable[str], columns: object
) -> None:
    known = list(known)
    missing = [column for column in known if column not in given]
    extra = [column for column in given if column not in known] if columns is None else []
    if missing:
        raise SchemaError(
            f"The file {name!r} has no column {missing[0]!r}, which {first!r} has."
            f"{near_names(missing[0], given)} All files must have the same columns: write it "
            "again, or name the columns that all have in `columns`."
        )
    if extra:
        raise SchemaError(
            f"The file {name!r} has the column {extra[0]!r}, which {first!r} has not. All files "
            "must have the same columns: write it again, or name the columns to read in `columns`."
        )


def _joined(known: Any, given: Any, *, promotes: bool) -> Any:
    """Return the type for the values of two, or None where they are of different kinds."""
    import pyarrow
    from pyarrow import types

    if given.equals(known) or types.is_null(given):
        return known
    if types.is_null(known):
        return given
    if types.is_dictionary(known) and types.is_dictionary(given):
        values = _joined(known.value_type, given.value_type, promotes=False)
        return None if values is None else pyarrow.dictionary(pyarrow.int32(), values)
    if _is_text(known) and _is_text(given):
        return pyarrow.large_string()
    numbers = (pyarrow.int64(), pyarrow.float64())
    if promotes and known in numbers and given in numbers:
        return pyarrow.float64()
    return None


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or getattr(types, "is_string_view", types.is_string)(kind)
    )


def _listing(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(repr(name) for name in names[:_MOST_NAMES]) + more
