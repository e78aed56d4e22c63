"""Feature + table -> grid points of an explanation: numbers, levels, times.

Each point is kept in two forms: as the core reads it (codes of levels, seconds, NaN for missing),
and as users read it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.feature_names import feature_indices
from arboost.data.levels import Levels
from arboost.data.messages import listing
from arboost.data.schema import Schema
from arboost.data.table import Table

__all__ = ["Axis", "Grid", "axis_of"]

Floats = NDArray[np.float64]

_DTYPES = {"datetime": "datetime64[us]", "duration": "timedelta64[us]"}
_MICROSECONDS = 1e6


@dataclass(frozen=True)
class Grid:
    """Settings of the grid of a feature.

    Parameters
    ----------
    resolution : int, default=100
        Number of points of a numeric feature: all its distinct values where they are fewer, else
        equally spaced points between the two percentiles. For target-encoded categories, the
        largest number of levels; other categories have a point for each level.
    percentiles : (float, float), default=(0.05, 0.95)
        The first and the last point, as shares of the values below them.
    missing : bool, default=False
        Whether a missing value is the last point.
    values : dict, optional
        Explicit points of features, by name or index.

    Examples
    --------
    >>> from arboost import Grid
    >>> Grid(20, missing=True)
    Grid(resolution=20, percentiles=(0.05, 0.95), missing=True, values=None)
    """

    resolution: int = 100
    percentiles: tuple[float, float] = (0.05, 0.95)
    missing: bool = False
    values: Mapping[Any, Any] | None = None

    def __post_init__(self) -> None:
        size = self.resolution
        if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 2:  # noqa: PLR2004
            raise ValueError(
                f"resolution={size!r} is not allowed: use a whole number of points from 2 on."
            )
        given = self.percentiles
        try:
            low, high = (float(one) for one in given)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0 <= low < high <= 1:
            raise ValueError(
                f"percentiles={given!r} is not allowed: use two numbers from 0 to 1, the lower one "
                "first."
            )
        if self.values is not None and not isinstance(self.values, Mapping):
            raise TypeError(
                f"values={self.values!r} is not allowed: use a dict such as {{'age': [20, 40]}}."
            )


@dataclass(frozen=True, eq=False)
class Axis:
    """The points of one feature.

    Attributes
    ----------
    feature : int
    stored : float64 array of shape (n_points,)
        Points as the core reads them.
    shown : array of shape (n_points,)
        Points as users read them: float64, datetime64, timedelta64, or objects for string levels
        (None for missing).
    """

    feature: int
    stored: Floats
    shown: NDArray[Any]


def axis_of(table: Table, feature: int, grid: Grid) -> Axis:
    """Return the grid points of a feature of a table.

    Raises
    ------
    ValueError
        The table has no values of the feature, or the grid holds impossible values of it.
    """
    schema = table.schema
    values = grid.values or {}
    indices = feature_indices(
        values, schema.names, schema.n_features, parameter="Grid.values", owner="the model"
    )
    given = dict(zip(indices, values.values(), strict=True))
    levels = schema.levels_of(feature)
    if feature in given:
        stored, shown = _given_points(schema, feature, given[feature])
    elif levels is not None:
        stored, shown = _level_points(levels, _spread(levels, grid.resolution))
    else:
        stored = _number_points(table.columns.read(feature), grid)
        shown = _shown_numbers(stored, schema.unit_of(feature))
    if grid.missing and not _has_missing(shown):
        stored = np.append(stored, np.nan)
        last = None if shown.dtype == object else "NaT" if shown.dtype.kind in "mM" else np.nan
        shown = np.append(shown, np.array([last], shown.dtype))
    if not len(stored):
        raise ValueError(
            f"The feature {schema.label(feature)} has no values in X, so there is no grid of them. "
            "Pass a table that has some, or Grid(values=...)."
        )
    return Axis(feature, np.ascontiguousarray(stored, np.float64), shown)


def _has_missing(shown: NDArray[Any]) -> bool:
    if shown.dtype == object:
        return any(one is None for one in shown)
    return bool((np.isnat(shown) if shown.dtype.kind in "mM" else np.isnan(shown)).any())


def _number_points(values: Floats, grid: Grid) -> Floats:
    finite = np.sort(values[np.isfinite(values)])
    distinct = finite[np.flatnonzero(np.diff(finite, prepend=-np.inf))]
    if len(distinct) < grid.resolution:
        return distinct
    low, high = (_quantile(finite, share) for share in grid.percentiles)
    if low == high:  # nearly all rows have one value
        low, high = float(finite[0]), float(finite[-1])
    # Not low + place * (high - low): the difference of two doubles may not be finite.
    place = np.linspace(0.0, 1.0, grid.resolution)
    return np.where(place < 1.0, low * (1.0 - place) + high * place, high)


def _quantile(ordered: Floats, share: float) -> float:
    """Return a quantile of sorted values by the definition of scipy's ``mquantiles``.

    scikit-learn's partial dependence uses it, too.
    """
    n = len(ordered)
    place = n * share + 0.4 + 0.2 * share
    below = int(min(max(place, 1), n - 1))
    part = min(max(place - below, 0.0), 1.0)
    return float((1.0 - part) * ordered[below - 1] + part * ordered[below])


def _spread(levels: Levels, most: int) -> NDArray[np.intp]:
    """Return the codes of the levels; of too many, some evenly spaced by number."""
    if levels.numbers is None or (len(levels) <= most and levels.ranks is None):
        return np.arange(len(levels))
    order = np.argsort(levels.numbers, kind="stable")
    order = order[~np.isnan(levels.numbers[order])]
    if len(order) <= most:
        return order
    chosen: NDArray[np.intp] = order[np.linspace(0, len(order) - 1, most).astype(np.intp)]
    return chosen


def _level_points(levels: Levels, codes: NDArray[np.intp]) -> tuple[Floats, NDArray[Any]]:
    """Return the stored and shown points of level codes; -1 is missing."""
    numbers_of = (
        np.arange(len(levels), dtype=np.float64) if levels.numbers is None else levels.numbers
    )
    stored = np.append(numbers_of, np.nan)[codes]
    labels = [None if code < 0 else levels.label(int(code)) for code in codes]
    if levels.kind == "number":
        return stored, np.array([np.nan if one is None else one for one in labels], np.float64)
    shown = np.empty(len(labels), object)
    shown[:] = labels
    return stored, shown


def _shown_numbers(stored: Floats, unit: str) -> NDArray[Any]:
    if unit not in _DTYPES:
        return stored
    ticks = np.where(np.isnan(stored), 0.0, stored) * _MICROSECONDS
    shown = ticks.round().astype(np.int64).view(_DTYPES[unit])
    shown[np.isnan(stored)] = "NaT"
    return shown


def _given_points(schema: Schema, feature: int, values: Any) -> tuple[Floats, NDArray[Any]]:
    given = np.atleast_1d(np.asarray(values, dtype=object if _has_strings(values) else None))
    label, levels = schema.label(feature), schema.levels_of(feature)
    if given.ndim != 1 or not len(given):
        raise ValueError(
            f"values of the feature {label} have the shape {given.shape}, but they must be a list "
            "of points. Pass one or more."
        )
    if levels is not None:
        return _level_points(levels, _codes_of(levels, given, label))
    unit = schema.unit_of(feature)
    try:
        if unit in _DTYPES and given.dtype.kind not in "iuf":
            times = given.astype(_DTYPES[unit])
            seconds = times.astype(np.int64) / _MICROSECONDS
            stored = np.where(np.isnat(times), np.nan, seconds)
        else:
            stored = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        kind = unit or "number"
        raise ValueError(
            f"values of the feature {label} hold something else than a {kind}: {error}. Pass "
            "values as the column of the fit had them."
        ) from error
    stored = np.where(stored == schema.missing, np.nan, stored)
    return stored, _shown_numbers(stored, unit)


def _has_strings(values: Any) -> bool:
    """Whether NumPy would convert None and numbers next to strings to strings."""
    return isinstance(values, list | tuple) and any(
        isinstance(value, str) or value is None for value in values
    )


def _codes_of(levels: Levels, given: NDArray[Any], label: str) -> NDArray[np.intp]:
    code_of: dict[object, int] = {levels.label(code): code for code in range(len(levels))}
    codes = []
    for value in given.tolist():
        is_missing = value is None or (isinstance(value, float) and math.isnan(value))
        code = -1 if is_missing else code_of.get(value)
        if code is None:
            raise ValueError(
                f"values of the feature {label} hold {value!r}, which is none of its levels: "
                f"{listing(map(repr, code_of))}. Use those, or None for missing."
            )
        codes.append(code)
    return np.array(codes, np.intp)
