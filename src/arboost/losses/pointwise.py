"""The built-in losses.

The life of a loss in one fit: its ``start`` gives the scores of round 0; then each round asks
``gradients`` for the derivatives at the current scores, as fixed-point integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = ["LOSSES", "Loss", "Target"]

Floats = NDArray[np.float64]

# Log-odds of a class that no row, or every row, belongs to would be infinite; this far out a
# probability differs from 0 or 1 by less than a double can show.
_LARGEST_LOG_ODDS = 36.0


@dataclass(frozen=True)
class Target:
    """What is to be predicted: y as numbers (classes as 0 .. K-1), and weights or None for 1."""

    y: Floats
    weight: Floats | None


@dataclass(frozen=True)
class Loss:
    """A loss of the core, by its name there.

    Attributes
    ----------
    name : str
        squared_error, logistic or softmax.
    """

    name: str

    def start(self, target: Target, n_outputs: int) -> Floats:
        """Scores of the best constant model, shape (n_outputs,)."""
        raise NotImplementedError

    def gradients(
        self, target: Target, scores: Floats, out: core.Gradients, n_threads: int
    ) -> None:
        """Write the gradients and hessians at ``scores`` (n_rows, n_outputs) into ``out``."""
        core.apply_loss(self.name, target.y, target.weight, scores, out, n_threads)


class SquaredError(Loss):
    """(score - y)^2 / 2; its best constant is the mean."""

    def start(self, target: Target, n_outputs: int) -> Floats:
        # The mean of the differences to one value: exact for constant y, and no overflow of sums.
        first = target.y[0]
        return np.full(n_outputs, first + np.average(target.y - first, weights=target.weight))


class Logistic(Loss):
    """log(1 + e^score) - y score for y in {0, 1}; its best constant is log(p / (1 - p))."""

    def start(self, target: Target, n_outputs: int) -> Floats:
        p = np.average(target.y, weights=target.weight)
        with np.errstate(divide="ignore"):
            log_odds = np.log(p) - np.log1p(-p)
        return np.full(n_outputs, np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS))


class Softmax(Loss):
    """log sum_k e^score_k - score_y for y in {0 .. K-1}; its best constants are log p_k."""

    def start(self, target: Target, n_outputs: int) -> Floats:
        counts = np.bincount(target.y.astype(np.intp), target.weight, minlength=n_outputs)
        with np.errstate(divide="ignore"):
            log_shares: Floats = np.log(counts / counts.sum())
        return log_shares.clip(min=-_LARGEST_LOG_ODDS)


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (SquaredError("squared_error"), Logistic("logistic"), Softmax("softmax"))
}
