"""One step length for all trees of a round, where the loss along them is smallest.

Friedman (2001), algorithm 1: a least-squares tree on the negative gradient is the direction, and
one number, the minimum of the loss along it, the length. With a value of the loss's own minimum in
each leaf (section 4, TreeBoost) every leaf has a length of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from arboost.losses import Loss, Target
from arboost.losses.base import LARGEST_STEP, Floats

__all__ = ["step_length"]

_MOST_DOUBLINGS = 100
_PRECISION = 1e-9  # of a step, relative


def step_length(
    loss: Loss, target: Target, scores: Floats, direction: Floats, start: float, n_threads: int
) -> float:
    """Return the length of the step along a direction that minimises the loss.

    Steps of losses on a logarithmic scale end where a score changes by 10, as those of leaves do:
    rows of one class alone have no finite minimum.

    Parameters
    ----------
    loss : Loss
    target : Target
    scores, direction : float64 arrays of shape (n_rows, n_outputs)
    start : float
        First length to try, above 0.
    n_threads : int
    """
    from scipy.optimize import minimize_scalar

    def value(length: float) -> float:
        mean = loss.value(target, scores + length * direction, n_threads)
        return mean if math.isfinite(mean) else math.inf

    most = math.inf
    if loss.link != "identity":
        largest = max(float(direction.max()), -float(direction.min()))
        most = LARGEST_STEP / largest if largest > 0.0 else start
    end = _upper_end(value, min(start, most), most)
    result = minimize_scalar(
        value, bounds=(0.0, end), method="bounded", options={"xatol": _PRECISION * end}
    )
    # A bounded search never tries the end itself.
    return end if value(end) <= float(result.fun) else float(result.x)


def _upper_end(value: Callable[[float], float], length: float, most: float) -> float:
    """Return a length beyond the minimum of a convex function, and less than four times it.

    Halved or doubled from a first length on; never more than `most`.
    """
    here = value(length)
    for _ in range(_MOST_DOUBLINGS):
        half = value(length / 2)
        if not half < here:
            break
        length, here = length / 2, half
    for _ in range(_MOST_DOUBLINGS):
        if length >= most:
            return most
        length = min(2 * length, most)
        there = value(length)
        if not there < here:
            break
        here = there
    return length
