"""Formulas of AdaBoost: votes, errors and weights. Arrays in, arrays out.

With K = 2 classes a row has one score F, positive for the second class; with more it has a score
u_k for each class, and their sum is 0. Its margin m is (2 y - 1) F, or u_y. Everything follows from

    loss = mean of exp(-m)        D ~ exp(-m), the distribution of the rows for the next learner

(Freund and Schapire 1997; Friedman, Hastie and Tibshirani 2000; Zhu et al. 2009, "Multi-class
AdaBoost"). For K = 2 the formulas for more classes are those for two, with u = (-F, F).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from arboost.backend import core
from arboost.losses.base import Floats, Loss
from arboost.losses.losses import ClassExponential, Exponential, SquaredError

_TWO_CLASSES = 2
# Sums of doubles cannot tell a smaller edge from 0.
_LEAST_EDGE = 1e-10
# Error of a perfect learner in its weight: it outvotes the others, with a finite weight.
_PERFECT_ERROR = 1e-10


@dataclass(frozen=True, kw_only=True)
class ClassScheme:
    """AdaBoost for classification.

    Attributes
    ----------
    algorithm : {"discrete", "real", "gentle"}
        Votes of a learner: 1 for a class, times a weight by its error; half the log-odds of its
        probabilities; or the difference of its probabilities.
    n_classes : int
        2 or more.
    rate : float
        Factor on all votes.
    """

    algorithm: str
    n_classes: int
    rate: float

    combine = "sum"

    @property
    def loss(self) -> Loss:
        """The exponential loss, which the rounds minimise stagewise."""
        k = self.n_classes
        return Exponential() if k == _TWO_CLASSES else ClassExponential(k)

    @property
    def kernel(self) -> str:
        """The loss of the trees: for this one, gains are decreases of Gini's impurity."""
        return "squared_error" if self.n_classes == _TWO_CLASSES else "one_hot"

    def tree_target(self, y: Floats) -> Floats:
        """The target of the trees: -1 and 1 for two classes, else the class codes."""
        return 2.0 * y - 1.0 if self.n_classes == _TWO_CLASSES else y

    @property
    def chance(self) -> float:
        """Error of guessing: learners from this error on are dropped."""
        return 1.0 - 1.0 / self.n_classes - _LEAST_EDGE

    def unit_votes(self, outputs: Floats, cover: Floats) -> Floats:
        """The votes of a learner before its weight, for leaves or for rows.

        Parameters
        ----------
        outputs : float64 array of shape (m, n_outputs)
            p_1 - p_0 for two classes, else the probabilities of all.
        cover : float64 array of shape (m,)
            Weight of the training rows behind each output, in the units of the user's weights.
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
            smooth: Floats = outputs * weight / (weight + 1.0)
            # Half the log-odds of p = (1 + smooth) / 2.
            return 0.5 * (core.log1p(smooth) - core.log1p(-smooth))
        logs = core.log((outputs * weight + 1.0 / k) / (weight + 1.0))
        centred: Floats = logs - logs.mean(axis=1, keepdims=True)
        return centred

    def weight(self, error: float) -> float:
        """The factor on the votes of a learner with this error.

        Freund and Schapire's alpha for two classes, 1/2 ln((1 - e) / e), and that of SAMME for
        more.
        """
        if self.algorithm != "discrete":
            return self.rate
        odds = -_log_odds(error)
        if self.n_classes == _TWO_CLASSES:
            return self.rate * 0.5 * odds
        return self.rate * (odds + core.log(self.n_classes - 1.0))

    def error_bounds(self, errors: Floats, weights: Floats, losses: Floats) -> Floats:
        """A bound on the training error after each round; NaN where none is known.

        For two classes a wrong row has a margin of at most 0, so that its loss is at least 1: the
        mean loss, the product of all Z_t, is a bound. With more, a row is wrong only where at most
        half of the votes are for its class; then exp(sum of +-alpha / 2) is at least 1.
        """
        if self.n_classes == _TWO_CLASSES:
            return losses
        if self.algorithm != "discrete":
            return np.full(len(errors), np.nan)
        # The error of a perfect learner is 0 here, not the smallest error of its weight.
        factors = (1.0 - errors) * core.exp(-weights / 2) + errors * core.exp(weights / 2)
        with np.errstate(over="ignore"):  # a bound may be infinite
            return np.cumprod(factors, dtype=np.float64)

    def edge_bounds(self, errors: Floats, weights: Floats) -> Floats:
        """The bound that follows from the edges alone; NaN where there is none.

        exp(-2 sum gamma_t^2) for steps in full. As Z is convex in the step and 1 at its start, a
        shorter step by the factor r has Z <= 1 - r (1 - exp(-2 gamma^2)).
        """
        if self.algorithm != "discrete" or self.n_classes != _TWO_CLASSES:
            return np.full(len(errors), np.nan)
        full = np.array([-0.5 * _log_odds(error) for error in errors])
        rates = np.round(weights / full, 12)  # rounds may have had other learning rates
        edges = 0.5 - errors
        factors = 1.0 - rates * (1.0 - core.exp(-2.0 * edges**2))
        return np.cumprod(np.where(rates <= 1.0, factors, np.nan), dtype=np.float64)

    def vote_range(self, votes: Floats) -> float:
        """The largest difference of the votes for two classes."""
        if self.n_classes == _TWO_CLASSES:
            return float(np.abs(votes).max())
        return float((votes.max(axis=1) - votes.min(axis=1)).max())

    def score(self, y: Floats, scores: Floats, weight: Floats | None, n_threads: int) -> float:
        """The accuracy of scores of shape (n_rows, n_outputs)."""
        weight = np.ones(len(y)) if weight is None else weight
        return 1.0 - core.weighted_error(y, weight, scores, n_threads)


@dataclass(frozen=True, kw_only=True)
class R2Scheme:
    """AdaBoost.R2 for regression (Drucker 1997, "Improving Regressors using Boosting Techniques").

    Attributes
    ----------
    error : {"linear", "square", "exponential"}
        Loss L of a row from its error d, a share of the largest error: d, d^2 or 1 - exp(-d).
    rate : float
        Factor on the weights of learners, and on the exponents of the rows' weights.
    combine : {"median", "mean"}
        Combination of the learners' predictions by their weights.
    centre : float
        Trees fit differences to this number, so that their sums keep all bits.
    """

    error: str
    rate: float
    combine: str = "median"
    centre: float = 0.0

    kernel = "squared_error"
    chance = 0.5 - _LEAST_EDGE

    @property
    def loss(self) -> Loss:
        """Loss of validation rows; R2 itself has no loss that its rounds minimise."""
        return SquaredError()

    def log_beta(self, mean_loss: float) -> float:
        """The logarithm of beta = eps / (1 - eps)."""
        return _log_odds(mean_loss)

    def tree_target(self, y: Floats) -> Floats:
        """The target of the trees."""
        return y - self.centre

    def unit_votes(self, outputs: Floats, cover: Floats) -> Floats:
        """The predictions of a tree from the values of its leaves."""
        return outputs + self.centre

    def score(self, y: Floats, scores: Floats, weight: Floats | None, n_threads: int) -> float:
        """R^2 of predictions of shape (n_rows, 1)."""
        spread = (y - np.average(y, weights=weight)) ** 2
        missed = np.average((y - scores[:, 0]) ** 2, weights=weight)
        total = np.average(spread, weights=weight)
        return float(1.0 - missed / total) if total > 0.0 else float(missed == 0.0)


Scheme = ClassScheme | R2Scheme


def combine_columns(how: str, columns: Floats, weights: Floats, n_threads: int) -> Floats:
    """Weighted median or mean of each row over its columns other than NaN, shape (n_rows,)."""
    if how == "median":
        median: Floats = core.weighted_median(
            np.ascontiguousarray(columns), np.ascontiguousarray(weights), n_threads
        )
        return median
    total, counted = np.zeros(len(columns)), np.zeros(len(columns))
    # In the order of the learners: sums of BLAS depend on which rows are predicted together.
    for column, weight in zip(columns.T, weights, strict=True):
        is_number = ~np.isnan(column)
        total += np.where(is_number, weight * column, 0.0)
        counted += weight * is_number
    with np.errstate(invalid="ignore"):
        mean: Floats = total / counted
    return mean


def make_scheme(params: Mapping[str, Any], n_classes: int | None) -> Scheme:
    """The scheme of checked parameters; n_classes is None for regression."""
    if n_classes is None:
        return R2Scheme(
            error=params["loss"],
            rate=params["learning_rate"],
            combine=params.get("aggregation", "median"),
        )
    return class_scheme(params, n_classes)


def class_scheme(params: Mapping[str, Any], n_classes: int) -> ClassScheme:
    """The scheme of a classifier; a single class is treated as two."""
    return ClassScheme(
        algorithm=params["algorithm"],
        n_classes=max(_TWO_CLASSES, n_classes),
        rate=params["learning_rate"],
    )


def _log_odds(error: float) -> float:
    e = error if error > 0.0 else _PERFECT_ERROR
    return core.log(e / (1.0 - e))
