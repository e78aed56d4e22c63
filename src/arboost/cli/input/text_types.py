"""Types of text columns by the columns of a model: a file of few rows cannot tell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arboost.data.schema import Schema
    from arboost.sources.file_source import FileSource

__all__ = ["column_kinds", "source_like", "typed_like"]


def source_like(source: FileSource, like: Any) -> FileSource:
    """Return the source with the types of a model's columns; other kinds than text unchanged.

    `like` is a model, a schema, or a dict of kinds as `column_kinds` returns it.
    """
    from arboost.sources.file_source import FileSource
    from arboost.sources.files import ArrowFile, ParquetFile
    from arboost.sources.text.json_files import JsonLinesFile

    if isinstance(source.files[0], ParquetFile | ArrowFile):
        return source
    kinds = column_kinds(like)
    if isinstance(source.files[0], JsonLinesFile):  # it tells strings from numbers itself
        texts = [one.name for one in source.arrow_schema if one.type == "string"]
        kinds = {
            name: kind for name, kind in kinds.items() if kind == "number" and name not in texts
        }
    return FileSource(
        source.label, source.files, typed_like(source.arrow_schema, kinds), source.keys
    )


def typed_like(found: Any, like: Any) -> Any:
    """Return the types of text columns that were found, corrected by those of a model.

    A column that the model knows as numbers holds decimals, even if its first rows are integers;
    a category of strings holds strings, even if all of them look like numbers.
    """
    import pyarrow

    kinds = column_kinds(like)
    return pyarrow.schema([(one.name, _type(one.type, kinds.get(one.name, ""))) for one in found])


def _type(found: Any, wanted: str) -> Any:
    import pyarrow

    # A string among numbers is then an error with its line, and no other kind of column.
    if wanted == "number" and found in (pyarrow.int64(), pyarrow.null(), pyarrow.string()):
        return pyarrow.float64()
    return pyarrow.string() if wanted == "string" else found


def column_kinds(like: Any) -> dict[str, str]:
    """Return "number" or "string" for the columns of a model or schema; "" for times.

    An ensemble keeps the names of its columns, and its members the rest.
    """
    if isinstance(like, Mapping):
        return dict(like)
    members: Mapping[str, Any] = getattr(like, "members", {})
    if members:
        return {name: kind for one in members.values() for name, kind in column_kinds(one).items()}
    schema: Schema = getattr(like, "schema", like)
    found = {}
    for feature, name in enumerate(schema.names or ()):
        levels = schema.levels_of(feature)
        kind = "number" if levels is None else levels.kind
        found[name] = "" if schema.unit_of(feature) else kind
    return found | dict.fromkeys(schema.offset or (), "number")
