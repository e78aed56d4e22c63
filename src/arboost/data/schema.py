"""Schema of a fit's columns: names, levels of categories, units of times, missing number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

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
    target : str, or None
        Column of the training table that was y. It is no feature: tables to predict may have it.
    offset : tuple of str, or None
        Columns of the training table that were the offset, one for each raw score or one for all;
        empty where the offset was an array. None: the fit had no offset.
    """

    names: tuple[str, ...] | None
    n_features: int
    levels: tuple[Levels | None, ...] = ()
    missing: float = math.nan
    units: tuple[str, ...] = ()
    target: str | None = None
    offset: tuple[str, ...] | None = None
    formats: tuple[str, ...] = ()

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
    def other_columns(self) -> frozenset[str]:
        """Columns that are no features, which tables to predict may have."""
        target = () if self.target is None else (self.target,)
        return frozenset((*target, *(self.offset or ())))

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
        """Indices of the categories and columns of times."""
        return tuple(
            feature
            for feature in (range(self.n_features) if self.levels or self.units else ())
            if self.levels_of(feature) is not None or self.unit_of(feature)
        )

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
        return self.names or tuple(f"x{feature}" for feature in range(self.n_features))

    def label(self, feature: int) -> str:
        """Return the name of a column in messages: its name, or its index."""
        return repr(feature if self.names is None else self.names[feature])

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
            raise ValueError(f"formats {self.formats!r} of columns that are no dates")
        if math.isinf(self.missing):
            raise ValueError(f"missing={self.missing}")

    def _rest(self) -> tuple[object, ...]:
        return self.names, self.n_features, self.levels, self.units, self.formats


def by_feature(parts: Mapping[int, T], n_features: int, default: T) -> tuple[T, ...]:
    """Return a part of each feature, as a schema has them; () where all are the default."""
    if all(part == default for part in parts.values()):
        return ()
    return tuple(parts.get(feature, default) for feature in range(n_features))
