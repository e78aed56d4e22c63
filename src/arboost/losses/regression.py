"""Regression losses. F is the raw score; the formulas are in cpp/loss/losses.h.

Leaf values are those of Friedman (2001), sections 4.1 to 4.4, and for the losses with a log link
the exact minimisers: the leaf's sums of w y and w e^F follow from G and H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arboost.backend import core
from arboost.losses.base import Floats, Loss, Target, limited, mean, newton_steps

__all__ = ["AbsoluteError", "Gamma", "Huber", "Poisson", "Quantile", "SquaredError", "Tweedie"]

# Newton's method for Huber's start: on a piecewise linear slope it ends after a few steps.
_MOST_STEPS = 100
_SMALLEST_MOVE = 1e-12  # in units of delta


@dataclass(frozen=True)
class SquaredError(Loss):
    """(y - F)^2 / 2; its best constant is the mean."""

    name = "squared_error"
    constant_hessian = True

    def start(self, target: Target) -> Floats:
        """The mean."""
        return np.array([mean(target)])

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """The means of the residuals."""
        return newton_steps(sums_g, sums_h)


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss of one or more quantiles, ascending, with one output each."""

    alphas: tuple[float, ...]

    name = "quantile"
    refits_leaves = True
    refits_friedman = True
    constant_hessian = True
    varied = False

    @property
    def link(self) -> str:
        """Identity for one quantile; several quantiles are sorted within each row."""
        return "identity" if len(self.alphas) == 1 else "ordered"

    @property
    def n_outputs(self) -> int:
        """Number of quantiles."""
        return len(self.alphas)

    @property
    def leaf_quantiles(self) -> tuple[float, ...]:
        """The quantiles."""
        return self.alphas

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """The quantiles."""
        return self.alphas

    def start(self, target: Target) -> Floats:
        """The quantiles of y."""
        return np.array([_quantile(target, None, alpha) for alpha in self.alphas])

    def leaf_rule(
        self, target: Target, scores: Floats, output: int, n_threads: int
    ) -> tuple[float, float | None]:
        """Quantiles of the residuals in each leaf."""
        return self.alphas[output], None


@dataclass(frozen=True)
class AbsoluteError(Quantile):
    """|y - F|; its best constant is the median."""

    alphas: tuple[float, ...] = (0.5,)

    name = "absolute_error"

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """No parameters."""
        return ()


@dataclass(frozen=True)
class Huber(Loss):
    """Squared error up to delta, absolute error beyond (Friedman 2001, algorithm 4).

    Delta is the ``alpha`` quantile of the |residuals|, updated each round. The mean loss has one
    delta for all rounds, that of residuals to the median, so that rounds can be compared.
    """

    alpha: float

    name = "huber"
    refits_friedman = True
    in_core = False  # delta follows the residuals
    constant_hessian = True

    def start(self, target: Target) -> Floats:
        """The median, moved by Newton's method to the minimum of the mean loss."""
        score = _quantile(target, None, 0.5)
        delta = self._delta(target, np.full((len(target.y), 1), score), 1)
        low, high = target.y.min(), target.y.max()
        for _ in range(_MOST_STEPS):
            residual = target.y - score
            slope = np.average(residual.clip(-delta, delta), weights=target.weight)
            share = np.average(np.abs(residual) <= delta, weights=target.weight)
            low, high = (score, high) if slope > 0 else (low, score)
            moved = score + slope / share if share > 0 else high
            if not low <= moved <= high:
                moved = low + (high - low) / 2
            if abs(moved - score) <= _SMALLEST_MOVE * delta:
                break
            score = float(moved)
        return np.array([score])

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """Delta of the residuals at these scores."""
        return (self._delta(target, scores, n_threads),)

    def leaf_rule(
        self, target: Target, scores: Floats, output: int, n_threads: int
    ) -> tuple[float, float | None]:
        """Median of the residuals, plus the mean distance from it, clipped to delta."""
        return 0.5, self._delta(target, scores, n_threads)

    def value(self, target: Target, scores: Floats, n_threads: int) -> float:
        """The weighted mean loss with the delta of residuals to the median."""
        median = _quantile(target, None, 0.5, n_threads)
        middle = np.full((len(target.y), 1), median)
        delta = self._delta(target, middle, n_threads)
        return core.loss_value(
            self.kernel, target.y, target.weight, scores, n_threads, parameters=(delta,)
        )

    def _delta(self, target: Target, scores: Floats, n_threads: int) -> float:
        delta = _quantile(target, scores, self.alpha, n_threads)
        if delta > 0:
            return delta
        # With so many residuals of 0 all gradients would be 0: delta is that of the other rows.
        missed = target.y != scores[:, 0]
        if not missed.any():
            return 0.0
        weight = None if target.weight is None else target.weight[missed]
        return _quantile(Target(target.y[missed], weight), scores[missed], self.alpha, n_threads)


def _quantile(target: Target, scores: Floats | None, alpha: float, n_threads: int = 1) -> float:
    """The weighted quantile of y, or of |y - score| if scores are given."""
    return core.residual_quantile(
        target.y,
        target.weight,
        scores,
        alpha=alpha,
        absolute=scores is not None,
        n_threads=n_threads,
    )


@dataclass(frozen=True)
class LogLink(Loss):
    """Base of losses with a log link: the mean is e^F, the best constant the log mean of y.

    The variance of y is in proportion to its mean to the `power`.
    """

    link = "exp"

    @property
    def power(self) -> float:
        """Power of the mean that the variance of y is in proportion to."""
        raise NotImplementedError

    def start(self, target: Target) -> Floats:
        """The logarithm of the mean."""
        return np.array([core.log(mean(target))])

    def check_target(self, y: Floats) -> None:
        """Raise ValueError unless y is 0 or more, and not 0 in all rows."""
        lowest = float(y.min())
        if lowest < 0:
            raise ValueError(
                f"y has the value {lowest!r}, but loss={self.name!r} is for values of 0 or more. "
                "Use another loss, or shift y."
            )
        if not y.any():
            raise ValueError(
                f"y is 0 in all rows, but loss={self.name!r} needs values above 0: the logarithm "
                "of their mean is where training starts. Use another loss, or look at y."
            )


@dataclass(frozen=True)
class Poisson(LogLink):
    """Half the Poisson deviance of y and e^F."""

    name = "poisson"
    power = 1.0

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """log(sum w y / sum w e^F)."""
        return _log_ratio(sums_h - sums_g, sums_h)


@dataclass(frozen=True)
class Gamma(LogLink):
    """Half the gamma deviance of y and e^F."""

    name = "gamma"
    power = 2.0

    def check_target(self, y: Floats) -> None:
        """Raise ValueError unless y is above 0."""
        lowest = float(y.min())
        if lowest <= 0:
            raise ValueError(
                f"y has the value {lowest!r}, but loss='gamma' is for values above 0. Use "
                "loss='tweedie' for values some of which are 0."
            )

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """log(sum w y e^-F / sum w)."""
        return _log_ratio(sums_h, sums_h + sums_g)


@dataclass(frozen=True)
class Tweedie(LogLink):
    """Half the Tweedie deviance of y and e^F, power between 1 (Poisson) and 2 (gamma)."""

    tweedie_power: float

    name = "tweedie"

    @property
    def power(self) -> float:
        """The power of the loss."""
        return self.tweedie_power

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """The power."""
        return (self.tweedie_power,)

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """log(sum w y e^((1-p)F) / sum w e^((2-p)F))."""
        p = self.tweedie_power
        return _log_ratio(sums_h - (2 - p) * sums_g, sums_h + (p - 1) * sums_g)


def _log_ratio(above: Floats, below: Floats) -> Floats:
    """log(above / below) of sums that are negative only by the rounding of gradients."""
    with np.errstate(invalid="ignore"):
        return limited(core.log(above.clip(min=0.0)) - core.log(below.clip(min=0.0)))
