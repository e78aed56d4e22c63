"""Schema of a fit's columns: names, levels of categories, units of times, missing number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from arboost.data.features.calendar import PARTS
from arboost.data.levels import Levels
from arboost.lazy import lazy_property

__all__ = ["UNITS", "Schema", "by_feature"]

T = TypeVar("T")

# Columns of times, always in seconds: since 1970 in UTC, of a duration, or since midnight.
UNITS = ("datetime", "duration", "time")


@dataclass(frozen=True, eq=False)
class Schema:
    """Names, levels, units and missing number of the columns of a fit.

    Attributes
    ----------
    names : tuple of str, or None for a table without names
    n_features : int
    levels : tuple of Levels or None, one for each feature; empty where there are no categories
    missing : float
        Number that means missing, in addition to NaN.
    units : tuple of str, one for each feature; empty where there are no times
        One of `UNITS`, or "" for plain numbers.
    formats : tuple of str, one for each feature; empty where no strings are dates
        Format of the dates of a column that held them as strings, or "".
    parts : tuple of pairs of int and str
        The last features, which are derived: a column of dates, and its calendar part.
    target : str, or None
        Column of the training table that was y. It is no feature: tables to predict may have it.
    offset : tuple of str, or None
        Columns of the training table that were the offset, one for each raw score or one for all;
        empty where the offset was an array. None: the fit had no offset.
    row_columns : tuple of str
        Columns of the training table in memory that were the weights or the groups of the rows.
    """

    names: tuple[str, ...] | None
    n_features: int
    levels: tuple[Levels | None, ...] = ()
    missing: float = math.nan
    units: tuple[str, ...] = ()
    target: str | None = None
    offset: tuple[str, ...] | None = None
    formats: tuple[str, ...] = ()
    parts: tuple[tuple[int, str], ...] = ()
    row_columns: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        same_missing = self.missing == other.missing or (
            math.isnan(self.missing) and math.isnan(other.missing)
        )
        return same_missing and self._rest() == other._rest()

    def __hash__(self) -> int:
        return hash((self.names, self.n_features))

    @property
    def n_columns(self) -> int:
        """Number of columns of a table to predict: features that are not derived."""
        return self.n_features - len(self.parts)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns of a table to predict; None for a table without names."""
        return None if self.names is None else self.names[: self.n_columns]

    @property
    def column_of(self) -> tuple[int, ...]:
        """Column of each feature: the column of dates where it is derived."""
        return (*range(self.n_columns), *(column for column, _ in self.parts))

    def parts_of(self, column: int) -> dict[int, str]:
        """Return the derived features of a column: the calendar part of each."""
        return {i: part for i, (of, part) in enumerate(self.parts, self.n_columns) if of == column}

    @property
    def other_columns(self) -> frozenset[str]:
        """Columns that are not features, which tables to predict may have."""
        target = () if self.target is None else (self.target,)
        return frozenset((*target, *(self.offset or ()), *self.row_columns))

    @property
    def categorical(self) -> tuple[bool, ...]:
        """Whether each feature is split by sets: a category without target means or an order."""
        return tuple(self.is_category(feature) for feature in range(self.n_features))

    @property
    def has_levels(self) -> bool:
        """Whether any feature is a category, target-encoded or not."""
        return any(levels is not None for levels in self.levels)

    def is_category(self, feature: int) -> bool:
        """Whether the feature is split by sets of levels."""
        levels = self.levels_of(feature)
        return levels is not None and levels.by_sets

    @lazy_property
    def special(self) -> tuple[int, ...]:
        """Indices of the categories, columns of times and derived features."""
        own = tuple(
            feature
            for feature in (range(self.n_columns) if self.levels or self.units else ())
            if self.levels_of(feature) is not None or self.unit_of(feature)
        )
        return (*own, *range(self.n_columns, self.n_features))

    @property
    def n_levels(self) -> tuple[int, ...]:
        """Number of levels, or groups, of each feature that is split by sets; 0 for all others."""
        return tuple(
            0 if levels is None else levels.n_set_codes
            for levels in self.levels or (None,) * self.n_features
        )

    def levels_of(self, feature: int) -> Levels | None:
        """Return the levels of a category; None for a column of numbers."""
        return self.levels[feature] if self.levels else None

    def unit_of(self, feature: int) -> str:
        """Return the unit of a column of times, "" for plain numbers."""
        return self.units[feature] if self.units else ""

    def format_of(self, feature: int) -> str:
        """Return the format of dates in strings, "" for all other columns."""
        return self.formats[feature] if self.formats else ""

    @lazy_property
    def shown_names(self) -> tuple[str, ...]:
        """Names of the features; x0, x1 and so on for a table without names."""
        if self.names is not None:
            return self.names
        own = [f"x{column}" for column in range(self.n_columns)]
        return (*own, *(f"x{column}.{part}" for column, part in self.parts))

    def with_parts(self, parts: tuple[tuple[int, str], ...]) -> Schema:
        """Return the schema of columns with derived features."""
        n_features = self.n_columns + len(parts)

        def longer(known: tuple[Any, ...], default: object) -> tuple[Any, ...]:
            return known and known + (default,) * len(parts)

        names = None
        if self.names is not None:
            names = self.names + tuple(f"{self.names[i]}.{part}" for i, part in parts)
        return replace(
            self,
            names=names,
            n_features=n_features,
            levels=longer(self.levels, None),
            units=longer(self.units, ""),
            formats=longer(self.formats, ""),
            parts=parts,
        )

    def label(self, feature: int) -> str:
        """Return the name of a column in messages: its name, or its index."""
        is_index = self.names is None and feature < self.n_columns
        return repr(feature if is_index else self.shown_names[feature])

    def validate(self) -> None:
        """Raise ValueError unless the parts are consistent; for a schema from a file."""
        of_features = {"levels": self.levels, "units": self.units, "formats": self.formats}
        for name, parts in of_features.items():
            if parts and len(parts) != self.n_features:
                raise ValueError(f"{name} of {len(parts)} features, not of {self.n_features}")
        for levels in self.levels:
            if levels is not None:
                levels.validate()
        if not all(unit == "" or unit in UNITS for unit in self.units):
            raise ValueError(f"units {self.units!r}")
        if any(one and self.unit_of(i) != "datetime" for i, one in enumerate(self.formats)):
            raise ValueError(f"formats {self.formats!r} of columns that are not dates")
        n_columns = self.n_columns
        for column, part in self.parts:
            if part not in PARTS or not 0 <= column < n_columns:
                raise ValueError(f"the part {part!r} of the column {column}")
            if self.unit_of(column) != "datetime":
                raise ValueError(f"a part of the column {column}, which holds no dates")
        if math.isinf(self.missing):
            raise ValueError(f"missing={self.missing}")

    def _rest(self) -> tuple[object, ...]:
        return self.names, self.n_features, self.levels, self.units, self.formats, self.parts


def by_feature(parts: Mapping[int, T], n_features: int, default: T) -> tuple[T, ...]:
    """Return a part of each feature, as a schema has them; () where all are the default."""
    if all(part == default for part in parts.values()):
        return ()
    return tuple(parts.get(feature, default) for feature in range(n_features))
