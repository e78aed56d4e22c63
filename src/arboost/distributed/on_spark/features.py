"""Feature columns of a Spark DataFrame: plain columns, or one column of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name of all users of Spark

__all__ = ["check_columns", "is_vector", "plain", "training_columns"]


def check_columns(frame: DataFrame, argument: str, names: Sequence[object]) -> None:
    """Raise ValueError unless all names are columns."""
    for name in names:
        if name not in frame.columns:
            raise ValueError(
                f"{argument}={name!r} is no column of the DataFrame. Its columns are: "
                f"{', '.join(frame.columns)}."
            )


def is_vector(frame: DataFrame, name: object) -> bool:
    """Whether a column has vectors of pyspark.ml."""
    return name in frame.columns and isinstance(frame.schema[str(name)].dataType, VectorUDT)


def plain(name: str) -> Column:
    """Return a column by its name, which may have dots."""
    return F.col("`" + name.replace("`", "``") + "`")


def training_columns(
    frame: DataFrame, features: str | Sequence[str] | None, others: Sequence[str]
) -> DataFrame:
    """Return the features, and other columns after them.

    Parameters
    ----------
    frame : DataFrame
    features : str, sequence of str or None
        Plain columns, or one column of vectors, whose elements become columns; None takes all but
        the others.
    others : sequence of str
    """
    check_columns(frame, "labelCol or weightCol", others)
    if features is None:
        features = [name for name in frame.columns if name not in others]
    named = [features] if isinstance(features, str) else list(features)
    check_columns(frame, "featuresCol", named)
    if not isinstance(features, str) or not is_vector(frame, features):
        return frame.select(*map(plain, (*named, *others)))
    values = vector_to_array(plain(features))
    elements = [
        values[i].alias(name) for i, name in enumerate(_element_names(frame, features, others))
    ]
    return frame.select(*elements, *map(plain, others))


def _element_names(frame: DataFrame, vectors: str, others: Sequence[str]) -> list[str]:
    """Return the names that VectorAssembler has noted, or else numbered ones."""
    noted = frame.schema[vectors].metadata.get("ml_attr", {})
    known = [one for group in noted.get("attrs", {}).values() for one in group]
    names = {one["idx"]: one["name"] for one in known if "name" in one}
    length = noted.get("num_attrs", len(names)) or _length(frame, vectors)
    if len(set(names.values()) - set(others)) == length:
        return [names[i] for i in range(length)]
    return [f"{vectors}_{i}" for i in range(length)]


def _length(frame: DataFrame, vectors: str) -> int:
    """Return the length of the first vector."""
    row = frame.select(plain(vectors)).dropna().first()
    if row is None:
        raise ValueError(f"featuresCol={vectors!r} has no vectors, so there is nothing to learn.")
    return len(row[0])
