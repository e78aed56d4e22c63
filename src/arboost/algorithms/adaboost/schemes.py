"""What AdaBoost makes of its learners: votes, errors and weights. Arrays in, arrays out.

With K = 2 classes a row has one score F, positive for the second class; with more it has a score
u_k for each class, and their sum is 0. Its margin m is (2 y - 1) F, or u_y. Everything follows from

    loss = mean of exp(-m)        D ~ exp(-m), the distribution that the next learner sees

(Freund and Schapire 1997; Friedman, Hastie and Tibshirani 2000; Zhu et al. 2009, "Multi-class
AdaBoost"). For K = 2 the formulas for more classes are those for two, with u = (-F, F).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from arboost.losses import Loss
from arboost.losses.base import Floats
from arboost.losses.classification import ClassExponential, Exponential
from arboost.losses.regression import SquaredError

__all__ = ["Amounts", "Votes"]


_TWO_CLASSES = 2
# Sums of doubles tell no smaller edge from none.
_LEAST_EDGE = 1e-10
# What the error of a perfect learner counts as: it outvotes the others, with a finite weight.
_PERFECT_ERROR = 1e-10


@dataclass(frozen=True, kw_only=True)
class Votes:
    """AdaBoost of classes.

    Attributes
    ----------
    algorithm : {"discrete", "real", "gentle"}
        What a learner adds to the scores: its vote for a class, times a weight by its error; half
        the log-odds of its probabilities; or their difference.
    n_classes : int
    rate : float
        Factor on what every learner adds.
    """

    algorithm: str
    n_classes: int
    rate: float

    @property
    def loss(self) -> Loss:
        """What the scores make small, one learner after the other."""
        k = self.n_classes
        return Exponential() if k == _TWO_CLASSES else ClassExponential(k)

    @property
    def kernel(self) -> str:
        """The loss of the trees: for this one, gains are decreases of Gini's impurity."""
        return "squared_error" if self.n_classes == _TWO_CLASSES else "one_hot"

    def tree_target(self, y: Floats) -> Floats:
        """Return what the trees fit: signs of two classes, or the numbers of the classes."""
        return 2.0 * y - 1.0 if self.n_classes == _TWO_CLASSES else y

    @property
    def chance(self) -> float:
        """Error from which on a learner knows no more than a guess."""
        return 1.0 - 1.0 / self.n_classes - _LEAST_EDGE

    def unit(self, outputs: Floats, cover: Floats) -> Floats:
        """Return what learners add to the scores before their weight, in rows of any kind.

        Parameters
        ----------
        outputs : float64 array of shape (m, n_outputs)
            p_1 - p_0 of two classes, or the probabilities of all.
        cover : float64 array of shape (m,)
            Weight of the training rows behind each, in the units of the user's weights.
        """
        two, k = self.n_classes == _TWO_CLASSES, self.n_classes
        if self.algorithm == "gentle":
            return outputs if two else (k * outputs - 1.0) / (k - 1.0)
        if self.algorithm == "discrete":
            if two:
                return np.where(outputs > 0.0, 1.0, -1.0)
            chosen: Floats = np.eye(k)[outputs.argmax(axis=1)]
            return chosen - 1.0 / k
        # One row more, shared by all classes, keeps logarithms finite (Schapire and Singer 1999,
        # section 4.2).
        weight = cover[:, np.newaxis]
        if two:
            smooth = outputs * weight / (weight + 1.0)
            return np.arctanh(smooth)  # half the log-odds of p = (1 + smooth) / 2
        logs = np.log((outputs * weight + 1.0 / k) / (weight + 1.0))
        centred: Floats = logs - logs.mean(axis=1, keepdims=True)
        return centred

    def weight(self, error: float) -> float:
        """Return the factor on the votes of a learner with this error.

        Freund and Schapire's alpha for two classes, 1/2 ln((1 - e) / e), and that of SAMME for
        more.
        """
        if self.algorithm != "discrete":
            return self.rate
        odds = -_log_odds(error)
        if self.n_classes == _TWO_CLASSES:
            return self.rate * 0.5 * odds
        return self.rate * (odds + math.log(self.n_classes - 1.0))

    def error_bounds(self, errors: Floats, weights: Floats, losses: Floats) -> Floats:
        """Return a bound on the training error after each round; NaN where none is known.

        For two classes a wrong row has a margin of at most 0, so that its loss is at least 1: the
        mean loss, the product of all Z_t, is a bound. With more, a row is wrong only where at most
        half of the votes are for its class; then exp(sum of +-alpha / 2) is at least 1.
        """
        if self.n_classes == _TWO_CLASSES:
            return losses
        if self.algorithm != "discrete":
            return np.full(len(errors), np.nan)
        # A perfect learner's error counts as 0 here: it is right on every row.
        factors = (1.0 - errors) * np.exp(-weights / 2) + errors * np.exp(weights / 2)
        with np.errstate(over="ignore"):  # a bound may say nothing at all
            return np.cumprod(factors, dtype=np.float64)

    def edge_bounds(self, errors: Floats, weights: Floats) -> Floats:
        """Return the bound that follows from the edges alone; NaN where there is none.

        exp(-2 sum gamma_t^2) for steps in full. As Z is convex in the step and 1 at its start, a
        shorter step by the factor r has Z <= 1 - r (1 - exp(-2 gamma^2)).
        """
        if self.algorithm != "discrete" or self.n_classes != _TWO_CLASSES:
            return np.full(len(errors), np.nan)
        full = np.array([-0.5 * _log_odds(error) for error in errors])
        rates = np.round(weights / full, 12)  # rounds may have had other learning rates
        edges = 0.5 - errors
        factors = 1.0 - rates * (1.0 - np.exp(-2.0 * edges**2))
        return np.cumprod(np.where(rates <= 1.0, factors, np.nan), dtype=np.float64)

    def vote_range(self, votes: Floats) -> float:
        """Return the largest difference that votes make between two classes."""
        if self.n_classes == _TWO_CLASSES:
            return float(np.abs(votes).max())
        return float((votes.max(axis=1) - votes.min(axis=1)).max())


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """AdaBoost.R2 of numbers (Drucker 1997, "Improving Regressors using Boosting Techniques").

    Attributes
    ----------
    error : {"linear", "square", "exponential"}
        Loss L of a row from its error d, a share of the largest error: d, d^2 or 1 - exp(-d).
    rate : float
        Factor on the weights of learners, and on the exponents of the rows' weights.
    middle : float
        Trees fit differences to this number, so that their sums keep all bits.
    """

    error: str
    rate: float
    middle: float = 0.0

    kernel = "squared_error"
    chance = 0.5 - _LEAST_EDGE

    @property
    def loss(self) -> Loss:
        """What evaluation measures; R2 itself has no loss that its rounds make small."""
        return SquaredError()

    def log_beta(self, mean_loss: float) -> float:
        """Return the logarithm of beta = eps / (1 - eps)."""
        return _log_odds(mean_loss)

    def tree_target(self, y: Floats) -> Floats:
        """Return what the trees fit."""
        return y - self.middle

    def unit(self, outputs: Floats, cover: Floats) -> Floats:
        """Return what the trees predict."""
        return outputs + self.middle


def _log_odds(error: float) -> float:
    e = error if error > 0.0 else _PERFECT_ERROR
    return math.log(e / (1.0 - e))
