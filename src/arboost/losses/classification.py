"""Classification losses. F is the raw score; the formulas are in cpp/loss/losses.h.

Leaf values are those of Friedman (2001), sections 4.5 and 4.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arboost.backend import core
from arboost.losses.base import Floats, Loss, Target, limited

__all__ = ["ClassExponential", "Exponential", "Logistic", "Softmax"]

# Log-odds of a class of no row, or of every row, would be infinite; this far out a probability
# differs from 0 or 1 by less than the precision of a double.
_LARGEST_LOG_ODDS = 36.0


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + e^F) - y F for y in {0, 1}; its best constant is log(p / (1 - p))."""

    name = "log_loss"
    kernel = "logistic"
    link = "logistic"

    def start(self, target: Target) -> Floats:
        """The log-odds."""
        return np.array([_log_odds(target)])

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """One Newton step: the minimum has no closed form."""
        return _newton(sums_g, sums_h)


@dataclass(frozen=True)
class Softmax(Loss):
    """log sum_k e^F_k - F_y for y in {0 .. K-1}; its best constants are log p_k."""

    n_classes: int

    name = "log_loss"
    kernel = "softmax"
    link = "softmax"

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return self.n_classes

    def start(self, target: Target) -> Floats:
        """Logarithms of the class shares."""
        if target.weight is None:
            counts = core.class_counts(target.y, self.n_classes, 1)
        else:
            counts = np.bincount(target.y.astype(np.intp), target.weight, self.n_classes)
        shares: Floats = counts / counts.sum()
        return core.log(shares).clip(min=-_LARGEST_LOG_ODDS)

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """(K - 1) / K Newton steps."""
        # The hessians of training are 2 p (1 - p), an upper bound of the full hessian matrix.
        k = self.n_classes
        return (k - 1) / k * _newton(sums_g, sums_h / 2)


@dataclass(frozen=True)
class Exponential(Loss):
    """e^(-s F) for s = 2 y - 1, y in {0, 1}; its best constant is log(p / (1 - p)) / 2."""

    name = "exponential"
    link = "logistic_of_double"

    def start(self, target: Target) -> Floats:
        """Half the log-odds."""
        return np.array([_log_odds(target) / 2])

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """One Newton step.

        The minimum is at half the log-odds of the class weights, which is infinite in a leaf of
        one class. The Newton step is the tanh of that, and never longer than 1.
        """
        return _newton(sums_g, sums_h)


@dataclass(frozen=True)
class ClassExponential(Loss):
    """e^(-F_y) for y in {0 .. K-1} and scores whose sum is 0: SAMME's loss.

    It only evaluates scores: gradient boosting does not use it, and it has no gradients or start.
    """

    n_classes: int

    name = "exponential"
    link = "softmax"

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return self.n_classes

    def value(self, target: Target, scores: Floats, n_threads: int) -> float:
        """The weighted mean loss. It does not depend on the number of threads."""
        unused = np.empty(len(target.y))
        log_loss, _ = core.class_distribution(target.y, target.weight, scores, unused, n_threads)
        return core.exp(log_loss)


def _log_odds(target: Target) -> float:
    """The weighted log-odds of the second class."""
    p = float(np.average(target.y, weights=target.weight))
    log_odds = core.log(p) - core.log1p(-p)
    return float(np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS))


def _newton(sums_g: Floats, sums_h: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return limited(-sums_g / sums_h)
