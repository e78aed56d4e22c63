"""Numbers of the payload: rounded to significant digits, with null for NaN and infinities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MORE_DIGITS", "counts", "one", "rounded"]

DIGITS = 5
MORE_DIGITS = 7  # of values that users look up in their table
_LARGEST_POWER = 22  # of ten that a double holds exactly
_EXACT = 2.0**53


def rounded(values: Any, digits: int = DIGITS) -> Any:
    """Return an array of numbers as nested lists for JSON.

    Examples
    --------
    >>> rounded([1 / 3, 123456.7, float("nan"), -2.0])
    [0.33333, 123460, None, -2]
    """
    array = np.asarray(values, dtype=np.float64)
    flat = _shortened(array.ravel(), digits)
    whole = (flat == np.floor(flat)) & (np.abs(flat) < _EXACT)
    shown: list[Any] = flat.tolist()
    for place in np.flatnonzero(whole).tolist():
        shown[place] = int(shown[place])
    for place in np.flatnonzero(~np.isfinite(flat)).tolist():
        shown[place] = None
    return _nested(shown, array.shape)


def one(value: float | None, digits: int = DIGITS) -> float | int | None:
    """Return one number for JSON; None stays None."""
    if value is None or not math.isfinite(value):
        return None
    found: float | int | None = rounded([float(value)], digits)[0]
    return found


def counts(values: NDArray[Any]) -> list[Any]:
    """Return counts for JSON: whole numbers, or rounded sums of weights."""
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        whole: list[Any] = array.astype(np.int64).tolist()
        return whole
    found: list[Any] = rounded(array, MORE_DIGITS)
    return found


def _shortened(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Return the nearest numbers of so many significant digits."""
    found = values.copy()
    usual = np.isfinite(values) & (values != 0.0)
    given = values[usual]
    magnitude = np.floor(np.log10(np.abs(given)))
    power = digits - 1 - magnitude
    is_exact = np.abs(power) <= _LARGEST_POWER
    # Multiples and quotients of a power of ten that is exact round to the shortest decimal.
    scale = 10.0 ** np.where(is_exact, np.abs(power), 0.0)
    small = np.round(given * scale) / scale
    large = np.round(given / scale) * scale
    near = np.where(power >= 0, small, large)
    for place in np.flatnonzero(~is_exact).tolist():
        near[place] = float(f"{given[place]:.{digits}g}")
    found[usual] = near
    return found


def _nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    for size in reversed(shape[1:]):
        if size == 0:
            return [[] for _ in range(shape[0])]
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat
